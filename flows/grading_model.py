"""The language model that grades: opened with its store of exchanges, its ledger and its budget beside what it grades.

What was paid for once lies in `<root>/judge` and is found again by a resumed run, by `expbench judge`, and by another
process of the same run; a budget counts what earlier processes spent.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Literal

from flows.engines import ModelOptions
from pipeline.llm import Budget, BudgetLimits, CallLedger, ExchangeStore, ModelClient, model_config_from_environment

__all__ = ["GradingEngine", "grading_model", "limited", "recorded_model", "score_model"]

GradingEngine = Literal["keyless", "model"]


def limited(options: ModelOptions) -> bool:
    """Was a budget asked for?"""
    return any(limit is not None for limit in (options.budget_usd, options.max_calls, options.max_tokens))


@contextmanager
def grading_model(engine: GradingEngine, options: ModelOptions, root: Path) -> Iterator[ModelClient | None]:
    """The model that grades a run, its exchanges and costs recorded in `root/judge`; None for the keyless graders.

    Raises:
        ExpbenchError: of the model layer: no model, no key, a ledger or a price file that cannot be read.
    """
    if engine == "keyless":
        yield None
        return
    with recorded_model(options, root / "judge", "judge") as client:
        yield client


def score_model(
    engine: GradingEngine, name: str | None, directory: Path | None
) -> AbstractContextManager[ModelClient | None]:
    """The model that scores one submission, recorded in `directory` where there is one; None: keyless."""
    return nullcontext() if engine == "keyless" else recorded_model(ModelOptions(name=name), directory, "score")


@contextmanager
def recorded_model(options: ModelOptions, directory: Path | None, scope: str) -> Iterator[ModelClient]:
    """A model with its budget; recorded in `directory` (`exchanges/`, `calls.jsonl`), or nowhere.

    Args:
        options: which model, what it may cost, how recorded exchanges are used and where they lie.
        directory: None: nothing is recorded, unless `options.exchanges` says where.
        scope: name of the budget, for its messages.
    """
    ledger = CallLedger(directory / "calls.jsonl") if directory else None
    exchanges = options.exchanges or (directory / "exchanges" if directory else None)
    store = ExchangeStore(exchanges, options.cache) if exchanges else None
    limits = BudgetLimits(usd=options.budget_usd, tokens=options.max_tokens, calls=options.max_calls)
    budget = Budget(scope, limits, already=ledger.spent()) if ledger else Budget(scope, limits)
    config = model_config_from_environment(options.name)
    with ModelClient(config, store=store, ledger=ledger, budget=budget) as client:
        yield client
