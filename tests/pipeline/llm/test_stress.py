"""32 callers at once while the endpoint turns them away, breaks off, hangs and talks nonsense.

Deterministic by construction: back-off passes on a virtual clock, and a time-out fires when the server has met the turn
that hangs - not when some number of milliseconds has passed.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import re
import threading
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.llm import (
    Budget,
    BudgetError,
    BudgetLimits,
    CacheMode,
    CallLedger,
    CancelToken,
    ExchangeStore,
    ModelClient,
    ModelConfig,
    ModelError,
    Parameters,
    Price,
    PriceList,
    Reply,
    Request,
    RetryPolicy,
    user,
)
from tests.doubles.protocol_server import Cut, ErrorReply, ProtocolServer, ScriptedUsage, Turn, turns
from tests.llm_fixtures import no_ambient_model  # noqa: F401

# Seen once in some 40 runs, on a machine with load 15: a socket of a broken stream that the garbage collector closed. What
# these tests hold is the ledger, the budgets and the callers.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
CALLERS = 32
ATTEMPTS = 4
USAGE = ScriptedUsage(prompt=20, completion=5)
PRICES = PriceList(as_of="2026-01-01", models=(Price(model="m", input=Decimal(10), output=Decimal(20)),))
LONG = "a text that is long enough to be cut in the middle of its stream"
LABEL = re.compile(r"call-\d+-\d+")
caller: ContextVar[str] = ContextVar("caller")


class Claim(BaseModel):
    metric: str
    value: float


def fault(name: str) -> Turn:
    lost = ErrorReply(status=500, message="lost a worker")
    return {
        "429 wait": turns.rate_limited(7),
        "429": turns.rate_limited(),
        "503": turns.overloaded(),
        "hang": turns.hang(),
        "reset": turns.reset(),
        "malformed": turns.malformed_json(),
        "html": turns.wrong_content_type(),
        "cut": turns.cut(turns.text(LONG), 3),
        "quiet cut": turns.cut(turns.text(LONG), 2, quiet=True),
        "malformed event": turns.malformed_sse(turns.text(LONG), 2),
        "error event": turns.text(LONG, cut=Cut(after=2, how="error", error=lost)),
        "hang inside": turns.text(LONG, hold="never", hold_at=2),
        "401": turns.error(401, "no such key", code="invalid_api_key"),
        "quota": turns.quota_exceeded(),
    }[name]


OUTCOMES = {
    "429 wait": "rate_limit", "429": "rate_limit", "503": "overloaded", "hang": "model_timeout", "reset": "network",
    "malformed": "protocol_broken", "html": "protocol_broken", "cut": "network", "quiet cut": "network",
    "malformed event": "protocol_broken", "error event": "overloaded", "hang inside": "model_timeout",
    "401": "authentication", "quota": "quota", "answer": "done", "unfit": "done",
}  # fmt: skip
PASSING = ("429 wait", "429", "503", "hang", "reset", "malformed", "html")
IN_STREAMS = (*PASSING, "cut", "quiet cut", "malformed event", "error event", "hang inside")
FINAL = ("401", "quota")


@dataclass
class Plan:
    """What the endpoint does to one call, in order; each name is one request."""

    kind: str
    steps: list[str]
    left: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.left = list(self.steps)

    @property
    def succeeds(self) -> bool:
        return self.steps[-1] == "answer"


def make_plan(kind: str, rng: random.Random) -> Plan:
    passing = IN_STREAMS if kind == "stream" else PASSING
    ending = rng.random()
    if ending < 0.1:  # never gets through
        return Plan(kind, [rng.choice(passing) for _ in range(ATTEMPTS)])
    steps = [rng.choice(passing) for _ in range(rng.randrange(ATTEMPTS))]
    if ending < 0.2:
        return Plan(kind, [*steps, rng.choice(FINAL)])
    if kind == "structured" and ending < 0.6:  # an answer that does not fit, then a repair with troubles of its own
        steps += ["unfit", *[rng.choice(passing) for _ in range(rng.randrange(ATTEMPTS))]]
    return Plan(kind, [*steps, "answer"])


class VirtualClock:
    """Sleeping moves time and takes none."""

    def __init__(self) -> None:
        self._now, self._lock = 0.0, threading.Lock()

    def monotonic(self) -> float:
        with self._lock:
            return self._now

    def sleep(self, seconds: float, cancel: CancelToken) -> None:
        with self._lock:
            self._now += seconds


class Timeouts:
    """Deadlines of the attempts under way, by caller; they fire on demand."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[asyncio.AbstractEventLoop, asyncio.Timeout]] = {}

    def timeout(self, _seconds: float) -> asyncio.Timeout:
        deadline = asyncio.timeout(None)
        # the task runs in a copy of its caller's context, and no request is sent before this
        self._open[caller.get()] = (asyncio.get_running_loop(), deadline)
        return deadline

    def fire(self, name: str) -> None:
        loop, deadline = self._open[name]
        loop.call_soon_threadsafe(lambda: deadline.reschedule(loop.time()))


class Storm:
    """The endpoint: follows the plans, and looks at the budget whenever a request arrives."""

    def __init__(self, plans: dict[str, Plan], timeouts: Timeouts, budget: Budget) -> None:
        self.plans, self.timeouts, self.budget = plans, timeouts, budget
        self.seen: dict[str, list[str]] = defaultdict(list)
        self.committed: list[Any] = []

    def __call__(self, endpoint: str, body: dict[str, Any]) -> Turn | None:
        label = LABEL.search(json.dumps(body))[0]
        plan = self.plans[label]
        step = plan.left.pop(0)
        self.seen[label].append(step)
        with self.budget.changed:
            self.committed.append(self.budget.spent + self.budget.reserved)
        if step == "answer":
            if endpoint == "embeddings":
                return None
            value = {"metric": label, "value": 1.0}
            return turns.structured(value, usage=USAGE) if plan.kind == "structured" else turns.text(label, usage=USAGE)
        if step == "unfit":
            return turns.structured({"metric": label}, usage=USAGE)
        if step in ("hang", "hang inside"):  # inside: before or after the stream has begun, the outcome is the same
            self.timeouts.fire(label)
        return fault(step)


@dataclass
class World:
    server: ProtocolServer
    client: ModelClient
    budget: Budget
    ledger: CallLedger
    storm: Storm


@pytest.fixture
def world(tmp_path, monkeypatch, no_ambient_model):  # noqa: F811
    @contextmanager
    def make(plans, limits=None, store=None):
        timeouts, clock = Timeouts(), VirtualClock()
        monkeypatch.setattr("pipeline.llm.backend.asyncio", SimpleNamespace(timeout=timeouts.timeout))
        monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-stress-test")
        budget = Budget("storm", limits, clock=clock)
        storm, ledger = Storm(plans, timeouts, budget), CallLedger(tmp_path / "calls.jsonl")
        with ProtocolServer(storm) as server:
            config = ModelConfig(
                model="m",
                base_url=server.base_url,
                parameters=Parameters(max_output_tokens=50, seed=1),
                retry=RetryPolicy(attempts=ATTEMPTS),
                concurrency=CALLERS,
            )
            with ModelClient(
                config, store=store, ledger=ledger, budget=budget, prices=PRICES, clock=clock, rng=random.Random(1)
            ) as client:
                yield World(server, client, budget, ledger, storm)

    return make


def perform(world: World, label: str, kind: str) -> Any:
    """One call; its ledger lines carry the label."""
    token = caller.set(label)
    try:
        with world.budget.scope("task", label):
            request = Request(messages=(user(f"This is {label}."),))
            if kind == "embed":
                return world.client.embed([f"This is {label}."])
            if kind == "stream":
                return list(world.client.stream(request))[-1]
            if kind == "structured":
                return world.client.structured(request, Claim, repairs=2)
            return world.client.chat(request)
    except (ModelError, BudgetError) as error:
        return error
    finally:
        caller.reset(token)


def run_callers(world: World, plans: dict[str, Plan]) -> dict[str, Any]:
    """Each caller makes its calls one after the other; all callers at once."""
    start = threading.Barrier(CALLERS)
    mine: dict[int, list[str]] = defaultdict(list)
    for label in plans:
        mine[int(label.split("-")[1])].append(label)

    def work(number: int) -> dict[str, Any]:
        start.wait()
        return {label: perform(world, label, plans[label].kind) for label in mine[number]}

    with ThreadPoolExecutor(CALLERS) as pool:
        results: dict[str, Any] = {}
        for part in pool.map(work, range(CALLERS)):
            results |= part
    return results


def plans_for(seed: int, calls: int = 3) -> dict[str, Plan]:
    rng = random.Random(seed)
    kinds = ("chat", "stream", "structured", "embed")
    return {f"call-{i}-{j}": make_plan(rng.choice(kinds), rng) for i in range(CALLERS) for j in range(calls)}


def check_books(world: World) -> None:
    """Every request has its line, every line its request; the budget says what the lines say."""
    records = world.ledger.records()
    lines = defaultdict(list)
    for record in records:
        if record.sent:
            lines[record.task].append(record)
    assert len({(record.call, record.attempt) for record in records}) == len(records)
    assert {label: [r.outcome for r in own] for label, own in lines.items()} == {
        label: [OUTCOMES[step] for step in steps] for label, steps in world.storm.seen.items()
    }
    for own in lines.values():
        for call in {record.call for record in own}:
            attempts = [record for record in own if record.call == call]
            assert [record.attempt for record in attempts] == list(range(1, len(attempts) + 1))
            for before, after in itertools.pairwise(attempts):
                assert after.wait_s >= (before.retry_after_s or 0.0)
    assert sum(len(own) for own in lines.values()) == len(world.server.requests)
    charged = [r.cost_usd if r.cost_usd is not None else r.bound_usd for own in lines.values() for r in own]
    assert sum(charged, Decimal(0)) == world.budget.spent.usd
    assert world.budget.spent.calls == len(world.server.requests)
    assert world.budget.reserved.calls == 0
    assert world.budget.reserved.tokens == 0
    assert world.budget.reserved.usd == 0


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_lost_or_doubled(world, seed):
    plans = plans_for(seed)
    with world(plans, BudgetLimits(usd=Decimal(5))) as w:
        results = run_callers(w, plans)
        check_books(w)
    assert results.keys() == plans.keys()
    for label, plan in plans.items():
        result = results[label]
        assert plan.left == [], "every step of the plan was met"
        if plan.succeeds:
            expected = {"chat": Reply, "stream": Reply, "embed": tuple}.get(plan.kind)
            if plan.kind == "structured":
                assert result.value == Claim(metric=label, value=1.0)
                assert result.repairs == plan.steps.count("unfit")
            else:
                assert isinstance(result, expected), (plan, result)
                assert plan.kind == "embed" or result.text == label
        else:
            assert isinstance(result, ModelError), (plan, result)
            assert result.kind.value == OUTCOMES[plan.steps[-1]]
    used = {step for plan in plans.values() for step in plan.steps}
    assert len(used) >= 12, "the storm is a storm"


@pytest.mark.parametrize(
    "limits", [BudgetLimits(usd=Decimal("0.02")), BudgetLimits(tokens=1500), BudgetLimits(calls=40)], ids=str
)
def test_no_budget_is_exceeded(world, limits):
    plans = plans_for(7)
    with world(plans, limits) as w:
        results = run_callers(w, plans)
        check_books(w)
        refused = [result for result in results.values() if isinstance(result, BudgetError)]
        assert refused
        # who gets in first is up to the scheduler: in one of many runs all who did were answered with failures only
        assert w.server.requests, "the budget lets calls through until it is used up"
        assert all(error.kind is FailureKind.BUDGET_EXCEEDED for error in refused)
        for name in ("usd", "tokens", "calls"):
            limit = getattr(limits, name)
            if limit is not None:
                assert all(getattr(amount, name) <= limit for amount in w.storm.committed)
                assert getattr(w.budget.spent, name) <= limit
        # a refused call left nothing behind at the endpoint beyond the attempts that its lines show
        assert sum(len(steps) for steps in w.storm.seen.values()) == len(w.server.requests)


def test_32_calls_are_really_under_way_at_once(world):
    plans = {f"call-{i}-0": Plan("stream" if i % 2 else "chat", ["answer"]) for i in range(CALLERS)}
    with world(plans) as w:
        inner = w.storm.__call__

        def gated(endpoint: str, body: dict[str, Any]) -> Turn | None:
            turn = inner(endpoint, body)
            if len(w.storm.seen) == CALLERS:
                w.server.release("all are here")
            return turn.evolve(hold="all are here")

        w.server._state.responder = gated
        results = run_callers(w, plans)
        check_books(w)
    assert {label: reply.text for label, reply in results.items()} == {label: label for label in plans}


def test_cancelling_ends_all_callers(world):
    """All hang; the last to arrive cancels. Their cost is unknown: charged at the worst case, never zero."""
    plans = {f"call-{i}-0": Plan("chat", ["answer"]) for i in range(CALLERS)}
    with world(plans, BudgetLimits(usd=Decimal(5))) as w:
        token = w.client.cancel
        everyone = threading.Event()

        def hang(endpoint: str, body: dict[str, Any]) -> Turn:
            w.storm(endpoint, body)
            if len(w.storm.seen) == CALLERS:
                everyone.set()
            return turns.hang()

        w.server._state.responder = hang

        def work(number: int) -> ExpbenchError | None:
            try:
                perform(w, f"call-{number}-0", "chat")
            except ExpbenchError as error:
                return error
            return None

        with ThreadPoolExecutor(CALLERS) as pool:
            ends = [pool.submit(work, number) for number in range(CALLERS)]
            assert everyone.wait(60)
            token.cancel()
            kinds = [end.result(timeout=60).kind for end in ends]
        assert kinds == [FailureKind.INTERRUPTED] * CALLERS
        records = w.ledger.records()
        assert [(r.sent, r.cost_usd, r.bound_usd is not None) for r in records] == [(True, None, True)] * CALLERS
        assert w.budget.reserved.calls == 0
        assert w.budget.spent.usd == sum(r.bound_usd for r in records)


@pytest.mark.parametrize("steps", [["answer"], ["429 wait", "hang", "malformed", "answer"]], ids=len)
def test_the_same_question_from_all_callers_is_asked_once(world, tmp_path, steps):
    label = "call-0-0"
    plans = {label: Plan("chat", steps)}
    store = ExchangeStore(tmp_path / "cache", CacheMode.USE)
    with world(plans, BudgetLimits(usd=Decimal(5)), store) as w:
        with ThreadPoolExecutor(CALLERS) as pool:
            replies = list(pool.map(lambda _: perform(w, label, "chat"), range(CALLERS)))
        check_books(w)
        assert [reply.text for reply in replies] == [label] * CALLERS
        assert sum(reply.cached for reply in replies) == CALLERS - 1
        totals = w.ledger.totals()
    assert (totals.calls, totals.cached) == (len(steps), CALLERS - 1)
