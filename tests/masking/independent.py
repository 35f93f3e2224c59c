"""A check of a masked repository that uses nothing of our own code: git's own commands and plain byte search."""

from __future__ import annotations

import subprocess
from pathlib import Path


def _git(masked: Path, *arguments: str, data: bytes | None = None) -> bytes:
    return subprocess.run(["git", *arguments], cwd=masked, input=data, capture_output=True, check=True).stdout


def commits(masked: Path) -> list[bytes]:
    return _git(masked, "log", "--all", "--reflog", "--format=%H %P|%an|%ae|%at|%s").splitlines()


def unreachable(masked: Path) -> bytes:
    return _git(masked, "fsck", "--unreachable", "--no-reflogs", "--full")


def holders(masked: Path, needles: list[bytes]) -> list[str]:
    """Files and objects that hold any of the needles, white space ignored."""
    wanted = [b"".join(needle.split()) for needle in needles]
    found = []
    for path in sorted(masked.rglob("*")):
        if path.is_file() and not path.is_symlink():
            content = b"".join(path.read_bytes().split())
            found += [f"{path.relative_to(masked)}" for needle in wanted if needle in content]
    stream = _git(masked, "cat-file", "--batch-all-objects", "--batch")
    while stream:
        header, _, rest = stream.partition(b"\n")
        name, _, size = header.split()
        content = b"".join(rest[: int(size)].split())
        found += [f"object {name.decode()}" for needle in wanted if needle in content]
        stream = rest[int(size) + 1 :]
    return found
