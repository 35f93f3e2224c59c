"""Run the same thing once: tasks of one paper often share a script, and then the very same execution serves them all.

Two runs are the same when image, tree (by content), commands, environment, limits, witness and the ordinal of the
repeat are equal. Repeats are never merged: `run-1` and `run-2` of a task are two executions. What is shared is also
what a resumed run finds again after an interruption between an execution and its report, and a rehearsal that ran a
task's very commands (`adopt`).
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Literal

from pipeline.digests import digest_of, tree_digest
from pipeline.errors import FAILURES, Cause
from pipeline.files import find_record, replace_directory
from pipeline.progress import Reporter
from pipeline.sandbox import BuildSpec, Image, RunResult, RunSpec, Sandbox, SandboxStatus

__all__ = ["SharedRuns"]


class SharedRuns:
    """A `Sandbox` that keeps finished runs under `root` and hands out copies; runs may be asked for at a time."""

    def __init__(self, sandbox: Sandbox, root: Path) -> None:
        self._sandbox = sandbox
        self._root = root
        self._images: dict[str, Image] = {}
        self.name: Literal["docker", "process"] = sandbox.name

    def status(self) -> SandboxStatus:
        """As the sandbox below."""
        return self._sandbox.status()

    def build(self, spec: BuildSpec, *, log: Path, owner: str, reporter: Reporter) -> Image:
        """As the sandbox below, asked once per spec."""
        if spec.digest not in self._images:
            self._images[spec.digest] = self._sandbox.build(spec, log=log, owner=owner, reporter=reporter)
        return self._images[spec.digest]

    def run(self, image: Image, tree: Path, spec: RunSpec, *, out: Path, owner: str) -> RunResult:
        """The run with this image, tree, spec and repeat (the name of `out`): executed now, or copied when finished."""
        kept = self._kept(image, tree, spec, out.name)
        result = find_record(kept / "result.json", RunResult)
        if result is None:
            with replace_directory(kept) as fresh:
                result = self._sandbox.run(image, tree, spec, out=fresh / "out", owner=owner)
                if result.failure is not None and FAILURES[result.failure].cause is Cause.INFRASTRUCTURE:
                    (fresh / "out").mkdir(exist_ok=True)
                else:
                    (fresh / "result.json").write_text(result.model_dump_json(), encoding="utf-8")
        shutil.copytree(kept / "out", out, symlinks=True, dirs_exist_ok=True)
        return result

    def adopt(self, image: Image, tree: Path, spec: RunSpec, repeat: str, *, out: Path, result: RunResult) -> None:
        """Take a run that ended well elsewhere for the one with this image, tree, spec and repeat.

        Args:
            image: its environment.
            tree: what it ran on.
            spec: what was run; its limits may have been narrower, as it met none.
            repeat: name of the run that it stands for.
            out: what it left behind; copied.
            result: how it went.
        """
        kept = self._kept(image, tree, spec, repeat)
        if find_record(kept / "result.json", RunResult) is None:
            with replace_directory(kept) as fresh:
                shutil.copytree(out, fresh / "out", symlinks=True)
                (fresh / "result.json").write_text(result.model_dump_json(), encoding="utf-8")

    def reap(self, owner: str) -> int:
        """As the sandbox below."""
        return self._sandbox.reap(owner)

    def _kept(self, image: Image, tree: Path, spec: RunSpec, repeat: str) -> Path:
        run = spec.witness or spec.model_dump(mode="json")
        key = digest_of({"image": image.digest, "tree": tree_digest(tree), "spec": run, "repeat": repeat})
        return self._root / key[:32]
