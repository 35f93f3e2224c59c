"""Runs of commands, kept by content: the same commands on the same files in the same environment run once."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pipeline.data.phase import DataPhase, with_data
from pipeline.data.records import DataRecord
from pipeline.digests import digest_of
from pipeline.errors import FAILURES, Cause, ExpbenchError, FailureKind
from pipeline.files import find_record, remove_tree, replace_directory, write_text
from pipeline.repository import Snapshot
from pipeline.sandbox.base import (
    Command,
    Limits,
    RunResult,
    RunSpec,
    StopHandle,
    StoppableSandbox,
    is_container,
)
from pipeline.schema import Record
from pipeline.scratch import scratch_directory
from pipeline.task import Usage
from pipeline.validation.environments import Built
from pipeline.validation.plan import run_variables
from pipeline.witness.launch import with_witness
from pipeline.witness.records import Perturbation

__all__ = ["KeptRun", "KeptRuns", "busy_factor"]

_MOST_PATIENT: Final = 4.0
"""However busy the machine is: what runs can make it busy, too."""
_VERSION: Final = 2
"""Raise when what a run leaves behind changes (another witness): older runs are then made anew."""


class _Stored(Record):
    """What is kept of a run beside its output."""

    wall_s: float
    """What it was allowed, on a machine without other work."""
    spent_s: float
    witnessed: bool
    result: RunResult


@dataclass(frozen=True)
class KeptRun:
    """A finished run and where its output lies."""

    result: RunResult
    directory: Path
    witnessed: bool
    spent_s: float
    """Its share of a machine without other work. Of a run that was kept as much as when it was made, so that a resumed
    rehearsal gets as far as one in one go."""

    @property
    def failed_command(self) -> int | None:
        """Number of the command that failed; None when none did."""
        ended = enumerate(self.result.commands)
        return next((number for number, command in ended if command.exit_code != 0), None)


class KeptRuns:
    """Runs of one repository in one sandbox; safe to call from several threads and processes."""

    def __init__(
        self, snapshot: Snapshot, sandbox: StoppableSandbox, root: Path, owner: str, stop: StopHandle,
        phase: DataPhase | None = None,
    ) -> None:  # fmt: skip
        self._snapshot, self._sandbox, self._root, self._owner, self.stop = snapshot, sandbox, root, owner, stop
        self._phase = phase
        self._files = digest_of([(file.path, file.sha256, file.executable) for file in snapshot.files])

    @property
    def maps(self) -> bool:
        """Can a file of the repository be put at an absolute path?"""
        return is_container(self._sandbox)

    def run(
        self, usage: Sequence[Usage], mapped: Sequence[tuple[str, str]], built: Built, limits: Limits,
        data: DataRecord | None = None,
    ) -> KeptRun:  # fmt: skip
        """Run commands one after another, or take what is kept of the same; one that ran out of time, for no less.

        Args:
            usage: the commands.
            mapped: (absolute path, file or folder of the repository that is found there).
            built: the environment; it has an image.
            limits: ceilings of the run.
            data: what the commands download, from `fetch`.

        Raises:
            ExpbenchError: the sandbox broke, or was stopped.
        """
        assert built.image is not None
        spec = self._spec(usage, mapped, limits)
        told = spec.model_dump(mode="json", exclude={"limits": {"wall_s"}})
        image, record = built.image.digest, data.digest if data is not None else None
        key = digest_of([_VERSION, self._files, told, image, self._sandbox.name, record])
        kept = self._root / key[:2] / key[:32]
        stored = find_record(kept / "result.json", _Stored)
        if stored is None or (stored.result.failure is FailureKind.RUN_TIMEOUT and stored.wall_s < limits.wall_s):
            with replace_directory(kept) as fresh:
                stored = self._make(spec, built, fresh / "out", data)
                failure = stored.result.failure
                if failure is None or FAILURES[failure].cause is not Cause.INFRASTRUCTURE:
                    write_text(fresh / "result.json", stored.model_dump_json())
        return KeptRun(stored.result, kept / "out", stored.witnessed, stored.spent_s)

    def fetch(
        self, run: KeptRun, usage: Sequence[Usage], mapped: Sequence[tuple[str, str]], built: Built, limits: Limits
    ) -> DataRecord | None:
        """What commands download whose `run` failed for want of a network; None where nothing may be, or was, fetched.

        Raises:
            ExpbenchError: the sandbox broke.
        """
        out = run.directory.parent / "data"
        record = find_record(out / "data.json", DataRecord)
        if record is None and self._phase is not None and built.image is not None:
            spec, root = self._spec(usage, mapped, limits), self._snapshot.root
            remove_tree(out)
            out.mkdir()
            try:
                record = self._phase.fetch(spec, built.image, root, sandbox=self._sandbox, out=out, owner=self._owner)
            except ExpbenchError as error:
                if error.kind is not FailureKind.DATA_UNAVAILABLE:
                    raise
        return record if record is not None and record.files else None

    def _spec(self, usage: Sequence[Usage], mapped: Sequence[tuple[str, str]], limits: Limits) -> RunSpec:
        directories = [posixpath.normpath(step.directory) for step in usage]
        return RunSpec(
            commands=tuple(
                Command(argv=step.argv, directory=place) for step, place in zip(usage, directories, strict=True)
            ),
            env=run_variables(self._snapshot, directories),
            limits=limits,
            links=tuple(mapped),
        )

    def _make(self, spec: RunSpec, built: Built, out: Path, data: DataRecord | None) -> _Stored:
        assert built.image is not None
        out.mkdir()
        witnessed = is_container(self._sandbox)
        with scratch_directory() as scratch:
            wall_s, patience = spec.limits.wall_s, busy_factor()
            spec = spec.evolve(limits=spec.limits.evolve(wall_s=wall_s * patience))
            if data is not None:
                spec = with_data(spec, data)
            if witnessed:
                python = built.environment.python if built.environment is not None else None
                spec = with_witness(
                    spec, perturbation=Perturbation.NONE, amount=0, python=python or "3.11", scratch=scratch
                )
            result = self._sandbox.run(
                built.image, self._snapshot.root, spec, out=out, owner=self._owner, stop=self.stop
            )
        spent_s = result.duration_s / patience
        return _Stored(wall_s=wall_s, spent_s=spent_s, witnessed=witnessed, result=result)


def busy_factor() -> float:
    """How much longer a run may take because the machine does other work: its limits are meant as work, not as waiting.

    Seen: with 15 runnable processes on two processors a script of 44 s did not end in 300.
    """
    return min(_MOST_PATIENT, max(1.0, os.getloadavg()[0] / len(os.sched_getaffinity(0))))
