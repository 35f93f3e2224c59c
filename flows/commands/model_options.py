"""Options that every command with a language model shares: what it may cost, and what becomes of its exchanges."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from pipeline.errors import ExpbenchError, FailureKind

if TYPE_CHECKING:
    from flows.engines import ModelOptions

    AskModel = Callable[..., ModelOptions]
else:
    AskModel = Callable

__all__ = [
    "AskModel", "BudgetUsd", "Exchanges", "MaxCalls", "MaxTokens", "NoCache", "Refresh", "Replay", "as_decimal",
    "model_group", "model_options",
]  # fmt: skip

_PANEL: Final = "With a language model"

ModelName = Annotated[
    str | None, typer.Option(help="Name of the model; default: EXPBENCH_MODEL.", rich_help_panel=_PANEL)
]
BudgetUsd = Annotated[
    float | None, typer.Option(min=0, help="Stop before more dollars are spent.", rich_help_panel=_PANEL)
]
MaxCalls = Annotated[int | None, typer.Option(min=0, help="Stop before more calls are made.", rich_help_panel=_PANEL)]
MaxTokens = Annotated[
    int | None, typer.Option(min=0, help="Stop before more tokens, in and out, are used.", rich_help_panel=_PANEL)
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Neither use nor record exchanges.", rich_help_panel=_PANEL)]
Refresh = Annotated[
    bool, typer.Option("--refresh", help="Ask everything again and record the answers.", rich_help_panel=_PANEL)
]
Replay = Annotated[bool, typer.Option("--replay", help="Answer from recorded exchanges only.", rich_help_panel=_PANEL)]
Exchanges = Annotated[
    Path | None,
    typer.Option(help="Where exchanges are recorded and found; default: beside the results.", rich_help_panel=_PANEL),
]


def model_group(
    model: ModelName = None, budget_usd: BudgetUsd = None, max_calls: MaxCalls = None, max_tokens: MaxTokens = None,
    no_cache: NoCache = False, refresh: Refresh = False, replay: Replay = False, exchanges: Exchanges = None,
) -> AskModel:  # fmt: skip
    """The options of a model, for `with_options`: `model_options`, which still has to hear what they are for."""
    return functools.partial(
        model_options, modes={"--no-cache": no_cache, "--refresh": refresh, "--replay": replay}, name=model,
        budget_usd=budget_usd, max_calls=max_calls, max_tokens=max_tokens, exchanges=exchanges,
    )  # fmt: skip


def as_decimal(dollars: float | None) -> Decimal | None:
    """An option in dollars as the model layer counts them."""
    return None if dollars is None else Decimal(str(dollars))


def model_options(
    *, used: bool, wanted: str, consequence: str, modes: Mapping[str, bool], name: str | None,
    budget_usd: float | None, max_calls: int | None, max_tokens: int | None, exchanges: Path | None,
    also: Mapping[str, bool] | None = None,
) -> ModelOptions:  # fmt: skip
    """Check options of a model and put them together.

    Args:
        used: is a model asked at all? Without one, none of them means anything.
        wanted: how to ask for one, e.g. `--engine model`.
        consequence: of an error.
        modes: `--no-cache`, `--refresh`, `--replay` -> was it given?
        name: `--model`.
        budget_usd: likewise, and so on.
        max_calls: see `ModelOptions`.
        max_tokens: see `ModelOptions`.
        exchanges: see `ModelOptions`.
        also: further options that only a model heeds -> was it given?

    Raises:
        ExpbenchError: `USAGE`: they contradict each other, or there is no model.
    """
    from flows.engines import ModelOptions as _ModelOptions
    from pipeline.llm import CacheMode

    values = {
        "--model": name, "--budget-usd": budget_usd, "--max-calls": max_calls, "--max-tokens": max_tokens,
        "--exchanges": exchanges,
    }  # fmt: skip
    given = [mode for mode, on in modes.items() if on]
    if len(given) > 1:
        raise ExpbenchError(
            FailureKind.USAGE, " and ".join(given), "only one of them can hold at once", consequence=consequence,
            next_step=f"Choose one of {', '.join(modes)}",
        )  # fmt: skip
    further = [option for option, on in (also or {}).items() if on]
    unused = [*given, *(option for option, value in values.items() if value is not None), *further]
    if unused and not used:
        raise ExpbenchError(
            FailureKind.USAGE, ", ".join(unused), f"means something with {wanted} only", consequence=consequence,
            next_step=f"Add {wanted}",
        )  # fmt: skip
    mode = {"--no-cache": CacheMode.OFF, "--refresh": CacheMode.REFRESH, "--replay": CacheMode.REPLAY}
    return _ModelOptions(
        name=name, budget_usd=as_decimal(budget_usd), max_calls=max_calls,
        max_tokens=max_tokens, exchanges=exchanges, cache=mode[given[0]] if given else CacheMode.USE,
    )  # fmt: skip
