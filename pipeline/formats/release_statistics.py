"""Statistics of a release for its card: tables and bar charts, counted over public halves and sizes of ground truth."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Sequence

from pipeline.formats.family_parts import FamilyPart, FamilyShape
from pipeline.formats.release_plots import bar_chart
from pipeline.task import PublicTask, Task

__all__ = ["cell", "experiment_rows", "family_statistics", "plots", "statistics_table", "table"]


def plots(
    tasks: Sequence[Task], parts: Sequence[FamilyPart] = (), shapes: Sequence[FamilyShape] = ()
) -> dict[str, bytes]:
    """Pictures of the card by their path in the release; none of a count that would be one bar."""
    everything = [*tasks, *(part.public for part in parts)]
    papers = Counter(task.paper.id for task in everything)
    domains = Counter(f"{task.paper.venue or 'venue unknown'} {task.paper.year or ''}".strip() for task in everything)
    found = {
        "images/tasks-by-paper.png": bar_chart("Tasks by paper", _counted(papers)),
        "images/tasks-by-venue.png": bar_chart("Tasks by venue", _counted(domains)),
    }
    if tasks:
        steps = [(task.id, float(len(task.truth.requirements))) for task in tasks]
        found["images/requirements-by-task.png"] = bar_chart("Implementation requirements by task", _largest(steps))
    families = Counter(task.family.value for task in everything)
    if len(families) > 1:
        found["images/tasks-by-family.png"] = bar_chart("Tasks by family", _counted(families))
    for shape in shapes:
        title, figure = shape.chart
        own = [(part.id, part.figures[figure]) for part in parts if part.public.family is shape.family]
        numbers = [(name, float(value)) for name, value in own if isinstance(value, int)]
        bars = _largest(numbers) if numbers else _counted(Counter(str(value) for _, value in own))
        found[f"images/{shape.family.value}.png"] = bar_chart(title, bars)
    return found


def _largest(bars: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    return sorted(bars, key=lambda item: (-item[1], item[0]))


def _counted(counts: Counter[str]) -> list[tuple[str, float]]:
    return [(name, float(count)) for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]


def statistics_table(tasks: Sequence[PublicTask]) -> list[str]:
    """The table over all tasks."""
    return table([
        ("tasks", str(len(tasks))),
        ("papers", str(len({task.paper.id for task in tasks}))),
        ("families", _named(Counter(task.family.value for task in tasks))),
        ("tasks that need a GPU", str(sum(task.resources.gpus > 0 for task in tasks))),
        ("minutes per task", _spread([task.resources.wall_time_s // 60 for task in tasks])),
        ("Python", _named(Counter(task.environment.python or "not stated" for task in tasks))),
    ])  # fmt: skip


def experiment_rows(tasks: Sequence[Task]) -> list[tuple[str, str]]:
    """(name, value) of what experiments alone have."""
    return [
        ("repositories", str(len({(task.repository.url, task.repository.commit) for task in tasks}))),
        ("requirements per task", _spread([len(task.truth.requirements) for task in tasks])),
        ("numbers in the expected outcome per task", _spread([len(task.truth.expected.claims) for task in tasks])),
        ("design variables per task", _spread([
            len(task.truth.constant) + len(task.truth.independent) + len(task.truth.dependent) for task in tasks
        ])),
        ("masked files per task", _spread([len(task.masked) for task in tasks])),
    ]  # fmt: skip


def family_statistics(shape: FamilyShape, parts: Sequence[FamilyPart]) -> list[str]:
    """Numbers are spread over the tasks of the family, words are counted."""
    own = [part for part in parts if part.public.family is shape.family]
    rows = [("tasks", str(len(own)))]
    for name in own[0].figures if own else ():
        values = [part.figures[name] for part in own]
        numbers = [value for value in values if isinstance(value, int)]
        rows.append((name, _spread(numbers) if numbers else _named(Counter(cell(str(value)) for value in values))))
    kept = sum(bool(part.withheld) for part in own)
    if kept:
        rows.append(("tasks without their paper's files (licence)", str(kept)))
    return [f"### {shape.family.value}: {shape.title}", "", *table(rows), ""]


def table(rows: Sequence[tuple[str, str]]) -> list[str]:
    """A table of two columns in Markdown."""
    return ["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)]


def _spread(values: Sequence[int]) -> str:
    if not values:
        return "none"
    return f"{min(values)} to {max(values)} (median {statistics.median(values):g}, sum {sum(values)})"


def _named(counts: Counter[str]) -> str:
    return ", ".join(f"{name} ({count})" for name, count in sorted(counts.items()))


def cell(text: str) -> str:
    """One cell of a table: what papers and people wrote is text there, neither markup nor a link."""
    return re.sub(r"([|\[\]<>`])", r"\\\1", " ".join(text.split()))
