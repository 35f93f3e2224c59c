"""Runs git so that nothing of the machine's or the repository's configuration takes part.

Every call gets an environment of its own (no `GIT_*` of the caller, no system or global configuration, no prompts) and
the switches that turn hooks, fsmonitor, credential helpers and unusual transports off. Local repositories are never the
current repository of a call: `pipeline._git.mirror` reads their objects through a bare repository of ours, so that
their `config` is not even opened by git as configuration.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pipeline.errors import ExpbenchError, FailureKind

__all__ = ["GitResult", "command", "environment", "redact", "run_git", "shown"]

# Passed on: how to find programs, reach the network and authenticate as the user. Everything else stays behind.
_KEPT = (
    "PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "http_proxy", "https_proxy", "no_proxy", "all_proxy", "HTTP_PROXY",
    "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY",
)  # fmt: skip

# `file` is missing on purpose: local repositories are read through alternates, so that no upload-pack starts in one (it
# would read that repository's configuration, and lazily fetch with the commands it names: CVE-2024-32004).
_TRANSPORTS = ("https", "http", "ssh", "git")

_SWITCHES = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.askPass=",
    "credential.helper=",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "fetch.writeCommitGraph=false",
    "http.lowSpeedLimit=1000",  # bytes/s: below this for 60 s a transfer counts as dead
    "http.lowSpeedTime=60",
    "protocol.allow=never",
    *(f"protocol.{name}.allow=always" for name in _TRANSPORTS),
)


class GitResult(NamedTuple):
    """How a call ended."""

    code: int
    """Exit code; -1 when the time limit ended it."""
    stdout: bytes
    stderr: str


def environment() -> dict[str, str]:
    """The environment of every git process."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {
        **kept,
        "LC_ALL": "C",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_PROTOCOL_FROM_USER": "0",
        "GIT_SSH_COMMAND": "ssh -oBatchMode=yes -oConnectTimeout=30",
    }


def command(git_dir: Path | None, arguments: Sequence[str]) -> list[str]:
    """The argument vector of a git call with all the switches."""
    vector = ["git"]
    for switch in _SWITCHES:
        vector += ["-c", switch]
    if git_dir is not None:
        vector.append(f"--git-dir={git_dir}")
    return [*vector, *arguments]


def run_git(
    git_dir: Path | None,
    *arguments: str,
    timeout_s: float = 600.0,
    extra_env: dict[str, str] | None = None,
    options: Sequence[str] = (),
) -> GitResult:
    """Run git and collect what it says; a failure is a result.

    Args:
        git_dir: our bare repository, or None for a call that needs none.
        arguments: subcommand and its arguments; user strings only behind `--` or after validation.
        timeout_s: wall time.
        extra_env: variables added to `environment()`.
        options: options of git itself, before the subcommand.

    Raises:
        ExpbenchError: `TOOL_MISSING` when git is not installed.
    """
    vector = command(git_dir, [*options, *arguments])
    try:
        process = subprocess.Popen(
            vector,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment() | (extra_env or {}),
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise ExpbenchError(
            FailureKind.TOOL_MISSING, "git", "the program git was not found on PATH",
            consequence="No repository can be read",
            next_step="Install git (Debian/Ubuntu: apt-get install git) and try again",
        ) from error  # fmt: skip
    with process:
        try:
            stdout, stderr = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            _end_group(process)
            process.communicate()
            return GitResult(-1, b"", f"no end after {timeout_s:g} s")
        except BaseException:
            _end_group(process)
            raise
    return GitResult(process.returncode, stdout, redact(stderr.decode("utf-8", "replace")).strip())


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End git and its transport helpers (they share the session that the call opened)."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def redact(text: str) -> str:
    """`text` without user names, passwords and tokens inside URLs (`git@host:` stays: it names no person)."""
    return re.sub(r"(?<=://)[^/\s'\"]+@", "", text)


def shown(path: bytes | str) -> str:
    r"""A path for people: bytes that are not UTF-8 as `\xNN`, control characters escaped."""
    text = path.decode("utf-8", "backslashreplace") if isinstance(path, bytes) else path
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
