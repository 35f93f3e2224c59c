"""Budgets are never exceeded, whatever the interleaving; and nothing is refused that fits."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.llm import Budget, BudgetError, BudgetLimits, CancelToken, Spent, current_budget
from tests.pipeline.llm.conftest import FakeClock


def worst(usd: str | int = 1, tokens: int = 10) -> Spent:
    return Spent(usd=Decimal(usd), tokens=tokens, calls=1)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    usd=st.integers(0, 40),
    calls=st.integers(0, 40),
    tokens=st.integers(0, 400),
    stage_calls=st.integers(0, 20),
)
def test_never_exceeded_under_random_interleavings(seed: int, usd: int, calls: int, tokens: int, stage_calls: int):
    """At every moment what is used plus what is under way fits every scope; at the end it is the sum of the parts."""
    run = Budget("run", BudgetLimits(usd=usd, calls=calls, tokens=tokens))
    stages = [Budget(name, BudgetLimits(calls=stage_calls), level="stage", parent=run) for name in "ab"]
    settled: list[tuple[Budget, Spent]] = []
    lock = threading.Lock()
    violations: list[str] = []

    def look() -> None:
        with run.changed:
            for scope in (run, *stages):
                held = scope.spent + scope.reserved
                for name in ("usd", "tokens", "calls"):
                    limit = getattr(scope.limits, name)
                    if limit is not None and getattr(held, name) > limit:
                        violations.append(f"{scope.name} {name} {held}")

    def caller(number: int) -> None:
        rng = random.Random(seed + number)
        for _ in range(6):
            stage = rng.choice(stages)
            bound = worst(rng.randint(0, 3), rng.randint(0, 30))
            try:
                reservation = stage.reserve(bound)
            except BudgetError:
                continue
            look()
            actual = Spent(usd=Decimal(rng.randint(0, int(bound.usd))), tokens=rng.randint(0, bound.tokens), calls=1)
            choice = rng.random()
            reservation.settle(None if choice < 0.2 else actual)
            reservation.settle(worst(1000))  # settling twice must not count twice
            with lock:
                settled.append((stage, bound if choice < 0.2 else actual))
            look()

    with ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(caller, number) for number in range(8)]
        done, pending = wait(futures, timeout=60)
    assert not pending  # nobody waits for ever
    for future in done:
        future.result()
    assert violations == []
    for scope in (run, *stages):
        mine = [spent for stage, spent in settled if scope in stage.chain()]
        assert scope.spent == sum(mine[1:], mine[0]) if mine else scope.spent == Spent()
        assert scope.reserved == Spent()


def test_a_call_waits_for_the_worst_case_of_others():
    """The limit holds two calls in truth but only one worst case at a time: the second waits, and is not refused."""
    budget = Budget(limits=BudgetLimits(usd=10))
    first = budget.reserve(worst(8))
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(budget.reserve, worst(8))
        done, _ = wait([second], timeout=0.05)
        assert not done
        first.settle(worst(1))
        second.result(timeout=20).settle(worst(2))
    assert budget.spent.usd == 3


def test_what_cannot_fit_is_refused_at_once_even_while_others_run():
    budget = Budget(limits=BudgetLimits(usd=10))
    budget.reserve(worst(5))
    with pytest.raises(BudgetError) as caught:
        budget.reserve(worst(11))
    assert (caught.value.kind, caught.value.limit) == (FailureKind.BUDGET_EXCEEDED, "usd")


def test_waiting_can_be_cancelled():
    budget, token = Budget(limits=BudgetLimits(calls=1)), CancelToken()
    budget.reserve(worst())
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(budget.reserve, worst(), token)
        token.cancel()
        with pytest.raises(ExpbenchError) as caught:
            waiting.result(timeout=20)
    assert caught.value.kind is FailureKind.INTERRUPTED


def test_a_refusal_inside_leaves_nothing_reserved_outside():
    run = Budget("run", BudgetLimits(usd=100))
    with run.scope("task", "t", BudgetLimits(usd=1)) as task, pytest.raises(BudgetError, match="task t"):
        task.reserve(worst(2))
    assert run.reserved == Spent()


def test_an_unknown_price_stops_only_where_money_is_limited():
    unknown = Spent(usd=None, tokens=5, calls=1)
    free = Budget(limits=BudgetLimits(tokens=10))
    free.reserve(unknown).settle(unknown)
    assert free.spent == Spent(usd=None, tokens=5, calls=1)
    with pytest.raises(BudgetError, match="price of the model is unknown"):
        Budget(limits=BudgetLimits(usd=1)).reserve(unknown)


def test_a_resumed_run_goes_on_counting():
    budget = Budget(limits=BudgetLimits(usd=10), already=worst(9))
    with pytest.raises(BudgetError):
        budget.reserve(worst(2))
    budget.reserve(worst(1)).settle(worst(1))
    assert budget.spent.usd == 10


def test_wall_time(clock: FakeClock):
    run = Budget(limits=BudgetLimits(wall_s=100), clock=clock)
    clock.now = 60
    with run.scope("stage", "s", BudgetLimits(wall_s=30)) as stage:
        assert stage.remaining_s() == 30
        clock.now = 95
        with pytest.raises(BudgetError, match="stage s"):
            stage.reserve(worst())
    run.reserve(worst()).settle(worst())
    clock.now = 100
    with pytest.raises(BudgetError, match="wall time"):
        run.reserve(worst())


def test_scopes_are_entered_and_left():
    run = Budget("r")
    assert current_budget() is None
    with run.entered(), run.scope("stage", "s") as stage:
        assert current_budget() is stage
        with stage.scope("task", "t") as task:
            assert (task.label("run"), task.label("stage"), task.label("task")) == ("r", "s", "t")
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(current_budget).result() is None  # which is why workers enter it
    assert current_budget() is None
