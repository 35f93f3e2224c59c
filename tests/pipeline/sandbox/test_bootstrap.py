"""A base image whose making is given up: no process, no mount, no directory and no image of it is left."""

from __future__ import annotations

import os
import subprocess
import threading
import time
import uuid
from pathlib import Path

import pytest

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.progress import SilentReporter
from pipeline.sandbox import StopHandle
from pipeline.sandbox._bootstrap import cleared_directory, import_root, run_debootstrap
from pipeline.sandbox._engine import connection
from pipeline.sandbox._locks import locked

# A mirror that never answers: as the real one, it is a shell with children, and mounts a file system in the new root
FAKE = """#!/bin/sh
mkdir -p "$1/proc"
mount -t tmpfs tmpfs "$1/proc" 2>/dev/null
sleep 600 & echo $! >> "$2"
echo $$ >> "$2"
(sleep 601 & echo $! >> "$2"; echo "I: Resolving dependencies of required packages..."; wait) &
wait
"""


@pytest.fixture
def argv(tmp_path: Path) -> list[str]:
    program = tmp_path / "debootstrap"
    program.write_text(FAKE)
    program.chmod(0o755)
    return [str(program), str(tmp_path / "place/root"), str(tmp_path / "pids")]


def bootstrap(argv: list[str], place: Path, reporter: SilentReporter, stop: StopHandle | None = None) -> None:
    with locked("base-of-a-test") as lock, cleared_directory(place):
        run_debootstrap(argv, what="base image", next_step="-", lock=lock, reporter=reporter, stop=stop)


def assert_nothing_is_left(tmp_path: Path) -> None:
    pids = (tmp_path / "pids").read_text().split()
    assert len(pids) == 3
    for pid in pids:
        status = Path(f"/proc/{pid}/status")
        deadline = time.monotonic() + 20  # SIGKILL was sent; the kernel carries it out when it gets to it
        while status.exists() and "State:\tZ" not in status.read_text() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not status.exists() or "State:\tZ" in status.read_text(), pid
    assert not (tmp_path / "place").exists()
    assert str(tmp_path / "place") not in Path("/proc/self/mountinfo").read_text()


@pytest.mark.usefixtures("shared_cache")
def test_a_bootstrap_that_is_given_up_leaves_nothing(argv: list[str], tmp_path: Path) -> None:
    stop = StopHandle()
    reporter = SilentReporter()
    reporter.step = lambda *_: threading.Thread(target=stop.abort, args=("interrupted",)).start()  # type: ignore[method-assign]
    with pytest.raises(ExpbenchError, match="given up: interrupted") as caught:
        bootstrap(argv, tmp_path / "place", reporter, stop)
    assert caught.value.kind is FailureKind.INTERRUPTED
    assert_nothing_is_left(tmp_path)


@pytest.mark.usefixtures("shared_cache")
def test_ctrl_c_in_the_thread_that_bootstraps_leaves_nothing(argv: list[str], tmp_path: Path) -> None:
    reporter = SilentReporter()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    reporter.step = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        bootstrap(argv, tmp_path / "place", reporter)
    assert_nothing_is_left(tmp_path)


@pytest.mark.usefixtures("shared_cache")
def test_debootstrap_keeps_the_lock_that_its_killed_parent_held(tmp_path: Path) -> None:
    """Whoever is next must not clear the place under something that still writes there."""
    with locked("held-by-a-child") as lock:
        child = subprocess.Popen(["sleep", "600"], pass_fds=(lock,))

    def impatient() -> None:
        raise TimeoutError

    try:
        with pytest.raises(TimeoutError), locked("held-by-a-child", impatient):
            pass
    finally:
        child.kill()
        child.wait()
    with locked("held-by-a-child", impatient):
        pass


def test_what_a_killed_build_left_is_cleared_by_the_next(tmp_path: Path) -> None:
    place = tmp_path / "with a space"
    (place / "root/proc").mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", place / "root/proc"], check=False, capture_output=True)
    (place / "root/proc/file").write_text("half made")
    with cleared_directory(place):
        assert list(place.iterdir()) == []
    assert not place.exists()


def test_a_failure_of_debootstrap_says_what_it_said(argv: list[str], tmp_path: Path) -> None:
    Path(argv[0]).write_text("#!/bin/sh\necho 'E: Failed getting release file'; exit 1\n")
    with Path(os.devnull).open() as lock, pytest.raises(ExpbenchError, match="Failed getting release file") as caught:
        run_debootstrap(
            argv, what="base image", next_step="-", lock=lock.fileno(), reporter=SilentReporter(), stop=None
        )
    assert caught.value.kind is FailureKind.NETWORK


class Later(StopHandle):
    """Says stop when it was asked a few times."""

    asked = 0

    @property
    def reason(self) -> str:
        self.asked += 1
        return "interrupted" if self.asked > 2 else ""


@pytest.mark.docker
def test_an_import_that_is_given_up_makes_no_image(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root/file").write_bytes(os.urandom(5 << 20))
    reference = f"expbench/base:test-{uuid.uuid4().hex[:8]}"
    with connection() as client:
        with pytest.raises(ExpbenchError, match="given up"):
            import_root(client, tmp_path / "root", reference, ["LABEL expbench=1"], Later())
        assert client.images.list(name=reference) == []
        import_root(client, tmp_path / "root", reference, ["LABEL expbench=1"], StopHandle())
        assert [image.labels for image in client.images.list(name=reference)] == [{"expbench": "1"}]
        client.images.remove(reference)
