"""A server in a thread of its own: whoever starts it is told when it does not come up, whatever went wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluation.families.socket_service import SocketService
from evaluation.harness.serving import ServingThread, until_started
from pipeline.errors import ExpbenchError, FailureKind


def test_it_serves_until_it_is_told_to_end() -> None:
    seen: list[str] = []

    async def serve(ready: Callable[[], None], closing: asyncio.Event) -> None:
        seen.append("set up")
        ready()
        await closing.wait()
        seen.append("closed")

    thread = ServingThread(serve, name="test")
    assert thread.start() == ""
    assert seen == ["set up"]
    assert thread.stop(60) == ""
    assert seen == ["set up", "closed"]


async def _cannot_bind(ready: Callable[[], None], closing: asyncio.Event) -> None:
    raise OSError(98, "Address already in use")


async def _leaves(ready: Callable[[], None], closing: asyncio.Event) -> None:
    return


@pytest.mark.parametrize(("serve", "cause"), [(_cannot_bind, "Address already in use"), (_leaves, "defect")])
def test_a_start_that_fails_is_told(serve: Callable[[Callable[[], None], asyncio.Event], object], cause: str) -> None:
    thread = ServingThread(serve, name="test")  # type: ignore[arg-type]
    assert cause in thread.start()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_defect_of_the_server_is_no_start() -> None:
    """It used to count as listening: only OSError and RuntimeError were looked at."""

    async def serve(ready: Callable[[], None], closing: asyncio.Event) -> None:
        raise KeyError("a defect")

    assert "defect" in ServingThread(serve, name="test").start()


def test_a_problem_after_the_start_is_told_at_the_end() -> None:
    async def serve(ready: Callable[[], None], closing: asyncio.Event) -> None:
        ready()
        raise RuntimeError("it broke")

    thread = ServingThread(serve, name="test")
    assert thread.start() == ""
    assert "it broke" in thread.stop(60)


class _Server:
    """Ends before it has started, as a web server whose configuration is wrong."""

    started = False

    async def serve(self, sockets: list[object]) -> None:
        return None


def test_a_web_server_that_ends_at_once_has_not_started() -> None:
    with pytest.raises(RuntimeError, match="before it had started"):
        asyncio.run(until_started(_Server(), []))  # type: ignore[arg-type]


def test_a_service_without_room_for_its_socket_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 120)
    with (
        pytest.raises(ExpbenchError) as raised,
        SocketService(path, lambda line: {}, name="test", longest=100),
    ):
        pass
    assert raised.value.kind is FailureKind.SANDBOX_BROKEN
    assert list(tmp_path.iterdir()) == []
