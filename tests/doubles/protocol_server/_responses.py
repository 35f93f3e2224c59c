"""`POST /v1/responses`: text, refusals and function calls; streamed or not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.doubles.protocol_server._chat import openai_error
from tests.doubles.protocol_server._exchange import CREATED, Event, Exchange, Rejection, pieces
from tests.doubles.protocol_server._schemas import schema_defect, schema_name_defect
from tests.doubles.protocol_server.script import ErrorReply

__all__ = ["ResponsesWire"]

_CALLS = ("function_call", "custom_tool_call", "local_shell_call")


class ResponsesWire:
    """Builds and checks responses."""

    def check(self, body: dict[str, Any]) -> Rejection | None:
        """Input present, schema acceptable."""
        if not body.get("input") and not body.get("prompt"):
            return Rejection(400, "Missing required parameter: 'input'.", "missing_required_parameter", "input")
        requested = (body.get("text") or {}).get("format") or {}
        if requested.get("type") == "json_schema":
            defect = schema_name_defect(requested.get("name"))
            if not defect and requested.get("strict"):
                defect = schema_defect(requested.get("schema"))
            if defect:
                return Rejection(400, f"Invalid schema for response_format: {defect}", None, "text.format.schema")
        return None

    def _items(self, exchange: Exchange) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        parts: list[dict[str, Any]] = []
        if exchange.text is not None:
            parts.append({"type": "output_text", "text": exchange.text, "annotations": [], "logprobs": []})
        if exchange.turn.refusal is not None:
            parts.append({"type": "refusal", "refusal": exchange.turn.refusal})
        if parts:
            head = {"type": "message", "id": f"msg_{exchange.number:06d}", "status": "completed"}
            items.append({**head, "role": "assistant", "content": parts})
        for index, (call_id, name, arguments) in enumerate(exchange.calls):
            item = {"type": "function_call", "id": f"fc_{exchange.number:06d}_{index}", "call_id": call_id}
            items.append({**item, "name": name, "arguments": arguments, "status": "completed"})
        return items

    def whole(self, exchange: Exchange) -> dict[str, Any]:
        """A `response` object."""
        reason = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(
            exchange.turn.finish_reason or ""
        )
        usage = exchange.usage
        return {
            "id": f"resp_{exchange.number:06d}",
            "object": "response",
            "created_at": CREATED,
            "status": "incomplete" if reason else "completed",
            "model": exchange.model,
            "output": self._items(exchange),
            "parallel_tool_calls": bool(exchange.body.get("parallel_tool_calls", True)),
            "tool_choice": exchange.body.get("tool_choice") or "auto",
            "tools": exchange.body.get("tools") or [],
            "error": None,
            "incomplete_details": {"reason": reason} if reason else None,
            "instructions": exchange.body.get("instructions"),
            "metadata": {},
            "usage": usage
            and {
                "input_tokens": usage.prompt,
                "input_tokens_details": {"cached_tokens": usage.cached},
                "output_tokens": usage.completion,
                "output_tokens_details": {"reasoning_tokens": usage.reasoning},
                "total_tokens": usage.prompt + usage.completion,
            },
        }

    def events(self, exchange: Exchange) -> Iterator[Event]:
        """The documented sequence of events, numbered."""
        for number, (name, data) in enumerate(self._unnumbered(exchange)):
            yield Event(name, {"type": name, "sequence_number": number, **data})

    def _unnumbered(self, exchange: Exchange) -> Iterator[tuple[str, dict[str, Any]]]:
        final = self.whole(exchange)
        begun = {**final, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
        yield "response.created", {"response": begun}
        yield "response.in_progress", {"response": begun}
        for index, item in enumerate(final["output"]):
            place = {"output_index": index, "item_id": item["id"]}
            empty: dict[str, Any] = {"content": []} if item["type"] == "message" else {"arguments": ""}
            opened = {**item, "status": "in_progress", **empty}
            yield "response.output_item.added", {"output_index": index, "item": opened}
            if item["type"] == "message":
                yield from self._parts(item, place, exchange.turn.chunk_chars)
            else:
                for part in pieces(item["arguments"], exchange.turn.chunk_chars):
                    yield "response.function_call_arguments.delta", {**place, "delta": part}
                done = {**place, "name": item["name"], "arguments": item["arguments"]}
                yield "response.function_call_arguments.done", done
            yield "response.output_item.done", {"output_index": index, "item": item}
        yield f"response.{final['status']}", {"response": final}

    @staticmethod
    def _parts(item: dict[str, Any], place: dict[str, Any], size: int) -> Iterator[tuple[str, dict[str, Any]]]:
        for index, part in enumerate(item["content"]):
            where = {**place, "content_index": index}
            is_text = part["type"] == "output_text"
            field = "text" if is_text else "refusal"
            logprobs: dict[str, Any] = {"logprobs": []} if is_text else {}
            stem = f"response.{part['type']}"
            yield "response.content_part.added", {**where, "part": {**part, field: ""}}
            for piece in pieces(part[field], size):
                yield f"{stem}.delta", {**where, "delta": piece, **logprobs}
            yield f"{stem}.done", {**where, field: part[field], **logprobs}
            yield "response.content_part.done", {**where, "part": part}

    def error(self, reply: ErrorReply) -> dict[str, Any]:
        """OpenAI's error body."""
        return openai_error(reply)

    def error_event(self, reply: ErrorReply) -> Event:
        """An `error` event."""
        data = {"type": "error", "sequence_number": 0, "code": reply.code, "message": reply.message, "param": None}
        return Event("error", data)

    def assistant_turns(self, body: dict[str, Any]) -> int:
        """Runs of items by the model: a run ends at a tool's output or a user's item."""
        turns, inside = 0, False
        for item in body["input"] if isinstance(body.get("input"), list) else []:
            own = item.get("type") in _CALLS or item.get("role") == "assistant"
            turns += own and not inside
            inside = own or (item.get("type") == "reasoning" and inside)
        return turns
