"""Ask before a process or thread is started: the exact process limit where there is no cgroup to count.

A seccomp filter sends each fork, vfork, clone and clone3 of the run to the supervisor, which lets it go on or not. That
needs no privilege, counts one run (RLIMIT_NPROC counts a user, and not root at all), tells for certain that a limit was
hit, and freezes a fork bomb: while nobody answers, nothing can be started. Linux 5.5 or later. It does not judge any
other system call.
"""

# ruff: noqa: PTH123

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import select
import socket
import struct
import time
from collections.abc import Callable

from pipeline.sandbox._inside.wire import send_descriptor

LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_NO_NEW_PRIVS = 38
SET_MODE_FILTER, NEW_LISTENER, WAIT_KILLABLE = 1, 1 << 3, 1 << 5
KILL_PROCESS, USER_NOTIF, ALLOW = 0x80000000, 0x7FC00000, 0x7FFF0000
LOAD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
RECEIVE, SEND = 0xC0502100, 0xC0182101
GO_ON = 1
# machine -> (number of seccomp, {AUDIT_ARCH: (clone, fork, vfork, clone3 by their numbers there)})
X32 = 0x40000000
MACHINES = {
    "x86_64": (317, {0xC000003E: (56, 57, 58, 435, 56 | X32, 57 | X32, 58 | X32, 435 | X32),
                     0x40000003: (2, 120, 190, 435)}),
    "aarch64": (277, {0xC00000B7: (220, 435), 0x40000028: (2, 120, 190, 435)}),
}  # fmt: skip
# What was let go on happens within microseconds, or when a busy machine gives it its turn: until then its task is
# runnable. One that computes on is runnable too, so the wait ends. (3 ms for all let 69 tasks be there instead of 64.)
LOOK_S, TURN_S = 0.001, 0.1


def program(numbers: dict[int, tuple[int, ...]]) -> bytes:
    """The filter: the calls that start something are asked for, other architectures' calls end the process."""
    code = [(LOAD, 0, 0, 4)]
    for arch, calls in sorted(numbers.items()):
        code += [(JUMP_EQUAL, 0, len(calls) + 3, arch), (LOAD, 0, 0, 0)]
        code += [(JUMP_EQUAL, len(calls) - index, 0, call) for index, call in enumerate(calls)]
        code += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, USER_NOTIF)]
    code.append((RETURN, 0, 0, KILL_PROCESS))
    return b"".join(struct.pack("HBBI", *instruction) for instruction in code)


def install(channel: socket.socket) -> str:
    """In the child that becomes a command: put the filter on and hand its listener over; why not, or an empty text."""
    release = os.uname().release.split(".")
    machine = MACHINES.get(os.uname().machine)
    if machine is None:
        return f"no table of system calls for {os.uname().machine}"
    if (int(release[0]), int("".join(c for c in release[1] if c.isdigit()) or 0)) < (5, 5):
        return f"Linux {os.uname().release} is older than 5.5"
    if LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return "no_new_privs is refused"
    text = program(machine[1])
    kept = ctypes.create_string_buffer(text, len(text))
    filter_ = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(text) // 8, ctypes.addressof(kept)))
    for flags in (NEW_LISTENER | WAIT_KILLABLE, NEW_LISTENER):  # the second for Linux before 5.19
        listener = LIBC.syscall(machine[0], SET_MODE_FILTER, flags, filter_)
        if listener >= 0:
            send_descriptor(channel, b"l", listener)
            os.close(listener)
            return ""
    return f"seccomp: {os.strerror(ctypes.get_errno())}"


def runnable(task: int) -> bool:
    """Does a task (by its thread id) run, or wait for its turn?"""
    try:
        with open(f"/proc/{task}/stat", "rb") as stream:
            return stream.read().rpartition(b")")[2].split()[0] == b"R"
    except (OSError, IndexError):
        return False


class Gate:
    """The supervisor's side.

    Args:
        listener: what `install` handed over.
        most: tasks (processes and threads) that may be there at once.
        count: how many there are now, those that wait for their parent included.
    """

    def __init__(self, listener: int, most: int, count: Callable[[], int]) -> None:
        self.listener, self.most, self.count = listener, most, count
        os.set_inheritable(listener, False)
        self.bound = 1  # never less than what there is: counted once, plus what was let go on since
        self.going: dict[int, float] = {}  # task that was let go on, not seen asking again -> when
        self.shut = False

    def answer(self) -> bool:
        """Look at one request; False when nobody is left who could ask. After `shut` nothing is answered any more."""
        poll = select.poll()
        poll.register(self.listener, select.POLLIN)
        events = poll.poll(0)
        if not events:
            return True
        if not events[0][1] & select.POLLIN:
            return False
        request = bytearray(80)
        try:
            fcntl.ioctl(self.listener, RECEIVE, request)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EINTR):
                return True  # who asked has died
            raise
        number, task = struct.unpack_from("QI", request)
        self.going.pop(task, None)
        if self.bound >= self.most:
            self.settle()
            self.bound = self.count()
        if self.bound >= self.most:
            self.shut = True
            return True
        self.bound += 1
        self.going[task] = time.monotonic()
        reply = bytearray(struct.pack("QqiI", number, 0, 0, GO_ON))
        with contextlib.suppress(FileNotFoundError):  # it was interrupted, and asks again
            fcntl.ioctl(self.listener, SEND, reply)
        return True

    def settle(self) -> None:
        """Wait until what was let go on has happened; nobody else goes on meanwhile."""
        while self.going:
            now = time.monotonic()
            self.going = {task: at for task, at in self.going.items() if now - at < TURN_S and runnable(task)}
            if self.going:
                time.sleep(LOOK_S)

    def close(self) -> None:
        """From now on whatever is left and asks is refused."""
        os.close(self.listener)
