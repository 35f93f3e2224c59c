"""What a run uses: memory, disk, processes - from the container's cgroup, or from /proc."""

# ruff: noqa: PTH112, PTH118, PTH123, PTH208
# byte paths: file names need not be UTF-8, and pathlib has none

from __future__ import annotations

import contextlib
import os
import time
from typing import Any

POLL_S = 0.05  # how far a bomb can go past a soft limit; the hard limits are the kernel's
WALK_S = 0.5  # where only walking the directories tells how full they are
NEARLY_FULL = 1 << 16


def first_number(path: str, key: str) -> int | None:
    """The number after `key` in a cgroup's flat file, None where there is none."""
    try:
        with open(path, encoding="ascii") as stream:
            for line in stream:
                name, _, value = line.partition(" ")
                if name == key:
                    return int(value)
    except (OSError, ValueError):
        return None
    return None


def processes() -> dict[int, tuple[int, str]]:
    """Pid -> (parent, state) of all that /proc shows."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as stream:
                    fields = stream.read().rpartition(b")")[2].split()
            except OSError:
                continue
            found[int(name)] = (int(fields[1]), fields[0].decode("ascii"))
    return found


def descendants() -> list[int]:
    """Living processes below this one (orphans come back to us: we are their subreaper, or pid 1's tree is ours)."""
    table = processes()
    mine: set[int] = {os.getpid()}
    grew = True
    while grew:
        below = {pid for pid, (parent, _) in table.items() if parent in mine} - mine
        mine |= below
        grew = bool(below)
    return sorted(pid for pid in mine if pid != os.getpid() and table.get(pid, (0, "Z"))[1] not in "ZX")


class Watch:
    """Looks at what the run uses and says which limit it went over.

    Memory is what cannot be given back: anonymous pages, and shared memory that no watched directory explains (files in
    a tmpfs are disk, not memory). In a container the cgroup tells; elsewhere the processes' own counters are summed.
    """

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.container = spec["container"]
        self.peak = 0
        self.next = 0.0
        self.walked = 0.0
        self.below = 0
        v1 = os.path.isdir("/sys/fs/cgroup/memory")
        self.stat = "/sys/fs/cgroup/memory/memory.stat" if v1 else "/sys/fs/cgroup/memory.stat"
        self.anon, self.shared = ("total_rss", "total_shmem") if v1 else ("anon", "shmem")
        self.oom = "/sys/fs/cgroup/memory/memory.oom_control" if v1 else "/sys/fs/cgroup/memory.events"
        self.pids = "/sys/fs/cgroup/pids/pids.events" if v1 else "/sys/fs/cgroup/pids.events"

    def disk(self, force: bool) -> tuple[int, bool]:
        """(bytes used below all watched directories, is one of them full?)."""
        used, full = 0, False
        for directory in self.spec["disks"]:
            info = os.statvfs(directory)
            used += (info.f_blocks - info.f_bfree) * info.f_frsize
            full = full or info.f_bavail * info.f_frsize < NEARLY_FULL or (info.f_files > 0 and info.f_favail < 8)
        if self.spec["directories"] and (force or time.monotonic() - self.walked > WALK_S):
            self.below = sum(size_below(directory) for directory in self.spec["directories"])
            self.walked = time.monotonic()
        used += self.below
        return used, full or used > self.spec["disk_bytes"] - NEARLY_FULL

    def memory(self, disk_used: int) -> int:
        """Bytes of memory in use."""
        if self.container:
            anon, shared = first_number(self.stat, self.anon) or 0, first_number(self.stat, self.shared) or 0
            return anon + max(0, shared - disk_used)
        below = descendants()
        total = 1024 * sum(status_kb(pid, "RssAnon:") for pid in below)
        if total > self.spec["memory_bytes"]:  # forked workers count their parent's pages again: look closely
            total = 1024 * sum(number_in(f"/proc/{pid}/smaps_rollup", "Pss_Anon:") for pid in below)
        return total + 1024 * max([status_kb(pid, "RssShmem:") for pid in below], default=0)

    def exceeded(self, force: bool = False) -> str | None:
        """The failure kind of the limit that was hit, or None. Cheap to call: looks once per `POLL_S`."""
        now = time.monotonic()
        if not force and now < self.next:
            return None
        self.next = now + POLL_S
        used, full = self.disk(force)
        memory = self.memory(used)
        self.peak = max(self.peak, memory)
        if self.container and (first_number(self.oom, "oom_kill") or 0) > 0:
            self.peak = max(self.peak, self.spec["memory_bytes"])
            return "run_out_of_memory"
        if memory > self.spec["memory_bytes"]:
            return "run_out_of_memory"
        if full:
            return "run_disk_full"
        return "run_process_limit" if self.crowded() else None

    def crowded(self) -> bool:
        """Was a process refused, or are there as many as there may be?"""
        if self.container:
            return (first_number(self.pids, "max") or 0) > 0
        return threads_below() >= int(self.spec["pids"])


def threads_below() -> int:
    """Tasks (threads count) of all descendants."""
    return sum(status_kb(pid, "Threads:") for pid in descendants())


def status_kb(pid: int, key: str) -> int:
    """A number of /proc/<pid>/status."""
    return number_in(f"/proc/{pid}/status", key)


def number_in(path: str, key: str) -> int:
    """The number after `key` in a file of /proc, 0 where it is gone."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            for line in stream:
                if line.startswith(key):
                    return int(line.split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return 0


def size_below(directory: str) -> int:
    """Bytes that the files below a directory take on disk."""
    total = 0
    for here, _, files in os.walk(os.fsencode(directory)):
        for name in files:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(here, name)).st_blocks * 512
    return total
