"""Start one command after another as the unprivileged user, forward its output, end it at its limits."""

# ruff: noqa: PTH118, PTH123
# byte paths: file names need not be UTF-8, and pathlib has none

from __future__ import annotations

import contextlib
import os
import resource
import select
import selectors
import signal
import socket
import time
from collections.abc import Callable
from typing import Any

from pipeline.sandbox._inside.gate import Gate, install
from pipeline.sandbox._inside.watch import POLL_S, Watch, below, descendants, processes, tasks_below
from pipeline.sandbox._inside.wire import INDEX, STOP, ClientGone, read_frame, receive_descriptor, send

CHUNK = 1 << 16
ASK_S = 2.0  # 5 ms when nobody disturbs


def limit_processes(spec: dict[str, Any], channel: socket.socket) -> None:
    """In the child: the gate, and the kernel's own limit of this user's processes, exact where there is no gate."""
    if spec["nproc"] is None:
        return
    why = install(channel) if spec["nproc"]["gate"] else "switched off"
    if why:
        channel.send(why.encode("utf-8", "replace")[:500])
    most = spec["nproc"]["alone" if why else "beside_gate"]
    if most is not None:
        resource.setrlimit(resource.RLIMIT_NPROC, (most, most))


def exit_code(status: int) -> int:
    """What `os.waitstatus_to_exitcode` says, which Python 3.8 does not have: minus the signal, or the exit code."""
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def become_user(spec: dict[str, Any]) -> None:
    """Give up root, where there is a user to become."""
    os.umask(0o022)
    if spec["uid"] is not None:
        os.setgroups([])
        os.setresgid(spec["gid"], spec["gid"], spec["gid"])
        os.setresuid(spec["uid"], spec["uid"], spec["uid"])


def ask_as_user(spec: dict[str, Any], work: Callable[[], bytes]) -> bytes:
    """What `work` gives when the unprivileged user does it; what was written so far when that user's others stop it."""
    if spec["uid"] is None:
        return work()
    reader, writer = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        try:
            become_user(spec)
            os.write(writer, work())
        finally:
            os._exit(0)
    os.close(writer)
    data, deadline = b"", time.monotonic() + ASK_S
    while select.select([reader], [], [], max(0.0, deadline - time.monotonic()))[0]:
        part = os.read(reader, CHUNK)
        if not part:
            break
        data += part
    os.close(reader)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)
    return data


def spawn(
    command: dict[str, Any], spec: dict[str, Any], stdout: int, stderr: int, channel: socket.socket
) -> tuple[int, str]:
    """Start a command; (pid, "") or (-1, why it could not start). What `limit_processes` says is on the channel."""
    report, tell = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as stream:
                stream.write("1000")
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            for name, value in spec["rlimits"].items():
                resource.setrlimit(getattr(resource, name), (value, value))
            if spec["cpus"]:
                os.sched_setaffinity(0, spec["cpus"])
            become_user(spec)
            limit_processes(spec, channel)
            os.chdir(os.path.join(os.fsencode(spec["work"]), os.fsencode(command["directory"])))
            null = os.open("/dev/null", os.O_RDONLY)
            for source, target in ((null, 0), (stdout, 1), (stderr, 2)):
                os.dup2(source, target)
            for number in (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            os.closerange(3, tell)
            os.closerange(tell + 1, 1024)
            os.execvpe(command["argv"][0], command["argv"], spec["env"])  # noqa: S606 - no shell is meant
        except BaseException as error:  # noqa: BLE001 - told to the parent, this process ends
            os.write(tell, str(error).encode("utf-8", "replace")[:4000])
        finally:
            os._exit(127)
    os.close(tell)
    why = b""
    while True:
        part = os.read(report, 4096)
        if not part:
            break
        why += part
    os.close(report)
    return (-1, why.decode("utf-8", "replace")) if why else (pid, "")


class Runner:
    """Runs one command at a time under the limits."""

    def __init__(self, spec: dict[str, Any], watch: Watch) -> None:
        self.spec, self.watch = spec, watch
        self.deadline = time.monotonic() + spec["wall_s"]
        self.status: dict[int, int] = {}
        self.rss = 0
        self.cpu_s = 0.0
        self.gate: Gate | None = None
        self.ungated = ""
        wake_r, wake_w = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self.wake = wake_r
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake_w, warn_on_full_buffer=False)

    def reap(self) -> None:
        """Collect what has ended, strays that came back to us included."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.rss = max(self.rss, usage.ru_maxrss * 1024)
            self.cpu_s += usage.ru_utime + usage.ru_stime
            self.status[pid] = status

    def tasks(self) -> int:
        """Processes and threads of the run, zombies included; those that are ours to collect are collected first."""
        self.reap()
        return tasks_below()

    def kill_all(self) -> bool:
        """End every process of the run, and collect it; False when some would not die within five seconds.

        A zombie holds its place in the container's count: leaving them once left no room for our own next process.
        """
        for _ in range(500):
            if self.spec["kill_everything"]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(-1, signal.SIGKILL)
                left = [pid for pid in processes() if pid not in (1, os.getpid())]
            else:
                left = below(processes())
                if descendants() and self.spec["uid"] is not None:
                    self.kill_user()
                for number in (signal.SIGSTOP, signal.SIGKILL):
                    for pid in left:
                        with contextlib.suppress(ProcessLookupError, PermissionError):
                            os.kill(pid, number)
            self.reap()
            if not left:
                return True
            time.sleep(0.01)
        return False

    def kill_user(self) -> None:
        """End everything of the run's own user in one go of the kernel, which no fork can outrun."""

        def kill() -> bytes:
            if os.getuid() != 0:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(-1, signal.SIGKILL)
            return b""

        ask_as_user(self.spec, kill)

    def start(self, command: dict[str, Any], stdout: int, stderr: int) -> tuple[int, str]:
        """Start a command and take over the listener of its gate."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            pid, why = spawn(command, self.spec, stdout, stderr, theirs)
            ours.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                said, listener = receive_descriptor(ours, 512)
                if listener is not None:
                    self.gate = Gate(listener, int(self.spec["pids"]), self.tasks)
                else:
                    self.ungated = said.decode("utf-8", "replace")
                    self.watch.counts_tasks = True
        return pid, why

    def run(self, index: int, command: dict[str, Any]) -> dict[str, Any]:
        """One command until it ends or a limit is hit; the record that the client gets."""
        begin = time.monotonic()
        pipes = [os.pipe2(os.O_CLOEXEC), os.pipe2(os.O_CLOEXEC)]
        pid, why = self.start(command, pipes[0][1], pipes[1][1])
        for _, writer in pipes:
            os.close(writer)
        streams = {pipes[0][0]: [b"o", 0], pipes[1][0]: [b"e", 0]}
        limit = None if pid < 0 else self.follow(pid, index, streams)
        gone = self.kill_all()
        if self.gate is not None:
            self.gate.close()
            self.gate = None
        for fd, stream in streams.items():
            flooded = self.drain(fd, index, stream)
            limit = limit or flooded
            os.close(fd)
        code = exit_code(self.status.get(pid, signal.SIGKILL))
        if pid >= 0 and limit is None:
            # what stands there holds however the command ended: whether a poll saw it would be luck, and was, for
            # 80 MB written in .1 s by a command that ended well
            limit = self.watch.exceeded(force=True)
        return {
            "exit_code": None if pid < 0 or limit else 128 - code if code < 0 else code,
            "limit": limit,
            "why": why,
            "all_ended": gone,
            "ungated": self.ungated,
            "stdout_bytes": streams[pipes[0][0]][1],
            "stderr_bytes": streams[pipes[1][0]][1],
            "truncated": limit == "run_output_limit",
            "duration_s": round(time.monotonic() - begin, 4),
        }

    def follow(self, pid: int, index: int, streams: dict[int, list[Any]]) -> str | None:
        """Forward output until the command has ended; the limit that was hit, or None."""
        with selectors.DefaultSelector() as selector:
            for fd in (0, self.wake, *streams):
                os.set_blocking(fd, fd == 0)
                selector.register(fd, selectors.EVENT_READ)
            if self.gate is not None:
                selector.register(self.gate.listener, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select(POLL_S):
                    limit = self.handle(key.fd, index, streams, selector)
                    if limit:
                        return limit
                self.reap()
                if pid in self.status:
                    return None
                if time.monotonic() > self.deadline:
                    self.watch.exceeded(force=True)
                    return "run_timeout"
                limit = self.watch.exceeded()
                if limit:
                    return limit

    def handle(
        self, fd: int, index: int, streams: dict[int, list[Any]], selector: selectors.BaseSelector
    ) -> str | None:
        """What one readable descriptor has to say; the limit that it hit, or None."""
        if fd == 0:
            if read_frame()[0] == STOP:
                return "interrupted"
            raise ClientGone
        if fd == self.wake:
            os.read(self.wake, 4096)
        elif self.gate is not None and fd == self.gate.listener:
            if not self.gate.answer():
                selector.unregister(fd)
            return "run_process_limit" if self.gate.shut else None
        else:
            data = os.read(fd, CHUNK)
            if not data:
                selector.unregister(fd)
            elif self.forward(index, streams[fd], data):
                return "run_output_limit"
        return None

    def forward(self, index: int, stream: list[Any], data: bytes) -> bool:
        """Send output on; True when it went over the limit (what is over is dropped)."""
        room = int(self.spec["output_bytes"]) - int(stream[1])
        stream[1] += min(room, len(data))
        if room > 0:
            send(stream[0], INDEX.pack(index) + data[:room])
        return len(data) > room

    def drain(self, fd: int, index: int, stream: list[Any]) -> str | None:
        """What is still in the pipe after everything has ended."""
        os.set_blocking(fd, False)
        while True:
            try:
                data = os.read(fd, CHUNK)
            except BlockingIOError:
                return None
            if not data:
                return None
            if self.forward(index, stream, data):
                return "run_output_limit"
