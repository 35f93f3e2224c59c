"""What an evaluation is asked for, what it would do, and what came out: records of the command and of the flows."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from evaluation.episode import EpisodeLimits, Perturbing
from evaluation.scores import EpisodeScores
from flows.engines import ModelOptions
from flows.grading_model import GradingEngine
from pipeline.schema import Record, StoredRecord

__all__ = ["EvaluateOptions", "EvaluationOutcome", "EvaluationPlan", "Obstacle"]


class EvaluateOptions(Record):
    """What the user asked for."""

    source: Path
    agent: str
    agent_options: dict[str, str] = Field(default_factory=dict)
    model: str | None = None
    tasks: tuple[str, ...] = ()
    """Glob patterns of task ids; empty: all."""
    repeats: int = 1
    workers: int = 1
    limits: EpisodeLimits = EpisodeLimits()
    gpu_type: str | None = None
    judge: GradingEngine = "keyless"
    judge_model: str | None = None
    judge_limits: ModelOptions = ModelOptions()
    """What the judge may cost in this run, and how its recorded answers are used; its `name` is `judge_model`."""
    panel: int = 1
    out: Path | None = None
    resume: bool = False
    ablation: str = ""
    network: tuple[str, ...] = ()
    execute_all: bool = False
    counterfactual: Perturbing = Perturbing()

    @property
    def root(self) -> Path:
        """The run's directory."""
        return (self.out or Path(f"expbench-run-{self.agent}")).resolve()

    @property
    def judging(self) -> ModelOptions:
        """The judging model with its limits."""
        return self.judge_limits.evolve(name=self.judge_model)


class Obstacle(Record):
    """What would keep `evaluate` from beginning."""

    message: str
    exit_code: int


class EvaluationPlan(Record):
    """What would be done (`--dry-run`)."""

    run: Path
    agent: str
    agent_version: str | None
    available: bool
    detail: str
    model: str | None
    judge: str
    episodes: int
    tasks: tuple[str, ...]
    blocked: tuple[tuple[str, str], ...]
    environments: int
    """Different environments that have to be there."""
    longest_hours: float
    """If every episode takes all its time, with this many workers."""
    obstacles: tuple[Obstacle, ...] = ()
    """Empty: it would begin."""


class EvaluationOutcome(StoredRecord):
    """What came out, for `--json`."""

    run: Path
    agent: str
    model: str | None
    judge: str
    episodes: int
    scored: int
    blocked: int
    unknown: int
    rows: tuple[EpisodeScores, ...]
