"""Our histogram metrics beside those of the published Collider-Bench scorer, on randomly perturbed references.

    python -m benchmarks.histogram.parity CHECKOUT [--draws 200] [--json]

CHECKOUT is a checkout of the published repository (dfaroughy/Collider-Bench); none of it is part of this project. Its
functions round to six digits, percentages to three: `round` is taken out of their modules for the comparison, so that
what is compared is what they compute. Bins are those of each task's reference; four published tasks have a reference
of 3 of their 26 bins, which the published scorer holds against the first three of a prediction, and we against those
with the same edges.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from evaluation.families.histogram.catalogue import read_catalogue
from evaluation.families.histogram.metrics import (
    baker_cousins_p_value,
    bin_disagreement,
    jensen_shannon,
    mean_bin_error,
    normalisation_error,
    relative_l2,
    rmsle,
    unit_area,
)

Metric = Callable[[Sequence[float], Sequence[float]], "float | None"]
TOYS = 200


def shape_distance(predicted: Sequence[float], reference: Sequence[float]) -> float | None:
    """Relative L2 of the unit-area distributions."""
    mine, true = unit_area(predicted), unit_area(reference)
    return None if mine is None or true is None else relative_l2(mine, true)


def _shape_error(predicted: Sequence[float], reference: Sequence[float]) -> float | None:
    mine, true = unit_area(predicted), unit_area(reference)
    return None if mine is None or true is None else mean_bin_error(mine, true)


def _part(index: int) -> Metric:
    def metric(predicted: Sequence[float], reference: Sequence[float]) -> float | None:
        found = bin_disagreement(predicted, reference)
        return None if found is None else found[index]

    return metric


METRICS: dict[str, Metric] = {
    "relative_l2": relative_l2,
    "shape_l2": shape_distance,
    "delta_norm": normalisation_error,
    "jensen_shannon": jensen_shannon,
    "rmsle": rmsle,
    "mean_abs_frac_error_pct": _shape_error,
    "d_bar": _part(0),
    "d_max": _part(1),
    "p_value": lambda mine, true: baker_cousins_p_value(mine, true, systematic=0.05, toys=TOYS),
    "p_value_norm": lambda mine, true: baker_cousins_p_value(
        mine, true, kind="normalization", systematic=0.05, toys=TOYS
    ),
}
"""Ours."""


def published_metrics(checkout: Path) -> dict[str, Metric]:
    """Theirs, without their rounding."""
    if str(checkout) not in sys.path:
        sys.path.insert(0, str(checkout))
    package = "ColliderBench.Evals.metrics"
    errors, divergence, likelihood = (
        importlib.import_module(f"{package}.{name}") for name in ("bin_error", "jsd", "baker_cousins")
    )
    for module in (errors, divergence, likelihood):
        module.__dict__["round"] = lambda value, digits=None: value

    def shaped(mine: Sequence[float], true: Sequence[float]) -> Any:
        total = sum(mine)
        return None if total <= 0 else errors.mean_abs_frac_error_pct(
            [value / total for value in mine], [value / sum(true) for value in true]
        )  # fmt: skip

    def toys(kind: str) -> Metric:
        return lambda mine, true: likelihood.baker_cousins_p_value(
            mine, true, kind=kind, systematic_frac=0.05, n_toys=TOYS
        )

    return {
        "relative_l2": errors.relative_l2,
        "shape_l2": lambda mine, true: errors.relative_l2(mine, true, normalize=True),
        "delta_norm": errors.Delta,
        "jensen_shannon": lambda mine, true: divergence.jensen_shannon(mine, true)[0],
        "rmsle": errors.rmsle,
        "mean_abs_frac_error_pct": shaped,
        "d_bar": lambda mine, true: errors.per_bin_disagreement(mine, true)[0],
        "d_max": lambda mine, true: errors.per_bin_disagreement(mine, true)[1],
        "p_value": toys("shape"),
        "p_value_norm": toys("normalization"),
    }


@dataclass
class Parity:
    """What came out."""

    tasks: int = 0
    draws: int = 0
    largest: dict[str, float] = field(default_factory=dict)
    """Largest difference of each metric, relative to values above 1."""
    disagreements: list[str] = field(default_factory=list)
    """Cases that one of the two calls undefined and the other does not."""


def perturbed(reference: Sequence[float], draw: random.Random) -> list[float]:
    """A prediction: each bin scaled log-normally, some lost, now and then all of another order of magnitude."""
    values = [value * math.exp(draw.gauss(0, 1)) * (draw.random() > 0.1) for value in reference]
    factor = draw.choice([1.0] * 8 + [1e4, 1e-4])
    return [factor * value for value in values]


def compare(checkout: Path, *, draws: int) -> Parity:
    """Compare all metrics on every published task."""
    theirs = published_metrics(checkout)
    entries, _ = read_catalogue(checkout)
    result = Parity(tasks=len(entries), draws=draws, largest=dict.fromkeys(METRICS, 0.0))
    draw = random.Random(20260507)
    for entry in entries:
        reference = list(entry.task.truth)
        for number in range(draws):
            values = perturbed(reference, draw) if number else [0.0] * len(reference)
            for name, metric in METRICS.items():
                ours, other = metric(values, reference), theirs[name](values, reference)
                if ours is None or other is None:
                    if (ours is None) != (other is None):
                        result.disagreements.append(f"{entry.task.id} {name}: {ours} and {other}")
                    continue
                difference = abs(ours - other) / max(1.0, abs(other))
                result.largest[name] = max(result.largest[name], difference)
    return result


def main() -> int:
    """Print the comparison; 1 when a metric differs by more than 1e-9."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    result = compare(chosen.checkout.resolve(), draws=chosen.draws)
    if chosen.json:
        print(json.dumps(asdict(result)))
    else:
        print(f"{result.tasks} tasks, {result.draws} draws each; largest difference:")
        for name, difference in result.largest.items():
            print(f"  {name:<26}{difference:.2e}")
        for text in result.disagreements:
            print(f"  undefined in one of the two: {text}")
    return int(any(value > 1e-9 for value in result.largest.values()) or bool(result.disagreements))


if __name__ == "__main__":
    sys.exit(main())
