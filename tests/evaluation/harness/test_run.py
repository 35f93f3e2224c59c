"""A run of many episodes, without containers: its place, what it is, who is at work at once, and how it ends early."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evaluation.episode import EpisodeState, Step
from evaluation.harness import run as module
from evaluation.harness.episode_runner import episode_folder
from evaluation.harness.run import (
    RunRecord,
    begin_run,
    open_run,
    read_run,
    require_place,
    run_episodes,
    run_owner,
    states,
    task_digest,
)
from evaluation.scores import EpisodeScores, EpisodeStatus
from evaluation.task import EvaluationTask
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.sandbox.base import StopHandle
from pipeline.task import Family, Provenance, Status
from tests.evaluation.harness.doubles import Engine, Heard, failure
from tests.evaluation.harness.support import tiny_tasks

RECORD = RunRecord(run="run", source="s", agent="noop", tasks={"b": "2", "a": "1"}, repeats=2)


def conflict(action: Callable[[], object]) -> ExpbenchError:
    with pytest.raises(ExpbenchError) as caught:
        action()
    assert caught.value.kind is FailureKind.WORKSPACE_CONFLICT
    return caught.value


# --- place and record


def test_a_digest_changes_with_what_decides_scores_and_with_nothing_else(tmp_path: Path) -> None:
    [task] = tiny_tasks(tmp_path, 1)

    def public(**changes: Any) -> str:
        return task_digest(task.evolve(public=task.public.evolve(**changes)))

    same = {task_digest(task), public(status=Status.APPROVED), public(provenance=Provenance(engine="model", model="m")),
            task_digest(task.evolve(category="x", masked_repository=None))}  # fmt: skip
    assert len(same) == 1
    others = {
        public(question="another?"),
        public(agent_instructions="another"),
        task_digest(task.evolve(private_digest="x")),
    }
    assert len(others) == 3
    assert not same & others


def test_an_owner_belongs_to_a_place_however_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    owner = run_owner(tmp_path / "run")
    assert owner == run_owner(Path("run")) == run_owner(tmp_path / "other" / ".." / "run")
    assert owner != run_owner(tmp_path / "run2")
    assert owner.startswith("run-")
    assert len(owner) == len("run-") + 16


@pytest.mark.parametrize("name", [".lock", "workspaces", "environments"])
def test_what_a_run_leaves_before_it_has_begun_is_no_conflict(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    for resume in (True, False):
        require_place(tmp_path, resume=resume)
    (tmp_path / "more").mkdir()
    assert "no run" in conflict(lambda: require_place(tmp_path, resume=True)).cause


def test_a_place_that_is_not_there_or_empty_is_free_and_a_file_is_none(tmp_path: Path) -> None:
    require_place(tmp_path / "new", resume=False)
    require_place(tmp_path, resume=False)
    (tmp_path / "file").write_text("x")
    assert "no run" in conflict(lambda: require_place(tmp_path / "file", resume=True)).cause


def test_a_run_is_gone_on_with_only_when_asked(tmp_path: Path) -> None:
    with open_run(tmp_path / "deep" / "run", resume=False):
        begin_run(tmp_path / "deep" / "run", RECORD)
    error = conflict(lambda: require_place(tmp_path / "deep" / "run", resume=False))
    assert (error.object, error.cause) == (str(tmp_path / "deep" / "run"), "is there already")
    assert "--resume" in error.next_step
    require_place(tmp_path / "deep" / "run", resume=True)


@pytest.mark.parametrize("changes", [{"expbench": "9"}, {"run": "renamed"}, {"source": "/moved"}])
def test_a_run_that_was_moved_or_is_of_another_version_is_the_same(tmp_path: Path, changes: Any) -> None:
    begin_run(tmp_path, RECORD)
    begin_run(tmp_path, RECORD.evolve(**changes))
    assert read_run(tmp_path) == RECORD, "it is written once"


@pytest.mark.parametrize(
    "changes",
    [{"agent": "oracle"}, {"model": "m"}, {"repeats": 3}, {"tasks": {"a": "1"}}, {"tasks": {"a": "1", "b": "3"}},
     {"network": ("pypi.org",)}, {"ablation": "x"}, {"gpu_type": "A40"}, {"agent_options": {"a": "b"}}],
)  # fmt: skip
def test_a_run_of_something_else_is_not_gone_on_with(tmp_path: Path, changes: dict[str, Any]) -> None:
    begin_run(tmp_path, RECORD)
    error = conflict(lambda: begin_run(tmp_path, RECORD.evolve(**changes)))
    assert error.cause == f"was made with another {next(iter(changes))}"


def test_what_is_no_run_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ExpbenchError) as caught:
        read_run(tmp_path)
    assert (caught.value.kind, caught.value.object) == (FailureKind.RECORD_INVALID, str(tmp_path))
    assert "run.yaml" in caught.value.cause


def test_every_episode_has_a_state_in_order(tmp_path: Path) -> None:
    state = EpisodeState(run="run", task="b", agent="noop", repeat=1, finished=(Step.PREPARE,))
    folder = episode_folder(tmp_path, "b", 1)
    folder.root.mkdir(parents=True)
    folder.state.write_text(state.model_dump_json())
    assert states(tmp_path, RECORD) == [("a", 0, None), ("a", 1, None), ("b", 0, None), ("b", 1, state)]
    assert RECORD.episodes == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
    assert RECORD.evolve(repeats=1).episodes == [("a", 0), ("b", 0)]


# --- many episodes


class Runner:
    """Brings an episode to its end by calling `work`; keeps who was at work."""

    def __init__(self, work: Callable[[str, int, StopHandle], object] = lambda *_: None) -> None:
        self.agent_step = SimpleNamespace(owner="the owner")
        self.work = work
        self.began: list[tuple[str, int]] = []
        self.ended: list[tuple[str, int]] = []
        self.handles: list[StopHandle] = []
        self.most = 0

    def episode(self, task: EvaluationTask, repeat: int, stop: StopHandle) -> EpisodeScores:
        self.handles.append(stop)
        self.began.append((task.id, repeat))
        self.most = max(self.most, len(self.began) - len(self.ended))
        try:
            self.work(task.id, repeat, stop)
        finally:
            self.ended.append((task.id, repeat))
        return EpisodeScores(
            run="r", task=task.id, family=Family.EXPERIMENT, paper="p", agent="a", repeat=repeat,
            status=EpisodeStatus.SCORED,
        )  # fmt: skip


@pytest.fixture
def tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[EvaluationTask]:
    monkeypatch.setattr(module, "remove_orphaned_scratch", lambda warn: warn("scratch was looked at"))
    return tiny_tasks(tmp_path, 3)


def go(runner: Runner, tasks: list[EvaluationTask], heard: Heard | None = None, **options: Any) -> list[EpisodeScores]:
    given = {"repeats": 2, "workers": 2, "sandbox": Engine(), "reporter": heard or Heard()} | options
    return run_episodes(runner, tasks, **given)  # type: ignore[arg-type]


def test_all_episodes_are_brought_to_their_end_in_order(tasks: list[EvaluationTask]) -> None:
    runner, heard = Runner(), Heard()
    rows = go(runner, tasks[::-1], heard)
    wanted = [(task.id, repeat) for task in tasks for repeat in range(2)]
    assert [(row.task, row.repeat) for row in rows] == wanted
    assert sorted(runner.ended) == wanted
    assert heard.started == [("evaluate", 6)]
    assert heard.ended == [("evaluate", "6 episodes")]
    assert sorted(heard.steps) == [f"{task}/{repeat}: scored" for task, repeat in wanted]
    assert len(set(map(id, runner.handles))) == 6


def test_what_a_killed_run_left_behind_is_removed_first(tasks: list[EvaluationTask]) -> None:
    engine, heard = Engine(), Heard()
    engine.left = 3
    runner = Runner(lambda *_: engine.reaped.append("an episode"))
    go(runner, tasks[:1], heard, sandbox=engine, repeats=1)
    assert engine.reaped == ["the owner", "an episode"]
    assert heard.warnings == ["scratch was looked at"]
    assert heard.notes == [("evaluate", "3 containers of an interrupted run were removed")]
    heard = Heard()
    go(Runner(), tasks[:1], heard)
    assert heard.notes == []


@pytest.mark.parametrize("workers", [1, 3])
def test_so_many_are_at_work_at_once_and_no_more(tasks: list[EvaluationTask], workers: int) -> None:
    meeting = threading.Barrier(workers)
    runner = Runner(lambda *_: meeting.wait(30))
    go(runner, tasks, workers=workers)  # the meeting comes about only when so many are there
    assert runner.most == workers


def test_an_error_ends_the_others_and_begins_no_more(tasks: list[EvaluationTask]) -> None:
    first = threading.Event()

    def work(task: str, repeat: int, stop: StopHandle) -> None:
        if (task, repeat) == (tasks[0].id, 0):
            first.wait(30)
            raise failure(FailureKind.AUTHENTICATION, "the key", "was refused")
        first.set()
        for _ in range(3000):
            if stop.reason:
                raise failure(FailureKind.INTERRUPTED, cause=stop.reason)
            threading.Event().wait(0.01)
        pytest.fail("it was not told to end")

    runner, heard = Runner(work), Heard()
    with pytest.raises(ExpbenchError) as caught:
        go(runner, tasks, heard)
    assert caught.value.kind is FailureKind.AUTHENTICATION
    assert len(runner.ended) == len(runner.began) < 6
    assert [stop.reason for stop in runner.handles[1:2]] == ["another episode ended the run"]
    assert all(stop.aborted for stop in runner.handles[1:])
    assert heard.ended == []


def test_ctrl_c_gives_all_episodes_up(tasks: list[EvaluationTask], monkeypatch: pytest.MonkeyPatch) -> None:
    began = threading.Event()

    def work(task: str, repeat: int, stop: StopHandle) -> None:
        began.set()
        for _ in range(3000):
            if stop.reason:
                raise failure(FailureKind.INTERRUPTED, cause=stop.reason)
            threading.Event().wait(0.01)

    def interrupted(*_: object, **__: object) -> None:
        began.wait(30)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "wait", interrupted)
    runner = Runner(work)
    with pytest.raises(KeyboardInterrupt):
        go(runner, tasks, workers=1)
    assert runner.began == runner.ended
    assert {stop.reason for stop in runner.handles} == {"interrupted"}


def test_a_handle_is_told_only_while_its_episode_runs() -> None:
    handles = module._Handles()
    with handles.one() as over:
        assert over.reason == ""
    with handles.one() as under_way:
        handles.abort("why")
        assert (under_way.reason, under_way.aborted) == ("why", True)
    with handles.one() as to_come:
        assert (to_come.reason, to_come.aborted) == ("why", True)
    assert over.reason == ""
