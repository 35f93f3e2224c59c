"""The agent that does nothing: the floor of every score (with `oracle`, the ceiling, it bounds what a score can be)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Literal

from evaluation.agents.base import AgentAvailability, AgentContext, AgentLaunch
from evaluation.agents.options import parse_options
from evaluation.task import EvaluationTask
from evaluation.trajectory import Event
from pipeline.schema import Record

__all__ = ["NoopAgent"]


class _NoOptions(Record):
    """It takes none."""


class NoopAgent:
    """Ends at once and leaves the workspace as it is."""

    name: ClassVar[str] = "noop"
    description: ClassVar[str] = "does nothing: the floor of every score"
    kind: Literal["bound", "loop", "product", "command"] = "bound"
    version: str | None = "1"

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        parse_options(self.name, options or {}, _NoOptions)

    def availability(self) -> AgentAvailability:
        """Always."""
        return AgentAvailability(available=True, detail="comes with expbench; needs no model")

    def launch(self, task: EvaluationTask, context: AgentContext) -> AgentLaunch:
        """See `AgentAdapter.launch`."""
        return AgentLaunch(argv=("/bin/sh", "-c", ":"), needs_model=False)

    def read_events(self, logs: Path, stdout: Path, stderr: Path) -> Iterator[Event]:
        """There are none."""
        return iter(())
