"""Repositories that misbehave, through the whole command with the real Docker sandbox."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from flows.curate import CurateOptions, curate
from flows.examples import list_examples, materialise
from pipeline.progress import SilentReporter
from pipeline.sandbox import Limits
from pipeline.settings import Settings
from pipeline.store import Workspace
from pipeline.task import Status, Verdict
from tests.flows.test_bad_input import git
from tests.flows.test_curate import containers_of

pytestmark = pytest.mark.docker


class Case:
    """A worked example whose repository can be changed before it is curated."""

    def __init__(self, root: Path) -> None:
        example = materialise(list_examples()[0], root / "example")
        self.paper = example.paper
        self.repository = root / "changed"
        git("clone", "-q", str(example.repository), str(self.repository), at=root)
        self.workspace = Workspace(root / "work")
        self.equivalents = 0
        self.rounds = 1

    def commit(self) -> None:
        git("add", "-A", at=self.repository)
        git("commit", "-qm", "changed", at=self.repository)

    def curate(self, **limits: float) -> None:
        options = CurateOptions(
            pdf=self.paper,
            repository=str(self.repository),
            out=self.workspace.root,
            sandbox="docker",
            repeats=1,
            max_tasks=1,
        )
        settings = Settings(
            limits=Limits.model_validate(limits), refinement_rounds=self.rounds, equivalents=self.equivalents
        )
        curate(options, SilentReporter(), settings)


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


def test_odd_file_names_and_links_survive_or_are_reported(case: Case, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("private to this machine")
    odd = [b"with space.txt", b"with\nnewline.txt", b"caf\xe9.txt", b"-rf.txt", b'quote".txt', "ünïcode.txt".encode()]
    for name in odd:
        with open(os.path.join(os.fsencode(case.repository), name), "wb") as stream:  # noqa: PTH118, PTH123
            stream.write(b"kept\n")
    (case.repository / "inside").symlink_to("LICENSE")
    (case.repository / "leads-out").symlink_to(outside)
    case.commit()
    case.rounds = 2  # the sweep over noise rates ranks before the benchmark, and is refuted by its run
    case.curate()
    task = case.workspace.tasks()[0]
    assert task.status is Status.MASKED, task.status_reason
    masked = os.fsencode(case.workspace.masked_repository(task.id))
    names = set(os.listdir(masked))  # noqa: PTH208 - bytes
    assert set(odd) <= names
    assert b"inside" in names
    assert b"leads-out" not in names
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=masked, capture_output=True, check=True).stdout
    assert set(odd) <= set(listed.split(b"\0"))
    assert "leads-out" in (case.workspace.root / "repository.json").read_text()
    assert "private to this machine" not in "".join(
        path.read_text(errors="replace") for path in case.workspace.root.rglob("*") if path.is_file()
    )


FOREVER = "import time\nwhile True:\n    time.sleep(1)\n"
DISK = "with open('fill', 'wb') as f:\n    while True:\n        f.write(bytes(1 << 20))\n"
FORKS = "import os\nwhile True:\n    os.fork()\n"


@pytest.mark.parametrize(
    ("program", "limits", "failure"),
    [
        (FOREVER, {"wall_s": 5}, "run_timeout"),
        (DISK, {"wall_s": 60, "disk_mb": 64}, "run_disk_full"),
        (FORKS, {"wall_s": 20, "pids": 64}, "run_process_limit"),
    ],
    ids=["never ends", "fills the disk", "forks without end"],
)
def test_a_script_that_misbehaves_is_ended_and_said_so(
    case: Case, program: str, limits: dict[str, float], failure: str
) -> None:
    for script in sorted((case.repository / "experiments").glob("*.py")):
        script.write_text(script.read_text().replace("def main():", f"def main():\n    exec({program!r})", 1))
    case.commit()
    case.curate(**limits)
    task = case.workspace.tasks()[0]
    assert task.status is Status.LOCATED
    assert task.validation is not None
    assert task.validation.verdict is Verdict.UNKNOWN
    runs = task.validation.runs
    assert {run.failure for run in runs} == {failure}
    # what is too much at full scale is tried once more at the smoke scale
    assert [run.scale for run in runs] in (["full"], ["full", "smoke"])
    assert task.status_reason
    assert containers_of(case.workspace.owner) == []
    assert not case.workspace.masked_repository(task.id).exists()
