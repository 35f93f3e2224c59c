"""Who ended a run: what the harness saw goes before what the agent says, and the endpoint's failures are not its own."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from evaluation.agents.base import AgentLaunch
from evaluation.harness import agent_end
from evaluation.harness.agent_end import LIMITS_SEEN, EndWatch, ending, require_a_run, require_a_start
from evaluation.harness.meter import GatewayTotals
from evaluation.trajectory import End, Event, LimitHit, ModelCall, Note
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.sandbox.base import CommandResult, RunResult, StopHandle

LAUNCH = AgentLaunch(argv=("x",))
RAN = RunResult(commands=(CommandResult(exit_code=0),))
HIT = LimitHit(seq=0, at=0, limit="tokens", detail="d")


class Stop(StopHandle):
    """Remembers why it was stopped."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self.stopped = threading.Event()

    def stop(self, reason: str) -> None:
        self.said.append(reason)
        self.stopped.set()


def watch() -> EndWatch:
    return EndWatch(Stop(), lambda event: None)


def failing(**totals: Any) -> GatewayTotals:
    return GatewayTotals(last_failure=FailureKind.NETWORK, last_detail="gone", **totals)


@pytest.mark.parametrize(
    "totals", [failing(calls=0, failed_at_end=1), failing(calls=5, failed_at_end=3), failing(calls=5, failed_at_end=4)]
)
def test_a_dead_endpoint_is_no_result(totals: GatewayTotals) -> None:
    with pytest.raises(ExpbenchError) as caught:
        require_a_run(RAN, totals, watch(), LAUNCH)
    assert (caught.value.kind, caught.value.cause) == (FailureKind.NETWORK, "gone")


@pytest.mark.parametrize(
    "totals", [GatewayTotals(), failing(calls=1, failed_at_end=2), failing(calls=1, failed_at_end=0)]
)
def test_an_endpoint_that_came_back_is_no_matter(totals: GatewayTotals) -> None:
    require_a_run(RAN, totals, watch(), LAUNCH)
    require_a_run(RAN, failing(calls=0, failed_at_end=9), watch(), LAUNCH.evolve(needs_model=False))


def test_refused_credentials_are_the_first_cause_and_stop_the_run() -> None:
    stop = Stop()
    seen = EndWatch(stop, lambda event: None)
    seen.broken(FailureKind.AUTHENTICATION, "wrong key")
    seen.broken(FailureKind.REQUEST_REJECTED, "later")
    assert stop.said == ["wrong key", "later"]
    with pytest.raises(ExpbenchError) as caught:
        require_a_run(RAN, failing(calls=0, failed_at_end=9), seen, LAUNCH.evolve(needs_model=False))
    assert (caught.value.kind, caught.value.cause) == (FailureKind.AUTHENTICATION, "wrong key")


def test_a_repository_that_does_not_fit_on_the_disk_is_no_result() -> None:
    full = RunResult(commands=(), failure=FailureKind.RUN_DISK_FULL, message="full")
    with pytest.raises(ExpbenchError) as caught:
        require_a_run(full, GatewayTotals(), watch(), LAUNCH)
    assert (caught.value.kind, caught.value.cause) == (FailureKind.DATA_UNAVAILABLE, "full")
    require_a_run(full.evolve(commands=RAN.commands), GatewayTotals(), watch(), LAUNCH)
    require_a_run(full.evolve(failure=FailureKind.RUN_TIMEOUT), GatewayTotals(), watch(), LAUNCH)


@pytest.mark.parametrize("failure", list(LIMITS_SEEN))
def test_limits_of_the_container_end_a_run(failure: FailureKind) -> None:
    own = End(seq=0, at=0, reason="finished")
    assert ending(RAN.evolve(failure=failure, message="m"), ["tokens"], own, 0) == ("limit", "m")
    assert set(LIMITS_SEEN.values()) == {"wall_time", "memory", "disk", "processes", "output"}


def test_only_a_limit_starts_the_clock_and_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_end, "_AFTER_LIMIT_S", 0.05)
    stop, seen = Stop(), list[Event]()
    made = EndWatch(stop, seen.append)
    with made:
        note = Note(seq=0, at=0, text="x")
        made.event(note)
        assert not stop.stopped.wait(0.2)
        made.event(HIT)
        made.event(HIT)
        assert stop.stopped.wait(5)
    assert seen == [note, HIT, HIT]
    assert stop.said == ["the agent did not end within 0 s after its limit of tokens"]


def test_an_agent_that_ends_by_itself_after_a_limit_is_not_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_end, "_AFTER_LIMIT_S", 0.1)
    stop = Stop()
    made = EndWatch(stop, lambda event: None)
    with made:
        made.event(HIT)
    assert not stop.stopped.wait(0.4)


class Agent:
    """As much of an adapter as is asked."""

    name = "somebody's"

    def __init__(self, kind: str) -> None:
        self.kind = kind


@pytest.mark.parametrize("kind", ["product", "loop", "bound", "command"])
@pytest.mark.parametrize("needs_model", [True, False])
@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize("stopped", [True, False])
def test_who_never_began(tmp_path: Path, kind: str, needs_model: bool, asked: bool, stopped: bool) -> None:
    seen: list[Event] = [Note(seq=0, at=0, text="x")]
    seen += [ModelCall(seq=0, at=0, endpoint="/v1", status=402)] if asked else []
    launch, agent = LAUNCH.evolve(needs_model=needs_model), Agent(kind)
    if kind == "command" or not needs_model or asked or stopped:
        require_a_start(agent, launch, seen, tmp_path / "stderr", stopped=stopped)  # type: ignore[arg-type]
        return
    with pytest.raises(ExpbenchError) as caught:
        require_a_start(agent, launch, seen, tmp_path / "stderr", stopped=stopped)  # type: ignore[arg-type]
    assert (caught.value.kind, caught.value.object) == (FailureKind.SANDBOX_BROKEN, "agent somebody's")
    assert caught.value.cause.endswith("anything: without a word")
