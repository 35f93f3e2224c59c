"""Endpoints behind the gateway: where they are, and the key that is added on our side.

An upstream is made from the same settings as every other model call of this project (`OPENAI_BASE_URL`,
`OPENAI_API_KEY`, `ANTHROPIC_BASE_URL`, `ANTHROPIC_API_KEY`, or the keyring); its key is registered, so that nothing
that is recorded holds it.
"""

from __future__ import annotations

import os
from decimal import Decimal
from typing import Final, Literal

from pydantic import ConfigDict, SecretStr, ValidationError

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.llm.config import OPENAI_URL, ModelConfig, find_key
from pipeline.llm.prices import PriceList
from pipeline.llm.types import Usage
from pipeline.schema import Record

__all__ = ["ANTHROPIC_URL", "Upstream", "upstreams_from_environment"]

ANTHROPIC_URL: Final = "https://api.anthropic.com/v1"
_PLACEHOLDER: Final = "no-key"
"""What `find_key` gives for servers of one's own that want none."""


class Upstream(Record):
    """One endpoint."""

    model_config = ConfigDict(hide_input_in_errors=True)

    provider: Literal["openai", "anthropic"]
    url: str
    """Ends in `/v1` (or whatever the server's own base is)."""
    default: bool
    """Is it the provider's own? Prices hold there."""
    key: SecretStr

    def headers(self) -> dict[str, str]:
        """What authenticates a request; nothing where the server wants no key."""
        key = self.key.get_secret_value()
        if key == _PLACEHOLDER:
            return {}
        return {"x-api-key": key} if self.provider == "anthropic" else {"authorization": f"Bearer {key}"}

    def cost(self, prices: PriceList, model: str | None, usage: Usage) -> Decimal | None:
        """US dollars of a call; None where the price is unknown."""
        if not model:
            return None
        price = prices.find(self._config(model))
        return None if price is None else price.cost(usage)

    def priced(self, prices: PriceList, model: str) -> bool:
        """Is the model's price known here?"""
        return prices.find(self._config(model)) is not None

    def _config(self, model: str) -> ModelConfig:
        return ModelConfig(model=model, provider=self.provider, base_url=None if self.default else self.url)


def upstreams_from_environment() -> tuple[tuple[Upstream, ...], tuple[ExpbenchError, ...]]:
    """The endpoints that this environment gives, and why the others are missing.

    Raises:
        ExpbenchError: `USAGE`: an address is invalid.
    """
    found: list[Upstream] = []
    missing: list[ExpbenchError] = []
    for provider, variable, default in (
        ("openai", "OPENAI_BASE_URL", OPENAI_URL),
        ("anthropic", "ANTHROPIC_BASE_URL", ANTHROPIC_URL),
    ):
        own = os.environ.get(variable, "").strip().rstrip("/")
        if provider == "anthropic" and own and not own.endswith("/v1"):
            own += "/v1"  # Anthropic's clients take the address without it
        config = _config(provider, variable, own)
        try:
            key = find_key(config)
        except ExpbenchError as error:
            missing.append(error)
            continue
        url = own or default
        found.append(Upstream(provider=provider, url=url, default=not own or own == default, key=key))
    return tuple(found), tuple(missing)


def _config(provider: str, variable: str, own: str) -> ModelConfig:
    try:
        return ModelConfig(model="any", provider=provider, base_url=own or None)
    except ValidationError as error:
        cause = "; ".join(found["msg"] for found in error.errors(include_input=False, include_url=False))
    raise ExpbenchError(
        FailureKind.USAGE,
        variable,
        f"is no address of an endpoint: {cause}",
        consequence="No agent was started",
        next_step=f"Correct {variable}, or unset it to use the provider's own address",
    )
