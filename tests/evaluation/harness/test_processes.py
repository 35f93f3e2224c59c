"""The tracer and who listens to it, on this machine: the tracer needs no container."""

from __future__ import annotations

import json
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from evaluation.harness import processes
from evaluation.harness.processes import TRACE_SOCKET, ProcessRecorder
from evaluation.trajectory import CommandRun, Event, FileChange, Note
from pipeline.errors import ExpbenchError, FailureKind

WATCHER = resources.files("evaluation.harness._inside").joinpath("watch.py").read_text()


@pytest.fixture
def folder() -> Iterator[Path]:
    """With a short path: a socket's may hold 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="tr-") as name:
        yield Path(name)


def run(folder: Path, script: str, watcher: str = WATCHER) -> tuple[subprocess.CompletedProcess[str], list[Event]]:
    """A shell script as an agent, in a workspace with one masked file, under the tracer."""
    masked, work = folder / "masked", folder / "work"
    for place in (masked, work):
        place.mkdir()
        (place / "own.py").write_text("print('the repository is', 40 + 2)\n")
    events: list[Event] = []
    with ProcessRecorder(folder, str(work), str(folder / "inbox"), masked, events.append):
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", watcher, str(folder / TRACE_SOCKET), "--", "sh", "-c", script],
            cwd=work, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    return done, events


def commands(events: list[Event]) -> list[str]:
    return [event.command for event in events if isinstance(event, CommandRun)]


def test_every_program_is_told_with_its_script(folder: Path) -> None:
    python = shlex.quote(sys.executable)
    done, events = run(
        folder,
        f"echo 'print(7 * 6)' > gone.py; {python} gone.py; rm gone.py; {python} own.py; "
        "for n in 1 2 3; do env true; done; (setsid nohup sleep 0.01 > /dev/null 2>&1 &); sleep 0.05; exit 7",
    )
    assert done.returncode == 7
    assert done.stdout == "42\nthe repository is 42\n"
    seen = commands(events)
    for wanted in (
        f"{python} gone.py",
        "rm gone.py",
        f"{python} own.py",
        "env true",
        "true",
        "sleep 0.01",
        "sleep 0.05",
    ):
        assert seen.count(wanted) == 1, wanted
    assert all(event.observed and event.directory for event in events if isinstance(event, CommandRun))
    [script] = [event for event in events if isinstance(event, FileChange)]  # not the repository's own
    assert (Path(script.path).name, script.text) == ("gone.py", "print(7 * 6)\n")
    assert any(isinstance(event, Note) and event.text.startswith("4 further starts") for event in events)


def test_signals_stops_and_threads_go_on_as_without_it(folder: Path) -> None:
    program = (
        "import os, signal, threading, time; signal.signal(signal.SIGUSR1, lambda *_: print('usr1', flush=True)); "
        "threads = [threading.Thread(target=int) for _ in range(20)]; [t.start() for t in threads]; [t.join() for t in threads]; "
        "os.kill(os.getpid(), signal.SIGUSR1); child = os.fork(); "
        "child or (os.kill(os.getpid(), signal.SIGSTOP), os._exit(5)); "
        "print(os.WIFSTOPPED(os.waitpid(child, os.WUNTRACED)[1]), flush=True); os.kill(child, signal.SIGCONT); "
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True); os.kill(os.getpid(), signal.SIGTERM)"
    )
    done, _ = run(folder, f"exec {shlex.quote(sys.executable)} -c {shlex.quote(program)}")
    assert done.stdout == "usr1\nTrue\n5\n"
    assert done.returncode == -signal.SIGTERM


def test_the_tracer_cannot_be_left_behind(folder: Path) -> None:
    events: list[Event] = []
    with ProcessRecorder(folder, "/work", "/agent", folder, events.append):
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", WATCHER, str(folder / TRACE_SOCKET), "--", "sh", "-c", "echo $$; exec sleep 600"],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        with process:
            assert process.stdout is not None
            agent = int(process.stdout.readline())
            process.kill()
            process.wait(30)
            deadline = time.monotonic() + 30
            while time.monotonic() < deadline and _alive(agent):
                time.sleep(0.01)
    assert not _alive(agent)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_where_the_kernel_refuses_the_agent_runs_and_it_is_said(folder: Path) -> None:
    done, events = run(
        folder, "echo ran; exit 3", WATCHER.replace("SEIZE, CONT, LISTEN = 0x4206", "SEIZE, CONT, LISTEN = 0x42ff")
    )
    assert (done.stdout, done.returncode) == ("ran\n", 3)
    [note] = events
    assert isinstance(note, Note)
    assert "were not recorded: " in note.text


def test_only_the_tracer_is_listened_to(folder: Path) -> None:
    liar = (
        "import socket; s = socket.socket(socket.AF_UNIX); s.connect(r'%s'); "
        's.sendall(b\'{"argv": ["lies"], "cwd": "/"}\\n\')'
    ) % (folder / TRACE_SOCKET)
    _, events = run(folder, f"{shlex.quote(sys.executable)} -c {shlex.quote(liar)}")
    assert "lies" not in commands(events)


def test_nobody_connects_and_nonsense_is_named(folder: Path) -> None:
    events: list[Event] = []
    with ProcessRecorder(folder, "/work", "/agent", folder, events.append):
        pass
    assert events == []
    with ProcessRecorder(folder, "/work", "/agent", folder, events.append), socket.socket(socket.AF_UNIX) as tracer:
        tracer.connect(str(folder / TRACE_SOCKET))
        tracer.sendall(b"no json\n" + b'{"argv": 3}\n' + b'{"argv": ["ls"], "cwd": "/"}\n')
    assert [event.kind for event in events] == ["note", "note", "command"]
    assert not (folder / TRACE_SOCKET).exists()
    assert list(folder.iterdir()) == []


# --- what is made of what it is told


def listen_to(folder: Path, *told: dict[str, Any], masked: Path | None = None) -> list[Event]:
    """The events of a tracer that tells this."""
    events: list[Event] = []
    recorder = ProcessRecorder(folder, "/work", "/agent", masked or folder / "masked", events.append)
    with recorder, socket.socket(socket.AF_UNIX) as tracer:
        tracer.connect(str(folder / TRACE_SOCKET))
        tracer.sendall(b"".join(json.dumps(one).encode() + b"\n" for one in told))
    return events


def test_a_program_is_an_observed_command_with_its_directory(folder: Path) -> None:
    [event] = listen_to(folder, {"argv": ["grep", "a b", "it's"], "cwd": "/work/src", "cut": True, "more": 1})
    assert isinstance(event, CommandRun)
    assert shlex.split(event.command) == ["grep", "a b", "it's"]
    assert (event.directory, event.truncated, event.observed, event.at) == ("/work/src", True, True, 0)
    [whole] = listen_to(folder, {"argv": ["ls"], "cwd": "/"})
    assert isinstance(whole, CommandRun)
    assert not whole.truncated


def test_the_same_program_is_told_once_for_each_directory_and_counted(folder: Path) -> None:
    told = [{"argv": ["ls"], "cwd": place} for place in ("/a", "/a", "/b", "/a")]
    events = listen_to(folder, *told)
    assert [(event.command, event.directory) for event in events if isinstance(event, CommandRun)] == [
        ("ls", "/a"), ("ls", "/b"),
    ]  # fmt: skip
    assert isinstance(events[-1], Note)
    assert events[-1].text == "2 further starts of programs that are listed"


def test_so_many_different_programs_are_told_and_the_rest_is_counted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_MOST", 2)
    events = listen_to(folder, *({"argv": [name], "cwd": "/"} for name in "abacdb"))
    assert commands(events) == ["a", "b"]
    assert isinstance(events[-1], Note)
    assert events[-1].text == (
        "2 further starts of programs that are listed, 2 of programs that are not (more than 2 different ones)"
    )
    only = listen_to(folder, *({"argv": [name], "cwd": "/"} for name in "abc"))
    assert isinstance(only[-1], Note)
    assert only[-1].text.startswith("0 further starts of programs that are listed, 1 of programs that are not")


@pytest.mark.parametrize(
    ("program", "parent", "told"),
    [
        ("/usr/lib/git-core/git", "/usr/bin/git", False), ("/usr/lib/git-core/git-remote-https", "/usr/lib/git-core/git", False),
        ("/usr/lib/git-core/git", "bash", True), ("git", "/usr/bin/git", True), ("/usr/bin/git", "/usr/bin/git", True),
        ("/usr/lib/git-core/git", "", True),
    ],
)  # fmt: skip
def test_what_git_starts_for_itself_is_no_request_of_the_agent(
    folder: Path, program: str, parent: str, told: bool
) -> None:
    assert bool(listen_to(folder, {"argv": [program], "parent": parent, "cwd": "/"})) == told


def test_a_tracer_that_may_not_trace_is_told_and_nothing_else(folder: Path) -> None:
    [note] = listen_to(folder, {"failed": "OSError: no", "argv": ["ls"]})
    assert isinstance(note, Note)
    assert note.text == "programs that the agent started were not recorded: OSError: no"


@pytest.mark.parametrize(
    ("script", "text", "path"),
    [
        ("/work/own.py", "print(1)\n", None), ("/work/own.py", "print", None),  # cut at a bound: its beginning
        ("/work/own.py", "print(2)\n", "/work/own.py"), ("/work/own.py", "print(1)\nmore", "/work/own.py"),
        ("/work/new.py", "print(1)\n", "/work/new.py"), ("/tmp/own.py", "print(1)\n", "/tmp/own.py"),
        ("/work/umlaut.py", "ü", None), ("/work/umlaut.py", "ü = 1", None), ("/work/umlaut.py", "ü = 12", "/work/umlaut.py"),
        ("/agent/agent.sh", "echo", "agent.sh"), ("/agent/deep/x.py", "x", "x.py"),
        ("/work", "x", "/work"), ("", "x", None),
    ],
)  # fmt: skip
def test_a_script_is_a_file_of_the_agent_unless_it_is_the_repositorys_as_it_was(
    folder: Path, script: str, text: str, path: str | None
) -> None:
    masked = folder / "masked"
    masked.mkdir()
    (masked / "own.py").write_text("print(1)\n")
    (masked / "umlaut.py").write_text("ü = 1")
    events = listen_to(folder, {"argv": ["python"], "cwd": "/", "script": script, "text": text}, masked=masked)
    changes = [(event.path, event.action, event.text) for event in events if isinstance(event, FileChange)]
    assert changes == ([] if path is None else [(path, "created", text)])
    assert commands(events) == ["python"]


def test_a_socket_that_cannot_be_made_is_said_and_leaves_no_thread(folder: Path) -> None:
    deep = folder / ("d" * 110)
    deep.mkdir()
    with pytest.raises(ExpbenchError) as caught, ProcessRecorder(deep, "/work", "/agent", folder, print):
        pass
    assert caught.value.kind is FailureKind.SANDBOX_BROKEN
    assert str(deep) in caught.value.object
    assert not any(thread.name == "process recorder" for thread in threading.enumerate())
