"""One event loop in a background thread, on which all calls run.

A blocking read cannot be aborted from another thread; a task on a loop can. That is what makes cancelling, deadlines
and Ctrl-C work on calls that are under way, while the pipeline's stages stay ordinary synchronous functions.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from pipeline.llm.cancel import CancelToken

__all__ = ["loop_identity", "run"]

T = TypeVar("T")
_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_owner: int | None = None


def _running_loop() -> asyncio.AbstractEventLoop:
    global _loop, _owner
    with _lock:
        if _loop is None or _owner != os.getpid():  # a forked child inherits the object, but not the thread
            _loop, _owner = asyncio.new_event_loop(), os.getpid()
            threading.Thread(target=_loop.run_forever, name="expbench-llm", daemon=True).start()
        return _loop


def _after_fork() -> None:
    global _lock  # noqa: PLW0603 - another thread of the parent may have held it at the fork
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def loop_identity() -> int:
    """Changes when connections of earlier calls cannot be used any more (after a fork)."""
    return os.getpid()


def run(coroutine: Coroutine[Any, Any, T], cancel: CancelToken, what: str) -> T:
    """Run a coroutine on the loop and wait for it.

    Raises:
        ExpbenchError: `INTERRUPTED` when cancelled; the coroutine is aborted then, as it is by Ctrl-C.
    """
    future = asyncio.run_coroutine_threadsafe(coroutine, _running_loop())
    try:
        with cancel.on_cancel(future.cancel):
            return future.result()
    except concurrent.futures.CancelledError:
        cancel.check(what)
        raise
    finally:
        future.cancel()
