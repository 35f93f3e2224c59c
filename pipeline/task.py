"""The task: one experiment to carry out, its ground truth, and the evidence for both.

A task lives in two halves on disk (`pipeline.store`): what an agent may see, and what only the judge may see. The
`Task` value holds both; `Task.public()` is the only way to the first half, and it is built by naming the fields that
are public, never by removing the private ones. Evidence (`pipeline.evidence`) and the reports of the stages
(`pipeline.reports`) can be imported from here as well.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, Final, Literal

from pydantic import Field

from pipeline.data.records import KeptData
from pipeline.evidence import CodeEvidence, Evidence, TableEvidence, TextEvidence
from pipeline.paper import Paper
from pipeline.reports import (
    AcceptedHit,
    ClaimMatch,
    LeakHit,
    LeakReport,
    Review,
    RoundTrip,
    RunReport,
    ValidationReport,
    Verdict,
)
from pipeline.repository import RepositoryRef
from pipeline.schema import Problem, Record, StoredRecord
from pipeline.witness.records import FunctionRun, Response

__all__ = [
    "TO_BE_WRITTEN",
    "AcceptedHit",
    "Band",
    "ClaimMatch",
    "CodeEvidence",
    "Condition",
    "DesignVariable",
    "Environment",
    "Evidence",
    "Expected",
    "ExperimentTruth",
    "Family",
    "Hyperparameter",
    "LeakHit",
    "LeakReport",
    "MaskedPath",
    "NotFound",
    "NumericClaim",
    "Provenance",
    "PublicTask",
    "Requirement",
    "Resources",
    "Review",
    "RoundTrip",
    "RunReport",
    "SourceScript",
    "Status",
    "TableEvidence",
    "Task",
    "TextEvidence",
    "Usage",
    "ValidationReport",
    "Verdict",
]  # fmt: skip


TO_BE_WRITTEN: Final = "to be written: nothing that ran bears out a sentence of the paper"
"""Shown to people in place of an empty method; such a task is not released."""


class Family(StrEnum):
    """How a task is set up and scored."""

    EXPERIMENT = "experiment"
    HISTOGRAM = "histogram"
    TABLE = "table"
    CAUSAL = "causal"


class Status(StrEnum):
    """Where a task stands on its way; the last three are ends."""

    DRAFT = "draft"
    LOCATED = "located"
    VALIDATED = "validated"
    MASKED = "masked"
    """A release candidate: masked, leak-free by the scan, round trip passed. A person has not seen it yet."""
    APPROVED = "approved"
    RELEASED = "released"
    REJECTED = "rejected"
    NOT_FOUND = "not_found"
    WITHDRAWN = "withdrawn"


# --- ground truth ----------------------------------------------------------------------------------------------------


class DesignVariable(Record):
    """A constant, independent or dependent variable of the experimental design."""

    name: str
    values: tuple[str, ...] = ()


class Condition(Record):
    """One coordinate of a claim, e.g. method = `OURS` or data set = `spirals`."""

    name: str
    value: str


class Band(Record):
    """The closed interval in which a reproduced value counts as equal, with where the interval comes from."""

    low: float
    high: float
    source: str
    """`printed precision`, `repeats (n=3)` or `seeds (n=5)`: bands are learnt, not chosen (after CORE-Bench)."""
    deviation: float | None = Field(default=None, ge=0)
    """Standard deviation of the stated number itself (a mean keeps its own) over runs with other random streams; None
    where they were not moved, or nothing in the run is random."""
    observed: tuple[float, ...] = ()
    """The number in each of these runs, in one order for all claims of a task: which vary together is seen in them."""

    def holds(self, value: float) -> bool:
        """Is `value` inside?"""
        return self.low <= value <= self.high


class NumericClaim(Record):
    """One number that the paper states: metric, value, unit and the conditions under which it holds."""

    id: str
    """Stable within the task: `c1`, `c2`, ..."""
    metric: str
    value: float
    text: str
    """As printed, e.g. `87.3` or `0.91 ± 0.02`."""
    decimals: int = Field(ge=0)
    unit: str | None = None
    uncertainty: float | None = None
    conditions: tuple[Condition, ...] = ()
    band: Band
    evidence: tuple[Evidence, ...] = ()
    place: str = ""
    """Where a run holds the number (`pipeline.validation.places`); empty until a clean run was seen to hold it."""
    factor: float = Field(default=1.0, allow_inf_nan=False)
    """The number at `place` times this is in the paper's scale; not 0."""


class Expected(Record):
    """The expected outcome: in words, as numbers, and as an ordering where the claim is a comparison."""

    text: str
    claims: tuple[NumericClaim, ...] = ()
    comparisons: tuple[tuple[str, Literal["<", ">", "="], str], ...] = ()
    """(claim id, relation, claim id): must hold among the reproduced values too."""


class SourceScript(Record):
    """A file of the chain that answers the question. `document`: a written procedure, where nothing is run."""

    path: str
    role: Literal["entry", "config", "wrapper", "library", "document"]
    score: float
    """The locator's score; comparable within one task only."""
    reasons: tuple[str, ...] = ()


class Requirement(Record):
    """One implementation step in words, with the lines that implement it (ground truth for I)."""

    text: str
    spans: tuple[CodeEvidence, ...]


class Usage(Record):
    """A command of the chain. `argv` is run without a shell, from `directory` (relative to the repository root)."""

    argv: tuple[str, ...] = Field(min_length=1)
    directory: str = "."
    reason: str = ""
    """Where the command comes from, e.g. `README.md:41`."""


class Hyperparameter(Record):
    """A setting with its effective value and where that comes from."""

    name: str
    value: str
    source: Literal["command", "config", "default", "paper"]
    evidence: tuple[Evidence, ...] = ()


class NotFound(Record):
    """No script of the repository answers the question. A person must accept this before release."""

    reason: str
    searched: tuple[str, ...]
    """What was looked at: signals, queries, best candidates with their scores."""


class ExperimentTruth(Record):
    """Ground truth of the `experiment` family (EXP-Bench 3.1)."""

    family: Literal[Family.EXPERIMENT] = Family.EXPERIMENT
    constant: tuple[DesignVariable, ...] = ()
    independent: tuple[DesignVariable, ...] = ()
    dependent: tuple[DesignVariable, ...] = ()
    sources: tuple[SourceScript, ...] = ()
    equivalents: tuple[SourceScript, ...] = ()
    """Other scripts of the repository that reproduced the claims when they were run; masked with the sources."""
    requirements: tuple[Requirement, ...] = ()
    usage: tuple[Usage, ...] = ()
    expected: Expected
    hyperparameters: tuple[Hyperparameter, ...] = ()
    data_needs: tuple[str, ...] = ()
    not_found: NotFound | None = None
    follow_ups: tuple[str, ...] = ()
    ran: tuple[FunctionRun, ...] = ()
    """Functions of the repository that ran when the chain was re-executed, with the settings they were called with."""
    seeds: tuple[str, ...] = ()
    """Distinct seeds that the chain gave to random generators when it was re-executed."""
    mapped: tuple[tuple[str, str], ...] = ()
    """(absolute path of the author's that the code names, file or folder of the repository that runs find there)."""
    data: KeptData | None = None
    """What runs download, answered from the cache; without a network they get nothing else."""
    responses: tuple[Response, ...] = ()
    """How the claims answer when the chain is run under perturbations: what an honest submission has to answer to."""


class Draft(Record):
    """What stage 2.1 says of one experiment, before any repository is looked at."""

    slug: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,59}$")
    question: str
    """Does not state the answer: no claimed number, no winner."""
    method: str
    """How to go about it, without results; empty where nothing bears out how (a person writes it)."""
    agent_instructions: str = ""
    expected: Expected
    constant: tuple[DesignVariable, ...] = ()
    independent: tuple[DesignVariable, ...] = ()
    dependent: tuple[DesignVariable, ...] = ()
    hyperparameters: tuple[Hyperparameter, ...] = ()
    evidence: dict[str, tuple[Evidence, ...]] = Field(default_factory=dict)
    """Field name -> supporting spans; `question`, `method` and `expected` are always there, of an empty method none."""
    sections: tuple[str, ...] = ()
    """Titles of the sections the draft was made from."""
    confidence: float = Field(ge=0, le=1)


# --- environment, provenance ----------------------------------------------------------------------------------------


class Environment(Record):
    """What the code runs in. `image` is a digest of the Docker image, None for the process sandbox."""

    sandbox: Literal["docker", "process"] | None = None
    image: str | None = None
    spec_digest: str | None = None
    """sha256 of the build spec (Python, locked packages, system packages)."""
    python: str | None = None
    packages: tuple[str, ...] = ()
    """Exact pins, `name==version`, sorted."""
    system_packages: tuple[str, ...] = ()
    declared_in: tuple[str, ...] = ()
    """Files of the repository the packages come from; `imports` where none declares them."""


class Resources(Record):
    """What an agent's episode is given."""

    cpus: float = 2.0
    memory_mb: int = 4096
    gpus: int = 0
    gpu_type: str | None = None
    """Part of the name that the driver reports, e.g. `A40`; None: any."""
    gpu_memory_mb: int | None = None
    """Memory that each GPU must have; None: any."""
    wall_time_s: int = 2400
    """EXP-Bench 4.2: at most 40 minutes a task."""


class MaskedPath(Record):
    """A path taken out of (or changed in) the repository, and why."""

    path: str
    action: Literal["removed", "outputs_cleared", "edited"]
    reason: str


class Provenance(Record):
    """Who made the task, from what, when."""

    engine: Literal["keyless", "model"]
    model: str | None = None
    prompts: tuple[tuple[str, str], ...] = ()
    """(name, sha256) of each prompt used."""
    stages: tuple[tuple[str, str], ...] = ()
    """(stage, version) of the code that made each part."""
    created_at: str | None = None
    """ISO 8601, UTC; the only part that differs between two runs on the same input."""


class PublicTask(StoredRecord):
    """What an agent may see."""

    SCHEMA_VERSION: ClassVar[int] = 1

    id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,159}$")
    family: Family
    status: Status
    paper: Paper
    repository: RepositoryRef
    question: str
    method: str
    agent_instructions: str = ""
    environment: Environment = Environment()
    resources: Resources = Resources()
    provenance: Provenance


class Task(PublicTask):
    """A task with everything known about it."""

    truth: ExperimentTruth
    status_reason: str = ""
    """Why it is rejected, not found or withdrawn."""
    confidence: float = Field(default=0.0, ge=0, le=1)
    evidence: dict[str, tuple[Evidence, ...]] = Field(default_factory=dict)
    """Field name -> the spans that support it."""
    masked: tuple[MaskedPath, ...] = ()
    validation: ValidationReport | None = None
    leaks: LeakReport | None = None
    round_trip: RoundTrip | None = None
    reviews: tuple[Review, ...] = ()
    problems: tuple[Problem, ...] = ()

    def noted(self, component: str, message: str) -> Task:
        """With a problem that is about the task as a whole."""
        return self.evolve(problems=(*self.problems, Problem(component=component, where=self.id, message=message)))

    def public(self) -> PublicTask:
        """The half that an agent may see, built from the fields of `PublicTask` by name."""
        return PublicTask.model_validate({name: getattr(self, name) for name in PublicTask.model_fields})
