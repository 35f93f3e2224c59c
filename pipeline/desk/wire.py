"""OpenAI's chat completions as far as the desk takes them: requests checked at the door, answers in both deliveries.

What could not be honoured (several choices, log probabilities, audio, functions of the old kind) is refused and never
left out silently; sampling parameters are shown to whoever answers.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import mimetypes
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pipeline.llm.counting import TYPICAL_IMAGE, typical_text_tokens

if TYPE_CHECKING:
    from pipeline.desk.answers import Answer

__all__ = [
    "MODEL", "ChatRequest", "Message", "RequestError",
    "chunks", "completion", "digest_of", "read_request", "split_images", "waiting_chunk",
]  # fmt: skip

MODEL: Final = "desk"
"""The model that every answer names: who answered is recorded beside it, and is no model of that name."""
_DELIVERY: Final = ("stream", "stream_options")
"""Fields that say how an answer travels and not what it is."""
_UNSUPPORTED: Final = ("audio", "function_call", "functions", "logprobs", "web_search_options")


class RequestError(Exception):
    """A request that the desk does not take; the message is for the client."""


class _Wire(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)


class _Address(_Wire):
    url: str


class _Part(_Wire):
    type: Literal["text", "refusal", "image_url"]
    text: str = ""
    refusal: str = ""
    image_url: _Address | None = None


class _CalledFunction(_Wire):
    name: str
    arguments: str


class _Call(_Wire):
    id: str
    type: Literal["function"] = "function"
    function: _CalledFunction


class Message(_Wire):
    """One turn of the conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[_Part] | None = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str | None = None

    @property
    def parts(self) -> list[_Part]:
        """The content, in one form."""
        text = self.content if isinstance(self.content, str) else ""
        return [_Part(type="text", text=text)] if text else list(self.content or ())  # type: ignore[arg-type]


class _Function(_Wire):
    name: str
    description: str | None = None
    parameters: dict[str, Any] = Field(default_factory=dict)


class _Tool(_Wire):
    type: Literal["function"]
    function: _Function


class _Schema(_Wire):
    schema_: dict[str, Any] | None = Field(default=None, alias="schema")


class _Format(_Schema):  # llama.cpp takes a schema in JSON mode too
    type: Literal["text", "json_object", "json_schema"]
    json_schema: _Schema = _Schema()


class _StreamOptions(_Wire):
    include_usage: bool = False


class ChatRequest(_Wire):
    """The body of a chat completion."""

    model: str
    messages: list[Message] = Field(min_length=1)
    tools: list[_Tool] = Field(default_factory=list)
    tool_choice: Literal["none", "auto", "required"] | _Tool | None = None
    parallel_tool_calls: bool = True
    response_format: _Format = _Format(type="text")
    n: Literal[1] = 1
    stream: bool = False
    stream_options: _StreamOptions | None = None

    @property
    def answer_schema(self) -> dict[str, Any] | None:
        """JSON schema that an answer has to be valid under; None: text was asked for."""
        asked = self.response_format
        given = asked.json_schema.schema_ or asked.schema_ or {"type": "object"}
        return None if asked.type == "text" else given

    @property
    def callable_tools(self) -> dict[str, dict[str, Any]]:
        """The tools that the answer may call, with the JSON schemas of their arguments."""
        only = self.tool_choice.function.name if isinstance(self.tool_choice, _Tool) else None
        offered = [] if self.tool_choice == "none" else [tool.function for tool in self.tools]
        return {tool.name: tool.parameters for tool in offered if only in {None, tool.name}}

    @property
    def must_call(self) -> bool:
        """Is an answer without a tool call no answer?"""
        return self.tool_choice == "required" or isinstance(self.tool_choice, _Tool)


def read_request(body: Any) -> ChatRequest:
    """The request in a body.

    Raises:
        RequestError: it is none that the desk can answer.
    """
    try:
        given = {name: value for name, value in body.items() if value is not None} if isinstance(body, dict) else body
        request = ChatRequest.model_validate(given)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)[:3]
        raise RequestError("; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in found)) from error
    if extra := [name for name in _UNSUPPORTED if (request.model_extra or {}).get(name)]:
        raise RequestError(f"the desk cannot honour {', '.join(extra)}")
    if request.must_call and not request.callable_tools:
        raise RequestError("tool_choice asks for a tool that is not among the tools")
    return request


def digest_of(body: dict[str, Any]) -> str:
    """sha256 of what is asked, whichever way the answer is to travel."""
    content = {name: value for name, value in body.items() if name not in _DELIVERY}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode("ascii")).hexdigest()


def split_images(body: dict[str, Any]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """A body with file names in place of image data, and those files; addresses elsewhere stay as they are.

    Raises:
        RequestError: image data that cannot be decoded.
    """
    kept: dict[str, Any] = json.loads(json.dumps(body))
    images: dict[str, bytes] = {}
    contents = [message["content"] for message in kept["messages"] if isinstance(message.get("content"), list)]
    for part in (part for content in contents for part in content if part.get("image_url")):
        head, _, data = part["image_url"]["url"].partition(",")
        if not head.startswith("data:"):
            continue
        kind = head.removeprefix("data:").removesuffix(";base64")
        name = f"image-{len(images) + 1}{mimetypes.guess_extension(kind) or '.bin'}"
        try:
            images[name] = base64.b64decode(data, validate=True)
        except binascii.Error as error:
            raise RequestError(f"image data that is not base64: {error}") from error
        part["image_url"]["url"] = name
    return kept, images


# --- answers


def completion(request_id: str, request: ChatRequest, answer: Answer) -> dict[str, Any]:
    """An answer in one piece."""
    choice = {"index": 0, "message": _message(request_id, answer), "finish_reason": _finish(answer), "logprobs": None}
    return _frame(request_id, "chat.completion", answer) | {"choices": [choice], "usage": _usage(request, answer)}


def waiting_chunk(request_id: str) -> dict[str, Any]:
    """A piece that says nothing yet."""
    choice = {"index": 0, "delta": {"role": "assistant"}, "finish_reason": None}
    return _frame(request_id, "chat.completion.chunk", None) | {"choices": [choice]}


def chunks(request_id: str, request: ChatRequest, answer: Answer) -> Iterator[dict[str, Any]]:
    """An answer as a stream: all of it, how it ended, and the usage where that was asked for."""
    frame = _frame(request_id, "chat.completion.chunk", answer)
    yield frame | {"choices": [{"index": 0, "delta": _message(request_id, answer), "finish_reason": None}]}
    yield frame | {"choices": [{"index": 0, "delta": {}, "finish_reason": _finish(answer)}]}
    if request.stream_options is not None and request.stream_options.include_usage:
        yield frame | {"choices": [], "usage": _usage(request, answer)}


def _frame(request_id: str, kind: str, answer: Answer | None) -> dict[str, Any]:
    frame = {"id": f"chatcmpl-{request_id}", "object": kind, "created": 0, "model": MODEL}
    return frame | ({"created": int(answer.at.timestamp()), "answered_by": answer.by} if answer else {})


def _message(request_id: str, answer: Answer) -> dict[str, Any]:
    declined = answer.form == "declined"
    message: dict[str, Any] = {"role": "assistant", "content": None if declined else answer.text or None}
    calls = [
        {"index": number, "id": f"call_{request_id}_{number}", "type": "function", "function": call.model_dump()}
        for number, call in enumerate(answer.calls)
    ]
    return message | {"refusal": answer.text if declined else None} | ({"tool_calls": calls} if calls else {})


def _finish(answer: Answer) -> str:
    return "tool_calls" if answer.calls else "stop"


def _usage(request: ChatRequest, answer: Answer) -> dict[str, Any]:
    """Tokens to expect of texts that long; nobody counted them, and the field `estimated` says so."""
    parts = [part for message in request.messages for part in message.parts]
    asked = request.model_dump_json(include={"tools", "response_format"})
    asked += "".join(part.text or part.refusal for part in parts)
    asked += "".join(c.function.name + c.function.arguments for m in request.messages for c in m.tool_calls or ())
    into = typical_text_tokens(asked) + TYPICAL_IMAGE * sum(part.image_url is not None for part in parts)
    out = typical_text_tokens(answer.text + "".join(call.name + call.arguments for call in answer.calls))
    return {"prompt_tokens": into, "completion_tokens": out, "total_tokens": into + out, "estimated": True}
