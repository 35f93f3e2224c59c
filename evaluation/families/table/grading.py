"""From what was handed in to grades: the tables, the rubric's dimensions, their weighted sum, the callback.

Tables and completeness are computed, whoever judges. Analysis and code need a reader: a model, or they are unknown,
unless nothing is there or it is the ground truth's own. Data accuracy is that of the tables which our own run of the
submission wrote (`reexecution`); what was only handed in is compared too, and counts for nothing but the report.

What integrity found is applied here and nowhere else. The monitor failed: every dimension is 0. Without an episode
(`standalone`) the published graders' instruction holds (PRBench B.4): a banned library caps code at 0.2, made-up data
give data accuracy 0. What was measured before that is kept beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, Literal

from pydantic import Field

from evaluation.families.table.compare import FileScore, absent, compare_tables
from evaluation.families.table.csvfile import TableError, parse_table, read_table
from evaluation.families.table.handed_in import HandedIn, unread_grade
from evaluation.families.table.model_judge import ModelGrades, grade_with_model, grader_of
from evaluation.families.table.records import FileRule, Kind, Mode, TableTask
from evaluation.verdicts import Finding, Grader, ViolationKind
from pipeline.llm import ModelClient
from pipeline.progress import Reporter
from pipeline.schema import Problem, Record, StoredRecord
from pipeline.task import Verdict

__all__ = ["BANNED_CAP", "CALLBACK", "DimensionGrade", "TableGrades", "apply_findings", "grade", "score_tables"]

VERSION: Final = "2"
"""Raised when the rules change, so that grades of different rules are not taken for comparable."""
CALLBACK: Final = 0.9
"""PRBench 4.1: a run is successful end to end when every dimension is above it."""
BANNED_CAP: Final = 0.2
"""The published grader's instruction: with a banned library, the score of code must be at most this."""
Tables = Literal["re-executed", "handed in", "unknown", "none"]


class DimensionGrade(Record):
    """The grade of one dimension."""

    name: str
    kind: Kind
    metric: str
    weight: float
    score: float | None = Field(default=None, ge=0, le=1)
    """None: unknown (nobody read it, the model did not answer, the re-execution did not come about)."""
    measured: float | None = Field(default=None, ge=0, le=1)
    """Before what integrity found was applied."""
    reason: str = ""
    engine: str
    """`formula`, `model` or `panel`; `nobody` where it is unknown."""


class TableGrades(StoredRecord):
    """`grades.json`: one submission, graded."""

    SCHEMA_VERSION: ClassVar[int] = 2

    task: str
    mode: Mode
    dimensions: tuple[DimensionGrade, ...]
    tables: Tables = "none"
    """Which tables data accuracy is about; `unknown`: those of a re-execution of which nothing is known."""
    accuracy: float | None = Field(default=None, ge=0, le=1)
    """Of these tables, whether the rubric has a dimension for it or not; None: unknown, or the task has none."""
    files: tuple[FileScore, ...] = ()
    """Tables that the re-execution wrote."""
    handed_in: tuple[FileScore, ...] = ()
    """Tables as they were handed in."""
    handed_in_accuracy: float | None = Field(default=None, ge=0, le=1)
    monitor: Verdict = Verdict.UNKNOWN
    """What integrity and re-execution found together."""
    grader: Grader
    findings: tuple[Finding, ...] = ()
    """Of the judging model."""
    problems: tuple[Problem, ...] = ()

    @property
    def overall(self) -> float | None:
        """Weighted sum of the dimensions (PRBench, equation 1); None as soon as one that counts is unknown."""
        if any(item.score is None and item.weight > 0 for item in self.dimensions):
            return None
        return sum((item.score or 0.0) * item.weight for item in self.dimensions)

    @property
    def bounds(self) -> tuple[float, float]:
        """The overall score with every unknown dimension at 0, and at 1."""
        low = sum((item.score or 0.0) * item.weight for item in self.dimensions)
        return low, low + sum(item.weight for item in self.dimensions if item.score is None)

    @property
    def callback(self) -> bool | None:
        """End to end (PRBench 4.1): is every dimension above 0.9? None: not known.

        The tables have to be re-executed ones, and the monitor has to have passed.
        """
        low = any(item.score is not None and item.score <= CALLBACK for item in self.dimensions)
        if low or self.monitor is Verdict.FAIL:
            return False
        known = self.monitor is Verdict.PASS and self.tables in {"re-executed", "none"}
        return True if known and all(item.score is not None for item in self.dimensions) else None


# --- tables ----------------------------------------------------------------------------------------------------------


def score_tables(task: TableTask, texts: Mapping[str, str]) -> tuple[FileScore, ...]:
    """Every expected table against its truth, in the task's order; one that is missing or no table has 0."""
    return tuple(_scored(task, rule, texts) for rule in task.files)


def _scored(task: TableTask, rule: FileRule, texts: Mapping[str, str]) -> FileScore:
    truth = read_table(task.root / rule.truth, strict=True)
    if rule.path not in texts:
        return absent(rule, truth, "it is not there")
    try:
        given = parse_table(texts[rule.path].removeprefix("\ufeff"))
    except TableError as error:
        return absent(rule, truth, f"it is no table: {error}")
    return compare_tables(truth, given, rule)


# --- grades ----------------------------------------------------------------------------------------------------------


def grade(
    task: TableTask, submission: HandedIn, *, tables: Mapping[str, str] | None, client: ModelClient | None,
    panel: int = 1, reporter: Reporter,
) -> TableGrades:  # fmt: skip
    """Grade a submission.

    Args:
        task: rubric, truth, reference.
        submission: what was handed in.
        tables: path -> text of the tables that count: those of the re-execution. None: nothing is known of it.
        client: the judging model; None: nobody reads analysis and code.
        panel: draws of the model.
        reporter: progress.

    Raises:
        BudgetError, ModelError: see `grade_with_model`.
    """
    handed_in = score_tables(task, submission.texts)
    files = () if tables is None else score_tables(task, tables)
    model = ModelGrades()
    grader = Grader(engine="keyless", version=VERSION)
    unread = {item.name: unread_grade(item.kind, task, submission) for item in task.dimensions}
    if client is not None and any(score is None for score, _ in unread.values()):
        model = grade_with_model(task, submission, _in_words(files or handed_in), client, panel, reporter)
        grader = grader_of(client, panel, VERSION)
    found = []
    for item in task.dimensions:
        (score, reason), engine = unread[item.name], "formula"
        if item.kind is Kind.DATA:
            score, reason = _accuracy(task, files) if files else (None, "what a re-execution writes is not known")
        elif score is None and item.name in model.scores:
            engine, (score, reason) = grader.engine, model.scores[item.name]
        found.append(
            DimensionGrade(
                name=item.name, kind=item.kind, metric=item.metric, weight=item.weight, score=score, measured=score,
                reason=reason, engine="nobody" if score is None else engine,
            )
        )  # fmt: skip
    return TableGrades(
        task=task.id, mode=task.mode, dimensions=tuple(found),
        tables="none" if not task.files else "re-executed" if files else "unknown",
        accuracy=_accuracy(task, files)[0] if files else None, files=files, handed_in=handed_in,
        handed_in_accuracy=_accuracy(task, handed_in)[0] if handed_in else None, grader=grader,
        findings=tuple(model.findings), problems=tuple(model.problems),
    )  # fmt: skip


def _accuracy(task: TableTask, files: Sequence[FileScore]) -> tuple[float, str]:
    """Mean of the tables by their weights."""
    if not files:
        return 0.0, "the task has no table"
    weights = [rule.weight for rule in task.files]
    score = sum(weight * file.score for weight, file in zip(weights, files, strict=True)) / sum(weights)
    right, values = sum(file.right for file in files), sum(file.values for file in files)
    score = 1.0 if all(file.score == 1.0 for file in files) else score
    return score, f"{right} of {values} values in {len(files)} table(s) are within the tolerance"


def _in_words(files: Sequence[FileScore]) -> str:
    return "\n".join(
        f"{file.path}: {file.right} of {file.values} values within {file.tolerance.relative:g} relative"
        + (f"; {file.problem}" if file.problem else "")
        for file in files
    )


# --- what integrity found --------------------------------------------------------------------------------------------


def apply_findings(grades: TableGrades, findings: Sequence[Finding], monitor: Verdict | None) -> TableGrades:
    """The grades with violations applied; suspicions change nothing but the callback.

    Args:
        grades: as measured.
        findings: of integrity and re-execution.
        monitor: the verdict on the episode; None: there was none, and the published consequences are drawn.
    """
    violations = [finding for finding in (*findings, *grades.findings) if finding.verdict is Verdict.FAIL]
    episode, monitor = monitor is not None, Verdict.FAIL if violations else monitor or Verdict.UNKNOWN
    banned = next((item for item in violations if item.kind is ViolationKind.BANNED_LIBRARY), None)
    invented = next(
        (i for i in violations if i.kind in {ViolationKind.FABRICATED_RESULT, ViolationKind.PLACEHOLDER_DATA}), None
    )
    found = []
    for item in grades.dimensions:
        score, reason = item.measured, item.reason
        if episode and monitor is Verdict.FAIL:
            first = f" ({violations[0].where}: {violations[0].reason})" if violations else ""
            score, reason = 0.0, f"the monitor failed{first}; {reason}"
        elif banned is not None and item.kind in {Kind.CODE, Kind.OTHER} and (score is None or score > BANNED_CAP):
            score = None if score is None else BANNED_CAP
            reason = f"at most {BANNED_CAP}, {banned.where} {banned.reason}; {reason}"
        elif invented is not None and item.kind in {Kind.DATA, Kind.OTHER}:
            score, reason = 0.0, f"the data were not computed: {invented.where}: {invented.reason}; {reason}"
        found.append(item.evolve(score=score, reason=reason))
    return grades.evolve(dimensions=tuple(found), monitor=monitor)
