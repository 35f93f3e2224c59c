"""The stages' progress in Prefect: log lines with the object's name, and one progress artifact a stage."""

from __future__ import annotations

import time
from typing import Final
from uuid import UUID

from httpx import HTTPError
from prefect.artifacts import create_progress_artifact, update_progress_artifact
from prefect.exceptions import PrefectHTTPStatusError
from prefect.logging import get_run_logger

from pipeline.text import slug

__all__ = ["PrefectReporter"]

_EVERY_S: Final = 2.0
"""Between two updates of an artifact: an update is a request of 0.1 to 0.4 s on a busy machine."""


class PrefectReporter:
    """A `Reporter` for use inside a flow or task run.

    Args:
        name: the object (paper or task id), put before each line.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._log = get_run_logger()
        self._artifacts: dict[str, UUID] = {}
        self._totals: dict[str, int] = {}
        self._done: dict[str, int] = {}
        self._sent: dict[str, float] = {}

    def start(self, stage: str, total: int | None = None) -> None:
        """Begin a stage: its progress artifact appears."""
        self._log.info("%s: %s begins%s", self.name, stage, f" ({total})" if total else "")
        self._totals[stage], self._done[stage] = total or 1, 0
        self._send(stage, 0.0)

    def step(self, stage: str, message: str) -> None:
        """One of the stage's items is done."""
        self._log.info("%s: %s: %s", self.name, stage, _line(message))
        self._done[stage] = self._done.get(stage, 0) + 1
        if time.monotonic() - self._sent.get(stage, 0.0) >= _EVERY_S:
            self._send(stage, min(100.0, 100.0 * self._done[stage] / self._totals.get(stage, 1)))

    def note(self, stage: str, message: str) -> None:
        """What the stage is doing, between two steps."""
        self._log.debug("%s: %s: %s", self.name, stage, _line(message))

    def end(self, stage: str, message: str = "") -> None:
        """The stage has ended."""
        self._log.info("%s: %s ended%s", self.name, stage, f": {_line(message)}" if message else "")
        self._send(stage, 100.0)

    def warn(self, message: str) -> None:
        """A warning in the run's log."""
        self._log.warning("%s: %s", self.name, _line(message))

    def _send(self, stage: str, percent: float) -> None:
        """Create or update the artifact. A server that does not answer costs the display, never the work."""
        self._sent[stage] = time.monotonic()
        try:
            if stage in self._artifacts:
                update_progress_artifact(self._artifacts[stage], percent)
            else:
                key = slug(f"{self.name}-{stage}", 200)
                made = create_progress_artifact(percent, key=key, description=f"{stage} of {self.name}")
                assert isinstance(made, UUID), "the synchronous call returns the id"
                self._artifacts[stage] = made
        except (HTTPError, PrefectHTTPStatusError) as error:
            self._log.warning("%s: progress of %s could not be shown: %s", self.name, stage, _line(str(error)))


def _line(message: str) -> str:
    return " ".join(message.split())
