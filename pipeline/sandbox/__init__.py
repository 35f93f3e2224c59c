"""Run code elsewhere: Docker Engine through its API, or an announced process sandbox as the fallback."""

from pipeline.sandbox.base import (
    BuildSpec,
    Command,
    CommandResult,
    Image,
    Limits,
    Network,
    ProducedFile,
    RunResult,
    RunSpec,
    Sandbox,
    SandboxStatus,
)

__all__ = [
    "BuildSpec",
    "Command",
    "CommandResult",
    "Image",
    "Limits",
    "Network",
    "ProducedFile",
    "RunResult",
    "RunSpec",
    "Sandbox",
    "SandboxStatus",
]
