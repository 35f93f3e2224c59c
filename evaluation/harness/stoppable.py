"""A sandbox for graders: what they start ends when the run of the harness is interrupted."""

from __future__ import annotations

from pathlib import Path

from pipeline.progress import Reporter
from pipeline.sandbox.base import BuildSpec, Image, RunResult, RunSpec, SandboxStatus, StopHandle, StoppableSandbox

__all__ = ["Stoppable"]


class Stoppable:
    """A sandbox whose every run ends when the run of the harness is interrupted; for graders, which know no handle."""

    def __init__(self, sandbox: StoppableSandbox, stop: StopHandle) -> None:
        self._sandbox = sandbox
        self._stop = stop
        self.name = sandbox.name

    def status(self) -> SandboxStatus:
        """As the sandbox below."""
        return self._sandbox.status()

    def build(self, spec: BuildSpec, *, log: Path, owner: str, reporter: Reporter) -> Image:
        """As the sandbox below, until the handle says stop."""
        return self._sandbox.build(spec, log=log, owner=owner, reporter=reporter, stop=self._stop)

    def run(self, image: Image, tree: Path, spec: RunSpec, *, out: Path, owner: str) -> RunResult:
        """As the sandbox below, until the handle says stop."""
        return self._sandbox.run(image, tree, spec, out=out, owner=owner, stop=self._stop)

    def reap(self, owner: str) -> int:
        """As the sandbox below."""
        return self._sandbox.reap(owner)
