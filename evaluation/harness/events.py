"""One order for what two witnesses saw: the gateway (exact, with times) and the agent's own log (rich, often without).

The agent's order stays, and each model turn comes after the call that brought it, in turn: where every answer became a
turn, and where the agent's log has no times. Otherwise (an agent's helper model) events are sorted by time. An agent's
clock starts with its first event (OpenHands: 6 s after the container), so its times are moved until its first model
turn stands after the first call.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from evaluation.trajectory import End, Event, ModelCall, ModelTurn

__all__ = ["merge_events", "split_end"]

_INSTANT_S: Final = 1e-6
"""What sums of times may be off by."""


def split_end(events: Iterable[Event]) -> tuple[list[Event], End | None]:
    """Events without the agent's own `End`, and the last of those."""
    kept: list[Event] = []
    end: End | None = None
    for event in events:
        if isinstance(event, End):
            end = event
        else:
            kept.append(event)
    return kept, end


def merge_events(gateway: Sequence[Event], agent: Sequence[Event]) -> list[Event]:
    """All events in one order; of equal times the gateway's come first."""
    if not gateway or not agent:
        return [*gateway, *agent]
    turns = sum(isinstance(event, ModelTurn) for event in agent)
    answers = sum(isinstance(event, ModelCall) and event.status < 400 for event in gateway)
    timed = any(event.at > 0 for event in agent)
    if timed and turns != answers:
        return _by_time(gateway, agent)
    if turns == 0:
        return [*gateway, *agent]  # an opaque agent: one command stands for all that it did
    merged: list[Event] = []
    waiting = list(gateway)
    behind = _behind(waiting, agent) if timed else 0.0
    now = 0.0
    for event in agent:
        if isinstance(event, ModelTurn):
            merged += _until_success(waiting)
        if timed:
            now = max(now, event.at + behind, merged[-1].at if merged else 0.0)
        merged.append(event.model_copy(update={"at": round(now, 3)}) if timed else event)
    return merged + waiting


def _until_success(waiting: list[Event]) -> list[Event]:
    """Take events up to and with the next successful call."""
    taken: list[Event] = []
    while waiting:
        taken.append(waiting.pop(0))
        last = taken[-1]
        if isinstance(last, ModelCall) and last.status < 400:
            break
    return taken


def _by_time(gateway: Sequence[Event], agent: Sequence[Event]) -> list[Event]:
    """Merge two sequences; each keeps its own order, also where a clock goes back or an event has no time."""
    merged: list[Event] = []
    left = sorted(gateway, key=lambda event: event.at)
    behind = _behind(left, agent)
    now = 0.0
    for event in agent:
        now = max(now, event.at + behind)
        while left and left[0].at <= now + _INSTANT_S:
            merged.append(left.pop(0))
        merged.append(event if event.at == now else event.model_copy(update={"at": round(now, 3)}))
    return merged + left


def _behind(gateway: Sequence[Event], agent: Sequence[Event]) -> float:
    """Seconds by which the agent's clock is behind the gateway's: no turn comes before the call that brought it."""
    call = next((event for event in gateway if isinstance(event, ModelCall) and event.status < 400), None)
    turn = next((event for event in agent if isinstance(event, ModelTurn)), None)
    if call is None or turn is None:
        return 0.0
    return max(call.at + call.duration_s - turn.at, 0.0)
