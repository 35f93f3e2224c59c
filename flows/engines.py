"""Who reads: the keyless engine, or a model with its store of exchanges, its ledger and its budget in the workspace.

What was paid for lies in `WORKSPACE/model` and `WORKSPACE/model_calls.jsonl`: a resumed run finds its answers there and
pays for none of them again, and its budget knows what was spent before. Keys are looked for before anything is written,
and are kept nowhere. Non-goal: what is asked (see `extractors.engine`, `pipeline.reader`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Final

from pydantic import Field

from pipeline.digests import digest_of
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.llm import (
    Budget,
    BudgetLimits,
    CacheMode,
    CallLedger,
    ExchangeStore,
    ModelClient,
    ModelConfig,
    ModelError,
    ModelSettings,
    PromptRef,
    model_config_from_environment,
)
from pipeline.llm.config import find_key
from pipeline.schema import Record
from pipeline.settings import Settings
from pipeline.store import Workspace
from pipeline.task import Task

__all__ = [
    "ModelEngine",
    "ModelOptions",
    "fails_here",
    "model_config",
    "open_model",
    "parameters_of",
    "prompts_digest",
    "with_prompts",
]

_ABOUT_ONE_QUESTION: Final = frozenset({FailureKind.REFUSAL, FailureKind.INVALID_OUTPUT, FailureKind.CONTEXT_TOO_LONG})


class ModelOptions(Record):
    """What the user asked for beside `--engine model`."""

    name: str | None = None
    """None: `EXPBENCH_MODEL`."""
    budget_usd: Decimal | None = Field(default=None, ge=0)
    max_calls: int | None = Field(default=None, ge=0)
    max_tokens: int | None = Field(default=None, ge=0)
    """These three hold for the workspace: what earlier runs in it used counts."""
    cache: CacheMode = CacheMode.USE
    exchanges: Path | None = None
    """Where exchanges are recorded and found; None: in the workspace."""


@dataclass(frozen=True)
class ModelEngine:
    """A model at work in one workspace."""

    client: ModelClient
    budget: Budget

    def close(self) -> None:
        """Close the connections."""
        self.client.close()

    @property
    def config(self) -> ModelConfig:
        """Which model, where and how."""
        return self.client.config

    @property
    def identity(self) -> dict[str, object]:
        """What decides the answers: for the keys of stages."""
        return {**self.config.identity, "parameters": parameters_of(self.config)}

    @contextmanager
    def working(self, stage: str, task: str | None = None) -> Iterator[None]:
        """Calls of the block count for this stage (and task) in ledger and budget."""
        with self.client.scope("stage", stage):
            if task is None:
                yield
                return
            with self.client.scope("task", task):
                yield


def model_config(options: ModelOptions, workspace: Workspace) -> ModelConfig:
    """The model that is asked for, checked as far as that is possible without asking it.

    A workspace that a model has worked in names the model where neither option nor environment does.

    Raises:
        ExpbenchError: `ENGINE_UNAVAILABLE` when no model is named; `AUTHENTICATION` when it needs a key and there is
            none (a replay needs none); `USAGE` when a setting is invalid.
    """
    name = options.name
    if not name and not ModelSettings().name and workspace.exists():
        name = workspace.info().inputs.model
    if not name and not ModelSettings().name:
        raise ExpbenchError(
            FailureKind.ENGINE_UNAVAILABLE,
            "--engine model",
            "no model is configured: --model is not given and EXPBENCH_MODEL is not set",
            consequence="Nothing was started",
            next_step="Set EXPBENCH_MODEL (e.g. gpt-4.1-mini) and OPENAI_API_KEY, and OPENAI_BASE_URL for a server of "
            "your own (docs/models.md); or use --engine keyless, which needs no model and no account",
        )
    config = model_config_from_environment(name)
    if options.cache is not CacheMode.REPLAY:
        find_key(config)
    return config


def open_model(config: ModelConfig, options: ModelOptions, workspace: Workspace, settings: Settings) -> ModelEngine:
    """The model with its store, ledger and budget; nothing is asked yet.

    Raises:
        ExpbenchError: the price file or the ledger cannot be read.
    """
    ledger = CallLedger(workspace.calls_path)
    limits = BudgetLimits(usd=options.budget_usd, tokens=options.max_tokens, calls=options.max_calls)
    budget = Budget("curate", limits, already=ledger.spent())
    store = ExchangeStore(options.exchanges or workspace.exchanges_dir, options.cache)
    client = ModelClient(config, store=store, ledger=ledger, budget=budget)
    return ModelEngine(client=client, budget=budget)


def parameters_of(config: ModelConfig) -> str:
    """How answers are generated, as one text for people and for comparison."""
    parameters = config.parameters.model_dump(mode="json", exclude_defaults=True)
    parameters["max_output_tokens"] = config.parameters.max_output_tokens
    return ", ".join(f"{name}={parameters[name]}" for name in sorted(parameters))


def fails_here(error: ModelError) -> bool:
    """Is a failure about one question only (refused, badly answered, too long), so that the others may go on?

    Everything else is about the endpoint, the account or the machine and ends the run.
    """
    return error.kind in _ABOUT_ONE_QUESTION


def with_prompts(task: Task, prompts: Iterable[PromptRef]) -> Task:
    """The task with further prompts in its provenance, each once, sorted."""
    known = {*task.provenance.prompts, *((prompt.name, prompt.digest) for prompt in prompts)}
    return task.evolve(provenance=task.provenance.evolve(prompts=tuple(sorted(known))))


def prompts_digest(prompts: Iterable[PromptRef]) -> str:
    """One digest for the keys of stages: another wording of a prompt makes its stage stale."""
    return digest_of(sorted((prompt.name, prompt.digest) for prompt in prompts))
