"""`expbench desk` as a process: what it prints, how it ends, and that nothing is lost when it is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai
import pytest

from pipeline.desk.folder import open_desk
from pipeline.llm.environment import read_environment
from pipeline.network.listening import listen
from tests.llm_fixtures import no_ambient_model  # noqa: F401 - fixture

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-c", "from flows.cli import main; main()", "desk"]


@contextmanager
def running(*arguments: object) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    with subprocess.Popen(
        [*COMMAND, *map(str, arguments), "--json"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            said = ""
            while not said.endswith("}\n"):
                line = process.stdout.readline()
                assert line, process.stderr.read()
                said += line
                if line == "}\n":
                    break
            yield process, json.loads(said)
        finally:
            process.kill()


def ended(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )


def ask(url: str, **options: Any) -> str | None:
    with openai.OpenAI(base_url=url, api_key="any", max_retries=8) as client:
        messages = [{"role": "user", "content": "Which metric?"}]
        return client.chat.completions.create(model="desk", messages=messages, **options).choices[0].message.content


def entries(desk: Path) -> list[str]:
    return [path.name for path in (desk / "inbox").glob("[0-9]*")] if (desk / "inbox").exists() else []


def test_a_desk_that_is_killed_and_opened_again(tmp_path: Path, no_ambient_model: None):  # noqa: F811
    desk = tmp_path / "desk"
    with ThreadPoolExecutor(1) as pool:
        with running(desk, "--port", 0) as (process, said):
            url = said["url"]
            answer = pool.submit(ask, url)
            while not entries(desk):
                time.sleep(0.05)
            process.send_signal(signal.SIGKILL)
            process.wait()
        (name,) = entries(desk)
        (desk / "outbox" / f"{name}.md").write_text("Accuracy.")
        with running(desk, "--port", url.rpartition(":")[2].removesuffix("/v1"), "--by", "A. Reader"):
            assert answer.result(timeout=120) == "Accuracy."
            assert ask(url) == "Accuracy."  # at once, from the disk
            assert entries(desk) == [name]
    assert json.loads((desk / "inbox" / name / "answer.json").read_text())["by"] == "A. Reader"


def test_what_it_prints_points_the_model_engine_at_it(tmp_path, no_ambient_model, monkeypatch):  # noqa: F811
    with running(tmp_path, "--port", 0) as (process, said):
        for name, value in said["environment"].items():
            monkeypatch.setenv(name, value)
        config = read_environment()
        assert (config.model, config.base_url, config.endpoint) == ("desk", said["url"], "desk")
        assert said["url"].startswith("http://127.0.0.1:")
        process.send_signal(signal.SIGTERM)
        told, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert "what waits is kept" in told


def test_what_waits_is_listed_beside_a_running_desk(tmp_path: Path):
    with open_desk(tmp_path, "nobody") as folder:
        folder.file_request({"model": "desk", "messages": [{"role": "user", "content": "Which [metric]?"}]})
        told = ended(tmp_path, "--list")
        listed = json.loads(ended(tmp_path, "--list", "--json").stdout)
    assert told.returncode == 0
    assert "1 waiting" in told.stdout
    assert "Which [metric]?" in told.stdout
    assert listed[0]["takes"] == [".md", ".declined.md"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_that_is_not_writable(tmp_path: Path):
    tmp_path.chmod(0o500)
    told = ended(tmp_path / "desk")
    tmp_path.chmod(0o700)
    assert told.returncode == 2
    assert "cannot be written" in told.stderr


def test_an_address_that_is_taken_and_a_place_that_is_no_directory(tmp_path: Path):
    with listen("127.0.0.1", 0) as listener:
        told = ended(tmp_path / "desk", "--port", listener.getsockname()[1])
    assert told.returncode == 2
    assert "cannot be listened on" in told.stderr
    (tmp_path / "file").write_text("")
    told = ended(tmp_path / "file")
    assert told.returncode == 2
    assert "cannot be written" in told.stderr
