"""What the builders of bundles share: running an installer, and saying why it failed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.schema import Record

__all__ = ["Built", "Say", "run_installer"]

Say = Callable[[str], None]
_INSTALL_S: Final = 1800.0
"""OpenHands took 30 s with a warm package cache; a slow line may need many times that."""
_PASSED_ON: Final = (
    "PATH", "HOME", "LANG", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
)  # fmt: skip
_PREFIXES: Final = ("UV_", "PIP_", "NPM_CONFIG_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
"""Settings of package sources; the rest of our environment (keys of models) is none of an installer's business."""


class Built(Record):
    """What a builder made."""

    entry: str
    """The program to start, relative to the bundle."""
    python: str | None = None


def run_installer(what: str, argv: Sequence[str], *, cwd: Path, extra: Mapping[str, str] | None = None) -> str:
    """Run an installer to its end; returns what it printed.

    Raises:
        ExpbenchError: `TOOL_MISSING`, it cannot be started; `NETWORK`, it failed or took too long.
    """
    environment = {
        name: value for name, value in os.environ.items() if name in _PASSED_ON or name.upper().startswith(_PREFIXES)
    } | dict(extra or {})
    try:
        done = subprocess.run(
            list(argv),
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_INSTALL_S,
            check=False,
        )
    except FileNotFoundError as error:
        raise _failed(FailureKind.TOOL_MISSING, what, f"{argv[0]} cannot be found", f"Install {argv[0]}") from error
    except subprocess.TimeoutExpired as error:
        cause = f"the installer did not end within {_INSTALL_S:.0f} s"
        raise _failed(FailureKind.NETWORK, what, cause, "Check the connection to the package registry") from error
    output = done.stdout.decode("utf-8", "replace")
    if done.returncode != 0:
        cause = f"the installer ended with code {done.returncode}: {output.strip()[-1500:]}"
        next_step = "Read the message above; check the connection to the package registry and try again"
        raise _failed(FailureKind.NETWORK, what, cause, next_step)
    return output


def _failed(kind: FailureKind, what: str, cause: str, next_step: str) -> ExpbenchError:
    return ExpbenchError(kind, what, cause, consequence="The agent was not installed", next_step=next_step)
