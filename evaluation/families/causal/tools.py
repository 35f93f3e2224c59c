"""The bench as four tools: their descriptions, the task brief, and the dispatch of calls (petri-bench, appendix A).

The texts are those of the paper's appendix, so that results of different transports can be compared. Used by the model
solver and by the MCP server.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from evaluation.families.causal.bench import Bench, BenchError
from evaluation.families.causal.engines import ENGINES
from evaluation.families.causal.task import CausalTask, Direction, Effect, Magnitude

__all__ = ["SYSTEM_PROMPT", "TOOLS", "brief", "call_tool", "system_prompt", "tools_for"]

SYSTEM_PROMPT: Final = (
    "You are a careful experimental scientist solving a hidden-parameter mystery. Exactly one (or, at L3, two) of the "
    "candidate parameters was changed from a revealed control to make a hidden treatment world. Use the tools to run "
    "controlled experiments — change ONE parameter at a time and read the Holm-adjusted p-value and effect size — and "
    "reach an evidence-backed answer. Only conclude an effect when a result is significant. You have a limited budget "
    "of experiments; do not waste calls. When confident, call submit."
)
_BOUNDARY_PROMPT: Final = (
    "You are a careful experimental scientist locating a phase boundary. Use the tools to run controlled experiments — "
    "vary ONLY the swept parameter and read means, the Holm-adjusted p-value and effect size — and reach an "
    "evidence-backed answer. You have a limited budget of experiments; do not waste calls. When confident, call submit."
)
_GOALS: Final = {
    "L1": "ONE parameter was changed. Identify which, and whether it pushes the target metric UP or DOWN.",
    "L2": "ONE parameter was changed. Identify which, whether it pushes the target metric UP or DOWN, and the "
    "MAGNITUDE of the change by relative change |deltaPct|: small 10-35%, medium 35-75%, large >=75%.",
    "L3": "TWO parameters were changed together. Identify BOTH and the SIGN of their interaction (positive if the "
    "combined effect exceeds the sum of the individual effects, else negative).",
    "L1V": "ONE parameter was changed. Several candidates move the target metric; identify the changed one by its "
    "signature over ALL metrics, and say for each metric whether the change pushes it up, down or not at all (none). "
    "Every experiment and probe answers for all metrics at once.",
    "L1B": "ONE parameter was changed. The metric that it moves is NOT revealed, so every experiment and probe names a "
    "metric. Identify which parameter was changed, name ONE metric that the change really moves, and whether it pushes "
    "that metric UP or DOWN.",
    "L4": "Nothing is hidden in a second world here. Between the two ends of the range the target metric passes from "
    "one phase to another. Locate the BOUNDARY: the value of the swept parameter at which the metric's mean is half-"
    "way between its means at the two ends of the range (everything else at control). Compare values of the swept "
    "parameter with each other, and back your estimate with a significant experiment whose two values lie on both "
    "sides of it, at most a quarter of the range apart.",
}
_SUMMARY: Final = "Run experiments (change ONE parameter vs the control), then submit."
_OVERRIDES: Final = "parameter overrides on the control (omit a param to leave it at control)"


def system_prompt(task: CausalTask) -> str:
    """How the solver is addressed: the paper's words, but where nothing is hidden."""
    return _BOUNDARY_PROMPT if task.tier == "L4" else SYSTEM_PROMPT


def brief(task: CausalTask) -> str:
    """What the solver is told of a task; nothing of the hidden world, and no parameter ranges (but the swept one's)."""
    metrics = ", ".join(ENGINES[task.simulation].metrics)
    target = f"target metric: {task.target}\n" if task.tier != "L1B" else ""
    listed = f"metrics: {metrics}\n" if task.tier in {"L1V", "L1B"} else ""
    asked = f"the changed parameter is one of: {', '.join(task.candidates)}\n"
    if task.sweep is not None:
        asked = f"swept parameter: {task.candidates[0]}, from {task.sweep[0]:g} to {task.sweep[1]:g}\n"
    summary = "Run experiments, then submit." if task.sweep is not None else _SUMMARY
    return (
        f"model: {task.simulation}\n{target}{listed}"
        f"control config: {json.dumps(task.control)}\n{asked}"
        f"experiment budget: {task.budget} calls\n\n{_GOALS[task.tier]}\n{summary}"
    )


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class ExperimentArguments(_Arguments):
    """Arguments of `experiment`."""

    config_a: dict[str, float] = Field(default_factory=dict, alias="configA", description=_OVERRIDES)
    config_b: dict[str, float] = Field(default_factory=dict, alias="configB", description=_OVERRIDES)
    metric: str | None = Field(default=None, description="default: the target metric")


class ProbeArguments(_Arguments):
    """Arguments of `probe`."""

    guess: dict[str, float] = Field(default_factory=dict, description=_OVERRIDES)
    metric: str | None = Field(default=None, description="default: the target metric")


class ClaimArguments(_Arguments):
    """Arguments of `claim`."""

    param: str
    effect: Literal["up", "down", "none"]


class SubmitArguments(_Arguments):
    """Arguments of `submit`."""

    params: list[str] = Field(min_length=1, max_length=2, description="the changed parameter, or at L3 the pair")
    direction: Direction | None = Field(default=None, description="L1, L2: direction of the target metric")
    magnitude: Magnitude | None = Field(default=None, description="L2")
    interaction: Literal["positive", "negative"] | None = Field(default=None, description="L3: sign of the interaction")


class _VectorSubmit(_Arguments):
    params: list[str] = Field(min_length=1, max_length=1, description="the changed parameter")
    effects: dict[str, Effect] = Field(description="for EVERY metric: up, down or none")


class _BlindSubmit(_Arguments):
    params: list[str] = Field(min_length=1, max_length=1, description="the changed parameter")
    metric: str = Field(description="a metric that the change moves")
    direction: Direction = Field(description="direction of that metric")


class _BoundarySubmit(_Arguments):
    params: list[str] = Field(min_length=1, max_length=1, description="the swept parameter")
    estimate: float = Field(description="value of the swept parameter at the boundary")


_SUBMITS: Final[dict[str, type[_Arguments]]] = {"L1V": _VectorSubmit, "L1B": _BlindSubmit, "L4": _BoundarySubmit}
TOOLS: Final[dict[str, tuple[str, type[_Arguments]]]] = {
    "experiment": (
        "Run a replicated A/B between two configs; returns statistics only (no configs echoed)",
        ExperimentArguments,
    ),
    "probe": (
        "Compare a guessed config against the hidden world; a non-significant result means your guess matches",
        ProbeArguments,
    ),
    "claim": ("Record a belief about one parameter's effect (optional book-keeping)", ClaimArguments),
    "submit": ("Submit the final answer; ends the episode", SubmitArguments),
}
"""The tools of the paper's tiers."""


def tools_for(task: CausalTask) -> dict[str, tuple[str, type[_Arguments]]]:
    """The four tools of a task: only the form of the answer depends on the tier."""
    return TOOLS | {"submit": (TOOLS["submit"][0], _SUBMITS.get(task.tier, SubmitArguments))}


def call_tool(bench: Bench, name: str, arguments: Mapping[str, Any]) -> dict[str, JsonValue]:
    """Carry out one call; what was wrong with it comes back as `{"error": ...}`, for the agent to read."""
    if name not in TOOLS:
        return {"error": f"no tool {name!r}; there are {', '.join(TOOLS)}"}
    try:
        given = tools_for(bench.task)[name][1].model_validate(dict(arguments))
        return _carry_out(bench, given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        return {"error": f"{name}: {where or 'arguments'}: {first['msg']}"}
    except BenchError as error:
        return {"error": str(error)}


def _carry_out(bench: Bench, given: _Arguments) -> dict[str, JsonValue]:
    if isinstance(given, ExperimentArguments):
        result = bench.experiment(given.config_a, given.config_b, given.metric)
    elif isinstance(given, ProbeArguments):
        result = bench.probe(given.guess, given.metric)
    elif isinstance(given, ClaimArguments):
        bench.claim(given.param, given.effect)
        return {"recorded": True}
    else:
        answer = given.model_dump()
        bench.submit(tuple(answer.pop("params")), **answer)
        return {"submitted": True}
    shown: dict[str, JsonValue] = result.model_dump(mode="json")
    return shown
