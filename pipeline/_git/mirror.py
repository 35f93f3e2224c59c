"""A bare repository of ours through which a foreign one is read.

A local repository is read through object alternates: its refs are copied as files and its objects are borrowed, so
neither its configuration nor its hooks can take part. A remote one is fetched, as shallow as the server allows.
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pipeline._git.run import GitResult, redact, run_git, shown
from pipeline._git.source import LocalSource, RemoteSource
from pipeline.errors import ExpbenchError, FailureKind

__all__ = ["Mirror", "mirror_local", "mirror_remote", "reject", "resolve_commit"]

_FETCH_S = 1800.0
_FULL_ID = re.compile(r"^(?:[0-9a-f]{40}|[0-9a-f]{64})$")
_SHORT_ID = re.compile(r"^[0-9a-f]{4,63}$")
# What may name a commit: ids, branches, tags. No revision syntax (`^`, `~`, `:`, `@{`), no option.
_REVISION = re.compile(r"^(?!.*\.\.)[A-Za-z0-9_][A-Za-z0-9._/+-]*$")

_NETWORK_SIGNS = (
    "could not resolve host", "connection refused", "connection timed out", "connection reset", "failed to connect",
    "network is unreachable", "no route to host", "operation timed out", "timed out", "early eof", "no end after",
    "temporary failure", "ssl", "certificate", "returned error: 5", "unexpected disconnect", "operation too slow",
    "couldn't connect", "proxy", "empty reply from server", "unable to look up", "unable to connect",
)  # fmt: skip
_ACCESS_SIGNS = (
    "authentication failed", "could not read username", "could not read password", "permission denied",
    "returned error: 401", "returned error: 403", "access denied", "host key verification failed",
)  # fmt: skip
_BOILERPLATE = ("Please make sure you have the correct access rights", "and the repository exists.")


class Mirror(NamedTuple):
    """A readable repository."""

    git_dir: Path
    """Ours."""
    name: str
    """What messages call the repository."""
    base: str
    """URL or path that relative submodule URLs start from."""
    local: LocalSource | None
    """The repository behind it when that is on this machine."""
    origin: str | None
    """URL of the remote `origin` of a local repository, as written."""


def reject(kind: FailureKind, name: str, cause: str, next_step: str) -> ExpbenchError:
    """An error about a repository that was not read."""
    return ExpbenchError(kind, name, cause, consequence="The repository was not read", next_step=next_step)


def _checked(result: GitResult, name: str, doing: str) -> bytes:
    if result.code != 0:
        raise reject(
            FailureKind.REPOSITORY_INVALID, name, f"git failed while {doing}: {result.stderr or result.code}",
            "Run 'git fsck' in the repository; clone it anew if it is damaged",
        )  # fmt: skip
    return result.stdout


def mirror_local(source: LocalSource, where: Path) -> Mirror:
    """Make a bare repository at `where` that shows the refs and objects of `source`.

    Raises:
        ExpbenchError: `REPOSITORY_INVALID` (unknown storage format, unreadable files).
    """
    name = shown(str(source.path))
    where.parent.mkdir(parents=True, exist_ok=True)
    _checked(run_git(None, "init", "--quiet", "--bare", "--template=", "--", str(where)), name, "preparing")

    def setting(key: str) -> str:
        file = source.common / "config"
        result = run_git(where, "config", "--no-includes", "--file", str(file), "--get", key)
        return result.stdout.decode("utf-8", "replace").strip()

    if setting("extensions.refstorage") not in ("", "files"):
        raise reject(
            FailureKind.REPOSITORY_INVALID, name, "it stores its refs in the reftable format, which is not read here",
            "Give its URL, or a copy made by 'git clone --ref-format=files'",
        )  # fmt: skip
    if (algorithm := setting("extensions.objectformat")) == "sha256":
        shutil.rmtree(where)
        made = run_git(
            None, "init", "--quiet", "--bare", "--template=", f"--object-format={algorithm}", "--", str(where)
        )
        _checked(made, name, "preparing")
    try:
        _copy_refs(source, where)
    except OSError as error:
        raise reject(
            FailureKind.REPOSITORY_INVALID, name, f"its files cannot be read ({error.strerror}: {error.filename})",
            "Give yourself read permission, or clone it anew",
        ) from error  # fmt: skip
    origin = setting("remote.origin.url") or None
    base = origin or str(source.path)
    if origin and "://" not in origin and ":" not in origin.split("/", 1)[0]:
        base = os.path.normpath(source.path / origin)
    return Mirror(where, name, base, source, origin)


def _copy_refs(source: LocalSource, where: Path) -> None:
    shutil.copyfile(source.git_dir / "HEAD", where / "HEAD")
    for name in ("packed-refs", "shallow"):
        if (source.common / name).is_file():
            shutil.copyfile(source.common / name, where / name)
    for directory, names, files in os.walk(source.common / "refs"):
        names[:] = [n for n in names if n != "replace" and not (Path(directory) / n).is_symlink()]
        target = where / "refs" / Path(directory).relative_to(source.common / "refs")
        target.mkdir(parents=True, exist_ok=True)
        for file in files:
            path = Path(directory) / file
            if not path.is_symlink() and path.stat().st_size <= 4096 and not file.endswith(".lock"):
                shutil.copyfile(path, target / file)
    quoted = os.fsencode(source.common / "objects").replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    info = where / "objects" / "info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "alternates").write_bytes(b'"' + quoted + b'"\n')


def mirror_remote(source: RemoteSource, where: Path, commit: str | None) -> tuple[Mirror, str]:
    """Fetch what is needed of a remote repository into a bare repository at `where`.

    Args:
        source: its URL.
        where: new directory.
        commit: full or short id, branch or tag; None for the remote HEAD.

    Returns:
        The mirror and the commit's full id.

    Raises:
        ExpbenchError: `NETWORK`, `REPOSITORY_INVALID`, `REPOSITORY_EMPTY`, `COMMIT_UNKNOWN`.
    """
    name = redact(source.url)
    where.parent.mkdir(parents=True, exist_ok=True)
    _checked(run_git(None, "init", "--quiet", "--bare", "--template=", "--", str(where)), name, "preparing")
    advertised = _advertised(source.url, name, where)
    if advertised and len(next(iter(advertised.values()))) == 64:
        shutil.rmtree(where)
        made = run_git(None, "init", "--quiet", "--bare", "--template=", "--object-format=sha256", "--", str(where))
        _checked(made, name, "preparing")
    mirror = Mirror(where, name, source.url, None, source.url)
    wanted = _wanted(advertised, commit, name)
    if wanted is not None:
        result = _fetch(where, source.url, "--depth=1", wanted)
        if result.code == 0:
            return mirror, resolve_commit(mirror, wanted)
        if "not our ref" in result.stderr:
            raise _unknown(name, commit or wanted, _choices(advertised))
        # Dumb servers know no depth, older ones serve no unadvertised commit: everything reachable, then.
    result = _fetch(where, source.url, "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
    if result.code != 0:
        raise _fetch_error(name, result)
    return mirror, resolve_commit(mirror, wanted or commit)


def _fetch(where: Path, url: str, *what: str) -> GitResult:
    options = [w for w in what if w.startswith("--")]
    refs = [w for w in what if not w.startswith("--")]
    return run_git(
        where, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", *options, "--",
        url, *refs, timeout_s=_FETCH_S,
    )  # fmt: skip


def _advertised(url: str, name: str, where: Path) -> dict[str, str]:
    """Refs of the remote: HEAD, branches, tags (peeled tags replace their tag objects)."""
    result = run_git(where, "ls-remote", "--quiet", "--", url, "HEAD", "refs/heads/*", "refs/tags/*", timeout_s=120.0)
    if result.code != 0:
        raise _fetch_error(name, result)
    refs: dict[str, str] = {}
    for line in result.stdout.decode("utf-8", "replace").splitlines():
        oid, _, ref = line.partition("\t")
        if _FULL_ID.match(oid):
            refs[ref.removesuffix("^{}")] = oid
    if not refs:
        raise reject(
            FailureKind.REPOSITORY_EMPTY, name, "it has no commits",
            "Check that this is the repository the paper names, and that it was pushed",
        )  # fmt: skip
    return refs


def _wanted(advertised: dict[str, str], commit: str | None, name: str) -> str | None:
    """The full id to fetch, or None when only a full fetch can tell."""
    if commit is None:
        if "HEAD" not in advertised:
            raise reject(
                FailureKind.COMMIT_UNKNOWN, name, "its default branch has no commits",
                f"Name a commit, branch or tag: {_choices(advertised)}",
            )  # fmt: skip
        return advertised["HEAD"]
    _check_revision(commit, name)
    if _FULL_ID.match(commit):
        return commit
    for ref in (commit, f"refs/tags/{commit}", f"refs/heads/{commit}"):
        if ref in advertised:
            return advertised[ref]
    if _SHORT_ID.match(commit):
        return None
    raise _unknown(name, commit, _choices(advertised))


def _choices(refs: dict[str, str]) -> str:
    """Some commits that do exist, for an error message."""
    heads = sorted(r.removeprefix("refs/heads/") for r in refs if r.startswith("refs/heads/"))
    tags = sorted((r.removeprefix("refs/tags/") for r in refs if r.startswith("refs/tags/")), reverse=True)
    parts = []
    if "HEAD" in refs:
        parts.append(f"HEAD is {refs['HEAD'][:12]}")
    for label, names in (("branches", heads), ("tags", tags)):
        if names:
            more = f" and {len(names) - 5} more" if len(names) > 5 else ""
            parts.append(f"{label}: {', '.join(shown(n) for n in names[:5])}{more}")
    return "; ".join(parts) or "no branches or tags"


def _fetch_error(name: str, result: GitResult) -> ExpbenchError:
    lines = [line.strip() for line in result.stderr.splitlines()]
    lines = [line for line in lines if line and line not in _BOILERPLATE]
    said = " / ".join(lines[-3:]) or f"exit code {result.code}"
    lowered = result.stderr.lower()
    if any(sign in lowered for sign in _ACCESS_SIGNS):
        return reject(
            FailureKind.REPOSITORY_INVALID, name, f"access was refused ({said})",
            "Check the address (a private or missing repository looks the same); for a private one clone it yourself "
            "and give the folder",
        )  # fmt: skip
    if any(sign in lowered for sign in _NETWORK_SIGNS):
        return ExpbenchError(
            FailureKind.NETWORK, name, f"it cannot be reached ({said})", consequence="The repository was not read",
            next_step="Check the network or proxy and try again, or clone it elsewhere and give the folder",
        )  # fmt: skip
    return reject(
        FailureKind.REPOSITORY_INVALID, name, f"there is no git repository to read ({said})",
        "Check the address by opening it in a browser or with 'git ls-remote'",
    )  # fmt: skip


def _check_revision(commit: str, name: str) -> None:
    if not _REVISION.match(commit) or len(commit) > 255:
        raise reject(
            FailureKind.COMMIT_UNKNOWN, name, f"{shown(commit)!r} is not a commit id, branch or tag name",
            "Give a full or abbreviated commit id, a branch or a tag",
        )  # fmt: skip


def _unknown(name: str, commit: str, choices: str) -> ExpbenchError:
    return reject(
        FailureKind.COMMIT_UNKNOWN, name, f"it has no commit, branch or tag {commit!r}", f"Choose among: {choices}"
    )


def resolve_commit(mirror: Mirror, commit: str | None) -> str:
    """The full id of a commit of the mirror.

    Args:
        mirror: where to look.
        commit: full or short id, branch or tag; None for HEAD.

    Raises:
        ExpbenchError: `COMMIT_UNKNOWN` (with what there is), `REPOSITORY_EMPTY`, `REPOSITORY_INVALID` (its object is
            missing).
    """
    if commit is None:
        return _head(mirror)
    _check_revision(commit, mirror.name)
    names = (f"refs/tags/{commit}", f"refs/heads/{commit}", f"refs/remotes/origin/{commit}", f"refs/remotes/{commit}")
    spellings = (commit,) if _FULL_ID.match(commit) else ("HEAD",) if commit == "HEAD" else names
    for spelling in spellings:
        if found := _peel(mirror, spelling):
            return found
    if _SHORT_ID.match(commit) and not _FULL_ID.match(commit):
        listed = run_git(mirror.git_dir, "rev-parse", f"--disambiguate={commit}").stdout.decode().split()
        commits = sorted({found for oid in listed if (found := _peel(mirror, oid)) and found.startswith(commit)})
        if len(commits) == 1:
            return commits[0]
        if commits:
            raise reject(
                FailureKind.COMMIT_UNKNOWN, mirror.name,
                f"the abbreviated commit {commit} is ambiguous: {', '.join(c[:16] for c in commits[:5])}",
                "Give more of its digits",
            )  # fmt: skip
    raise _unknown(mirror.name, commit, _choices(_refs(mirror)))


def _peel(mirror: Mirror, spelling: str) -> str | None:
    result = run_git(mirror.git_dir, "rev-parse", "--verify", "--quiet", f"{spelling}^{{commit}}")
    oid = result.stdout.decode().strip()
    if result.code != 0 or not _FULL_ID.match(oid):
        return None
    return oid if run_git(mirror.git_dir, "cat-file", "-e", f"{oid}^{{tree}}").code == 0 else None


def _refs(mirror: Mirror) -> dict[str, str]:
    listed = run_git(mirror.git_dir, "for-each-ref", "--format=%(objectname) %(refname)").stdout
    refs = {}
    for line in listed.decode("utf-8", "replace").splitlines():
        oid, _, ref = line.partition(" ")
        refs[ref.replace("refs/remotes/origin/", "refs/heads/")] = oid
    if head := _peel(mirror, "HEAD"):
        refs["HEAD"] = head
    return refs


def _head(mirror: Mirror) -> str:
    if found := _peel(mirror, "HEAD"):
        return found
    refs = _refs(mirror)
    named = ""
    with suppress(OSError):
        named = (mirror.git_dir / "HEAD").read_text("utf-8", "replace").strip()
    if _FULL_ID.match(named) or named.removeprefix("ref: ") in refs:
        raise reject(
            FailureKind.REPOSITORY_INVALID, mirror.name, "the objects of its HEAD commit are missing",
            "It is a partial or damaged clone: run 'git fsck', or give its URL instead",
        )  # fmt: skip
    if not refs:
        raise reject(
            FailureKind.REPOSITORY_EMPTY, mirror.name, "it has no commits",
            "Commit its files ('git add -A', 'git commit'), or check that this is the right repository",
        )  # fmt: skip
    raise reject(
        FailureKind.COMMIT_UNKNOWN, mirror.name, f"its HEAD ({shown(named)}) has no commits yet",
        f"Name a commit: {_choices(refs)}",
    )  # fmt: skip
