"""The recording proxy between an agent and its model: the agent's only way out of its container.

It listens on a unix socket that is mounted into the container and on nothing else. Requests of OpenAI's and Anthropic's
protocols pass to the endpoint with the key added here, so that the container holds none; answers stream through; usage
is taken from the endpoint's own counts. Limits are kept here and not by trust: a request over one is answered with 402
and `x-should-retry: false`, which ends the agents that were tried within seconds.

Starlette on uvicorn and httpx2, in a thread of this process: request parsing, chunked bodies, keep-alive and
backpressure are theirs, and a gateway cannot outlive the harness. One gateway serves one episode.

A call that is under way when a limit is reached comes to its end: calls, tokens and money can go over by what is in
flight. When an agent leaves in the middle of an answer the rest is still read, because only its end says what it cost.

Non-goals: retries (the agent's client has its own), caching, translation between protocols.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from evaluation.episode import EpisodeLimits
from evaluation.harness.call_records import call_event, exchange_record, final_answer, oddities
from evaluation.harness.egress import Egress
from evaluation.harness.exchange import ENDPOINT_FAILURES, Call, listen, no_gateway
from evaluation.harness.meter import GatewayTotals, Meter
from evaluation.harness.policy import (
    METERED,
    forwarded_headers,
    refusal_body,
    returned_headers,
    rewrite,
    route,
    searches_by_itself,
)
from evaluation.harness.recorder import CallRecorder
from evaluation.harness.serving import ServingThread, until_started
from evaluation.harness.streams import MOST_EVENT, events, relayed, without_keys
from evaluation.harness.upstream import Upstream
from evaluation.harness.usage import EventMeter, usage_of
from evaluation.trajectory import Event, LimitHit, ModelCall, Note
from pipeline.errors import FailureKind
from pipeline.llm.prices import PriceList
from pipeline.llm.redact import redact, redact_content
from pipeline.llm.types import Usage

if TYPE_CHECKING:
    import httpx2
    from starlette.requests import Request
    from starlette.responses import Response

__all__ = ["EGRESS_SOCKET", "MODEL_SOCKET", "Gateway", "GatewayTotals"]

MODEL_SOCKET: Final = "model.sock"
EGRESS_SOCKET: Final = "egress.sock"
_MOST_REQUEST: Final = 32 << 20
"""Bytes: a context of a million tokens is about 4 MB, images come on top."""
_MOST_ANSWER: Final = 64 << 20
# A model may think for minutes before its first byte; the episode's own deadline ends what takes longer.
_READ_S: Final = 1200.0
_CONNECT_S: Final = 30.0
_CLOSE_S: Final = 10.0
_QUEUE: Final = 256


class Gateway:
    """A gateway that listens while this context is open.

    Args:
        folder: directory of the sockets, mounted into the container.
        upstreams: endpoints, at most one a provider.
        limits: calls, tokens, money and wall time (from the moment the context opens).
        prices: to price calls.
        record: file of the exchanges.
        emit: receives events, from the gateway's thread; `seq` is 0.
        broken: called once, from the gateway's thread, when going on makes no sense (credentials refused).
        model: what the run states; other models are noted.
        allow: hosts that the agent may reach beside the model (port 443); empty: none, and there is no such socket.
    """

    def __init__(
        self,
        folder: Path,
        *,
        upstreams: tuple[Upstream, ...],
        limits: EpisodeLimits,
        prices: PriceList,
        record: Path,
        emit: Callable[[Event], object],
        broken: Callable[[FailureKind, str], None],
        model: str | None = None,
        allow: tuple[str, ...] = (),
    ) -> None:
        self._folder = folder
        self._upstreams = {upstream.provider: upstream for upstream in upstreams}
        self._record_path = record
        self._emit = emit
        self._broken = broken
        self._model = model
        self._noted: set[str] = set()
        self._prices = prices
        self._meter = Meter(limits)
        self._egress = Egress(allow, lambda text: emit(Note(seq=0, at=self._at(), text=text))) if allow else None
        self._pumps: set[asyncio.Task[None]] = set()
        self._thread = ServingThread(self._serve, name="expbench-gateway")

    # --- life

    def __enter__(self) -> Self:
        """Listen.

        Raises:
            ExpbenchError: `SANDBOX_BROKEN`: the sockets cannot be made.
        """
        self._began = time.monotonic()
        self._meter.start(self._began)
        try:
            self._socket = listen(self._folder / MODEL_SOCKET)
            self._egress_socket = listen(self._folder / EGRESS_SOCKET) if self._egress else None
        except OSError as error:
            raise no_gateway(self._folder, str(error)) from error
        self._recorder = CallRecorder(self._record_path)
        if problem := self._thread.start():
            self._close()
            raise no_gateway(self._folder, problem)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop listening; calls that are under way are given up and recorded as such."""
        self._thread.stop(_CLOSE_S)
        self._close()

    def _close(self) -> None:
        self._recorder.close()
        for name in (MODEL_SOCKET, EGRESS_SOCKET):
            (self._folder / name).unlink(missing_ok=True)

    def totals(self) -> GatewayTotals:
        """What was counted so far."""
        return self._meter.totals()

    def _at(self) -> float:
        return round(time.monotonic() - self._began, 4)

    async def _serve(self, ready: Callable[[], None], closing: asyncio.Event) -> None:
        import httpx2
        import uvicorn
        from starlette.applications import Starlette
        from starlette.routing import Route as WebRoute

        self._closing = closing
        methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]
        app = Starlette(routes=[WebRoute("/{path:path}", self._handle, methods=methods)])
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # it logs a traceback for each broken stream
        config = uvicorn.Config(
            app, http="h11", ws="none", lifespan="off", log_config=None, access_log=False, log_level="critical",
            timeout_graceful_shutdown=1, server_header=False, date_header=False,
        )  # fmt: skip
        server = uvicorn.Server(config)
        timeout = httpx2.Timeout(_READ_S, connect=_CONNECT_S)
        async with httpx2.AsyncClient(timeout=timeout, follow_redirects=False) as self._client:
            egress = await self._egress.start(self._egress_socket) if self._egress and self._egress_socket else None
            serving = await until_started(server, [self._socket])
            ready()
            await closing.wait()
            if egress is not None:
                egress.close()
            server.should_exit = True
            for pump in self._pumps:
                pump.cancel()
            await asyncio.gather(*self._pumps, serving, return_exceptions=True)

    # --- one request

    async def _handle(self, request: Request) -> Response:
        headers = dict(request.headers)
        where = route(request.method, request.url.path, headers)
        if where is None:
            return self._refuse("openai", 404, "not_allowed", f"{request.url.path} is not offered here", request)
        upstream = self._upstreams.get(where.provider)
        if upstream is None:
            message = f"no {where.provider} endpoint is configured"
            return self._refuse(where.provider, 404, "not_configured", message, request)
        call = Call(where, upstream, request.url.path, self._at())
        if where.kind != "models":
            problem = await self._read(request, call)
            if problem:
                return self._refuse(where.provider, problem[0], "invalid_request_error", problem[1], request)
        if where.kind in METERED and (refused := self._over_limit(call)) is not None:
            return refused
        return await self._forward(call, forwarded_headers(headers))

    async def _read(self, request: Request, call: Call) -> tuple[int, str] | None:
        """Take in the body; (status, message) where it cannot be sent on."""
        data = bytearray()
        async for part in request.stream():
            data += part
            if len(data) > _MOST_REQUEST:
                return 413, f"the request is longer than {_MOST_REQUEST >> 20} MB"
        call.digest = hashlib.sha256(data).hexdigest()
        try:
            body = json.loads(data)
        except ValueError:
            return 400, "the request is no JSON"
        if not isinstance(body, dict):
            return 400, "the request is no JSON object"
        call.model = body["model"] if isinstance(body.get("model"), str) else None
        if call.model and searches_by_itself(call.model):
            return 403, f"{call.model} searches the web by itself, which this run does not allow"
        call.body, call.removed, call.usage_added = rewrite(call.where.kind, body)
        call.stream = bool(body.get("stream"))
        self._note_oddities(call)
        return None

    def _note_oddities(self, call: Call) -> None:
        """Say once what was taken out of requests, and which model was called that the run does not name."""
        for text in oddities(call, self._model):
            if text not in self._noted:
                self._noted.add(text)
                self._emit(Note(seq=0, at=self._at(), text=redact_content(text)))

    def _over_limit(self, call: Call) -> Response | None:
        priced = call.model is not None and call.upstream.priced(self._prices, call.model)
        over = self._meter.admit(time.monotonic(), model=call.model or "(none)", priced=priced)
        if over is None:
            return None
        if over.first:
            self._emit(LimitHit(seq=0, at=self._at(), limit=over.limit, detail=over.detail))
        return self._answer_402(call, over.detail)

    def _answer_402(self, call: Call, detail: str) -> Response:
        body = refusal_body(call.where.provider, "budget_exhausted", f"limit of this run reached: {detail}")
        self._record(call, 402, None, body)
        return final_answer(body, 402)

    def _refuse(self, provider: str, status: int, code: str, message: str, request: Request) -> Response:
        self._recorder.write(
            {"at": self._at(), "endpoint": redact(request.url.path), "method": request.method, "status": status,
             "refused": code}, None, b"", stream=False,
        )  # fmt: skip
        self._emit(ModelCall(seq=0, at=self._at(), endpoint=redact(request.url.path), status=status, cost_usd=0.0))
        return final_answer(refusal_body(provider, code, message), status)

    async def _forward(self, call: Call, headers: dict[str, str]) -> Response:
        """Send it on; how the answer comes back depends on what it is."""
        import httpx2

        method = "GET" if call.where.kind == "models" else "POST"
        content = None if method == "GET" else json.dumps(call.body).encode()
        sent = headers | {"accept-encoding": "identity"} | call.upstream.headers()
        if self._closing.is_set():
            return self._failed(call, 503, FailureKind.INTERRUPTED, "the run is over")
        outgoing = self._client.build_request(
            method, call.upstream.url + call.where.path, headers=sent, content=content
        )
        try:
            answer = await self._client.send(outgoing, stream=True)
        except httpx2.HTTPError as error:
            return self._failed(call, 502, FailureKind.NETWORK, f"{type(error).__name__}: {error}")
        except asyncio.CancelledError:  # the run is over: what the endpoint charges for it is not known
            self._done(call, 200, None, b"", whole=False)
            raise
        if answer.status_code >= 400:
            return await self._upstream_error(call, answer)
        if "text/event-stream" in answer.headers.get("content-type", ""):
            return self._streamed(call, answer)
        return await self._whole(call, answer)

    async def _whole(self, call: Call, answer: httpx2.Response) -> Response:
        import httpx2
        from starlette.responses import Response

        data = bytearray()
        try:
            async for part in answer.aiter_bytes():
                data += part
                if len(data) > _MOST_ANSWER:
                    return self._failed(call, 502, FailureKind.PROTOCOL_BROKEN, "the answer is too long")
        except httpx2.HTTPError as error:
            return self._failed(call, 502, FailureKind.PROTOCOL_BROKEN, f"{type(error).__name__}: {error}")
        except asyncio.CancelledError:
            self._done(call, answer.status_code, None, bytes(data), whole=False)
            raise
        finally:
            await answer.aclose()
        body = without_keys(bytes(data))
        try:
            usage = usage_of(call.where.kind, json.loads(body))
        except ValueError:
            usage = None
        self._done(call, answer.status_code, usage, body, whole=True)
        return Response(body, status_code=answer.status_code, headers=returned_headers(answer.headers))

    async def _upstream_error(self, call: Call, answer: httpx2.Response) -> Response:
        """Pass an error on; refused credentials are ours, not the agent's, and end the run."""
        import httpx2
        from starlette.responses import Response

        try:
            data = (await answer.aread())[:MOST_EVENT]
        except httpx2.HTTPError:
            data = b""  # the status is what counts
        finally:
            await answer.aclose()
        text = redact(data.decode("utf-8", "replace"))
        kind = ENDPOINT_FAILURES.get(answer.status_code, FailureKind.OVERLOADED if answer.status_code >= 500 else None)
        if kind is FailureKind.AUTHENTICATION:
            self._broken(kind, f"{call.upstream.provider} refused the credentials ({answer.status_code})")
            return self._failed(call, 502, kind, f"status {answer.status_code}")
        if kind is not None:
            self._meter.failed(kind, f"status {answer.status_code}: {text[:300]}", admitted=call.where.kind in METERED)
        elif call.where.kind in METERED:
            self._meter.rejected()
        self._record(call, answer.status_code, None, text.encode())
        return Response(text.encode(), status_code=answer.status_code, headers=returned_headers(answer.headers))

    def _failed(self, call: Call, status: int, kind: FailureKind, detail: str) -> Response:
        from starlette.responses import Response

        self._meter.failed(kind, redact(detail), admitted=call.where.kind in METERED)
        body = refusal_body(call.where.provider, "upstream_unavailable", "the model's endpoint could not be used")
        self._record(call, status, None, redact(detail).encode())
        headers = {"content-type": "application/json"}
        if kind is FailureKind.AUTHENTICATION:
            headers["x-should-retry"] = "false"
        return Response(body, status_code=status, headers=headers)

    # --- streams

    def _streamed(self, call: Call, answer: httpx2.Response) -> Response:
        from starlette.responses import StreamingResponse

        queue: asyncio.Queue[bytes | Exception | None] = asyncio.Queue(_QUEUE)
        left = asyncio.Event()
        pump = asyncio.create_task(self._pump(call, answer, queue, left))
        self._pumps.add(pump)
        pump.add_done_callback(self._pumps.discard)
        return StreamingResponse(
            relayed(queue, left), status_code=answer.status_code, headers=returned_headers(answer.headers)
        )

    async def _pump(
        self, call: Call, answer: httpx2.Response, queue: asyncio.Queue[bytes | Exception | None], left: asyncio.Event
    ) -> None:
        """Read the stream to its end, whether or not the agent still listens, and account for it."""
        import httpx2

        meter, seen = EventMeter(call.where.kind), bytearray()
        broken: Exception | None = None
        try:
            async for event in events(answer):
                closing = meter.feed(event)
                clean = without_keys(event)
                seen += clean
                if not (closing and call.usage_added) and not left.is_set():
                    await queue.put(clean)
        except (httpx2.HTTPError, ValueError) as error:
            broken = error
        finally:
            await answer.aclose()
            self._done(call, answer.status_code, meter.usage, bytes(seen), whole=broken is None and meter.complete)
        if not left.is_set():
            await queue.put(broken)

    # --- accounts

    def _done(self, call: Call, status: int, usage: Usage | None, body: bytes, *, whole: bool) -> None:
        if call.where.kind in METERED:
            cost = None if usage is None else call.upstream.cost(self._prices, call.model, usage)
            call.cost = cost
            self._meter.succeeded(usage, cost, whole=whole)
        self._record(call, status, usage, body, whole=whole)

    def _record(self, call: Call, status: int, usage: Usage | None, body: bytes, *, whole: bool = True) -> None:
        duration = round(self._at() - call.at, 4)
        exchange = exchange_record(call, status, usage, duration, whole=whole)
        self._recorder.write(exchange, call.body, body, stream=call.stream and status < 400)
        if call.where.kind in METERED:
            self._emit(call_event(call, status, usage, duration))
