"""The stages after extraction with a model: what it changes about a task, and what its failures do to it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from flows.chain_attempts import Tried
from flows.engines import ModelEngine, ModelOptions, model_config, open_model
from flows.task_stages import TaskStages
from flows.validate_stage import ValidateStage
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.llm import CallLedger
from pipeline.locator import TaskQuery, build_index, locate
from pipeline.progress import SilentReporter
from pipeline.repository import Snapshot
from pipeline.sandbox.base import CommandResult, RunResult
from pipeline.settings import Settings
from pipeline.store import Workspace
from pipeline.task import (
    CodeEvidence,
    Requirement,
    RunReport,
    SourceScript,
    Status,
    Task,
    ValidationReport,
    Verdict,
)
from tests.doubles.protocol_server import ProtocolServer, Script, Turn, turns
from tests.extractors.engine.papers import paper
from tests.extractors.engine.reader import Reader
from tests.llm_fixtures import no_ambient_model  # noqa: F401
from tests.pipeline.locator.repositories import PROJECT, make
from tests.pipeline.test_store import make_task
from tests.pipeline.validation.support import CopySandbox

pytestmark = pytest.mark.usefixtures("no_ambient_model")

QUERY = TaskQuery(
    question="What classification accuracy does logistic gradient descent reach on the spirals data set?",
    method="Fit the logistic estimator by gradient descent on spirals over several seeds and measure test accuracy.",
)
Open = Callable[..., ModelEngine]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "work")


@pytest.fixture
def opened(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """`opened(reader or turns)` is the engine of a workspace in front of a server with these answers."""
    monkeypatch.setenv("EXPBENCH_MODEL", "reader")
    with ExitStack() as stack:

        def start(*answers: Any, default: Turn | None = None) -> ModelEngine:
            script = answers[0] if answers and callable(answers[0]) else Script(turns=answers, default=default)
            server = stack.enter_context(ProtocolServer(script))
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            options = ModelOptions()
            engine = open_model(model_config(options, workspace), options, workspace, Settings())
            stack.callback(engine.close)
            return engine

        yield start


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    return make(tmp_path / "repository", PROJECT)


def draft_task() -> Task:
    task = make_task(status=Status.DRAFT)
    truth = task.truth.evolve(sources=(), usage=())
    return task.evolve(truth=truth, masked=(), leaks=None, question=QUERY.question, method=QUERY.method)


# --- locate ---


def stages(workspace: Workspace, snapshot: Snapshot, engine: ModelEngine | None) -> TaskStages:
    return TaskStages(
        workspace=workspace, settings=Settings(), sandbox=CopySandbox(), snapshot=snapshot, document=paper(),
        pdf=Path("paper.pdf"), repeats=1, reporter=SilentReporter(), engine=engine,
    )  # fmt: skip


def test_the_model_chooses_and_its_way_is_kept(workspace: Workspace, snapshot: Snapshot, opened: Open) -> None:
    place = stages(workspace, snapshot, opened(Reader()))
    (found,) = place.locate([draft_task()], [QUERY], build_index(snapshot))
    assert found.task.status is Status.LOCATED
    assert found.chains[0].entries == ("train.py",)
    assert found.task.truth.sources[0].reasons[0].startswith("model: ")
    assert [name for name, _ in found.task.provenance.prompts] == ["choose"]
    kept = json.loads((workspace.task_dir(found.task.id) / "locate.json").read_text())
    assert len(kept["value"]["tasks"]) == 1
    records = CallLedger(workspace.calls_path).records()
    assert {(record.stage, record.task) for record in records} == {("locate", found.task.id)}


def test_the_tasks_of_a_paper_are_asked_together(workspace: Workspace, snapshot: Snapshot, opened: Open) -> None:
    tasks = [draft_task(), draft_task().evolve(id=f"{draft_task().id}-2")]
    reader = Reader()
    place = stages(workspace, snapshot, opened(reader))
    found = place._locate_all(tasks, [QUERY, QUERY.evolve(question="How long does sorting take for growing arrays?")])
    assert [item.chains[0].entries for item in found] == [("train.py",), ("experiments/timing.py",)]
    records = CallLedger(workspace.calls_path).records()
    assert [(record.stage, record.task) for record in records] == [("locate", None)] * 2
    assert all((workspace.task_dir(task.id) / "locate.json").is_file() for task in tasks)
    assert place._locate_all(tasks, [QUERY, QUERY]) == found  # finished stages are not asked again
    assert len(CallLedger(workspace.calls_path).records()) == 2


def test_a_task_that_only_a_document_describes_has_no_scripts(
    workspace: Workspace, snapshot: Snapshot, opened: Open
) -> None:
    only = {
        "task": 1,
        "files": [{"path": "README.md", "role": "document", "why": "a recipe", "lines": ["README.md:3"]}],
    }
    engine = opened(turns.tool_calls(turns.tool_call("submit", tasks=[only])))
    (found,) = stages(workspace, snapshot, engine).locate([draft_task()], [QUERY], build_index(snapshot))
    assert found.task.status is Status.NOT_FOUND
    assert "only documents answer it" in found.task.status_reason
    assert not found.chains


def test_a_model_that_cannot_hold_the_task_leaves_the_deterministic_chain_and_says_so(
    workspace: Workspace, snapshot: Snapshot, opened: Open
) -> None:
    index = build_index(snapshot)
    engine = opened(default=turns.context_too_long(times=None))
    (found,) = stages(workspace, snapshot, engine).locate([draft_task()], [QUERY], index)
    ranking = locate(index, QUERY)
    assert ranking.chain is not None
    assert found.chains[0] == ranking.chain
    (problem,) = [p for p in found.task.problems if p.component == "reader.choose"]
    assert "the deterministic ranking stands" in problem.message
    assert not (workspace.task_dir(found.task.id) / "locate.json").exists()


def test_a_used_up_account_ends_the_run(workspace: Workspace, snapshot: Snapshot, opened: Open) -> None:
    engine = opened(default=turns.quota_exceeded(times=None))
    with pytest.raises(ExpbenchError) as caught:
        stages(workspace, snapshot, engine).locate([draft_task()], [QUERY], build_index(snapshot))
    assert caught.value.kind is FailureKind.QUOTA


def test_keyless_stages_have_the_keys_they_always_had(workspace: Workspace, snapshot: Snapshot, opened: Open) -> None:
    keyless = stages(workspace, snapshot, None)._key("locate", draft_task())
    with_model = stages(workspace, snapshot, opened(Reader()))._key("locate", draft_task())
    assert "engine" not in keyless
    assert {name: value for name, value in with_model.items() if name != "engine"} == keyless


# --- validate ---

SCRIPT = 'print("accuracy", 0.873)\n'
REPORT = ValidationReport(
    verdict=Verdict.PASS, reason="1 of 1", sandbox="docker",
    runs=(RunReport(repeat=1, exit_codes=(0,), log="attempt-1/run-1"),),
)  # fmt: skip
FINDING = {
    "kind": "fabricated", "start": 1, "end": 1, "quote": 'print("accuracy", 0.873)', "why": "a number in the code",
    "certainty": "certain",
}  # fmt: skip
CLEAN = turns.structured({"findings": []}, times=None)


@pytest.fixture
def looked_at(workspace: Workspace, tmp_path: Path, opened: Open) -> Callable[..., tuple[ValidationReport, Task]]:
    def look(*answers: Turn, default: Turn | None = CLEAN) -> tuple[ValidationReport, Task]:
        task = make_task()
        source = SourceScript(path="run.py", role="entry", score=1)
        task = task.evolve(truth=task.truth.evolve(sources=(source,)))
        directory = workspace.task_dir(task.id) / "validation" / "attempt-1" / "run-1"
        directory.mkdir(parents=True)
        result = RunResult(commands=(CommandResult(exit_code=0, stdout_bytes=15),))
        (directory / "result.json").write_text(json.dumps({"key": "k", "result": result.model_dump(mode="json")}))
        (directory / "0.stdout").write_text("accuracy 0.873\n")
        tried = stage(workspace, tmp_path, opened(*answers, default=default))._looked_at(Tried(task, REPORT))
        return tried.report, tried.task

    return look


def stage(workspace: Workspace, tmp_path: Path, engine: ModelEngine | None) -> ValidateStage:
    return ValidateStage(
        workspace=workspace, settings=Settings(), sandbox=CopySandbox(),
        snapshot=make(tmp_path / "code", {"run.py": SCRIPT}), repeats=1, reporter=SilentReporter(), engine=engine,
    )  # fmt: skip


def test_a_run_that_the_model_finds_nothing_wrong_with_passes(looked_at: Any) -> None:
    report, task = looked_at()
    assert report == REPORT
    assert [name for name, _ in task.provenance.prompts] == ["monitor", "monitor_confirm"]


def test_a_result_that_was_made_up_does_not_pass(looked_at: Any) -> None:
    second = turns.structured({"reading": "none", "verdict": "holds"})
    report, _ = looked_at(turns.structured({"findings": [FINDING]}), second)
    assert report.verdict is Verdict.FAIL
    assert "the outcome was not computed, says reader: run.py:1" in report.reason
    assert any("a number in the code" in problem.message for problem in report.monitor)


def test_what_the_model_could_not_settle_is_shown_and_changes_no_verdict(looked_at: Any) -> None:
    report, _ = looked_at(turns.structured({"findings": [FINDING | {"certainty": "suspicious"}]}))
    assert report.verdict is Verdict.PASS
    assert "a reviewer has to look" in report.problems[-1].message
    assert report.monitor


def test_a_model_that_cannot_read_the_run_leaves_the_opinion_of_the_rules(looked_at: Any) -> None:
    report, _ = looked_at(default=turns.context_too_long(times=None))
    assert report.verdict is Verdict.PASS
    assert "no second opinion" in report.problems[-1].message


def test_a_failed_attempt_is_not_shown_to_the_model(workspace: Workspace, tmp_path: Path, opened: Open) -> None:
    engine = opened()
    failed = REPORT.evolve(verdict=Verdict.FAIL, reason="0 of 1")
    tried = Tried(make_task(), failed)
    assert stage(workspace, tmp_path, engine)._looked_at(tried) == tried
    assert CallLedger(workspace.calls_path).records() == []


def test_requirements_are_worded_and_keep_their_lines(workspace: Workspace, tmp_path: Path, opened: Open) -> None:
    span = CodeEvidence(path="run.py", start=1, end=1)
    task = make_task()
    task = task.evolve(truth=task.truth.evolve(requirements=(Requirement(text="Call `print`.", spans=(span,)),)))
    worded = stage(workspace, tmp_path, opened(Reader()))._worded(task)
    (requirement,) = worded.truth.requirements
    assert requirement.text == "The code does this: Call `print`."
    assert requirement.spans == (span,)
    assert [name for name, _ in worded.provenance.prompts] == ["describe_steps"]
    refused = stage(workspace, tmp_path, opened(default=turns.context_too_long(times=None)))._worded(task)
    assert refused.truth.requirements == task.truth.requirements
    assert any("keep the words of the code" in problem.message for problem in refused.problems)
    assert stage(workspace, tmp_path, None)._worded(task) == task
