"""One episode's scores: the row from which every table, figure and comparison is made (DESIGN 9).

A row says `None` where something is unknown. What is not applicable, because the family has no such metric, is not in
`metrics` at all.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from pydantic import Field

from evaluation.verdicts import Grader
from pipeline.schema import StoredRecord
from pipeline.task import Family

__all__ = ["EpisodeScores", "EpisodeStatus"]


class EpisodeStatus(StrEnum):
    """How far an episode came."""

    SCORED = "scored"
    BLOCKED = "blocked"
    """The task cannot be carried out here (no repository, no GPU, no data): nothing is known of the agent."""
    UNKNOWN = "unknown"
    """The machinery failed and retries are used up: nothing is known of the agent."""


class EpisodeScores(StoredRecord):
    """Scores, cost and time of one episode."""

    SCHEMA_VERSION: ClassVar[int] = 1

    run: str
    task: str
    family: Family
    paper: str
    category: str = ""
    """Research area, as the task source gives it; empty when it does not."""
    agent: str
    model: str | None = None
    repeat: int = Field(ge=0)
    status: EpisodeStatus
    reason: str = ""
    """For blocked and unknown."""
    monitor: float | None = Field(default=None, ge=0, le=1)
    """M: 1 passed, 0 violation, None unknown."""
    design: float | None = Field(default=None, ge=0, le=1)
    """D: share of design items met; unknown as soon as an item is."""
    design_bounds: tuple[float, float] = (0.0, 1.0)
    """D with every unknown item not met, and met."""
    design_restated: bool = False
    """Everything of the design is told by the task: D measures copying, and stays out of conjunctions."""
    execution_grade: str = ""
    """What E rests on: `perturbed`, `re-executed`; empty where it was not checked."""
    implementation: float | None = Field(default=None, ge=0, le=1)
    """I: share of requirements met."""
    implementation_bounds: tuple[float, float] = (0.0, 1.0)
    execution: float | None = Field(default=None, ge=0, le=1)
    """E: 1 re-executed, 0 not, None unknown or not checked."""
    execution_checked: bool = False
    conclusion: float | None = Field(default=None, ge=0, le=1)
    """C."""
    metrics: dict[str, float | None] = Field(default_factory=dict)
    """Metrics of the other families by name, e.g. `relative_l2`."""
    cost_usd: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    model_calls: int | None = None
    wall_s: float | None = Field(default=None, ge=0)
    limits: tuple[str, ...] = ()
    """Limits that were hit."""
    graders: tuple[tuple[str, Grader], ...] = ()
    """(`integrity` or `judge`, who)."""
    lock: str = ""
    """sha256 of what two comparable runs have in common (task, image, prompts, agent, judge)."""
