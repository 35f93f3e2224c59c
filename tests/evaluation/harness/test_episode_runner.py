"""An episode step by step, without containers: what is asked of whom, what is kept, tried again, given up, gone on with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from evaluation.episode import EpisodeFolder, EpisodeLimits, EpisodeState, Step
from evaluation.families.base import FamilyRules
from evaluation.families.experiment import instructions
from evaluation.harness import episode_runner
from evaluation.harness.episode_runner import episode_folder, load_state
from evaluation.harness.stoppable import Stoppable
from evaluation.lock import EpisodeLock, lock_episode
from evaluation.scores import EpisodeScores, EpisodeStatus
from evaluation.submission import Submission
from evaluation.task import EvaluationTask
from evaluation.trajectory import Event
from evaluation.verdicts import ExecutionReport, IntegrityReport, Judgement
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.sandbox.base import CommandResult, RunResult, StopHandle
from pipeline.schema import Problem
from pipeline.task import Family, Verdict
from tests.evaluation.execution_support import with_downloads
from tests.evaluation.harness.doubles import (
    EXECUTION,
    INTEGRITY,
    JUDGEMENT,
    Agent,
    Engine,
    Grading,
    Heard,
    failure,
    runner,
)
from tests.evaluation.harness.support import SMALL, tiny_tasks

STEPS = tuple(Step)
GRADED = ["integrity", "execution", "judge"]


@pytest.fixture
def task(tmp_path: Path) -> EvaluationTask:
    return tiny_tasks(tmp_path / "tasks", 1)[0]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "run"


@pytest.fixture
def folder(root: Path, task: EvaluationTask) -> EpisodeFolder:
    return episode_folder(root, task.id, 0)


def state_of(folder: EpisodeFolder) -> EpisodeState:
    found = load_state(folder)
    assert found is not None
    return found


# --- a whole episode


def test_the_steps_of_an_episode_come_one_after_the_other(root: Path, task: EvaluationTask) -> None:
    engine, grading, heard, agent = Engine({"new.py": "print(1)\n"}), Grading(), Heard(), Agent()
    made = runner(root, engine, grading, heard, agent=agent)
    scores = made.episode(task, 3, StopHandle())
    folder = EpisodeFolder(root / "episodes" / task.id / "3")
    assert heard.notes == [("evaluate", f"{task.id}/3: {step.value}") for step in STEPS[:-1]]
    assert heard.warnings == []
    state = state_of(folder)
    assert state.finished == STEPS
    assert (state.run, state.task, state.agent, state.repeat, state.attempts) == ("the run", task.id, "double", 3, 1)
    assert state.outcome is not None
    assert (state.outcome.reason, state.failure, state.blocked) == ("finished", None, "")
    assert grading.names == GRADED
    assert scores.status is EpisodeStatus.SCORED
    assert (scores.monitor, scores.execution, scores.design, scores.implementation, scores.conclusion) == (
        1,
        1,
        1,
        0,
        1,
    )
    assert (scores.run, scores.agent, scores.model, scores.repeat) == ("the run", "double", "m", 3)
    assert EpisodeScores.model_validate_json(folder.scores.read_bytes()) == scores
    assert [context.seed for context in agent.contexts] == [3]
    # the submission was taken from what the run left, which is not kept twice
    submission = Submission.model_validate_json((folder.submission / "submission.json").read_bytes())
    assert [item.path for item in submission.changed] == ["new.py"]
    assert not (folder.agent_logs / "workspace").exists()
    assert (folder.agent_logs / "run.json").exists()


def test_each_grader_is_asked_with_what_it_needs(root: Path, task: EvaluationTask, folder: EpisodeFolder) -> None:
    engine, grading, heard = Engine({"new.py": "x\n"}), Grading(), Heard()
    client = object()
    runner(root, engine, grading, heard, graders={"client": client, "panel": 5}).episode(task, 0, StopHandle())
    submission = Submission.model_validate_json((folder.submission / "submission.json").read_bytes())
    asked = dict(grading.asked)
    for options in asked.values():
        assert options["task"] == task
        assert options["folder"].root == folder.root
        assert options["submission"] == submission
        assert options["reporter"] is heard
    assert asked["integrity"]["client"] is client
    assert (asked["judge"]["client"], asked["judge"]["panel"]) == (client, 5)
    execution = asked["execution"]
    assert isinstance(execution["sandbox"], Stoppable)
    assert (execution["limits"], execution["owner"]) == (SMALL, "o")
    for path, model, told in (
        (folder.integrity, IntegrityReport, INTEGRITY), (folder.execution, ExecutionReport, EXECUTION),
        (folder.judgement, Judgement, JUDGEMENT),
    ):  # fmt: skip
        assert model.model_validate_json(path.read_bytes()) == told


def test_one_image_is_built_and_used_by_the_agent(root: Path, task: EvaluationTask) -> None:
    engine = Engine()
    stop = StopHandle()
    runner(root, engine, Grading()).episode(task, 0, stop)
    [(spec, options)] = engine.builds
    assert options["log"] == root / "environments" / spec.digest[:12] / "build.log"
    assert (options["owner"], options["stop"]) == ("o", stop)
    [(_, asked)] = engine.runs
    assert asked["image"].digest == "sha256:image"
    assert (asked["owner"], asked["stop"], asked["tree"]) == ("o", stop, task.masked_repository)


def test_the_lock_says_what_was_compared(root: Path, task: EvaluationTask, folder: EpisodeFolder) -> None:
    scores = runner(root, Engine(), Grading()).episode(task, 0, StopHandle())
    lock = EpisodeLock.model_validate_json((folder.root / "lock.json").read_bytes())
    graders = [("integrity", INTEGRITY.grader), ("judge", JUDGEMENT.grader)]
    wanted = lock_episode(
        task, limits=SMALL, instructions=instructions(task, limits=SMALL, network=()), sandbox="docker",
        image="sha256:image", agent="double", agent_version="7", agent_options={"effort": "high"}, model="m",
        graders=graders,
    )  # fmt: skip
    assert lock == wanted
    assert scores.lock == lock.comparable


def test_a_task_may_ask_for_more_gpus_than_the_run_gives(root: Path, task: EvaluationTask) -> None:
    def asking(gpus: int) -> EvaluationTask:
        resources = task.public.resources.evolve(gpus=gpus)
        return task.evolve(public=task.public.evolve(resources=resources))

    for number, (wanted, given, most) in enumerate([(2, 0, 2), (0, 1, 1), (1, 3, 3), (0, 0, 0)]):
        engine, grading = Engine(), Grading()
        made = runner(root, engine, grading, limits=SMALL.evolve(gpus=given))
        made.episode(asking(wanted), number, StopHandle())
        assert dict(grading.asked)["execution"]["limits"].gpus == most
        gpus = engine.runs[0][0].gpus
        assert (0 if gpus is None else gpus.count) == most


def test_what_copying_out_had_to_say_goes_to_the_submission_and_nothing_else(
    root: Path, task: EvaluationTask, folder: EpisodeFolder
) -> None:
    said = tuple(Problem(component=name, where="w", message=name) for name in ("sandbox.copy", "sandbox.other"))
    engine = Engine(result=RunResult(commands=(CommandResult(exit_code=0),), problems=said))
    runner(root, engine, Grading()).episode(task, 0, StopHandle())
    submission = Submission.model_validate_json((folder.submission / "submission.json").read_bytes())
    assert [problem.message for problem in submission.problems if problem.where == "w"] == ["sandbox.copy"]


# --- what the graders say decides what is done


def test_an_episode_that_the_monitor_failed_is_not_run_again_unless_asked(
    root: Path, task: EvaluationTask, folder: EpisodeFolder
) -> None:
    caught = INTEGRITY.evolve(verdict=Verdict.FAIL)
    folder.root.mkdir(parents=True)
    folder.execution.write_text(EXECUTION.model_dump_json())  # of an attempt before
    grading = Grading(integrity=caught)
    scores = runner(root, Engine(), grading).episode(task, 0, StopHandle())
    assert grading.names == ["integrity", "judge"]
    assert not folder.execution.exists()
    assert (scores.monitor, scores.execution, scores.execution_checked) == (0, None, False)
    grading = Grading(integrity=caught)
    scores = runner(root, Engine(), grading, graders={"execute_all": True}).episode(task, 1, StopHandle())
    assert grading.names == GRADED
    assert (scores.monitor, scores.execution, scores.execution_checked) == (0, 1, True)


def test_a_suspicion_is_run_again(root: Path, task: EvaluationTask) -> None:
    grading = Grading(integrity=INTEGRITY.evolve(verdict=Verdict.UNKNOWN))
    runner(root, Engine(), grading).episode(task, 0, StopHandle())
    assert grading.names == GRADED


def test_graders_that_have_nothing_to_say_leave_nothing_of_an_earlier_attempt(
    root: Path, task: EvaluationTask, folder: EpisodeFolder
) -> None:
    folder.root.mkdir(parents=True)
    folder.execution.write_text(EXECUTION.model_dump_json())
    folder.judgement.write_text(JUDGEMENT.model_dump_json())
    scores = runner(root, Engine(), Grading(execution=None, judgement=None)).episode(task, 0, StopHandle())
    assert not folder.execution.exists()
    assert not folder.judgement.exists()
    assert (scores.execution, scores.execution_checked, scores.design) == (None, False, None)


def test_the_monitor_learns_what_the_re_execution_has_shown(
    root: Path, task: EvaluationTask, folder: EpisodeFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def with_execution(*given: Any) -> IntegrityReport:
        asked.append(given)
        return INTEGRITY.evolve(verdict=Verdict.FAIL, reason="it types its numbers")

    monkeypatch.setattr(episode_runner, "with_execution", with_execution)
    scores = runner(root, Engine(), Grading()).episode(task, 0, StopHandle())
    [(of, where, submission, before)] = asked
    assert (of, where.root, submission.changed, before) == (task, folder.root, (), INTEGRITY)
    assert scores.monitor == 0
    assert IntegrityReport.model_validate_json(folder.integrity.read_bytes()).reason == "it types its numbers"


# --- other families


class Rules(FamilyRules):
    """A family that says of everything that it was asked."""

    family = Family.TABLE

    def __init__(self, grading: Grading) -> None:
        self.grading = grading
        self.collected: list[tuple[str, bool]] = []
        self.told: list[tuple[EpisodeLimits, Any]] = []
        self.emitted: list[Callable[[Event], object]] = []

    def limits(self, task: EvaluationTask, limits: EpisodeLimits) -> EpisodeLimits:
        return limits.evolve(wall_s=7)

    def instructions(self, task: EvaluationTask, *, limits: EpisodeLimits, network: Any = ()) -> str:
        self.told.append((limits, network))
        return "as the family says"

    @contextmanager
    def companion(
        self, task: EvaluationTask, folder: EpisodeFolder, directory: Path, emit: Any
    ) -> Iterator[Mapping[str, str]]:
        assert folder.agent_logs.is_dir()
        assert (directory / "launch.py").is_file()
        yield {"BENCH": f"of {task.id}"}

    def collect(self, task: EvaluationTask, tree: Path, folder: EpisodeFolder) -> tuple[Problem, ...]:
        self.collected.append((task.id, (tree / "new.py").is_file() and (folder.submission / "files").is_dir()))
        return ()

    def integrity(self, *given: Any, **options: Any) -> Any:
        return self.grading.graders().integrity(*given, **options)

    def execution(self, *given: Any, **options: Any) -> Any:
        return self.grading.graders().execution(*given, **options)

    def judge(self, *given: Any, **options: Any) -> Any:
        return self.grading.graders().judge(*given, **options)

    def score(self, task: EvaluationTask, folder: EpisodeFolder, row: EpisodeScores) -> EpisodeScores:
        return row.evolve(metrics={"relative_l2": 0.5})


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> Rules:
    made = Rules(Grading(integrity=INTEGRITY.evolve(reason="of the family")))
    monkeypatch.setattr(episode_runner, "family_rules", lambda family: made)
    monkeypatch.setattr(episode_runner, "with_execution", lambda *_: pytest.fail("rules of the experiment family"))
    return made


def test_another_family_has_its_own_word_in_everything(
    root: Path, task: EvaluationTask, folder: EpisodeFolder, rules: Rules
) -> None:
    engine, grading = Engine({"new.py": "x\n"}), Grading()
    agent = Agent()
    scores = runner(root, engine, grading, agent=agent, allow=("pypi.org",)).episode(task, 0, StopHandle())
    assert grading.asked == []
    assert rules.grading.names == GRADED
    assert dict(rules.grading.asked)["execution"]["limits"] == SMALL.evolve(wall_s=7)
    assert rules.told == [(SMALL.evolve(wall_s=7), ("pypi.org",))]
    assert [(context.instructions, context.wall_s) for context in agent.contexts] == [("as the family says", 7)]
    [(spec, _)] = engine.runs
    assert (spec.env["BENCH"], spec.limits.wall_s) == (f"of {task.id}", 7)
    assert rules.collected == [(task.id, True)]
    assert IntegrityReport.model_validate_json(folder.integrity.read_bytes()).reason == "of the family"
    assert scores.metrics == {"relative_l2": 0.5}
    assert EpisodeScores.model_validate_json(folder.scores.read_bytes()) == scores


@pytest.mark.usefixtures("rules")
def test_a_family_scores_only_what_came_to_its_end(root: Path, task: EvaluationTask) -> None:
    engine = Engine()
    engine.fail_run = [failure(FailureKind.DISK_FULL)]
    scores = runner(root, engine, Grading()).episode(task, 0, StopHandle())
    assert (scores.status, scores.metrics) == (EpisodeStatus.UNKNOWN, {})


# --- failures


def test_a_step_is_tried_three_times_with_longer_and_longer_pauses(
    root: Path, task: EvaluationTask, folder: EpisodeFolder
) -> None:
    engine, heard, pauses = Engine(), Heard(), list[float]()
    engine.fail_run = [failure(FailureKind.SANDBOX_BROKEN), failure(FailureKind.NETWORK)]
    scores = runner(root, engine, Grading(), heard, pauses).episode(task, 0, StopHandle())
    assert scores.status is EpisodeStatus.SCORED
    assert pauses == [1.0, 2.0]
    assert heard.warnings == [
        f"{task.id}/0: agent, attempt {n} of 3: the engine: broke. c. n." for n in (1, 2)
    ]  # fmt: skip
    assert state_of(folder).attempts == 3
    assert len(engine.builds) == 1


def test_what_three_attempts_do_not_mend_is_unknown_and_not_0(
    root: Path, task: EvaluationTask, folder: EpisodeFolder
) -> None:
    engine, heard, pauses, grading = Engine(), Heard(), list[float](), Grading()
    engine.fail_run = [failure(FailureKind.SANDBOX_BROKEN)] * 3
    scores = runner(root, engine, grading, heard, pauses).episode(task, 0, StopHandle())
    assert (len(engine.runs), pauses, grading.asked) == (3, [1.0, 2.0], [])
    assert (scores.status, scores.reason) == (EpisodeStatus.UNKNOWN, "the machinery failed: sandbox_broken")
    assert (scores.monitor, scores.design, scores.execution, scores.conclusion) == (None,) * 4
    state = state_of(folder)
    assert (state.failure, state.finished, state.blocked) == ("sandbox_broken", (Step.PREPARE, Step.SCORE), "")
    assert heard.warnings[-1] == f"{task.id}/0: the engine: broke. c. n."
    assert len(heard.warnings) == 3


def test_what_trying_again_does_not_mend_is_not_tried_again(root: Path, task: EvaluationTask) -> None:
    engine, pauses = Engine(), list[float]()
    engine.fail_run = [failure(FailureKind.DISK_FULL)]
    scores = runner(root, engine, Grading(), pauses=pauses).episode(task, 0, StopHandle())
    assert (scores.reason, len(engine.runs), pauses) == ("the machinery failed: disk_full", 1, [])


@pytest.mark.parametrize(
    "kind", [FailureKind.AUTHENTICATION, FailureKind.QUOTA, FailureKind.INTERRUPTED, FailureKind.SANDBOX_UNAVAILABLE]
)
def test_what_every_other_episode_would_fail_of_ends_the_run(
    root: Path, task: EvaluationTask, folder: EpisodeFolder, kind: FailureKind
) -> None:
    engine, pauses = Engine(), list[float]()
    engine.fail_run = [failure(kind)]
    with pytest.raises(ExpbenchError) as caught:
        runner(root, engine, Grading(), pauses=pauses).episode(task, 0, StopHandle())
    assert caught.value.kind is kind
    assert (len(engine.runs), pauses) == (1, [])
    assert not folder.scores.exists()
    state = state_of(folder)
    assert (state.failure, state.finished) == (None, (Step.PREPARE,))


@pytest.mark.parametrize(
    "kind",
    [FailureKind.GPU_UNAVAILABLE, FailureKind.DATA_UNAVAILABLE, FailureKind.ENVIRONMENT_UNBUILDABLE,
     FailureKind.REPOSITORY_INVALID, FailureKind.REPOSITORY_EMPTY, FailureKind.COMMIT_UNKNOWN],
)  # fmt: skip
def test_a_task_that_nobody_can_carry_out_here_is_blocked(
    root: Path, task: EvaluationTask, folder: EpisodeFolder, kind: FailureKind
) -> None:
    engine, heard = Engine(), Heard()
    engine.fail_build = [failure(kind, "torch", "no such version")]
    scores = runner(root, engine, Grading(), heard).episode(task, 0, StopHandle())
    assert (scores.status, scores.reason) == (EpisodeStatus.BLOCKED, "torch: no such version")
    assert (state_of(folder).blocked, state_of(folder).failure) == ("torch: no such version", None)
    assert heard.warnings == [f"{task.id}/0: torch: no such version. c. n."]
    assert engine.runs == []


def test_a_reason_about_the_task_itself_does_not_name_it_again(root: Path, task: EvaluationTask) -> None:
    engine = Engine()
    engine.fail_build = [failure(FailureKind.DATA_UNAVAILABLE, task.id, "its data are gone")]
    assert runner(root, engine, Grading()).episode(task, 0, StopHandle()).reason == "its data are gone"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [({"blocked": "no GPU here"}, "no GPU here"), ({"masked_repository": None}, "there is no masked repository to work in"),
     ({"blocked": "why", "masked_repository": None}, "why")],
)  # fmt: skip
def test_a_blocked_task_is_not_begun(root: Path, task: EvaluationTask, changes: Any, reason: str) -> None:
    engine, heard = Engine(), Heard()
    scores = runner(root, engine, Grading(), heard).episode(task.evolve(**changes), 0, StopHandle())
    assert (scores.status, scores.reason) == (EpisodeStatus.BLOCKED, reason)
    assert (engine.builds, engine.runs) == ([], [])
    assert f"{task.id}: {reason}. It was not carried out, and its scores are blocked, not 0." in heard.warnings[0]


def test_a_task_whose_data_the_cache_has_lost_is_blocked_before_an_agent_works_on_it(
    root: Path, task: EvaluationTask
) -> None:
    """It was given to agents without its data once, and they were scored for what they could not have."""
    engine, heard = Engine(), Heard()
    lacking = with_downloads(task, root / "cache", whole=False)
    made = runner(root, engine, Grading(), heard)
    scores = made.episode(lacking, 0, StopHandle())
    assert scores.status is EpisodeStatus.BLOCKED
    assert str(root / "cache") in scores.reason
    assert (scores.execution, scores.conclusion) == (None, None)
    assert (engine.builds, engine.runs) == ([], [])
    assert "`expbench curate`, with --data fetch) and run with --resume" in heard.warnings[0]
    there = made.episode(with_downloads(task, root / "cache", whole=True), 0, StopHandle())
    assert there.status is EpisodeStatus.SCORED, "a new run of the harness is a new chance"
    assert engine.runs[0][0].dns is not None


def test_data_that_is_lost_behind_the_first_step_blocks_the_episode(root: Path, task: EvaluationTask) -> None:
    engine = Engine()
    there = with_downloads(task, root / "cache", whole=True)
    made = runner(root, engine, Grading())
    engine.fail_run = [failure(FailureKind.DISK_FULL)]
    assert made.episode(there, 0, StopHandle()).status is EpisodeStatus.UNKNOWN
    (root / "cache" / "index.json").unlink()
    scores = made.episode(there, 0, StopHandle())
    assert (scores.status, len(engine.runs)) == (EpisodeStatus.BLOCKED, 1)


def test_a_submission_that_cannot_be_read_ends_the_run_and_says_what_to_remove(
    root: Path, task: EvaluationTask, folder: EpisodeFolder
) -> None:
    class Losing(Grading):
        def _grader(self, name: str) -> Any:
            def grade(*given: Any, **options: Any) -> Any:
                (folder.submission / "submission.json").unlink(missing_ok=True)
                return self.answers[name]

            return grade

    with pytest.raises(ExpbenchError) as caught:
        runner(root, Engine(), Losing()).episode(task, 0, StopHandle())
    assert (caught.value.kind, caught.value.object) == (FailureKind.RECORD_INVALID, str(folder.submission))
    assert str(folder.root) in caught.value.next_step


# --- interruption


def test_a_run_that_is_to_end_begins_no_further_step(root: Path, task: EvaluationTask, folder: EpisodeFolder) -> None:
    stop, engine, grading = StopHandle(), Engine(), Grading()
    engine.during = lambda out: stop.stop("Ctrl-C")
    with pytest.raises(ExpbenchError) as caught:
        runner(root, engine, grading).episode(task, 0, stop)
    assert (caught.value.kind, caught.value.cause) == (FailureKind.INTERRUPTED, "Ctrl-C")
    assert "--resume" in caught.value.next_step
    assert state_of(folder).finished == (Step.PREPARE, Step.AGENT)
    assert not folder.scores.exists()
    scores = runner(root, engine, grading).episode(task, 0, StopHandle())
    assert scores.status is EpisodeStatus.SCORED
    assert len(engine.runs) == 1, "what was finished is not done again"


def test_what_fails_because_the_run_is_to_end_is_no_failure_of_the_episode(
    root: Path, task: EvaluationTask, folder: EpisodeFolder
) -> None:
    """Neither tried again nor written down, whatever the machinery calls it."""
    stop, engine, pauses = StopHandle(), Engine(), list[float]()

    class Ending(Engine):
        def run(self, *given: Any, **options: Any) -> RunResult:
            stop.abort("Ctrl-C")
            return super().run(*given, **options)

    engine = Ending()
    engine.fail_run = [failure(FailureKind.SANDBOX_BROKEN)]
    with pytest.raises(ExpbenchError) as caught:
        runner(root, engine, Grading(), pauses=pauses).episode(task, 0, stop)
    assert (caught.value.kind, pauses) == (FailureKind.SANDBOX_BROKEN, [])
    assert state_of(folder).failure is None


# --- going on


def test_a_finished_episode_is_read(root: Path, task: EvaluationTask, folder: EpisodeFolder) -> None:
    first = runner(root, Engine(), Grading()).episode(task, 0, StopHandle())
    before = {path: path.stat().st_mtime_ns for path in folder.root.rglob("*")}
    engine, grading = Engine(), Grading(judgement=None)
    assert runner(root, engine, grading).episode(task, 0, StopHandle()) == first
    assert (engine.builds, engine.runs, grading.asked) == ([], [], [])
    assert {path: path.stat().st_mtime_ns for path in folder.root.rglob("*")} == before


@pytest.mark.parametrize("text", ["", "{", '{"schema_version": 1}'])
def test_scores_that_cannot_be_read_are_worked_out_again_from_the_reports(
    root: Path, task: EvaluationTask, folder: EpisodeFolder, text: str
) -> None:
    made = runner(root, Engine(), Grading())
    first = made.episode(task, 0, StopHandle())
    folder.scores.write_text(text)
    engine, grading = Engine(), Grading(judgement=None)
    again = runner(root, engine, grading).episode(task, 0, StopHandle())
    assert (engine.runs, grading.asked) == ([], [])
    assert (again.design, again.monitor, again.execution) == (first.design, first.monitor, first.execution)
    assert EpisodeScores.model_validate_json(folder.scores.read_bytes()) == again


def test_each_step_that_is_finished_stays_so(root: Path, task: EvaluationTask, folder: EpisodeFolder) -> None:
    for number, after in enumerate(STEPS[:-1]):
        engine, grading = Engine(), Grading()
        made = runner(root, engine, grading)
        made.episode(task, number, StopHandle())
        where = episode_folder(root, task.id, number)
        done = STEPS[: STEPS.index(after) + 1]
        where.state.write_text(state_of(where).evolve(finished=done).model_dump_json())
        engine, grading, heard = Engine(), Grading(), Heard()
        runner(root, engine, grading, heard).episode(task, number, StopHandle())
        left = STEPS[STEPS.index(after) + 1 : -1]
        assert heard.notes == [("evaluate", f"{task.id}/{number}: {step.value}") for step in left]
        assert grading.names == [name for name in GRADED if name in {step.value for step in left}]
        assert len(engine.runs) == (Step.AGENT in left)
        assert state_of(where).finished == STEPS


def test_reports_of_steps_that_are_not_finished_count_for_nothing(
    root: Path, task: EvaluationTask, folder: EpisodeFolder
) -> None:
    """Files of an attempt before, beside an episode that now fails on its way to the graders."""
    folder.root.mkdir(parents=True)
    for path, report in ((folder.integrity, INTEGRITY), (folder.execution, EXECUTION), (folder.judgement, JUDGEMENT)):
        path.write_text(report.model_dump_json())
    clean = Engine()
    clean.fail_run = [failure(FailureKind.DISK_FULL)] * 2
    stale = runner(root, clean, Grading()).episode(task, 0, StopHandle())
    fresh = runner(root, clean, Grading()).episode(task, 1, StopHandle())
    assert stale.lock == fresh.lock
    assert stale.graders == ()


def test_another_run_of_the_harness_is_a_new_chance_for_a_failed_episode(
    root: Path, task: EvaluationTask, folder: EpisodeFolder
) -> None:
    engine = Engine()
    engine.fail_run = [failure(FailureKind.DISK_FULL)]
    runner(root, engine, Grading()).episode(task, 0, StopHandle())
    heard = Heard()
    scores = runner(root, engine, Grading(), heard).episode(task, 0, StopHandle())
    assert scores.status is EpisodeStatus.SCORED
    assert state_of(folder).failure is None
    assert state_of(folder).finished == STEPS
    # it was prepared before, and its image is looked up for the agent
    assert heard.notes[0] == ("evaluate", f"{task.id}/0: agent")


def test_a_blocked_episode_begins_from_the_start(root: Path, task: EvaluationTask, folder: EpisodeFolder) -> None:
    made = runner(root, Engine(), Grading())
    made.episode(task.evolve(blocked="no data"), 0, StopHandle())
    folder.state.write_text(state_of(folder).evolve(finished=(Step.PREPARE, Step.AGENT, Step.SCORE)).model_dump_json())
    heard = Heard()
    scores = runner(root, Engine(), Grading(), heard).episode(task, 0, StopHandle())
    assert scores.status is EpisodeStatus.SCORED
    assert len(heard.notes) == len(STEPS) - 1
    assert (state_of(folder).blocked, state_of(folder).finished) == ("", STEPS)


def test_a_state_that_cannot_be_read_is_none(folder: EpisodeFolder) -> None:
    assert load_state(folder) is None
    folder.root.mkdir(parents=True)
    folder.state.write_text("{}")
    assert load_state(folder) is None
    state = EpisodeState(run="r", task="t", agent="a", repeat=0)
    folder.state.write_text(state.model_dump_json())
    assert load_state(folder) == state
