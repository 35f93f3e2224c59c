"""One order for what two witnesses saw: the gateway (exact, with times) and the agent's own log (rich, often without).

The log is the agent's word: nothing in it becomes evidence of the harness (`claims`).

The agent's order stays, and each model turn comes after the call that brought it, in turn: where every answer became a
turn, and where the agent's log has no times. Otherwise (an agent's helper model) events are sorted by time. An agent's
clock starts with its first event (OpenHands: 6 s after the container), so its times are moved until its first model
turn stands after the first call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from evaluation.trajectory import CommandRun, End, Event, LimitHit, ModelCall, ModelTurn, Note, Utterance

__all__ = ["claims", "merge_events"]

_INSTANT_S: Final = 1e-6
"""What sums of times may be off by."""
_MARK: Final = "the agent's log: "
"""Before every note of it: who reads notes without their origin is not taken in either."""


def claims(told: Iterable[Event], wall_s: float) -> tuple[list[Event], End | None, str]:
    """What the agent's own log tells, as the agent's word.

    Calls of the model, limits and what others said are known to the harness alone: in the log they are notes of what it
    claims. A command is never observed, and nothing happens after the end of the run.

    Args:
        told: the log.
        wall_s: what the run took.

    Returns:
        The claims without the log's own `End`; the last of those; and what only the harness may tell, counted in words
        (empty where there was none).
    """
    kept: list[Event] = []
    end: End | None = None
    taken: Counter[str] = Counter()
    for event in told:
        if isinstance(event, End):
            end = event
            continue
        claim = _claim(event)
        if claim is not event and not isinstance(event, Note):
            taken[event.kind] += 1
        kept.append(claim.model_copy(update={"origin": "agent", "at": min(event.at, wall_s)}))
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(taken.items()))
    return kept, end, f"{_MARK}it tells what only the harness can, kept as its claims: {counts}" if counts else ""


def _claim(event: Event) -> Event:
    """The event itself where an agent may tell it."""
    match event:
        case CommandRun(observed=True):
            return event.model_copy(update={"observed": False})
        case Note():
            text = event.text
        case LimitHit():
            text = f"limit of {event.limit}: {event.detail}"
        case ModelCall():
            text = f"call of {event.endpoint}, status {event.status}"
        case Utterance(role="system" | "user"):
            text = f"the {event.role} says: {event.text}"
        case _:
            return event
    return Note(seq=0, at=event.at, text=_MARK + text)


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
