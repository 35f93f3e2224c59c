"""What was handed in: the patch within its limits, secrets blanked, the response read; the same twice."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from evaluation.episode import EpisodeFolder
from evaluation.harness.submission_reader import SubmissionLimits, take_submission
from evaluation.harness.workspace import workspace_after
from evaluation.submission import Submission
from pipeline.digests import file_digest, tree_digest
from pipeline.llm import register_secret
from pipeline.sandbox import ProducedFile, RunResult

RESPONSE = json.dumps({"conclusion": {"text": "A", "numbers": {"score": 1.5}}})


@pytest.fixture
def trees(tmp_path: Path) -> tuple[Path, Path, EpisodeFolder]:
    """Masked repository, workspace (still equal), episode."""
    masked, workspace = tmp_path / "masked", tmp_path / "workspace"
    (masked / "src").mkdir(parents=True)
    (masked / "src" / "a.py").write_text("print(1)\n")
    (masked / "notes.md").write_text("old\n")
    shutil.copytree(masked, workspace)
    return masked, workspace, EpisodeFolder(tmp_path / "episode")


def test_an_untouched_workspace_is_an_empty_submission(trees: tuple[Path, Path, EpisodeFolder]) -> None:
    masked, workspace, folder = trees
    taken = take_submission(workspace, masked, folder)
    assert (taken.response, taken.reproduce, taken.changed, taken.patch_sha256) == (None, False, (), "")
    assert (folder.submission / "patch.diff").read_bytes() == b""
    assert any(problem.where == "response.json" for problem in taken.problems)


def test_what_was_changed_is_taken_and_stored(trees: tuple[Path, Path, EpisodeFolder]) -> None:
    masked, workspace, folder = trees
    (workspace / "src" / "a.py").write_text("print(2)\n")
    (workspace / "notes.md").unlink()
    (workspace / "response.json").write_text(RESPONSE)
    (workspace / "reproduce.sh").write_text("python src/a.py\n")
    (workspace / "src" / "__pycache__").mkdir()
    (workspace / "src" / "__pycache__" / "a.pyc").write_bytes(b"\0")
    taken = take_submission(workspace, masked, folder)
    assert [(item.path, item.action) for item in taken.changed] == [
        ("notes.md", "deleted"), ("reproduce.sh", "added"), ("response.json", "added"), ("src/a.py", "modified"),
    ]  # fmt: skip
    assert taken.response is not None
    assert taken.response.conclusion.numbers == {"score": 1.5}
    assert taken.reproduce
    assert taken.patch_sha256 == file_digest(folder.submission / "patch.diff")
    assert (folder.submission / "files" / "src" / "a.py").read_text() == "print(2)\n"
    assert (folder.submission / "reproduce.sh").is_file()
    stored = Submission.model_validate_json((folder.submission / "submission.json").read_bytes())
    assert stored == taken
    before = tree_digest(folder.submission)
    assert take_submission(workspace, masked, folder) == taken
    assert tree_digest(folder.submission) == before


def test_files_over_the_limits_are_left_out_and_named(trees: tuple[Path, Path, EpisodeFolder]) -> None:
    masked, workspace, folder = trees
    (workspace / "response.json").write_text(RESPONSE)
    (workspace / "large.bin").write_bytes(b"x" * 5000)
    for number in range(5):
        (workspace / f"part{number}").write_bytes(b"y" * 300)
    limits = SubmissionLimits(file_bytes=1000, patch_bytes=1000, files=100)
    taken = take_submission(workspace, masked, folder, limits=limits)
    kept = {item.path for item in taken.changed}
    assert "response.json" in kept
    assert "large.bin" in taken.truncated
    assert kept | set(taken.truncated) == {"response.json", "large.bin", *(f"part{n}" for n in range(5))}
    assert sum(item.size for item in taken.changed) <= 1000


@pytest.mark.parametrize(
    "secret",
    ["sk-ant-" + "a1B2" * 10, "ghp_" + "Z9" * 20, "AKIA" + "ABCD1234EFGH5678", "registered-secret-value-1234567"],
)
def test_secrets_are_blanked_in_files_and_patch(trees: tuple[Path, Path, EpisodeFolder], secret: str) -> None:
    register_secret("A_TEST_KEY", "registered-secret-value-1234567")
    masked, workspace, folder = trees
    (workspace / "config.py").write_text(f"KEY = '{secret}'  # basic configuration of the task-specific run\n")
    taken = take_submission(workspace, masked, folder)
    assert taken.redacted == ("config.py",)
    for path in folder.submission.rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes()
    assert "basic configuration of the task-specific run" in (folder.submission / "files" / "config.py").read_text()


def test_code_that_only_looks_like_a_secret_stays_as_it_is(trees: tuple[Path, Path, EpisodeFolder]) -> None:
    masked, workspace, folder = trees
    code = "risk-averse-policy-gradient-baseline\nBasic statistics; Bearer tokenisation\nsk-learn\nhf_hub_download\n"
    (workspace / "code.py").write_text(code)
    assert take_submission(workspace, masked, folder).redacted == ()
    assert (folder.submission / "files" / "code.py").read_text() == code


def test_a_response_that_is_a_link_or_too_long_is_not_read(trees: tuple[Path, Path, EpisodeFolder]) -> None:
    masked, workspace, folder = trees
    (workspace / "response.json").symlink_to("/etc/passwd")
    assert take_submission(workspace, masked, folder).response is None
    (workspace / "response.json").unlink()
    (workspace / "response.json").write_text('"' + "x" * 5000 + '"')
    assert take_submission(workspace, masked, folder, limits=SubmissionLimits(response_bytes=1000)).response is None


def test_the_workspace_is_put_together_again_without_touching_the_masked_files(tmp_path: Path) -> None:
    masked, changed, into = tmp_path / "masked", tmp_path / "changed", tmp_path / "into"
    for name, text in (
        ("keep.py", "k"),
        ("edit.py", "old"),
        ("gone.py", "g"),
        ("dir", "was a file"),
        (".git/HEAD", "r"),
    ):
        (masked / name).parent.mkdir(parents=True, exist_ok=True)
        (masked / name).write_text(text)
    (masked / "link").symlink_to("edit.py")
    before = tree_digest(masked)
    for name, text in (("edit.py", "new"), ("dir/inner.py", "i"), ("link", "now a file")):
        (changed / name).parent.mkdir(parents=True, exist_ok=True)
        (changed / name).write_text(text)
    produced = tuple(
        ProducedFile(path=p, size=1, sha256="", executable=p == "edit.py") for p in ("dir/inner.py", "edit.py", "link")
    )
    workspace_after(masked, changed, RunResult(commands=(), produced=produced, removed=("dir", "gone.py")), into)
    assert tree_digest(masked) == before
    assert {p.relative_to(into).as_posix() for p in into.rglob("*") if p.is_file()} == {
        "keep.py",
        "edit.py",
        "dir/inner.py",
        "link",
    }
    assert (into / "edit.py").read_text() == "new"
    assert (into / "edit.py").stat().st_mode & 0o111
    assert not (into / "link").is_symlink()
