"""A submission scored without an episode: `expbench score table`.

Nothing is run and there is no trajectory: the tables are compared as they were handed in, and only import statements of
banned libraries are looked for. The callback is therefore never reached, only missed or unknown.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from pydantic import JsonValue

from evaluation.families.table.banned import banned_findings
from evaluation.families.table.banned_list import banned_libraries
from evaluation.families.table.grading import apply_findings, grade
from evaluation.families.table.handed_in import HandedIn, read_directory
from evaluation.families.table.reading import load_table_task
from evaluation.families.table.records import Mode, TableTask
from evaluation.families.table.report import evaluation_report, metrics_of
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.llm import ModelClient
from pipeline.progress import Reporter

__all__ = ["read_submission", "score_submission"]


def read_submission(task: TableTask, path: Path) -> HandedIn:
    """What was handed in: a workspace, a directory of tables, or one table.

    A table that does not lie where the task expects it is found by its name below the directory's root.

    Raises:
        ExpbenchError: `USAGE`: there is no such file or directory.
    """
    if not path.exists():
        raise ExpbenchError(
            FailureKind.USAGE, f"--submission {path}", "does not exist",
            consequence="Nothing was scored", next_step="Name the agent's workspace, a directory of tables, or a table",
        )  # fmt: skip
    if path.is_file():
        texts = {path.name: path.read_text(encoding="utf-8", errors="replace")}
    else:
        texts = dict(read_directory(path).texts)
    for expected in task.expected.all:
        name = PurePosixPath(expected).name
        if expected not in texts and name in texts:
            texts[expected] = texts[name]
    return HandedIn(texts=texts)


def score_submission(
    directory: Path,
    submission: Path,
    *,
    mode: Mode = Mode.FULL,
    client: ModelClient | None = None,
    panel: int = 1,
    reporter: Reporter,
) -> dict[str, JsonValue]:
    """Score a submission of a published or imported task.

    Args:
        directory: the task's directory.
        submission: see `read_submission`.
        mode: full or code-only.
        client: the judging model; None: the keyless judge.
        panel: draws of the model.
        reporter: progress.

    Returns:
        The report (`evaluation_report`), with the metrics beside it under their names.

    Raises:
        ExpbenchError: `RECORD_INVALID`: it is no task; `USAGE`: there is no submission.
        BudgetError, ModelError: see `grading.grade`.
    """
    task, _ = load_table_task(directory, mode)
    given = read_submission(task, submission)
    findings = banned_findings(given.programs, banned_libraries(task))
    grades = grade(task, given, tables=given.texts, client=client, panel=panel, reporter=reporter)
    grades = apply_findings(grades.evolve(tables="handed in" if task.files else "none"), findings, None)
    report = evaluation_report(task, grades, findings, sorted(given.texts))
    metrics = metrics_of(grades, findings)
    dimensions = {item.name: item.model_dump(mode="json") for item in grades.dimensions}
    return {"task": task.id, **metrics, "metrics": {**metrics}, "dimensions": {**dimensions}, **report}
