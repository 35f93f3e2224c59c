"""Retry, error classes, prices, configuration, counting, context, schemas, redaction."""

from __future__ import annotations

import json
import logging
import os
import random
import re
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from email.utils import format_datetime
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, ValidationError

from pipeline.errors import FAILURES, Cause, ExpbenchError, FailureKind
from pipeline.llm import (
    ImagePart,
    ModelConfig,
    Parameters,
    PriceList,
    Request,
    RetryPolicy,
    TextPart,
    Usage,
    load_prices,
    model_config_from_environment,
    redact,
    register_secret,
    user,
)
from pipeline.llm import redact as redact_function
from pipeline.llm.config import find_key
from pipeline.llm.context import shrink, split
from pipeline.llm.counting import typical_tokens, worst_tokens
from pipeline.llm.errors_map import retry_after
from pipeline.llm.redact import StreamRedactor, protect_loggers, redact_content
from pipeline.llm.schemas import response_schema

SECRET = "planted-secret-0a1b2c3d4e5f"


@pytest.fixture(autouse=True)
def bare_environment(no_ambient_model: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in list(os.environ):
        if name.startswith("EXPBENCH_MODEL") or name == "EXPBENCH_PRICES":
            monkeypatch.delenv(name)


# --- retry ---


@given(st.integers(1, 50), st.none() | st.floats(0, 400), st.integers(0, 2**32), st.sampled_from(sorted(FailureKind)))
def test_delays(attempt: int, asked: float | None, seed: int, kind: FailureKind):
    policy = RetryPolicy(attempts=10)
    delay = policy.delay(kind, attempt, asked, random.Random(seed))
    if delay is None:
        assert not FAILURES[kind].retry or kind is FailureKind.INTERRUPTED or attempt >= 10 or (asked or 0) > 300
    else:
        assert (asked or 0) <= delay <= max(policy.cap_s, (asked or 0) * 1.1 + policy.base_s)


def test_jitter_spreads():
    rng = random.Random(0)
    delays = [RetryPolicy().delay(FailureKind.OVERLOADED, 5, None, rng) for _ in range(200)]
    assert min(delays) < 2 < 14 < max(delays) <= 16


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": format_datetime(datetime.now(UTC) - timedelta(hours=1))}, 0.0),
        ({}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None):
    assert retry_after(headers) == seconds


def test_retry_after_as_a_date():
    assert 3500 < retry_after({"retry-after": format_datetime(datetime.now(UTC) + timedelta(hours=1))}) <= 3600


def test_the_table_has_a_row_per_kind_and_models_are_causes():
    assert set(FAILURES) == set(FailureKind)
    assert {kind for kind, row in FAILURES.items() if row.cause is Cause.MODEL} == {
        FailureKind.REFUSAL,
        FailureKind.INVALID_OUTPUT,
    }
    assert not any(FAILURES[kind].score_valid for kind in (FailureKind.REFUSAL, FailureKind.BUDGET_EXCEEDED))


# --- prices ---

GPT = ModelConfig(model="gpt-4o-mini")


def test_shipped_prices():
    prices = load_prices()
    assert prices.as_of >= "2026"
    usage = Usage(input_tokens=1_000_000, output_tokens=100_000, cached_input_tokens=400_000)
    assert prices.find(GPT).cost(usage) == Decimal("0.09") + Decimal("0.03") + Decimal("0.06")
    assert prices.find(GPT.evolve(model="gpt-4o-mini-2024-07-18")) == prices.find(GPT)
    assert prices.find(GPT.evolve(base_url="http://localhost:1/v1")) is None  # not what a local server charges
    assert prices.find(GPT.evolve(model="gpt-4o-mini-tuned")) is None
    assert prices.context_window(GPT) == 128_000


def test_every_shipped_price_says_where_and_when_it_was_read():
    prices = load_prices()
    names = [(price.provider, price.model) for price in prices.models]
    assert len(names) == len(set(names))
    for price in prices.models:
        assert date.fromisoformat(price.as_of) <= date.fromisoformat(prices.checked)
        assert set(re.findall(r"openai|anthropic|litellm", price.source)) <= prices.sources.keys()
        assert price.source.split(";")[0] in prices.sources
        assert price.hosts  # at an address of the user's own the price would be another
        assert price.output >= price.input or price.output == 0
        assert (price.cached_input or price.input) <= price.input <= (price.cache_write or price.input)


@given(st.integers(0, 10**7), st.integers(0, 10**6), st.floats(0, 1), st.floats(0, 1))
def test_no_call_costs_more_than_its_worst_case(tokens: int, out: int, cached: float, written: float):
    usage = Usage(
        input_tokens=tokens,
        output_tokens=out,
        cached_input_tokens=int(tokens * cached),
        cache_write_tokens=int(tokens * written),
    )
    for price in load_prices().models:
        cost, bound = price.cost(usage), price.worst(tokens, out)
        assert (cost is None) == (bound is None)
        assert cost is None or cost <= bound


def test_users_override_prices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    own = tmp_path / "prices.yaml"
    own.write_text(
        'as_of: "2030-01-01"\nmodels:\n'
        '  - {model: gpt-4o-mini, input: "1", output: "2"}\n  - {model: mine, input: "0", output: "0"}\n'
    )
    monkeypatch.setenv("EXPBENCH_PRICES", str(own))
    prices = load_prices()
    assert prices.find(GPT).input == 1
    assert prices.find(ModelConfig(model="mine", base_url="http://localhost:1/v1")).output == 0
    assert prices.find(ModelConfig(model="gpt-4o")).input == Decimal("2.50")
    monkeypatch.setenv("EXPBENCH_PRICES", str(tmp_path / "missing.yaml"))
    with pytest.raises(ExpbenchError, match="no such price file"):
        load_prices()


def test_prices_for_long_inputs_are_unknown():
    price = PriceList(as_of="2026", models=[{"model": "m", "input": 1, "output": 1, "up_to_input_tokens": 10}]).models[
        0
    ]
    assert price.cost(Usage(input_tokens=10, output_tokens=0)) is not None
    assert price.cost(Usage(input_tokens=11, output_tokens=0)) is None


# --- configuration ---


def test_configuration_from_the_environment(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(ExpbenchError, match="no model is named"):
        model_config_from_environment()
    monkeypatch.setenv("EXPBENCH_MODEL", "llama3:8b")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:11434/v1/")
    monkeypatch.setenv("EXPBENCH_MODEL_SEED", "5")
    config = model_config_from_environment()
    assert (config.provider, config.model, config.base_url) == ("openai", "llama3:8b", "http://localhost:11434/v1")
    assert (config.parameters.seed, config.tokens_field) == (5, "max_tokens")
    other = model_config_from_environment("anthropic:claude-sonnet-4-5")
    assert (other.provider, other.model, other.base_url) == ("anthropic", "claude-sonnet-4-5", None)
    monkeypatch.setenv("EXPBENCH_MODEL_TEMPERATURE", "warm")
    with pytest.raises(ExpbenchError, match="temperature"):
        model_config_from_environment()


@pytest.mark.parametrize(
    "url", [f"http://user:{SECRET}@host/v1", f"http://host/v1?key={SECRET}", "host:8000", "ftp://host/v1"]
)
def test_addresses_hold_no_credentials(url: str, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(ValidationError):
        ModelConfig(model="m", base_url=url)
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    with pytest.raises(ExpbenchError) as caught:
        model_config_from_environment("m")
    assert SECRET not in str(caught.value)


def test_keys(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(ExpbenchError) as caught:
        find_key(ModelConfig(model="m"))
    assert caught.value.kind is FailureKind.AUTHENTICATION
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    key = find_key(ModelConfig(model="m", provider="anthropic"))
    assert key.get_secret_value() == SECRET
    assert SECRET not in f"{key} {key!r}"


@pytest.mark.parametrize("name", ["max_tokens", "n", "service_tier", "messages", "temperature"])
def test_extra_fields_cannot_undo_the_budget(name: str):
    with pytest.raises(ValidationError, match=name):
        Parameters(extra={name: 100})


def test_the_keyring_is_asked_after_the_environment(monkeypatch: pytest.MonkeyPatch):
    errors = ModuleType("keyring.errors")
    errors.KeyringError = type("KeyringError", (Exception,), {})
    keyring = ModuleType("keyring")
    keyring.get_password = lambda service, name: {("expbench", "OPENAI_API_KEY"): SECRET}.get((service, name))
    monkeypatch.setitem(sys.modules, "keyring", keyring)
    monkeypatch.setitem(sys.modules, "keyring.errors", errors)
    assert find_key(ModelConfig(model="m")).get_secret_value() == SECRET
    monkeypatch.setenv("OPENAI_API_KEY", "from-the-environment")
    assert find_key(ModelConfig(model="m")).get_secret_value() == "from-the-environment"

    def locked(service: str, name: str) -> str:
        raise errors.KeyringError("locked")

    monkeypatch.delenv("OPENAI_API_KEY")
    keyring.get_password = locked
    with pytest.raises(ExpbenchError, match="the keyring has none"):
        find_key(ModelConfig(model="m"))


# --- counting and context ---

words = st.text(max_size=300)


@given(st.lists(words, max_size=4), st.integers(0, 2))
def test_expected_tokens_are_fewer_than_the_worst(texts: list[str], images: int):
    request = Request(messages=(user(*texts, *[ImagePart(data=b"x")] * images),))
    assert typical_tokens(request) <= worst_tokens(request, 5000)
    assert worst_tokens(request, 5000) >= sum(len(text.encode()) for text in texts) + 5000 * images


def elastic(text: str, **fields: Any) -> Request:
    return Request(messages=(user("instruction", TextPart(text=text, elastic=True, **fields), "end"),))


@given(st.text(alphabet="ab .\né漢😀", min_size=1, max_size=20_000), st.integers(100, 2000))
def test_splitting_loses_nothing(text: str, room: int):
    pieces = split(elastic(text), room)
    if pieces is None:
        assert room < 150
        return
    contents = [piece.messages[0].content[1].text for piece in pieces]
    assert "".join(c.split("]\n", 1)[1] if len(pieces) > 1 else c for c in contents) == text
    assert all(typical_tokens(piece) <= room for piece in pieces)


@given(st.text(alphabet="ab .\né漢", min_size=1, max_size=20_000), st.integers(60, 2000))
def test_shrinking_says_how_much_is_missing(text: str, room: int):
    shrunk = shrink(elastic(text, fence=("<<", ">>")), room)
    if shrunk is None:
        return
    request, left_out = shrunk
    part = request.messages[0].content[1]
    assert (part.text == text) == (left_out == 0)
    if left_out:
        assert f"{left_out} characters are left out" in part.text
    assert part.rendered().startswith("<<\n")
    assert part.rendered().endswith("\n>>")
    assert [request.messages[0].content[i].text for i in (0, 2)] == ["instruction", "end"]


def test_shrunk_requests_fit():
    request, left_out = shrink(elastic("A sentence of some length. " * 2000), 1000)
    assert left_out > 40_000
    assert 700 < typical_tokens(request) <= 1000


def test_what_is_not_elastic_is_not_touched():
    request = Request(messages=(user("x" * 10_000),))
    assert shrink(request, 100) is None
    assert split(request, 100) is None


# --- schemas ---


class Inner(BaseModel):
    kind: Literal["a"] = "a"
    value: int = 3


class Other(BaseModel):
    kind: Literal["b"] = "b"


class Outer(BaseModel):
    """Has a property that is called like a keyword of JSON schema."""

    title: str
    items: list[Inner] = []
    one: Inner | Other = Field(discriminator="kind")
    maybe: str | None = None


def objects(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        if "properties" in node and isinstance(node["properties"], dict):
            yield node
        for child in node.values():
            yield from objects(child)
    elif isinstance(node, list):
        for child in node:
            yield from objects(child)


def test_strict_schemas():
    sent = response_schema(Outer)
    assert sent["strict"] is True
    text = json.dumps(sent)
    assert "oneOf" not in text
    assert "discriminator" not in text
    assert list(sent["schema"]["properties"]) == ["title", "items", "one", "maybe"]
    for node in objects(sent["schema"]):
        assert node["required"] == list(node["properties"])
        assert node["additionalProperties"] is False


@pytest.mark.parametrize("annotation", [dict[str, int], Any, dict[str, Any], list[dict[str, str]]])
def test_free_mappings_are_sent_without_strictness(annotation: Any):
    model = type("Free", (BaseModel,), {"__annotations__": {"x": annotation}})
    assert response_schema(model)["strict"] is False


# --- redaction ---


@pytest.fixture
def secret() -> str:
    register_secret("PLANTED", SECRET)
    return SECRET


@given(st.text(max_size=50), st.text(max_size=50))
def test_registered_secrets_vanish_and_nothing_else(before: str, after: str):
    register_secret("PLANTED", SECRET)
    assert redact_content(before + SECRET + after) == before + "[redacted:PLANTED]" + after


def test_other_spellings_of_a_secret(secret: str):
    import base64
    import urllib.parse

    register_secret("ODD", 'odd/secret"with+signs==')
    odd = 'odd/secret"with+signs=='
    spellings = [json.dumps(odd), urllib.parse.quote(odd, safe=""), base64.b64encode(odd.encode()).decode()]
    assert all("[redacted:ODD]" in redact_content(f"x {spelling} y") for spelling in spellings)


@given(st.lists(st.sampled_from([SECRET, SECRET[:9], "plant", "text ", "p"]), max_size=6), st.integers(1, 9))
def test_streams_are_redacted_across_pieces(parts: list[str], size: int):
    register_secret("PLANTED", SECRET)
    text = "".join(parts)
    stream = StreamRedactor()
    shown = "".join(stream.feed(text[i : i + size]) for i in range(0, len(text), size)) + stream.rest()
    assert shown == redact_content(text)


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer abcdef1234567890",
        "key sk-proj-abcdefghijkl is wrong",
        "http://user:hunter22@host/v1",
        "token hf_abcdefghijklmnop",
    ],
)
def test_what_looks_like_a_key_is_not_shown(text: str):
    shown = redact_function(text)
    assert "[redacted]" in shown
    assert not any(word in shown for word in ("abcdef", "hunter22"))


def test_ordinary_text_is_left_alone():
    text = "The ask-based method (task-2) reaches 12.5 basic points; see https://host/path and sk-learn."
    assert redact(text) == text


def test_placeholders_are_no_secrets():
    register_secret("OPENAI_API_KEY", "EMPTY")
    assert redact_content("EMPTY sets are EMPTY") == "EMPTY sets are EMPTY"


def test_log_records_are_redacted(secret: str, caplog: pytest.LogCaptureFixture):
    protect_loggers("some.library")
    logger = logging.getLogger("some.library")
    with caplog.at_level("DEBUG"):
        logger.debug("sent %s", {"key": secret})
        try:
            raise RuntimeError(secret)
        except RuntimeError:
            logger.exception("failed")
    assert secret not in caplog.text
    assert caplog.text.count("[redacted:PLANTED]") == 2
