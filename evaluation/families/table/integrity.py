"""The monitor of the table family: the rules for all families, banned libraries, and where the tables come from."""

from __future__ import annotations

from collections.abc import Sequence

from evaluation.episode import EpisodeFolder
from evaluation.families.table.banned import banned_findings
from evaluation.families.table.banned_list import BannedLibrary, banned_in_text, modules_of, united
from evaluation.families.table.fabrication import fabrication_findings, identical_tables
from evaluation.families.table.grading import handed_in, submitted_tables
from evaluation.families.table.records import TableTask
from evaluation.families.table.truth_rules import truth_findings
from evaluation.integrity.material import Material, load_material
from evaluation.integrity.monitor import check_integrity
from evaluation.submission import Submission
from evaluation.task import EvaluationTask
from evaluation.verdicts import Finding, IntegrityReport
from pipeline.llm import ModelClient
from pipeline.progress import Reporter
from pipeline.task import Verdict

__all__ = ["banned_libraries", "check_table_integrity", "table_findings"]

_ORACLE = "oracle"


def banned_libraries(task: TableTask) -> list[BannedLibrary]:
    """What a task bans: in its configuration, its instruction and its graders' text."""
    own = [BannedLibrary(name=name, modules=modules_of(name), source="task.yaml") for name in task.banned]
    told = banned_in_text(task.instruction, task.instruction_file)
    return united([*own, *told, *banned_in_text(task.metadata, task.metadata_file)])


def table_findings(
    material: Material, task: TableTask, texts: dict[str, str], *, with_trajectory: bool = True
) -> list[Finding]:
    """What the family's own rules find in a submission.

    Args:
        material: patch, files and trajectory.
        task: bans, truth.
        texts: what was handed in.
        with_trajectory: False: there was no episode, and nothing can be said of tables without programs.
    """
    return [
        *banned_findings(material, banned_libraries(task)),
        *truth_findings(material, task),
        *fabrication_findings(material, submitted_tables(task, texts), programs_expected=with_trajectory),
    ]


def check_table_integrity(
    evaluation: EvaluationTask,
    task: TableTask,
    folder: EpisodeFolder,
    submission: Submission,
    *,
    client: ModelClient | None,
    reporter: Reporter,
) -> IntegrityReport:
    """The monitor's report on an episode of the family; the oracle, which is given the truth, is not looked at.

    Raises:
        BudgetError, ModelError: see `check_integrity`.
    """
    report = check_integrity(evaluation, folder, submission, client=client, reporter=reporter)
    material = load_material(evaluation, folder, submission)
    if material.head is not None and material.head.agent == _ORACLE:
        return report
    texts = handed_in(folder.submission / "files").texts
    report = with_findings(report, table_findings(material, task, texts))
    return report.evolve(problems=(*report.problems, *identical_tables(submitted_tables(task, texts))))


def with_findings(report: IntegrityReport, found: Sequence[Finding]) -> IntegrityReport:
    """A report with more findings, and the verdict that follows."""
    new = [finding for finding in found if finding not in report.findings]
    if not new:
        return report
    findings = sorted([*report.findings, *new], key=lambda item: item.verdict is not Verdict.FAIL)
    violations = [item for item in findings if item.verdict is Verdict.FAIL]
    first = findings[0]
    if violations:
        kinds = ", ".join(dict.fromkeys(item.kind.value for item in violations))
        verdict, reason = Verdict.FAIL, f"{len(violations)} violation(s) ({kinds}); {first.where}: {first.reason}"
    else:
        verdict = Verdict.UNKNOWN
        reason = f"{len(findings)} suspicion(s) for a person; {first.where}: {first.reason}"
    return report.evolve(findings=tuple(findings), verdict=verdict, reason=reason)
