"""The main job with a model, end to end: a real endpoint on the loopback interface, a real sandbox."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.examples import MaterialisedExample, list_examples, materialise
from pipeline.store import Workspace
from pipeline.task import Status, Verdict
from tests.doubles.protocol_server import ProtocolServer
from tests.extractors.engine.reader import WRONG_NUMBER, WRONG_QUOTE, Reader

ROOT = Path(__file__).resolve().parents[2]
CANARY = "sk-canary-7a3e5b1d90"

pytestmark = pytest.mark.docker


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
    }
    command = [sys.executable, "-m", "flows.cli", "curate", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900, check=False)


def test_a_candidate_comes_out_with_what_was_paid_and_nothing_made_up(
    example: MaterialisedExample, server: ProtocolServer, tmp_path: Path
) -> None:
    out = tmp_path / "work"
    stopped = run(example, out, server.base_url, "--max-calls", "20")
    assert (stopped.returncode, json.loads(stopped.stdout)["error"]) == (9, "budget_exceeded")
    assert len(server.requests) == 20
    done = run(example, out, server.base_url, "--resume", "--max-calls", "500")
    assert done.returncode == 0, done.stderr
    (task,) = Workspace(out).tasks()
    assert task.status is Status.MASKED, task.status_reason
    assert task.provenance.engine == "model"
    assert task.provenance.model == "reader"
    names = {name for name, _ in task.provenance.prompts}
    assert {"takeaways", "subsection", "refine", "read_table", "choose", "describe_steps", "monitor"} <= names
    assert task.validation is not None
    assert task.validation.verdict is Verdict.PASS
    assert task.truth.requirements
    assert all(requirement.text.startswith("The code does this: ") for requirement in task.truth.requirements)
    assert all(requirement.spans for requirement in task.truth.requirements)
    told = json.dumps([task.model_dump(mode="json", exclude={"problems"})])
    assert WRONG_QUOTE not in told
    assert f'"{WRONG_NUMBER}"' not in told
    page = (out / "index.html").read_text(encoding="utf-8")
    assert "its quote is not in the paper" in page
    for path in out.rglob("*"):
        if path.is_file() and not path.is_symlink():
            assert CANARY.encode() not in path.read_bytes(), path
    # nothing is asked twice, and another model is another workspace
    asked = len(server.requests)
    assert run(example, out, server.base_url, "--resume").returncode == 0
    assert len(server.requests) == asked
    other = run(example, out, server.base_url, "--resume", "--model", "another")
    assert (other.returncode, json.loads(other.stdout)["error"]) == (5, "workspace_conflict")
