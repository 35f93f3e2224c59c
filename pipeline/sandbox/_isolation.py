"""What of isolation this machine permits without containers, and the command line that gives it.

With namespaces (root, or a kernel that lets users make them) a run sees a read-only file system with people's places
emptied, its own process table and no network. Without them only limits and, for root, another user remain. Root that
cannot become another user runs nothing: most limits of the kernel do not bind root.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final, NamedTuple

from pipeline.sandbox._users import can_become

__all__ = ["SCRATCH", "Isolation", "closed_parent", "isolation", "wrapped"]

_HIDDEN: Final = ("/home", "/root", "/run", "/mnt", "/media", "/srv", "/var/cache", "/var/lib/docker")
SCRATCH: Final = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - covered, each run has its own
# A directory above one of these cannot be hidden: nothing would start any more.
_SYSTEM: Final = ("/usr", "/bin", "/lib", "/etc", "/proc", "/sys", "/dev", "/var", "/opt")


class Isolation(NamedTuple):
    """What holds here."""

    namespaces: bool
    reason: str
    """Why there are no namespaces, empty when there are."""
    unusable: str = ""
    """Why nothing may be run here at all."""


@functools.cache
def isolation() -> Isolation:
    """Try it once: the answer depends on the kernel, on its settings and on who asks."""
    unusable = can_become() if os.geteuid() == 0 else ""
    if not shutil.which("unshare"):
        return Isolation(False, "the program unshare is missing", unusable)
    # the one thing that old kernels (before 5.12) lack is tried too: making the whole tree read-only
    argv = wrapped(["/bin/true"], hide=[], scratch_bytes=1 << 20, expose=[], network=False, user=None)
    try:
        done = subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=60, check=False)
    except subprocess.TimeoutExpired:
        return Isolation(False, "unshare does not end", unusable)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"unshare ended with {done.returncode}"]
        return Isolation(False, lines[-1][:300], unusable)
    return Isolation(True, "", unusable)


def wrapped(
    argv: list[str],
    *,
    hide: list[Path],
    scratch_bytes: int,
    expose: list[tuple[Path, bool]],
    network: bool,
    user: int | None,
) -> list[str]:
    """`argv` inside namespaces.

    Args:
        argv: absolute program and arguments.
        hide: directories that become empty, beside the usual ones.
        scratch_bytes: size of each temporary directory.
        expose: (path, writable?) that must stay visible.
        network: keep the host's network.
        user: uid to become before `argv` starts; None keeps root (of the namespace's kind).
    """
    # what a user of its own could not walk to is covered, and what is needed of it shown again below the cover
    closed = [parent for path, _ in expose for parent in [closed_parent(path)] if parent is not None]
    hidden = _outermost([*_HIDDEN, *(str(path) for path in (*hide, *closed) if _can_hide(path))])
    covers = [*hidden, *SCRATCH]
    kept = [(str(path), writable) for path, writable in expose if writable or _below(str(path), covers)]
    plan = {"hide": hidden, "scratch": [[path, scratch_bytes] for path in SCRATCH], "expose": kept, "user": user}
    unshare = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid() != 0:
        unshare += ["--user", "--map-current-user", "--keep-caps"]
    if not network:
        unshare += ["--net", "--ipc"]
    source = (Path(__file__).with_name("_inside") / "isolate.py").read_text(encoding="utf-8")
    return [*unshare, "--", _system_python(), "-I", "-S", "-c", source, json.dumps(plan), *argv]


def closed_parent(path: Path) -> Path | None:
    """The outermost directory on the way to `path` that other users cannot enter."""
    return next((parent for parent in reversed(path.resolve().parents) if not parent.stat().st_mode & 0o001), None)


def _system_python() -> str:
    """A Python that runs before anything is hidden."""
    import sys

    return sys.executable


def _can_hide(path: Path) -> bool:
    resolved = path.resolve()
    return resolved != Path("/") and not any(Path(name).is_relative_to(resolved) for name in _SYSTEM)


def _outermost(paths: list[str]) -> list[str]:
    """Without those below another one, and without what is below a temporary directory or is one; sorted."""
    return sorted(
        {path for path in paths if not _below(path, [*SCRATCH, *(other for other in paths if other != path)])}
    )


def _below(path: str, covers: list[str]) -> bool:
    return any(Path(path).is_relative_to(cover) for cover in covers)
