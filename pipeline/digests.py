"""Content digests: sha256 of files, of canonical JSON, of directory trees."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

__all__ = ["canonical_json", "digest_of", "file_digest", "text_digest", "tree_digest"]

_CHUNK = 1 << 20


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no optional white space, so that equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def digest_of(value: Any) -> str:
    """sha256 (hex) of the canonical JSON of `value`."""
    return hashlib.sha256(canonical_json(value).encode("ascii")).hexdigest()


def text_digest(text: str) -> str:
    """sha256 (hex) of a text in UTF-8."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def file_digest(path: Path) -> str:
    """sha256 (hex) of a file's bytes, read in chunks."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def tree_digest(root: Path) -> str:
    """sha256 (hex) over the sorted (path, kind, executable bit, content) of everything below `root`.

    Symbolic links count by their target's name and are not followed; empty directories count.
    """
    digest = hashlib.sha256()
    for directory, names, files in os.walk(os.fsencode(root)):
        names.sort()
        links = [name for name in names if os.path.islink(os.path.join(directory, name))]
        names[:] = [name for name in names if name not in links]
        relative = os.path.relpath(directory, os.fsencode(root))
        digest.update(b"d\0" + relative + b"\0")
        for name in sorted(files + links):
            path = os.path.join(directory, name)
            entry = os.path.join(relative, name)
            if os.path.islink(path):
                digest.update(b"l\0" + entry + b"\0" + os.readlink(path) + b"\0")
            else:
                mode = b"x" if os.stat(path).st_mode & 0o111 else b"-"
                digest.update(
                    b"f" + mode + b"\0" + entry + b"\0" + file_digest(Path(os.fsdecode(path))).encode() + b"\0"
                )
    return digest.hexdigest()
