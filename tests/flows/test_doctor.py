"""`expbench doctor`: it reports what is and is not there, and never a secret."""

from __future__ import annotations

import io
import json
from pathlib import Path

import docker
import docker.errors
import pytest
from rich.console import Console

import flows.doctor as doctor
from flows.doctor import Check, CheckStatus, diagnose, to_table
from pipeline.sandbox.base import SandboxStatus
from pipeline.settings import Settings

_YES = SandboxStatus(name="docker", available=True, detail="20.10")
_NO = SandboxStatus(name="docker", available=False, detail="no socket", next_step="start dockerd")
_PROCESS = SandboxStatus(name="process", available=True, detail="with limits")


@pytest.fixture(autouse=True)
def _machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("EXPBENCH_SANDBOX", "EXPBENCH_ENGINE", "EXPBENCH_BASE_IMAGE", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(doctor, "_docker_status", lambda: _NO)
    monkeypatch.setattr(doctor, "_process_status", lambda: _PROCESS)


def _by_name(settings: Settings | None = None) -> dict[str, Check]:
    checks = diagnose(settings)
    assert len({check.name for check in checks}) == len(checks)
    return {check.name: check for check in checks}


def test_says_what_is_there() -> None:
    checks = _by_name()
    assert checks["Python"].status is CheckStatus.OK
    assert checks["git"].status is CheckStatus.OK
    assert checks["uv"].status is CheckStatus.OK
    assert checks["keyless engine"].status is CheckStatus.OK
    assert "available" in checks["memory"].detail
    assert "GB free" in checks["disk"].detail


def test_without_docker_the_process_sandbox_is_announced() -> None:
    checks = _by_name()
    assert checks["Docker Engine"].next_step == "start dockerd"
    assert "base image" not in checks
    assert checks["sandbox by default"].status is CheckStatus.WARN
    assert "process" in checks["sandbox by default"].detail


def test_with_docker_it_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_docker_status", lambda: _YES)

    def fail(**options: object) -> None:
        raise docker.errors.DockerException("went away")

    monkeypatch.setattr(docker, "from_env", fail)
    checks = _by_name()
    assert checks["sandbox by default"] == Check(name="sandbox by default", status=CheckStatus.OK, detail="docker")
    assert "went away" in checks["base image"].detail


def test_a_sandbox_that_was_asked_for_and_is_not_there() -> None:
    check = _by_name(Settings(sandbox="docker"))["sandbox by default"]
    assert check.status is CheckStatus.MISSING
    assert check.next_step == "start dockerd"


def test_the_engine_of_the_settings_is_named() -> None:
    assert _by_name()["engine by default"].detail == "keyless"
    assert _by_name(Settings(engine="model"))["engine by default"].status is CheckStatus.MISSING


def test_secrets_are_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-verysecret")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://me:hunter2@models.example.org/v1?token=abc")
    checks = diagnose()
    text = json.dumps([check.model_dump(mode="json") for check in checks])
    assert not any(secret in text for secret in ("verysecret", "hunter2", "abc"))
    assert "models.example.org" in text


def test_missing_programs_are_reported_with_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    checks = _by_name()
    assert checks["git"].status is CheckStatus.MISSING
    assert "apt-get install tesseract-ocr" in checks["Tesseract"].next_step
    assert checks["GPUs"].status is CheckStatus.WARN


def test_tesseract_without_english(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "tesseract"
    program.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "tesseract 5.3.0" || printf "List (1):\\ndeu\\n"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    check = _by_name()["Tesseract"]
    assert check.status is CheckStatus.WARN
    assert "tesseract-ocr-eng" in check.next_step


def test_the_table_shows_every_check_and_takes_text_as_it_is() -> None:
    checks = (Check(name="a", status=CheckStatus.OK, detail="[red]x[/red]"), *diagnose())
    out = io.StringIO()
    Console(file=out, width=200).print(to_table(checks))
    text = out.getvalue()
    assert "[red]x[/red]" in text
    assert all(check.name in text for check in checks)
