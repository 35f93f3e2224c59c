"""The one way to a model: chat, streaming, tools, images, structured output, embeddings.

Calls are synchronous and may be made from many threads at once. They end with a result or a typed error; what they cost
is in the budget and in the ledger before they return.
"""

from __future__ import annotations

import contextlib
import queue
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Self, TypeVar

from pydantic import BaseModel

from pipeline.errors import FailureKind
from pipeline.llm.attempts import Call, Caller
from pipeline.llm.backend import Backend
from pipeline.llm.budget import Budget, BudgetLimits, Level, current_budget
from pipeline.llm.cache import (
    CacheMode,
    Exchange,
    ExchangeStore,
    describe_request,
    embedding_key,
    request_key,
)
from pipeline.llm.cancel import CancelToken, Clock, SystemClock
from pipeline.llm.capabilities import Capabilities
from pipeline.llm.cleaning import clean_request, clean_text
from pipeline.llm.config import Api, ModelConfig, find_key
from pipeline.llm.context import ContextPolicy, ask_pieces, ask_shrinking
from pipeline.llm.counting import typical_tokens, worst_tokens
from pipeline.llm.errors_map import ModelError, wants_responses_api
from pipeline.llm.ledger import CallLedger
from pipeline.llm.loop import loop_identity, run
from pipeline.llm.prices import PriceList, load_prices
from pipeline.llm.redact import register_environment
from pipeline.llm.structured import Structured, ask_structured
from pipeline.llm.types import Delta, FinishReason, Parameters, Reply, Request, Usage

__all__ = ["ModelClient"]

T = TypeVar("T")
ModelT = TypeVar("ModelT", bound=BaseModel)
_STEADY = frozenset({FailureKind.CONTEXT_TOO_LONG, FailureKind.REQUEST_REJECTED})
"""Failures that the same request always meets: recorded, so that a replay takes the same turns."""
_EMBEDDING_BATCH = 128


class ModelClient:
    """A model behind an endpoint, with its store, ledger and budget.

    Args:
        config: which model, where and how.
        store: recorded exchanges; None: no cache.
        ledger: where every attempt is written; None: nowhere.
        budget: the outermost scope; a current scope inside it (see `Budget.scope`) takes its place.
        prices: None: the shipped ones with the user's own.
        cancel: ends all calls of this client when it is cancelled.
    """

    def __init__(
        self,
        config: ModelConfig,
        *,
        store: ExchangeStore | None = None,
        ledger: CallLedger | None = None,
        budget: Budget | None = None,
        prices: PriceList | None = None,
        cancel: CancelToken | None = None,
        clock: Clock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        register_environment()
        self.config = config
        self.store = store or ExchangeStore(None, CacheMode.OFF)
        self.capabilities = Capabilities(config, self.store)
        self.prices = prices or load_prices()
        self.cancel = cancel or CancelToken()
        self._budget, self._fallback = budget, Budget()
        self._caller = Caller(
            config,
            self.prices.find(config),
            ledger,
            clock or SystemClock(),
            rng or random.Random(),  # noqa: S311 - jitter
        )
        self._backend: tuple[int, Backend] | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; the client opens new ones when it is used again."""
        with self._lock:
            backend, self._backend = self._backend, None
        if backend is not None and backend[0] == loop_identity():
            run(backend[1].close(), CancelToken(), self._caller.what)

    @contextlib.contextmanager
    def scope(self, level: Level, name: str, limits: BudgetLimits | None = None) -> Iterator[Budget]:
        """A budget scope inside the one that calls of this client count in now (see `Budget.scope`)."""
        with self._scope(None).scope(level, name, limits) as inner:
            yield inner

    # --- asking ---

    def chat(
        self,
        request: Request,
        *,
        policy: ContextPolicy = ContextPolicy.FAIL,
        budget: Budget | None = None,
        cancel: CancelToken | None = None,
    ) -> Reply:
        """Ask and wait for the whole answer.

        Args:
            policy: what to do when the request is longer than the context window: `FAIL` or `SHRINK`
                (for `SPLIT`, which has several answers, see `chat_split`).

        Raises:
            ModelError: no answer (kinds: see `pipeline.errors`, "language models"); `REFUSAL` included.
            BudgetError: a budget does not allow the call.
            ExpbenchError: `INTERRUPTED` when cancelled.
        """
        return self._chat(request, policy, budget, cancel, None, 0)

    def chat_split(
        self, request: Request, *, budget: Budget | None = None, cancel: CancelToken | None = None
    ) -> tuple[Reply, ...]:
        """Ask, once per piece of the longest elastic text where the whole is too long; raises as `chat` does."""
        return tuple(
            ask_pieces(
                request,
                self._room(request),
                lambda part: self._chat(part, ContextPolicy.FAIL, budget, cancel, None, 0),
                self._too_long,
            )
        )

    def stream(
        self, request: Request, *, budget: Budget | None = None, cancel: CancelToken | None = None
    ) -> Iterator[Delta | Reply]:
        """Ask and yield the text as it arrives, the whole reply last; raises as `chat` does.

        A stream that breaks is tried again: the pieces of the new attempt carry a higher number and replace the old.
        Closing the iterator aborts the call.
        """
        own = CancelToken()
        items: queue.Queue[Delta | Future[Reply]] = queue.Queue()
        context = copy_context()  # the current budget scope
        with contextlib.ExitStack() as stack:
            for outer in (self.cancel, cancel):
                if outer is not None:
                    stack.enter_context(outer.on_cancel(own.cancel))
            pool = stack.enter_context(ThreadPoolExecutor(1, thread_name_prefix="expbench-stream"))
            stack.callback(own.cancel)  # before the pool waits for its thread
            future = pool.submit(context.run, self._chat, request, ContextPolicy.FAIL, budget, own, items.put, 0)
            future.add_done_callback(items.put)
            while isinstance(item := items.get(), Delta):
                yield item
            yield item.result()

    def structured(
        self,
        request: Request,
        model: type[ModelT],
        *,
        repairs: int = 2,
        check: Callable[[ModelT], object] | None = None,
        policy: ContextPolicy = ContextPolicy.FAIL,
        budget: Budget | None = None,
        cancel: CancelToken | None = None,
    ) -> Structured[ModelT]:
        """Ask for a value of a pydantic model.

        Args:
            repairs: how often an answer that does not fit is sent back with what is wrong with it.
            check: raises ValueError with what else is wrong with a value (e.g. a quote that does not exist).

        Raises:
            ModelError: `INVALID_OUTPUT` after the last repair; otherwise as `chat`.
        """
        return ask_structured(
            lambda asked, repair: self._chat(asked, policy, budget, cancel, None, repair),
            self.capabilities,
            request,
            model,
            repairs=repairs,
            check=check,
        )

    def structured_split(
        self,
        request: Request,
        model: type[ModelT],
        *,
        repairs: int = 2,
        check: Callable[[ModelT], object] | None = None,
        budget: Budget | None = None,
        cancel: CancelToken | None = None,
    ) -> tuple[Structured[ModelT], ...]:
        """`structured`, once per piece of the longest elastic text where the whole is too long."""
        return tuple(
            ask_pieces(
                request,
                self._room(request),
                lambda part: self.structured(part, model, repairs=repairs, check=check, budget=budget, cancel=cancel),
                self._too_long,
            )
        )

    def embed(
        self,
        texts: Sequence[str],
        *,
        dimensions: int | None = None,
        budget: Budget | None = None,
        cancel: CancelToken | None = None,
    ) -> tuple[tuple[float, ...], ...]:
        """Vectors of the texts, in their order; each text is cached on its own. Raises as `chat` does."""
        clean = [clean_text(text) for text in texts]
        keys = {text: embedding_key(self.config, text, dimensions) for text in clean}
        unique = sorted(keys, key=lambda text: keys[text])  # one order of locks for all processes: no dead-locks
        found: dict[str, tuple[float, ...]] = {}
        for start in range(0, len(unique), _EMBEDDING_BATCH):
            batch = {text: keys[text] for text in unique[start : start + _EMBEDDING_BATCH]}
            found |= self._embed_batch(batch, dimensions, self._scope(budget), self._token(cancel))
        return tuple(found[text] for text in clean)

    # --- inside ---

    def _chat(
        self,
        request: Request,
        policy: ContextPolicy,
        budget: Budget | None,
        cancel: CancelToken | None,
        on_delta: Callable[[Delta], None] | None,
        repair: int,
    ) -> Reply:
        if policy is ContextPolicy.SPLIT:
            raise ValueError("a split request has several answers: use chat_split or structured_split")
        scope, token = self._scope(budget), self._token(cancel)
        request = clean_request(request)
        with self._linked(token) as linked:
            if policy is ContextPolicy.SHRINK:
                return ask_shrinking(
                    request,
                    self._room(request),
                    lambda part, left: self._ask(part, scope, linked, on_delta, repair, left),
                    self._too_long,
                )
            self._check_room(request)
            return self._ask(request, scope, linked, on_delta, repair, 0)

    def _ask(
        self,
        request: Request,
        budget: Budget,
        cancel: CancelToken,
        on_delta: Callable[[Delta], None] | None,
        repair: int,
        left_out: int,
    ) -> Reply:
        parameters = request.parameters or self.config.parameters
        key = request_key(self.config, request, parameters)

        def make(api: Api) -> Call[Reply]:
            return self._chat_call(request, parameters, key, on_delta, repair, left_out, api)

        with self.store.single_flight(key, cancel):
            exchange = self._stored(key)
            if exchange is not None and exchange.reply is not None:
                reply = exchange.reply.evolve(cached=True)
                self._caller.record_cached(make(self.capabilities.api), reply.usage, budget)
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
            return self._caller.run(make(api), budget, cancel)
        except ModelError as error:
            if not (may_change and wants_responses_api(error)):
                raise
        reply = self._caller.run(make("responses"), budget, cancel)
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
                FailureKind.REPLAY_MISS, self._caller.what, f"no exchange {key[:16]} is recorded in {self.store.root}"
            )
        if exchange.failure is not None:
            raise ModelError(
                FailureKind(exchange.failure), self._caller.what, exchange.failure_cause or "failed when recorded"
            )
        return exchange

    def _unless_refused(self, reply: Reply) -> Reply:
        if reply.finish_reason is not FinishReason.REFUSAL:
            return reply
        said = " ".join((reply.refusal or reply.text or "the provider's content filter ended the answer").split())
        raise ModelError(FailureKind.REFUSAL, self._caller.what, f"the model refused: {said[:200]}", attempts=1)

    def _embed_batch(
        self, batch: dict[str, str], dimensions: int | None, budget: Budget, cancel: CancelToken
    ) -> dict[str, tuple[float, ...]]:
        with contextlib.ExitStack() as stack:
            linked = stack.enter_context(self._linked(cancel))
            for key in batch.values():
                stack.enter_context(self.store.single_flight(key, linked))
            stored = {text: self._stored(key) for text, key in batch.items()}
            found = {text: e.vector for text, e in stored.items() if e is not None and e.vector is not None}
            missing = [text for text in batch if text not in found]
            for text in found:
                self._caller.record_cached(self._embed_call([text], batch[text], dimensions), None, budget)
            if missing:
                self._connected()
                call = self._embed_call(missing, batch[missing[0]], dimensions)
                vectors, _ = self._caller.run(call, budget, linked)
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

    # --- context window ---

    def _room(self, request: Request) -> int | None:
        window = self.prices.context_window(self.config)
        parameters = request.parameters or self.config.parameters
        return None if window is None else max(0, window - parameters.max_output_tokens)

    def _check_room(self, request: Request) -> None:
        room = self._room(request)
        if room is not None and typical_tokens(request) > room:
            raise self._too_long(request, room)

    def _too_long(self, request: Request, room: int) -> ModelError:
        return ModelError(
            FailureKind.CONTEXT_TOO_LONG,
            self._caller.what,
            f"the request has about {typical_tokens(request)} tokens, and {room} fit beside the answer",
            consequence="The model was not asked, and nothing was cut",
        )

    # --- plumbing ---

    def _connected(self) -> Backend:
        with self._lock:
            if self._backend is None or self._backend[0] != loop_identity():
                self._backend = (loop_identity(), Backend(self.config, find_key(self.config)))
            return self._backend[1]

    def _scope(self, budget: Budget | None) -> Budget:
        if budget is not None:
            return budget
        current = current_budget()
        if current is not None and (self._budget is None or self._budget in current.chain()):
            return current
        return self._budget or self._fallback

    def _token(self, cancel: CancelToken | None) -> CancelToken:
        return cancel or self.cancel

    @contextlib.contextmanager
    def _linked(self, cancel: CancelToken) -> Iterator[CancelToken]:
        """A token that is cancelled with the call's and with the client's."""
        if cancel is self.cancel:
            yield cancel
            return
        with self.cancel.on_cancel(cancel.cancel):
            yield cancel
