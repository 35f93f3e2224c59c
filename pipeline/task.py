"""The task: one experiment to carry out, its ground truth, and the evidence for both.

A task lives in two halves on disk (`pipeline.store`): what an agent may see, and what only the judge may see. The
`Task` value holds both; `Task.public()` is the only way to the first half, and it is built by naming the fields that
are public, never by removing the private ones.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from pipeline.paper import Box, Paper
from pipeline.repository import RepositoryRef
from pipeline.schema import Problem, Record, StoredRecord

__all__ = [
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


class Verdict(StrEnum):
    """Three-valued: what could not be established is unknown, never a fail."""

    PASS = "pass"
    FAIL = "fail"
    UNKNOWN = "unknown"


# --- evidence --------------------------------------------------------------------------------------------------------


class TextEvidence(Record):
    """A quote from the paper. `quote` occurs in the document's text at that place."""

    kind: Literal["text"] = "text"
    page: int
    box: Box
    quote: str
    section: str | None = None


class TableEvidence(Record):
    """A cell of a table (or, with `row` and `column` None, the table as a whole)."""

    kind: Literal["table"] = "table"
    label: str
    page: int
    box: Box
    row: int | None = None
    column: int | None = None
    quote: str
    row_labels: tuple[str, ...] = ()
    column_headers: tuple[str, ...] = ()


class CodeEvidence(Record):
    """Lines of a repository file, both ends included, numbered from 1."""

    kind: Literal["code"] = "code"
    path: str
    start: int = Field(ge=1)
    end: int = Field(ge=1)
    quote: str = ""


Evidence = Annotated[TextEvidence | TableEvidence | CodeEvidence, Field(discriminator="kind")]

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
    """`printed precision` or `repeats (n=3)`: bands are learnt, not chosen (after CORE-Bench)."""

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


class Expected(Record):
    """The expected outcome: in words, as numbers, and as an ordering where the claim is a comparison."""

    text: str
    claims: tuple[NumericClaim, ...] = ()
    comparisons: tuple[tuple[str, Literal["<", ">", "="], str], ...] = ()
    """(claim id, relation, claim id): must hold among the reproduced values too."""


class SourceScript(Record):
    """A file of the chain that answers the question. `role`: entry point, configuration, wrapper or library."""

    path: str
    role: Literal["entry", "config", "wrapper", "library"]
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


class Draft(Record):
    """What stage 2.1 says of one experiment, before any repository is looked at."""

    slug: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,59}$")
    question: str
    """Does not state the answer: no claimed number, no winner."""
    method: str
    """How to go about it, without results."""
    agent_instructions: str = ""
    expected: Expected
    constant: tuple[DesignVariable, ...] = ()
    independent: tuple[DesignVariable, ...] = ()
    dependent: tuple[DesignVariable, ...] = ()
    hyperparameters: tuple[Hyperparameter, ...] = ()
    evidence: dict[str, tuple[Evidence, ...]] = Field(default_factory=dict)
    """Field name -> supporting spans; `question`, `method` and `expected` are always there."""
    sections: tuple[str, ...] = ()
    """Titles of the sections the draft was made from."""
    confidence: float = Field(ge=0, le=1)


# --- environment, reports --------------------------------------------------------------------------------------------


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


class ClaimMatch(Record):
    """What a re-execution says of one claim."""

    claim: str
    verdict: Verdict
    observed: tuple[float, ...] = ()
    """One value per repeat, in order; empty when the number was not found."""
    where: str = ""
    """Where it was found, e.g. `stdout:12` or `results/summary.csv row 3, column accuracy`."""
    reason: str


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

    def public(self) -> PublicTask:
        """The half that an agent may see, built from the fields of `PublicTask` by name."""
        return PublicTask.model_validate({name: getattr(self, name) for name in PublicTask.model_fields})
