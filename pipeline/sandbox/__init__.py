"""Run code elsewhere: Docker Engine through its API, or an announced process sandbox as the fallback."""

from __future__ import annotations

from typing import Literal

from pipeline.sandbox.base import (
    BuildSpec,
    Command,
    CommandResult,
    Gpus,
    Image,
    Limits,
    Network,
    ProducedFile,
    ReadOnlyMount,
    RunResult,
    RunSpec,
    Sandbox,
    SandboxStatus,
    StopHandle,
    StoppableSandbox,
    is_container,
)

__all__ = [
    "BuildSpec",
    "Command",
    "CommandResult",
    "Gpus",
    "Image",
    "Limits",
    "Network",
    "ProducedFile",
    "ReadOnlyMount",
    "RunResult",
    "RunSpec",
    "Sandbox",
    "SandboxStatus",
    "StopHandle",
    "StoppableSandbox",
    "is_container",
    "open_sandbox",
    "pythons_of",
]


def pythons_of(sandbox: Sandbox) -> tuple[str, ...]:
    """The Pythons that environments of this sandbox can have, the preferred one first.

    Containers stand on a Debian or Ubuntu release, whose own Python it is; the process sandbox has the one that runs
    expbench's environments. Which others there are on a machine is not looked for: a result must not depend on it.
    """
    from pipeline.sandbox.base import BuildSpec as _BuildSpec

    preferred = _BuildSpec().python
    if not is_container(sandbox):
        return (preferred,)
    from pipeline.sandbox._base_image import SUITES, configured_base

    if configured_base():
        return (preferred,)
    minor = int(preferred.partition(".")[2])
    distance = {python: int(python.partition(".")[2]) - minor for python in SUITES}
    # what does not resolve for the preferred one is old code more often than new: older ones first, the nearest first
    return tuple(sorted(SUITES, key=lambda python: (distance[python] > 0, abs(distance[python]))))


def open_sandbox(kind: Literal["docker", "process"] | None = None) -> StoppableSandbox:
    """The sandbox of this kind; None takes Docker where an engine answers, and the process sandbox otherwise.

    Which one it became is in its `name`: the caller announces it, because the process sandbox isolates less.

    Raises:
        ExpbenchError: `SANDBOX_UNAVAILABLE`, the kind that was asked for cannot be used here.
    """
    from pipeline.errors import ExpbenchError, FailureKind
    from pipeline.sandbox.docker import DockerSandbox
    from pipeline.sandbox.process import ProcessSandbox

    docker = DockerSandbox()
    if kind == "process":
        chosen: StoppableSandbox = ProcessSandbox()
    elif kind == "docker" or docker.status().available:
        chosen = docker
    else:
        chosen = ProcessSandbox()
    status = chosen.status()
    if not status.available:
        raise ExpbenchError(
            FailureKind.SANDBOX_UNAVAILABLE,
            f"{chosen.name} sandbox",
            status.detail,
            consequence="Code of repositories cannot be run",
            next_step=status.next_step,
        )
    return chosen
