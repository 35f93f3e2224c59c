"""Answers: the files that one can be written as, and whether what a file holds answers its request.

The form of an answer is in its file's name, so that no content is ever taken for something else: a JSON value stays
bare, and is valid under the request's own schema or is refused.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn

from pydantic import Field, ValidationError

from pipeline.schema import Record, StoredRecord

if TYPE_CHECKING:
    from pipeline.desk.wire import ChatRequest

__all__ = ["FORMS", "Answer", "AnswerCall", "Form", "RefusedAnswer", "check_schemas", "forms_for", "read_answer"]

Form = Literal["text", "json", "calls", "declined"]
FORMS: Final[dict[Form, str]] = {"text": ".md", "json": ".json", "calls": ".calls.json", "declined": ".declined.md"}
"""How the name of an answer goes on after the request's id."""
_SHOWN: Final = 10
"""Defects of one answer that are listed."""


class RefusedAnswer(Exception):  # noqa: N818 - not an error of ours
    """What is wrong with an answer, for whoever wrote it."""


class AnswerCall(Record):
    """A tool call as it goes to the client: the arguments are JSON text."""

    name: str
    arguments: str


class Answer(StoredRecord):
    """An answer that was taken."""

    form: Form
    text: str = ""
    """Text, JSON text, what is said beside tool calls, or why the answer is declined."""
    calls: tuple[AnswerCall, ...] = ()
    by: str
    at: datetime
    sha256: str
    """Of the file that was taken."""


class _WrittenCall(Record):
    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)


class _WrittenCalls(Record):
    tool_calls: tuple[_WrittenCall, ...] = Field(min_length=1)
    text: str = ""


def forms_for(request: ChatRequest) -> tuple[Form, ...]:
    """The forms in which a request can be answered."""
    plain: tuple[Form, ...] = ("text" if request.answer_schema is None else "json",)
    return (*(() if request.must_call else plain), *(("calls",) if request.callable_tools else ()), "declined")


def read_answer(request: ChatRequest, form: Form, data: bytes) -> tuple[str, tuple[AnswerCall, ...]]:
    """Text and tool calls of an answer's file.

    Args:
        request: what was asked.
        form: that the file's name says.
        data: what is in it.

    Raises:
        RefusedAnswer: it is no answer to the request; says why.
    """
    allowed = [FORMS[one] for one in forms_for(request)]
    if FORMS[form] not in allowed:
        raise RefusedAnswer(f"The request takes a file that ends in {' or '.join(allowed)}, not in {FORMS[form]}.")
    try:
        text = data.decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise RefusedAnswer(f"The file is not UTF-8: {error}.") from error
    if not text:
        raise RefusedAnswer("The file is empty.")
    if form == "json":
        _validate(_parse(text), request.answer_schema or {}, "the value")
    return _read_calls(request, text) if form == "calls" else (text, ())


def _read_calls(request: ChatRequest, text: str) -> tuple[str, tuple[AnswerCall, ...]]:
    try:
        written = _WrittenCalls.model_validate(_parse(text))
    except ValidationError as error:
        found = [f"{'.'.join(map(str, e['loc'])) or 'the value'}: {e['msg']}" for e in error.errors(include_url=False)]
        raise RefusedAnswer("The file does not have the form of tool calls:\n" + _listed(found)) from error
    if len(written.tool_calls) > 1 and not request.parallel_tool_calls:
        raise RefusedAnswer("The client takes one tool call at a time.")
    tools = request.callable_tools
    for call in written.tool_calls:
        if call.name not in tools:
            raise RefusedAnswer(
                f"There is no tool `{call.name}` to call; there is {', '.join(f'`{t}`' for t in tools)}."
            )
        _validate(call.arguments, tools[call.name], f"arguments of {call.name}")
    said = written.text.encode("utf-8", "replace").decode()  # lone surrogates, which JSON may spell
    return said, tuple(AnswerCall(name=c.name, arguments=json.dumps(c.arguments)) for c in written.tool_calls)


def _parse(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise RefusedAnswer(f"The file is not JSON, or not all of it is there: {error}.") from error


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _listed(found: list[str]) -> str:
    more = [f"and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
    return "".join(f"\n- {line}" for line in (*found[:_SHOWN], *more))


def check_schemas(request: ChatRequest) -> None:
    """See that the request's schemas are some, before anybody writes an answer.

    Raises:
        ValueError: one is none.
    """
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for

    for schema in (request.answer_schema or {}, *(tool.function.parameters for tool in request.tools)):
        try:
            validator_for(schema).check_schema(schema)
        except SchemaError as error:
            raise ValueError(f"a JSON schema of the request is invalid: {error.message}") from error


def _validate(value: Any, schema: dict[str, Any], what: str) -> None:
    from jsonschema.validators import validator_for
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    try:
        # an empty registry: a reference that leads out of the schema is not fetched
        found = list(validator_for(schema)(schema, registry=Registry()).iter_errors(value))
    except (Unresolvable, re.error, RecursionError) as error:
        raise RefusedAnswer(f"The client's schema cannot be applied ({error}): decline the request.") from error
    if found:
        lines = [f"{'.'.join(map(str, e.absolute_path)) or what}: {e.message[:300]}" for e in found]
        raise RefusedAnswer(f"The file does not fit the schema ({what}):\n{_listed(lines)}")
