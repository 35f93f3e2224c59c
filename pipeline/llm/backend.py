"""The wire: LangChain's chat models, and the official `openai` client for embeddings.

The only module that imports them, and only when the first call is made (together they take about 3 s). It makes single
attempts and converts; retries, money and caching are the client's.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from pipeline.errors import FailureKind
from pipeline.llm.cleaning import clean_text
from pipeline.llm.config import Api, ModelConfig
from pipeline.llm.errors_map import CutStreamError, ModelError
from pipeline.llm.redact import StreamRedactor, protect_loggers, redact_content, redact_value
from pipeline.llm.schemas import simple_schema
from pipeline.llm.types import (
    FinishReason,
    ImagePart,
    InvalidToolCall,
    Message,
    Parameters,
    Reply,
    Request,
    TextPart,
    ToolCall,
    Usage,
)

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage

__all__ = ["Backend"]

_FINISH = {
    "stop": FinishReason.STOP, "end_turn": FinishReason.STOP, "stop_sequence": FinishReason.STOP,
    "length": FinishReason.LENGTH, "max_tokens": FinishReason.LENGTH, "tool_calls": FinishReason.TOOL_CALLS,
    "function_call": FinishReason.TOOL_CALLS, "tool_use": FinishReason.TOOL_CALLS,
    "content_filter": FinishReason.REFUSAL, "refusal": FinishReason.REFUSAL,
}  # fmt: skip


class Backend:
    """Connections to one endpoint."""

    def __init__(self, config: ModelConfig, key: SecretStr) -> None:
        self.config = config
        protect_loggers()
        self._http: Any = None
        self._key = key
        self._responses: BaseChatModel | None = None
        self._model = self._openai(key) if config.provider == "openai" else self._other(key)

    def _openai(self, key: SecretStr, *, responses: bool = False) -> BaseChatModel:
        import httpx2
        import openai
        from langchain_openai import ChatOpenAI

        if self._http is None:
            limits = httpx2.Limits(max_connections=self.config.concurrency, max_keepalive_connections=None)
            self._http = openai.DefaultAsyncHttpxClient(limits=limits, timeout=self.config.timeout_s)
        return ChatOpenAI(
            model=self.config.model,
            api_key=key,
            base_url=self.config.url,
            timeout=self.config.timeout_s,
            max_retries=0,  # ours are counted, recorded and paid for
            stream_usage=True,
            stream_chunk_timeout=None,  # the deadline of the attempt covers it
            use_responses_api=responses,
            store=False if responses else None,  # the Responses API keeps what it is sent unless it is told not to
            cache=False,
            http_async_client=self._http,
        )

    def _other(self, key: SecretStr) -> BaseChatModel:
        try:
            from langchain.chat_models import init_chat_model

            options: dict[str, Any] = {"base_url": self.config.base_url} if self.config.base_url else {}
            options |= {"api_key": key, "timeout": self.config.timeout_s, "max_retries": 0, "cache": False}
            model: BaseChatModel = init_chat_model(self.config.model, model_provider=self.config.provider, **options)
        except (ImportError, ValueError) as error:
            cause = str(error)
        else:
            return model
        raise ModelError(
            FailureKind.TOOL_MISSING,
            self.config.url,
            cause,
            consequence="The model was not asked",
            next_step=f"Install expbench with the extra [{self.config.provider}], or correct the provider's name",
        )

    async def close(self) -> None:
        """Close the connections."""
        if self._http is not None:
            await self._http.aclose()

    # --- chat ---

    async def chat(
        self,
        request: Request,
        parameters: Parameters,
        deadline_s: float,
        on_text: Callable[[str], None] | None,
        api: Api = "chat",
    ) -> Reply:
        """One attempt, streamed when `on_text` wants the pieces. Key of the reply is left empty."""
        from langsmith import tracing_context

        messages = [_to_langchain(message) for message in request.messages]
        model, options = self._options(request, parameters, api, stream=on_text is not None)
        # Tracing would send papers to a third party because of a variable that was set for something else.
        with tracing_context(enabled=False):
            async with asyncio.timeout(deadline_s):
                if on_text is None:
                    return self._reply(await model.ainvoke(messages, **options))
                try:
                    return self._reply(await _streamed(model, messages, options, on_text))
                except BaseException as error:
                    # The frames keep half-read streams of the HTTP client alive until the garbage collector meets
                    # them in some other thread; let go here, they are closed on their own loop.
                    traceback.clear_frames(error.__traceback__)
                    raise

    def _options(
        self, request: Request, parameters: Parameters, api: Api, *, stream: bool
    ) -> tuple[Any, dict[str, Any]]:
        sent = parameters.model_dump(include={"temperature", "top_p", "seed"}, exclude_none=True)
        if parameters.stop:
            sent["stop"] = list(parameters.stop)
        tools = [{"type": "function", "function": tool.model_dump(mode="json")} for tool in request.tools]
        if self.config.provider != "openai":
            return self._other_options(request, parameters, sent, tools)
        options: dict[str, Any] = {"tools": tools} if tools else {}
        if tools and parameters.tool_choice:
            options["tool_choice"] = parameters.tool_choice
        if api == "responses":
            return self._responses_model(), options | {"extra_body": self._responses_body(request, parameters, sent)}
        # In the body and not as LangChain's own argument: that one goes through a client-side parser, which turns
        # answers that do not fit into exceptions and loses their token counts.
        body: dict[str, Any] = {self.config.tokens_field: parameters.max_output_tokens}
        if request.response_schema is not None:
            body["response_format"] = _response_format(request.response_schema, request.response_mode)
        options |= sent | {"extra_body": body | dict(parameters.extra)}
        if stream:
            options["stream_usage"] = True
        return self._model, options

    def _responses_model(self) -> BaseChatModel:
        if self._responses is None:
            self._responses = self._openai(self._key, responses=True)
        return self._responses

    def _responses_body(self, request: Request, parameters: Parameters, sent: dict[str, Any]) -> dict[str, Any]:
        """The body's own fields; sampling parameters too, because LangChain leaves some out without a word."""
        self._refuse([("a seed", "seed" in sent), ("stop sequences", "stop" in sent)], "the Responses API")
        extra = dict(parameters.extra)
        if "reasoning_effort" in extra:
            extra["reasoning"] = {"effort": extra.pop("reasoning_effort")}
        body: dict[str, Any] = {"max_output_tokens": parameters.max_output_tokens} | sent
        if request.response_schema is not None and request.response_mode == "json_schema":
            body["text"] = {"format": {"type": "json_schema", **request.response_schema}}
        elif request.response_schema is not None:
            body["text"] = {"format": {"type": "json_object"}}
        return body | extra

    def _refuse(self, given: list[tuple[str, bool]], where: str) -> None:
        """Say what cannot be sent instead of leaving it out."""
        unsupported = [name for name, present in given if present]
        if unsupported:
            raise ModelError(
                FailureKind.REQUEST_REJECTED,
                self.config.url,
                f"{' and '.join(unsupported)} cannot be sent to {where}",
                consequence="The model was not asked",
                next_step="Leave it out of the parameters, or use another model",
            )

    def _other_options(
        self, request: Request, parameters: Parameters, sent: dict[str, Any], tools: list[dict[str, Any]]
    ) -> tuple[Any, dict[str, Any]]:
        self._refuse(
            [("a seed", parameters.seed is not None), ("a response schema", request.response_schema is not None)],
            "this provider",
        )
        model: Any = self._model
        if tools:
            choice = {"required": "any"}.get(parameters.tool_choice or "", parameters.tool_choice)
            model = self._model.bind_tools(tools, **({"tool_choice": choice} if choice else {}))
        return model, sent | {"max_tokens": parameters.max_output_tokens} | dict(parameters.extra)

    def _reply(self, message: AIMessage) -> Reply:
        metadata = message.response_metadata or {}
        refusal = message.additional_kwargs.get("refusal") or _refusal_block(message.content)
        finish = _FINISH.get(_reason(metadata, calls=bool(message.tool_calls or message.invalid_tool_calls)))
        finish = finish or FinishReason.OTHER
        calls, invalid = _calls(message)
        return Reply(
            text=clean_text(str(message.text)),
            tool_calls=calls,
            invalid_tool_calls=invalid,
            finish_reason=FinishReason.REFUSAL if refusal else finish,
            refusal=clean_text(str(refusal)) if refusal else None,
            usage=_usage(message),
            model=redact_content(str(metadata.get("model_name") or metadata.get("model") or self.config.model)),
            fingerprint=metadata.get("system_fingerprint") or None,
            key="",
        )

    # --- embeddings ---

    async def embed(
        self, texts: list[str], dimensions: int | None, deadline_s: float
    ) -> tuple[list[tuple[float, ...]], Usage | None]:
        """Vectors of the texts, in their order, and the tokens used; one attempt."""
        client: Any = getattr(self._model, "root_async_client", None)
        if client is None:
            raise ModelError(
                FailureKind.REQUEST_REJECTED,
                self.config.url,
                "embeddings are offered for OpenAI-compatible endpoints only",
                consequence="Nothing was embedded",
            )
        # Plain numbers: the client's default, base64, is not known to all local servers.
        options: dict[str, Any] = {"encoding_format": "float"} | ({"dimensions": dimensions} if dimensions else {})
        async with asyncio.timeout(deadline_s):
            answer = await client.embeddings.create(model=self.config.model, input=texts, **options)
        vectors = {item.index: tuple(float(x) for x in item.embedding) for item in answer.data}
        if sorted(vectors) != list(range(len(texts))) or not all(vectors.values()):
            raise ValueError(f"{len(texts)} texts were sent and {len(vectors)} vectors came back")
        usage = getattr(answer, "usage", None)
        counted = Usage(input_tokens=usage.prompt_tokens, output_tokens=0) if usage is not None else None
        return [vectors[index] for index in range(len(texts))], counted


async def _streamed(model: Any, messages: list[Any], options: dict[str, Any], on_text: Callable[[str], None]) -> Any:
    whole: Any = None
    clean = StreamRedactor()
    async with contextlib.aclosing(model.astream(messages, **options)) as chunks:
        async for chunk in chunks:
            whole = chunk if whole is None else whole + chunk
            if piece := clean.feed(str(chunk.text)):
                on_text(piece)
    metadata = whole.response_metadata if whole is not None else {}
    # The protocol says how an answer ended; a connection that just closes looks like a short answer otherwise.
    if not _reason(metadata, calls=False):
        raise CutStreamError("the stream ended before the answer did")
    if piece := clean.rest():
        on_text(piece)
    return whole


def _response_format(schema: dict[str, Any], mode: str) -> dict[str, Any]:
    if mode == "json_schema":
        return {"type": "json_schema", "json_schema": schema}
    shape = simple_schema(schema["schema"])
    return {"type": "json_object"} | ({"schema": shape} if shape is not None else {})


def _reason(metadata: dict[str, Any], *, calls: bool) -> str:
    """Why the answer ended, in the words of chat completions; empty when the endpoint did not say that it had."""
    reason = metadata.get("finish_reason") or metadata.get("stop_reason")
    if reason:
        return str(reason)
    if metadata.get("status") == "incomplete":  # the Responses API
        why = (metadata.get("incomplete_details") or {}).get("reason")
        return {"max_output_tokens": "length"}.get(str(why), str(why))
    if metadata.get("status") == "completed":
        return "tool_calls" if calls else "stop"
    return ""


def _refusal_block(content: Any) -> str | None:
    """The Responses API refuses inside the content."""
    blocks = content if isinstance(content, list) else []
    said = [str(block.get("refusal") or "") for block in blocks if isinstance(block, dict)]
    return "".join(said) or None


def _calls(message: AIMessage) -> tuple[tuple[ToolCall, ...], tuple[InvalidToolCall, ...]]:
    """The tool calls of a reply; one that no JSON can hold (NaN, an array) is invalid, as the model has to hear."""
    calls: list[ToolCall] = []
    invalid = [
        InvalidToolCall(
            id=call["id"] or f"invalid_{i}",
            name=clean_text(call["name"] or ""),
            arguments=clean_text(call["args"] or ""),
            error=clean_text(call["error"] or ""),
        )
        for i, call in enumerate(message.invalid_tool_calls)
    ]
    for i, call in enumerate(message.tool_calls):
        name, given = clean_text(call["name"]), call["args"]
        try:
            # lone surrogates, which JSON may spell and no encoding can hold, are replaced; so are our keys
            arguments: Any = json.loads(clean_text(json.dumps(given, ensure_ascii=False, allow_nan=False)))
            calls.append(ToolCall(id=call["id"] or f"call_{i}", name=name, arguments=redact_value(arguments)))
        except ValueError as error:
            text = clean_text(repr(given))
            invalid.append(InvalidToolCall(id=call["id"] or f"call_{i}", name=name, arguments=text, error=str(error)))
    return tuple(calls), tuple(invalid)


def _usage(message: AIMessage) -> Usage | None:
    counted = message.usage_metadata
    if not counted:
        return None
    into = counted.get("input_token_details") or {}
    out = counted.get("output_token_details") or {}
    return Usage(
        input_tokens=counted["input_tokens"],
        output_tokens=counted["output_tokens"],
        cached_input_tokens=into.get("cache_read") or 0,
        cache_write_tokens=into.get("cache_creation") or 0,
        reasoning_tokens=out.get("reasoning") or 0,
    )


def _to_langchain(message: Message) -> BaseMessage:
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

    if message.role == "system":
        return SystemMessage(message.text)
    if message.role == "tool":
        return ToolMessage(message.text, tool_call_id=message.tool_call_id or "")
    if message.role == "assistant":
        calls: list[Any] = [
            {"id": call.id, "name": call.name, "args": dict(call.arguments), "type": "tool_call"}
            for call in message.tool_calls
        ]
        return AIMessage(message.text, tool_calls=calls)
    if all(isinstance(part, TextPart) for part in message.content):
        return HumanMessage(message.text)
    content: list[Any] = []
    for part in message.content:
        if isinstance(part, TextPart):
            content.append({"type": "text", "text": part.rendered()})
        elif isinstance(part, ImagePart):
            url = f"data:{part.media_type};base64,{base64.b64encode(part.data).decode('ascii')}"
            content.append({"type": "image_url", "image_url": {"url": url, "detail": part.detail}})
    return HumanMessage(content)
