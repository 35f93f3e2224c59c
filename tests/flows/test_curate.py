"""The main job on a worked example, with the real sandbox: what comes out, again the same, and after being killed."""

from __future__ import annotations

import html
import multiprocessing
import re
import shutil
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.context import ForkServerContext
from pathlib import Path

import pytest

from flows.examples import MaterialisedExample, list_examples, materialise
from flows.release import release
from pipeline.ledger import Ledger
from pipeline.store import Workspace
from pipeline.task import Status, Verdict
from tests.flows import curate_and_die

MAX_TASKS = 2

pytestmark = pytest.mark.docker


@dataclass(frozen=True)
class Done:
    """A child that has ended."""

    returncode: int
    stderr: str


@pytest.fixture(scope="module")
def children() -> ForkServerContext:
    """Processes that begin with everything imported."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.flows.curate_and_die", "docker", "extractors.document", "masking.leaks"])
    return context


Child = Callable[[MaterialisedExample, Path, str], Done]


@pytest.fixture(scope="module")
def curate_in_child(children: ForkServerContext, tmp_path_factory: pytest.TempPathFactory) -> Child:
    def curate(example: MaterialisedExample, out: Path, event: str) -> Done:
        arguments = [str(example.paper), str(example.repository), str(out), "docker", str(MAX_TASKS), event]
        errors = tmp_path_factory.mktemp("child") / "errors.txt"
        environment = {"EXPBENCH_EQUIVALENTS": "1"}  # one look at other scripts is enough here, six take minutes
        child = children.Process(target=curate_and_die.start, args=(arguments, environment, str(errors)))
        child.start()
        child.join(900)
        if child.exitcode is None:
            child.kill()
            pytest.fail("not finished after 900 s")
        return Done(child.exitcode, errors.read_text(encoding="utf-8"))

    return curate


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> MaterialisedExample:
    return materialise(list_examples()[0], tmp_path_factory.mktemp("examples"))


@pytest.fixture(scope="module")
def reference(
    curate_in_child: Child, example: MaterialisedExample, tmp_path_factory: pytest.TempPathFactory
) -> Workspace:
    out = tmp_path_factory.mktemp("reference") / "work"
    done = curate_in_child(example, out, "never")
    assert done.returncode == 0, done.stderr
    return Workspace(out)


def task_files(workspace: Workspace) -> dict[str, bytes]:
    """The files of all tasks; the time of creation is the one thing that may differ."""
    created = re.compile(rb'"?created_at"?: .*')
    files = {}
    for path in sorted((workspace.root / "tasks").rglob("*")):
        relative = path.relative_to(workspace.root).as_posix()
        # logs of two executions may differ where the code prints its own timing
        if path.is_file() and "/validation/" not in relative:
            files[relative] = created.sub(b"", path.read_bytes())
    return files


def containers_of(owner: str) -> list[str]:
    import docker

    client = docker.from_env()
    try:
        found = client.containers.list(all=True, filters={"label": f"expbench.owner={owner}"})
        return [container.id or "" for container in found]
    finally:
        client.close()


def test_the_example_gives_release_candidates_with_proof(reference: Workspace) -> None:
    tasks = reference.tasks()
    candidates = [task for task in tasks if task.status is Status.MASKED]
    assert len(candidates) == MAX_TASKS, [(task.id, task.status, task.status_reason) for task in tasks]
    for task in candidates:
        assert task.validation is not None
        assert task.validation.sandbox == "docker"
        assert len(task.validation.runs) == 2
        matches = {match.claim: match for match in task.validation.matches}
        assert task.truth.expected.claims
        for claim in task.truth.expected.claims:
            assert len(matches[claim.id].observed) == 2
            assert all(claim.band.holds(value) for value in _in_unit(claim.value, matches[claim.id].observed))
        assert task.leaks is not None
        assert task.leaks.verdict is Verdict.PASS
        assert task.round_trip is not None
        assert (task.round_trip.original, task.round_trip.masked, task.round_trip.restored) == (
            Verdict.PASS,
            Verdict.FAIL,
            Verdict.PASS,
        )


def test_the_page_shows_what_the_runs_printed(reference: Workspace) -> None:
    """A bug it records: the page looked for the logs one folder too high, and showed empty ones."""
    page = html.unescape((reference.root / "index.html").read_text(encoding="utf-8"))
    for task in reference.tasks():
        assert task.validation is not None
        logs = reference.task_dir(task.id) / "validation" / task.validation.runs[0].log
        lines = [line for path in logs.glob("*.stdout") for line in path.read_text(encoding="utf-8").splitlines()]
        assert lines
        assert lines[-1] in page


def _in_unit(value: float, observed: tuple[float, ...]) -> tuple[float, ...]:
    """A run may print a share where the paper prints per cent."""
    return tuple(seen * 100 if value > 1.5 and abs(seen) <= 1 else seen for seen in observed)


def test_what_was_approved_and_released_survives_a_resumed_run(
    curate_in_child: Child, example: MaterialisedExample, reference: Workspace, tmp_path: Path
) -> None:
    workspace = Workspace(tmp_path / "work")
    shutil.copytree(reference.root, workspace.root, symlinks=True)
    release(workspace, out=tmp_path / "dataset", accept_all=True, name=None)
    before = workspace.tasks()
    assert [task.status for task in before] == [Status.RELEASED] * MAX_TASKS
    resumed = curate_in_child(example, workspace.root, "never")
    assert resumed.returncode == 0, resumed.stderr
    assert workspace.tasks() == before


def test_killed_again_and_again_it_resumes_to_the_same_tasks(
    curate_in_child: Child, example: MaterialisedExample, reference: Workspace, tmp_path: Path
) -> None:
    """SIGKILL at a growing number of progress events (between and inside stages), each time resumed."""
    workspace = Workspace(tmp_path / "work")
    kills = 0
    for event in (2, 6, 11, 17, 23):
        done = curate_in_child(example, workspace.root, str(event))
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
        kills += 1
    assert kills >= 4
    finished = curate_in_child(example, workspace.root, "never")
    assert finished.returncode == 0, finished.stderr
    assert task_files(workspace) == task_files(reference)
    assert containers_of(workspace.owner) == []
    assert _done_twice(workspace) == {}
    assert not list(workspace.root.rglob("*.tmp"))


def test_killed_while_a_container_runs_it_leaves_none_behind(
    curate_in_child: Child, example: MaterialisedExample, reference: Workspace, tmp_path: Path
) -> None:
    workspace = Workspace(tmp_path / "work")
    done = curate_in_child(example, workspace.root, "container")
    assert done.returncode == -signal.SIGKILL, done.stderr
    finished = curate_in_child(example, workspace.root, "never")
    assert finished.returncode == 0, finished.stderr
    assert containers_of(workspace.owner) == []
    assert task_files(workspace) == task_files(reference)


def _done_twice(workspace: Workspace) -> dict[tuple[str, str | None], int]:
    entries = Ledger(workspace.root / "ledger.jsonl").entries()
    done = Counter((entry.stage, entry.task) for entry in entries if entry.outcome == "done")
    # the ledger's line is written after the stage's record, so a line says that the stage need not run again
    return {stage: count for stage, count in done.items() if count > 1 and stage[0] != "repository"}
