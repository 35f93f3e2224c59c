"""`expbench estimate`: what reading papers with a model would take, before anything is spent.

Calls no model and needs no key. The calls are those of the paper's passes (EXP-Bench 3.2): takeaways over the whole
paper, a reading per subsection, the visual regions, a refinement per task, and a location of all tasks together. Their
number and length come from the document itself; what only a run can tell (how long answers are, how many turns the
locator's reader takes) is assumed as written beside each line, or taken from the ledgers of earlier runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from extractors.isolated import read_isolated
from pipeline.llm.config import ModelConfig, model_config_from_environment
from pipeline.llm.counting import typical_text_tokens
from pipeline.llm.forecast import Forecast, PlannedCalls, forecast
from pipeline.llm.ledger import CallLedger, CallRecord
from pipeline.llm.prices import load_prices
from pipeline.paper import Document, SectionKind
from pipeline.progress import Details, Reporter
from pipeline.schema import Record

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["Estimate", "PaperSize", "estimate", "forecast_table", "planned_calls", "to_table"]

# Instructions and schema of one prompt; an assumption, like the answers' lengths below, until ledgers are given.
_PROMPT = 1200
# EXP-Bench reports 461 tasks from 51 papers: nine tasks a paper. Short ones have fewer results to make tasks of: nine
# were assumed of three pages with one table, which forecast 158 calls where 19 were made.
_TASKS_PER_PAPER = 9
# Assumed: three turns for up to eight tasks together, each of which sends the map and the tasks again, and in the mean
# half of what is read for them.
_LOCATOR_TURNS, _LOCATOR_TOGETHER, _LOCATOR_MAP, _LOCATOR_TASK = 3, 8, 8000, 1200
_TAKEAWAY_QUERIES = 6
# Seen on the worked example: four windows (scripts of some 40 lines, one log) and three calls for 20 steps a task.
_VALIDATION_CALLS, _VALIDATION_WINDOW = 7, 1000


class PaperSize(Record):
    """What of a paper decides how much there is to read."""

    path: Path
    pages: int
    tokens: int
    """Expected, of the whole text."""
    subsections: int
    tables: int
    figures: int


class Estimate(Record):
    """What `expbench estimate` prints."""

    papers: tuple[PaperSize, ...]
    tasks: int
    tasks_assumed: bool
    forecast: Forecast


def estimate(
    pdfs: Sequence[Path],
    *,
    reporter: Reporter,
    model: str | None = None,
    tasks_per_paper: int | None = None,
    most_tasks: int | None = None,
    ledgers: Sequence[Path] = (),
    config: ModelConfig | None = None,
) -> Estimate:
    """Forecast what curating papers with a model would take.

    Args:
        pdfs: the papers; each is read without a model (this takes seconds per paper).
        model: its name; None: `EXPBENCH_MODEL`.
        tasks_per_paper: None: as many as the published EXP-Bench has per paper, but no more than tables and figures.
        most_tasks: what a run would make of a paper at most; None: no bound.
        ledgers: `model_calls.jsonl` files of earlier runs.

    Raises:
        ExpbenchError: no model is named, a PDF cannot be read, or the price file is invalid.
    """
    config = config or model_config_from_environment(model)
    prices = load_prices()
    sizes, planned, tasks = [], [], 0
    for pdf in pdfs:
        document = read_isolated(pdf, reporter=Details(reporter, "extract"))
        sizes.append(measure(pdf, document))
        expected = tasks_per_paper or max(1, min(_TASKS_PER_PAPER, sizes[-1].tables + sizes[-1].figures))
        expected = min(expected, most_tasks or expected)
        tasks += expected
        planned += planned_calls(sizes[-1], expected)
    measured: list[CallRecord] = [record for path in ledgers for record in CallLedger(path).records()]
    return Estimate(
        papers=tuple(sizes),
        tasks=tasks,
        tasks_assumed=tasks_per_paper is None,
        forecast=forecast(config, prices, _merged(planned), measured),
    )


def measure(pdf: Path, document: Document) -> PaperSize:
    """The size of a paper; what readers do not read (references) is not counted."""
    read = [
        passage
        for passage in document.passages
        if (section := document.section_of(passage)) is None or section.kind is not SectionKind.REFERENCES
    ]
    cells = "\n".join(" ".join(row) for table in document.tables for row in table.grid)
    captions = "\n".join(caption.text for caption in document.captions)
    with_text = {passage.section for passage in read if passage.section is not None}
    return PaperSize(
        path=pdf,
        pages=len(document.pages),
        tokens=typical_text_tokens("\n".join([*(passage.text for passage in read), captions, cells])),
        subsections=max(1, len(with_text)),
        tables=len(document.tables),
        figures=len(document.figures),
    )


def planned_calls(size: PaperSize, tasks: int) -> list[PlannedCalls]:
    """The calls for one paper."""
    section = size.tokens // size.subsections
    whole = size.tokens
    together = -(-tasks // _LOCATOR_TOGETHER)
    located = _PROMPT + _LOCATOR_MAP + _LOCATOR_TASK * min(tasks, _LOCATOR_TOGETHER)
    return [
        PlannedCalls(
            stage="takeaways",
            what=f"{_TAKEAWAY_QUERIES} queries, each over a third of the paper (what retrieval returns)",
            calls=_TAKEAWAY_QUERIES,
            input_tokens=_PROMPT + whole // 3,
            output_tokens=600,
        ),
        PlannedCalls(
            stage="vision",
            what="one call per table and figure, with its picture and caption",
            calls=size.tables + size.figures,
            input_tokens=_PROMPT + 200,
            images=1,
            output_tokens=500,
        ),
        PlannedCalls(
            stage="subsections",
            what="one call per subsection, with the context so far (a fifth of the paper) and its floats",
            calls=size.subsections,
            input_tokens=_PROMPT + section + whole // 5,
            output_tokens=700,
        ),
        PlannedCalls(
            stage="refine",
            what="one call per task over the whole paper, appendices included",
            calls=tasks,
            input_tokens=_PROMPT + whole + 800,
            output_tokens=900,
        ),
        PlannedCalls(
            stage="locate",
            what=f"{_LOCATOR_TURNS} turns for up to {_LOCATOR_TOGETHER} tasks together, over the map of the repository",
            calls=_LOCATOR_TURNS * together,
            input_tokens=located,
            output_tokens=150 * min(tasks, _LOCATOR_TOGETHER),
            structured=False,
        ),
        PlannedCalls(
            stage="validate",
            what=f"{_VALIDATION_CALLS} calls per task: scripts and logs looked at in windows, steps put into words",
            calls=_VALIDATION_CALLS * tasks,
            input_tokens=_PROMPT + _VALIDATION_WINDOW,
            output_tokens=300,
        ),
    ]


def _merged(planned: Sequence[PlannedCalls]) -> list[PlannedCalls]:
    """One line per kind of call, its lengths the means over all papers (rounded up)."""
    lines: list[PlannedCalls] = []
    for stage in dict.fromkeys(plan.stage for plan in planned):
        same = [plan for plan in planned if plan.stage == stage]
        calls = sum(plan.calls for plan in same)
        total = sum(plan.calls * plan.input_tokens for plan in same)
        lines.append(same[0].evolve(calls=calls, input_tokens=-(-total // calls) if calls else 0))
    return lines


def to_table(estimated: Estimate) -> Table:
    """The estimate as a table for the terminal."""
    count = f"{len(estimated.papers)} paper(s), {estimated.tasks} tasks" + (
        " (assumed)" if estimated.tasks_assumed else ""
    )
    return forecast_table(estimated.forecast, f"{estimated.forecast.model}: {count}")


def forecast_table(found: Forecast, title: str) -> Table:
    """A forecast as a table for the terminal."""
    from rich.table import Table

    table = Table(title=title, caption=_caption(found), title_justify="left", caption_justify="left")
    for name in ("stage", "calls", "input tokens", "output tokens", "expected $", "at worst $", "basis"):
        table.add_column(name, justify="left" if name in {"stage", "basis"} else "right", no_wrap=name == "stage")
    for step in found.steps:
        table.add_row(
            step.stage,
            str(step.calls),
            f"{step.input_tokens:,}",
            f"{step.output_tokens:,}",
            _dollars(step.usd),
            _dollars(step.worst_usd),
            step.basis,
        )
    table.add_section()
    totals = (str(found.calls), f"{found.input_tokens:,}", f"{found.output_tokens:,}")
    table.add_row("all", *totals, _dollars(found.usd), _dollars(found.worst_usd), "")
    return table


def _dollars(amount: Decimal | None) -> str:
    return "unknown" if amount is None else f"{amount:.2f}"


def _caption(found: Forecast) -> str:
    """What the figures rest on, below the table: a column of it would leave no room for them in 80 columns."""
    assumed = [f"{step.stage}: {step.what}" for step in found.steps if step.basis == "assumed"]
    price = (
        f"prices as of {found.prices_as_of}; a budget, not this estimate, is what stops a run"
        if found.price_known
        else "the price of this model is unknown: add it to a price file of your own (EXPBENCH_PRICES)"
    )
    return "\n".join([*(["assumed"] if assumed else []), *(f"  {line}" for line in assumed), price])
