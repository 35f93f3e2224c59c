"""`expbench estimate`: what reading papers with a model would take, before anything is spent.

Calls no model and needs no key. All calls about a paper begin with the paper, the repository's map and what was run;
one lists the experiments, a few write each task (`extractors.engine.run`), a few look at its run. The paper's length
comes from the document itself; what only a run can tell (how long answers are, how much code is read) is assumed as
written beside each line, or taken from the ledgers of earlier runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from extractors.drafting import why_no_results
from extractors.engine.listing import Listing
from extractors.engine.pictures import doubtful_tables
from extractors.isolated import read_isolated
from pipeline.llm.config import ModelConfig, model_config_from_environment
from pipeline.llm.counting import typical_text_tokens
from pipeline.llm.forecast import Forecast, PlannedCalls, forecast
from pipeline.llm.ledger import CallLedger, CallRecord
from pipeline.llm.prices import load_prices
from pipeline.paper import Document
from pipeline.progress import Details, Reporter
from pipeline.reader.map import MAP_CHARACTERS
from pipeline.schema import Record

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["Estimate", "PaperSize", "estimate", "forecast_table", "planned_calls", "to_table"]

# Instructions, tools and schema of one prompt; an assumption, like the answers' lengths below, until ledgers are given.
_PROMPT = 3500
# The map of a repository fills its room unless the repository is tiny; what was run takes some lines a command.
_MAP = MAP_CHARACTERS // 4 + 1500
# EXP-Bench reports 461 tasks from 51 papers: nine tasks a paper. Short ones have fewer results to make tasks of: nine
# were assumed of three pages with one table, which forecast 158 calls where 19 were made.
_TASKS_PER_PAPER = 9
# Assumed: two turns of reading, an answer, and every other time one that mends it; 12,000 tokens of files are read.
_TURNS, _READ = 4, 12_000
# Seen on the worked example: four windows a task (scripts of some 40 lines, one log).
_VALIDATION_CALLS, _VALIDATION_WINDOW = 4, 2200


class PaperSize(Record):
    """What of a paper decides how much there is to read."""

    path: Path
    pages: int
    tokens: int
    """Expected, of all that is shown of it."""
    tables: int
    """Those that report results, by the form of their numbers."""
    pictures: int
    """Tables that are shown as pictures too."""


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
        tasks_per_paper: None: as many as the published EXP-Bench has per paper, but no more than it has
            tables of results.
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
        expected = tasks_per_paper or max(1, min(_TASKS_PER_PAPER, sizes[-1].tables))
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
    """The size of a paper as the reader sees it: without references, with ids."""
    return PaperSize(
        path=pdf,
        pages=len(document.pages),
        tokens=typical_text_tokens(Listing(document).shown()),
        tables=sum(not why_no_results(table) for table in document.tables),
        pictures=len(doubtful_tables(document)),
    )


def planned_calls(size: PaperSize, tasks: int) -> list[PlannedCalls]:
    """The calls for one paper."""
    beginning = _PROMPT + _MAP + size.tokens
    return [
        PlannedCalls(
            stage="experiments",
            what="one call, over the whole paper, the repository's map and what was run",
            calls=1,
            input_tokens=beginning,
            images=size.pictures,
            output_tokens=1200,
        ),
        PlannedCalls(
            stage="tasks",
            what=f"{_TURNS} calls per task, each with all of that and what was read so far, in the end {_READ} tokens",
            calls=_TURNS * tasks,
            input_tokens=beginning + 2 * _READ // 3,
            images=size.pictures,
            output_tokens=1300,
            structured=False,
        ),
        PlannedCalls(
            stage="validate",
            what=f"{_VALIDATION_CALLS} calls per task: scripts and logs looked at in windows",
            calls=_VALIDATION_CALLS * tasks,
            input_tokens=_VALIDATION_WINDOW,
            output_tokens=300,
        ),
    ]


def _merged(planned: Sequence[PlannedCalls]) -> list[PlannedCalls]:
    """One line per kind of call, its lengths the means over all papers (rounded up)."""
    lines: list[PlannedCalls] = []
    for stage in dict.fromkeys(plan.stage for plan in planned):
        same = [plan for plan in planned if plan.stage == stage]
        calls = sum(plan.calls for plan in same)
        tokens = sum(plan.calls * plan.input_tokens for plan in same)
        images = sum(plan.calls * plan.images for plan in same)
        mean = {"input_tokens": -(-tokens // calls), "images": -(-images // calls)} if calls else {}
        lines.append(same[0].evolve(calls=calls, **mean))
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
