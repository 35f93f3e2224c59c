"""How stages tell what they are doing, without knowing who listens (terminal, JSON log, Prefect)."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

__all__ = ["Details", "Reporter", "SilentReporter"]


@runtime_checkable
class Reporter(Protocol):
    """Receives progress. Implementations must be cheap and must not raise."""

    def start(self, stage: str, total: int | None = None) -> None:
        """A stage begins; `total` is its number of steps where that is known."""

    def step(self, stage: str, message: str) -> None:
        """One more step of a stage is done."""

    def note(self, stage: str, message: str) -> None:
        """What a stage is doing at the moment, between two steps."""

    def end(self, stage: str, message: str = "") -> None:
        """A stage has ended."""

    def warn(self, message: str) -> None:
        """Something the user should see, once."""


class SilentReporter:
    """Tells nobody."""

    def start(self, stage: str, total: int | None = None) -> None:
        """Do nothing."""

    def step(self, stage: str, message: str) -> None:
        """Do nothing."""

    def note(self, stage: str, message: str) -> None:
        """Do nothing."""

    def end(self, stage: str, message: str = "") -> None:
        """Do nothing."""

    def warn(self, message: str) -> None:
        """Do nothing."""


class Details:
    """Hands on the progress of a part as notes of the whole: one validation is one step of the stage that calls it."""

    def __init__(self, reporter: Reporter, stage: str, prefix: str = "") -> None:
        self._reporter = reporter
        self._stage = stage
        self._prefix = f"{prefix}: " if prefix else ""

    def start(self, stage: str, total: int | None = None) -> None:
        """Nothing to say yet."""

    def step(self, stage: str, message: str) -> None:
        """A note of the whole."""
        self._reporter.note(self._stage, self._prefix + message)

    def note(self, stage: str, message: str) -> None:
        """A note of the whole."""
        self._reporter.note(self._stage, self._prefix + message)

    def end(self, stage: str, message: str = "") -> None:
        """A note of the whole, where there is something to say."""
        if message:
            self._reporter.note(self._stage, self._prefix + message)

    def warn(self, message: str) -> None:
        """A warning is one of the whole, too."""
        self._reporter.warn(self._prefix + message)
