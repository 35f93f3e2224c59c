"""`expbench down` ends what `up` started, and nothing else; `up` touches nothing that is not its own."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.orchestration.machine import Process, Up, down, up
from flows.orchestration.machine import _boot as boot_id
from flows.orchestration.machine import _started as start_time
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.progress import SilentReporter


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A process that waits for its end."""
    process = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE,
                               start_new_session=True)  # fmt: skip
    yield process
    if process.stdin:
        process.stdin.close()
    process.kill()
    process.wait()


def record(state: Path, process: Process) -> None:
    state.mkdir(exist_ok=True)
    told = Up(url="http://127.0.0.1:9", api_url="http://127.0.0.1:9/api", directory=state, processes=(process,))
    (state / "up.json").write_text(told.model_dump_json())


def of(child: subprocess.Popen[bytes], state: Path, *, later: int = 0, boot: str | None = None) -> Process:
    started = start_time(child.pid)
    assert started is not None
    return Process(role="worker", pid=child.pid, started=started + later, boot=boot or boot_id(), log=state / "log")


def test_down_ends_the_process_that_was_written_down(tmp_path: Path, child: subprocess.Popen[bytes]) -> None:
    record(tmp_path, of(child, tmp_path))
    assert [process.pid for process in down(state=tmp_path)] == [child.pid]
    assert start_time(child.pid) is None
    assert not (tmp_path / "up.json").exists()
    assert down(state=tmp_path) == []


@pytest.mark.parametrize("other", [{"later": 1}, {"boot": "another boot"}])
def test_a_process_id_that_belongs_to_somebody_else_is_left_alone(
    tmp_path: Path, child: subprocess.Popen[bytes], other: dict[str, int | str]
) -> None:
    record(tmp_path, of(child, tmp_path, **other))  # type: ignore[arg-type]
    assert down(state=tmp_path) == []
    assert child.poll() is None


def test_a_port_in_use_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        with pytest.raises(ExpbenchError, match=f"port {port}") as caught:
            up(state=tmp_path, directory=tmp_path, port=port, reporter=SilentReporter())
    assert caught.value.kind is FailureKind.WORKSPACE_CONFLICT
    assert not (tmp_path / "server.log").exists()


def test_a_record_that_cannot_be_read_stops_both(tmp_path: Path) -> None:
    (tmp_path / "up.json").write_text("{")
    for call in (
        lambda: down(state=tmp_path),
        lambda: up(state=tmp_path, directory=tmp_path, reporter=SilentReporter()),
    ):
        with pytest.raises(ExpbenchError) as caught:
            call()
        assert caught.value.kind is FailureKind.RECORD_INVALID
