"""What the oracle does on the bench: the fewest calls that earn full correctness and rigor."""

from __future__ import annotations

from typing import Any

from evaluation.families.causal.engines import ENGINES
from evaluation.families.causal.task import CausalTask

__all__ = ["oracle_calls"]

Call = tuple[str, dict[str, Any]]


def oracle_calls(task: CausalTask) -> list[Call]:
    """(tool, arguments) in order; the last one submits the truth."""
    hidden, engine = task.hidden, ENGINES[task.simulation]
    names = [name for name, _ in hidden.drivers]
    tests = {name: engine.parameter(name).test_value for name in names}
    calls: list[Call] = [("experiment", {"configB": {name: tests[name]}}) for name in names]
    answer: dict[str, Any] = {"params": names}
    if task.tier in {"L1", "L2"}:
        answer |= {"direction": hidden.direction} | ({"magnitude": hidden.magnitude} if task.tier == "L2" else {})
    elif task.tier == "L3":
        calls.append(("experiment", {"configB": tests}))
        answer["interaction"] = hidden.interaction
    elif task.tier == "L1V":
        calls.insert(0, ("probe", {}))
        answer["effects"] = hidden.signature
    elif task.tier == "L1B":
        metric = next(name for name, effect in sorted((hidden.signature or {}).items()) if effect != "none")
        calls = [("experiment", {"configB": tests, "metric": metric})]
        answer |= {"metric": metric, "direction": (hidden.signature or {})[metric]}
    else:
        assert task.sweep is not None
        name, boundary = hidden.drivers[0]
        step = (task.sweep[1] - task.sweep[0]) / 8
        calls = [("experiment", {"configA": {name: boundary - step}, "configB": {name: boundary + step}})]
        answer["estimate"] = boundary
    return [*calls, ("submit", answer)]
