"""The server's clock: real by default, moved by hand in tests, so that no test depends on a machine's speed."""

from __future__ import annotations

import threading
from typing import Protocol

__all__ = ["Clock", "ManualClock", "RealClock"]


class Clock(Protocol):
    """Where scripted delays pass."""

    def wait(self, seconds: float, stop: threading.Event) -> None:
        """Return after `seconds`, or as soon as `stop` is set and `wake` was called."""

    def wake(self) -> None:
        """Let all waiters look at their `stop` again."""


class RealClock:
    """Wall time."""

    def wait(self, seconds: float, stop: threading.Event) -> None:
        """Sleep, but not longer than the server lives."""
        stop.wait(seconds)

    def wake(self) -> None:
        """Nothing to do: waiters wait on their `stop` itself."""


class ManualClock:
    """Time that passes only by `advance`."""

    def __init__(self) -> None:
        self._now = 0.0
        self._targets: list[float] = []
        self._changed = threading.Condition()

    @property
    def now(self) -> float:
        """Seconds since the start."""
        with self._changed:
            return self._now

    def wait(self, seconds: float, stop: threading.Event) -> None:
        """Block until `advance` has moved past `seconds` from now."""
        with self._changed:
            target = self._now + seconds
            self._targets.append(target)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._now >= target or stop.is_set())

    def wake(self) -> None:
        """Let all waiters look at their `stop` again."""
        with self._changed:
            self._changed.notify_all()

    def advance(self, seconds: float) -> None:
        """Move time forward."""
        with self._changed:
            self._now += seconds
            # counted off here and not by the waiter, which may not have woken when `until_waiting` is called next
            self._targets = [target for target in self._targets if target > self._now]
            self._changed.notify_all()

    def until_waiting(self, waiters: int = 1, timeout_s: float = 30.0) -> None:
        """Block until that many delays are under way, so that `advance` meets them.

        Raises:
            TimeoutError: they never came.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._targets) >= waiters, timeout_s):
                count = len(self._targets)
                raise TimeoutError(f"{count} of {waiters} expected delays were under way after {timeout_s} s")
