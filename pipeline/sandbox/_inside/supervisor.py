"""The program that runs the commands *inside* a sandbox, for both back ends.

This package is sent into the sandbox as text (`_program.supervisor_source`) and run by a Python of the sandbox's own
with `-I -S`: it uses the standard library only, imports nothing of expbench but itself and must run on Python 3.8 and
later. It speaks frames (see `wire`) over its stdin and stdout; `_session.py` is the other end:

    in:   S spec (JSON)   D directory   F file, its bytes follow   L link   Z end of tree
          K end the commands   W wanted path   Y end of wishes
    out:  R tree is there   X could not start (JSON)   o/e output of a command   c command ended (JSON)
          U usage (JSON)   m manifest entry (JSON)   M end of manifest   f file   b bytes   g end of file
          N the outbox follows, in the same frames   z end

Rules it keeps:

- It runs as root where it can and the commands as an unprivileged user, so that they can neither signal it nor forge
  its frames. Everything that touches the tree's content is done by a child of that user.
- The client is alive as long as stdin is open: at its end everything is killed and the program exits, so a client that
  was killed leaves nothing that runs.
- A limit that is hit ends the run: what a program prints after "disk full" is no result. Processes that a command
  leaves behind are ended with it.

It does not decide what a failure means (see `pipeline.errors`), and copies out nothing that it was not asked for.
"""

# ruff: noqa: PTH103, PTH118, PTH120, PTH211
# byte paths: file names need not be UTF-8, and pathlib has none

from __future__ import annotations

import ctypes
import errno
import json
import os
import signal
import struct
import sys
import time
from collections.abc import Callable
from typing import Any, NoReturn

from pipeline.sandbox._inside.runner import Runner, ask_as_user, become_user, exit_code
from pipeline.sandbox._inside.tree import receive_tree, send_manifest, send_wanted
from pipeline.sandbox._inside.watch import Watch
from pipeline.sandbox._inside.wire import ClientGone, read_frame, send, send_json

PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
PATIENCE = 300  # times 10 ms
LIBC = ctypes.CDLL(None, use_errno=True)
CAPABILITIES_V3 = 0x20080522
# DAC_OVERRIDE (to measure directories that are closed), KILL, SETGID, SETUID: what it has in a container, and needs
KEPT = 1 << 1 | 1 << 5 | 1 << 6 | 1 << 7


def drop_capabilities() -> None:
    """Keep only the privileges that are needed, so that the same ones are missing on every machine."""
    header = ctypes.create_string_buffer(struct.pack("Ii", CAPABILITIES_V3, 0), 8)
    data = ctypes.create_string_buffer(24)
    if LIBC.capget(header, data) != 0:
        raise OSError(ctypes.get_errno(), "capget")
    effective, permitted, _, *_ = struct.unpack("6I", data.raw)
    data = ctypes.create_string_buffer(struct.pack("6I", effective & KEPT, permitted & KEPT, 0, 0, 0, 0), 24)
    if LIBC.capset(header, data) != 0:
        raise OSError(ctypes.get_errno(), "capset")


def fork_patiently() -> int:
    """Fork; the kernel takes a moment to give back the places of what was just killed."""
    for _ in range(PATIENCE):
        try:
            return os.fork()
        except BlockingIOError:
            time.sleep(0.01)
    return os.fork()


def in_child(work: Callable[[], None], spec: dict[str, Any]) -> int:
    """Run `work` as the unprivileged user in a child; its exit code (28 = disk full, 32 = client gone)."""
    pid = fork_patiently()
    if pid == 0:
        code = 1
        try:
            become_user(spec)
            work()
            code = 0
        except ClientGone:
            code = 32
        except OSError as error:
            code = 28 if error.errno in (errno.ENOSPC, errno.EDQUOT) else 1
            sys.stderr.write(f"supervisor: {error}\n")
            sys.stderr.flush()
        finally:
            os._exit(code)
    return exit_code(os.waitpid(pid, 0)[1])


def put_link(path: bytes, target: bytes) -> None:
    """The tree's file or folder at a path that programs name; what the tree does not have is not there either."""
    if os.path.lexists(target):
        os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
        os.symlink(os.path.normpath(target), path)


def serve() -> None:
    """One run, from the spec to the files."""
    kind, payload = read_frame()
    if kind != b"S":
        raise OSError(errno.EPROTO, "the first frame is not a spec")
    spec = json.loads(payload)
    if not spec["container"]:
        LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        # where commands run as the same user: /proc/<us>/fd and ptrace are closed to them
        LIBC.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
        drop_capabilities()
    work = os.fsencode(spec["work"])
    for directory in spec["make"]:
        in_child(lambda name=directory: os.makedirs(name, 0o755, exist_ok=True), spec)  # type: ignore[misc]
    code = in_child(lambda: receive_tree(work), spec)
    if code == 32:
        raise ClientGone
    if code:
        send_json(b"X", {"disk_full": code == 28})
        return
    for path, own in spec["links"]:
        put_link(os.fsencode(path), os.path.join(work, os.fsencode(own)))
    began = time.time_ns()
    send(b"R")
    watch = Watch(spec, lambda work: ask_as_user(spec, work))
    runner = Runner(spec, watch)
    try:
        for index, command in enumerate(spec["commands"]):
            result = runner.run(index, command)
            send_json(b"c", result)
            if result["exit_code"] != 0:
                break
    except (ClientGone, BrokenPipeError):
        runner.kill_all()
        raise
    send_json(b"U", {"peak_memory_bytes": max(watch.peak, runner.rss), "cpu_s": runner.cpu_s})
    in_child(lambda: send_manifest(work, spec["disk_bytes"], began), spec)
    in_child(lambda: send_wanted(work), spec)
    if spec["outbox"]:
        outbox = os.fsencode(spec["outbox"])
        send(b"N")
        in_child(lambda: send_manifest(outbox, spec["disk_bytes"], began), spec)
        in_child(lambda: send_wanted(outbox), spec)
    send(b"z")


def main() -> NoReturn:
    """Entry point; exit code 0 when the protocol came to its end."""
    code = 0
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        serve()
    except (ClientGone, BrokenPipeError):
        code = 3
    os._exit(code)
