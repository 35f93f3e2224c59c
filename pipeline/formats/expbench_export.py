"""Tasks of a workspace or a release in EXP-Bench's published layout, so that its harness can read what we write.

What EXP-Bench's form has no field for (claims with bands, evidence, hyper-parameters) stays behind; `problems` counts
it. Data that was imported is written back with `pipeline.formats.expbench.write_published` instead: record by record
as it was published.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from pydantic import JsonValue

from pipeline.formats.expbench import PublishedDataset, PublishedPaper, PublishedTask, task_to_record
from pipeline.paper import Paper
from pipeline.schema import Problem, Severity
from pipeline.task import Task

__all__ = ["as_published"]

_COMPONENT: Final = "formats.expbench-export"
_CONFERENCE: Final = "expbench"
"""Folder of papers whose venue or year is not known."""
_LEFT: Final = ("equivalents", "hyperparameters", "data_needs", "follow_ups")


def as_published(tasks: Sequence[Task], conference: str | None = None) -> PublishedDataset:
    """Tasks in the form of published data: a file a paper, a row a paper, records without an original.

    Args:
        tasks: of the `experiment` family.
        conference: folder for all of them; None: venue and year of the paper (`iclr2024`).
    """
    papers: dict[str, PublishedPaper] = {}
    published: list[PublishedTask] = []
    problems: list[Problem] = []
    for task in sorted(tasks, key=lambda item: item.id):
        if task.paper.id not in papers:
            papers[task.paper.id] = _paper(task, conference or _folder(task.paper))
        index = sum(item.task.paper.id == task.paper.id for item in published)
        published.append(PublishedTask(task=task, index=index, original=task_to_record(task)))
        left = [name for name in _LEFT if getattr(task.truth, name)]
        if task.truth.expected.claims:
            left.append("claims and their bands")
        if left:
            message = f"EXP-Bench's form has no place for: {', '.join(left)}"
            problems.append(Problem(component=_COMPONENT, where=task.id, message=message, severity=Severity.INFO))
    return PublishedDataset(
        papers=tuple(papers[name] for name in sorted(papers)), tasks=tuple(published), problems=tuple(problems)
    )


def _folder(paper: Paper) -> str:
    venue = re.sub(r"[^a-z]", "", (paper.venue or "").lower())
    return f"{venue}{paper.year}" if venue and paper.year else _CONFERENCE


def _paper(task: Task, folder: str) -> PublishedPaper:
    paper = task.paper
    number = paper.id.removeprefix(f"{folder}-")
    row: dict[str, JsonValue] = {
        "id": number, "url": paper.url or "", "title": paper.title, "authors": [], "abstract": "", "pdf_url": "",
        "supplementary_url": "", "code_url": task.repository.url, "bibtex": "", "keywords": [],
    }  # fmt: skip
    return PublishedPaper(paper=paper, file=f"{folder}/{number}/{number}_complete_final.json", row=row)
