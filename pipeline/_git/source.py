"""What a user or a `.gitmodules` file may name as a repository: local paths and URLs, parsed and checked.

Nothing is contacted here and nothing is run; a local repository is recognised from its files.
"""

from __future__ import annotations

import ipaddress
import os
import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit, urlunsplit

from pipeline._git.run import redact, shown
from pipeline.errors import ExpbenchError, FailureKind

__all__ = ["LocalSource", "RemoteSource", "find_local", "parse_source", "public_url", "relative_url"]

_SCP = re.compile(r"^(?:(?P<user>[A-Za-z0-9._-]+)@)?(?P<host>[A-Za-z0-9\[][A-Za-z0-9._:\]-]*):(?!//)(?P<path>.+)$")
_GITHUB = re.compile(r"^github:(?P<owner>[A-Za-z0-9][A-Za-z0-9-]*)/(?P<name>[A-Za-z0-9._-]+)$")
_SCHEMES = ("https", "http", "ssh", "git")


class RemoteSource(NamedTuple):
    """A repository behind a URL that git may contact."""

    url: str


class LocalSource(NamedTuple):
    """A repository on this machine."""

    path: Path
    """Work tree, or the git directory itself when there is none."""
    git_dir: Path
    """Holds HEAD and the index (differs from `common` in linked work trees)."""
    common: Path
    """Holds objects, refs and config."""
    work_tree: Path | None


def _refused(source: str, cause: str, next_step: str) -> ExpbenchError:
    return ExpbenchError(
        FailureKind.REPOSITORY_INVALID, redact(shown(source)) or "(empty address)", cause,
        consequence="The repository was not read", next_step=next_step,
    )  # fmt: skip


def parse_source(source: str | Path) -> LocalSource | RemoteSource:
    """Tell a path from a URL and check it.

    Args:
        source: path of a work tree, bare repository or `.git` file; URL (https, http, ssh, git, file);
            `user@host:path`; `github:owner/name`.

    Raises:
        ExpbenchError: `REPOSITORY_INVALID`.
    """
    if isinstance(source, Path):
        return find_local(source)
    forms = "Give a path, an https:// or ssh:// URL, user@host:path, or github:owner/name"
    if not source.strip() or source.startswith("-") or any(ord(c) < 32 for c in source):
        raise _refused(source, "it is empty, begins with '-' or holds control characters", forms)
    if re.match(r"^[A-Za-z0-9+.-]+::", source):
        raise _refused(source, "remote helpers (scheme::address) run programs and are not accepted", forms)
    if match := _GITHUB.match(source):
        return RemoteSource(f"https://github.com/{match['owner']}/{match['name'].removesuffix('.git')}")
    if "://" in source:
        parts = urlsplit(source)
        if parts.scheme == "file":
            return find_local(Path(unquote(parts.path)))
        if parts.scheme not in _SCHEMES:
            raise _refused(
                source, f"the scheme {parts.scheme!r} is not accepted (https, http, ssh, git, file are)", forms
            )
        if not parts.hostname or parts.hostname.startswith("-"):
            raise _refused(source, "the URL names no host", forms)
        if parts.path.startswith("/-"):
            raise _refused(source, "its path begins with '-'", forms)
        return RemoteSource(source)
    if not Path(source).exists() and (match := _SCP.match(source)) and "/" not in source.split(":", 1)[0]:
        if match["path"].startswith("-"):
            raise _refused(source, "its path begins with '-'", forms)
        return RemoteSource(source)
    return find_local(Path(source))


def find_local(path: Path) -> LocalSource:
    """Recognise a repository from its files, without running git in it.

    Raises:
        ExpbenchError: `REPOSITORY_INVALID`.
    """
    if not path.exists():
        raise _refused(str(path), "there is no such path", "Check the spelling, or give the repository's URL")
    path = path.resolve()
    if path.is_file():
        return _from_git_file(path)
    dot_git = path / ".git"
    if dot_git.is_file():
        return _from_git_file(dot_git)
    if _is_git_dir(dot_git):
        return LocalSource(path, dot_git.resolve(), _common(dot_git.resolve()), path)
    if _is_git_dir(path):
        work_tree = path.parent if path.name == ".git" else None
        return LocalSource(work_tree or path, path, _common(path), work_tree)
    for parent in path.parents:
        if (parent / ".git").exists():
            raise _refused(str(path), f"it is a folder inside the git repository {parent}", f"Give {parent} itself")
    raise _refused(
        str(path), "it is a folder but not a git repository (no .git, no HEAD and objects)",
        "Give the folder that 'git clone' made, or the repository's URL; for an unpacked archive run 'git init', "
        "'git add -A' and 'git commit' in it first",
    )  # fmt: skip


def _is_git_dir(path: Path) -> bool:
    if not (path / "HEAD").is_file():
        return False
    return (path / "commondir").is_file() or ((path / "objects").is_dir() and (path / "refs").is_dir())


def _from_git_file(file: Path) -> LocalSource:
    with file.open("rb") as stream:
        content = stream.read(8192)
    if not content.startswith(b"gitdir: "):
        raise _refused(
            str(file), "it is a file but not a git repository",
            "Give the repository's folder or URL; unpack archives and bundles first ('git clone FILE.bundle')",
        )  # fmt: skip
    target = file.parent / os.fsdecode(content[8:].rstrip(b"\r\n"))
    if not _is_git_dir(target):
        raise _refused(
            str(file), f"it points at {shown(str(target))}, which is not a git directory",
            "The main repository of this work tree or submodule was moved or removed: give that one, or clone anew",
        )  # fmt: skip
    target = target.resolve()
    return LocalSource(file.parent, target, _common(target), file.parent)


def _common(git_dir: Path) -> Path:
    pointer = git_dir / "commondir"
    if not pointer.is_file():
        return git_dir
    common = (git_dir / os.fsdecode(pointer.read_bytes().rstrip(b"\r\n"))).resolve()
    if not (common / "objects").is_dir():
        raise _refused(str(git_dir), f"its main repository {common} is gone", "Give the main repository, or clone anew")
    return common


def public_url(url: str) -> str | None:
    """`url` without credentials, query and fragment, or None when it is not one that others could use.

    Local paths, `file:` URLs, private addresses and bare host names are of this machine only.
    """
    url = url.strip()
    if match := _SCP.match(url):
        if "://" not in url and _public_host(match["host"]):
            user = "git@" if match["user"] == "git" else ""
            return f"{user}{match['host']}:{match['path'].rstrip('/')}"
        if "://" not in url:
            return None
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme not in _SCHEMES or not host or not _public_host(host):
        return None
    user = "git@" if parts.scheme == "ssh" and parts.username == "git" else ""
    return urlunsplit((parts.scheme, f"{user}{host}{f':{port}' if port else ''}", parts.path.rstrip("/"), "", ""))


def _public_host(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_global
    except ValueError:
        suffix = host.rsplit(".", 1)[-1].lower()
        return "." in host and suffix not in {
            "local",
            "localhost",
            "internal",
            "lan",
            "home",
            "corp",
            "test",
            "invalid",
        }


def relative_url(base: str, url: str) -> str:
    """Resolve a submodule's `./x` or `../x` against its parent's URL or path, as git does.

    Raises:
        ValueError: more `../` than the base has components.
    """
    base = base.rstrip("/")
    while url.startswith(("./", "../")):
        if url.startswith("./"):
            url = url[2:].lstrip("/")
            continue
        url = url[3:].lstrip("/")
        head, slash, _ = base.rpartition("/")
        if not slash and ":" in base and not base.endswith(":"):
            base = base.rpartition(":")[0] + ":"  # git@host:name -> git@host:
        elif not slash or head.endswith(("/", ":/")):
            raise ValueError(f"it leaves the root of {redact(base)}")
        else:
            base = head
    return f"{base}{'' if base.endswith(':') else '/'}{url}"
