"""HTTP towards an agent that somebody else runs: no answer is larger, or takes longer, than an honest one.

A client that reads whatever comes can be kept busy for ever by a trickle of bytes, or filled until this machine has no
memory left; neither says anything of the agent's work. Non-goal: the limits of what is in a well-formed answer
(`archive`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import httpx

__all__ = ["MOST_ANSWER", "BoundedTransport"]

MOST_ANSWER: Final = 256 << 20
"""Bytes of one answer; a submission's archive has at most 50 MB, and a third more in base64."""


class BoundedTransport(httpx.AsyncBaseTransport):
    """An HTTP transport with a ceiling for each answer.

    Args:
        seconds: from the request to the last byte of its answer.
        largest: bytes of an answer; `MOST_ANSWER` by default.
    """

    def __init__(self, seconds: float, largest: int | None = None) -> None:
        self._inner = httpx.AsyncHTTPTransport()
        self._seconds, self._largest = seconds, MOST_ANSWER if largest is None else largest

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Carry out a request.

        Raises:
            httpx.TransportError: the network's, or one of the ceilings was reached.
        """
        until = asyncio.get_running_loop().time() + self._seconds
        try:
            async with asyncio.timeout_at(until):
                response = await self._inner.handle_async_request(request)
        except TimeoutError as error:
            raise httpx.ReadTimeout(f"no answer within {self._seconds:.0f} s", request=request) from error
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = _Bounded(response.stream, request, until, self)
        return response

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()

    def too_large(self, size: int) -> str:
        """Words for an answer of so many bytes; empty while it may go on."""
        return f"the answer is larger than {self._largest} bytes" if size > self._largest else ""


class _Bounded(httpx.AsyncByteStream):
    """The bytes of an answer, counted and timed."""

    def __init__(
        self, inner: httpx.AsyncByteStream, request: httpx.Request, until: float, transport: BoundedTransport
    ) -> None:
        self._inner, self._request, self._until, self._transport = inner, request, until, transport

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        parts = self._inner.__aiter__()
        while True:
            try:
                async with asyncio.timeout_at(self._until):
                    part = await anext(parts)
            except StopAsyncIteration:
                return
            except TimeoutError as error:
                raise httpx.ReadTimeout("the answer did not come to its end", request=self._request) from error
            size += len(part)
            if words := self._transport.too_large(size):
                raise httpx.ReadError(words, request=self._request)
            yield part

    async def aclose(self) -> None:
        await self._inner.aclose()
