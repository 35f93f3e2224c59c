"""validate, mask and verify as their users call them, on a small task that really runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from flows.cli import app
from masking.accepted import accepted_hits
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.store import Workspace
from pipeline.task import Status, Verdict
from tests.flows.checking_support import TASK, LookingSandbox, make_workspace, sandbox
from tests.masking import builders

__all__ = ["sandbox"]

SCRIPT = "run_experiment.py"


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def ask(*arguments: object, code: int = 0) -> dict[str, Any]:
    """The JSON that a command prints, which is all of its standard output."""
    done = call(*arguments, "--json")
    assert done.exit_code == code, (done.stdout, done.stderr, done.exception)
    value: dict[str, Any] = json.loads(done.stdout)
    return value


@pytest.fixture
def workspace(tmp_path: Path, sandbox: LookingSandbox) -> Workspace:
    return make_workspace(tmp_path / "work")


@pytest.fixture
def masked(workspace: Workspace) -> Workspace:
    ask("mask", workspace.root, TASK)
    return workspace


def test_a_task_is_masked_scanned_and_run_both_ways(workspace: Workspace, sandbox: LookingSandbox) -> None:
    told = ask("mask", workspace.root / "tasks" / TASK)
    assert (told["task"], told["status"], told["verdict"]) == (TASK, "masked", "pass")
    assert {item["path"]: item["action"] for item in told["masked"]}[SCRIPT] == "removed"
    assert all(item["reason"] for item in told["masked"])
    assert told["leaks"]["verdict"] == "pass"
    assert "installed_files" in told["leaks"]["checks"]
    trip = told["round_trip"]
    assert (trip["original"], trip["masked"], trip["restored"], trip["repeats"]) == ("pass", "fail", "pass", 2)
    assert not (Path(told["repository"]) / SCRIPT).exists()
    # looked into once; masked twice; the restored tree is the original's, but no run of that is on record here
    assert sandbox.runs == 1 + 2 + 2


def test_explain_tells_the_reasons_and_runs_nothing(workspace: Workspace, sandbox: LookingSandbox) -> None:
    planned = ask("mask", workspace.root, TASK, "--explain")
    assert planned["source"] == "planned"
    assert not workspace.masked_repository(TASK).exists()
    ask("mask", workspace.root, TASK)
    recorded = ask("mask", workspace.root, TASK, "--explain")
    assert recorded["source"] == "recorded"
    assert recorded["masked"] == planned["masked"]
    assert {item["path"] for item in planned["masked"]} >= {SCRIPT, "README.md"}
    assert all(item["reason"] for item in planned["masked"])
    by_function = ask("mask", workspace.root, TASK, "--explain", "--function", f"{SCRIPT}::squared_errors")
    assert by_function["source"] == "planned"
    (item,) = [item for item in by_function["masked"] if item["path"] == SCRIPT]
    assert (item["action"], item["reason"].split(":")[0]) == ("edited", "bodies of squared_errors")
    text = call("mask", workspace.root, "--explain").stdout
    assert "README of the repository" in text


def test_single_functions_are_masked_when_a_person_names_them(workspace: Workspace) -> None:
    told = ask(
        "mask", workspace.root, TASK, "--function", f"{SCRIPT}::squared_errors", "--signatures", "remove"
    )  # fmt: skip
    assert told["status"] == "masked"
    text = (workspace.masked_repository(TASK) / SCRIPT).read_text()
    assert "def squared_errors(*_masked_args" in text
    assert "shrinkage_weight(values, strength):" in text
    assert "not implemented (masked)" in told["round_trip"]["masked_failure"]
    assert ask("verify", workspace.root, TASK)["verdict"] == "pass"


def test_verify_executes_everything_anew(masked: Workspace, sandbox: LookingSandbox) -> None:
    before = {path: path.read_bytes() for path in masked.task_dir(TASK).rglob("*") if path.is_file()}
    runs = sandbox.runs
    report = ask("verify", masked.root / "tasks" / TASK)
    assert (report["task"], report["verdict"], report["repeats"]) == (TASK, "pass", 2)
    assert [check["name"] for check in report["checks"]] == ["mask", "environment", "original", "leaks", "round_trip"]
    assert {check["verdict"] for check in report["checks"]} == {"pass"}
    assert report["original"]["verdict"] == "pass"
    assert len(report["original"]["runs"]) == 2
    assert (report["leaks"]["verdict"], report["round_trip"]["verdict"]) == ("pass", "pass")
    assert sandbox.runs - runs == 2 + 1 + 2 + 2
    assert {path: path.read_bytes() for path in masked.task_dir(TASK).rglob("*") if path.is_file()} == before
    assert Path(report["logs"]).is_dir()
    whole = ask("verify", masked.root)
    assert (whole["verdict"], [task["task"] for task in whole["tasks"]]) == ("pass", [TASK])


def test_verify_by_id_inside_a_workspace(masked: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(masked.root)
    assert ask("verify", TASK)["verdict"] == "pass"
    assert ask("verify", masked.task_dir(TASK) / "task.yaml")["verdict"] == "pass"


def change(masked: Workspace, what: str) -> None:
    repository = masked.masked_repository(TASK)
    if what == "original":
        task = masked.load_task(TASK)
        claims = tuple(
            claim.evolve(value=9.5, text="9.5000", band=claim.band.evolve(low=9.49, high=9.51))
            for claim in task.truth.expected.claims
        )
        masked.save_task(task.evolve(truth=task.truth.evolve(expected=task.truth.expected.evolve(claims=claims))))
    elif what == "leaks":
        (repository / "copy.py").write_text(builders.RUN)
    elif what == "mask":
        (repository / ".git" / "refs" / "heads" / "main").write_text("0" * 40 + "\n")
    elif what == "environment":
        task = masked.load_task(TASK)
        masked.save_task(task.evolve(environment=task.environment.evolve(spec_digest="e" * 64)))


@pytest.mark.parametrize("what", ["original", "leaks", "mask", "environment"])
def test_verify_finds_what_was_changed(what: str, masked: Workspace) -> None:
    change(masked, what)
    report = ask("verify", masked.root, TASK, code=6)
    assert report["verdict"] == "fail"
    verdicts = {check["name"]: check["verdict"] for check in report["checks"]}
    assert verdicts[what] == "fail"
    assert what in report["reason"] or verdicts["mask"] == "fail"


def test_a_task_that_is_not_masked_has_no_gate_to_pass(workspace: Workspace) -> None:
    report = ask("verify", workspace.root, TASK, code=6)
    assert report["verdict"] == "unknown"
    assert report["checks"][0]["reason"] == "it is not masked (it is validated)"
    whole = ask("verify", workspace.root, code=6)
    assert (whole["verdict"], whole["tasks"]) == ("unknown", [])
    assert whole["skipped"] == [[TASK, "it is validated"]]


def test_validate_runs_the_chain_and_compares(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    told = ask("validate", workspace.root, TASK)
    assert (told["verdict"], told["status"]) == ("pass", "validated")
    assert {match["verdict"] for match in told["validation"]["matches"]} == {"pass"}
    assert len(told["validation"]["runs"]) == 2
    assert workspace.load_task(TASK).status is Status.VALIDATED
    whole = ask("validate", workspace.root)
    assert (whole["verdict"], [task["task"] for task in whole["tasks"]]) == ("pass", [TASK])
    text = call("validate", workspace.root, TASK).stdout
    assert "3 of 3 claims were reproduced" in text


def test_validate_fails_with_the_reason(workspace: Workspace) -> None:
    change(workspace, "original")
    told = ask("validate", workspace.root, TASK, code=6)
    assert (told["verdict"], told["status"]) == ("fail", "rejected")
    assert "contradicted" in told["reason"]


def test_a_hit_is_accepted_by_a_person_with_a_reason(tmp_path: Path, sandbox: LookingSandbox) -> None:
    stated = builders.claims()[1].text
    line = f"shrunk_mse = {stated}\n".encode()
    workspace = make_workspace(tmp_path / "work", files={"lib/constants.py": line})
    told = ask("mask", workspace.root, TASK, code=6)
    assert told["status"] == "rejected"
    (hit,) = [hit for hit in told["leaks"]["hits"] if hit["score"] >= 0.7]
    for missing in ([], ["--reviewer", "A. Person"], ["--reason", "a start value"]):
        done = call("mask", workspace.root, TASK, "--accept", hit["id"], *missing)
        assert isinstance(done.exception, ExpbenchError)
        assert done.exception.kind is FailureKind.USAGE
    person = ["--reviewer", "A. Person", "--reason", "a start value"]
    done = call("mask", workspace.root, TASK, "--accept", "0123456789", *person)
    assert isinstance(done.exception, ExpbenchError)
    told = ask("mask", workspace.root, TASK, "--accept", hit["id"], *person)
    assert told["status"] == "masked"
    (accepted,) = told["leaks"]["accepted"]
    assert (accepted["reviewer"], accepted["reason"], accepted["hit"]["where"]) == (
        "A. Person", "a start value", hit["where"],
    )  # fmt: skip
    assert hit["id"] not in {item["id"] for item in told["leaks"]["hits"]}
    assert len(accepted_hits(workspace.task_dir(TASK))) == 1
    leaks = workspace.load_task(TASK).leaks
    assert leaks is not None
    assert leaks.verdict is Verdict.PASS
    assert ask("verify", workspace.root, TASK)["verdict"] == "pass"


@pytest.mark.parametrize("command", ["validate", "mask", "verify"])
def test_what_is_not_there_is_refused(command: str, workspace: Workspace, tmp_path: Path) -> None:
    for arguments in ((tmp_path / "nowhere",), (workspace.root, "another"), (workspace.root / "repository",)):
        done = call(command, *arguments)
        assert isinstance(done.exception, ExpbenchError), done.stdout
        assert done.exception.exit_code == 5


@pytest.mark.parametrize("command", ["validate", "mask", "verify"])
def test_every_command_explains_itself(command: str) -> None:
    text = call(command, "--help").stdout
    assert f"expbench {command}" in text
    assert "Exit codes: 0" in " ".join(text.split())


def test_a_python_that_cannot_be_had_gives_way(
    workspace: Workspace, sandbox: LookingSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another Python needs a base image of its own, which not every machine can make: the run goes on and says so."""
    from pipeline.sandbox import BuildSpec, Image
    from pipeline.validation import environments

    build = LookingSandbox.build
    asked: list[str] = []

    def limited(self: LookingSandbox, spec: BuildSpec, **options: Any) -> Image:
        asked.append(spec.python)
        if spec.python != "3.11":
            raise ExpbenchError(
                FailureKind.SANDBOX_UNAVAILABLE, "base image", "needs root", consequence="c", next_step="n"
            )
        return build(self, spec, **options)

    monkeypatch.setattr(LookingSandbox, "build", limited)
    monkeypatch.setattr(environments, "pythons_of", lambda _: ("3.11", "3.9"))
    declared = workspace.root / "repository" / "pyproject.toml"
    declared.write_text('[project]\nname = "x"\nrequires-python = "<3.10"\n')
    snapshot = builders.snapshot(workspace.root / "repository")
    snapshot.save()
    told = ask("validate", workspace.root, TASK)
    assert asked == ["3.9", "3.11"]
    assert told["environment"]["python"] == "3.11"
    assert any("Python 3.9 cannot be had here" in item["message"] for item in told["validation"]["problems"])


def test_smoke_scale_shows_that_it_runs_and_takes_nothing_back(workspace: Workspace) -> None:
    before = workspace.load_task(TASK)
    told = ask("validate", workspace.root, TASK, "--scale", "smoke", code=6)
    assert (told["verdict"], told["outcome"], told["scale"]) == ("unknown", "smoke: runs", "smoke")
    assert told["reason"].startswith("smoke: runs")
    assert {item["name"]: item["smoke"] for item in told["validation"]["plan"]["changes"]} == {"repeats": "1"}
    assert [run["scale"] for run in told["validation"]["runs"]] == ["smoke"]
    assert workspace.load_task(TASK) == before, "what was confirmed at full scale stays on record"
    full = ask("validate", workspace.root, TASK, "--scale", "full")
    assert (full["outcome"], full["scale"], full["status"]) == ("reproduced", "full", "validated")
    stored = workspace.load_task(TASK).validation
    assert stored is not None
    assert stored.plan is not None
    assert "Scale: full" in stored.notes


def test_scripts_are_written_only_where_there_is_a_model(workspace: Workspace) -> None:
    done = call("validate", workspace.root, TASK, "--write-scripts")
    assert done.exit_code != 0
    assert isinstance(done.exception, ExpbenchError)
    assert done.exception.kind is FailureKind.USAGE
    assert "--write-scripts" in str(done.exception)
