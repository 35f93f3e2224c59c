"""Finds the repositories of submodules: what `.gitmodules` says, checked; what the clone already holds, first."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

from pipeline._git.mirror import Mirror, mirror_local, mirror_remote, resolve_commit
from pipeline._git.run import redact, run_git, shown
from pipeline._git.source import LocalSource, find_local, parse_source, relative_url
from pipeline.errors import ExpbenchError, FailureKind

__all__ = ["Declared", "declared_submodules", "open_submodule"]


class Declared(NamedTuple):
    """A section of `.gitmodules`. Its `update`, `branch` and other settings are commands or wishes: not read."""

    name: str
    path: bytes
    url: str


def declared_submodules(git_dir: Path, gitmodules_oid: str | None) -> dict[bytes, Declared]:
    """What `.gitmodules` (a blob) declares, by path; nothing when there is none or it cannot be parsed."""
    if gitmodules_oid is None:
        return {}
    result = run_git(git_dir, "config", "--no-includes", f"--blob={gitmodules_oid}", "-z", "--list")
    if result.code != 0:
        return {}
    found: dict[bytes, dict[bytes, bytes]] = {}
    for item in result.stdout.split(b"\0"):
        key, _, value = item.partition(b"\n")
        section, _, rest = key.partition(b".")
        name, _, field = rest.rpartition(b".")
        if section == b"submodule" and name:
            found.setdefault(name, {})[field] = value
    return {
        fields[b"path"].rstrip(b"/"): Declared(
            name.decode("utf-8", "replace"), fields[b"path"], fields.get(b"url", b"").decode("utf-8", "replace")
        )
        for name, fields in sorted(found.items())
        if b"path" in fields
    }


def open_submodule(parent: Mirror, path: bytes, commit: str, declared: Declared | None, where: Path) -> Mirror:
    """A mirror that holds `commit` of a submodule.

    Args:
        parent: repository that records it.
        path: where it belongs in the parent.
        commit: recorded id.
        declared: its section of `.gitmodules`.
        where: new directory for the mirror.

    Raises:
        ExpbenchError: `SUBMODULE_UNAVAILABLE` with every reason.
    """
    tried: list[str] = []
    for local in _already_there(parent, path, declared):
        try:
            mirror = mirror_local(local, where)
            resolve_commit(mirror, commit)
        except ExpbenchError as error:
            tried.append(f"{shown(str(local.path))}: {error.cause}")
            shutil.rmtree(where, ignore_errors=True)
        else:
            return mirror
    url = ""
    try:
        url = _address(parent, declared)
        source = parse_source(url)
        if isinstance(source, LocalSource):
            if parent.local is None:
                raise ValueError("a remote repository may not name folders of this machine")
            mirror = mirror_local(source, where)
            resolve_commit(mirror, commit)
            return mirror
        return mirror_remote(source, where, commit)[0]
    except ValueError as error:
        tried.append(str(error))
    except ExpbenchError as error:
        tried.append(f"{redact(shown(url))}: {error.cause}")
    shutil.rmtree(where, ignore_errors=True)
    raise ExpbenchError(
        FailureKind.SUBMODULE_UNAVAILABLE, f"submodule {shown(path)} of {parent.name}",
        f"its commit {commit[:12]} cannot be had ({'; '.join(tried)})",
        consequence="The snapshot was not made, because code may be missing from it",
        next_step="Run 'git submodule update --init --recursive' in a clone and give that folder, or allow missing "
        "submodules (--allow-missing-submodules)",
    )  # fmt: skip


def _already_there(parent: Mirror, path: bytes, declared: Declared | None) -> list[LocalSource]:
    """Clones of the submodule inside a local parent."""
    if parent.local is None:
        return []
    places = []
    if declared is not None and not any(part in ("", ".", "..") for part in declared.name.split("/")):
        places.append(parent.local.common / "modules" / declared.name)
    if parent.local.work_tree is not None:
        work_tree = parent.local.work_tree / path.decode("utf-8", "surrogateescape")
        if (work_tree / ".git").exists():
            places.append(work_tree)
    found = []
    for place in places:
        try:
            found.append(find_local(place))
        except ExpbenchError:
            continue  # never initialised: the address decides
    return found


def _address(parent: Mirror, declared: Declared | None) -> str:
    """The URL of a submodule.

    Raises:
        ValueError: there is none, or it is not acceptable.
    """
    if declared is None:
        raise ValueError(".gitmodules does not declare it")
    url = declared.url
    if not url:
        raise ValueError(".gitmodules gives it no URL")
    if url.startswith("-"):
        raise ValueError(f"its URL {shown(url)!r} is an option, not an address")
    if url.startswith(("./", "../")):
        return relative_url(parent.base, url)
    if "://" not in url and ":" not in url.split("/", 1)[0] and not url.startswith("/"):
        raise ValueError(f"its URL {shown(url)!r} is neither an address nor relative (./ or ../)")
    return url
