"""Each run of the process sandbox as a user of its own: claimed, cleaned, kept apart; and where that cannot be had."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.progress import SilentReporter
from pipeline.sandbox import BuildSpec, Command, RunResult, RunSpec, _users, process
from pipeline.sandbox._isolation import Isolation
from pipeline.sandbox._users import claimed_user, tasks_of
from pipeline.sandbox.process import ProcessSandbox
from tests.pipeline.sandbox.conftest import BARE, SLACK, SMALL, most_tasks

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes other users")
ROOT = Path(__file__).parents[3]


@pytest.fixture
def slots(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Two uids and locks that no other run uses."""
    monkeypatch.setattr(_users, "FIRST_UID", 65480)
    monkeypatch.setattr(_users, "SLOTS", 2)
    monkeypatch.setattr(_users, "_LOCKS", tmp_path / "locks")
    return tmp_path / "locks"


@pytest.fixture
def sleeper(slots: Path) -> Iterator[subprocess.Popen[bytes]]:
    argv = ["/bin/sleep", "600"]
    with subprocess.Popen(argv, user=65480, group=65480, extra_groups=[], cwd="/", start_new_session=True) as started:
        yield started
        started.kill()


@root_only
def test_two_runs_at_once_are_two_users(slots: Path) -> None:
    with claimed_user() as first, claimed_user() as second:
        assert (first, second) == (65480, 65481)
    with claimed_user() as again:
        assert again == 65480


@root_only
def test_third_run_waits_for_a_user(slots: Path) -> None:
    def claim() -> int | None:
        with claimed_user() as uid:
            return uid

    with ThreadPoolExecutor(1) as pool:
        with claimed_user(), claimed_user():
            waiting = pool.submit(claim)
            assert not waiting.done()
        assert waiting.result(60) in {65480, 65481}


@root_only
def test_what_a_killed_run_left_is_ended_before_its_user_is_used(slots: Path, sleeper: subprocess.Popen[bytes]) -> None:
    slots.mkdir()
    (slots / "65480").write_bytes(b"used\n")
    with claimed_user() as uid:
        assert uid == 65480
        assert tasks_of(65480) == 0
    assert sleeper.wait(30) == -9
    assert (slots / "65480").read_bytes() == b""


@root_only
def test_processes_of_somebody_else_are_left_alone(slots: Path, sleeper: subprocess.Popen[bytes]) -> None:
    with claimed_user() as uid:
        assert uid == 65481
    assert sleeper.poll() is None


@root_only
def test_nothing_of_the_user_is_left_when_a_run_ends(slots: Path) -> None:
    with claimed_user() as uid:
        assert uid is not None
        left = subprocess.Popen(["/bin/sleep", "600"], user=uid, group=uid, extra_groups=[], cwd="/")
    assert left.wait(30) == -9


@root_only
def test_lock_ends_with_its_holder(slots: Path) -> None:
    code = f"""
    import time
    from pathlib import Path
    from pipeline.sandbox import _users
    _users.FIRST_UID, _users.SLOTS, _users._LOCKS = 65480, 2, Path({str(slots)!r})
    with _users.claimed_user() as uid:
        print(uid, flush=True); time.sleep(600)
    """
    argv = [sys.executable, "-c", textwrap.dedent(code)]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"65480\n"
            with claimed_user() as second:
                assert second == 65481
        finally:
            holder.kill()
    with claimed_user() as first:
        assert first == 65480


def run(sandbox: ProcessSandbox, tmp_path: Path, script: str, pids: int = 48) -> RunResult:
    tree = tmp_path / "tree"
    tree.mkdir(exist_ok=True)
    image = sandbox.build(BuildSpec(), log=tmp_path / "build.log", owner="t", reporter=SilentReporter())
    command = Command(argv=("python", "-c", textwrap.dedent(script)))
    spec = RunSpec(commands=(command,), limits=SMALL.evolve(pids=pids))
    return sandbox.run(image, tree, spec, out=tmp_path / "out", owner="t")


@pytest.fixture(params=[None, BARE], ids=["namespaces", "bare"])
def ungated(request: pytest.FixtureRequest, shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> ProcessSandbox:
    """A kernel without the means to ask before a process is started."""
    real = process._nproc
    monkeypatch.setattr(process, "_nproc", lambda *arguments: real(*arguments) | {"gate": False})
    return ProcessSandbox(request.param)


@pytest.mark.parametrize(
    "bomb",
    [
        "import os\nwhile True:\n    os.write(f, b'x') if os.fork() == 0 else None",
        "import threading, time\nwhile True: threading.Thread(target=lambda: (os.write(f, b'x'), time.sleep(600))).start()",
        "while True: os.write(f, b'x') if os.fork() == 0 else None",
    ],
    ids=["fork", "threads", "fork again"],
)
def test_bomb_without_the_gate_is_held_by_the_kernel(ungated: ProcessSandbox, tmp_path: Path, bomb: str) -> None:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    with most_tasks() as seen:
        result = run(ungated, tmp_path, f"import os\nf = os.open('alive', {flags})\n{bomb}")
    assert result.failure is FailureKind.RUN_PROCESS_LIMIT, result.message
    assert seen.most <= 48 + SLACK
    # who was refused ends and makes room for another: on a busy machine more of them one after another, never at once
    assert sum(produced.size for produced in result.produced) < 40 * 48
    assert any("process limit was polled" in problem.message for problem in result.problems)


@pytest.mark.parametrize("held", [None, BARE], ids=["namespaces", "bare"])
def test_runs_at_once_do_not_count_each_other(shared_cache: Path, tmp_path: Path, held: Isolation | None) -> None:
    """RLIMIT_NPROC counts a user: two runs as one user once disturbed each other's limit."""
    script = """
    import os, subprocess
    running = [subprocess.Popen(['cat'], stdin=subprocess.PIPE) for _ in range(40)]
    for process in running: process.communicate()
    print(os.getuid())
    """

    def one(index: int) -> tuple[FailureKind | None, str]:
        folder = tmp_path / str(index)
        folder.mkdir()
        result = run(ProcessSandbox(held), folder, script)
        return result.failure, (folder / "out/0.stdout").read_text() or (folder / "out/0.stderr").read_text()

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(one, range(4)))
    assert [failure for failure, _ in found] == [None] * 4, found
    assert all(int(uid) != 0 for _, uid in found)


def test_root_that_cannot_become_somebody_else_runs_nothing(shared_cache: Path, tmp_path: Path) -> None:
    """No limit of processes binds root: a fork bomb would take the machine."""
    sandbox = ProcessSandbox(Isolation(False, "no", unusable="root cannot become uid 65400 here"))
    assert not sandbox.status().available
    with pytest.raises(ExpbenchError) as caught:
        run(sandbox, tmp_path, "print(1)")
    assert caught.value.kind is FailureKind.SANDBOX_UNAVAILABLE
    assert "CAP_SETUID" in caught.value.next_step


@root_only
@pytest.mark.skipif(not shutil.which("setpriv"), reason="no setpriv")
def test_missing_privilege_to_become_somebody_else_is_seen(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", "from pipeline.sandbox._users import can_become; print(can_become())"]
    dropped = ["setpriv", "--bounding-set=-setuid,-setgid", *argv]
    assert "cannot become" in subprocess.run(dropped, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True).stdout == "\n"


@root_only
@pytest.mark.parametrize("held", [None, BARE], ids=["namespaces", "bare"])
def test_cache_that_only_root_can_enter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: Isolation | None
) -> None:
    """Another pytest of the same user closes /tmp/pytest-of-root; whoever keeps a cache below such a place must know."""
    (tmp_path / "closed").mkdir(mode=0o700)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "closed"))
    sandbox = ProcessSandbox(held)
    if sandbox.held.namespaces:
        assert run(sandbox, tmp_path, "print(1)").failure is None
        return
    with pytest.raises(ExpbenchError) as caught:
        run(sandbox, tmp_path, "print(1)")
    assert caught.value.kind is FailureKind.SANDBOX_UNAVAILABLE
    assert "other users cannot enter" in caught.value.cause
    assert "XDG_CACHE_HOME" in caught.value.next_step


@pytest.mark.parametrize("held", [None, BARE], ids=["namespaces", "bare"])
def test_memory_that_is_asked_for_in_one_piece_is_refused(
    shared_cache: Path, tmp_path: Path, held: Isolation | None
) -> None:
    """Behind the polling stands a ceiling of the kernel's, at twice the limit and 512 MB."""
    result = run(ProcessSandbox(held), tmp_path, "import mmap\nm = mmap.mmap(-1, 8 << 30, flags=mmap.MAP_PRIVATE)")
    assert result.failure is FailureKind.RUN_OUT_OF_MEMORY
    assert result.commands[0].exit_code == 1
