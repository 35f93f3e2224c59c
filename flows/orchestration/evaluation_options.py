"""What the flows of evaluation take beside agent and tasks: one record, so that Prefect's form groups it."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from evaluation.episode import EpisodeLimits, Perturbing
from flows.engines import ModelOptions
from flows.evaluate import EvaluateOptions, parse_network
from flows.grading_model import GradingEngine
from pipeline.llm import CacheMode, ModelSettings
from pipeline.schema import Record
from pipeline.text import slug

__all__ = ["EvaluationParameters", "SweepEntry", "options_from"]


class EvaluationParameters(Record):
    """Limits of an episode, what the agent may reach, and who grades: the options of `expbench evaluate`."""

    agent_options: dict[str, str] = Field(default_factory=dict)
    wall_minutes: float = Field(default=40.0, gt=0)
    max_calls: int | None = Field(default=None, ge=0)
    max_tokens: int | None = Field(default=None, ge=0)
    max_usd: float | None = Field(default=None, ge=0)
    cpus: float = Field(default=2.0, gt=0)
    memory_mb: int = Field(default=4096, ge=64)
    disk_mb: int = Field(default=4096, ge=16)
    gpus: int = Field(default=0, ge=0)
    gpu_type: str | None = None
    network: str = "none"
    """`none`, or `allow=HOST,...`."""
    judge: GradingEngine = "keyless"
    judge_model: str | None = None
    judge_budget_usd: Decimal | None = Field(default=None, ge=0)
    judge_max_calls: int | None = Field(default=None, ge=0)
    judge_max_tokens: int | None = Field(default=None, ge=0)
    judge_cache: CacheMode = CacheMode.USE
    panel: int = Field(default=1, ge=1, le=15)
    execute_all: bool = False
    counterfactual: Literal["off", "on", "auto"] = "auto"
    counterfactual_minutes: float = Field(default=15.0, gt=0)
    ablate: str = ""

    def with_agent_options(self, options: dict[str, str]) -> dict[str, Any]:
        """As JSON for another run, with these options of its agent beside those given here."""
        return self.evolve(agent_options={**self.agent_options, **options}).model_dump(mode="json")


class SweepEntry(Record):
    """One run of a sweep."""

    agent: str = Field(min_length=1)
    model: str | None = None
    agent_options: dict[str, str] = Field(default_factory=dict)
    name: str = ""
    """Of the run's directory; default: agent and model."""

    @property
    def label(self) -> str:
        """Name of the run's directory."""
        return slug(self.name or "-".join(part for part in (self.agent, self.model) if part), 80)


def options_from(
    parameters: EvaluationParameters, *, source: Path, agent: str, out: Path | None, model: str | None, repeats: int,
    tasks: list[str] | None, concurrency: int,
) -> EvaluateOptions:  # fmt: skip
    """The options of the command with the same names; a run that exists is gone on with.

    Raises:
        ExpbenchError: `USAGE`: the network policy cannot be read.
    """
    given = parameters
    return EvaluateOptions(
        source=source, agent=agent, agent_options=given.agent_options, model=model or ModelSettings().name,
        tasks=tuple(tasks or ()), repeats=repeats, workers=concurrency,
        limits=EpisodeLimits(
            wall_s=given.wall_minutes * 60, model_calls=given.max_calls, tokens=given.max_tokens,
            money_usd=given.max_usd, cpus=given.cpus, memory_mb=given.memory_mb, disk_mb=given.disk_mb,
            gpus=given.gpus,
        ),
        gpu_type=given.gpu_type, judge=given.judge, judge_model=given.judge_model,
        judge_limits=ModelOptions(
            budget_usd=given.judge_budget_usd, max_calls=given.judge_max_calls, max_tokens=given.judge_max_tokens,
            cache=given.judge_cache,
        ),
        panel=given.panel, out=out, resume=True, ablation=given.ablate, network=parse_network(given.network),
        execute_all=given.execute_all,
        counterfactual=Perturbing(mode=given.counterfactual, budget_s=given.counterfactual_minutes * 60),
    )  # fmt: skip
