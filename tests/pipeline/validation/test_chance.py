"""How often would a run that did not reproduce the paper be accepted? Measured, with fixed seeds.

Three kinds of wrong runs on tasks like those the keyless engine makes (k claims of three digits, methods x data sets).
Seen when this was written:

- other names (an unrelated program): 0 of 200 accepted;
- the right table with wrong values (uniform over 50 to 99.9): 0 of 400 for four claims, 7 of 4000 for a single one (a
  band of 0.1 in a range of 50 is hit by 8 of 4000);
- the right names, many numbers each (a verbose log): 0 of 100.

Matching by value first would have accepted the verbose log in 30 of 100 cases; the last test shows it.
"""

from __future__ import annotations

import random

from pipeline.task import Verdict
from pipeline.validation.outcome import decide, match_claims
from pipeline.validation.text_output import observe_text
from tests.pipeline.validation.support import claim

TRIALS = 400
METHODS, PROBLEMS = ("ours", "sgd", "adam"), ("moons", "rings")
OTHER = ("delta", "omega", "sigma", "width", "cost", "ratio", "phase", "gamma")


def paper(rng: random.Random, count: int):
    cells = [(method, problem) for method in METHODS for problem in PROBLEMS][:count]
    return [
        claim(f"c{index}", "test accuracy", f"{rng.uniform(50, 99.9):.1f}", unit="%", method=method, dataset=problem)
        for index, (method, problem) in enumerate(cells)
    ]


def table(rng: random.Random) -> str:
    lines = ["Test accuracy (%)", "method   moons  rings"]
    lines += [f"{method:8s} {rng.uniform(50, 99.9):5.1f}  {rng.uniform(50, 99.9):5.1f}" for method in METHODS]
    return "\n".join(lines)


def unrelated(rng: random.Random) -> str:
    return "\n".join(f"{rng.choice(OTHER)} = {rng.uniform(50, 99.9):.1f}" for _ in range(300))


def verbose(rng: random.Random) -> str:
    lines = []
    for method in METHODS:
        for problem in PROBLEMS:
            lines += [f"{method} on {problem}: accuracy {rng.uniform(50, 99.9):.1f}" for _ in range(20)]
    return "\n".join(lines)


def accepted(count: int, make, trials: int = TRIALS) -> int:
    rng = random.Random(20_240_601)
    total = 0
    for _ in range(trials):
        claims = paper(rng, count)
        matches = match_claims(claims, [list(observe_text(make(rng), "stdout"))])
        total += decide(claims, matches)[0] is Verdict.PASS
    return total


def test_an_unrelated_run_is_never_accepted() -> None:
    assert accepted(1, unrelated, 60) == 0


def test_wrong_values_under_the_right_names() -> None:
    assert accepted(4, table) == 0
    assert accepted(1, table) <= 0.01 * TRIALS


def test_a_log_with_many_numbers_of_the_right_name() -> None:
    rng = random.Random(1)
    claims = paper(rng, 1)
    lines = verbose(rng)
    assert accepted(1, verbose, 60) == 0
    by_value = sum(
        any(abs(item.value - paper(rng, 1)[0].value) < 0.051 for item in observe_text(lines, "stdout"))
        for _ in range(100)
    )
    assert by_value >= 20, "choosing by value would have accepted a good part of them"
    assert claims
