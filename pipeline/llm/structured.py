"""Values instead of prose: ask with a schema, validate, and send back what does not fit, a bounded number of times.

Endpoints that enforce JSON schemas are given the schema (`json_schema`); others know JSON only and get the schema with
it and in words (`json_object`), or in words alone (`instructed`). Which kind an endpoint is, is found out by the first
call and remembered for it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from pipeline.errors import FailureKind
from pipeline.llm.capabilities import Capabilities
from pipeline.llm.config import SchemaMode
from pipeline.llm.errors_map import ModelError
from pipeline.llm.schemas import plain_schema, response_schema
from pipeline.llm.types import Message, Reply, Request, TextPart, assistant, ordered_json, user
from pipeline.schema import Record

__all__ = ["Structured", "ask_structured"]

ModelT = TypeVar("ModelT", bound=BaseModel)
_FENCED: Final = re.compile(r"```(?:json|JSON)?\s*\n(.*?)\n?\s*```", re.S)
_THOUGHT: Final = re.compile(r"\A\s*<think>.*?</think>", re.S)
_SHOWN_ERRORS: Final = 10
_SHOWN_ANSWER: Final = 8000

Ask = Callable[[Request, int], Reply]


class Structured(Record, Generic[ModelT]):
    """A validated value, and how it came about."""

    value: ModelT
    reply: Reply
    """The last one; those before it did not fit."""
    repairs: int
    """How often an answer had to be sent back."""
    mode: SchemaMode
    """How the last answer was asked for."""

    @property
    def native(self) -> bool:
        """Was the schema enforced by the endpoint, in OpenAI's form?"""
        return self.mode == "json_schema"


class _InvalidError(Exception):
    """An answer that does not fit; the message is for the model."""

    def __init__(self, message: str, *, no_json: bool = False) -> None:
        super().__init__(message)
        self.no_json = no_json


def ask_structured(
    ask: Ask,
    endpoint: Capabilities,
    request: Request,
    model: type[ModelT],
    *,
    repairs: int,
    check: Callable[[ModelT], object] | None,
) -> Structured[ModelT]:
    """See `ModelClient.structured`."""
    turns: tuple[Message, ...] = ()
    mode = endpoint.schema_mode or "json_schema"
    wrong = ""
    for repair in range(repairs + 1):
        reply, mode = _ask_once(ask, endpoint, request, turns, model, repair, mode)
        try:
            value = _parse(reply, model)
            if check is not None:
                _checked(check, value)
        except _InvalidError as error:
            wrong = str(error)
            if mode != "instructed" and error.no_json and not reply.truncated:
                mode = "instructed"  # it took the schema and ignored it
                endpoint.remember_schema_mode(mode)
            turns = (*turns, *_complaint(reply, wrong, model))
        else:
            return Structured[model](value=value, reply=reply, repairs=repair, mode=mode)  # type: ignore[valid-type]
    raise ModelError(
        FailureKind.INVALID_OUTPUT,
        f"{endpoint.config.model} at {endpoint.config.url}",
        f"no valid {model.__name__} after {repairs} repairs: {' '.join(wrong.split())[:300]}",
        attempts=repairs + 1,
        consequence="There is no value; all answers are recorded",
    )


def _ask_once(
    ask: Ask,
    endpoint: Capabilities,
    request: Request,
    turns: tuple[Message, ...],
    model: type[BaseModel],
    repair: int,
    mode: SchemaMode,
) -> tuple[Reply, SchemaMode]:
    """Ask in one mode, and in the next one where the endpoint rejects it."""
    while True:
        try:
            reply = ask(_in_mode(request, turns, model, mode), repair)
        except ModelError as error:
            following = _next_mode(mode, error)
            if following is None:
                raise
            mode = following
            continue
        # an answer with JSON shows that the mode works; any in the last mode, that the others were what was rejected
        if endpoint.schema_mode is None and (mode == "instructed" or _json_of(reply.text) is not None):
            endpoint.remember_schema_mode(mode)
        return reply, mode


def _in_mode(request: Request, turns: tuple[Message, ...], model: type[BaseModel], mode: SchemaMode) -> Request:
    asked = request if mode == "json_schema" else _instructed(request, model)
    asked = asked.evolve(messages=(*asked.messages, *turns))
    if mode == "instructed":
        return asked
    return asked.evolve(response_schema=response_schema(model), response_mode=mode)


def _next_mode(mode: SchemaMode, error: ModelError) -> SchemaMode | None:
    """The mode to try after a rejection; None: the error has another reason."""
    if error.kind not in {FailureKind.REQUEST_REJECTED, FailureKind.REPLAY_MISS} or mode == "instructed":
        return None
    # In a replay the recorded run may have known already what this endpoint takes.
    asks_for_object = error.kind is FailureKind.REPLAY_MISS or "json_object" in error.cause
    return "json_object" if mode == "json_schema" and asks_for_object else "instructed"


def _instructed(request: Request, model: type[BaseModel]) -> Request:
    text = (
        "Answer with exactly one JSON value that is valid under this JSON schema, and with nothing else - no "
        f"explanation, no code fence:\n{ordered_json(plain_schema(model))}"
    )
    first, *rest = request.messages
    if first.role == "system":
        first = first.evolve(content=(*first.content, TextPart(text="\n\n" + text)))
        return request.evolve(messages=(first, *rest))
    return request.evolve(messages=(Message(role="system", content=(TextPart(text=text),)), *request.messages))


def _parse(reply: Reply, model: type[ModelT]) -> ModelT:
    if reply.truncated:
        raise _InvalidError("The answer was cut off because it was too long. Give a shorter one.")
    text = _json_of(reply.text)
    if text is None:
        raise _InvalidError("The answer holds no JSON.", no_json=True)
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False)[:_SHOWN_ERRORS]
        lines = [f"- {'.'.join(map(str, e['loc'])) or 'the value'}: {e['msg']}" for e in found]
        more = error.error_count() - len(found)
        lines += [f"- and {more} more"] if more > 0 else []
    raise _InvalidError("The JSON does not fit the schema:\n" + "\n".join(lines))


def _checked(check: Callable[[ModelT], object], value: ModelT) -> None:
    try:
        check(value)
    except ValueError as error:
        complaint = str(error)
    else:
        return
    raise _InvalidError(f"The value is not acceptable: {complaint}")


def _json_of(text: str) -> str | None:
    """The JSON value in an answer: all of it, or what is in its code fence, or the first object or array inside."""
    text = _THOUGHT.sub("", text).strip()
    for candidate in (text, *(found[1].strip() for found in _FENCED.finditer(text))):
        if _is_json(candidate):
            return candidate
    decoder = json.JSONDecoder()
    for start in (i for i, character in enumerate(text) if character in "{["):
        try:
            _, end = decoder.raw_decode(text, start)
        except (json.JSONDecodeError, RecursionError):
            continue
        return text[start:end]
    return None


def _is_json(text: str) -> bool:
    try:
        value: Any = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        return False
    return value is not None


def _complaint(reply: Reply, wrong: str, model: type[BaseModel]) -> tuple[Message, ...]:
    said = reply.text if len(reply.text) <= _SHOWN_ANSWER else reply.text[:_SHOWN_ANSWER] + " [...]"
    schema = ordered_json(plain_schema(model))
    return (
        assistant(said or "(empty)"),
        user(f"{wrong}\nAnswer again, with the corrected JSON only. The JSON schema is:\n{schema}"),
    )
