"""`eval_report.json`, in the shape of the published graders' report (PRBench B.3), with what stands behind it."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

from evaluation.families.table.grading import TableGrades
from evaluation.families.table.records import TableTask
from evaluation.verdicts import Finding, ViolationKind
from pipeline.task import Verdict

__all__ = ["evaluation_report", "metrics_of"]


def metrics_of(grades: TableGrades, findings: Sequence[Finding]) -> dict[str, float | None]:
    """The metrics of one episode; None is unknown.

    One per dimension under its kind's name (`methodology_understanding`, `code_correctness`, `data_accuracy`,
    `completeness`, `code_quality`; other names of a rubric as they are), `overall` with its bounds `overall_low` and
    `overall_high`, `end_to_end_callback`, and `data_accuracy_handed_in` (of the tables as they were handed in, which
    counts for nothing else), `banned_libraries` and `fabricated` (0 or 1).
    """
    violated = {item.kind for item in (*findings, *grades.findings) if item.verdict is Verdict.FAIL}
    metrics: dict[str, float | None] = {item.metric: item.score for item in grades.dimensions}
    metrics["overall"] = grades.overall
    metrics["overall_low"], metrics["overall_high"] = grades.bounds
    metrics["end_to_end_callback"] = None if grades.callback is None else float(grades.callback)
    fabricated = bool(violated & {ViolationKind.FABRICATED_RESULT, ViolationKind.PLACEHOLDER_DATA})
    if grades.tables != "none":
        failed = fabricated or grades.monitor is Verdict.FAIL
        metrics.setdefault("data_accuracy", 0.0 if failed else grades.accuracy)
        metrics["data_accuracy_handed_in"] = grades.handed_in_accuracy
    metrics["banned_libraries"] = float(ViolationKind.BANNED_LIBRARY in violated)
    metrics["fabricated"] = float(fabricated)
    return metrics


def evaluation_report(
    task: TableTask, grades: TableGrades, findings: Sequence[Finding], files: Sequence[str]
) -> dict[str, JsonValue]:
    """The report as JSON.

    Args:
        task: the task.
        grades: with what integrity found applied.
        findings: violations and suspicions.
        files: paths that were handed in.
    """
    scores: dict[str, JsonValue] = {
        item.name: {
            "score": item.score,
            "weight": item.weight,
            "justification": item.reason,
            "measured": item.measured,
            "graded_by": item.engine,
        }
        for item in grades.dimensions
    }
    callback = grades.callback
    outcome = "not known" if callback is None else "successful" if callback else "not successful"
    return {
        "task_id": task.published_id,
        "mode": task.mode.value,
        "paper": {"title": task.title, "author": task.author, "doi": task.doi, "year": task.year},
        "grading": {
            "scores": scores,
            "overall_score": grades.overall,
            "overall_bounds": list(grades.bounds),
            "summary": f"{outcome} end to end; "
            + "; ".join(_short(item.name, item.score) for item in grades.dimensions),
        },
        "end_to_end_callback": callback,
        "graded_by": grades.grader.model_dump(mode="json"),
        "monitor": grades.monitor.value,
        "tables_of": grades.tables,
        "tables": [item.model_dump(mode="json") for item in grades.files],
        "tables_handed_in": [item.model_dump(mode="json") for item in grades.handed_in],
        "findings": [item.model_dump(mode="json") for item in (*findings, *grades.findings)],
        "workspace_files": [*sorted(files)],
        "problems": [item.model_dump(mode="json") for item in grades.problems],
    }


def _short(name: str, score: float | None) -> str:
    return f"{name} {'unknown' if score is None else f'{score:.2f}'}"
