"""What a run uses: memory, disk, processes - from the container's cgroup, or from /proc."""

# ruff: noqa: PTH112, PTH118, PTH123, PTH208
# byte paths: file names need not be UTF-8, and pathlib has none

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable
from typing import Any

POLL_S = 0.02  # how far a bomb can go past a soft limit; the hard limits are the kernel's
SHARE = 4  # looking takes at most a quarter of the supervisor's time, however many processes and files there are
WALK_S = 0.2  # where only walking the directories tells how full they are
NEARLY_FULL = 1 << 16
BLOCK = 4096  # what an entry of a directory costs at least: a million empty files fill a disk too


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


def below(table: dict[int, tuple[int, str]]) -> list[int]:
    """Pids below this process (orphans come back to us: we are their subreaper, or pid 1's tree is ours)."""
    children: dict[int, list[int]] = {}
    for pid, (parent, _) in table.items():
        children.setdefault(parent, []).append(pid)
    found, left = [], [os.getpid()]
    while left:
        next_ = children.get(left.pop(), [])
        found += next_
        left += next_
    return sorted(found)


def descendants() -> list[int]:
    """Living processes below this one."""
    table = processes()
    return [pid for pid in below(table) if table[pid][1] not in "ZX"]


class Watch:
    """Looks at what the run uses and says which limit it went over.

    Memory is what cannot be given back: anonymous pages, and shared memory that no watched directory explains (files in
    a tmpfs are disk, not memory). In a container the cgroup tells; elsewhere the processes' own counters are summed.
    """

    def __init__(self, spec: dict[str, Any], as_user: Callable[[Callable[[], bytes]], bytes]) -> None:
        self.spec, self.as_user = spec, as_user
        self.container = spec["container"]
        self.counts_tasks = False
        self.peak = 0
        self.next = 0.0
        self.walked = 0.0
        self.used_below = 0
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
        now = time.monotonic()
        if self.spec["directories"] and (force or now > self.walked):
            enough = self.spec["disk_bytes"]
            self.used_below = sum(size_below(directory, enough) for directory in self.spec["directories"])
            self.walked = time.monotonic() + max(WALK_S, SHARE * (time.monotonic() - now))
        used += self.used_below
        return used, full or used > self.spec["disk_bytes"] - NEARLY_FULL

    def memory(self, disk_used: int) -> int:
        """Bytes of memory in use."""
        if self.container:
            anon, shared = first_number(self.stat, self.anon) or 0, first_number(self.stat, self.shared) or 0
            return anon + max(0, shared - disk_used)
        pids = descendants()
        anonymous = {pid: 1024 * status_kb(pid, "RssAnon:") for pid in pids}
        if sum(anonymous.values()) > self.spec["memory_bytes"]:  # forked workers count their parent's pages again
            anonymous.update(self.shares(pids))
        return sum(anonymous.values()) + 1024 * max([status_kb(pid, "RssShmem:") for pid in pids], default=0)

    def shares(self, pids: list[int]) -> dict[int, int]:
        """Each process's share of anonymous pages, in bytes, as far as it can be read.

        The run's user reads it: for another user the kernel asks for CAP_SYS_PTRACE, which containers withhold. Taking
        "cannot be read" for 0 once let a run go to eight times its limit, until the wall limit ended it.
        """

        def read() -> bytes:
            found = ((pid, number_in(f"/proc/{pid}/smaps_rollup", "Pss_Anon:")) for pid in pids)
            return json.dumps([(pid, 1024 * share) for pid, share in found if share > 0]).encode("ascii")

        try:
            return {int(pid): int(share) for pid, share in json.loads(self.as_user(read))}
        except ValueError:
            return {}  # the reader was killed by what it looked at

    def exceeded(self, force: bool = False) -> str | None:
        """The failure kind of the limit that was hit, or None. Cheap to call: looks once per `POLL_S`."""
        now = time.monotonic()
        if not force and now < self.next:
            return None
        used, full = self.disk(force)
        memory = self.memory(used)
        self.peak = max(self.peak, memory)
        # without a gate a refusal cannot be seen: as many as there may be is then taken for one
        crowded = self.counts_tasks and tasks_below() >= int(self.spec["pids"])
        self.next = now + max(POLL_S, SHARE * (time.monotonic() - now))
        counted = self.counted()
        if counted:
            return counted
        if memory > self.spec["memory_bytes"]:
            return "run_out_of_memory"
        if full:
            return "run_disk_full"
        return "run_process_limit" if crowded else None

    def counted(self) -> str | None:
        """What the container's kernel counted: a process that it ended for memory, or one that it did not let start."""
        if not self.container:
            return None
        if (first_number(self.oom, "oom_kill") or 0) > 0:
            self.peak = max(self.peak, self.spec["memory_bytes"])
            return "run_out_of_memory"
        return "run_process_limit" if (first_number(self.pids, "max") or 0) > 0 else None


def tasks_below() -> int:
    """Tasks (threads count, and zombies: each holds a place) of all descendants."""
    return sum(max(1, status_kb(pid, "Threads:")) for pid in below(processes()))


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


def size_below(directory: str, enough: int) -> int:
    """Bytes that what is below a directory takes on disk; not counted on past `enough`."""
    total = 0
    for here, folders, files in os.walk(os.fsencode(directory)):
        total += BLOCK * len(folders)
        for name in files:
            with contextlib.suppress(OSError):
                total += max(BLOCK, os.lstat(os.path.join(here, name)).st_blocks * 512)
            if total > enough:
                return total
    return total
