"""How an agent's run ended: by a limit, by itself, or not at all because the endpoint or the engine failed.

It is read from what the harness saw itself, then from the agent's own log, and from its exit code last: agents exit
with 0 when their endpoint is dead, and with 1 when they are done. That a limit was reached or the machinery failed is
never taken from an agent's word: it would void its own episode.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from evaluation.agents.base import AgentAdapter, AgentLaunch
from evaluation.agents.readers.events import tail
from evaluation.harness.meter import GatewayTotals
from evaluation.trajectory import End, Event, LimitHit, ModelCall
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.sandbox.base import RunResult, StopHandle

__all__ = ["LIMITS_SEEN", "EndWatch", "ending", "require_a_run", "require_a_start", "stated_end"]

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
_STATED: Final = frozenset({"finished", "agent_error", "refused"})
"""Ends that an agent may state of itself."""


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


def require_a_start(
    agent: AgentAdapter, launch: AgentLaunch, seen: Iterable[Event], stderr: Path, *, stopped: bool
) -> None:
    """Did the agent's program begin? One of ours that ends before it asks its model anything could not be started.

    Without its model it has had no thought to act on, so what is evaluated cannot bring this about. A user's command
    is evaluated as a whole: what it does is its doing.

    Raises:
        ExpbenchError: `SANDBOX_BROKEN`.
    """
    began = stopped or agent.kind == "command" or not launch.needs_model
    if not began and not any(isinstance(event, ModelCall) for event in seen):
        raise ExpbenchError(
            FailureKind.SANDBOX_BROKEN, f"agent {agent.name}",
            f"its program ended before it asked its model anything: {tail(stderr) or 'without a word'}",
            consequence="The agent never began; nothing is known of it, the episode has no scores",
            next_step="Look at the episode's agent/stderr; install the agent's bundle anew with `expbench agents "
            "--install NAME --force`, then run the same command with --resume",
        )  # fmt: skip


def stated_end(reason: str, detail: str, otherwise: str) -> tuple[str, str]:
    """(reason, detail) of an end that an agent states; `otherwise` where only the harness can know of such a one."""
    if reason in _STATED:
        return reason, detail
    return "agent_error" if reason == "infrastructure" else otherwise, f"by its own account, {reason}: {detail}"


def ending(result: RunResult, limits: list[str], own: End | None, code: int | None) -> tuple[str, str]:
    """(reason, detail) of the end."""
    if result.failure in LIMITS_SEEN or result.failure is FailureKind.INTERRUPTED:
        return "limit", result.message
    if limits:
        return "limit", f"limit reached: {', '.join(limits)}" + (f"; {own.detail}" if own and own.detail else "")
    otherwise = "finished" if code == 0 else "agent_error"
    if own is not None:
        return stated_end(own.reason, own.detail, otherwise)
    return otherwise, "" if code == 0 else result.message
