"""Start the agent under a tracer that tells which programs it starts: `watch.py SOCKET -- COMMAND ARGUMENT ...`.

Runs in the agent's container with that container's own Python (3.9 or later, standard library only; on any Linux, for
no registers are read). Every process that descends from the agent is traced by the kernel from its first
instruction; each `execve` is told to the harness through a unix socket: arguments, directory, and the text of a script
that an interpreter is given. What was told cannot be taken back, and the tracer cannot be left behind: when it dies,
the kernel kills all that it traces. A process is stopped only when it forks, starts a program, or gets a signal.

Not seen: what one process does inside itself (files that it opens, modules that it imports, a shell's builtins), and a
child that a program makes with clone(CLONE_UNTRACED) by hand.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    Trace = Callable[[int, int, int], None]

SEIZE, CONT, LISTEN = 0x4206, 7, 0x4208
OPTIONS = 0x2 | 0x4 | 0x8 | 0x10 | 0x100000  # fork, vfork, clone, exec; kill what is traced when the tracer ends
EXEC_EVENT, STOP_EVENT = 4, 128
GROUP_STOPS = (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
WALL = 0x40000000
SET_DUMPABLE = 4
MOST_TEXT = 1 << 16
MOST_ARGUMENTS = 1 << 15
INTERPRETERS = ("python", "bash", "sh", "dash", "zsh", "perl", "ruby", "node", "Rscript", "julia", "lua", "php")


def library() -> tuple[Trace, Callable[[], int]]:
    """The C library with ptrace declared; an OSError or ImportError says why there is none."""
    import ctypes

    found = ctypes.CDLL(None, use_errno=True)
    found.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    found.ptrace.restype = ctypes.c_long

    def ptrace(request: int, pid: int, data: int) -> None:
        if found.ptrace(request, pid, None, data) == -1:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))

    return ptrace, lambda: found.prctl(SET_DUMPABLE, 0, 0, 0, 0)


class Teller:
    """Tells the harness; a harness that is gone ends the container anyway."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(path)
        self._socket.set_inheritable(False)
        self._scripts: set[tuple[str, int, int]] = set()

    def tell(self, **what: object) -> None:
        """One line."""
        with contextlib.suppress(OSError):
            self._socket.sendall(json.dumps(what).encode("utf-8", "surrogateescape") + b"\n")

    def started(self, pid: int) -> None:
        """The program that a process has just become."""
        try:
            with Path(f"/proc/{pid}/cmdline").open("rb") as stream:
                raw = stream.read(MOST_ARGUMENTS)
            directory = Path(os.readlink(f"/proc/{pid}/cwd"))  # noqa: PTH115 - Python 3.8
        except OSError:  # killed meanwhile
            return
        arguments = [part.decode("utf-8", "replace") for part in raw.rstrip(b"\0").split(b"\0")]
        self.tell(
            argv=arguments,
            parent=parent_of(pid),
            cwd=str(directory),
            cut=len(raw) == MOST_ARGUMENTS,
            **self._script(arguments, directory),
        )

    def _script(self, arguments: list[str], directory: Path) -> dict[str, object]:
        """The file that an interpreter is given, once for each state of it."""
        if not Path(arguments[0]).name.rstrip("0123456789.").startswith(INTERPRETERS):
            return {}
        name = next((word for word in arguments[1:] if not word.startswith("-")), "")
        path = directory / name
        if not name or "-c" in arguments[1 : arguments.index(name)] or not path.is_file():
            return {}
        try:
            facts = path.stat()
            seen = (str(path), facts.st_size, facts.st_mtime_ns)
            if seen in self._scripts:
                return {}
            self._scripts.add(seen)
            with path.open("rb") as stream:
                return {"script": str(path), "text": stream.read(MOST_TEXT).decode("utf-8", "replace")}
        except OSError:
            return {}


def parent_of(pid: int) -> str:
    """What started the program: the parent's own program; empty where it has ended."""
    try:
        parent = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[1]
        return Path(f"/proc/{parent}/cmdline").read_bytes().split(b"\0")[0].decode("utf-8", "replace")
    except (OSError, IndexError):
        return ""


def started_child(command: list[str]) -> tuple[int, int]:
    """(process, pipe on which a byte lets it go on to become the agent)."""
    gate, opened = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(opened)
        os.read(gate, 1)
        try:
            os.execvp(command[0], command)  # noqa: S606 - no shell is meant
        except OSError as error:
            sys.stderr.write(f"the agent cannot be started: {command[0]}: {error.strerror}\n")
        os._exit(127)
    os.close(gate)
    return pid, opened


def follow(main: int, ptrace: Trace, teller: Teller) -> int:
    """Let everything run until the agent has ended; its wait status."""
    while True:
        pid, status = os.waitpid(-1, WALL)
        if not os.WIFSTOPPED(status):
            if pid == main:
                return status
            continue
        number, event = os.WSTOPSIG(status), status >> 16
        if event == EXEC_EVENT:
            teller.started(pid)
        stopped = event == STOP_EVENT and number in GROUP_STOPS
        with contextlib.suppress(OSError):  # killed meanwhile
            ptrace(LISTEN if stopped else CONT, pid, 0 if event else number)


def end_as(status: int) -> None:
    """End as the agent ended."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        os._exit(128 + number)
    os._exit(os.WEXITSTATUS(status))


def main(arguments: list[str]) -> None:
    """Connect, start, follow. Where the kernel does not let it, the agent runs untraced and the harness is told."""
    command = arguments[2:]
    teller = Teller(arguments[0])
    pid, gate = started_child(command)
    try:
        ptrace, hide = library()
        ptrace(SEIZE, pid, OPTIONS)
    except (OSError, ImportError, AttributeError) as error:
        teller.tell(failed=f"{type(error).__name__}: {error}")
        os.write(gate, b".")
        end_as(os.waitpid(pid, 0)[1])
    hide()  # another process of this user cannot take the tracer over
    os.write(gate, b".")
    os.close(gate)
    end_as(follow(pid, ptrace, teller))


if __name__ == "__main__":
    main(sys.argv[1:])
