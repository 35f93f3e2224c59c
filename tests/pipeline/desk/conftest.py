from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from pipeline.desk.folder import open_desk
from pipeline.desk.server import DeskServer
from pipeline.network.listening import listen
from tests.llm_fixtures import no_ambient_model  # noqa: F401 - fixture

PATIENCE_S = 60.0
"""For a busy machine; no test waits so long when it passes."""


def until(found: Callable[[], Any]) -> Any:
    """What a condition gives once it gives something."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if value := found():
            return value
        time.sleep(0.02)
    raise AssertionError("nothing came of it")


class RunningDesk:
    """A desk in a thread of this process; files are taken as soon as they have been the same for 0.1 s."""

    def __init__(self, directory: Path, *, sign_of_life_s: float = 0.05) -> None:
        self.directory = directory
        self._port, self._sign_of_life_s = 0, sign_of_life_s
        self.open()

    def open(self) -> None:
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._thread.start()
        assert self._ready.wait(PATIENCE_S)

    async def _serve(self) -> None:
        with open_desk(self.directory, "the test", 0.1) as folder, listen("127.0.0.1", self._port) as listener:
            self._port = listener.getsockname()[1]
            self.url = f"http://127.0.0.1:{self._port}/v1"
            self._loop, server = (
                asyncio.get_running_loop(),
                DeskServer(folder, look_s=0.02, sign_of_life_s=self._sign_of_life_s),
            )
            self._task = asyncio.create_task(server.serve(listener))
            self._ready.set()
            await asyncio.wait([self._task])

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()

    def restart(self) -> None:
        """End it and open it again at the same address."""
        self.close()
        self.open()

    def waiting(self, count: int = 1, *, beside: str = "") -> list[str]:
        """Ids of requests without an answer, once there are that many."""

        def found() -> list[str]:
            entries = sorted((self.directory / "inbox").glob("[0-9]*"))
            return [e.name for e in entries if e.name != beside and not (e / "answer.json").exists()]

        until(lambda: len(found()) >= count)
        return found()

    def inbox(self, name: str, file: str) -> str:
        return (self.directory / "inbox" / name / file).read_text()

    def write(self, name: str, text: str) -> None:
        (self.directory / "outbox" / name).write_text(text)

    def refused(self, name: str) -> str:
        path = self.directory / "outbox" / f"{name}.refused.md"
        until(path.exists)
        return path.read_text()


@pytest.fixture
def desk(tmp_path: Path, no_ambient_model: None) -> Iterator[RunningDesk]:  # noqa: F811
    running = RunningDesk(tmp_path / "desk")
    yield running
    running.close()


@pytest.fixture
def meanwhile() -> Iterator[Callable[..., Any]]:
    """`meanwhile(function, ...)` calls it in a thread and gives its future."""
    with ExitStack() as stack:
        yield stack.enter_context(ThreadPoolExecutor(16)).submit
