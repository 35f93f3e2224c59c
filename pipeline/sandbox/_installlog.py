"""Why an install failed, read from the log of uv and apt."""

from __future__ import annotations

import re
from typing import Final

from pipeline.errors import FailureKind
from pipeline.sandbox.base import BuildSpec

__all__ = ["diagnose"]

SYSTEM_PACKAGES: Final = 10
INTERPRETER: Final = 11
# Messages of uv 0.9-0.13 and of apt 2.6, each seen by provoking it.
_NETWORK: Final = re.compile(
    r"error sending request|dns error|failed to lookup address|client error \(Connect\)|connection (?:refused|reset)"
    r"|operation timed out|tls handshake|network is unreachable|temporary failure (?:in name resolution|resolving)"
    r"|could not (?:connect|resolve)"
    r"|50[0234] (?:bad gateway|service unavailable|internal server error|gateway timeout)",
    re.IGNORECASE,
)
_PACKAGE: Final = (
    re.compile(
        r"Failed to (?:build|download(?: and build)?|install|read|fetch wheel:?) "
        r"`?([A-Za-z0-9][\w.-]*(?:==[\w.+!-]+)?)"
    ),
    re.compile(r"no version of ([A-Za-z0-9][\w.-]*==[\w.+!-]+)"),
    re.compile(r"[Bb]ecause ([A-Za-z0-9][\w.-]*(?:==[\w.+!-]+)?)\s+(?:was not found|has no|needs|requires)"),
    re.compile(r"Unable to locate package (\S+)"),
    re.compile(r"Package '?([^' ]+)'? has no installation candidate"),
)


def diagnose(log: str, code: int, spec: BuildSpec) -> tuple[FailureKind, str]:
    """Failure kind and cause of a failed build.

    Args:
        log: the build's output.
        code: exit code of `_builder.py`, or another number for other installers.
        spec: what was to be built.
    """
    flat = re.sub(r"\s+", " ", log)
    if "No space left on device" in flat or "os error 28" in flat:
        return FailureKind.DISK_FULL, "the disk of this machine filled up while packages were installed"
    package = next((match[1].rstrip(".,:;`'") for pattern in _PACKAGE for match in [pattern.search(flat)] if match), "")
    network = _NETWORK.search(flat)
    if network and "was not found in the package registry" not in flat:
        return FailureKind.NETWORK, f"the package index could not be reached ({network[0].lower()})"
    if code == INTERPRETER:
        return (
            FailureKind.ENVIRONMENT_UNBUILDABLE,
            f"Python {spec.python} is not in the base image and could not be installed",
        )
    what = "system package" if code == SYSTEM_PACKAGES else "package"
    last = _last_error(log)
    if package:
        return FailureKind.ENVIRONMENT_UNBUILDABLE, f"{what} {package} cannot be installed: {last}"
    return FailureKind.ENVIRONMENT_UNBUILDABLE, f"{what}s cannot be installed: {last}"


def _last_error(log: str) -> str:
    lines = [line.strip(" ×╰─▶│├E:") for line in log.splitlines() if line.strip() and not line.startswith("+ ")]
    errors = [line for line in lines if re.search(r"error|because|fail|unable|not found", line, re.IGNORECASE)]
    return (errors or lines or ["no output"])[0][:300]
