"""One exchange with a model: read from the store where it is recorded, otherwise made and recorded.

Non-goals: which request fits the context window, and whose budget pays (`client.py`); attempts and what they cost
(`attempts.py`).
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

from pipeline.errors import FailureKind
from pipeline.llm.attempts import Call, Caller
from pipeline.llm.backend import Backend
from pipeline.llm.budget import Budget
from pipeline.llm.cache import CacheMode, Exchange, ExchangeStore, describe_request, request_key
from pipeline.llm.cancel import CancelToken
from pipeline.llm.capabilities import Capabilities
from pipeline.llm.config import Api, find_key
from pipeline.llm.counting import worst_tokens
from pipeline.llm.errors_map import ModelError, wants_responses_api
from pipeline.llm.loop import loop_identity, run
from pipeline.llm.prices import PriceList
from pipeline.llm.types import Delta, FinishReason, Parameters, Reply, Request, Usage

__all__ = ["Exchanges"]

_STEADY = frozenset({FailureKind.CONTEXT_TOO_LONG, FailureKind.REQUEST_REJECTED})
"""Failures that the same request always meets: recorded, so that a replay takes the same turns."""


class Exchanges:
    """Exchanges with one model; may be used from many threads at once.

    Args:
        caller: makes calls; its configuration says which model.
        store: recorded exchanges.
        capabilities: of the endpoint.
        prices: how many tokens an image takes at the most.
    """

    def __init__(self, caller: Caller, store: ExchangeStore, capabilities: Capabilities, prices: PriceList) -> None:
        self.caller, self.store, self.capabilities, self.prices = caller, store, capabilities, prices
        self.config = caller.config
        self._backend: tuple[int, Backend] | None = None
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the connections; new ones are opened when they are needed again."""
        with self._lock:
            backend, self._backend = self._backend, None
        if backend is not None and backend[0] == loop_identity():
            run(backend[1].close(), CancelToken(), self.caller.what)

    def _connected(self) -> Backend:
        with self._lock:
            if self._backend is None or self._backend[0] != loop_identity():
                self._backend = (loop_identity(), Backend(self.config, find_key(self.config)))
            return self._backend[1]

    def chat(
        self,
        request: Request,
        budget: Budget,
        cancel: CancelToken,
        *,
        on_delta: Callable[[Delta], None] | None = None,
        repair: int = 0,
        left_out: int = 0,
    ) -> Reply:
        """The reply to a request.

        Args:
            request: cleaned, and short enough for the model.
            budget: pays for it.
            cancel: ends it.
            on_delta: receives the text as it arrives; all of it at once when it is recorded.
            repair: how many answers to the same question did not fit before this one.
            left_out: characters that were cut from the request.

        Raises:
            ModelError: no answer; `REFUSAL` and `REPLAY_MISS` included.
            BudgetError: a budget does not allow the call.
            ExpbenchError: `INTERRUPTED` when cancelled.
        """
        parameters = request.parameters or self.config.parameters
        key = request_key(self.config, request, parameters)

        def make(api: Api) -> Call[Reply]:
            return self._chat_call(request, parameters, key, on_delta, repair, left_out, api)

        with self.store.single_flight(key, cancel):
            exchange = self._stored(key)
            if exchange is not None and exchange.reply is not None:
                reply = exchange.reply.evolve(cached=True)
                self.caller.record_cached(make(self.capabilities.api), reply.usage, budget)
                if on_delta is not None and reply.text:
                    on_delta(Delta(attempt=0, text=reply.text))
            else:
                described = describe_request(self.config, request, parameters)
                self._connected()  # loading the libraries must not count as time of the call
                try:
                    reply = self._run(make, budget, cancel).evolve(key=key)
                except ModelError as error:
                    if error.kind in _STEADY:
                        failed = Exchange(
                            key=key, request=described, failure=error.kind.value, failure_cause=error.cause
                        )
                        self.store.put(failed)
                    raise
                self.store.put(Exchange(key=key, request=described, reply=reply))
        return self._unless_refused(reply.evolve(left_out_characters=left_out))

    def _run(self, make: Callable[[Api], Call[Reply]], budget: Budget, cancel: CancelToken) -> Reply:
        """Make the call, and once more through the Responses API where the endpoint offers the model there only."""
        api, may_change = self.capabilities.api, self.capabilities.api_is_open
        try:
            return self.caller.run(make(api), budget, cancel)
        except ModelError as error:
            if not (may_change and wants_responses_api(error)):
                raise
        reply = self.caller.run(make("responses"), budget, cancel)
        self.capabilities.remember_responses_api()
        return reply

    def _chat_call(
        self,
        request: Request,
        parameters: Parameters,
        key: str,
        on_delta: Callable[[Delta], None] | None,
        repair: int,
        left_out: int,
        api: Api,
    ) -> Call[Reply]:
        def show(number: int) -> Callable[[str], None] | None:
            return None if on_delta is None else lambda text: on_delta(Delta(attempt=number, text=text))

        return Call(
            kind="chat" if on_delta is None else "stream",
            key=key,
            parameters=parameters,
            worst_input_tokens=worst_tokens(request, self.prices.image_tokens(self.config)),
            worst_output_tokens=parameters.max_output_tokens,
            once=lambda number, deadline: self._connected().chat(request, parameters, deadline, show(number), api),
            usage_of=lambda reply: reply.usage,
            api=api if self.config.provider == "openai" else None,
            prompt=request.prompt,
            repair=repair,
            left_out_characters=left_out,
        )

    def _stored(self, key: str) -> Exchange | None:
        """The stored exchange; in replay a missing one is an error, and so is a stored failure."""
        exchange = self.store.get(key)
        if self.store.mode is not CacheMode.REPLAY:
            return exchange
        if exchange is None:
            raise ModelError(
                FailureKind.REPLAY_MISS, self.caller.what, f"no exchange {key[:16]} is recorded in {self.store.root}"
            )
        if exchange.failure is not None:
            raise ModelError(
                FailureKind(exchange.failure), self.caller.what, exchange.failure_cause or "failed when recorded"
            )
        return exchange

    def _unless_refused(self, reply: Reply) -> Reply:
        if reply.finish_reason is not FinishReason.REFUSAL:
            return reply
        said = " ".join((reply.refusal or reply.text or "the provider's content filter ended the answer").split())
        raise ModelError(FailureKind.REFUSAL, self.caller.what, f"the model refused: {said[:200]}", attempts=1)

    def embed(
        self, batch: dict[str, str], dimensions: int | None, budget: Budget, cancel: CancelToken
    ) -> dict[str, tuple[float, ...]]:
        """Vectors of texts, whose keys are the values of `batch` and in their order; raises as `chat` does."""
        with contextlib.ExitStack() as stack:
            for key in batch.values():
                stack.enter_context(self.store.single_flight(key, cancel))
            stored = {text: self._stored(key) for text, key in batch.items()}
            found = {text: e.vector for text, e in stored.items() if e is not None and e.vector is not None}
            missing = [text for text in batch if text not in found]
            for text in found:
                self.caller.record_cached(self._embed_call([text], batch[text], dimensions), None, budget)
            if missing:
                self._connected()
                call = self._embed_call(missing, batch[missing[0]], dimensions)
                vectors, _ = self.caller.run(call, budget, cancel)
                for text, vector in zip(missing, vectors, strict=True):
                    found[text] = vector
                    described = {**self.config.identity, "kind": "embedding", "text": text}
                    self.store.put(Exchange(key=batch[text], request=dict(described), vector=vector))
            return found

    def _embed_call(
        self, texts: list[str], key: str, dimensions: int | None
    ) -> Call[tuple[list[tuple[float, ...]], Usage | None]]:
        return Call(
            kind="embeddings",
            key=key,
            parameters=Parameters(),
            worst_input_tokens=sum(len(text.encode("utf-8")) + 16 for text in texts),
            worst_output_tokens=0,
            once=lambda _, deadline: self._connected().embed(texts, dimensions, deadline),
            usage_of=lambda value: value[1],
        )
