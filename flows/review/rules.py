"""Approval without a person, by an explicit rule only, which is recorded word for word in each task."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from typing import Final

from flows.review.decisions import Answer, decide
from flows.review.queue import queue_of
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.schema import Record
from pipeline.store import Workspace
from pipeline.task import Status

__all__ = ["MEASURES", "Rule", "approve_by_rule", "parse_rule"]

MEASURES: Final = (
    "confidence", "claims", "leak_hits", "leak_score", "repeats", "flakiness", "reproduced", "problems", "risk",
)  # fmt: skip
"""What a rule can ask about."""

_OPERATORS: Final[dict[str, Callable[[float, float], bool]]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "=": operator.eq,
}
_CONDITION: Final = re.compile(r"\s*([a-z_]+)\s*(>=|<=|>|<|=)\s*([0-9]+(?:\.[0-9]+)?)\s*")


class Rule(Record):
    """All conditions must hold. A measure that is not known of a task fulfils no condition."""

    conditions: tuple[tuple[str, str, float], ...]

    def __str__(self) -> str:
        """The rule as it is recorded."""
        return ", ".join(f"{name}{relation}{value:g}" for name, relation, value in self.conditions)

    def holds(self, measures: dict[str, float]) -> bool:
        """Does it hold for a task with these measures?"""
        return all(
            name in measures and _OPERATORS[relation](measures[name], value)
            for name, relation, value in self.conditions
        )


def parse_rule(text: str) -> Rule:
    """Read e.g. `confidence>=0.9, flakiness=0, leak_hits=0`.

    Raises:
        ExpbenchError: `USAGE` for anything else; an empty rule would approve everything and is refused too.
    """
    conditions = []
    for part in text.split(","):
        match = _CONDITION.fullmatch(part)
        if match is None or match[1] not in MEASURES or not math.isfinite(float(match[3])):
            raise ExpbenchError(
                FailureKind.USAGE,
                "approval rule",
                f"{part.strip()!r} is not a condition",
                consequence="Nothing was approved",
                next_step=f"Write MEASURE RELATION NUMBER, separated by commas; measures: {', '.join(MEASURES)}; "
                f"relations: {' '.join(_OPERATORS)}",
            )
        conditions.append((match[1], match[2], float(match[3])))
    return Rule(conditions=tuple(conditions))


def approve_by_rule(workspace: Workspace, rule: Rule) -> tuple[list[str], list[str]]:
    """Approve every waiting task for which the rule holds; recorded as made by the rule, not by a person.

    Returns:
        (ids to which it applied, ids that still wait for a person).

    Raises:
        ExpbenchError: `WORKSPACE_LOCKED`.
    """
    applied, waiting = [], []
    for entry in queue_of(workspace):
        # that nothing was found is for a person to accept, and an empty method for one to write: never for a rule
        candidate = entry.status is Status.MASKED and workspace.load_task(entry.task).method.strip()
        if candidate and rule.holds({**entry.measures, "risk": entry.risk}) and not entry.votes:
            comment = "approved without a person's review"
            answer = Answer(decision="approve", reviewer=f"rule: {rule}", comment=comment, shown=entry.content)
            decide(workspace, entry.task, answer)
            applied.append(entry.task)
        else:
            waiting.append(entry.task)
    return applied, waiting
