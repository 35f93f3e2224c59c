"""Cancelling what waits and what is under way, from any thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from pipeline.errors import ExpbenchError, FailureKind

__all__ = ["CancelToken", "Clock", "SystemClock"]


class CancelToken:
    """Set once; whoever waits with it wakes up, and calls under way are aborted."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._callbacks: dict[int, Callable[[], object]] = {}
        self._next = 0

    @property
    def cancelled(self) -> bool:
        """Was `cancel` called?"""
        return self._event.is_set()

    def cancel(self) -> None:
        """Cancel everything that carries this token; later calls fail at once."""
        self._event.set()
        with self._lock:
            callbacks = list(self._callbacks.values())
        for callback in callbacks:
            callback()

    @contextmanager
    def on_cancel(self, callback: Callable[[], object]) -> Iterator[None]:
        """Have `callback` called (from the cancelling thread) if the token is cancelled inside the block."""
        with self._lock:
            number, self._next = self._next, self._next + 1
            self._callbacks[number] = callback
        try:
            if self.cancelled:
                callback()
            yield
        finally:
            with self._lock:
                del self._callbacks[number]

    def wait(self, seconds: float) -> bool:
        """Wait for so long or until cancelled; was it cancelled?"""
        return self._event.wait(seconds)

    def check(self, what: str) -> None:
        """Raise when cancelled.

        Raises:
            ExpbenchError: `INTERRUPTED`.
        """
        if self.cancelled:
            raise ExpbenchError(
                FailureKind.INTERRUPTED,
                what,
                "was cancelled",
                consequence="There is no answer; what was spent so far is in the ledger",
                next_step="Start it again: answers that had arrived are taken from the cache",
            )


class Clock(Protocol):
    """Time as the layer sees it; tests bring their own."""

    def monotonic(self) -> float:
        """Seconds that only grow."""
        ...

    def sleep(self, seconds: float, cancel: CancelToken) -> None:
        """Wait, or return early when cancelled."""
        ...


class SystemClock:
    """The machine's clock."""

    def monotonic(self) -> float:
        """See `Clock`."""
        return time.monotonic()

    def sleep(self, seconds: float, cancel: CancelToken) -> None:
        """See `Clock`."""
        cancel.wait(seconds)
