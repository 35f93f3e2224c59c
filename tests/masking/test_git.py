"""Git's plumbing: what went wrong is told, and every object of a database is seen."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from masking import git as plumbing
from masking.git import BRANCH, git, import_commit, objects
from masking.tree import Entry, entries
from pipeline.errors import ExpbenchError, FailureKind
from tests.masking import builders


def repository(tmp_path: Path, files: dict[str, bytes]) -> Path:
    root = tmp_path / "masked"
    builders.write_tree(root, files)
    git("init", "--quiet", "--template=", f"--initial-branch={BRANCH}", directory=root)
    import_commit(root, [(entry, None) for entry in entries(root)])
    return root


def without_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))


def test_a_command_that_fails_says_which_and_why(tmp_path: Path) -> None:
    root = repository(tmp_path, {"a": b"1"})
    with pytest.raises(ExpbenchError) as caught:
        git("cat-file", "blob", "nowhere", directory=root)
    error = caught.value
    assert (error.kind, error.object) == (FailureKind.INTERNAL, "git cat-file in masked")
    assert error.cause == "fatal: Not a valid object name nowhere"
    assert error.next_step == "Report this with the message above"
    assert git("rev-parse", "--verify", "-q", "nowhere", directory=root, check=False) == b""


def test_a_full_disk_is_told_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> subprocess.CompletedProcess[bytes]:
        return subprocess.CompletedProcess([], 1, b"", b"fatal: write error: No space left on device\nfatal: end\n")

    monkeypatch.setattr(plumbing.subprocess, "run", full)
    with pytest.raises(ExpbenchError) as caught:
        git("init", directory=tmp_path)
    assert (caught.value.kind, caught.value.cause) == (FailureKind.DISK_FULL, "fatal: end")
    assert caught.value.next_step == "Free space and run again"


def test_a_command_without_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    silent = subprocess.CompletedProcess([], 1, b"", b"")
    monkeypatch.setattr(plumbing.subprocess, "run", lambda *_, **__: silent)
    with pytest.raises(ExpbenchError, match="failed without a message"):
        git("init", directory=tmp_path)


def test_a_missing_program_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_git(monkeypatch, tmp_path)
    for call in (lambda: git("init", directory=tmp_path), lambda: import_commit(tmp_path, [])):
        with pytest.raises(ExpbenchError) as caught:
            call()
        assert (caught.value.kind, caught.value.object) == (FailureKind.TOOL_MISSING, "git")


def test_a_commit_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    with pytest.raises(ExpbenchError) as caught:
        import_commit(tmp_path, [])  # no repository
    assert caught.value.object.startswith("git fast-import in ")


def test_what_fails_while_files_are_read_ends_git_and_goes_on(tmp_path: Path) -> None:
    root = repository(tmp_path, {"a": b"1"})
    gone = Entry(b"gone", "gone", b"/nowhere/gone", False, False, 1)
    before = git("rev-parse", BRANCH, directory=root)
    with pytest.raises(FileNotFoundError):
        import_commit(root, [(gone, None)])
    assert git("rev-parse", BRANCH, directory=root) == before
    assert not list((root / ".git").glob("fast_import_crash*"))


def test_what_git_said_is_told_when_it_ends_before_it_has_read_all(tmp_path: Path) -> None:
    builders.write_tree(tmp_path, {"large": b"x" * (1 << 20)})
    with pytest.raises(ExpbenchError, match="not a git repository"):
        import_commit(tmp_path, [(entry, None) for entry in entries(tmp_path)])


def test_any_byte_may_stand_in_a_name(tmp_path: Path) -> None:
    names = [bytes([byte, 120]) for byte in range(1, 256) if byte != ord("/")]
    root = tmp_path / "masked"
    builders.write_tree(root, {os.fsdecode(name): name for name in names})
    git("init", "--quiet", "--template=", f"--initial-branch={BRANCH}", directory=root)
    import_commit(root, [(entry, None) for entry in entries(root)])
    assert git("ls-tree", "-r", "-z", "--name-only", "HEAD", directory=root).split(b"\0") == [*sorted(names), b""]


def test_every_object_is_seen_once_and_skipped_ones_are_not_read(tmp_path: Path) -> None:
    root = repository(tmp_path, {"a": b"first\n", "b": b"", "c": b"x\n\n" * 5000})
    dangling = subprocess.run(
        ["git", "hash-object", "-w", "--stdin"], cwd=root, input=b"loose", capture_output=True, check=True
    ).stdout.decode().strip()  # fmt: skip
    found = {item.id: item for item in objects(root)}
    assert sorted(item.type for item in found.values()) == ["blob", "blob", "blob", "blob", "commit", "tree"]
    assert found[dangling].data == b"loose"
    assert {item.data for item in found.values() if item.type == "blob"} == {b"first\n", b"", b"x\n\n" * 5000, b"loose"}
    skipped = [item for item in objects(root, skip=frozenset({dangling})) if item.id == dangling]
    assert [(item.type, item.data) for item in skipped] == [("blob", b"")]
    assert len(list(objects(root, skip=frozenset({dangling})))) == len(found)


def test_a_new_repository_has_only_what_git_needs(tmp_path: Path) -> None:
    root = repository(tmp_path, {"a": b"1"})
    assert not list((root / ".git").rglob("*.sample"))
    assert not (root / ".git" / "logs").exists()
