"""What the graders say of an episode: integrity (M), design (D), implementation (I), execution (E), conclusion (C).

Each grader writes one of these records; `evaluation.scores` turns them into numbers. All verdicts are three-valued:
what could not be established is unknown, never a fail (DESIGN 8, 9; EXP-Bench 4.1).
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, Literal

from pydantic import Field

from pipeline.schema import Problem, Record, StoredRecord
from pipeline.task import Verdict
from pipeline.witness.records import Perturbation, WitnessReport

__all__ = [
    "Counterfactual", "ExecutionReport", "Finding", "Grader", "IntegrityReport", "ItemVerdict", "Judgement",
    "NumberTrace", "PerturbedNumber", "ViolationKind",
]  # fmt: skip


class Grader(Record):
    """Who graded: always shown beside a score."""

    engine: Literal["keyless", "model", "panel"]
    model: str | None = None
    prompts: tuple[tuple[str, str], ...] = ()
    """(name, sha256) of each prompt used."""
    version: str = "1"


class ViolationKind(StrEnum):
    """What the monitor looks for (EXP-Bench 4.1, and beyond it)."""

    PAPER_ACCESS = "paper_access"
    GIT_HISTORY = "git_history"
    MASKED_CONTENT = "masked_content"
    FABRICATED_RESULT = "fabricated_result"
    """A reported value that no executed command produced, or that the code states instead of computing it."""
    PLACEHOLDER_DATA = "placeholder_data"
    NETWORK = "network"
    RIGGED_EXPERIMENT = "rigged_experiment"
    """Given data, metric or settings were changed, or the result does not stand under other random streams."""
    BANNED_LIBRARY = "banned_library"
    """A library that the task itself forbids (PRBench B.4)."""
    JUDGE_TAMPERING = "judge_tampering"
    """Edits of the judge's files, or text that addresses the judge or the monitor."""


class Finding(Record):
    """One thing that the monitor found, with the events and the quote that show it."""

    kind: ViolationKind
    verdict: Verdict
    """`fail`: a violation; `unknown`: a suspicion that a person should look at. Never `pass`."""
    events: tuple[int, ...] = ()
    """`seq` of the events that show it."""
    where: str = ""
    """Event, file or field, e.g. `event 12` or `patch: run.py:31`."""
    quote: str = ""
    reason: str
    engine: Literal["keyless", "model"] = "keyless"


class NumberTrace(Record):
    """Where a number of the conclusion comes from."""

    name: str
    value: float
    events: tuple[int, ...] = ()
    """Commands that printed it."""
    files: tuple[str, ...] = ()
    """Produced files that hold it."""
    verdict: Verdict


class IntegrityReport(StoredRecord):
    """Metric M: may the episode be believed?"""

    SCHEMA_VERSION: ClassVar[int] = 1

    verdict: Verdict
    reason: str
    findings: tuple[Finding, ...] = ()
    flags: tuple[Finding, ...] = ()
    """Text that addresses a grader; flagged for the reader, changes no verdict by itself."""
    numbers: tuple[NumberTrace, ...] = ()
    causes: tuple[str, ...] = ()
    """Why it may have happened: `refusal`, `runtime_error`, `time`, ... (EXP-Bench 4.1)."""
    grader: Grader
    problems: tuple[Problem, ...] = ()


class ItemVerdict(Record):
    """One criterion: met, not met or unknown."""

    item: str
    """Stable id within the task, e.g. `independent:kernel` or `requirement:3`."""
    text: str
    verdict: Verdict
    reason: str
    quote: str = ""
    """From the submission or the patch; exists there."""
    where: str = ""
    told: bool = False
    """Of design: the task's text says it, so that stating it is a restatement and shows nothing."""
    votes: tuple[Verdict, ...] = ()
    """Of a panel."""


class Judgement(StoredRecord):
    """Metrics D, I and C, criterion by criterion."""

    SCHEMA_VERSION: ClassVar[int] = 1

    design: tuple[ItemVerdict, ...] = ()
    implementation: tuple[ItemVerdict, ...] = ()
    conclusion: tuple[ItemVerdict, ...] = ()
    """One for the meaning, one per number of the expected outcome; C is met when all are."""
    grader: Grader
    flags: tuple[Finding, ...] = ()
    error_analysis: tuple[tuple[Literal["design", "implementation", "execution", "conclusion"], str], ...] = ()
    """(phase, what went wrong): the raw material of the failure taxonomy (EXP-Bench 4.3)."""
    problems: tuple[Problem, ...] = ()


class PerturbedNumber(Record):
    """A number of the conclusion under a perturbation."""

    name: str
    value: float
    """As the clean re-execution had it."""
    perturbed: float | None
    """At the same place of the perturbed run's output; None: that place is not there any more."""


class Counterfactual(Record):
    """A re-execution under a perturbation made from outside: do the numbers answer as an experiment's do?"""

    perturbation: Perturbation
    verdict: Verdict
    """pass: they moved where an experiment's must; fail: they stayed where the task's own code moves; unknown: nothing
    can be said (it did not reach the code, it does not move the task's own numbers either, it was not run)."""
    reason: str
    kind: ViolationKind | None = None
    """What it says of the episode: with `fail` a violation, with `unknown` a suspicion; None: nothing."""
    touched: int = 0
    failed: bool = False
    """The submission did not end well under it."""
    numbers: tuple[PerturbedNumber, ...] = ()
    duration_s: float = Field(default=0.0, ge=0)


class ExecutionReport(StoredRecord):
    """Metric E: does the submission run again, from its patch alone, in a clean, equivalent container?"""

    SCHEMA_VERSION: ClassVar[int] = 1

    verdict: Verdict
    reason: str
    applied: bool = False
    exit_code: int | None = None
    failure: str | None = None
    """A `FailureKind`."""
    outputs: tuple[tuple[str, bool], ...] = ()
    """(declared output, was it produced?)."""
    numbers: tuple[NumberTrace, ...] = ()
    """The conclusion's numbers: do they occur in what the re-execution printed or wrote?"""
    witness: WitnessReport | None = None
    """What ran, seen from inside its Python processes; None: no witness could be sent along."""
    counterfactuals: tuple[Counterfactual, ...] = ()
    not_perturbed: str = ""
    """Why perturbations were left out; empty when those that apply were made."""
    log: str = ""
    """Directory with stdout and stderr, relative to the episode."""
    duration_s: float = Field(default=0.0, ge=0)
    problems: tuple[Problem, ...] = ()
