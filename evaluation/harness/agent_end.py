"""How an agent's run ended: by a limit, by itself, or not at all because the endpoint or the engine failed.

It is read from what the harness saw itself, then from the agent's own log, and from its exit code last: agents exit
with 0 when their endpoint is dead, and with 1 when they are done.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from evaluation.agents.base import AgentLaunch
from evaluation.harness.meter import GatewayTotals
from evaluation.trajectory import End, Event, LimitHit
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.sandbox.base import RunResult, StopHandle

__all__ = ["LIMITS_SEEN", "EndWatch", "ending", "require_a_run"]

# Agents that were tried ended 4 to 17 s after the first refusal; one that goes on may still finish its files.
_AFTER_LIMIT_S: Final = 120.0
_DEAD_AFTER: Final = 3
"""Failures of the endpoint at the end of a run, from which on the run counts as broken off by the endpoint: clients
retry two or three times and give up."""

LIMITS_SEEN: Final[dict[FailureKind, str]] = {
    FailureKind.RUN_TIMEOUT: "wall_time",
    FailureKind.RUN_OUT_OF_MEMORY: "memory",
    FailureKind.RUN_DISK_FULL: "disk",
    FailureKind.RUN_PROCESS_LIMIT: "processes",
    FailureKind.RUN_OUTPUT_LIMIT: "output",
}
"""Failures of a run -> the limit of the episode that it hit."""


class EndWatch:
    """Hands events on, and ends a run that goes on after a limit, or for which going on makes no sense."""

    def __init__(self, stop: StopHandle, emit: Callable[[Event], object]) -> None:
        self._stop = stop
        self._emit = emit
        self._timer: threading.Timer | None = None
        self.failure: tuple[FailureKind, str] | None = None

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def event(self, event: Event) -> None:
        """Hand it on; the first limit starts the clock."""
        self._emit(event)
        if isinstance(event, LimitHit) and self._timer is None:
            text = f"the agent did not end within {_AFTER_LIMIT_S:.0f} s after its limit of {event.limit}"
            self._timer = threading.Timer(_AFTER_LIMIT_S, self._stop.stop, (text,))
            self._timer.daemon = True
            self._timer.start()

    def broken(self, kind: FailureKind, detail: str) -> None:
        """Credentials were refused: no further call can succeed."""
        self.failure = self.failure or (kind, detail)
        self._stop.stop(detail)


def require_a_run(result: RunResult, totals: GatewayTotals, watch: EndWatch, launch: AgentLaunch) -> None:
    """Was it the agent that ran? What the endpoint or the engine did to it is not its result.

    Raises:
        ExpbenchError: see `AgentStep.run`.
    """
    failure = watch.failure
    if failure is None and launch.needs_model and totals.last_failure is not None:
        never = totals.calls == 0
        if never or totals.failed_at_end >= _DEAD_AFTER:
            failure = totals.last_failure, totals.last_detail
    if failure is not None:
        raise ExpbenchError(
            failure[0], "the agent's model", failure[1],
            consequence="Nothing is known of the agent, the episode has no scores",
            next_step="Check endpoint, key and model's name, then run the same command with --resume",
        )  # fmt: skip
    if not result.commands and result.failure is FailureKind.RUN_DISK_FULL:
        raise ExpbenchError(
            FailureKind.DATA_UNAVAILABLE, "workspace", result.message,
            consequence="The agent could not be started", next_step="Give the episode a larger --disk-mb",
        )  # fmt: skip


def ending(result: RunResult, limits: list[str], own: End | None, code: int | None) -> tuple[str, str]:
    """(reason, detail) of the end."""
    if result.failure in LIMITS_SEEN or result.failure is FailureKind.INTERRUPTED:
        return "limit", result.message
    if limits:
        return "limit", f"limit reached: {', '.join(limits)}" + (f"; {own.detail}" if own and own.detail else "")
    if own is not None and own.reason != "infrastructure":
        return own.reason, own.detail
    if code == 0:
        return "finished", ""
    return "agent_error", result.message
