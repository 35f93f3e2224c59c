"""What was found out about a task: its re-execution, its leak scan, its round trip, and what people decided.

Each is written by one stage and stored in a file of its own (`pipeline.store`). Non-goals: the task itself
(`pipeline.task`), and how the findings come about (`pipeline.validation`, `masking`).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from pipeline.execution_plan import ExecutionPlan, RunScale
from pipeline.schema import Problem, Record, StoredRecord

__all__ = [
    "AcceptedHit", "ClaimMatch", "LeakHit", "LeakReport", "Review", "RoundTrip", "RunReport", "ValidationReport",
    "Verdict",
]  # fmt: skip


class Verdict(StrEnum):
    """Three-valued: what could not be established is unknown, never a fail."""

    PASS = "pass"
    FAIL = "fail"
    UNKNOWN = "unknown"


class ClaimMatch(Record):
    """What a re-execution says of one claim."""

    claim: str
    verdict: Verdict
    observed: tuple[float, ...] = ()
    """One value per repeat, in order; empty when the number was not found."""
    where: str = ""
    """Where it was found, e.g. `stdout:12` or `results/summary.csv row 3, column accuracy`."""
    reason: str
    place: str = ""
    """The place that all runs were read at (`pipeline.validation.places`); empty for a claim that was bound to none."""
    factor: float = Field(default=1.0, allow_inf_nan=False)
    """The number at `place` times this is in the claim's scale."""


class RunReport(Record):
    """One execution of the chain in a clean sandbox. Durations live in the run's log directory, not here."""

    repeat: int
    exit_codes: tuple[int | None, ...]
    """One per command; None for one that was ended by a limit or never ran."""
    failure: str | None = None
    """A `FailureKind`, when a command failed."""
    log: str
    """Directory with stdout and stderr, relative to the task's `validation` directory."""
    produced: tuple[tuple[str, str], ...] = ()
    """(path, sha256) of files that the run created or changed."""
    scale: RunScale = "full"


class ValidationReport(StoredRecord):
    """Stage 3 for one task: every attempt, the match of each claim, and the decision."""

    verdict: Verdict
    reason: str
    sandbox: Literal["docker", "process"]
    runs: tuple[RunReport, ...] = ()
    matches: tuple[ClaimMatch, ...] = ()
    flakiness: float | None = None
    """Share of claims whose repeats do not all agree within the band; None with fewer than two repeats."""
    monitor: tuple[Problem, ...] = ()
    """Findings of the rule monitor (results that were not computed)."""
    problems: tuple[Problem, ...] = ()
    scale: RunScale = "full"
    """Of the runs that the verdict stands on. At smoke scale no number is compared, and the verdict is never PASS."""
    scale_reason: str = ""
    """Why it is the smoke scale, or why there is none."""
    plan: ExecutionPlan | None = None
    """What was run, at both scales; None in reports of before there were two."""

    @property
    def outcome(self) -> str:
        """In a word or two: `reproduced`, `not reproduced`, `unknown`, `smoke: runs`, `smoke: does not run`."""
        if self.scale == "smoke" and self.verdict is Verdict.UNKNOWN:
            smoke = [run for run in self.runs if run.scale == "smoke"]
            return "unknown" if not smoke else "smoke: does not run" if smoke[-1].failure else "smoke: runs"
        return {Verdict.PASS: "reproduced", Verdict.FAIL: "not reproduced", Verdict.UNKNOWN: "unknown"}[self.verdict]

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know of how the task was run, a sentence each: scale, what makes it smaller, seeds."""
        scale = f"Scale: {self.scale}" + (f" ({self.scale_reason})" if self.scale_reason else "")
        return (scale, *(self.plan.notes if self.plan is not None else ()))


class LeakHit(Record):
    """One place of the masked repository from which the answer could be read."""

    kind: Literal["exact", "near_duplicate", "number", "paper", "git_object", "canary", "task_text"]
    where: str
    detail: str
    score: float = Field(ge=0, le=1)

    @property
    def id(self) -> str:
        """Names the hit, e.g. when a reviewer accepts it: the same place with the same finding has the same id."""
        from pipeline.digests import digest_of

        return digest_of([self.kind, self.where, self.detail])[:10]


class AcceptedHit(Record):
    """A hit that a person looked at and accepts: it does not block any more, and says who answers for it."""

    hit: LeakHit
    reviewer: str = Field(min_length=1)
    reason: str = Field(min_length=1)


class LeakReport(StoredRecord):
    """The leak scan of one masked repository (DESIGN: leak scan)."""

    verdict: Verdict
    hits: tuple[LeakHit, ...] = ()
    accepted: tuple[AcceptedHit, ...] = ()
    """Hits that a reviewer accepted, with name and reason; they are not among `hits`."""
    files: int
    bytes: int
    git_objects: int
    checks: tuple[str, ...]
    """The checks that ran, by name: a report that ran nothing must not look clean."""
    problems: tuple[Problem, ...] = ()
    """What could not be looked into; a warning makes a report without blocking hits `unknown`."""


class RoundTrip(StoredRecord):
    """Original passes, masked fails for the right reason, restored passes."""

    verdict: Verdict
    reason: str
    original: Verdict
    masked: Verdict
    restored: Verdict
    masked_failure: str = ""
    """How the masked run failed, e.g. `run_experiment.py: no such file`."""
    repeats: int = 1
    """How often the masked and the restored repository were run."""


class Review(Record):
    """A person's (or an explicit rule's) decision on a task."""

    reviewer: str
    """A name, or `rule: ...` where no person looked."""
    decision: Literal["approve", "edit", "reject", "send_back"]
    """`edit` approves the task with the reviewer's changes; `send_back` asks for another chain of scripts."""
    comment: str = ""
    at: str
    """ISO 8601, UTC."""
    run: str | None = None
    """Where the decision was made (a review run and its question); the same decision is never applied twice."""
    before: str | None = None
    """Digest of the task's content that the reviewer saw (`flows.review.content_digest`)."""
    after: str | None = None
    """Digest of the content after the decision; the decision holds for this content and no other."""
    changes: tuple[tuple[str, str], ...] = ()
    """(field, unified diff) of what the reviewer changed."""
    wishes: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """What the stages must heed from now on: `sources` (the chain), `mask` and `keep` (paths), `refused` (entries)."""
