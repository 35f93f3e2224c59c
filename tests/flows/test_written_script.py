"""Where no script serves, a model writes one: a real endpoint, the same checks, and marked as what it is."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from flows.chains import Located
from flows.cli import app
from flows.engines import ModelEngine, ModelOptions, model_config, open_model
from flows.mask_stage import MaskStage
from flows.validate_stage import ValidateStage
from pipeline.paper import Document
from pipeline.progress import SilentReporter
from pipeline.repository import Snapshot
from pipeline.settings import Settings
from pipeline.store import Workspace
from pipeline.task import Status, Task
from pipeline.validation.writing import SCRIPT
from tests.doubles.protocol_server import ProtocolServer, Script, Turn, turns
from tests.flows.checking_support import LookingSandbox, make_task, make_workspace
from tests.masking import builders
from tests.pipeline.validation.support import IMAGE

GOOD = builders.RUN.replace(
    "from estimators import plain_mean, trimmed_mean", "from estimators import plain_mean, trimmed_mean  # theirs"
)
CLEAN = turns.structured({"findings": []}, times=None)
Written = Callable[..., tuple[Task, Workspace]]


def answer(code: str) -> Turn:
    return turns.structured({"code": code, "why": "it calls the estimators"})


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Written]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("EXPBENCH_MODEL", "writer")
    monkeypatch.setenv("EXPBENCH_CACHE_DIR", str(tmp_path / "cache"))
    with ExitStack() as stack:

        def start(*answers: Turn, default: Turn | None = CLEAN) -> tuple[Task, Workspace]:
            workspace = make_workspace(tmp_path / "work", status=Status.DRAFT)
            (workspace.root / "repository" / "run_experiment.py").unlink()
            snapshot = builders.snapshot(workspace.root / "repository")
            server = stack.enter_context(ProtocolServer(Script(turns=answers, default=default)))
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            options = ModelOptions()
            engine = open_model(model_config(options, workspace), options, workspace, Settings())
            stack.callback(engine.close)
            task = stage(workspace, snapshot, engine).validated(Located(task=nothing_found()))
            asked = server.requests[0].model_dump_json()
            assert "To be measured" in asked
            assert not any(claim.text in asked for claim in builders.claims())
            return task, workspace

        yield start


def stage(
    workspace: Workspace, snapshot: Snapshot, engine: ModelEngine | None, *, allowed: bool = True
) -> ValidateStage:
    return ValidateStage(
        workspace=workspace, settings=Settings(write_scripts=allowed), sandbox=LookingSandbox(), snapshot=snapshot,
        repeats=2, reporter=SilentReporter(), engine=engine,
    )  # fmt: skip


def nothing_found() -> Task:
    task = make_task(Status.NOT_FOUND)
    truth = task.truth.evolve(sources=(), usage=())
    return task.evolve(truth=truth, validation=None, status_reason="no script answers the question")


def test_a_script_that_reproduces_the_claims_is_taken_and_marked(written: Written) -> None:
    task, workspace = written(answer(GOOD))
    assert task.status is Status.VALIDATED
    (source,) = [source for source in task.truth.sources if source.role == "entry"]
    assert source.path == SCRIPT
    assert source.reasons[0].startswith("written by writer, not part of the repository")
    assert any("a reviewer has to look" in problem.message for problem in task.problems)
    assert "write_script" in [name for name, _ in task.provenance.prompts]
    assert task.validation is not None
    assert len(task.validation.runs) == 2
    masked = masking(workspace).masked(task)
    assert masked.status is Status.MASKED, masked.status_reason
    assert not (workspace.masked_repository(task.id) / SCRIPT).exists()
    assert SCRIPT in {item.path for item in masked.masked}


def masking(workspace: Workspace) -> MaskStage:
    snapshot = builders.snapshot(workspace.root / "repository")
    document: Document = builders.document()
    return MaskStage(
        workspace=workspace, settings=Settings(), sandbox=LookingSandbox(), snapshot=snapshot, document=document,
        pdf=workspace.paper_dir("shrinkage") / "paper.pdf", repeats=1, image_of=lambda _: IMAGE,
    )  # fmt: skip


def values() -> str:
    return "\n".join(f"print('{c.conditions[0].value} mse', {c.text})" for c in builders.claims())


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ((answer("import estimators\n" + values()),), "did not pass either: the outcome was not computed"),
        ((answer("import estimators\nprint('plain mse', 1 / 3)\n"),), "did not pass either"),
        ((answer("import estimators\nraise SystemExit(3)\n"),), "did not pass either"),
        ((turns.structured({"code": "", "why": "its data is not there"}),), ""),
        ((turns.context_too_long(times=None),), "no script was written"),
        ((turns.structured({"code": "print(1)\n", "why": "alone"}, times=None),), "no script was written"),
    ],
)  # fmt: skip
def test_what_does_not_pass_leaves_the_task_as_it_was(answers: tuple[Turn, ...], why: str, written: Written) -> None:
    task, workspace = written(*answers)
    assert task.status is Status.NOT_FOUND
    assert task.truth.sources == ()
    told = [problem.message for problem in task.problems if problem.component == "validate.model"]
    assert (not told) == (not why)
    assert all(why in message for message in told)
    assert not (workspace.task_dir(task.id) / "written" / "repository").exists()


def test_nobody_is_asked_unless_the_user_wants_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("OPENAI_API_KEY", "sk-test"), ("EXPBENCH_MODEL", "writer")):
        monkeypatch.setenv(name, value)
    workspace = make_workspace(tmp_path / "work", status=Status.DRAFT)
    with ProtocolServer(Script(turns=(answer(GOOD),))) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        options = ModelOptions()
        engine = open_model(model_config(options, workspace), options, workspace, Settings())
        snapshot = builders.snapshot(workspace.root / "repository")
        found = stage(workspace, snapshot, engine, allowed=False).validated(Located(task=nothing_found()))
        engine.close()
        assert (found, len(server.requests)) == (nothing_found(), 0)


def test_without_a_model_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPBENCH_CACHE_DIR", str(tmp_path / "cache"))
    workspace = make_workspace(tmp_path / "work", status=Status.DRAFT)
    task: Any = nothing_found()
    found = stage(workspace, builders.snapshot(workspace.root / "repository"), None).validated(Located(task=task))
    assert found == task


def test_the_commands_option_lets_the_model_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`expbench validate --write-scripts` on a task that no script answers, against a real endpoint."""
    from flows import stages_alone

    monkeypatch.setattr(stages_alone, "open_sandbox", lambda kind: LookingSandbox())
    for name, value in (
        ("OPENAI_API_KEY", "sk-test"),
        ("EXPBENCH_MODEL", "writer"),
        ("EXPBENCH_CACHE_DIR", tmp_path / "c"),
    ):
        monkeypatch.setenv(name, str(value))
    workspace = make_workspace(tmp_path / "work", status=Status.DRAFT)
    (workspace.root / "repository" / "run_experiment.py").unlink()
    builders.snapshot(workspace.root / "repository").save()
    info = workspace.info()
    workspace.write_info(info.evolve(inputs=info.inputs.evolve(engine="model", model="writer")))
    workspace.save_task(nothing_found())
    with ProtocolServer(Script(turns=(answer(GOOD),), default=CLEAN)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        command = ["validate", str(workspace.root), nothing_found().id, "--write-scripts", "--json"]
        done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, (done.stdout, done.stderr, done.exception)
    told = json.loads(done.stdout)
    assert (told["status"], told["outcome"]) == ("validated", "reproduced")
    stored = workspace.load_task(told["task"])
    assert [source.path for source in stored.truth.sources if source.role == "entry"] == [SCRIPT]
    assert any("written by writer" in problem.message for problem in stored.problems)
