"""Git's plumbing in a clean environment: no configuration, hooks, filters or attributes of anybody take effect."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Final

from masking.tree import Entry
from pipeline.errors import ExpbenchError, FailureKind

__all__ = ["AUTHOR", "BRANCH", "DATE", "MESSAGE", "GitObject", "git", "import_commit", "objects"]

AUTHOR: Final = "expbench <expbench@localhost>"
DATE: Final = "946684800 +0000"
"""2000-01-01T00:00:00Z: says nothing about the original."""
MESSAGE: Final = "Masked repository\n"
BRANCH: Final = "main"

_SWITCHED_OFF: Final = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.autocrlf=false",
    "core.quotePath=false",
    "core.fsync=none",
    "core.logAllRefUpdates=false",
    "core.bigFileThreshold=1m",
    "core.compression=1",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.allow=never",
    "safe.directory=*",
    "init.defaultBranch=main",
)


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "TMPDIR", "SYSTEMROOT") if name in os.environ}
    return kept | {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "HOME": os.devnull,
        "LC_ALL": "C",
    }


def _command(*arguments: str) -> list[str]:
    options = [part for setting in _SWITCHED_OFF for part in ("-c", setting)]
    return ["git", *options, *arguments]


def git(*arguments: str, directory: Path, check: bool = True) -> bytes:
    """Run one git command and return its standard output.

    Args:
        arguments: command and options; never a shell string.
        directory: repository, or where to make one.
        check: raise on a non-zero exit code (otherwise the output so far is returned).

    Raises:
        ExpbenchError: `TOOL_MISSING` when git is not installed; `INTERNAL` when the command fails.
    """
    try:
        done = subprocess.run(_command(*arguments), cwd=directory, env=_environment(), capture_output=True, check=False)
    except FileNotFoundError as error:
        raise _git_missing() from error
    if check and done.returncode != 0:
        raise _git_failed(arguments[0], directory, done.stderr)
    return done.stdout


def _git_missing() -> ExpbenchError:
    return ExpbenchError(
        FailureKind.TOOL_MISSING, "git", "the program is not installed",
        consequence="No masked repository can be made or checked",
        next_step="Install git 2.30 or newer and run the command again",
    )  # fmt: skip


def _git_failed(command: str, directory: Path, stderr: bytes) -> ExpbenchError:
    message = stderr.decode("utf-8", "replace").strip().splitlines()
    full = any("No space left" in line for line in message)
    return ExpbenchError(
        FailureKind.DISK_FULL if full else FailureKind.INTERNAL, f"git {command} in {directory.name}",
        message[-1] if message else "failed without a message",
        consequence="The masked repository was not made",
        next_step="Free space and run again" if full else "Report this with the message above",
    )  # fmt: skip


def _quoted(raw: bytes) -> bytes:
    """A path in fast-import's C style quotes, every byte as an octal escape."""
    return b'"' + b"".join(b"\\%03o" % byte for byte in raw) + b'"'


def import_commit(directory: Path, files: Iterable[tuple[Entry, bytes | None]]) -> str:
    """Write files as the one commit of the repository in `directory` and return its hash.

    `git fast-import` takes bytes as they are: no ignore file, attribute or filter has a say; names need no encoding.

    Args:
        directory: a repository without commits.
        files: entries with their new content, None for what is on disk.

    Raises:
        ExpbenchError: see `git`.
    """
    command = _command("fast-import", "--quiet", "--date-format=raw", "--done", "--force")
    try:
        process = subprocess.Popen(
            command, cwd=directory, env=_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )  # fmt: skip
    except FileNotFoundError as error:
        raise _git_missing() from error
    assert process.stdin is not None
    try:
        _write_stream(process.stdin, files)
    except BrokenPipeError:
        pass  # git has already said why on its standard error
    except BaseException:
        process.kill()
        process.communicate()  # closes the pipes as well
        raise
    _, errors = process.communicate()
    if process.returncode != 0:
        raise _git_failed("fast-import", directory, errors)
    return git("rev-parse", f"refs/heads/{BRANCH}", directory=directory).decode().strip()


def _write_stream(stream: IO[bytes], files: Iterable[tuple[Entry, bytes | None]]) -> None:
    person = f"{AUTHOR} {DATE}"
    message = MESSAGE.encode()
    stream.write(f"commit refs/heads/{BRANCH}\nauthor {person}\ncommitter {person}\n".encode())
    stream.write(b"data %d\n%s\n" % (len(message), message))
    for entry, data in files:
        content = entry.read() if data is None else data
        mode = b"120000" if entry.link else b"100755" if entry.executable else b"100644"
        stream.write(b"M %s inline %s\ndata %d\n" % (mode, _quoted(entry.raw), len(content)))
        stream.write(content)
        stream.write(b"\n")
    stream.write(b"\ndone\n")


class GitObject:
    """An object of a git database: its id, type and content."""

    __slots__ = ("data", "id", "type")

    def __init__(self, id_: str, type_: str, data: bytes) -> None:
        self.id = id_
        self.type = type_
        self.data = data


def objects(directory: Path, *, skip: frozenset[str] = frozenset()) -> Iterator[GitObject]:
    """Every object of the database, reachable or not, in the order of their ids.

    Args:
        directory: the repository.
        skip: ids whose content is not read (`data` is empty).

    Raises:
        ExpbenchError: see `git`.
    """
    listing = git("cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)", directory=directory)
    wanted: list[str] = []
    for line in listing.decode("ascii").splitlines():
        id_, type_ = line.split(" ", 1)
        if id_ in skip:
            yield GitObject(id_, type_, b"")
        else:
            wanted.append(id_)
    process = subprocess.Popen(
        _command("cat-file", "--batch"), cwd=directory, env=_environment(), stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    with process, process.stdin, process.stdout:
        for id_ in wanted:
            process.stdin.write(id_.encode() + b"\n")
            process.stdin.flush()
            header = process.stdout.readline().split()
            data = process.stdout.read(int(header[2]))
            process.stdout.read(1)
            yield GitObject(id_, header[1].decode(), data)
