"""From `prefect deployment run` to a released data set with a person's clicks only, on real processes throughout.

The worker is killed twice on the way: while a validation runs, and while the reviews wait.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from flows.curate import CurateOptions, curate
from flows.examples import materialise
from flows.review import Answer, Wording, content_digest, decide, queue_of
from flows.shared_runs import SharedRuns
from flows.stages_alone import advance
from pipeline.files import is_locked
from pipeline.progress import SilentReporter
from pipeline.settings import Settings
from pipeline.store import Workspace
from pipeline.task import Status, Verdict
from tests.flows.orchestration.machine import Machine, wait_until
from tests.flows.orchestration.ui import CHROMIUM, ReviewUi, reviewer_ui

pytestmark = [pytest.mark.prefect, pytest.mark.docker]

SHOTS = Path(os.environ.get("EXPBENCH_SCREENSHOTS", "")) if os.environ.get("EXPBENCH_SCREENSHOTS") else None


def started_stages(workspace: Workspace) -> list[str]:
    return [entry.stage for entry in workspace.ledger.entries()]


def executions(workspace: Workspace) -> dict[str, int]:
    """Finished executions of the repository's code, with the time at which each was recorded."""
    return {path.parent.name: path.stat().st_mtime_ns for path in workspace.root.glob(".runs/*/result.json")}


def containers_of(workspace: Workspace) -> list[str]:
    import docker

    client = docker.from_env()
    try:
        found = client.containers.list(all=True, filters={"label": f"expbench.owner={workspace.owner}"})
        return [container.id for container in found]
    finally:
        client.close()


@pytest.fixture(scope="module")
def curated(machine: Machine, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A paper curated by a deployment whose worker was killed in the middle of a validation."""
    example = materialise("agreement-weights", tmp_path_factory.mktemp("example"))
    (machine.directory / "example.json").write_text(json.dumps([str(example.paper), str(example.repository)]))
    workspace = Workspace(machine.directory / "papers" / "expbench-paper")
    run = machine.submit(
        "curate-paper", pdf=example.paper, repository=example.repository, out=workspace.root, max_tasks=3,
        repeats=1,
    )  # fmt: skip
    wait_until(lambda: executions(workspace), "the first execution to be finished")
    machine.kill_worker()
    before, stages = executions(workspace), started_stages(workspace)
    assert machine.run(run).state.name == "Running", "the server does not know that the process is gone"
    machine.up()
    done = machine.wait_for(run, "Completed")
    assert done.id == machine.run(run).id
    after = executions(workspace)
    assert {name: after[name] for name in before} == before, "a finished execution was done again"
    assert started_stages(workspace).count("extract") == stages.count("extract") == 1
    assert started_stages(workspace).count("draft") == 1
    assert not is_locked(workspace.lock_path)
    assert containers_of(workspace) == []
    return workspace


def reviews(workspace: Workspace) -> dict[str, str]:
    """Task -> its review run, as `expbench review --prefect` tells."""
    from flows.orchestration.enqueue import enqueue_reviews

    return {item.task: str(item.run) for item in enqueue_reviews(workspace)}


def test_a_paper_goes_on_after_its_worker_was_killed(curated: Workspace, machine: Machine) -> None:
    tasks = curated.tasks()
    assert len(tasks) == 3
    assert {task.status for task in tasks} == {Status.MASKED}
    waiting = reviews(curated)
    assert sorted(waiting) == [task.id for task in tasks]
    for run in waiting.values():
        assert machine.run(run).state.name == "Suspended"


def test_without_a_server_the_result_is_the_same(
    curated: Workspace, machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`expbench curate` in this process. Executions are taken from the deployment's run: they are not what differs."""
    monkeypatch.setenv("EXPBENCH_EQUIVALENTS", "0")
    pdf, repository = json.loads((machine.directory / "example.json").read_text())
    alone = Workspace(tmp_path / "alone")
    shutil.copytree(curated.root / ".runs", tmp_path / "runs")
    options = CurateOptions(pdf=Path(pdf), repository=repository, out=alone.root, max_tasks=3, repeats=1)
    monkeypatch.setattr("flows.curate.SharedRuns", lambda sandbox, _: SharedRuns(sandbox, tmp_path / "runs"))
    curate(options, SilentReporter(), Settings())
    plain = [task.evolve(provenance=task.provenance.evolve(created_at=None)) for task in alone.tasks()]
    assert plain == [task.evolve(provenance=task.provenance.evolve(created_at=None)) for task in curated.tasks()]


@pytest.mark.browser
@pytest.mark.skipif(not CHROMIUM.exists(), reason="there is no /usr/bin/chromium")
def test_a_person_reviews_in_the_browser_and_the_release_holds_what_was_approved(
    curated: Workspace, machine: Machine, tmp_path: Path
) -> None:
    waiting = reviews(curated)
    rejected, edited, approved = sorted(waiting)
    machine.kill_worker()  # reviews wait: there is no process that could be lost
    machine.up()
    with reviewer_ui(machine.url, SHOTS or tmp_path / "shots") as ui:
        ui.open_queue()
        for task in waiting:
            ui.page.get_by_text(f"review {task}").first.wait_for()
        ui.shot("queue")
        reject(ui, machine, waiting[rejected])
        approve(ui, waiting[approved])
        edit(ui, machine, waiting[edited], curated.load_task(edited).question)
        for run in waiting.values():
            machine.wait_for(run, "Completed")
        assert curated.load_task(rejected).status is Status.REJECTED
        assert curated.load_task(rejected).reviews[-1].comment == "The claim is about another data set."
        assert curated.load_task(approved).status is Status.APPROVED
        assert curated.load_task(approved).reviews[-1].reviewer == "Ada Lovelace"
        last = curated.load_task(edited).reviews[-1]
        assert (last.decision, [field for field, _ in last.changes]) == ("edit", ["question"])
        assert "+How" in last.changes[0][1]
        assert last.after == content_digest(curated.load_task(edited))
        assert reviews(curated) == {}
        offered = re.search(
            r"\[Release what is approved\]\((http[^)]+)\)", str(machine.artifact("review-queue").description)
        )
        assert offered, "the queue offers it"
        released = ui.run_filled_in(offered[1])
    machine.wait_for(released, "Completed")
    import datasets

    tasks = datasets.load_dataset(str(curated.root / "release"), "tasks", cache_dir=str(tmp_path / "cache"))["test"]
    assert sorted(tasks["id"]) == sorted([edited, approved])
    questions = dict(zip(tasks["id"], tasks["question"], strict=True))
    assert questions[edited].endswith("Use ten seeds.")


def test_a_mask_that_a_reviewer_wants_is_made_and_proven_again(curated: Workspace, tmp_path: Path) -> None:
    """On a copy: one more file masked, the README kept. The first is done; the second would tell the answer."""
    shutil.copytree(curated.root, tmp_path / "copy", symlinks=True)
    workspace = Workspace(tmp_path / "copy")
    task = next(item for item in workspace.tasks() if item.status is not Status.REJECTED)
    workspace.save_task(task.evolve(status=Status.MASKED))
    wording = Wording.of(task)
    masked = wording.masked.replace("README.md [removed]", "tools/debug_folds.py")
    assert masked != wording.masked
    answer = Answer(decision="edit", reviewer="Ada", wording=wording.evolve(masked=masked))
    assert decide(workspace, task.id, answer).status is Status.VALIDATED
    again = advance(workspace, task.id, Settings(), SilentReporter())
    assert again.status is Status.MASKED, again.status_reason
    assert {"README.md", "tools/debug_folds.py"} <= {item.path for item in again.masked}
    repository = workspace.masked_repository(task.id)
    assert not (repository / "tools" / "debug_folds.py").exists()
    assert not (repository / "README.md").exists()
    assert "a reviewer wanted to keep README.md; it stays masked" in again.problems[-1].message
    assert again.leaks is not None
    assert again.round_trip is not None
    assert (again.leaks.verdict, again.round_trip.verdict) == (Verdict.PASS, Verdict.PASS)
    assert [entry.task for entry in queue_of(workspace)] == [task.id], "nobody has approved the new mask"


def test_a_list_finds_what_was_done_and_keeps_decisions(curated: Workspace, machine: Machine, tmp_path: Path) -> None:
    """The batch resumes the finished workspace, and a paper that cannot be read does not take the others with it."""
    before = {task.id: (task.status, task.reviews, content_digest(task)) for task in curated.tasks()}
    executed = executions(curated)
    example = machine.directory / "example.json"
    paper, repository = json.loads(example.read_text())
    sources = tmp_path / "list.csv"
    sources.write_text(f"pdf,repository\n{paper},{repository}\nmissing.pdf,{repository}\n")
    run = machine.submit(
        "curate", sources=sources, out=curated.root.parent, max_tasks=3, repeats=1, review="false"
    )  # fmt: skip
    done = machine.wait_for(run, "Completed", "Partly completed")
    assert done.state is not None
    assert (done.state.name, done.state.message) == ("Partly completed", "1 of 2 papers were curated")
    assert executions(curated) == executed
    assert {task.id: (task.status, task.reviews, content_digest(task)) for task in curated.tasks()} == before


def test_a_sweep_has_the_scores_of_the_command_and_is_judged_again(
    curated: Workspace, machine: Machine, tmp_path: Path
) -> None:
    """One episode of the agent that does nothing: three runs inside each other, the command beside them; then `judge`."""
    from evaluation.scores import EpisodeScores

    task = next(task.id for task in curated.tasks() if task.status is not Status.REJECTED)
    sweep = machine.submit(
        "sweep", source=curated.root, out=machine.directory / "sweep", entries='[{"agent": "noop"}]',
        tasks=json.dumps([task]), concurrency=1,
    )  # fmt: skip
    ended = machine.wait_for(sweep, "Completed")
    assert ended.state is not None
    assert (ended.name, ended.state.message) == ("sweep sweep", "1 of 1 runs were completed")
    assert {"expbench", "stage:sweep", f"source:{curated.root.name}"} <= set(ended.tags)
    assert (machine.directory / "sweep" / "report" / "index.html").is_file()
    assert machine.table("sweep") == [{"run": "noop", "state": "Completed", "what happened": ""}]
    (episode,) = machine.table("episodes")
    assert (episode["episode"], episode["status"], episode["C"]) == (f"{task}/0", "scored", 0.0)
    machine.expbench("evaluate", curated.root, "--agent", "noop", "--out", tmp_path / "noop", "--tasks", task)
    run = machine.directory / "sweep" / "noop"
    rows = []
    for root in (run, tmp_path / "noop"):
        row = EpisodeScores.model_validate_json((root / "episodes" / task / "0" / "scores.json").read_bytes())
        rows.append(row.evolve(wall_s=None))
    assert rows[0] == rows[1]
    assert rows[0].design == rows[0].conclusion == 0.0
    judged = machine.wait_for(machine.submit("judge", run=run), "Completed")
    assert (judged.name, {"agent:noop", "stage:judge"} <= set(judged.tags)) == ("judge noop", True)


def reject(ui: ReviewUi, machine: Machine, run: str) -> None:
    """Once without a comment, which is refused on the spot, then with one."""
    dialog = ui.open_form(run)
    ui.choose(dialog, "reject")
    ui.fill(dialog, "Reviewer", "Grace Hopper")
    refused = ui.submit(dialog)
    assert refused["status"] == "REJECT"
    assert "comment" in refused["details"]["reason"]
    ui.page.get_by_text("Validation failed for field 'comment'").first.wait_for()
    ui.shot("refused")
    assert machine.run(run).state.name == "Suspended"
    ui.fill(dialog, "Comment", "The claim is about another data set.")
    assert ui.submit(dialog)["status"] == "ACCEPT"


def approve(ui: ReviewUi, run: str) -> None:
    """Read the form first: everything that the decision needs is on it."""
    dialog = ui.open_form(run)
    for heading in ("Question", "Method", "Expected outcome", "In the paper", "Re-execution", "Located code",
                    "Mask and leak scan"):  # fmt: skip
        dialog.get_by_role("heading", name=heading).wait_for()
    images = dialog.locator("img")
    assert images.count() >= 2
    widths = [images.nth(number).evaluate("image => image.naturalWidth") for number in range(images.count())]
    assert all(width > 100 for width in widths), widths
    ui.shot("form")
    images.first.scroll_into_view_if_needed()
    ui.shot("form_crop")
    dialog.get_by_role("heading", name="Re-execution").scroll_into_view_if_needed()
    ui.shot("form_numbers")
    dialog.get_by_role("heading", name="Located code").scroll_into_view_if_needed()
    ui.shot("form_code")
    ui.choose(dialog, "approve")
    ui.fill(dialog, "Reviewer", "Ada Lovelace")
    ui.shot("form_fields")
    assert ui.submit(dialog)["status"] == "ACCEPT"


def edit(ui: ReviewUi, machine: Machine, run: str, question: str) -> None:
    """First with a question that gives an answer away, which only Python can see: the run asks again and says why."""
    dialog = ui.open_form(run)
    ui.choose(dialog, "edit")
    ui.fill(dialog, "Reviewer", "Ada Lovelace")
    ui.fill(dialog, "Question", f"{question} Is the mean test accuracy of CAW 91.6%?")
    assert ui.submit(dialog)["status"] == "ACCEPT"
    wait_until(lambda: machine.run(run).state.state_details.pause_key == "review-1", "the run to ask again")
    dialog = ui.open_form(run)
    dialog.get_by_text("could not be applied").wait_for()
    ui.shot("asked_again")
    assert ui.field(dialog, "Question").input_value().endswith("91.6%?"), "what was typed is not lost"
    assert ui.field(dialog, "Reviewer").input_value() == "Ada Lovelace"
    ui.choose(dialog, "edit")
    ui.fill(dialog, "Reviewer", "Ada Lovelace")
    ui.fill(dialog, "Question", f"{question} Use ten seeds.")
    assert ui.submit(dialog)["status"] == "ACCEPT"
