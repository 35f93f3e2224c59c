"""`POST /v1/chat/completions`: OpenAI's format, which vLLM, Ollama and llama.cpp share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.doubles.protocol_server._exchange import CREATED, Event, Exchange, Rejection, pieces
from tests.doubles.protocol_server._schemas import schema_defect, schema_name_defect
from tests.doubles.protocol_server.script import ErrorReply, ScriptedUsage

__all__ = ["ChatWire", "openai_error", "openai_error_type"]

_ROLES = {"system", "developer", "user", "assistant", "tool", "function"}


def openai_error_type(status: int, code: str | None) -> str:
    """The `type` of OpenAI's error bodies."""
    if status == 429:
        return code if code == "insufficient_quota" else "requests"
    return "server_error" if status >= 500 else "invalid_request_error"


def openai_error(reply: ErrorReply, param: str | None = None) -> dict[str, Any]:
    """OpenAI's error body."""
    kind = reply.type or openai_error_type(reply.status, reply.code)
    return {"error": {"message": reply.message, "type": kind, "param": param, "code": reply.code}}


def _usage(usage: ScriptedUsage | None) -> dict[str, Any] | None:
    if usage is None:
        return None
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.prompt + usage.completion,
        "prompt_tokens_details": {"cached_tokens": usage.cached, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning, "audio_tokens": 0},
    }


def _tool_order_defect(messages: list[Any]) -> str | None:
    """Tool answers must follow the call that they answer, and every call must be answered."""
    open_calls: set[str] = set()
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            if message.get("tool_call_id") not in open_calls:
                return (
                    f"Invalid parameter: messages[{index}] with role 'tool' must be a response to a preceding message "
                    "with 'tool_calls'."
                )
            open_calls.discard(message["tool_call_id"])
            continue
        if open_calls:
            break
        if message["role"] == "assistant":
            open_calls = {call["id"] for call in message.get("tool_calls") or []}
    if open_calls:
        missing = ", ".join(sorted(open_calls))
        return (
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            f"'tool_call_id'. The following tool_call_ids did not have response messages: {missing}"
        )
    return None


class ChatWire:
    """Builds and checks chat completions."""

    def check(self, body: dict[str, Any]) -> Rejection | None:
        """What OpenAI rejects with 400: messages, tools, response format."""
        messages = body.get("messages")
        if not isinstance(messages, list) or not messages:
            return Rejection(400, "Missing required parameter: 'messages'.", "missing_required_parameter", "messages")
        for index, message in enumerate(messages):
            if not isinstance(message, dict) or message.get("role") not in _ROLES:
                return Rejection(400, f"Invalid value: messages[{index}].role.", "invalid_value", "messages")
        if defect := _tool_order_defect(messages):
            return Rejection(400, defect, param="messages")
        return self._check_options(body) or self._check_tools(body) or self._check_format(body)

    @staticmethod
    def _check_options(body: dict[str, Any]) -> Rejection | None:
        if body.get("n") not in (None, 1):
            return Rejection(400, "This server scripts one choice: n must be 1.", "invalid_value", "n")
        if body.get("stream_options") is not None and not body.get("stream"):
            message = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
            return Rejection(400, message, None, "stream_options")
        return None

    @staticmethod
    def _check_tools(body: dict[str, Any]) -> Rejection | None:
        for index, tool in enumerate(body.get("tools") or []):
            function = tool.get("function", {}) if isinstance(tool, dict) else {}
            if function.get("strict") and (defect := schema_defect(function.get("parameters"))):
                message = f"Invalid schema for function '{function.get('name')}': {defect}"
                return Rejection(400, message, "invalid_function_parameters", f"tools[{index}].function.parameters")
        return None

    @staticmethod
    def _check_format(body: dict[str, Any]) -> Rejection | None:
        requested = body.get("response_format") or {}
        if requested.get("type") == "json_schema":
            given = requested.get("json_schema") or {}
            defect = schema_name_defect(given.get("name"))
            if not defect and given.get("strict"):
                defect = schema_defect(given.get("schema"))
            if defect:
                message = f"Invalid schema for response_format '{given.get('name')}': {defect}"
                return Rejection(400, message, None, "response_format")
        elif requested.get("type") == "json_object" and "json" not in str(body["messages"]).lower():
            message = (
                "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."
            )
            return Rejection(400, message, None, "messages")
        return None

    def _finish(self, exchange: Exchange) -> str:
        return exchange.turn.finish_reason or ("tool_calls" if exchange.turn.tool_calls else "stop")

    def whole(self, exchange: Exchange) -> dict[str, Any]:
        """A `chat.completion` object."""
        message: dict[str, Any] = {"role": "assistant", "content": exchange.text, "refusal": exchange.turn.refusal}
        if exchange.calls:
            message["tool_calls"] = [
                {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}
                for id_, name, arguments in exchange.calls
            ]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self._finish(exchange)}
        answer = {**self._head(exchange, "chat.completion"), "choices": [choice]}
        if (usage := _usage(exchange.usage)) is not None:
            answer["usage"] = usage
        return answer

    @staticmethod
    def _head(exchange: Exchange, kind: str) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{exchange.number:06d}",
            "object": kind,
            "created": CREATED,
            "model": exchange.model,
            "system_fingerprint": "fp_scripted",
        }

    def events(self, exchange: Exchange) -> Iterator[Event]:
        """`chat.completion.chunk` objects, usage when asked for, `[DONE]`."""
        head = self._head(exchange, "chat.completion.chunk")

        def chunk(delta: dict[str, Any], finish: str | None = None) -> Event:
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
            return Event(None, {**head, "choices": [choice]})

        size = exchange.turn.chunk_chars
        yield chunk({"role": "assistant", "content": "" if exchange.text is not None else None})
        for part in pieces(exchange.text or "", size):
            yield chunk({"content": part})
        for part in pieces(exchange.turn.refusal or "", size):
            yield chunk({"refusal": part})
        for index, (id_, name, arguments) in enumerate(exchange.calls):
            opening = {"index": index, "id": id_, "type": "function", "function": {"name": name, "arguments": ""}}
            yield chunk({"tool_calls": [opening]})
            for part in pieces(arguments, size):
                yield chunk({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
        yield chunk({}, self._finish(exchange))
        if (exchange.body.get("stream_options") or {}).get("include_usage") and exchange.usage is not None:
            yield Event(None, {**head, "choices": [], "usage": _usage(exchange.usage)})
        yield Event(None, "[DONE]")

    def error(self, reply: ErrorReply) -> dict[str, Any]:
        """OpenAI's error body."""
        return openai_error(reply)

    def error_event(self, reply: ErrorReply) -> Event:
        """An error body as a data event."""
        return Event(None, openai_error(reply))

    def assistant_turns(self, body: dict[str, Any]) -> int:
        """Messages of the assistant."""
        return sum(message.get("role") == "assistant" for message in body.get("messages", []))
