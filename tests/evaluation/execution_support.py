"""A small task with a masked repository, submissions made from a changed copy of it, and a sandbox of this session.

Import the fixtures where they are used:

from tests.evaluation.execution_support import process_sandbox  # noqa: F401
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from evaluation.episode import EpisodeFolder, EpisodeLimits
from evaluation.recipes import as_repository
from evaluation.submission import REPRODUCE, Conclusion, Response, Submission
from evaluation.task import EvaluationTask, private_digest
from pipeline.data.records import DataFile, KeptData
from pipeline.paper import Paper
from pipeline.repository import RepositoryRef
from pipeline.sandbox import Sandbox
from pipeline.sandbox.process import ProcessSandbox
from pipeline.task import (
    Band,
    DesignVariable,
    Expected,
    ExperimentTruth,
    Family,
    NumericClaim,
    Provenance,
    PublicTask,
    Requirement,
    Status,
)

SMALL = EpisodeLimits(wall_s=120, cpus=1, memory_mb=512, pids=64, disk_mb=64, output_mb=1)
COMMIT = "1" * 40


@pytest.fixture(scope="session")
def process_sandbox() -> Iterator[Sandbox]:
    """With a cache of its own; below a directory that every user may walk through, as its commands are another user."""
    with tempfile.TemporaryDirectory(prefix="expbench-tests-") as name, pytest.MonkeyPatch.context() as patch:
        Path(name).chmod(0o755)
        patch.setenv("XDG_CACHE_HOME", name)
        yield ProcessSandbox()


def public_task(**changes: object) -> PublicTask:
    """The public half of a task about nothing in particular."""
    values: dict[str, object] = {
        "id": "paper-task",
        "family": Family.EXPERIMENT,
        "status": Status.MASKED,
        "paper": Paper(id="paper", title="A paper"),
        "repository": RepositoryRef(url="repository", commit=COMMIT),
        "question": "Which rule scores higher?",
        "method": "Draw 50 points. Fit rule A. Fit rule B. Compare their scores.",
        "agent_instructions": "Implement the experiment.\n- Run rule A.\n- Run rule B.\n- Report the score.",
        "provenance": Provenance(engine="keyless"),
    }
    return PublicTask.model_validate(values | changes)


def truth() -> ExperimentTruth:
    """Ground truth with a word that must never be seen on the agent's side."""
    claim = NumericClaim(
        id="c1", metric="score", value=0.75, text="0.75", decimals=2, band=Band(low=0.745, high=0.755, source="printed")
    )
    return ExperimentTruth(
        independent=(DesignVariable(name="rule", values=("A", "B")),),
        requirements=(Requirement(text="CANARY-TRUTH fits rule A", spans=()),),
        expected=Expected(text="CANARY-TRUTH: rule A wins", claims=(claim,)),
    )


def make_task(directory: Path, files: Mapping[str, str | bytes], **changes: object) -> EvaluationTask:
    """A task whose masked repository holds `files`."""
    tree = directory / "plain"
    for name, content in files.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    masked = as_repository(tree, RepositoryRef(url="repository", commit=COMMIT), directory / "masked")
    values: dict[str, object] = {
        "public": public_task(),
        "truth": truth(),
        "masked_repository": masked,
        "private_digest": private_digest(truth()),
    }
    return EvaluationTask.model_validate(values | changes)


def with_downloads(task: EvaluationTask, cache: Path, *, whole: bool) -> EvaluationTask:
    """The task as one whose runs download a file, which the cache has or has not."""
    body = b"what was downloaded"
    file = DataFile(
        url="https://data.example/x.csv", size=len(body), sha256=hashlib.sha256(body).hexdigest(),
        content_type="text/csv", fetched_at="2026-01-01T00:00:00Z",
    )  # fmt: skip
    if whole:
        (cache / "blobs").mkdir(parents=True)
        (cache / "blobs" / file.sha256).write_bytes(body)
        (cache / "ca.pem").touch()
        (cache / "index.json").write_text(json.dumps({f"GET {file.url}": {}}))
    data = KeptData(digest="0" * 64, directory=cache, files=(file,))
    assert task.truth is not None
    return task.evolve(truth=task.truth.evolve(data=data))


class Workspace:
    """A copy of a task's masked repository in which a submission is prepared."""

    def __init__(self, task: EvaluationTask, directory: Path) -> None:
        assert task.masked_repository is not None
        self.root = directory / "workspace"
        self.folder = EpisodeFolder(directory / "episode")
        shutil.copytree(task.masked_repository, self.root, symlinks=True)

    def write(self, name: str, content: str | bytes) -> Path:
        """Write a file of the workspace."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def submit(
        self, numbers: Mapping[str, float] | None = None, outputs: tuple[str, ...] = (), *, reproduce: bool = True
    ) -> Submission:
        """What differs from the commit, as the harness stores it."""

        def git(*arguments: str) -> bytes:
            command = ["git", "-c", "safe.directory=*", "-c", "core.fileMode=true", *arguments]
            return subprocess.run(command, cwd=self.root, check=True, capture_output=True).stdout

        git("add", "--all", "--force")
        patch = git("diff", "--cached", "--binary", "--no-color", "--no-ext-diff", "HEAD")
        self.folder.submission.mkdir(parents=True, exist_ok=True)
        (self.folder.submission / "patch.diff").write_bytes(patch)
        script = self.root / REPRODUCE
        return Submission(
            response=Response(conclusion=Conclusion(text="Rule A.", numbers=dict(numbers or {})), outputs=outputs),
            reproduce=reproduce and (script.is_symlink() or script.exists()),
            patch_sha256=hashlib.sha256(patch).hexdigest() if patch else "",
            patch_bytes=len(patch),
        )
