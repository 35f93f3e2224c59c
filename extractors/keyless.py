"""The keyless engine of stage 2.1 for a paper alone: tables of measurements become draft tasks, without any model.

Which tables are taken is decided by the form of their numbers. No run and no file stands behind such a draft, so that
each says so, has an empty method and little confidence: it is a proposal for a reviewer. Non-goals: a repository
(`flows.rehearse_stage`), results that stand in sentences only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from extractors.drafting import DraftResult, Ground, draft_tables, stated, why_no_results
from pipeline.paper import Document
from pipeline.progress import Reporter, SilentReporter
from pipeline.schema import Problem, Severity

__all__ = ["draft_tasks"]

_STAGE: Final = "draft"
_SILENT: Final = SilentReporter()
_NOTHING: Final[Mapping[int, Ground]] = {}


def draft_tasks(
    document: Document, *, max_tasks: int | None = None, reporter: Reporter = _SILENT,
    held: Mapping[int, Ground] = _NOTHING,
) -> DraftResult:  # fmt: skip
    """Turn the tables of a paper into draft tasks, deterministically.

    Args:
        document: the structured reading of a PDF.
        max_tasks: keep only the best ones; None keeps all.
        reporter: is told about each table.
        held: index of a table -> which of its numbers a committed file holds, where one does.

    Returns:
        Drafts ordered by confidence, then by their place in the paper. No drafts is a possible answer; then `problems`
        says what was looked at and why it gave none.
    """
    reporter.start(_STAGE, len(document.tables))
    problems = []
    taken = []
    for index, table in enumerate(document.tables):
        reporter.step(_STAGE, table.label)
        why = "" if index in held else why_no_results(table)
        if why:
            problems.append(_problem(f"{table.label} (page {table.page})", f"no task: {why}"))
        else:
            taken.append(held.get(index) or stated(document, index))
    made = draft_tables(document, taken).result
    problems += made.problems
    drafts = sorted(made.drafts, key=lambda draft: -draft.confidence)
    for draft in drafts[max_tasks:] if max_tasks is not None else ():
        problems.append(_problem(draft.slug, f"left out: only the best {max_tasks} were asked for"))
    kept = tuple(drafts[:max_tasks])
    if not kept:
        message = "no result of this paper could be made a task"
        problems.append(_problem(document.title or "paper", message, Severity.WARNING))
    reporter.end(_STAGE, f"{len(kept)} drafts")
    return DraftResult(drafts=kept, problems=tuple(problems))


def _problem(where: str, message: str, severity: Severity = Severity.INFO) -> Problem:
    return Problem(component=_STAGE, where=where, message=message, severity=severity)
