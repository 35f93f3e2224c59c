"""From what was handed in to grades: the tables, the rubric's dimensions, their weighted sum, the callback.

Tables and completeness are computed, whoever judges. Analysis and code are graded by the keyless judge or by a model.
What integrity found is applied here and nowhere else (PRBench B.4, and the published graders' instruction): a banned
library caps code at 0.2, made-up data give data accuracy 0. What was measured before that is kept beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Final

from pydantic import Field

from evaluation.families.table.compare import FileScore, absent, compare_tables
from evaluation.families.table.csvfile import TableError, parse_table, read_table
from evaluation.families.table.fabrication import SubmittedTable
from evaluation.families.table.keyless import HandedIn, keyless_grade
from evaluation.families.table.model_judge import ModelGrades, grade_with_model, grader_of
from evaluation.families.table.records import FileRule, Kind, Mode, TableTask
from evaluation.verdicts import Finding, Grader, ViolationKind
from pipeline.llm import ModelClient
from pipeline.progress import Reporter
from pipeline.schema import Problem, Record, StoredRecord
from pipeline.task import Verdict

__all__ = [
    "BANNED_CAP", "CALLBACK", "DimensionGrade", "TableGrades", "apply_findings", "grade", "handed_in", "score_tables",
    "submitted_tables",
]  # fmt: skip

VERSION: Final = "1"
"""Raised when the rules change, so that grades of different rules are not taken for comparable."""
CALLBACK: Final = 0.9
"""PRBench 4.1: a run is successful end to end when every dimension is above it."""
BANNED_CAP: Final = 0.2
"""The published grader's instruction: with a banned library, the score of code must be at most this."""
_MOST_TEXT: Final = 4 << 20
_TEXTS: Final = (".py", ".ipynb", ".md", ".rst", ".txt", ".csv", ".tsv", ".jl", ".m", ".r", ".c", ".cc", ".cpp", ".f90",
                 ".sh", ".json", ".yaml", ".yml", ".toml", ".cfg", ".h", ".hpp", ".rs", ".f", ".java")  # fmt: skip


class DimensionGrade(Record):
    """The grade of one dimension."""

    name: str
    kind: Kind
    metric: str
    weight: float
    score: float | None = Field(default=None, ge=0, le=1)
    """None: unknown (a model that did not answer)."""
    measured: float | None = Field(default=None, ge=0, le=1)
    """Before what integrity found was applied."""
    reason: str = ""
    engine: str
    """`formula`, `keyless`, `model` or `panel`."""


class TableGrades(StoredRecord):
    """`grades.json`: one submission, graded."""

    SCHEMA_VERSION: ClassVar[int] = 1

    task: str
    mode: Mode
    dimensions: tuple[DimensionGrade, ...]
    accuracy: float | None = Field(default=None, ge=0, le=1)
    """Of all tables, whether the rubric has a dimension for it or not; None: the task has no tables."""
    files: tuple[FileScore, ...] = ()
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
        """End to end (PRBench 4.1): is every dimension above 0.9? None: not known."""
        if any(item.score is not None and item.score <= CALLBACK for item in self.dimensions):
            return False
        return None if any(item.score is None for item in self.dimensions) else True


# --- what was handed in ----------------------------------------------------------------------------------------------


def handed_in(directory: Path) -> HandedIn:
    """The text files below a directory; links are not followed, and git's own files are none."""
    texts: dict[str, str] = {}
    for path in sorted(directory.rglob("*")):
        relative = path.relative_to(directory)
        if path.is_symlink() or not path.is_file() or ".git" in relative.parts:
            continue
        if any((directory / parent).is_symlink() for parent in relative.parents if parent.parts):
            continue
        if path.suffix.lower() in _TEXTS and path.stat().st_size <= _MOST_TEXT:
            texts[relative.as_posix()] = path.read_text(encoding="utf-8", errors="replace")
    return HandedIn(texts=texts)


def score_tables(task: TableTask, texts: Mapping[str, str]) -> tuple[FileScore, ...]:
    """Every expected table against its truth, in the task's order; one that is missing or no table has 0."""
    return tuple(_scored(task, rule, texts) for rule in task.files)


def _scored(task: TableTask, rule: FileRule, texts: Mapping[str, str]) -> FileScore:
    truth = read_table(task.root / rule.truth, strict=True)
    if rule.path not in texts:
        return absent(rule, truth, "it was not handed in")
    try:
        given = parse_table(texts[rule.path].removeprefix("\ufeff"))
    except TableError as error:
        return absent(rule, truth, f"it is no table: {error}")
    return compare_tables(truth, given, rule)


def submitted_tables(task: TableTask, texts: Mapping[str, str]) -> list[SubmittedTable]:
    """The tables that are there and can be read, beside their truth."""
    found = []
    for rule, score in zip(task.files, score_tables(task, texts), strict=True):
        try:
            given = parse_table(texts[rule.path]) if rule.path in texts else None
        except TableError:
            continue
        if given is not None:
            found.append(SubmittedTable(rule.path, given, read_table(task.root / rule.truth, strict=True), score.keys))
    return found


# --- grades ----------------------------------------------------------------------------------------------------------


def grade(
    task: TableTask, submission: HandedIn, *, client: ModelClient | None, panel: int = 1, reporter: Reporter
) -> TableGrades:
    """Grade a submission.

    Args:
        task: rubric, truth, reference.
        submission: what was handed in.
        client: the judging model; None: the keyless judge.
        panel: draws of the model.
        reporter: progress.

    Raises:
        BudgetError, ModelError: see `grade_with_model`.
    """
    files = score_tables(task, submission.texts)
    model = ModelGrades()
    grader = Grader(engine="keyless", version=VERSION)
    if client is not None:
        model = grade_with_model(task, submission, _in_words(files), client, panel, reporter)
        grader = grader_of(client, panel, VERSION)
    return TableGrades(
        task=task.id,
        mode=task.mode,
        dimensions=tuple(_dimensions(task, submission, files, model, grader)),
        accuracy=_accuracy(task, files)[0] if files else None,
        files=files,
        grader=grader,
        findings=tuple(model.findings),
        problems=tuple(model.problems),
    )


def _dimensions(
    task: TableTask, submission: HandedIn, files: Sequence[FileScore], model: ModelGrades, grader: Grader
) -> list[DimensionGrade]:
    accuracy = _accuracy(task, files)
    found = []
    for item in task.dimensions:
        engine: str = "formula"
        score: float | None
        if item.kind is Kind.DATA:
            score, reason = accuracy
        elif item.kind is Kind.COMPLETENESS:
            score, reason = keyless_grade(item.kind, task, submission)
        elif item.name in model.scores:
            engine, (score, reason) = grader.engine, model.scores[item.name]
        else:
            engine, (score, reason) = "keyless", keyless_grade(item.kind, task, submission)
            if item.kind is Kind.OTHER and task.files and score is not None:
                # of an unknown name: what was asked for is code and its tables
                score, reason = (score + accuracy[0]) / 2, f"half code ({reason}), half tables ({accuracy[1]})"
        found.append(
            DimensionGrade(
                name=item.name, kind=item.kind, metric=item.metric, weight=item.weight, score=score, measured=score,
                reason=reason, engine=engine,
            )
        )  # fmt: skip
    return found


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


def apply_findings(grades: TableGrades, findings: Sequence[Finding]) -> TableGrades:
    """The grades with violations applied; suspicions change nothing."""
    violations = [finding for finding in (*findings, *grades.findings) if finding.verdict is Verdict.FAIL]
    banned = next((item for item in violations if item.kind is ViolationKind.BANNED_LIBRARY), None)
    invented = next(
        (i for i in violations if i.kind in {ViolationKind.FABRICATED_RESULT, ViolationKind.PLACEHOLDER_DATA}), None
    )
    found = []
    for item in grades.dimensions:
        score, reason = item.measured, item.reason
        if banned is not None and item.kind in {Kind.CODE, Kind.OTHER} and score is not None and score > BANNED_CAP:
            score, reason = BANNED_CAP, f"at most {BANNED_CAP}, {banned.where} {banned.reason}; {reason}"
        if invented is not None and item.kind in {Kind.DATA, Kind.OTHER} and score is not None:
            score, reason = 0.0, f"the data were not computed: {invented.where}: {invented.reason}; {reason}"
        found.append(item.evolve(score=score, reason=reason))
    return grades.evolve(dimensions=tuple(found))
