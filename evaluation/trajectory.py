"""The trajectory: one typed, versioned event stream for the runs of all agents.

A trajectory is a JSONL file: the first line is a `TrajectoryHead`, every further line one event. It is append-only; a
line that was cut by a crash is the last one and is dropped when the file is read, with a problem that says so. Events
are numbered from 0 in the order in which the harness learnt of them, and findings and verdicts cite those numbers.

What an agent says or prints is data: nothing in here is ever interpreted. Every event says whose it is (`origin`), and
only the harness says so: what the agent's own log tells is a claim, whatever it calls itself.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, JsonValue

from pipeline.schema import Record, StoredRecord

__all__ = [
    "CommandRun", "End", "Event", "FileChange", "LimitHit", "ModelCall", "ModelTurn", "Note", "TokenUsage",
    "ToolResult", "ToolUse", "TrajectoryHead", "Utterance",
]  # fmt: skip


class TokenUsage(Record):
    """Tokens as the endpoint counted them."""

    input_tokens: int = Field(default=0, ge=0)
    output_tokens: int = Field(default=0, ge=0)
    cached_input_tokens: int = Field(default=0, ge=0)
    """Part of `input_tokens`."""


class ToolUse(Record):
    """A tool call that a model turn asked for."""

    id: str
    name: str
    arguments: dict[str, JsonValue] = Field(default_factory=dict)


class _Event(Record):
    seq: int = Field(ge=0)
    at: float = Field(ge=0, allow_inf_nan=False)
    """Seconds since the episode's start; 0 where the agent's own log does not say."""
    origin: Literal["harness", "agent"] = "agent"
    """Who saw it: the harness, or the agent whose log tells of it. An event that does not say (of a trajectory of
    version 1) is read as a claim."""


class Utterance(_Event):
    """Text that is neither a model's turn nor a tool's result: the instructions, a system prompt, a user turn."""

    kind: Literal["utterance"] = "utterance"
    role: Literal["system", "user", "agent"]
    text: str


class ModelTurn(_Event):
    """What the agent's model said in one turn."""

    kind: Literal["model_turn"] = "model_turn"
    text: str = ""
    reasoning: str = ""
    tool_uses: tuple[ToolUse, ...] = ()
    model: str | None = None
    usage: TokenUsage | None = None


class ToolResult(_Event):
    """What a tool other than a command gave back."""

    kind: Literal["tool_result"] = "tool_result"
    call: str
    """`ToolUse.id`."""
    name: str
    output: str
    is_error: bool = False


class CommandRun(_Event):
    """A command that was executed, with what it printed."""

    kind: Literal["command"] = "command"
    call: str | None = None
    command: str
    directory: str | None = None
    output: str = ""
    exit_code: int | None = None
    """None: it was still running, or its agent's log does not say."""
    truncated: bool = False
    duration_s: float | None = None
    observed: bool = False
    """Seen by the harness as a program that was started inside the agent's own command, which has its output; never
    true of a claim since version 2."""


class FileChange(_Event):
    """A file that a tool of the agent wrote, edited or deleted. Changes that commands make are in the patch only."""

    kind: Literal["file_change"] = "file_change"
    call: str | None = None
    path: str
    action: Literal["created", "edited", "deleted"]
    text: str = ""
    """New content, or a diff, as the agent's tool had it."""


class ModelCall(_Event):
    """One request of the agent to a model, as our gateway saw it (exact for every agent)."""

    kind: Literal["model_call"] = "model_call"
    endpoint: str
    """Path of the request, e.g. `/v1/chat/completions`."""
    status: int
    model: str | None = None
    usage: TokenUsage | None = None
    """None: the endpoint did not say."""
    cost_usd: float | None = None
    """None: unknown (no price, or no usage)."""
    request_sha256: str = ""
    duration_s: float = 0.0


class LimitHit(_Event):
    """A limit of the harness that was reached; one that an agent keeps itself is a `Note` of what it claims."""

    kind: Literal["limit"] = "limit"
    limit: Literal["wall_time", "model_calls", "tokens", "money", "output", "memory", "disk", "processes", "turns"]
    detail: str


class Note(_Event):
    """Something that the harness has to say, e.g. that a log could not be read to its end; or a claim of the agent."""

    kind: Literal["note"] = "note"
    text: str


class End(_Event):
    """The end of the agent's run; always the last event of a complete trajectory."""

    kind: Literal["end"] = "end"
    reason: Literal["finished", "limit", "agent_error", "refused", "infrastructure"]
    exit_code: int | None = None
    detail: str = ""


Event = Annotated[
    Utterance | ModelTurn | ToolResult | CommandRun | FileChange | ModelCall | LimitHit | Note | End,
    Field(discriminator="kind"),
]


class TrajectoryHead(StoredRecord):
    """First line of a trajectory file."""

    SCHEMA_VERSION: ClassVar[int] = 2

    kind: Literal["head"] = "head"
    episode: str
    """`<task>/<repeat>`."""
    agent: str
    agent_version: str | None = None
    model: str | None = None
