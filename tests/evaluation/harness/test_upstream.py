"""Endpoints as the environment gives them: addresses, keys, prices, and which of them are missing."""

from __future__ import annotations

from decimal import Decimal

import pytest
from pydantic import SecretStr

from evaluation.harness.upstream import ANTHROPIC_URL, Upstream, upstreams_from_environment
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.llm.config import OPENAI_URL
from pipeline.llm.prices import Price, PriceList
from pipeline.llm.types import Usage

KEY = "sk-CANARY-UPSTREAM-0123456789"
USED = Usage(input_tokens=1_000_000, output_tokens=500_000)


@pytest.fixture(autouse=True)
def _nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")


def made(provider: str = "openai", key: str = KEY, *, default: bool = True, url: str = OPENAI_URL) -> Upstream:
    return Upstream(provider=provider, url=url, default=default, key=SecretStr(key))


def test_each_provider_is_told_the_key_in_its_own_way() -> None:
    assert made().headers() == {"authorization": f"Bearer {KEY}"}
    assert made("anthropic").headers() == {"x-api-key": KEY}
    for provider in ("openai", "anthropic"):
        assert made(provider, "no-key").headers() == {}
    assert KEY not in repr(made())


def test_prices_of_a_provider_hold_at_its_own_address_only() -> None:
    price = Price(model="gpt-x", provider="openai", input="1", output="2", hosts=("api.openai.com",))
    prices = PriceList(as_of="2026-01-01", models=(price,))
    own, other = made(), made(default=False, url="http://127.0.0.1:9/v1")
    assert own.cost(prices, "gpt-x", USED) == Decimal(2)
    assert own.priced(prices, "gpt-x")
    for endpoint, model in ((own, "unknown"), (own, None), (own, "")):
        assert endpoint.cost(prices, model, USED) is None
    assert not own.priced(prices, "unknown")
    assert not other.priced(prices, "gpt-x")
    assert other.cost(prices, "gpt-x", USED) is None


def test_an_environment_without_keys_gives_none_and_says_why() -> None:
    found, missing = upstreams_from_environment()
    assert found == ()
    assert [error.kind for error in missing] == [FailureKind.AUTHENTICATION] * 2
    assert "OPENAI_API_KEY" in str(missing[0])
    assert "ANTHROPIC_API_KEY" in str(missing[1])


def test_a_key_alone_leads_to_the_providers_own_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    [one], [error] = upstreams_from_environment()
    assert (one.provider, one.url, one.default) == ("anthropic", ANTHROPIC_URL, True)
    assert one.key.get_secret_value() == KEY
    assert "OPENAI_API_KEY" in str(error)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    both, none = upstreams_from_environment()
    assert [(one.provider, one.url) for one in both] == [("openai", OPENAI_URL), ("anthropic", ANTHROPIC_URL)]
    assert none == ()


@pytest.mark.parametrize(
    ("variable", "given", "url", "default"),
    [
        ("OPENAI_BASE_URL", " http://127.0.0.1:9/v1/ ", "http://127.0.0.1:9/v1", False),
        ("OPENAI_BASE_URL", "http://127.0.0.1:9/api", "http://127.0.0.1:9/api", False),
        ("OPENAI_BASE_URL", f"{OPENAI_URL}/", OPENAI_URL, True),
        ("OPENAI_BASE_URL", "  ", OPENAI_URL, True),
        ("ANTHROPIC_BASE_URL", "http://127.0.0.1:9", "http://127.0.0.1:9/v1", False),
        ("ANTHROPIC_BASE_URL", "http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1", False),
        ("ANTHROPIC_BASE_URL", ANTHROPIC_URL.removesuffix("/v1"), ANTHROPIC_URL, True),
        ("ANTHROPIC_BASE_URL", "", ANTHROPIC_URL, True),
    ],
)
def test_an_address_of_ones_own(
    monkeypatch: pytest.MonkeyPatch, variable: str, given: str, url: str, default: bool
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv(variable, given)
    found, _ = upstreams_from_environment()
    one = next(one for one in found if variable.startswith(one.provider.upper()))
    assert (one.url, one.default) == (url, default)


def test_a_server_of_ones_own_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    [one], _ = upstreams_from_environment()
    assert (one.provider, one.headers()) == ("openai", {})


@pytest.mark.parametrize("variable", ["OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"])
def test_an_address_that_is_none_is_said_without_a_key_in_it(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "no address at all")
    with pytest.raises(ExpbenchError) as caught:
        upstreams_from_environment()
    assert (caught.value.kind, caught.value.object) == (FailureKind.USAGE, variable)
    assert caught.value.cause.startswith("is no address of an endpoint: ")
    assert variable in caught.value.next_step
