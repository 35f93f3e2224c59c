"""How stages tell what they are doing, without knowing who listens (terminal, JSON log, Prefect)."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

__all__ = ["Reporter", "SilentReporter"]


@runtime_checkable
class Reporter(Protocol):
    """Receives progress. Implementations must be cheap and must not raise."""

    def start(self, stage: str, total: int | None = None) -> None:
        """A stage begins; `total` is its number of steps where that is known."""

    def step(self, stage: str, message: str) -> None:
        """One more step of a stage is done or under way."""

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

    def end(self, stage: str, message: str = "") -> None:
        """Do nothing."""

    def warn(self, message: str) -> None:
        """Do nothing."""
