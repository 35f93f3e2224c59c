"""Banned libraries that a submission brings along: their folder, an archive of it, or their source under another name.

Non-goal: native code without a telling name.
"""

from __future__ import annotations

import re
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from evaluation.families.table.banned_list import BannedLibrary
from evaluation.integrity.material import Material
from evaluation.verdicts import Finding, ViolationKind
from pipeline.task import Verdict
from pipeline.text import shorten

__all__ = ["copies"]

_CODE: Final = (".py", ".pyc", ".so", ".pyd", ".c", ".cpp", ".pyx")
_ZIPPED: Final = (".zip", ".whl", ".egg", ".pyz", ".jar")
_TARRED: Final = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_MOST_MEMBERS: Final = 20_000
_HEAD: Final = 3000
"""Characters in which the notice of a file's origin stands."""
_NOTICE: Final = re.compile(r"copyright|\(c\)|©|licen[cs]e|__author__|part of", re.IGNORECASE)


def copies(material: Material, known: Mapping[str, BannedLibrary]) -> Iterator[Finding]:
    """Violations and suspicions, by path.

    Args:
        material: patch and files.
        known: module or name in lower case -> library.
    """
    paths = {file.path for file in material.patch_files if file.action != "deleted"} | set(material.final_texts)
    for path in sorted(paths):
        yield from _folder(path, path, known)
        yield from _notice(path, material.final_texts.get(path, ""), known)
    if material.files is None:
        return
    for archive in sorted(material.files.rglob("*")):
        if archive.is_file() and not archive.is_symlink() and archive.name.lower().endswith((*_ZIPPED, *_TARRED)):
            where = archive.relative_to(material.files).as_posix()
            for member in _members(archive):
                found = next(_folder(member, where, known), None)
                if found is not None:
                    yield found
                    break


def _folder(path: str, where: str, known: Mapping[str, BannedLibrary]) -> Iterator[Finding]:
    """The library's own folder, or its one module, among the files."""
    parts = PurePosixPath(path).parts
    folder = next((part for part in parts[:-1] if part.lower() in known), None)
    if folder is not None and path.lower().endswith(_CODE):
        place = str(PurePosixPath(*parts[: parts.index(folder) + 1])) if where == path else where
        library = known[folder.lower()]
        yield _finding(library, place, path, f"brings a copy of {library.name} along", certain=True)


def _notice(path: str, text: str, known: Mapping[str, BannedLibrary]) -> Iterator[Finding]:
    """A notice at the top of a program that names the library as its origin."""
    if not path.lower().endswith((".py", ".pyx", ".c", ".cpp")):
        return
    for line in text[:_HEAD].splitlines():
        match = _NOTICE.search(line) and re.search(rf"\b({'|'.join(map(re.escape, known))})\b", line, re.IGNORECASE)
        if match:
            library = known[match[1].lower()]
            reason = f"its notice names {library.name}: it may be a copy under another name"
            yield _finding(library, path, line.strip(), reason, certain=False)
            return


def _members(archive: Path) -> list[str]:
    """Names in an archive; nothing for one that cannot be opened."""
    try:
        if archive.name.lower().endswith(_ZIPPED):
            with zipfile.ZipFile(archive) as opened:
                return opened.namelist()[:_MOST_MEMBERS]
        with tarfile.open(archive) as packed:
            return [member.name for member, _ in zip(packed, range(_MOST_MEMBERS), strict=False)]
    except (OSError, zipfile.BadZipFile, tarfile.TarError, EOFError, ValueError):
        return []


def _finding(library: BannedLibrary, where: str, quote: str, reason: str, *, certain: bool) -> Finding:
    return Finding(
        kind=ViolationKind.BANNED_LIBRARY,
        verdict=Verdict.FAIL if certain and not library.conditional else Verdict.UNKNOWN,
        where=where, quote=shorten(quote, 200), reason=f"{reason}, which the task bans" if certain else reason,
    )  # fmt: skip
