"""A small validated task in a workspace of its own, with a sandbox double that really runs commands."""

from __future__ import annotations

from pathlib import Path

import pymupdf
import pytest

from flows import stages_alone
from pipeline.paper import Document
from pipeline.repository import Snapshot
from pipeline.sandbox import Image, RunResult, RunSpec
from pipeline.store import Inputs, Workspace, WorkspaceInfo
from pipeline.task import Environment, Status, Task, Usage, ValidationReport, Verdict
from tests.masking import builders
from tests.pipeline.validation.support import IMAGE, CopySandbox

TASK = "shrinkage-mse"


class LookingSandbox(CopySandbox):
    """What the looking program would find in this Python's own packages is not the point here."""

    def run(self, image: Image, tree: Path, spec: RunSpec, *, out: Path, owner: str) -> RunResult:
        out.mkdir(parents=True, exist_ok=True)
        if (tree / "list_installed.py").is_file():
            spec = spec.evolve(commands=(spec.commands[0].evolve(argv=("python", "-S", *spec.commands[0].argv[1:])),))
        return super().run(image, tree, spec, out=out, owner=owner)


def make_workspace(
    root: Path, *, status: Status = Status.VALIDATED, files: dict[str, bytes] | None = None
) -> Workspace:
    """A workspace with one task on the shrinkage repository."""
    workspace = Workspace(root)
    root.mkdir(parents=True)
    plain = builders.make(root / "repository", files)
    snapshot = Snapshot(ref=plain.ref, root=plain.root, files=plain.files)
    snapshot.save()
    inputs = Inputs(
        paper_sha256="0" * 64, repository="shrinkage", commit="a" * 40, engine="keyless", sandbox="process",
        repeats=2, max_tasks=None,
    )  # fmt: skip
    workspace.write_info(
        WorkspaceInfo(inputs=inputs, paper_id="shrinkage", created_at="2026-01-01T00:00:00+00:00", expbench="0.1.0")
    )
    paper = workspace.paper_dir("shrinkage")
    paper.mkdir(parents=True)
    document: Document = builders.document()
    workspace.write_json(paper / "document.json", document)
    with pymupdf.open() as pdf:
        page = pdf.new_page()
        page.insert_textbox((40, 40, 560, 800), builders.PAPER_TEXT, fontsize=9)
        pdf.save(paper / "paper.pdf")
    workspace.save_task(make_task(status))
    return workspace


def make_task(status: Status = Status.VALIDATED) -> Task:
    """The task, validated as far as its record goes."""
    task = builders.task()
    truth = task.truth.evolve(usage=(Usage(argv=("python", "run_experiment.py")),))
    report = ValidationReport(verdict=Verdict.PASS, reason="as recorded", sandbox="process")
    return task.evolve(
        truth=truth, status=status, validation=report if status is not Status.LOCATED else None,
        environment=Environment(sandbox="process", python="3.11", spec_digest=IMAGE.spec_digest),
    )  # fmt: skip


@pytest.fixture
def sandbox(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> LookingSandbox:
    """The double, where the stages would open a sandbox."""
    double = LookingSandbox()
    monkeypatch.setattr(stages_alone, "open_sandbox", lambda kind: double)
    monkeypatch.setenv("EXPBENCH_CACHE_DIR", str(tmp_path / "cache"))
    return double
