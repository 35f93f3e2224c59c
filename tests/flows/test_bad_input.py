"""What a user sees who gives `expbench curate` something it cannot use: object, cause, consequence, next step."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pymupdf
import pytest

GIT = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@b",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b",
}


def git(*arguments: str, at: Path) -> str:
    done = subprocess.run(["git", *arguments], cwd=at, env=os.environ | GIT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def curate(*arguments: object, out: Path, env: dict[str, str] | None = None) -> tuple[int, dict[str, object]]:
    """Run the command line as a user does; returns exit code and the error it printed."""
    command = [sys.executable, "-m", "flows.cli", "curate", "--out", str(out), "--json", *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, env=os.environ | (env or {})
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, json.loads(done.stdout)


def pdf_with_text(path: Path, text: str = "An Experiment\n\nAbstract\nWe measure accuracy.") -> Path:
    with pymupdf.open() as document:
        document.new_page().insert_text((72, 72), text)
        document.save(path)
    return path


@pytest.fixture
def paper(tmp_path: Path) -> Path:
    return pdf_with_text(tmp_path / "paper.pdf")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "code"
    root.mkdir()
    git("init", "-q", "-b", "main", at=root)
    (root / "run.py").write_text("print('accuracy 0.5')\n")
    git("add", "-A", at=root)
    git("commit", "-qm", "code", at=root)
    return root


def not_a_pdf(path: Path) -> None:
    path.write_text("just text")


def a_lying_extension(path: Path) -> None:
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 100)


def empty_file(path: Path) -> None:
    path.write_bytes(b"")


def truncated(path: Path) -> None:
    pdf_with_text(path)
    path.write_bytes(path.read_bytes()[:40])


def encrypted(path: Path) -> None:
    with pymupdf.open() as document:
        document.new_page().insert_text((72, 72), "secret")
        document.save(path, encryption=pymupdf.PDF_ENCRYPT_AES_256, user_pw="user", owner_pw="owner")


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (not_a_pdf, "paper_invalid"),
        (a_lying_extension, "paper_invalid"),
        (empty_file, "paper_empty"),
        (truncated, "paper_unreadable"),
        (encrypted, "paper_encrypted"),
        (lambda path: None, "paper_invalid"),
        (lambda path: path.mkdir(), "paper_invalid"),
    ],
    ids=["text", "png", "empty", "truncated", "encrypted", "missing", "directory"],
)
def test_a_paper_that_cannot_be_read(tmp_path: Path, repository: Path, make, error: str) -> None:  # type: ignore[no-untyped-def]
    bad = tmp_path / "bad.pdf"
    make(bad)
    code, told = curate(bad, repository, out=tmp_path / "work")
    assert (code, told["error"]) == (3, error)
    assert str(bad) in str(told["object"])
    assert told["cause"]
    assert told["consequence"]
    assert told["next_step"]
    assert not (tmp_path / "work").exists()


def plain_directory(root: Path) -> str:
    (root / "plain").mkdir()
    return str(root / "plain")


def no_commits(root: Path) -> str:
    (root / "empty").mkdir()
    git("init", "-q", at=root / "empty")
    return str(root / "empty")


def no_code(root: Path) -> str:
    path = root / "prose"
    path.mkdir()
    git("init", "-q", at=path)
    (path / "README.md").write_text("words")
    git("add", "-A", at=path)
    git("commit", "-qm", "x", at=path)
    return str(path)


def missing_submodule(root: Path) -> str:
    path = root / "parent"
    path.mkdir()
    git("init", "-q", at=path)
    (path / "run.py").write_text("print(1)")
    (path / ".gitmodules").write_text('[submodule "lib"]\n\tpath = lib\n\turl = ../nowhere\n')
    git("add", "-A", at=path)
    git("update-index", "--add", "--cacheinfo", "160000," + "1" * 40 + ",lib", at=path)
    git("commit", "-qm", "x", at=path)
    return str(path)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda root: str(root / "missing"), "repository_invalid"),
        (plain_directory, "repository_invalid"),
        (no_commits, "repository_empty"),
        (no_code, "repository_no_code"),
        (missing_submodule, "submodule_unavailable"),
        (lambda root: "--upload-pack=touch hacked", "repository_invalid"),
        (lambda root: "ext::sh -c touch% hacked", "repository_invalid"),
    ],
    ids=["missing", "not git", "no commits", "no code", "submodule", "option", "command"],
)
def test_a_repository_that_cannot_be_used(tmp_path: Path, paper: Path, make, error: str) -> None:  # type: ignore[no-untyped-def]
    source = make(tmp_path)
    before = sorted(path.name for path in tmp_path.iterdir())
    code, told = (
        curate("--", paper, source, out=tmp_path / "work")
        if source.startswith("-")
        else curate(paper, source, out=tmp_path / "work")
    )
    assert (code, told["error"]) == (4, error)
    assert told["next_step"]
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_an_unknown_commit(tmp_path: Path, paper: Path, repository: Path) -> None:
    code, told = curate(paper, repository, "--commit", "deadbeef", out=tmp_path / "work")
    assert (code, told["error"]) == (4, "commit_unknown")
    assert not (tmp_path / "work").exists()


def test_docker_asked_for_and_missing(tmp_path: Path, paper: Path, repository: Path) -> None:
    nowhere = {"DOCKER_HOST": f"unix://{tmp_path}/no.sock"}
    code, told = curate(paper, repository, "--sandbox", "docker", out=tmp_path / "work", env=nowhere)
    assert (code, told["error"]) == (7, "sandbox_unavailable")
    assert "--sandbox process" in str(told["next_step"])
    assert not (tmp_path / "work").exists()


def test_the_model_engine_is_not_pretended(tmp_path: Path, paper: Path, repository: Path) -> None:
    code, told = curate(paper, repository, "--engine", "model", out=tmp_path / "work")
    assert (code, told["error"]) == (8, "engine_unavailable")


def test_a_directory_with_other_content_is_not_touched(tmp_path: Path, paper: Path, repository: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "thesis.tex").write_text("years")
    code, told = curate(paper, repository, "--sandbox", "process", out=work)
    assert (code, told["error"]) == (5, "workspace_conflict")
    assert [path.name for path in work.iterdir()] == ["thesis.tex"]


def test_a_workspace_is_resumed_only_when_asked_and_only_with_its_inputs(
    tmp_path: Path, paper: Path, repository: Path
) -> None:
    work = tmp_path / "work"
    code, told = curate(paper, repository, "--sandbox", "process", out=work)
    assert code == 6, told  # a paper without results: no tasks, and that is said, not hidden
    assert told["tasks"] == []
    code, told = curate(paper, repository, "--sandbox", "process", out=work)
    assert (code, told["error"]) == (5, "workspace_conflict")
    assert "--resume" in str(told["next_step"])
    other = pdf_with_text(tmp_path / "other.pdf", "Another Paper\n\nAbstract\nOther words.")
    code, told = curate(other, repository, "--sandbox", "process", "--resume", out=work)
    assert (code, told["error"]) == (5, "workspace_conflict")
    assert "paper_sha256" in str(told["cause"])
    code, told = curate(paper, repository, "--sandbox", "process", "--resume", out=work)
    assert code == 6, told


def test_a_dry_run_writes_nothing(tmp_path: Path, paper: Path, repository: Path) -> None:
    work = tmp_path / "work"
    code, told = curate(paper, repository, "--sandbox", "process", "--dry-run", out=work)
    assert code == 0, told
    assert told["pages"] == 1
    assert told["sandbox"] == "process"
    assert told["commit"] == git("rev-parse", "HEAD", at=repository)
    assert not work.exists()
