"""Scratch directories: what a killed process left is removed, what a living one uses never, and no link is followed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.scratch import remove_orphaned_scratch, scratch_directory, scratch_root

HOLDER = """\
import sys
from pathlib import Path
from pipeline.scratch import scratch_directory
with scratch_directory() as path:
    (path / "deep").mkdir()
    (path / "deep" / "file").write_text("x")
    print(path, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory for temporary files of this test's own."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


@pytest.fixture
def holder() -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Another process with a scratch directory, and the directory."""
    process = subprocess.Popen([sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout is not None
        yield process, Path(process.stdout.readline().strip())
        process.kill()


def told() -> list[str]:
    said: list[str] = []
    remove_orphaned_scratch(said.append)
    return said


def test_a_directory_is_this_users_alone_and_gone_at_the_end(temp: Path) -> None:
    with scratch_directory() as first, scratch_directory() as second:
        assert first != second
        assert first.parent == second.parent == scratch_root() == temp / f"expbench-{os.geteuid()}"
        assert stat.S_IMODE(scratch_root().stat().st_mode) == stat.S_IMODE(first.stat().st_mode) == 0o700
        assert len(str(first / "harness" / "model.sock").removeprefix(str(temp))) < 60
        (first / "file").write_text("x")
    assert list(scratch_root().iterdir()) == []


def test_it_is_gone_after_an_error_and_where_somebody_removed_it(temp: Path) -> None:
    opened = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(ZeroDivisionError), scratch_directory():
        raise ZeroDivisionError
    with scratch_directory() as path:
        path.rmdir()
    assert list(scratch_root().iterdir()) == []
    assert len(list(Path("/proc/self/fd").iterdir())) == opened


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_uses_is_not(
    holder: tuple[subprocess.Popen[str], Path],
) -> None:
    process, path = holder
    assert told() == []
    assert (path / "deep" / "file").read_text() == "x"
    process.send_signal(signal.SIGKILL)
    assert process.wait(30) == -signal.SIGKILL
    assert path.exists()
    opened = len(list(Path("/proc/self/fd").iterdir()))
    assert told() == []
    assert not path.exists()
    assert len(list(Path("/proc/self/fd").iterdir())) == opened


def test_one_of_this_process_is_in_use_too() -> None:
    with scratch_directory() as path:
        assert told() == []
        assert path.is_dir()
    assert not path.exists()


def test_no_link_is_followed(temp: Path) -> None:
    outside = temp / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    orphan = scratch_root() / "scratch-orphan"
    orphan.mkdir()
    (orphan / "link").symlink_to(outside)
    (orphan / "file").symlink_to(outside / "kept")
    (scratch_root() / "scratch-link").symlink_to(outside)
    (scratch_root() / "scratch-file").write_text("no directory")
    assert told() == []
    assert not orphan.exists()
    assert (outside / "kept").read_text() == "x"
    assert {path.name for path in scratch_root().iterdir()} == {"scratch-link", "scratch-file"}


def test_what_is_not_called_so_is_left_alone() -> None:
    (scratch_root() / "other").mkdir()
    assert told() == []
    assert (scratch_root() / "other").is_dir()


def test_what_cannot_be_removed_is_told_and_keeps_nothing_from_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("scratch-a", "scratch-b"):
        (scratch_root() / name).mkdir()
    remove = shutil.rmtree

    def refuse(path: Path) -> None:
        if path.name == "scratch-a":
            raise PermissionError("not yours")
        remove(path)

    monkeypatch.setattr(shutil, "rmtree", refuse)
    opened = len(list(Path("/proc/self/fd").iterdir()))
    [said] = told()
    assert said.startswith(f"{scratch_root() / 'scratch-a'}: ")
    assert "not yours" in said
    assert [path.name for path in scratch_root().iterdir()] == ["scratch-a"]
    assert len(list(Path("/proc/self/fd").iterdir())) == opened


def test_two_that_clean_at_once_and_many_that_begin_take_nothing_from_each_other() -> None:
    def begin(_: int) -> bool:
        with scratch_directory() as path:
            (path / "file").write_text("x")
            told()
            return (path / "file").is_file()

    def clean(_: int) -> list[str]:
        with contextlib.suppress(FileExistsError):
            (scratch_root() / "scratch-orphan").mkdir()
        return told()

    with ThreadPoolExecutor(8) as pool:
        begun, cleaned = pool.map(begin, range(200)), pool.map(clean, range(200))
        assert all(begun)
        assert [said for said in cleaned if said] == []
    told()
    assert list(scratch_root().iterdir()) == []


def test_a_directory_that_a_cleaner_took_before_it_was_locked_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    make, made = tempfile.mkdtemp, []

    def taken(**options: object) -> str:
        made.append(make(**options))  # type: ignore[call-overload]
        if len(made) < 3:
            Path(made[-1]).rmdir()
        return str(made[-1])

    monkeypatch.setattr(tempfile, "mkdtemp", taken)
    with scratch_directory() as path:
        assert str(path) == made[2]


def test_one_that_was_replaced_between_opening_and_locking_is_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    path = scratch_root() / "scratch-x"
    path.mkdir()
    lock = fcntl.flock

    def late(handle: int, how: int) -> None:
        path.rename(path.with_name("old"))
        path.mkdir()
        (path / "of another").write_text("x")
        lock(handle, how)

    monkeypatch.setattr(fcntl, "flock", late)
    opened = len(list(Path("/proc/self/fd").iterdir()))
    assert told() == []
    assert (path / "of another").is_file()
    assert len(list(Path("/proc/self/fd").iterdir())) == opened


def test_where_nothing_can_be_locked_nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(handle: int, how: int) -> None:
        raise OSError("no locks on this file system")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(ExpbenchError) as caught, scratch_directory():
        pass
    assert caught.value.kind is FailureKind.SANDBOX_BROKEN
    assert "locked" in caught.value.cause


def test_beside_a_target_what_killed_processes_left_there_goes_first(temp: Path) -> None:
    above = temp / "workspace"
    (above / "scratch-orphan").mkdir(parents=True)
    (above / "task").mkdir()
    (scratch_root() / "scratch-elsewhere").mkdir()
    with scratch_directory(above) as path:
        assert path.parent == above
        assert sorted(each.name for each in above.iterdir()) == sorted([path.name, "task"])
        path.rename(above / "in its place")
    assert sorted(each.name for each in above.iterdir()) == ["in its place", "task"]
    assert (scratch_root() / "scratch-elsewhere").is_dir()


@pytest.mark.parametrize("what", ["file", "link", "somebody else's"])
def test_a_place_that_is_somebody_elses_is_refused(temp: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place = temp / f"expbench-{os.geteuid()}"
    if what == "file":
        place.write_text("x")
    elif what == "link":
        (temp / "elsewhere").mkdir()
        place.symlink_to(temp / "elsewhere")
    else:
        (temp / "expbench-12345").mkdir()
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(ExpbenchError) as caught:
        scratch_root()
    assert caught.value.kind is FailureKind.SANDBOX_BROKEN


def test_a_place_that_was_open_is_closed() -> None:
    scratch_root().chmod(0o777)
    assert stat.S_IMODE(scratch_root().stat().st_mode) == 0o700
