"""What the protocol server answers: turns, and the script that hands them out.

A turn is what the model "says" (text, tool calls, a structured value, a refusal) or how the endpoint fails (an error
status, a fault of the transport), and how the answer is delivered (slowly, held at a gate, cut off). A script is plain
data: the same file serves pytest and the command line. Non-goal: imitating what a model would say.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import yaml
from pydantic import Field, model_validator

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.schema import Record

__all__ = [
    "Cut",
    "Endpoint",
    "ErrorReply",
    "Fault",
    "Match",
    "Script",
    "ScriptedUsage",
    "ToolCall",
    "Turn",
    "load_script",
]

Endpoint = Literal["chat", "responses", "messages", "count_tokens", "embeddings", "models"]
Fault = Literal["reset", "hang", "malformed_json", "wrong_content_type", "empty_body"]


class ToolCall(Record):
    """One function call of the model. Text as `arguments` is sent as it is, so that broken JSON can be scripted."""

    name: str
    arguments: dict[str, Any] | str = Field(default_factory=dict)
    id: str | None = None


class ScriptedUsage(Record):
    """Token counts that the endpoint reports. `cached` and `reasoning` are parts of the other two."""

    prompt: int = Field(ge=0)
    completion: int = Field(ge=0)
    cached: int = Field(default=0, ge=0)
    reasoning: int = Field(default=0, ge=0)


class ErrorReply(Record):
    """An HTTP error in the endpoint's own form."""

    status: int = Field(ge=400, le=599)
    message: str = "scripted error"
    code: str | None = None
    type: str | None = None
    """Overrides the type that the endpoint's documentation gives for the status."""
    retry_after: float | str | None = None
    """`Retry-After`: seconds, or an HTTP date as text."""


class Cut(Record):
    """The answer ends early: after `after` events of a stream (or bytes of an unstreamed body), which it must have."""

    after: int = Field(ge=0)
    how: Literal["abrupt", "quiet", "malformed", "error"] = "abrupt"
    """`abrupt`: the connection drops (the transfer stays unfinished). `quiet`: a well-formed end without the closing
    event, which a careless client takes for the whole answer. `malformed`: an event that is no JSON. `error`: an error
    event inside the stream."""
    error: ErrorReply | None = None

    @model_validator(mode="after")
    def _error_belongs_to_error(self) -> Self:
        if (self.how == "error") != (self.error is not None):
            raise ValueError("`error` is given exactly when `how` is `error`")
        return self


class Match(Record):
    """Which requests a turn is for; what is not given matches everything."""

    endpoint: Endpoint | None = None
    model: str | None = None
    contains: str | None = None
    """A piece of text anywhere in the request's messages, instructions or input."""
    stream: bool | None = None
    has_tools: bool | None = None


class Turn(Record):
    """One answer. Exactly one of content (`text` and/or `tool_calls`, `structured`, `refusal`), `error`, `fault`."""

    text: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    structured: Any = None
    """A JSON value, sent as the text of the answer."""
    refusal: str | None = None
    error: ErrorReply | None = None
    fault: Fault | None = None

    match: Match = Match()
    times: int | None = Field(default=1, ge=1)
    """How many requests it answers; None: all that match."""
    finish_reason: Literal["stop", "length", "content_filter", "tool_calls"] | None = None
    usage: ScriptedUsage | None = None
    """None: estimated from the lengths (4 characters a token)."""
    omit_usage: bool = False
    """Some compatible servers report no usage."""
    chunk_chars: int = Field(default=12, ge=1)
    """Characters in one delta of a stream."""
    headers: dict[str, str] = Field(default_factory=dict)
    """Further response headers, e.g. `x-should-retry`."""

    delay_s: float = Field(default=0.0, ge=0)
    """Before the first byte, on the server's clock."""
    between_s: float = Field(default=0.0, ge=0)
    """Before each event of a stream, on the server's clock."""
    hold: str | None = None
    """Wait for `ProtocolServer.release(name)`: a delay that tests control without a clock."""
    hold_at: int = Field(default=0, ge=0)
    """0: hold before the first byte; n: after n events of the stream (an unstreamed answer: before the first byte)."""
    cut: Cut | None = None

    _CONTENT: ClassVar[tuple[str, ...]] = ("structured", "refusal", "error", "fault")

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kinds = [name for name in self._CONTENT if getattr(self, name) is not None]
        if self.text is not None or self.tool_calls:
            kinds.append("text or tool_calls")
        if len(kinds) != 1:
            found = ", ".join(kinds) or "nothing"
            raise ValueError(f"a turn is text and/or tool_calls, or structured, refusal, error or fault: found {found}")
        if self.cut is not None and (self.error is not None or self.fault is not None):
            raise ValueError("only content can be cut: an error or fault is sent whole")
        if (
            self.match.endpoint in ("embeddings", "count_tokens", "models")
            and self.error is None
            and self.fault is None
        ):
            raise ValueError(f"turns for {self.match.endpoint} are errors or faults: their content is computed")
        return self


class Script(Record):
    """Turns with the rule that hands them out.

    `order: sequence` gives each request the first unused turn that matches it: turns without `match` are an ordered
    script, turns with `match` serve concurrent callers. `order: conversation` gives the turn whose number is the count
    of assistant turns already in the request, so that retries get the same answer again and several agents can share a
    server; it misleads with prompts that hold few-shot assistant turns. Requests for embeddings and token counts use
    only turns that name their endpoint, and are answered by computation otherwise.
    """

    turns: tuple[Turn, ...] = ()
    default: Turn | None = None
    """Answers when no turn is left; None: status 500 with a message that says so."""
    order: Literal["sequence", "conversation"] = "sequence"

    @model_validator(mode="after")
    def _conversation_is_numbered(self) -> Self:
        if self.order == "conversation" and any(t.times != 1 or t.match != Match() for t in self.turns):
            raise ValueError("with `order: conversation` turns go by their number: no `match`, no `times`")
        return self

    @classmethod
    def of(cls, *turns: Turn, default: Turn | None = None) -> Script:
        """An ordered script."""
        return cls(turns=turns, default=default)


class _JsonTypes(yaml.SafeLoader):
    """YAML whose plain scalars are JSON's: no dates, no octal, and `no` is a word."""


_JsonTypes.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", r"^(?:true|false)$", "tf"),
    ("null", r"^(?:null|~|)$", ["n", "~", ""]),
    ("int", r"^-?(?:0|[1-9][0-9]*)$", "-0123456789"),
    ("float", r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?$", "-0123456789"),
):
    _JsonTypes.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), list(_first))
# PyYAML's own float constructor takes `1e3` too; what the pattern above lets through is JSON


def load_script(path: Path) -> Script:
    """Read a script from JSON (`*.json`) or YAML, whose plain scalars have JSON's types here.

    Raises:
        ExpbenchError: `RECORD_INVALID`, naming the file and the fields that do not fit.
    """
    try:
        text = path.read_text(encoding="utf-8")
        # PyYAML does not take all of JSON: U+007F in a text is an error there (found by the property test)
        data = json.loads(text) if path.suffix == ".json" else yaml.load(text, Loader=_JsonTypes)
        return Script.model_validate(data or {})
    except (yaml.YAMLError, ValueError, OSError) as error:  # pydantic's and json's errors are ValueErrors
        raise ExpbenchError(
            FailureKind.RECORD_INVALID,
            str(path),
            f"is not a script: {error}",
            consequence="The protocol server was not started",
            next_step="Correct the named fields; docs/models.md shows a script",
        ) from error
