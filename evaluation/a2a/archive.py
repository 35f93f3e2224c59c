"""Directories as archives that travel, and back; what comes from elsewhere is not trusted.

Packing is deterministic. Unpacking takes regular files only: links, devices, absolute paths and `..` are left out and
named, and sizes are limited before anything is written.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from pipeline.errors import ExpbenchError, FailureKind

__all__ = ["MOST_BYTES", "MOST_FILES", "pack", "pack_tree", "safe_path", "unpack"]

MOST_BYTES: Final = 128 << 20
"""Unpacked; a submission is limited to 50 MB by the harness."""
MOST_FILES: Final = 5000


def safe_path(name: str) -> str | None:
    """A relative path without `..`, `.git` and control characters; None for any other."""
    pure = PurePosixPath(name)
    parts = [part for part in pure.parts if part != "."]
    if not parts or pure.is_absolute() or ".." in parts or "\\" in name or any(ord(letter) < 32 for letter in name):
        return None
    return None if any(part.lower() == ".git" for part in parts) else "/".join(parts)


def pack(files: Mapping[str, bytes], *, executable: frozenset[str] = frozenset()) -> bytes:
    """A `.tar.gz` of files, the same for the same content."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size = len(files[name])
            entry.mode = 0o755 if name in executable else 0o644
            archive.addfile(entry, io.BytesIO(files[name]))
    return gzip.compress(raw.getvalue(), mtime=0)


def pack_tree(root: Path) -> bytes:
    """A `.tar.gz` of the regular files below a directory, git's own left out."""
    found, executable = {}, set()
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        linked = any((root / parent).is_symlink() for parent in Path(name).parents if parent.parts)
        if path.is_file() and not path.is_symlink() and not linked and safe_path(name) is not None:
            found[name] = path.read_bytes()
            if path.stat().st_mode & 0o100:
                executable.add(name)
    return pack(found, executable=frozenset(executable))


def unpack(data: bytes, into: Path, what: str) -> tuple[list[str], list[str]]:
    """Write the files of a `.tar.gz` below a directory.

    Args:
        data: the archive.
        into: directory; created.
        what: its name, for messages.

    Returns:
        Paths that were written, sorted, and names that were left out.

    Raises:
        ExpbenchError: `PROTOCOL_BROKEN`: it is no such archive, or larger than is taken.
    """
    written: list[str] = []
    refused: list[str] = []
    into.mkdir(parents=True, exist_ok=True)
    try:
        plain = _inflated(data, what)
        with tarfile.open(fileobj=io.BytesIO(plain), mode="r:") as archive:
            for entry in archive:
                name = safe_path(entry.name)
                if entry.isdir():
                    continue
                if name is None or not entry.isreg():
                    refused.append(entry.name)
                    continue
                if len(written) >= MOST_FILES:
                    raise _broken(what, f"holds more than {MOST_FILES} files")
                source = archive.extractfile(entry)
                target = into / name
                if source is None or not _make_way(into, name):
                    refused.append(entry.name)
                    continue
                target.write_bytes(source.read())
                target.chmod(0o755 if entry.mode & 0o100 else 0o644)
                written.append(name)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise _broken(what, f"is no archive that can be read: {error}") from error
    return sorted(set(written)), sorted(set(refused))


def _inflated(data: bytes, what: str) -> bytes:
    """The archive without compression, stopped at the limit."""
    stream = zlib.decompressobj(wbits=31)
    plain = stream.decompress(data, MOST_BYTES)
    if stream.unconsumed_tail:
        raise _broken(what, f"unpacks to more than {MOST_BYTES} bytes")
    return plain


def _make_way(into: Path, name: str) -> bool:
    """Directories above a file; False where a file is in the way (a name is there as file and as directory)."""
    target = into / name
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        return False
    return not target.is_dir()


def _broken(what: str, cause: str) -> ExpbenchError:
    return ExpbenchError(
        FailureKind.PROTOCOL_BROKEN, what, cause,
        consequence="It was not taken", next_step="Look at what the other agent sends (docs/table.md)",
    )  # fmt: skip
