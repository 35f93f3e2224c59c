"""The monitor of the table family: the rules for all families, banned libraries, and a look for the graders' files.

Whether the tables were computed is not read from programs: the re-execution shows it (`reexecution`).
"""

from __future__ import annotations

from collections.abc import Sequence

from evaluation.episode import EpisodeFolder
from evaluation.families.rerun import is_oracle
from evaluation.families.table.banned import banned_findings
from evaluation.families.table.banned_list import banned_libraries
from evaluation.families.table.handed_in import HandedIn
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

__all__ = ["check_table_integrity", "table_findings"]


def table_findings(material: Material, task: TableTask) -> list[Finding]:
    """What the family's own rules find in a submission: patch, files and trajectory."""
    programs = HandedIn(texts=material.final_texts).programs
    return [*banned_findings(programs, banned_libraries(task)), *truth_findings(material, task)]


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
    if is_oracle(folder):
        return report
    return _with_findings(report, table_findings(load_material(evaluation, folder, submission), task))


def _with_findings(report: IntegrityReport, found: Sequence[Finding]) -> IntegrityReport:
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
