"""How often honest runs pass, and shifted ones do not: simulated tasks whose bands come from a few runs themselves."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from evaluation.judges.bands import compare_numbers
from evaluation.judges.lookup import Found
from pipeline.task import Band, Condition, NumericClaim, Verdict
from pipeline.validation.responses import band_of_seeds

DEVIATION = 0.5
TASKS = 400
RUNS = 10
Draw = Callable[[random.Random, int, int], dict[str, float]]


def _claims(methods: int, problems: int) -> list[NumericClaim]:
    return [
        NumericClaim(
            id=f"c{method}-{problem}", metric="accuracy", value=90.0, text="90.0", decimals=1,
            conditions=(Condition(name="method", value=f"m{method}"), Condition(name="problem", value=f"p{problem}")),
            band=Band(low=90 - 2 * DEVIATION, high=90 + 2 * DEVIATION, source="seeds", deviation=DEVIATION),
        )
        for method in range(methods)
        for problem in range(problems)
    ]  # fmt: skip


def _independent(drawn: random.Random, methods: int, problems: int) -> dict[str, float]:
    return {f"c{m}-{p}": drawn.gauss(0, 1) for m in range(methods) for p in range(problems)}


def _same_draws(drawn: random.Random, methods: int, problems: int) -> dict[str, float]:
    """All methods see the same draws of a problem, as good experiments do: their numbers go up and down together."""
    common = [drawn.gauss(0, 1) for _ in range(problems)]
    return {
        f"c{m}-{p}": math.sqrt(0.8) * common[p] + math.sqrt(0.2) * drawn.gauss(0, 1)
        for m in range(methods) for p in range(problems)
    }  # fmt: skip


def _same_seeds(drawn: random.Random, methods: int, problems: int) -> dict[str, float]:
    """The same seeds for every problem too."""
    common = drawn.gauss(0, 1)
    return {
        name: math.sqrt(0.5) * common + math.sqrt(0.5) * value
        for name, value in _same_draws(drawn, methods, problems).items()
    }


def _share_passed(methods: int, problems: int, draw: Draw, shift: float = 0.0, of: int | None = None) -> float:
    """Share of tasks all of whose numbers pass; `shift` moves all numbers, or those of one method."""
    drawn, passed = random.Random(methods * 100 + problems), 0
    for _ in range(TASKS):
        runs = [draw(drawn, methods, problems) for _ in range(RUNS)]
        claims = []
        for claim in _claims(methods, problems):
            seen = [90 + run[claim.id] * DEVIATION for run in runs]
            claims.append(claim.evolve(value=seen[0], band=band_of_seeds(claim.evolve(value=seen[0]), seen)))
        found = {
            name: Found(
                name,
                90 + (z + (shift if of is None or name.startswith(f"c{of}-") else 0)) * DEVIATION,
                5e-7,
                weak=False,
            )
            for name, z in draw(drawn, methods, problems).items()
        }
        passed += all(verdict is Verdict.PASS for verdict, _ in compare_numbers(claims, found).values())
    return passed / TASKS


@pytest.mark.parametrize("draw", [_independent, _same_draws, _same_seeds])
@pytest.mark.parametrize(("methods", "problems"), [(1, 1), (2, 2), (3, 4), (2, 6), (6, 4)])
def test_honest_runs_pass(methods: int, problems: int, draw: Draw) -> None:
    """Whatever varies together."""
    assert _share_passed(methods, problems, draw) >= 0.90


@pytest.mark.parametrize(("methods", "problems", "of", "draw", "most"), [
    (3, 6, 0, _same_draws, 0.05), (6, 4, 2, _same_draws, 0.05), (3, 4, 1, _same_seeds, 0.15),
    (3, 6, 0, _independent, 0.45), (6, 4, None, _independent, 0.1), (6, 4, None, _same_draws, 0.55),
])  # fmt: skip
def test_two_deviations_more_do_not_pass(methods: int, problems: int, of: int | None, draw: Draw, most: float) -> None:
    """A bonus for one method is seen where methods share their draws; one for all where numbers vary by themselves."""
    assert _share_passed(methods, problems, draw, 2.0, of) <= most


def _one(value: float, *, deviation: float | None, slack: float = 5e-7, weak: bool = False) -> Verdict:
    (claim,) = _claims(1, 1)
    claim = claim.evolve(band=claim.band.evolve(deviation=deviation))
    return compare_numbers([claim], {claim.id: Found("x", value, slack, weak)})[claim.id][0]


def test_a_single_number_lies_in_its_band() -> None:
    assert _one(90.99, deviation=DEVIATION) is Verdict.PASS
    assert _one(91.01, deviation=DEVIATION) is Verdict.FAIL
    assert _one(91.04, deviation=None, slack=0.05) is Verdict.PASS
    assert _one(91.06, deviation=None, slack=0.05) is Verdict.FAIL
    assert _one(92.0, deviation=None, slack=5.0) is Verdict.UNKNOWN, "rounded to tens"
    assert _one(99.0, deviation=DEVIATION, weak=True) is Verdict.UNKNOWN


def test_one_number_far_off_fails_among_many() -> None:
    claims = _claims(3, 4)
    found = {claim.id: Found(claim.id, 90.0, 5e-7, weak=False) for claim in claims}
    found[claims[0].id] = Found(claims[0].id, 91.4, 5e-7, weak=False)
    assert {v for v, _ in compare_numbers(claims, found).values()} == {Verdict.PASS}
    found[claims[0].id] = Found(claims[0].id, 120.0, 5e-7, weak=False)
    assert compare_numbers(claims, found)[claims[0].id][0] is Verdict.FAIL


def test_what_was_not_found_is_unknown() -> None:
    assert {v for v, _ in compare_numbers(_claims(2, 2), {}).values()} == {Verdict.UNKNOWN}
