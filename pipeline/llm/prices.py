"""Prices of models: a dated data file that users override; what is not in it is unknown, not free.

Money is exact (`Decimal`, US dollars): sums of parts equal the sum.
"""

from __future__ import annotations

import os
import re
from decimal import Decimal
from functools import cache
from importlib.resources import files
from pathlib import Path

from pydantic import Field

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.llm.config import ModelConfig
from pipeline.llm.types import Usage
from pipeline.schema import Record, StoredRecord

__all__ = ["Price", "PriceList", "load_prices"]

_MILLION = Decimal(1_000_000)
_DATED = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|\d{8})$")
_IMAGE_TOKENS = 16_384
"""For models without an entry: what Qwen-VL, the most generous of the open vision models, spends on one image."""


class Price(Record):
    """One model's prices, in dollars per million tokens, and its limits."""

    provider: str = "openai"
    model: str
    hosts: tuple[str, ...] = ()
    """Where the price holds; empty: everywhere."""
    input: Decimal = Field(ge=0)
    output: Decimal = Field(ge=0)
    cached_input: Decimal | None = Field(default=None, ge=0)
    cache_write: Decimal | None = Field(default=None, ge=0)
    up_to_input_tokens: int | None = None
    context_window: int | None = None
    image_tokens: int | None = None
    as_of: str | None = None
    """When this entry was read at its source, where it was not with the rest of the list."""
    source: str | None = None
    """Where it was read: a key of the list's `sources`, or words."""

    def cost(self, usage: Usage) -> Decimal | None:
        """Dollars for a call; None where the price is unknown."""
        if self.up_to_input_tokens is not None and usage.input_tokens > self.up_to_input_tokens:
            return None
        cached = min(usage.cached_input_tokens, usage.input_tokens)
        written = min(usage.cache_write_tokens, usage.input_tokens - cached)
        plain = usage.input_tokens - cached - written
        dollars = plain * self.input + usage.output_tokens * self.output
        dollars += cached * (self.input if self.cached_input is None else self.cached_input)
        dollars += written * (self.input if self.cache_write is None else self.cache_write)
        return dollars / _MILLION

    def worst(self, input_tokens: int, output_tokens: int) -> Decimal | None:
        """The most that so many tokens can cost (cache reads are never dearer, cache writes may be)."""
        if self.up_to_input_tokens is not None and input_tokens > self.up_to_input_tokens:
            return None
        dearest = max(self.input, self.cache_write or self.input)
        return (input_tokens * dearest + output_tokens * self.output) / _MILLION


class PriceList(StoredRecord):
    """A dated list of prices."""

    as_of: str
    source: str = ""
    sources: dict[str, str] = Field(default_factory=dict)
    """What the entries' `source` stands for."""
    checked: str | None = None
    """When the entries were compared with another list; the file says with which, and what was not."""
    models: tuple[Price, ...] = ()

    def find(self, config: ModelConfig) -> Price | None:
        """The price of a model at its endpoint; a dated snapshot (`gpt-4o-2024-08-06`) has its family's price."""
        names = (config.model, _DATED.sub("", config.model))
        for name in names:
            for price in self.models:
                if (price.provider, price.model) == (config.provider, name) and (
                    not price.hosts or config.host in price.hosts
                ):
                    return price
        return None

    def context_window(self, config: ModelConfig) -> int | None:
        """Tokens that the model takes, as far as is known."""
        price = self.find(config)
        return config.context_window or (price.context_window if price else None)

    def image_tokens(self, config: ModelConfig) -> int:
        """The most that one image counts."""
        price = self.find(config)
        return (price.image_tokens if price else None) or _IMAGE_TOKENS


@cache
def _shipped() -> PriceList:
    from pipeline.yamlio import parse_yaml

    resource = files("pipeline.llm") / "prices.yaml"
    return parse_yaml(resource.read_text(encoding="utf-8"), PriceList, "prices.yaml")


def load_prices(path: Path | None = None) -> PriceList:
    """The shipped prices, with the user's own entries before them.

    Args:
        path: the user's file; None: `EXPBENCH_PRICES`, else `~/.config/expbench/prices.yaml` where it exists.

    Raises:
        ExpbenchError: `RECORD_INVALID` when the user's file cannot be read as prices.
    """
    shipped = _shipped()
    configured = os.environ.get("EXPBENCH_PRICES")
    own = path or (Path(configured) if configured else None)
    if own is None:
        own = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "expbench" / "prices.yaml"
        if not own.is_file():
            return shipped
    if not own.is_file():
        raise ExpbenchError(
            FailureKind.RECORD_INVALID,
            str(own),
            "there is no such price file",
            consequence="No price was read",
            next_step="Correct EXPBENCH_PRICES, or unset it to use the shipped prices",
        )
    from pipeline.yamlio import load_yaml

    theirs = load_yaml(own, PriceList)
    return PriceList(
        as_of=f"{theirs.as_of} (own), {shipped.as_of}",
        source=f"{own.name}; {shipped.source}",
        sources=shipped.sources | theirs.sources,
        checked=shipped.checked,
        models=theirs.models + shipped.models,
    )
