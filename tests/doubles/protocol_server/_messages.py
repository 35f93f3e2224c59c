"""`POST /v1/messages` and its `count_tokens`: Anthropic's format; text and tool use, streamed or not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.doubles.protocol_server._exchange import Event, Exchange, Rejection, pieces
from tests.doubles.protocol_server.script import ErrorReply

__all__ = ["MessagesWire"]

# Anthropic's documentation, "Errors": HTTP status -> error type
_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_STOP = {"length": "max_tokens", "content_filter": "refusal", "tool_calls": "tool_use", "stop": "end_turn"}


class MessagesWire:
    """Builds and checks messages."""

    def check(self, body: dict[str, Any]) -> Rejection | None:
        """`max_tokens` is required; the first message is the user's; tool results answer the tool uses before."""
        if not isinstance(body.get("max_tokens"), int):
            return Rejection(400, "max_tokens: Field required")
        return self.check_messages(body)

    @staticmethod
    def check_messages(body: dict[str, Any]) -> Rejection | None:
        """The part that `count_tokens` shares."""
        messages = body.get("messages")
        if not isinstance(messages, list) or not messages:
            return Rejection(400, "messages: at least one message is required")
        open_uses: set[str] = set()
        for index, message in enumerate(messages):
            role = message.get("role") if isinstance(message, dict) else None
            if role not in ("user", "assistant"):
                return Rejection(400, f"messages.{index}.role: Input should be 'user' or 'assistant'")
            blocks = message.get("content")
            blocks = [block for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []
            results = {block.get("tool_use_id") for block in blocks if block.get("type") == "tool_result"}
            if open_uses - results:
                missing = ", ".join(sorted(open_uses - results))
                return Rejection(
                    400,
                    f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                    f"{missing}",
                )
            if results - open_uses:
                return Rejection(400, f"messages.{index}: unexpected `tool_use_id` found in `tool_result` blocks")
            open_uses = {block["id"] for block in blocks if block.get("type") == "tool_use" and "id" in block}
        return None

    def _blocks(self, exchange: Exchange) -> list[dict[str, Any]]:
        blocks: list[dict[str, Any]] = []
        text = exchange.text if exchange.text is not None else exchange.turn.refusal
        if text is not None:
            blocks.append({"type": "text", "text": text, "citations": None})
        for call, (id_, name, _) in zip(exchange.turn.tool_calls, exchange.calls, strict=True):
            # broken arguments exist in streams only: an unstreamed `input` is JSON by construction
            value = call.arguments if isinstance(call.arguments, dict) else {}
            blocks.append({"type": "tool_use", "id": _tool_id(id_), "name": name, "input": value})
        return blocks

    @staticmethod
    def _stop(exchange: Exchange) -> str:
        if exchange.turn.refusal is not None:
            return "refusal"
        return _STOP[exchange.turn.finish_reason or ("tool_calls" if exchange.turn.tool_calls else "stop")]

    @staticmethod
    def _usage(exchange: Exchange) -> dict[str, int]:
        usage = exchange.usage
        if usage is None:
            return {"input_tokens": 0, "output_tokens": 0}
        return {
            "input_tokens": usage.prompt - usage.cached,
            "output_tokens": usage.completion,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": usage.cached,
        }

    def whole(self, exchange: Exchange) -> dict[str, Any]:
        """A `message` object."""
        return {
            "id": f"msg_{exchange.number:06d}",
            "type": "message",
            "role": "assistant",
            "model": exchange.model,
            "content": self._blocks(exchange),
            "stop_reason": self._stop(exchange),
            "stop_sequence": None,
            "usage": self._usage(exchange),
        }

    def events(self, exchange: Exchange) -> Iterator[Event]:
        """The documented sequence of events."""
        final = self.whole(exchange)
        usage = {**final["usage"], "output_tokens": min(1, final["usage"]["output_tokens"])}
        begun = {**final, "content": [], "stop_reason": None, "usage": usage}
        yield _event("message_start", message=begun)
        size = exchange.turn.chunk_chars
        raw = {_tool_id(id_): arguments for id_, _, arguments in exchange.calls}
        for index, block in enumerate(final["content"]):
            if block["type"] == "text":
                yield _event("content_block_start", index=index, content_block={"type": "text", "text": ""})
                deltas = [{"type": "text_delta", "text": part} for part in pieces(block["text"], size)]
            else:
                yield _event("content_block_start", index=index, content_block={**block, "input": {}})
                source = raw[block["id"]]
                deltas = [{"type": "input_json_delta", "partial_json": part} for part in pieces(source, size)]
            if index == 0:
                yield _event("ping")
            for delta in deltas:
                yield _event("content_block_delta", index=index, delta=delta)
            yield _event("content_block_stop", index=index)
        ending = {"stop_reason": final["stop_reason"], "stop_sequence": None}
        yield _event("message_delta", delta=ending, usage=final["usage"])
        yield _event("message_stop")

    def error(self, reply: ErrorReply) -> dict[str, Any]:
        """Anthropic's error body."""
        kind = reply.type or _ERROR_TYPES.get(reply.status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": reply.message}, "request_id": None}

    def error_event(self, reply: ErrorReply) -> Event:
        """An `error` event."""
        return Event("error", self.error(reply))

    def assistant_turns(self, body: dict[str, Any]) -> int:
        """Messages of the assistant."""
        return sum(message.get("role") == "assistant" for message in body.get("messages", []))


def _event(name: str, **data: Any) -> Event:
    return Event(name, {"type": name, **data})


def _tool_id(call_id: str) -> str:
    return call_id.replace("call_", "toolu_", 1)
