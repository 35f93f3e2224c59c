"""Our green agent: given the URL of a white agent, it has tasks carried out there and grades them (PRBench B.2, B.3).

The truth never leaves this side. It is opened when the white agent's task has ended and its files lie here; the reports
(`eval_report.json`) are the task's artifacts. How an evaluation is run is handed in by the caller.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pydantic import JsonValue

from evaluation.a2a.executor import Outbox, WorkExecutor
from evaluation.a2a.messages import GreenRequest, bytes_part, read_green_request
from pipeline.sandbox.base import StopHandle
from pipeline.schema import Record

if TYPE_CHECKING:
    from a2a.types import Message, Part, Task

__all__ = ["REPORT", "SUMMARY", "GreenExecutor", "GreenOutcome", "outcome_of"]

SUMMARY = "summary.json"
REPORT = "eval_report.json"


class GreenOutcome(Record):
    """What an evaluation came to."""

    summary: dict[str, JsonValue]
    """What `expbench evaluate --json` prints."""
    reports: dict[str, JsonValue]
    """`<task>/<repeat>` -> its `eval_report.json`."""


Evaluate = Callable[[GreenRequest, str, Callable[[str], object], StopHandle], GreenOutcome]
"""(request, id of the A2A task, progress, stop) -> outcome."""


class GreenExecutor(WorkExecutor):
    """Evaluates the white agent that it is told of.

    Args:
        evaluate: runs one evaluation.
        at_once: evaluations at the same time.
    """

    def __init__(self, evaluate: Evaluate, *, at_once: int = 1) -> None:
        super().__init__(at_once)
        self._evaluate = evaluate

    def work(
        self, message: Message, task_id: str, tell: Callable[[str], object], stop: StopHandle
    ) -> tuple[str, Outbox]:
        """See `WorkExecutor.work`."""
        request = read_green_request(message)
        outcome = self._evaluate(request, task_id, tell, stop)
        outbox: Outbox = [(SUMMARY, _json_part(SUMMARY, outcome.summary))]
        outbox += [
            (f"{name}/{REPORT}", _json_part(f"{name}/{REPORT}", r)) for name, r in sorted(outcome.reports.items())
        ]
        return f"{outcome.summary.get('scored')} of {outcome.summary.get('episodes')} episode(s) have scores", outbox


def outcome_of(answer: Task) -> GreenOutcome | None:
    """What a green agent's task holds; None where it did not complete."""
    summary: dict[str, JsonValue] | None = None
    reports: dict[str, JsonValue] = {}
    for part in _parts(answer):
        if part.filename == SUMMARY:
            summary = json.loads(part.raw)
        elif part.filename.endswith(f"/{REPORT}"):
            reports[part.filename.removesuffix(f"/{REPORT}")] = json.loads(part.raw)
    return None if summary is None else GreenOutcome(summary=summary, reports=reports)


def _parts(answer: Task) -> Sequence[Part]:
    return [part for artifact in answer.artifacts for part in artifact.parts]


def _json_part(name: str, value: JsonValue) -> Part:
    return bytes_part(name, json.dumps(value, ensure_ascii=False).encode(), "application/json")
