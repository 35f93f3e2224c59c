"""How often would a run that did not reproduce the paper be accepted? Measured, with fixed seeds.

Wrong runs on tasks like those the engines make (claims of three digits, methods x data sets), whose claims the run names
as the paper does, or under other names, so that only values could bind them. Seen when this was written:

- other names (an unrelated program): 0 of 200 accepted;
- the right table with wrong values (uniform over 50 to 99.9): 0 of 400 for four claims, 7 of 4000 for a single one (a
  band of 0.1 in a range of 50 is hit by 8 of 4000);
- the right names, many numbers each (a verbose log): 0 of 100;
- any of them where no name is spelled alike: 0 of 360, and 0 of 327 with numbers of which there are only a few (shares of
  30, 40 and 150, small counts). Laid without structure, 1 of 755 of those was accepted: that reading does not count.

Taking any number of the claim's value would have accepted the verbose log in 30 of 100 cases; the last test shows it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from pipeline.task import NumericClaim, Verdict
from pipeline.validation.outcome import decide, match_claims
from pipeline.validation.text_output import observe_text
from tests.pipeline.validation.support import claim

TRIALS = 400
METHODS, PROBLEMS = ("ours", "sgd", "adam"), ("moons", "rings")
OTHER = ("delta", "omega", "sigma", "width", "cost", "ratio", "phase", "gamma")
Draw = Callable[[random.Random], float]


def accuracy(rng: random.Random) -> float:
    return rng.uniform(50, 99.9)


def share(rng: random.Random) -> float:
    return 100 * rng.randint(15, 30) / 30


def paper(rng: random.Random, count: int, spelled: bool = True, draw: Draw = accuracy) -> list[NumericClaim]:
    cells = [(method, problem) for method in METHODS for problem in PROBLEMS][:count]
    metric, method_as, problem_as = ("test accuracy", "{}", "{}") if spelled else ("top-1", "Our {} (tuned)", "{} data")
    return [
        claim(
            f"c{index}", metric, f"{draw(rng):.1f}", unit="%", method=method_as.format(method),
            dataset=problem_as.format(problem),
        )
        for index, (method, problem) in enumerate(cells)
    ]  # fmt: skip


def table(rng: random.Random, draw: Draw = accuracy) -> str:
    lines = ["Test accuracy (%)", "method   moons  rings"]
    lines += [f"{method:8s} {draw(rng):5.1f}  {draw(rng):5.1f}" for method in METHODS]
    return "\n".join(lines)


def unrelated(rng: random.Random, draw: Draw = accuracy) -> str:
    return "\n".join(f"{rng.choice(OTHER)} = {draw(rng):.1f}" for _ in range(300))


def verbose(rng: random.Random, draw: Draw = accuracy) -> str:
    lines = []
    for method in METHODS:
        for problem in PROBLEMS:
            lines += [f"{method} on {problem}: accuracy {draw(rng):.1f}" for _ in range(20)]
    return "\n".join(lines)


def accepted(
    count: int, make: Callable[..., str], trials: int = TRIALS, spelled: bool = True, draw: Draw = accuracy
) -> int:
    rng = random.Random(20_240_601)
    total = 0
    for _ in range(trials):
        claims = paper(rng, count, spelled, draw)
        matches = match_claims(claims, [list(observe_text(make(rng, draw), "stdout"))])
        total += decide(claims, matches)[0] is Verdict.PASS
    return total


def test_an_unrelated_run_is_never_accepted() -> None:
    assert accepted(1, unrelated, 60) == 0
    assert accepted(6, unrelated, 60) == 0


def test_wrong_values_under_the_right_names() -> None:
    assert accepted(4, table) == 0
    assert accepted(1, table) <= 0.01 * TRIALS


def steps(rng: random.Random, draw: Draw = accuracy) -> str:
    count = rng.choice([4, 8, 20])
    return "\n".join(f"step {n} loss {draw(rng):.4f} gain {draw(rng):.4f}" for n in range(count))


@pytest.mark.parametrize("make", [unrelated, table, verbose, steps])
@pytest.mark.parametrize("draw", [accuracy, share])
def test_wrong_values_that_no_name_binds(make: Callable[..., str], draw: Draw) -> None:
    assert accepted(6, make, 60, spelled=False, draw=draw) == 0


def test_a_foreign_run_binds_next_to_nothing() -> None:
    """Not even single claims: what is bound to a foreign number could pass later, read at its place."""
    rng = random.Random(3)
    runs: Sequence[Callable[..., str]] = (unrelated, table, verbose, steps)
    bound = 0
    for _ in range(40):
        for make in runs:
            claims = paper(rng, 6, spelled=False)
            bound += sum(bool(match.place) for match in match_claims(claims, [list(observe_text(make(rng), "stdout"))]))
    assert bound == 0


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
