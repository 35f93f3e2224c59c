"""What goes to a model and what comes back: messages, tools, parameters, replies.

Values only; nothing here talks to anybody. Images travel as bytes and are known by their sha256 everywhere else (cache
keys, recorded exchanges, ledger).
"""

from __future__ import annotations

import hashlib
import json
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator

from pipeline.schema import Record

__all__ = [
    "Delta",
    "FinishReason",
    "ImagePart",
    "InvalidToolCall",
    "Message",
    "Parameters",
    "Part",
    "PromptRef",
    "Reply",
    "Request",
    "TextPart",
    "ToolCall",
    "ToolSpec",
    "Usage",
    "assistant",
    "system",
    "tool_result",
    "user",
]


class TextPart(Record):
    """Text. `elastic` text may be shortened or split by an explicit context policy; other text never is."""

    type: Literal["text"] = "text"
    text: str
    elastic: bool = False
    fence: tuple[str, str] | None = None
    """Opening and closing delimiter lines that have to stay around the text however it is shortened."""

    def rendered(self) -> str:
        """The text as it is sent."""
        return self.text if self.fence is None else f"{self.fence[0]}\n{self.text}\n{self.fence[1]}"


class ImagePart(Record):
    """An image as the bytes of its file."""

    model_config = ConfigDict(ser_json_bytes="base64")

    type: Literal["image"] = "image"
    data: bytes = Field(repr=False)
    media_type: Literal["image/png", "image/jpeg", "image/gif", "image/webp"] = "image/png"
    detail: Literal["auto", "low", "high"] = "auto"

    @property
    def digest(self) -> str:
        """sha256 of the bytes."""
        return hashlib.sha256(self.data).hexdigest()


Part = Annotated[TextPart | ImagePart, Field(discriminator="type")]


class ToolCall(Record):
    """A tool that the model wants to have called."""

    id: str
    name: str
    arguments: dict[str, JsonValue] = Field(default_factory=dict)


class InvalidToolCall(Record):
    """A tool call whose arguments are no JSON object; for the caller to report back to the model."""

    id: str
    name: str
    arguments: str
    error: str = ""


class Message(Record):
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant", "tool"]
    content: tuple[Part, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None

    @field_validator("content", mode="before")
    @classmethod
    def _text_is_one_part(cls, value: Any) -> Any:
        return (TextPart(text=value),) if isinstance(value, str) else value

    @property
    def text(self) -> str:
        """All text of the message."""
        return "".join(part.rendered() for part in self.content if isinstance(part, TextPart))


def system(text: str) -> Message:
    """A system message."""
    return Message(role="system", content=(TextPart(text=text),))


def user(*parts: str | TextPart | ImagePart) -> Message:
    """A user message of texts and images."""
    return Message(role="user", content=tuple(TextPart(text=part) if isinstance(part, str) else part for part in parts))


def assistant(text: str = "", tool_calls: tuple[ToolCall, ...] = ()) -> Message:
    """What the model said in an earlier turn."""
    return Message(role="assistant", content=(TextPart(text=text),) if text else (), tool_calls=tool_calls)


def tool_result(call: ToolCall | InvalidToolCall, text: str) -> Message:
    """The result of a tool call."""
    return Message(role="tool", content=(TextPart(text=text),), tool_call_id=call.id)


class ToolSpec(Record):
    """A tool that is offered to the model; `parameters` is a JSON schema of an object."""

    name: str = Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")
    description: str
    parameters: dict[str, JsonValue]

    @classmethod
    def of(cls, name: str, description: str, arguments: type[BaseModel]) -> ToolSpec:
        """A tool whose arguments are a pydantic model."""
        return cls(name=name, description=description, parameters=arguments.model_json_schema())


# `n` and `best_of` multiply answers, `service_tier` changes prices: a worst case would not hold with them.
_RESERVED = frozenset(
    {"messages", "model", "stream", "stream_options", "tools", "tool_choice", "response_format", "temperature", "top_p"}
    | {"seed", "stop", "max_tokens", "max_completion_tokens", "n", "best_of", "service_tier", "input", "system"}
    # of the Responses API; `store` and the others would keep papers at the provider or bring in text from elsewhere
    | {"max_output_tokens", "text", "store", "background", "conversation", "previous_response_id", "instructions"}
)


class Parameters(Record):
    """How to generate. Everything here is part of the cache key; None means the endpoint's default."""

    temperature: float | None = Field(default=None, ge=0)
    top_p: float | None = Field(default=None, gt=0, le=1)
    seed: int | None = None
    max_output_tokens: int = Field(default=4096, ge=1)
    """Always sent: without it the worst case of a call has no bound, and no budget could be kept."""
    stop: tuple[str, ...] = ()
    tool_choice: Literal["auto", "none", "required"] | None = None
    sample: int = Field(default=0, ge=0)
    """Number of the draw. Not sent; it keeps repeated draws of one prompt (panels, votes) apart in the cache."""
    extra: dict[str, JsonValue] = Field(default_factory=dict)
    """Further fields of the request body, e.g. `{"reasoning_effort": "low"}`."""

    @field_validator("extra")
    @classmethod
    def _leaves_the_rest_alone(cls, value: dict[str, JsonValue]) -> dict[str, JsonValue]:
        taken = sorted(set(value) & _RESERVED)
        if taken:
            raise ValueError(
                f"may not hold {', '.join(taken)}: they have fields of their own, or would undo the budget"
            )
        return value


class PromptRef(Record):
    """Which prompt file a request was rendered from."""

    name: str
    version: str
    digest: str


class Request(Record):
    """One question to a model."""

    messages: tuple[Message, ...] = Field(min_length=1)
    tools: tuple[ToolSpec, ...] = ()
    parameters: Parameters | None = None
    """None: the parameters of the model's configuration."""
    response_schema: dict[str, JsonValue] | None = None
    """JSON schema that the endpoint enforces (native structured output)."""
    response_mode: Literal["json_schema", "json_object"] = "json_schema"
    """In which form the schema is sent: OpenAI's, or as part of JSON mode (llama.cpp's Python server)."""
    prompt: PromptRef | None = None


class FinishReason(StrEnum):
    """Why the model stopped."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"
    REFUSAL = "refusal"
    OTHER = "other"


class Usage(Record):
    """Tokens as the endpoint counted them."""

    input_tokens: int = Field(ge=0)
    output_tokens: int = Field(ge=0)
    cached_input_tokens: int = Field(default=0, ge=0)
    """Part of `input_tokens` that the endpoint had in its own cache."""
    cache_write_tokens: int = Field(default=0, ge=0)
    """Part of `input_tokens` that the endpoint charged for writing into its cache."""
    reasoning_tokens: int = Field(default=0, ge=0)
    """Part of `output_tokens`."""

    @property
    def total(self) -> int:
        """Input and output."""
        return self.input_tokens + self.output_tokens


class Reply(Record):
    """What the model answered."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    invalid_tool_calls: tuple[InvalidToolCall, ...] = ()
    finish_reason: FinishReason
    refusal: str | None = None
    usage: Usage | None = None
    """None: the endpoint did not say."""
    model: str
    """The model's name as the endpoint gave it."""
    fingerprint: str | None = None
    """The endpoint's `system_fingerprint`: equal seeds promise equal answers under equal fingerprints only."""
    key: str
    """Key of the exchange (sha256)."""
    cached: bool = False
    left_out_characters: int = 0
    """How much of the elastic text the `shrink` policy left out of the request."""

    @property
    def truncated(self) -> bool:
        """Did the answer end because of `max_output_tokens`?"""
        return self.finish_reason is FinishReason.LENGTH

    def as_message(self) -> Message:
        """The reply as the assistant's turn of the conversation.

        Invalid tool calls are kept as calls without arguments, so that a `tool` message can answer them.
        """
        kept = tuple(ToolCall(id=call.id, name=call.name) for call in self.invalid_tool_calls)
        return assistant(self.text, self.tool_calls + kept)


class Delta(Record):
    """A piece of a streamed answer. A higher `attempt` than before starts the answer anew (the stream had broken)."""

    attempt: int
    text: str


def ordered_json(value: Any) -> str:
    """JSON text that keeps the order of keys: in schemas the order of properties decides what is generated first."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
