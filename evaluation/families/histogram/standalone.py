"""`expbench histogram-tables` and `expbench read-paper`: what the commands do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evaluation.families.histogram.catalogue import read_catalogue
from evaluation.families.histogram.front import front_svg
from evaluation.families.histogram.overlay import overlay_svg
from evaluation.families.histogram.paper_reader import PaperReader
from evaluation.families.histogram.tables import HistogramTables, best_of_runs, histogram_tables, read_rows
from evaluation.families.histogram.task import HistogramTask
from evaluation.harness.run import read_run
from pipeline.progress import Reporter
from pipeline.schema import Problem, Record
from pipeline.store import write_if_changed

__all__ = ["PaperReading", "WrittenFigure", "read_paper", "tables_of_runs"]


class WrittenFigure(Record):
    """A figure that was written."""

    path: Path
    page: int
    caption: str


class PaperReading(Record):
    """What was read of a paper."""

    paper: str
    pages: int
    text: str
    figures: tuple[WrittenFigure, ...] = ()
    problems: tuple[Problem, ...] = ()


def read_paper(pdf: Path, pages: str, figures: Path | None, reporter: Reporter) -> PaperReading:
    """Text of some pages; with `figures` their figures as PNG in that directory instead.

    Raises:
        ExpbenchError: the file cannot be read; `USAGE`: it has no such pages.
    """
    reader = PaperReader(pdf, reporter)
    written = []
    if figures is not None:
        images = reader.figures(pages)
        figures.mkdir(parents=True, exist_ok=True)
        for image in images:
            path = figures / image.name
            path.write_bytes(image.png)
            written.append(WrittenFigure(path=path, page=image.page, caption=image.caption))
    return PaperReading(
        paper=pdf.name,
        pages=len(reader.document.pages),
        text=reader.text(pages) if figures is None else "",
        figures=tuple(written),
        problems=reader.document.problems,
    )


def tables_of_runs(runs: Sequence[Path], *, tau: float, plots: Path | None) -> tuple[HistogramTables, list[Path]]:
    """The tables of some runs; where a directory is given, one overlay a task and the cost-accuracy front as SVG.

    Raises:
        ExpbenchError: `RECORD_INVALID`: one is no run, or none holds an episode of the family.
    """
    rows = read_rows(runs)
    tables = histogram_tables(rows, tau=tau)
    drawn: list[Path] = []
    if plots is not None:
        known: dict[str, HistogramTask] = {}
        for root in runs:
            entries, _ = read_catalogue(Path(read_run(root).source))
            known |= {entry.task.id: entry.task for entry in entries}
        plots.mkdir(parents=True, exist_ok=True)
        for task in sorted({row.scores.task for row in rows}):
            series = best_of_runs(rows, task)
            if task in known and series:
                path = plots / f"{task}.svg"
                write_if_changed(path, overlay_svg(known[task], series))
                drawn.append(path)
        drawn.append(plots / "front.svg")
        write_if_changed(drawn[-1], front_svg(tables.agents, tau))
    return tables, drawn
