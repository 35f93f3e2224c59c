"""The agent's one tool that executes something: a command on a copy of the repository, in a sandbox, within limits.

The sandbox and its image are given from outside (`pipeline.sandbox`), so this knows neither Docker nor how environments
are built. Without network, and never on this machine itself. What the machinery could not do is said as such and counts
as nothing known; it never becomes a failed command. Non-goal: validation (see `pipeline.validation`).
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import Field

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.sandbox import Command, Image, Limits, Network, RunResult, RunSpec, Sandbox
from pipeline.schema import Problem, Record, Severity
from pipeline.tracing.lines import FileLines

__all__ = ["AgentSandbox", "RunBudget", "RunCommand", "RunsRecord"]

_COMPONENT = "locator.agent"


class RunBudget(Record):
    """What the agent may execute for one task."""

    runs: int = Field(default=6, ge=1)
    seconds: float = Field(default=60.0, gt=0)
    """For one command: enough for `--help`, a dry run or a first step; not for the experiment."""
    total_seconds: float = Field(default=180.0, gt=0)
    cpus: float = Field(default=1.0, gt=0)
    memory_mb: int = Field(default=2048, gt=0)


class RunsRecord(Record):
    """What the agent could execute and did: what it printed is in the steps of its trajectory."""

    sandbox: str
    environment: str
    image: str | None
    """Digest; None: nothing was run, or the environment could not be built."""
    budget: RunBudget
    runs: int
    seconds: float


class RunCommand(Record):
    """Run a command on a copy of the repository."""

    argv: tuple[Annotated[str, Field(max_length=4000)], ...] = Field(
        min_length=1, max_length=60, description="a list of words; there is no shell"
    )
    directory: str = Field(default=".", max_length=1000, description="relative to the root of the repository")


@dataclass(slots=True)
class AgentSandbox:
    """Runs commands for the agent until the budget is spent.

    Args:
        sandbox: where they run.
        image: gives the environment; asked for at the first run.
        tree: the repository's files; copied in for each run, never changed.
        work: an existing directory for what the runs print; one directory a run.
        owner: label of the runs.
        environment: what is installed, in words for the model.
        budget: runs, seconds and memory.
    """

    sandbox: Sandbox
    image: Callable[[], Image]
    tree: Path
    work: Path
    owner: str
    environment: str
    budget: RunBudget = field(default_factory=RunBudget)
    problems: list[Problem] = field(default_factory=list)
    """What the machinery could not do."""
    _built: Image | None = None
    _unbuilt: ExpbenchError | None = None
    _runs: int = 0
    _seconds: float = 0.0

    @property
    def description(self) -> str:
        """The tool in words."""
        return (
            f"Run a command on a fresh copy of the repository in a sandbox without network ({self.environment}). "
            f"At most {self.budget.runs} runs, {self.budget.seconds:.0f} s each, {self.budget.total_seconds:.0f} s "
            "together: to see options (--help) or a first step, not to do the experiment."
        )

    @property
    def record(self) -> RunsRecord:
        """What was executed so far."""
        return RunsRecord(
            sandbox=self.sandbox.name, environment=self.environment,
            image=self._built.digest if self._built is not None else None,
            budget=self.budget, runs=self._runs, seconds=round(self._seconds, 1),
        )  # fmt: skip

    def _environment(self) -> Image:
        """The image; building it is tried once, as a second try would take as long and fail the same way."""
        if self._unbuilt is not None:
            raise self._unbuilt
        if self._built is None:
            try:
                self._built = self.image()
            except ExpbenchError as error:
                self._unbuilt = error
                raise
        return self._built

    def run(self, wanted: RunCommand, files: FileLines, characters: int) -> str:
        """The result of a command in words; what it printed is cut at the beginning, because errors come last."""
        left = self.budget.total_seconds - self._seconds
        if self._runs >= self.budget.runs or left < 1.0:
            return f"Not run: the {self.budget.runs} runs or {self.budget.total_seconds:.0f} s of this task are spent."
        directory = wanted.directory.strip("/") or "."
        if directory != "." and (".." in directory.split("/") or not files.is_directory(directory)):
            return f"Not run: {wanted.directory} is not a directory of the repository."
        self._runs += 1
        out = self.work / f"run-{self._runs}"
        limits = Limits(
            wall_s=min(self.budget.seconds, left), cpus=self.budget.cpus, memory_mb=self.budget.memory_mb,
            output_mb=1, disk_mb=2048, pids=256,
        )  # fmt: skip
        spec = RunSpec(
            commands=(Command(argv=wanted.argv, directory=directory),), network=Network.NONE, limits=limits,
            keep=(".nothing",),
        )  # fmt: skip
        try:
            image = self._environment()
            out.mkdir(parents=True)
            result = self.sandbox.run(image, self.tree, spec, out=out, owner=self.owner)
        except ExpbenchError as error:
            if error.kind is FailureKind.INTERRUPTED:
                raise
            message = f"a command of the agent could not be run: {error.cause}"
            self.problems.append(
                Problem(component=_COMPONENT, where=shlex.join(wanted.argv), message=message, severity=Severity.WARNING)
            )
            return f"Could not be run here: {error.cause}. This says nothing about the command."
        self._seconds += result.duration_s
        return self._told(wanted, result, out, characters)

    def _told(self, wanted: RunCommand, result: RunResult, out: Path, characters: int) -> str:
        ended = result.commands[0] if result.commands else None
        code = "no exit code" if ended is None or ended.exit_code is None else f"exit code {ended.exit_code}"
        why = f" ({result.failure}: {result.message})" if result.failure is not None and result.message else ""
        parts = [f"$ {shlex.join(wanted.argv)}\n{code}{why} after {result.duration_s:.1f} s"]
        for name in ("stdout", "stderr"):
            path = out / f"0.{name}"
            text = path.read_text(encoding="utf-8", errors="replace").strip() if path.is_file() else ""
            room = max(200, (characters - 400) // 2)
            cut = f"[{len(text) - room} characters before are not shown]\n" if len(text) > room else ""
            parts.append(f"{name}:\n{cut}{text[-room:]}" if text else f"{name}: nothing")
        left = self.budget.runs - self._runs
        parts.append(f"[{left} runs and {max(0.0, self.budget.total_seconds - self._seconds):.0f} s are left]")
        return "\n".join(parts)
