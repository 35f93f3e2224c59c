"""A causal task in two halves: what its brief says; the frozen world, which is the answer.

The agent meets the world through a bench that runs beside its container, never as a file: the public half has no files.
The id names simulation and seed, and the generator is public: what keeps the answer from a reader of the public part is
work, not secrecy. Worlds of seeds that nobody published are the ones to compare agents on.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from evaluation.families.causal.generate import to_json
from evaluation.families.causal.store import load_tasks
from evaluation.families.causal.task import CausalTask
from evaluation.task import EvaluationTask
from pipeline.formats.family_parts import FamilyPart, FamilyShape, significant_digits
from pipeline.task import Family

__all__ = ["SHAPE", "parts", "public_columns"]

SHAPE: Final = FamilyShape(
    family=Family.CAUSAL,
    public={
        "tier": "string", "simulation": "string", "candidates": ["string"], "budget": "int64", "replicates": "int64",
        "control": [{"parameter": "string", "value": "float64"}],
        "sweep": {"low": "float64", "high": "float64"},
    },
    private={
        "drivers": [{"parameter": "string", "value": "float64"}], "target": "string", "direction": "string",
        "magnitude": "string", "interaction": "string", "signature": [{"metric": "string", "effect": "string"}],
        "tolerance": "float64", "difficulty": "string", "oracle_power": "float64",
    },
    title="mystery worlds (petri-bench)",
    about="the agent finds out on a blind bench, with a budget of experiments, which parameters of a simulated world "
    "were changed; `expbench score causal` scores the bench's log. Each id names simulation and seed, and the "
    "generator is public: compare agents on worlds of seeds that were not published.",
    chart=("Causal tasks by tier", "tier"),
)  # fmt: skip

_MET_BY_CHANCE: Final = 2
"""Significant digits of a number that any brief may state; a boundary is located with 6."""


def parts(directory: Path, tasks: Sequence[EvaluationTask], shared_papers: frozenset[str]) -> list[FamilyPart]:
    """See `evaluation.exports.families.forms.family_parts`."""
    known = {task.id: task for task in tasks}
    found, _ = load_tasks(directory)
    return [_part(task, known[task.id]) for task in found if task.id in known]


def _part(task: CausalTask, loaded: EvaluationTask) -> FamilyPart:
    hidden = task.hidden
    effects = sorted((hidden.signature or {}).items())
    return FamilyPart(
        public=loaded.public,
        category=loaded.category,
        columns=public_columns(task),
        truth={
            "drivers": [{"parameter": name, "value": value} for name, value in hidden.drivers],
            "target": task.target, "direction": hidden.direction, "magnitude": hidden.magnitude,
            "interaction": hidden.interaction,
            "signature": [{"metric": metric, "effect": effect} for metric, effect in effects],
            "tolerance": hidden.tolerance, "difficulty": task.difficulty.band,
            "oracle_power": task.difficulty.oracle_power,
        },
        private_files={f"{task.id}.json": to_json(task).encode()},
        figures={"tier": task.tier, "simulation": task.simulation, "budget": task.budget},
        # only where the boundary itself is asked for is the hidden value the answer
        runs=tuple(("boundary", (value,)) for _, value in hidden.drivers)
        if task.tier == "L4" and significant_digits(hidden.drivers[0][1]) > _MET_BY_CHANCE
        else (),
    )  # fmt: skip


def public_columns(task: CausalTask) -> dict[str, JsonValue]:
    """What the brief says, typed; independent of the hidden world."""
    sweep: JsonValue = None if task.sweep is None else {"low": task.sweep[0], "high": task.sweep[1]}
    return {
        "tier": task.tier,
        "simulation": task.simulation,
        "candidates": list(task.candidates),
        "budget": task.budget,
        "replicates": task.replicates,
        "control": [{"parameter": name, "value": value} for name, value in task.control.items()],
        "sweep": sweep,
    }
