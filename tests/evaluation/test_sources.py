"""Where tasks come from: equal digests from every source, blocked instead of missing, nothing built by surprise."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from evaluation.episode import EpisodeLimits
from evaluation.families.experiment import instructions
from evaluation.lock import differences, lock_episode, repository_commit
from evaluation.recipes import build_from_recipe
from evaluation.sources import load_tasks
from evaluation.task import EvaluationTask
from flows.release import release
from masking.apply import apply_mask
from masking.records import MaskPlan, TextEdit
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.progress import SilentReporter
from pipeline.repository import RepositoryRef, open_snapshot
from pipeline.schema import Problem
from pipeline.store import Inputs, Workspace, WorkspaceInfo
from pipeline.task import Environment, MaskedPath, Status, Task
from tests.evaluation.execution_support import make_task, public_task, truth

PUBLISHED = Path(__file__).parents[3] / "shared" / "data" / "exp-bench"
REPORTER = SilentReporter()


def load(source: Path, scratch: Path, **options: object) -> tuple[list[EvaluationTask], list[Problem]]:
    return load_tasks(source, scratch=scratch, reporter=REPORTER, **options)  # type: ignore[arg-type]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Two candidates and a rejected task; one candidate's licence allows redistribution, the other's does not."""
    found = Workspace(tmp_path / "workspace")
    inputs = Inputs(
        paper_sha256="0", repository="repository", commit="1" * 40, engine="keyless", sandbox="process", repeats=1,
        max_tasks=None,
    )  # fmt: skip
    found.write_info(WorkspaceInfo(inputs=inputs, paper_id="paper", created_at="2026-01-01", expbench="0"))
    (found.root / "repository").mkdir()
    for name, licence, status in (
        ("paper-free", "MIT", Status.MASKED),
        ("paper-kept", None, Status.MASKED),
        ("paper-bad", "MIT", Status.REJECTED),
    ):
        ref = RepositoryRef(url="repository", commit="1" * 40, license=licence)
        environment = Environment(python="3.11", packages=("numpy==1.26.4",), system_packages=("libgomp1",))
        public = public_task(id=name, repository=ref, status=status, environment=environment)
        masked = (MaskedPath(path="run.py", action="removed", reason="source script"),)
        values = {field: getattr(public, field) for field in type(public).model_fields}
        found.save_task(Task.model_validate(values | {"truth": truth(), "masked": masked}))
        made = make_task(tmp_path / name, {"library.py": f"# {name}\n", "tool.sh": "#!/bin/sh\n"})
        assert made.masked_repository is not None
        made.masked_repository.rename(found.masked_repository(name))
    return found


def test_a_workspace_gives_its_candidates(workspace: Workspace, tmp_path: Path) -> None:
    tasks, problems = load(workspace.root, tmp_path / "scratch")
    assert [task.id for task in tasks] == ["paper-free", "paper-kept"]
    assert all(task.masked_repository and task.original_tree and not task.blocked for task in tasks)
    assert any("rejected" in problem.message for problem in problems)
    assert any("document.json" in problem.where for problem in problems)
    assert [task.id for task in load(workspace.root, tmp_path, only=["paper-kept"])[0]] == ["paper-kept"]
    assert [task.id for task in load(workspace.root, tmp_path, statuses=[Status.REJECTED])[0]] == ["paper-bad"]


def test_a_candidate_without_its_repository_is_blocked(workspace: Workspace, tmp_path: Path) -> None:
    (workspace.masked_repository("paper-kept") / ".git").rename(tmp_path / "gone")
    tasks, _ = load(workspace.root, tmp_path)
    assert [bool(task.blocked) for task in tasks] == [False, True]
    assert tasks[1].masked_repository is None


def test_a_release_gives_the_same_digests_as_its_workspace(workspace: Workspace, tmp_path: Path) -> None:
    limits = EpisodeLimits()
    before, _ = load(workspace.root, tmp_path / "scratch")
    release(workspace, out=tmp_path / "release", accept_all=True, name=None)
    after, problems = load(tmp_path / "release", tmp_path / "scratch")
    assert problems == []
    assert [task.id for task in after] == ["paper-free", "paper-kept"]
    locks = [
        [lock_episode(task, limits=limits, instructions=instructions(task, limits=limits)) for task in tasks]
        for tasks in (before, after)
    ]
    assert differences(locks[0][0], locks[1][0]) == ()  # masked repository, environment, truth and all
    assert before[0].truth == after[0].truth
    assert after[0].original_tree is None
    assert "no URL" in after[1].blocked  # a recipe from a directory of another machine
    assert load(tmp_path / "release", tmp_path / "scratch") == (after, problems)  # used again, the same


def test_what_is_no_source_is_refused(tmp_path: Path) -> None:
    for source in (tmp_path, tmp_path / "missing"):
        with pytest.raises(ExpbenchError) as caught:
            load(source, tmp_path)
        assert caught.value.kind is FailureKind.RECORD_INVALID


def test_an_unknown_id_is_refused(workspace: Workspace, tmp_path: Path) -> None:
    with pytest.raises(ExpbenchError) as caught:
        load(workspace.root, tmp_path, only=["paper-free", "nothing"])
    assert caught.value.object == "nothing"


def test_a_broken_release_is_refused(tmp_path: Path) -> None:
    (tmp_path / "expbench-release.json").write_text("{}")
    with pytest.raises(ExpbenchError) as caught:
        load(tmp_path, tmp_path)
    assert caught.value.kind is FailureKind.RECORD_INVALID


# --- recipes


@pytest.fixture
def original(tmp_path: Path) -> tuple[str, str]:
    """A repository behind a URL, and its commit."""
    root = tmp_path / "original"
    (root / "lib").mkdir(parents=True)
    for name, text in (("run.py", "print(0.75)\n"), ("README.md", "Score: 0.75\n"), ("lib/a.py", "A = 1\n")):
        (root / name).write_text(text)
    for arguments in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "x"]):
        identity = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
        subprocess.run(["git", *identity, *arguments], cwd=root, check=True)
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, check=True, capture_output=True, text=True)
    return f"file://{root}", done.stdout.strip()


def mask(*paths: str) -> tuple[MaskedPath, ...]:
    return tuple(MaskedPath(path=path, action="removed", reason="r") for path in paths)


def test_a_recipe_builds_the_masked_repository(original: tuple[str, str], tmp_path: Path) -> None:
    url, commit = original
    built = build_from_recipe(
        "t", RepositoryRef(url=url, commit=commit), mask("run.py", "gone.py"), scratch=tmp_path / "s",
        reporter=REPORTER, with_readme=True,
    )  # fmt: skip
    assert not built.blocked
    assert built.masked is not None
    assert sorted(path.name for path in built.masked.iterdir()) == [".git", "lib"]
    assert built.original is not None
    assert (built.original / "run.py").is_file()
    assert any("gone.py" in problem.where for problem in built.problems)
    history = subprocess.run(["git", "rev-list", "--all"], cwd=built.masked, check=True, capture_output=True, text=True)
    assert history.stdout.split() == [repository_commit(built.masked)]


def test_a_release_that_may_not_ship_a_repository_ships_how_to_make_it(
    workspace: Workspace, original: tuple[str, str], tmp_path: Path
) -> None:
    """Edits inside files included; what comes out has the very commit of the masked repository that was checked."""
    url, commit = original
    snapshot = open_snapshot(url, commit=commit, into=tmp_path / "again")
    shutil.copytree(snapshot.root, workspace.root / "repository", dirs_exist_ok=True)
    data = (snapshot.root / "lib" / "a.py").read_bytes()
    edit = TextEdit(path="lib/a.py", start=4, end=5, sha256=hashlib.sha256(data).hexdigest())
    paths = (*mask("README.md", "run.py"), MaskedPath(path="lib/a.py", action="edited", reason="r"))
    task = workspace.load_task("paper-kept")
    workspace.save_task(task.evolve(masked=paths, repository=RepositoryRef(url=url, commit=commit)))
    shutil.rmtree(workspace.masked_repository("paper-kept"))
    masked = apply_mask(snapshot, MaskPlan(paths=paths, edits=(edit,)), workspace.masked_repository("paper-kept"))
    release(workspace, out=tmp_path / "release", accept_all=True, name=None)
    tasks, _ = load(tmp_path / "release", tmp_path / "scratch", only=["paper-kept"])
    assert tasks[0].blocked == ""
    assert repository_commit(tasks[0].masked_repository) == masked.commit
    assert tasks[0].masked_repository is not None
    assert (tasks[0].masked_repository / "lib" / "a.py").read_text() == "A = [masked]\n"
    assert not (tmp_path / "release" / "repositories" / "paper-kept.tar.gz").exists()
    assert tasks[0].original_tree is not None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"url": "somebody-s-directory"}, "no URL"),
        ({"commit": "0" * 40}, "no commit"),
        ({"commit": "f" * 40}, "not at hand"),
        ({"url": "file:///nowhere/at/all"}, "not at hand"),
    ],
)
def test_a_recipe_that_cannot_be_built_blocks(
    original: tuple[str, str], tmp_path: Path, changes: dict[str, str], reason: str
) -> None:
    ref = RepositoryRef.model_validate({"url": original[0], "commit": original[1]} | changes)
    built = build_from_recipe("t", ref, mask("run.py"), scratch=tmp_path / "s", reporter=REPORTER)
    assert built.masked is None
    assert reason in built.blocked


def test_a_mask_that_hits_nothing_or_cannot_be_repeated_blocks(original: tuple[str, str], tmp_path: Path) -> None:
    ref = RepositoryRef(url=original[0], commit=original[1])
    other = build_from_recipe("t", ref, mask("not/there.py"), scratch=tmp_path / "s", reporter=REPORTER)
    assert "none of the 1 path(s)" in other.blocked
    edited = (MaskedPath(path="run.py", action="edited", reason="r"),)
    assert "edits" in build_from_recipe("t", ref, edited, scratch=tmp_path / "s", reporter=REPORTER).blocked
    stale = [TextEdit(path="run.py", start=0, end=1, sha256="0")]
    found = build_from_recipe("t", ref, edited, scratch=tmp_path / "s", reporter=REPORTER, edits=stale)
    assert "another version" in found.blocked
    wrong = build_from_recipe("t", ref, mask("run.py"), scratch=tmp_path / "s", reporter=REPORTER, commit="2" * 40)
    assert "not the released one" in wrong.blocked


# --- published data


def test_published_tasks_without_a_commit_are_blocked(tmp_path: Path) -> None:
    record = {"question": "Does it?", "method": "m", "expected_outcome": "yes", "source": ["/workspace/run.py"],
              "requirements": ["Run (/workspace/run.py:1)"], "design_complexity": {"constant_variables": {"a": "1"}}}  # fmt: skip
    place = tmp_path / "data" / "iclr2024" / "7"
    place.mkdir(parents=True)
    (place / "7_complete_final.json").write_text(json.dumps({"questions": [record]}))
    tasks, problems = load(tmp_path / "data", tmp_path / "scratch")
    assert [task.id for task in tasks] == ["iclr2024-7-00"]
    assert "not at hand" in tasks[0].blocked
    assert tasks[0].truth is not None
    assert [item.path for item in tasks[0].masked_paths] == ["run.py"]
    assert problems


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the published data is not at hand")
def test_all_published_tasks_load_and_are_blocked(tmp_path: Path) -> None:
    tasks, _ = load(PUBLISHED, tmp_path / "scratch")
    assert len(tasks) == 151
    assert all("not at hand" in task.blocked and task.truth is not None for task in tasks)
    assert len({task.private_digest for task in tasks}) == 151
