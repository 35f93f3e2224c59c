"""What an agent is to the harness: an adapter that says how to start it and how to read what it did.

An adapter is declarative: files to lay into the container, a command line, environment variables, and readers. The
harness does the rest: container, limits, gateway, workspace, patch.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from pydantic import Field

from evaluation.task import EvaluationTask
from evaluation.trajectory import Event
from pipeline.schema import Record

__all__ = ["AgentAdapter", "AgentAvailability", "AgentContext", "AgentLaunch", "Mount"]


class Mount(Record):
    """A directory of this machine that the agent's container sees read-only (an agent's bundle)."""

    source: Path
    target: str


class AgentLaunch(Record):
    """How to start an agent in its container. `{placeholders}` do not exist: an adapter builds the final values."""

    argv: tuple[str, ...] = Field(min_length=1)
    env: dict[str, str] = Field(default_factory=dict)
    """No secrets: keys are added by the gateway, outside the container."""
    files: dict[str, str] = Field(default_factory=dict)
    """Text files for `AgentContext.inbox`, relative to it (instructions, the agent's configuration)."""
    mounts: tuple[Mount, ...] = ()
    needs_model: bool = True
    traced: bool = False
    """Record the programs that it starts: for agents whose own log does not tell."""


class AgentContext(Record):
    """What an adapter knows when it builds a launch."""

    workspace: str = "/work"
    """The masked repository inside the container; where the agent works and leaves its submission."""
    inbox: str = "/agent"
    """Where `AgentLaunch.files` lie, outside the workspace, readable only."""
    outbox: str = "/agent-out"
    """Where the agent's own logs go; copied out after the run as `EpisodeFolder.agent_logs`."""
    model: str | None = None
    base_url_openai: str | None = None
    """Gateway address inside the container, ending in `/v1`."""
    base_url_anthropic: str | None = None
    wall_s: float
    instructions: str
    seed: int = 0


class AgentAvailability(Record):
    """Can the agent run here, and if not, what is missing."""

    available: bool
    detail: str
    next_step: str = ""


@runtime_checkable
class AgentAdapter(Protocol):
    """One kind of agent."""

    name: str
    description: str
    kind: Literal["bound", "loop", "product", "command"]
    """`bound`: oracle and noop; `loop`: ours; `product`: somebody's agent; `command`: the user's own."""
    version: str | None

    def availability(self) -> AgentAvailability:
        """What `expbench agents` shows. Never raises."""

    def launch(self, task: EvaluationTask, context: AgentContext) -> AgentLaunch:
        """How to start it on this task.

        Raises:
            ExpbenchError: `TOOL_MISSING`, its bundle is not installed; `USAGE`, it needs a model and none is given.
        """

    def read_events(self, logs: Path, stdout: Path, stderr: Path) -> Iterator[Event]:
        """Events from the agent's own logs, `seq` from 0 (the harness renumbers), tolerant of a log that breaks off."""
