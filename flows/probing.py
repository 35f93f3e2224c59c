"""`expbench probe`: does a model know the outcomes of tasks without their repositories (EXP-Bench 4.2)?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evaluation.closed_book import ClosedBookProbe, probe_closed_book
from evaluation.sources import load_tasks
from flows.engines import ModelOptions, fails_here
from flows.evaluation_checks import matching
from flows.grading_model import recorded_model
from pipeline.llm import ModelClient, ModelError
from pipeline.progress import Reporter
from pipeline.schema import StoredRecord
from pipeline.scratch import scratch_directory

if TYPE_CHECKING:
    from evaluation.task import EvaluationTask

__all__ = ["ProbeReport", "probe"]

_STAGE: Final = "probe"


class ProbeReport(StoredRecord):
    """What a model states of outcomes that it was not shown."""

    model: str
    probes: tuple[ClosedBookProbe, ...]
    unknown: tuple[tuple[str, str], ...] = ()
    """(task, why there is no answer)."""
    hits: float | None = None
    """Mean share of the expected numbers that were stated within their bands; None: no task has such numbers."""
    chance: float | None = None
    """The same when answers are held against other claims of their metric."""
    remembered: int = 0
    """Tasks that the model says it remembers."""


def probe(
    source: Path,
    *,
    patterns: Sequence[str] = (),
    model: str | None = None,
    record: Path | None = None,
    limits: ModelOptions | None = None,
    reporter: Reporter,
) -> ProbeReport:
    """Ask a model for the outcome of each task of a source.

    Args:
        source: see `evaluation.sources.load_tasks`; repositories are not needed.
        patterns: glob patterns of task ids; empty: all.
        model: its name; None: `EXPBENCH_MODEL`.
        record: directory for exchanges and ledger, so that a second call pays for nothing again.
        limits: what it may cost (with `record`: what earlier calls cost counts), and how recorded answers are used.
        reporter: progress.

    Raises:
        ExpbenchError: `USAGE`, no task matches; `ENGINE_UNAVAILABLE`, no model is configured; what the model layer
            raises when no question at all can be answered (key, budget).
    """
    with scratch_directory() as scratch:
        tasks, _ = load_tasks(source, scratch=Path(scratch), reporter=reporter, build=False)
    chosen = matching(tasks, patterns, source, "Nothing was asked")
    options = (limits or ModelOptions()).evolve(name=model)
    with recorded_model(options, record, "probe") as client:
        return _ask(chosen, client, client.config.model, reporter)


def _ask(tasks: Sequence[EvaluationTask], client: ModelClient, model: str, reporter: Reporter) -> ProbeReport:
    probes: list[ClosedBookProbe] = []
    unknown: list[tuple[str, str]] = []
    reporter.start(_STAGE, len(tasks))
    for task in tasks:
        try:
            probes.append(probe_closed_book(task, client))
            reporter.step(_STAGE, task.id)
        except ModelError as error:
            if not fails_here(error):
                raise
            unknown.append((task.id, error.cause))
            reporter.step(_STAGE, f"{task.id}: no answer ({error.cause})")
    reporter.end(_STAGE, f"{len(probes)} answer(s)")
    return ProbeReport(
        model=model,
        probes=tuple(probes),
        unknown=tuple(unknown),
        hits=_mean([item.hits for item in probes]),
        chance=_mean([item.chance for item in probes]),
        remembered=sum(item.remembered for item in probes),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    found = [value for value in values if value is not None]
    return math.fsum(found) / len(found) if found else None
