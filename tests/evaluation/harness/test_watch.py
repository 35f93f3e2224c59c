"""The tracer inside the container, part by part: what it tells of a program, what it lets go on, how it ends."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evaluation.harness._inside import watch
from evaluation.harness._inside.watch import Teller
from evaluation.harness.processes import TRACE_SOCKET, ProcessRecorder
from evaluation.trajectory import CommandRun, Event, Note

PROGRAM = watch.__file__


@pytest.fixture
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="wa-") as name:
        yield Path(name)


class Harness:
    """The end that is told."""

    def __init__(self, place: Path) -> None:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(place / "s"))
            listener.listen()
            self.teller = Teller(str(place / "s"))
            self.end, _ = listener.accept()
        self.lines = self.end.makefile("rb")

    def line(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.lines.readline())
        return found

    def close(self) -> None:
        self.lines.close()
        self.end.close()


@pytest.fixture
def harness(place: Path) -> Iterator[Harness]:
    made = Harness(place)
    yield made
    made.close()
    made.teller._socket.close()


# --- what is told


def test_a_line_is_json_whatever_is_in_it(harness: Harness) -> None:
    harness.teller.tell(text="ü\n\udcff", number=3)
    assert harness.line() == {"text": "ü\n\udcff", "number": 3}
    assert not harness.teller._socket.get_inheritable(), "the agent's programs do not get it"


def test_a_harness_that_is_gone_is_no_error(harness: Harness) -> None:
    harness.close()
    for _ in range(3):
        harness.teller.tell(text="x")


@pytest.fixture
def child(place: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A Python that runs a script in a directory of its own and waits."""
    (place / "work").mkdir()
    (place / "work" / "run.py").write_text("print(1, flush=True); input()\n")
    command = [sys.executable, "-u", "run.py", "--level", "ü"]
    with subprocess.Popen(command, cwd=place / "work", stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def test_a_program_is_told_with_arguments_directory_parent_and_script(
    harness: Harness, child: subprocess.Popen[bytes], place: Path
) -> None:
    harness.teller.started(child.pid)
    own = Path("/proc/self/cmdline").read_bytes().split(b"\0")[0].decode()
    assert harness.line() == {
        "argv": [sys.executable, "-u", "run.py", "--level", "ü"], "parent": own, "cwd": str(place / "work"),
        "cut": False, "script": str(place / "work" / "run.py"), "text": "print(1, flush=True); input()\n",
    }  # fmt: skip
    harness.teller.started(child.pid)
    assert "script" not in harness.line(), "its text is told once"


def test_arguments_are_told_up_to_a_bound(
    harness: Harness, child: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "MOST_ARGUMENTS", len(sys.executable) + 3)
    harness.teller.started(child.pid)
    told = harness.line()
    assert (told["argv"], told["cut"]) == ([sys.executable, "-u"], True)


def test_a_process_that_has_ended_is_passed_over(harness: Harness) -> None:
    done = subprocess.Popen(["true"])
    done.wait()
    harness.teller.started(done.pid)
    harness.teller.tell(next=1)
    assert harness.line() == {"next": 1}


def test_the_parents_program_is_named_while_it_lives(child: subprocess.Popen[bytes]) -> None:
    assert watch.parent_of(child.pid) == Path("/proc/self/cmdline").read_bytes().split(b"\0")[0].decode()
    child.kill()
    child.wait()
    assert watch.parent_of(child.pid) == ""


@pytest.mark.parametrize(
    ("arguments", "script"),
    [
        (["python", "a.py"], True), (["/usr/bin/python3.11", "a.py", "b"], True), (["bash", "-x", "a.py"], True),
        (["Rscript", "a.py"], True), (["sh", "a.py"], True), (["julia", "a.py"], True), (["node20", "a.py"], True),
        (["cat", "a.py"], False), (["python", "-c", "a.py"], False), (["python", "-m", "none"], False),
        (["python"], False), (["python", "-u"], False), (["python", "missing.py"], False), (["python", "."], False),
        (["python", "a.py", "-c"], True), (["", "a.py"], False),
    ],
)  # fmt: skip
def test_the_file_that_an_interpreter_is_given(
    harness: Harness, place: Path, arguments: list[str], script: bool
) -> None:
    (place / "a.py").write_text("text")
    told = harness.teller._script(arguments, place)
    assert told == ({"script": str(place / "a.py"), "text": "text"} if script else {})


def test_a_script_is_told_again_when_it_has_changed(harness: Harness, place: Path) -> None:
    script = place / "a.py"
    seen = []
    for text, when in (("a", 1), ("a", 1), ("b", 2), ("b", 2), ("bc", 2), ("a", 1)):
        script.write_text(text)
        os.utime(script, ns=(when, when))
        seen.append(harness.teller._script(["python", "a.py"], place).get("text"))
    assert seen == ["a", None, "b", None, "bc", None]


def test_a_script_is_told_up_to_a_bound_and_need_be_no_text(
    harness: Harness, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "MOST_TEXT", 4)
    (place / "a.py").write_bytes(b"ab\xffdef")
    assert harness.teller._script(["python", "a.py"], place)["text"] == "ab\ufffdd"


def test_a_script_that_cannot_be_read_is_none(harness: Harness, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "a.py").write_text("x")

    def refused(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "open", refused)
    assert harness.teller._script(["python", "a.py"], place) == {}


# --- what is let go on

EXITED, KILLED = 7 << 8, signal.SIGKILL


def stopped(number: int, event: int = 0) -> int:
    return event << 16 | number << 8 | 0x7F


class Told:
    def __init__(self) -> None:
        self.pids: list[int] = []

    def started(self, pid: int) -> None:
        self.pids.append(pid)


def follow(
    monkeypatch: pytest.MonkeyPatch, *seen: tuple[int, int]
) -> tuple[int, list[tuple[int, int, int]], list[int]]:
    """What `follow` returns for process 10, what it asks of the kernel, and which programs it tells."""
    waiting = list(seen)
    asked: list[tuple[int, int, int]] = []
    told = Told()

    def waitpid(pid: int, options: int) -> tuple[int, int]:
        assert (pid, options) == (-1, 0x40000000)  # any, threads included
        return waiting.pop(0)

    monkeypatch.setattr(os, "waitpid", waitpid)
    status = watch.follow(10, lambda request, pid, data: asked.append((request, pid, data)), told)  # type: ignore[arg-type]
    assert waiting == []
    return status, asked, told.pids


CONT, LISTEN = 7, 0x4208


@pytest.mark.parametrize(
    ("status", "asked", "told"),
    [
        (stopped(signal.SIGTRAP, 4), (CONT, 11, 0), [11]),  # a program begins
        (stopped(signal.SIGTRAP, 1), (CONT, 11, 0), []),  # a fork
        (stopped(signal.SIGTRAP, 3), (CONT, 11, 0), []),  # a clone
        (stopped(signal.SIGUSR1), (CONT, 11, signal.SIGUSR1), []),  # a signal is handed on
        (stopped(signal.SIGTRAP), (CONT, 11, signal.SIGTRAP), []),
        (stopped(signal.SIGTRAP, 128), (CONT, 11, 0), []),  # a new process
        *((stopped(number, 128), (LISTEN, 11, 0), [])  # it was stopped: it stays so until it is continued
          for number in (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)),
        (stopped(signal.SIGSTOP), (CONT, 11, signal.SIGSTOP), []),
    ],
)  # fmt: skip
def test_each_stop_is_answered(
    monkeypatch: pytest.MonkeyPatch, status: int, asked: tuple[int, int, int], told: list[int]
) -> None:
    assert follow(monkeypatch, (11, status), (10, EXITED)) == (EXITED, [asked], told)


def test_the_end_of_the_agent_ends_it_and_that_of_another_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    assert follow(monkeypatch, (11, EXITED), (12, KILLED), (10, KILLED)) == (KILLED, [], [])


def test_a_process_that_was_killed_while_it_was_stopped_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = [(11, stopped(signal.SIGUSR1)), (10, EXITED)]
    monkeypatch.setattr(os, "waitpid", lambda *_: waiting.pop(0))

    def gone(*_: int) -> None:
        raise ProcessLookupError

    assert watch.follow(10, gone, Told()) == EXITED  # type: ignore[arg-type]


# --- beginning and end


def test_the_child_waits_for_its_word_and_becomes_the_agent(place: Path) -> None:
    made = place / "made"
    pid, gate = watch.started_child(["sh", "-c", f"touch {made}; exit 5"])
    time.sleep(0.05)
    assert not made.exists()
    os.write(gate, b".")
    os.close(gate)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 5
    assert made.exists()


def test_the_c_library_says_why_it_refuses() -> None:
    ptrace, _ = watch.library()
    done = subprocess.Popen(["true"])
    done.wait()
    with pytest.raises(ProcessLookupError):
        ptrace(watch.CONT, done.pid, 0)


def ended(call: str) -> int:
    code = f"import sys; sys.path.insert(0, {str(Path(PROGRAM).parent)!r}); import watch; {call}"
    return subprocess.run([sys.executable, "-c", code], check=False).returncode


@pytest.mark.parametrize(
    ("status", "code"),
    [(0, 0), (7 << 8, 7), (255 << 8, 255), (signal.SIGKILL, -signal.SIGKILL), (signal.SIGTERM, -signal.SIGTERM),
     (signal.SIGINT, -signal.SIGINT)],
)  # fmt: skip
def test_it_ends_as_the_agent_ended(status: int, code: int) -> None:
    assert ended(f"watch.end_as({int(status)})") == code


def test_a_signal_that_is_held_back_is_told_as_a_shell_would() -> None:
    block = "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM]); "
    assert ended(f"{block}watch.end_as({int(signal.SIGTERM)})") == 128 + signal.SIGTERM


def trace(place: Path, *command: str, program: str = PROGRAM) -> tuple[subprocess.CompletedProcess[str], list[Event]]:
    """A command under the tracer, and what its recorder makes of it."""
    events: list[Event] = []
    with ProcessRecorder(place, str(place), "/agent", place, events.append):
        done = subprocess.run(
            [sys.executable, "-I", "-S", program, str(place / TRACE_SOCKET), "--", *command],
            cwd=place, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    return done, events


def test_what_descends_from_the_agent_is_traced_from_its_first_instruction(place: Path) -> None:
    fork = "import os; pid = os.fork(); pid or os.execvp('true', ['true', 'forked']); os.waitpid(pid, 0)"
    spawn = "import os; os.waitpid(os.posix_spawnp('true', ['true', 'spawned'], os.environ), 0)"
    thread = (
        "import subprocess, threading; "
        "t = threading.Thread(target=subprocess.run, args=(['true', 'of a thread'],)); t.start(); t.join()"
    )
    both = f'{sys.executable} -c "{fork}"; {sys.executable} -c "{spawn}"; {sys.executable} -c "{thread}"; exit 6'
    done, events = trace(place, "sh", "-c", both)
    assert (done.returncode, done.stdout, done.stderr) == (6, "", "")
    seen = [event.command for event in events if isinstance(event, CommandRun)]
    assert {"true forked", "true spawned", "true 'of a thread'"} <= set(seen)
    assert seen[0].startswith("sh -c ")


def test_the_tracer_is_closed_to_the_agent_and_its_end_is_the_agents(place: Path) -> None:
    script = "stat -c %u /proc/$PPID/mem > owner; kill -9 $PPID; sleep 60; echo survived > survived"
    done, _ = trace(place, "sh", "-c", script)
    assert done.returncode == -signal.SIGKILL
    time.sleep(0.2)
    assert not (place / "survived").exists()


def test_an_agent_that_cannot_be_started_says_so_under_the_tracer(place: Path) -> None:
    done, _ = trace(place, "/no/such/agent")
    assert done.returncode == 127
    assert done.stderr == "the agent cannot be started: /no/such/agent: No such file or directory\n"


def test_a_kernel_that_refuses_lets_the_agent_run_untraced_and_it_is_told(place: Path) -> None:
    refused = place / "watch.py"
    refused.write_text(
        Path(PROGRAM).read_text().replace("SEIZE, CONT, LISTEN = 0x4206", "SEIZE, CONT, LISTEN = 0x42ff")
    )
    done, events = trace(place, "sh", "-c", "echo ran; exit 4", program=str(refused))
    assert (done.stdout, done.returncode) == ("ran\n", 4)
    [note] = events
    assert isinstance(note, Note)
    assert note.text.startswith("programs that the agent started were not recorded: ")


@pytest.mark.skipif(shutil.which("bash") is None, reason="job control is bash's")
def test_a_stopped_process_stays_stopped_until_it_is_continued(place: Path) -> None:
    program = (
        "import os, signal, time\n"
        "child = os.fork()\n"
        "if not child:\n    os.kill(os.getpid(), signal.SIGSTOP)\n    os._exit(9)\n"
        "assert os.WIFSTOPPED(os.waitpid(child, os.WUNTRACED)[1])\n"
        "time.sleep(0.1)\n"
        "assert os.waitpid(child, os.WNOHANG)[0] == 0\n"
        "os.kill(child, signal.SIGCONT)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    done, _ = trace(place, sys.executable, "-c", program)
    assert (done.stdout, done.stderr) == ("9\n", "")
