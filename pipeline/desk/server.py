"""The desk over HTTP: Starlette on uvicorn, in the process that was asked for it.

A client may have to wait for hours. While it does something arrives every few seconds - a piece without text in a
stream, white space before the JSON of an answer in one piece - so that no time-out between two pieces ends the wait.
What was asked stays on the desk when its client has gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from typing import TYPE_CHECKING, Any, Final

from pipeline.desk.wire import MODEL, ChatRequest, RequestError, chunks, completion, waiting_chunk

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator

    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

    from pipeline.desk.answers import Answer
    from pipeline.desk.folder import DeskFolder

__all__ = ["DeskServer"]

_LOOK_S: Final = 0.5
_SIGN_OF_LIFE_S: Final = 10.0
"""The shortest time-out between two pieces that clients are known to have is 60 s."""
_CLOSE_S: Final = 1


class DeskServer:
    """Serves a desk.

    Args:
        folder: its files.
        look_s: seconds between two looks for answers.
        sign_of_life_s: seconds between two signs of life to a client that waits.
    """

    def __init__(self, folder: DeskFolder, *, look_s: float = _LOOK_S, sign_of_life_s: float = _SIGN_OF_LIFE_S) -> None:
        self._folder, self._look_s, self._sign_of_life_s = folder, look_s, sign_of_life_s
        self._answered: dict[str, asyncio.Event] = {}

    async def serve(self, listener: socket.socket) -> None:
        """Answer until the process is told to end (Ctrl-C, SIGTERM).

        Raises:
            OSError: the desk's files cannot be written any longer.
        """
        import uvicorn

        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # it logs a traceback for each client that waits
        # clients that wait when the desk ends have to see a broken connection, and ask again
        config = uvicorn.Config(self.app(), log_config=None, access_log=False, timeout_graceful_shutdown=_CLOSE_S)
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        looking = asyncio.create_task(self.look_for_answers())
        try:
            await asyncio.wait((serving, looking), return_when=asyncio.FIRST_COMPLETED)
        finally:
            server.should_exit = True
            looking.cancel()
            ended = await asyncio.gather(serving, looking, return_exceptions=True)
        for problem in ended:
            if isinstance(problem, Exception):
                raise problem

    async def look_for_answers(self) -> None:
        """Take answers as they come, and wake who waits for them; never ends by itself."""
        while True:
            for name in self._folder.take_answers():
                if event := self._answered.pop(name, None):
                    event.set()
            await asyncio.sleep(self._look_s)

    def app(self) -> Starlette:
        """The web application."""
        from starlette.applications import Starlette
        from starlette.responses import JSONResponse
        from starlette.routing import Route

        card = {"id": MODEL, "object": "model", "created": 0, "owned_by": "expbench"}

        async def models(_: Request) -> Response:
            return JSONResponse({"object": "list", "data": [card]})

        routes = [Route("/v1/models", models), Route("/v1/chat/completions", self._chat, methods=["POST"])]
        return Starlette(routes=routes)

    async def _chat(self, http: Request) -> Response:
        from starlette.responses import JSONResponse, StreamingResponse

        # no page of a browser can send this type to another origin unasked
        if http.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return _error(415, "the body has to be application/json")
        try:
            name, request = self._folder.file_request(json.loads(await http.body()))
        except (RequestError, ValueError, RecursionError) as error:
            return _error(400, str(error))
        if request.stream:
            return StreamingResponse(self._stream(name, request), media_type="text/event-stream")
        if answer := self._folder.answer(name):
            return JSONResponse(completion(name, request, answer))
        return StreamingResponse(self._whole(name, request), media_type="application/json")

    async def _waiting(self, name: str) -> AsyncIterator[Answer | None]:
        """None as often as a sign of life is due, then the answer."""
        while True:
            event = self._answered.setdefault(name, asyncio.Event())  # before the look, not to miss an answer after it
            if answer := self._folder.answer(name):
                break
            yield None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._sign_of_life_s):
                    await event.wait()
        self._answered.pop(name, None)
        yield answer

    async def _whole(self, name: str, request: ChatRequest) -> AsyncIterator[str]:
        async for answer in self._waiting(name):
            yield " " if answer is None else json.dumps(completion(name, request, answer))

    async def _stream(self, name: str, request: ChatRequest) -> AsyncIterator[str]:
        async for answer in self._waiting(name):
            for piece in [waiting_chunk(name)] if answer is None else chunks(name, request, answer):
                yield f"data: {json.dumps(piece)}\n\n"
        yield "data: [DONE]\n\n"


def _error(status: int, message: str) -> Response:
    from starlette.responses import JSONResponse

    error: dict[str, Any] = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return JSONResponse({"error": error}, status)
