"""Shared by the tests: claims, tasks, snapshots, and a sandbox double that really runs commands in a copy of the tree."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Literal

from pipeline.errors import FailureKind
from pipeline.paper import Paper
from pipeline.progress import Reporter
from pipeline.repository import RepositoryFile, RepositoryRef, Snapshot
from pipeline.sandbox.base import (
    BuildSpec,
    CommandResult,
    Image,
    ProducedFile,
    RunResult,
    RunSpec,
    SandboxStatus,
)
from pipeline.task import (
    Band,
    Condition,
    Expected,
    ExperimentTruth,
    Family,
    NumericClaim,
    Provenance,
    SourceScript,
    Status,
    Task,
    Usage,
)

IMAGE = Image(reference="here", digest="d" * 64, spec_digest=BuildSpec().digest)


def claim(
    id_: str,
    metric: str,
    text: str,
    *,
    unit: str | None = None,
    uncertainty: float | None = None,
    **conditions: str,
) -> NumericClaim:
    value = float(text.replace(",", ""))
    decimals = len(text.partition(".")[2])
    half = 0.5 * 10**-decimals
    return NumericClaim(
        id=id_,
        metric=metric,
        value=value,
        text=text,
        decimals=decimals,
        unit=unit,
        uncertainty=uncertainty,
        conditions=tuple(Condition(name=name, value=item) for name, item in conditions.items()),
        band=Band(low=value - half, high=value + half, source="printed precision"),
    )


def make_snapshot(root: Path, files: dict[str, str]) -> Snapshot:
    entries = []
    for path, text in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        data = target.read_bytes()
        entries.append(RepositoryFile(path=path, size=len(data), sha256=hashlib.sha256(data).hexdigest()))
    return Snapshot(
        ref=RepositoryRef(url="demo", commit="0" * 40),
        root=root,
        files=tuple(sorted(entries, key=lambda entry: entry.path)),
    )


def make_task(
    snapshot: Snapshot, commands: list[list[str]], sources: list[str], claims, comparisons=(), **fields
) -> Task:
    return Task(
        id="demo-main",
        family=Family.EXPERIMENT,
        status=Status.LOCATED,
        paper=Paper(id="demo", title="Demo"),
        repository=snapshot.ref,
        question="?",
        method=".",
        provenance=Provenance(engine="keyless"),
        truth=ExperimentTruth(
            expected=Expected(text=".", claims=tuple(claims), comparisons=tuple(comparisons)),
            usage=tuple(Usage(argv=tuple(argv)) for argv in commands),
            sources=tuple(SourceScript(path=path, role="entry", score=1.0) for path in sources),
        ),
        **fields,
    )


class CopySandbox:
    """Runs commands in a temporary copy of the tree with this interpreter. For tests of trusted scripts only."""

    name: Literal["docker", "process"] = "process"

    def __init__(self) -> None:
        self.runs = 0

    def status(self) -> SandboxStatus:
        return SandboxStatus(name=self.name, available=True, detail="test double")

    def build(self, spec: BuildSpec, *, log: Path, owner: str, reporter: Reporter) -> Image:
        return IMAGE

    def reap(self, owner: str) -> int:
        return 0

    def run(self, image: Image, tree: Path, spec: RunSpec, *, out: Path, owner: str) -> RunResult:
        self.runs += 1
        with tempfile.TemporaryDirectory() as scratch:
            work = Path(scratch) / "work"
            shutil.copytree(tree, work)
            before = _digests(work)
            began = time.time_ns()
            results: list[CommandResult] = []
            failure = None
            for index, command in enumerate(spec.commands):
                argv = [sys.executable if command.argv[0] == "python" else command.argv[0], *command.argv[1:]]
                done = subprocess.run(
                    argv,
                    cwd=work / command.directory,
                    capture_output=True,
                    check=False,
                    env={"PATH": os.environ["PATH"], **spec.env},
                )
                (out / f"{index}.stdout").write_bytes(done.stdout)
                (out / f"{index}.stderr").write_bytes(done.stderr)
                failure = FailureKind.RUN_FAILED if done.returncode else None
                results.append(
                    CommandResult(
                        exit_code=done.returncode,
                        failure=failure,
                        stdout_bytes=len(done.stdout),
                        stderr_bytes=len(done.stderr),
                    )
                )
                if failure:
                    break
            produced: list[ProducedFile] = []
            rewritten: list[ProducedFile] = []
            for path, digest in sorted(_digests(work).items()):
                if before.get(path) != digest or (work / path).stat().st_mtime_ns > began:
                    target = out / "files" / path
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(work / path, target)
                    into = rewritten if before.get(path) == digest else produced
                    into.append(ProducedFile(path=path, size=target.stat().st_size, sha256=digest))
        return RunResult(commands=tuple(results), produced=tuple(produced), rewritten=tuple(rewritten), failure=failure)


def _digests(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in root.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
