"""The one way to a model: chat, streaming, tools, images, structured output, embeddings.

Calls are synchronous and may be made from many threads at once. They end with a result or a typed error; what they cost
is in the budget and in the ledger before they return.
"""

from __future__ import annotations

import contextlib
import queue
import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Self, TypeVar

from pydantic import BaseModel

from pipeline.errors import FailureKind
from pipeline.llm.attempts import Caller
from pipeline.llm.budget import Budget, BudgetLimits, Level, current_budget
from pipeline.llm.cache import CacheMode, ExchangeStore, embedding_key
from pipeline.llm.cancel import CancelToken, Clock, SystemClock
from pipeline.llm.capabilities import Capabilities
from pipeline.llm.cleaning import clean_request, clean_text
from pipeline.llm.config import ModelConfig
from pipeline.llm.context import ContextPolicy, ask_pieces, ask_shrinking
from pipeline.llm.counting import typical_tokens
from pipeline.llm.errors_map import ModelError
from pipeline.llm.exchanges import Exchanges
from pipeline.llm.ledger import CallLedger
from pipeline.llm.prices import PriceList, load_prices
from pipeline.llm.redact import register_environment
from pipeline.llm.structured import Structured, ask_structured
from pipeline.llm.types import Delta, Reply, Request

__all__ = ["ModelClient"]

ModelT = TypeVar("ModelT", bound=BaseModel)
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
        caller = Caller(
            config,
            self.prices.find(config),
            ledger,
            clock or SystemClock(),
            rng or random.Random(),  # noqa: S311 - jitter
        )
        self._exchanges = Exchanges(caller, self.store, self.capabilities, self.prices)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; the client opens new ones when it is used again."""
        self._exchanges.close()

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
            with self._linked(self._token(cancel)) as linked:
                found |= self._exchanges.embed(batch, dimensions, self._scope(budget), linked)
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
                    lambda part, left: self._exchanges.chat(
                        part, scope, linked, on_delta=on_delta, repair=repair, left_out=left
                    ),
                    self._too_long,
                )
            self._check_room(request)
            return self._exchanges.chat(request, scope, linked, on_delta=on_delta, repair=repair)

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
            self._exchanges.caller.what,
            f"the request has about {typical_tokens(request)} tokens, and {room} fit beside the answer",
            consequence="The model was not asked, and nothing was cut",
        )

    # --- plumbing ---

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
