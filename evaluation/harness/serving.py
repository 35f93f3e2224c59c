"""A server beside the harness: one coroutine on an event loop in a thread of its own, until it is told to end.

Non-goals: what is served (`gateway.py`, the families' socket service, an agent over A2A), and what a failure means.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

    import uvicorn

__all__ = ["ServingThread", "until_started"]

_START_S: Final = 60.0
"""Most of a start is importing the web server, which a loaded machine does slowly."""

_GIVEN_UP_S: Final = 5.0
"""For a thread that failed to end, so that what it has to say is said before the failure is."""


class ServingThread:
    """Runs a server in the background.

    Args:
        serve: the whole life of the server. It is given what to call once requests are answered, and the event whose
            setting ends it.
        name: of the thread.
    """

    def __init__(
        self, serve: Callable[[Callable[[], None], asyncio.Event], Coroutine[Any, Any, None]], *, name: str
    ) -> None:
        self._serve = serve
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._changed = threading.Event()
        self._listening = False
        self._problem = ""
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> str:
        """Start it and wait until it answers; what went wrong, or nothing.

        After a problem the thread is told to end, and need not be stopped.
        """
        self._thread.start()
        in_time = self._changed.wait(_START_S)
        if self._listening:
            return ""
        self.stop(_GIVEN_UP_S)
        if not in_time:
            return f"not ready after {_START_S:.0f} s"
        return self._problem or "its thread ended with a defect, whose traceback is on stderr"

    def stop(self, wait_s: float) -> str:
        """Tell the server to end, and wait for it so long at the most; what it failed with until now, or nothing."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join(wait_s)
        return self._problem

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except (OSError, RuntimeError) as error:
            self._problem = f"{type(error).__name__}: {error}"
        finally:
            self._changed.set()

    async def _main(self) -> None:
        self._closing = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        await self._serve(self._ready, self._closing)

    def _ready(self) -> None:
        self._listening = True
        self._changed.set()


async def until_started(server: uvicorn.Server, sockets: Sequence[socket.socket]) -> asyncio.Task[None]:
    """Serve on listening sockets in the running loop; the task, once requests are answered.

    Raises:
        RuntimeError: the server ended before it had started.
    """
    serving = asyncio.create_task(server.serve(sockets=list(sockets)))
    while not server.started:
        if serving.done():
            await serving
            raise RuntimeError("the web server ended before it had started")
        await asyncio.sleep(0.005)
    return serving
