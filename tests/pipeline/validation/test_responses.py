"""Bands from runs with other random streams, and what is learnt of how a chain answers."""

from __future__ import annotations

import random
import statistics
from pathlib import Path
from typing import Any

import pytest

from pipeline.execution_plan import ExecutionPlan, SeedUse
from pipeline.paper import Paper
from pipeline.progress import SilentReporter
from pipeline.repository import RepositoryRef, Snapshot
from pipeline.sandbox.base import Image, Limits
from pipeline.task import (
    Band,
    ClaimMatch,
    Expected,
    ExperimentTruth,
    Family,
    NumericClaim,
    Provenance,
    Status,
    Task,
    ValidationReport,
    Verdict,
)
from pipeline.validation.responses import (
    band_of_seeds,
    computed,
    learn_responses,
    seed_nobody_has,
    steady_comparisons,
)
from pipeline.witness.records import FunctionRun, Perturbation, Response

RAN = (FunctionRun(path="run.py", name="main", line=1, calls=1),)


def _claim(value: float = 90.0, **band: Any) -> NumericClaim:
    return NumericClaim(
        id="c1", metric="accuracy", value=value, text=f"{value:.1f}", decimals=1,
        band=Band(**{"low": value - 0.05, "high": value + 0.05, "source": "printed precision", **band}),
    )  # fmt: skip


def _task(claim: NumericClaim, **truth: Any) -> Task:
    seed = SeedUse(name="seed", value="7", source="code", where="run.py:3")
    plan = ExecutionPlan(commands=(), seeds=(seed,))
    return Task(
        id="t", family=Family.EXPERIMENT, status=Status.VALIDATED, paper=Paper(id="p", title="t"),
        repository=RepositoryRef(url="u", commit="0" * 40), question="?", method="-",
        provenance=Provenance(engine="keyless"),
        truth=ExperimentTruth(expected=Expected(text="-", claims=(claim,)), **truth),
        validation=ValidationReport(verdict=Verdict.PASS, reason="-", sandbox="docker", plan=plan),
    )  # fmt: skip


@pytest.mark.parametrize("count", [4, 6, 10, 20])
def test_nineteen_of_twenty_honest_runs_lie_in_a_band_of_seeds(count: int) -> None:
    rng = random.Random(count)
    inside = 0
    for _ in range(2000):
        runs = [rng.gauss(90.0, 0.5) for _ in range(count)]
        inside += band_of_seeds(_claim(runs[0]), runs).holds(rng.gauss(90.0, 0.5))
    assert 0.94 <= inside / 2000 <= 0.97


def test_two_deviations_away_is_outside_as_soon_as_there_are_runs_enough() -> None:
    rng = random.Random(1)
    runs = [rng.gauss(90.0, 0.5) for _ in range(400)]
    band = band_of_seeds(_claim(90.0), runs)
    mean, deviation = statistics.fmean(runs), statistics.stdev(runs)
    assert not band.holds(mean + 2 * deviation)
    assert band.holds(mean + 1.9 * deviation)
    assert (band.deviation, band.source) == (deviation, "seeds (n=400)")


def test_the_papers_own_number_always_belongs_to_its_band() -> None:
    band = band_of_seeds(_claim(93.0), [90.0, 90.1, 89.9, 90.05])
    assert band.holds(93.0)
    assert band.holds(93.05)
    assert not band.holds(93.2)


class _NoWitness:
    name = "process"


def test_a_sandbox_without_a_witness_leaves_the_task_and_says_so(tmp_path: Path) -> None:
    task = _task(_claim())
    snapshot = Snapshot(ref=task.repository, root=tmp_path, files=())
    image = Image(reference="x", digest="x", spec_digest="x")
    found = learn_responses(
        task, snapshot=snapshot, image=image, sandbox=_NoWitness(), seeds=5, out=tmp_path / "o",  # type: ignore[arg-type]
        owner="o", limits=Limits(), reporter=SilentReporter(),
    )  # fmt: skip
    assert found.truth == task.truth
    assert "cannot carry a witness" in found.problems[-1].message


def test_a_task_that_only_a_masked_seed_meets_is_refused() -> None:
    only = _task(_claim(), ran=RAN, seeds=("7",))
    assert "run.py:3" in seed_nobody_has(only, {"run.py"})
    assert seed_nobody_has(only, {"other.py"}) == ""
    known = _task(_claim(deviation=0.4), ran=RAN, seeds=("7",))
    assert seed_nobody_has(known, {"run.py"}) == ""
    unseen = _task(_claim(), seeds=("7",))
    assert seed_nobody_has(unseen, {"run.py"}) == ""
    without = _task(_claim(), ran=RAN)
    assert seed_nobody_has(without, {"run.py"}) == ""


@pytest.mark.parametrize(
    ("values", "moves"), [(((90.0,),), False), (((90.0,), (83.0,)), True), (((),), False), ((), False)]
)
def test_numbers_that_no_perturbation_moves_were_not_seen_computed(
    values: tuple[tuple[float, ...], ...], moves: bool
) -> None:
    task = _task(_claim())
    assert task.validation is not None
    match = ClaimMatch(claim="c1", verdict=Verdict.PASS, observed=(90.0, 90.0), reason="-")
    responses = tuple(
        Response(perturbation=Perturbation.MOVED, values=tuple(("c1", value) for value in seen), touched=1)
        for seen in values
    )
    truth = task.truth.evolve(responses=responses)
    assert computed(task.evolve(truth=truth, validation=task.validation.evolve(matches=(match,)))) is moves


def test_a_relation_within_the_noise_between_seeds_is_none() -> None:
    """A bug it records: `89.6 > 89.3` was expected by its printed digits, and honest agents failed by it."""
    rng = random.Random(7)
    noise = [rng.gauss(0.0, 0.4) for _ in range(6)]
    drawn = {
        "low": [90.0 + n for n in noise],
        "near": [90.2 + rng.gauss(0.0, 0.4) for _ in noise],
        "shared": [90.2 + n + rng.gauss(0.0, 0.01) for n in noise],  # it shares the draws of `low`
        "far": [95.0 + rng.gauss(0.0, 0.4) for _ in noise],
    }
    claims = tuple(_claim(seen[0]).evolve(id=name, band=band_of_seeds(_claim(seen[0]), seen))
                   for name, seen in drawn.items())  # fmt: skip
    unknown = _claim(99.0).evolve(id="unknown")
    told = (("near", ">", "low"), ("shared", ">", "low"), ("far", ">", "low"), ("unknown", ">", "far"))
    expected = Expected(text="-", claims=(*claims, unknown), comparisons=told)
    assert steady_comparisons(expected) == told[1:]
