"""How many runs at a time this machine has processors and memory for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from pipeline.sandbox.base import Limits

__all__ = ["available_memory_mb", "count_lanes"]

_MOST: Final = 2
_SPARE_MB: Final = 1024


def available_memory_mb() -> int:
    """What could be used without swapping.

    Raises:
        OSError, KeyError: this system does not tell.
    """
    fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text("ascii").splitlines())
    return int(fields["MemAvailable"].split()[0]) // 1024


def count_lanes(limits: Limits) -> int:
    """Two where there are processors and memory for two runs with these limits, else one."""
    enough = available_memory_mb() >= _MOST * (limits.memory_mb + limits.disk_mb) + _SPARE_MB
    return _MOST if enough and len(os.sched_getaffinity(0)) >= _MOST else 1
