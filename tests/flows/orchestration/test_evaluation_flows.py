"""`evaluate`, `evaluate-episode`, `judge`, `sweep` without a server: what is refused, what is handed on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evaluation.episode import EpisodeLimits
from evaluation.harness.run import JudgeRecord, RunRecord, begin_run, open_run
from flows.engines import ModelOptions
from flows.episode_alone import episode_owner, evaluate_episode, leave_no_orphans
from flows.evaluate import EvaluateOptions, recorded_options
from flows.grading_model import limited
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import exclusive_lock
from pipeline.progress import SilentReporter


def a_run(root: Path, **changes: object) -> RunRecord:
    """A run that was begun, with one task that no source has."""
    record = RunRecord(run=root.name, source="gone", agent="noop", repeats=2, tasks={"paper-task": "digest"})
    record = record.evolve(**changes)
    with open_run(root, resume=False):
        begin_run(root, record)
    return record


def test_what_run_yaml_says_is_what_an_episode_is_run_with(tmp_path: Path) -> None:
    judge = JudgeRecord(engine="model", model="m", panel=3, execute_all=True)
    record = a_run(
        tmp_path / "run", judge=judge, limits=EpisodeLimits(wall_s=7.0, gpus=2), network=("pypi.org",),
        gpu_type="A40", ablation="method:0.5", agent_options={"a": "b"}, model="x",
    )  # fmt: skip
    limits = ModelOptions(max_calls=5)
    options = recorded_options(record, tmp_path / "run", tmp_path, limits)
    assert options.judging == ModelOptions(name="m", max_calls=5)
    shared = set(RunRecord.model_fields) & set(EvaluateOptions.model_fields) - {"tasks", "judge", "source"}
    assert shared == {"agent", "agent_options", "model", "repeats", "limits", "gpu_type", "network", "ablation"}
    assert {name: getattr(options, name) for name in shared} == {name: getattr(record, name) for name in shared}
    assert (options.judge, options.panel, options.execute_all) == ("model", 3, True)


@pytest.mark.parametrize(("task", "repeat"), [("other", 0), ("paper-task", 2), ("paper-task", -1)])
def test_an_episode_that_the_run_does_not_have_is_refused(tmp_path: Path, task: str, repeat: int) -> None:
    a_run(tmp_path / "run")
    with pytest.raises(ExpbenchError, match="2 of each of 1 task") as caught:
        evaluate_episode(tmp_path / "run", tmp_path, task, repeat, reporter=SilentReporter())
    assert caught.value.kind is FailureKind.USAGE


def test_an_episode_under_way_elsewhere_is_not_run_twice(tmp_path: Path) -> None:
    record = a_run(tmp_path / "run")
    lock = tmp_path / "run" / "episodes" / "paper-task" / "1" / ".lock"
    with exclusive_lock(lock, "held"):
        with pytest.raises(ExpbenchError) as caught:
            evaluate_episode(tmp_path / "run", tmp_path, "paper-task", 1, reporter=SilentReporter())
        assert caught.value.kind is FailureKind.WORKSPACE_LOCKED
        with pytest.raises(ExpbenchError, match="paper-task/1 is under way"):
            leave_no_orphans(tmp_path / "run", record, here=True)
        leave_no_orphans(tmp_path / "run", record, here=False)  # its own run of that episode waits instead


def test_episodes_side_by_side_own_different_containers(tmp_path: Path) -> None:
    owners = {episode_owner(tmp_path / run, task, repeat) for run in "ab" for task in "tu" for repeat in range(2)}
    assert len(owners) == 8


@pytest.mark.parametrize("name", ["budget_usd", "max_calls", "max_tokens"])
def test_a_budget_is_kept_by_one_process_at_a_time(name: str) -> None:
    from flows.orchestration.evaluating import _require_one_purse

    assert limited(ModelOptions.model_validate({name: 0}))
    assert not limited(ModelOptions(name="m"))
    options = EvaluateOptions(
        source=Path("s"), agent="noop", judge="model", judge_limits=ModelOptions.model_validate({name: 1})
    )
    _require_one_purse(options, "runs", 1)
    with pytest.raises(ExpbenchError, match="concurrency=1"):
        _require_one_purse(options, "runs", 2)


def test_entries_of_a_sweep_have_names_of_their_own() -> None:
    from flows.orchestration.evaluating import _require_distinct
    from flows.orchestration.evaluation_options import SweepEntry

    entries = [SweepEntry(agent="noop"), SweepEntry(agent="iterative", model="gpt-5/mini"), SweepEntry(agent="noop")]
    assert entries[1].label == "iterative-gpt-5-mini"
    _require_distinct(entries[:2])
    with pytest.raises(ExpbenchError, match="noop"):
        _require_distinct(entries)


def test_the_flows_parameters_are_the_commands_options(tmp_path: Path) -> None:
    from flows.orchestration.evaluation_options import EvaluationParameters, options_from

    given = EvaluationParameters(wall_minutes=2, max_calls=3, gpus=1, gpu_type="A40", network="allow=pypi.org",
                                 judge="model", judge_model="j", judge_max_calls=4, ablate="method:0.5")  # fmt: skip
    options = options_from(
        given, source=tmp_path, agent="noop", out=tmp_path / "run", model="m", repeats=2, tasks=["a*"], concurrency=3
    )
    assert options.limits == EpisodeLimits(wall_s=120, model_calls=3, gpus=1)
    assert (options.network, options.tasks, options.workers) == (("pypi.org",), ("a*",), 3)
    assert options.judging == ModelOptions(name="j", max_calls=4)
    assert options.resume
    assert given.with_agent_options({"x": "y"})["agent_options"] == {"x": "y"}


def test_task_runners_by_name() -> None:
    from prefect.task_runners import ThreadPoolTaskRunner

    from flows.orchestration.task_runners import task_runner

    assert isinstance(task_runner("threads", 3), ThreadPoolTaskRunner)
    with pytest.raises(ExpbenchError, match="threads run in this process") as caught:
        task_runner("threads", 1, "tcp://somewhere:8786")
    assert caught.value.kind is FailureKind.USAGE


def test_a_task_runner_that_is_not_installed_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from flows.orchestration.task_runners import task_runner

    missing: Any = None
    monkeypatch.setitem(sys.modules, "prefect_ray", missing)
    with pytest.raises(ExpbenchError, match=r"expbench\[ray\]") as caught:
        task_runner("ray", 2)
    assert caught.value.kind is FailureKind.TOOL_MISSING
