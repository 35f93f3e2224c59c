"""A server in a thread of its own: whoever starts it is told when it does not come up, whatever went wrong."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluation.families.socket_service import SocketService
from evaluation.harness import serving
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


def test_a_server_that_never_answers_is_given_up_and_told_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_START_S", 0.05)
    ended = threading.Event()

    async def serve(ready: Callable[[], None], closing: asyncio.Event) -> None:
        await closing.wait()
        ended.set()

    assert ServingThread(serve, name="test").start() == "not ready after 0 s"
    assert ended.wait(30)


def test_a_server_that_does_not_end_is_waited_for_so_long_and_no_longer() -> None:
    go_on = threading.Event()

    async def serve(ready: Callable[[], None], closing: asyncio.Event) -> None:
        ready()
        await closing.wait()
        await asyncio.get_running_loop().run_in_executor(None, go_on.wait, 60)

    thread = ServingThread(serve, name="a name")
    assert thread.start() == ""
    own = next(one for one in threading.enumerate() if one.name == "a name")
    assert own.daemon, "it never keeps the harness from ending"
    assert thread.stop(0.05) == ""
    assert own.is_alive()
    go_on.set()
    assert thread.stop(60) == ""
    assert not own.is_alive()
    assert thread.stop(60) == "", "it has ended already"


class _Slow:
    """Has started after a while."""

    started = False

    async def serve(self, sockets: list[object]) -> None:
        self.sockets = sockets
        await asyncio.sleep(0.03)
        self.started = True
        await asyncio.sleep(60)


def test_a_web_server_is_waited_for_until_it_answers() -> None:
    async def run() -> None:
        server = _Slow()
        task = await until_started(server, ("a socket",))  # type: ignore[arg-type]
        assert server.started
        assert server.sockets == ["a socket"]
        assert not task.done()
        task.cancel()

    asyncio.run(run())


def test_what_a_web_server_failed_with_is_raised() -> None:
    class Failing:
        started = False

        async def serve(self, sockets: list[object]) -> None:
            raise OSError("its certificate")

    with pytest.raises(OSError, match="its certificate"):
        asyncio.run(until_started(Failing(), []))  # type: ignore[arg-type]
