"""An episode: one agent's run on one task, once. Where its parts lie, and the limits it is held to.

```
RUN/
  run.yaml                        what is run: agent, tasks, limits, judge, digests (the lock)
  episodes/<task>/<repeat>/
    episode.json                  state (`EpisodeState`), written last after each step
    trajectory.jsonl  agent/      what happened; the agent's own logs
    submission/                   submission.json, response.json, reproduce.sh, patch.diff
    integrity.json  execution.json  execution/  judgement.json
    scores.json
```

A step is finished when `episode.json` names it; a step that was cut off is done again from the file before it.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from evaluation.trajectory import TokenUsage
from pipeline.schema import Problem, Record, StoredRecord

__all__ = ["AgentOutcome", "EpisodeFolder", "EpisodeLimits", "EpisodeState", "Perturbing", "Step"]


class Step(StrEnum):
    """The steps of an episode, in their order."""

    PREPARE = "prepare"
    AGENT = "agent"
    SUBMISSION = "submission"
    INTEGRITY = "integrity"
    EXECUTION = "execution"
    JUDGE = "judge"
    SCORE = "score"


class EpisodeLimits(Record):
    """Ceilings of one episode; enforced by the harness, whatever the agent does."""

    wall_s: float = Field(default=2400.0, gt=0)
    """EXP-Bench 4.2: at most 40 minutes a task."""
    model_calls: int | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, ge=0)
    money_usd: float | None = Field(default=None, ge=0)
    cpus: float = Field(default=2.0, gt=0)
    memory_mb: int = Field(default=4096, gt=0)
    disk_mb: int = Field(default=4096, gt=0)
    pids: int = Field(default=512, gt=0)
    output_mb: int = Field(default=64, gt=0)
    """What an agent may print, per stream."""
    gpus: int = Field(default=0, ge=0)


class Perturbing(Record):
    """Whether submissions are run again under perturbations, and for how long in all."""

    mode: Literal["off", "on", "auto"] = "auto"
    """`auto`: those that the task's own code answers to, as long as they fit the budget; `on`: those whatever they
    take; `off`: none, and E says no more than that it runs again."""
    budget_s: float = Field(default=900.0, gt=0)


class AgentOutcome(Record):
    """How the agent's run ended."""

    reason: str
    """As in `trajectory.End.reason`."""
    exit_code: int | None = None
    detail: str = ""
    wall_s: float = 0.0
    usage: TokenUsage | None = None
    """None: no model was called, or the endpoint did not say."""
    model_calls: int = 0
    cost_usd: float | None = None
    limits: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


class EpisodeState(StoredRecord):
    """`episode.json`."""

    SCHEMA_VERSION: ClassVar[int] = 1

    run: str
    task: str
    agent: str
    repeat: int
    finished: tuple[Step, ...] = ()
    attempts: int = 0
    """Of the agent step; more than one only after failures of the infrastructure."""
    outcome: AgentOutcome | None = None
    blocked: str = ""
    failure: str | None = None
    """A `FailureKind` of the infrastructure, when retries are used up: the episode is unknown, not 0."""


class EpisodeFolder:
    """Paths of one episode."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def state(self) -> Path:
        """`EpisodeState`."""
        return self.root / "episode.json"

    @property
    def trajectory(self) -> Path:
        """Events, one a line."""
        return self.root / "trajectory.jsonl"

    @property
    def agent_logs(self) -> Path:
        """What the agent and the gateway logged."""
        return self.root / "agent"

    @property
    def submission(self) -> Path:
        """Directory: `submission.json`, `response.json`, `reproduce.sh`, `patch.diff`."""
        return self.root / "submission"

    @property
    def integrity(self) -> Path:
        """`IntegrityReport`."""
        return self.root / "integrity.json"

    @property
    def execution(self) -> Path:
        """`ExecutionReport`."""
        return self.root / "execution.json"

    @property
    def judgement(self) -> Path:
        """`Judgement`."""
        return self.root / "judgement.json"

    @property
    def scores(self) -> Path:
        """`EpisodeScores`."""
        return self.root / "scores.json"
