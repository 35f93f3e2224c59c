"""The main job with a model, end to end: a real endpoint on the loopback interface, a real sandbox."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from flows.curate import CurateOptions, curate
from flows.engines import ModelOptions
from flows.examples import MaterialisedExample, list_examples, materialise
from pipeline.llm import CacheMode
from pipeline.progress import SilentReporter
from pipeline.sandbox import Limits
from pipeline.settings import Settings
from pipeline.store import Workspace
from pipeline.task import Status, Verdict
from tests.doubles.protocol_server import ProtocolServer, Turn
from tests.extractors.engine.reader import WRONG_NUMBER, WRONG_QUOTE, Reader, all_text
from tests.flows.test_run_first import make_study
from tests.llm_fixtures import no_ambient_model  # noqa: F401

ROOT = Path(__file__).resolve().parents[2]
CANARY = "sk-canary-7a3e5b1d90"


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> MaterialisedExample:
    return materialise(list_examples()[0], tmp_path_factory.mktemp("examples"))


@pytest.fixture(scope="module")
def server() -> Iterator[ProtocolServer]:
    with ProtocolServer(Reader(slips=True)) as started:
        yield started


def run(example: MaterialisedExample, out: Path, base_url: str, *more: str) -> subprocess.CompletedProcess[str]:
    arguments = [str(example.paper), str(example.repository), "--engine", "model", "--model", "reader"]
    arguments += ["--out", str(out), "--max-tasks", "1", "--repeats", "1", "--sandbox", "docker", "--json", *more]
    environment = os.environ | {
        "OPENAI_BASE_URL": base_url,
        "OPENAI_API_KEY": CANARY,
        "EXPBENCH_MODEL_ENDPOINT": "reader-of-the-tests",
        "EXPBENCH_EQUIVALENTS": "0",
        "EXPBENCH_REHEARSAL_S": "300",
    }
    command = [sys.executable, "-m", "flows.cli", "curate", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900, check=False)


@pytest.mark.docker
def test_a_candidate_comes_out_with_what_was_paid_and_nothing_made_up(
    example: MaterialisedExample, server: ProtocolServer, tmp_path: Path
) -> None:
    out = tmp_path / "work"
    stopped = run(example, out, server.base_url, "--max-calls", "3")
    assert (stopped.returncode, json.loads(stopped.stdout)["error"]) == (9, "budget_exceeded")
    assert len(server.requests) == 3
    done = run(example, out, server.base_url, "--resume", "--max-calls", "500")
    assert done.returncode == 0, done.stderr
    (task,) = Workspace(out).tasks()
    assert task.status is Status.MASKED, task.status_reason
    assert task.provenance.engine == "model"
    assert task.provenance.model == "reader"
    assert {"paper", "experiments", "task", "monitor"} <= {name for name, _ in task.provenance.prompts}
    assert task.validation is not None
    assert task.validation.verdict is Verdict.PASS
    assert [requirement.text for requirement in task.truth.requirements] == ["Fit all methods and measure them."]
    told = json.dumps([task.model_dump(mode="json", exclude={"problems"})])
    assert WRONG_QUOTE not in told
    assert f'"{WRONG_NUMBER}"' not in told
    page = (out / "index.html").read_text(encoding="utf-8")
    assert "does not say so, word for word" in page
    for path in out.rglob("*"):
        if path.is_file() and not path.is_symlink():
            assert CANARY.encode() not in path.read_bytes(), path
    # nothing is asked twice, and another model is another workspace
    asked = len(server.requests)
    assert run(example, out, server.base_url, "--resume").returncode == 0
    assert len(server.requests) == asked
    other = run(example, out, server.base_url, "--resume", "--model", "another")
    assert (other.returncode, json.loads(other.stdout)["error"]) == (5, "workspace_conflict")


# --- the whole way without a container: a study of some seconds ---


@pytest.fixture
def curated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Workspace]]:
    """`curated(reader)` curates the study of `test_run_first` with a reader; again: on the same inputs."""
    paper, repository = make_study(tmp_path)
    monkeypatch.setenv("EXPBENCH_MODEL", "reader")
    monkeypatch.setenv("EXPBENCH_MODEL_ENDPOINT", "reader-of-the-tests")
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    settings = Settings(cache_dir=tmp_path / "cache", rehearsal_s=300, limits=Limits(wall_s=120), seeds=0)
    with ExitStack() as stack:

        def start(reader: Reader, name: str = "work", rehearsal_s: float = 300, **model: object) -> Workspace:
            server = stack.enter_context(ProtocolServer(reader))
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            out = Workspace(tmp_path / name)
            options = CurateOptions(
                pdf=paper, repository=str(repository), out=out.root, sandbox="process", repeats=1, engine="model",
                resume=out.exists(), model=ModelOptions(**model),
            )  # fmt: skip
            curate(options, SilentReporter(), settings.model_copy(update={"rehearsal_s": rehearsal_s}))
            return out

        yield start


def test_the_reader_sees_what_was_run_and_the_run_it_chose_binds_the_claims(
    curated: Callable[..., Workspace],
) -> None:
    asked: list[str] = []

    class Watching(Reader):
        def __call__(self, endpoint: str, body: dict[str, Any]) -> Turn | None:
            asked.append(all_text(body))
            return super().__call__(endpoint, body)

    workspace = curated(Watching())
    assert "`python study.py` in . (stated in README.md" in asked[0]
    assert "gives 8 cells of T1: r1,3c1-3 r2c1-2; other" in asked[0]
    assert "other numbers for r2c3 (prints 0.0999, here" in asked[0]
    assert "`python show.py`" in asked[0]
    (task,) = workspace.tasks()
    assert [source.path for source in task.truth.sources] == ["study.py"]
    assert task.truth.sources[0].reasons[0].startswith("model reader: ")
    assert task.truth.requirements[0].text == "Fit all methods and measure them."
    assert task.validation is not None
    assert task.validation.verdict is Verdict.PASS, task.status_reason
    claims = task.truth.expected.claims
    assert len(claims) == 8  # the ninth, changed after it was computed, did not come out
    assert all(claim.place for claim in claims)
    assert task.status is Status.MASKED, task.status_reason
    assert not (workspace.masked_repository(task.id) / "study.py").exists()
    reading = json.loads(next(workspace.root.glob("papers/*/reading.json")).read_text())
    assert [item["fate"] for item in reading["written"]] == ["draft"]


def test_a_replay_in_another_workspace_gives_the_same_task(curated: Callable[..., Workspace]) -> None:
    first = curated(Reader())
    silent = Reader()
    again = curated(silent, "again", cache=CacheMode.REPLAY, exchanges=first.root / "model")
    assert silent.asked == []
    (one,), (other,) = first.tasks(), again.tasks()
    assert (one.question, one.truth.expected, one.truth.usage) == (
        other.question, other.truth.expected, other.truth.usage,
    )  # fmt: skip


def test_what_the_repository_has_no_code_for_is_no_task_and_says_so(curated: Callable[..., Workspace]) -> None:
    nothing = {"files": [], "commands": [], "not_found": "it only shows what is committed"}

    class Denying(Reader):
        def answer(self, *arguments: Any) -> dict[str, Any]:
            return super().answer(*arguments) | nothing

    (task,) = curated(Denying()).tasks()
    assert task.status is Status.NOT_FOUND
    assert task.truth.not_found is not None
    assert task.truth.not_found.reason == "reader: it only shows what is committed"
    assert task.truth.not_found.searched[0].startswith("read study.py")


def test_a_task_that_its_run_contradicts_goes_back_to_the_reader_and_keeps_what_reproduces(
    curated: Callable[..., Workspace],
) -> None:
    reader = Reader(files=("study.py",))
    (task,) = curated(reader, rehearsal_s=0).tasks()
    assert reader.asked.count("SaidMending") == 1
    assert task.validation is not None
    assert task.validation.verdict is Verdict.PASS, task.status_reason
    assert "0.0999" not in {claim.text for claim in task.truth.expected.claims}
    assert any("mended after `2 of 9 claims are contradicted" in problem.message for problem in task.problems)
    assert "mend" in {name for name, _ in task.provenance.prompts}


def test_a_reader_that_gives_up_leaves_the_task_as_its_run_left_it(curated: Callable[..., Workspace]) -> None:
    class Tired(Reader):
        def mending(self, inputs: dict[str, list[str]]) -> dict[str, Any]:
            return super().mending(inputs) | {"give_up": "the table was changed by hand"}

    (task,) = curated(Tired(files=("study.py",)), rehearsal_s=0).tasks()
    assert task.status is Status.REJECTED
    assert "not reproduced: study.py: 2 of 9 claims are contradicted" in task.status_reason
