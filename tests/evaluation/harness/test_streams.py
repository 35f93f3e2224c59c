"""Streams through the gateway: whole events whatever the pieces, an end that is told, nothing of our keys."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaluation.harness import streams
from evaluation.harness.streams import events, relayed, without_keys
from pipeline.llm import register_secret


class Answer:
    """An answer in pieces."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self.pieces = pieces

    async def aiter_bytes(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            yield piece


def cut(pieces: Sequence[bytes]) -> list[bytes]:
    async def collect() -> list[bytes]:
        return [event async for event in events(Answer(pieces))]  # type: ignore[arg-type]

    return asyncio.run(collect())


LINES = st.lists(st.sampled_from([b"data: a", b"data: bb", b": c", b"event: x\ndata: y"]), max_size=5)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(LINES, st.sampled_from([b"\n\n", b"\r\n\r\n"]), st.lists(st.integers(0, 60), max_size=6))
def test_events_are_the_same_however_the_stream_is_cut(lines: list[bytes], mark: bytes, cuts: list[int]) -> None:
    whole = b"".join(line + mark for line in lines)
    places = [0, *sorted(cuts), len(whole)]
    pieces = [whole[a:b] for a, b in itertools.pairwise(places)]
    assert cut(pieces) == [line + mark for line in lines]


def test_the_nearest_end_is_the_end() -> None:
    assert cut([b"a\r\n\r\nb\n\nc\r\n\r\n"]) == [b"a\r\n\r\n", b"b\n\n", b"c\r\n\r\n"]
    assert cut([b"a\n\nb\r\n\r\nc\n\n"]) == [b"a\n\n", b"b\r\n\r\n", b"c\n\n"]


def test_what_has_no_end_comes_last_and_nothing_is_no_event() -> None:
    assert cut([b"a\n\nb"]) == [b"a\n\n", b"b"]
    assert cut([]) == []
    assert cut([b""]) == []


def test_an_event_may_have_just_the_length_that_it_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MOST_EVENT", 4)
    assert cut([b"abcd", b"\n\nabcd"]) == [b"abcd\n\n", b"abcd"]
    with pytest.raises(ValueError, match="too long"):
        cut([b"abcde"])


def relay(
    *items: bytes | Exception | None, take: int | None = None
) -> tuple[list[bytes], Exception | None, bool, bool]:
    """What comes through, what ended it, whether the pump was told that it left, and whether its queue is empty."""

    async def run() -> tuple[list[bytes], Exception | None, bool, bool]:
        queue: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()
        left = asyncio.Event()
        for item in items:
            queue.put_nowait(item)
        got: list[bytes] = []
        relaying = relayed(queue, left)
        error = None
        try:
            async for item in relaying:
                assert not left.is_set()
                got.append(item)
                if len(got) == take:
                    break
        except ConnectionError as caught:
            error = caught
        await relaying.aclose()  # type: ignore[attr-defined]
        return got, error, left.is_set(), queue.empty()

    return asyncio.run(run())


def test_a_stream_is_relayed_to_its_end() -> None:
    assert relay(b"a", b"b", None) == ([b"a", b"b"], None, True, True)


def test_an_endpoint_that_broke_off_breaks_off_for_the_agent() -> None:
    got, error, left, _ = relay(b"a", ValueError("why"))
    assert (got, left) == ([b"a"], True)
    assert isinstance(error, ConnectionError)
    assert str(error.__cause__) == "why"


def test_an_agent_that_leaves_frees_whoever_waits_for_it() -> None:
    assert relay(b"a", b"b", b"c", None, take=1) == ([b"a"], None, True, True)


def test_bytes_without_our_keys_are_not_touched() -> None:
    register_secret("STREAMS_KEY", "CANARY-OF-STREAMS-1")
    for data in (b"", b"\xff\xfe text \x00", "ü".encode()):
        assert without_keys(data) == data
    assert without_keys(b"\xff CANARY-OF-STREAMS-1 \x00") == b"\xff [redacted:STREAMS_KEY] \x00"
