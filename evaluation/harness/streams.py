"""Streams through the gateway: cut into events, relayed to the agent, freed of our keys."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

from pipeline.llm.redact import redact_content

if TYPE_CHECKING:
    import httpx2

__all__ = ["MOST_EVENT", "events", "relayed", "without_keys"]

MOST_EVENT: Final = 16 << 20
"""Bytes of one event."""


async def events(answer: httpx2.Response) -> AsyncIterator[bytes]:
    """The stream cut into whole server-sent events, each with the empty line that ends it."""
    held = bytearray()
    async for part in answer.aiter_bytes():
        held += part
        while True:
            ends = [at + len(mark) for mark in (b"\n\n", b"\r\n\r\n") if (at := held.find(mark)) >= 0]
            if not ends:
                break
            yield bytes(held[: min(ends)])
            del held[: min(ends)]
        if len(held) > MOST_EVENT:
            raise ValueError("an event of the stream is too long")
    if held:
        yield bytes(held)


async def relayed(queue: asyncio.Queue[bytes | Exception | None], left: asyncio.Event) -> AsyncIterator[bytes]:
    """What the agent gets of a stream; when it leaves, the pump is told and no longer waits for it.

    Args:
        queue: events, then None (the end) or what broke it off.
        left: is set when nobody takes anything any more.
    """
    try:
        while True:
            item = await queue.get()
            if item is None:
                return
            if isinstance(item, Exception):
                raise ConnectionError("the endpoint broke off") from item  # the agent sees the connection end too
            yield item
    finally:
        left.set()
        while not queue.empty():
            queue.get_nowait()


def without_keys(data: bytes) -> bytes:
    """The bytes without our keys, should an endpoint repeat what it was sent."""
    text = data.decode("utf-8", "surrogateescape")
    clean = redact_content(text)
    return data if clean == text else clean.encode("utf-8", "surrogateescape")
