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
from evaluation.families.causal.task import CausalTask, Direction, Magnitude

__all__ = ["SYSTEM_PROMPT", "TOOLS", "brief", "call_tool"]

SYSTEM_PROMPT: Final = (
    "You are a careful experimental scientist solving a hidden-parameter mystery. Exactly one (or, at L3, two) of the "
    "candidate parameters was changed from a revealed control to make a hidden treatment world. Use the tools to run "
    "controlled experiments — change ONE parameter at a time and read the Holm-adjusted p-value and effect size — and "
    "reach an evidence-backed answer. Only conclude an effect when a result is significant. You have a limited budget "
    "of experiments; do not waste calls. When confident, call submit."
)
_GOALS: Final = {
    "L1": "ONE parameter was changed. Identify which, and whether it pushes the target metric UP or DOWN.",
    "L2": "ONE parameter was changed. Identify which, whether it pushes the target metric UP or DOWN, and the "
    "MAGNITUDE of the change by relative change |deltaPct|: small 10-35%, medium 35-75%, large >=75%.",
    "L3": "TWO parameters were changed together. Identify BOTH and the SIGN of their interaction (positive if the "
    "combined effect exceeds the sum of the individual effects, else negative).",
}
_OVERRIDES: Final = "parameter overrides on the control (omit a param to leave it at control)"


def brief(task: CausalTask) -> str:
    """What the solver is told of a task; nothing of the hidden world, and no parameter ranges."""
    return (
        f"model: {task.simulation}\ntarget metric: {task.target}\n"
        f"control config: {json.dumps(task.control)}\n"
        f"the changed parameter is one of: {', '.join(task.candidates)}\n"
        f"experiment budget: {task.budget} calls\n\n{_GOALS[task.tier]}\n"
        "Run experiments (change ONE parameter vs the control), then submit."
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


def call_tool(bench: Bench, name: str, arguments: Mapping[str, Any]) -> dict[str, JsonValue]:
    """Carry out one call; what was wrong with it comes back as `{"error": ...}`, for the agent to read."""
    if name not in TOOLS:
        return {"error": f"no tool {name!r}; there are {', '.join(TOOLS)}"}
    try:
        given = TOOLS[name][1].model_validate(dict(arguments))
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
        assert isinstance(given, SubmitArguments)
        bench.submit(
            tuple(given.params), direction=given.direction, magnitude=given.magnitude, interaction=given.interaction
        )
        return {"submitted": True}
    shown: dict[str, JsonValue] = result.model_dump(mode="json")
    return shown
