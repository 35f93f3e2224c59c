"""Submission, patch and workspace at their bounds: sizes, counts, modes, links, git's own names, and what is said."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from evaluation.episode import EpisodeFolder
from evaluation.harness.patches import Change, compare, is_git, make_patch
from evaluation.harness.submission_reader import SubmissionLimits, take_submission
from evaluation.harness.workspace import workspace_after, write_inbox
from evaluation.submission import Submission
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.sandbox import ProducedFile, RunResult
from pipeline.schema import Problem, Severity

Trees = tuple[Path, Path, EpisodeFolder]


@pytest.fixture
def trees(tmp_path: Path) -> Trees:
    masked, workspace = tmp_path / "masked", tmp_path / "workspace"
    masked.mkdir()
    (masked / "a.py").write_text("print(1)\n")
    shutil.copytree(masked, workspace)
    return masked, workspace, EpisodeFolder(tmp_path / "episode")


def said(taken: Submission) -> list[tuple[str, str, Severity]]:
    assert all(problem.component == "evaluation.submission" for problem in taken.problems)
    return [(p.where, p.message, p.severity) for p in taken.problems if p.where != "response.json"]


def test_a_file_of_just_the_size_is_taken(trees: Trees) -> None:
    masked, workspace, folder = trees
    (workspace / "fits").write_bytes(b"x" * 100)
    (workspace / "over").write_bytes(b"x" * 101)
    taken = take_submission(workspace, masked, folder, limits=SubmissionLimits(file_bytes=100))
    assert [item.path for item in taken.changed] == ["fits"]
    assert taken.truncated == ("over",)
    assert said(taken) == [
        ("over", "is larger than 0 MB and left out (101)", Severity.WARNING),
        ("patch", "1 changed files are left out of the patch because of the limits of size", Severity.ERROR),
    ]


def test_small_files_go_before_large_ones_up_to_the_sum(trees: Trees) -> None:
    masked, workspace, folder = trees
    for name, size in (("large", 60), ("mid", 30), ("small", 10), ("next", 11)):
        (workspace / name).write_bytes(b"x" * size)
    taken = take_submission(workspace, masked, folder, limits=SubmissionLimits(patch_bytes=51))
    assert [item.path for item in taken.changed] == ["mid", "next", "small"]
    assert taken.truncated == ("large",)
    taken = take_submission(workspace, masked, folder, limits=SubmissionLimits(patch_bytes=50))
    assert taken.truncated == ("large", "mid")


def test_what_was_asked_for_goes_before_everything(trees: Trees) -> None:
    masked, workspace, folder = trees
    (workspace / "response.json").write_text("{}" + " " * 50)
    (workspace / "reproduce.sh").write_text("#" * 50)
    (workspace / "small").write_text("x")
    taken = take_submission(workspace, masked, folder, limits=SubmissionLimits(files=2))
    assert [item.path for item in taken.changed] == ["reproduce.sh", "response.json"]
    assert taken.truncated == ("small",)
    assert said(taken)[-1][0] == "patch"


def test_a_deletion_takes_no_room(trees: Trees) -> None:
    masked, workspace, folder = trees
    (workspace / "a.py").unlink()
    taken = take_submission(workspace, masked, folder, limits=SubmissionLimits(patch_bytes=0))
    assert [(item.path, item.action) for item in taken.changed] == [("a.py", "deleted")]
    assert said(taken) == []


@pytest.mark.parametrize("name", ["x.pyc", "d/__pycache__/a", ".git/config", "d/.git", ".GIT/x", "git~1", ".git. /x"])
def test_caches_and_gits_own_names_are_no_part(trees: Trees, name: str) -> None:
    masked, workspace, folder = trees
    (workspace / name).parent.mkdir(parents=True, exist_ok=True)
    (workspace / name).write_text("x")
    assert take_submission(workspace, masked, folder).changed == ()


def test_what_copying_out_had_to_say_is_a_problem_of_the_submission(trees: Trees) -> None:
    masked, workspace, folder = trees
    told = Problem(component="sandbox.copy", where="big", message="too big", severity=Severity.INFO)
    assert said(take_submission(workspace, masked, folder, problems=(told,))) == [("big", "too big", Severity.INFO)]


def test_files_keep_their_mode_and_links_are_in_the_patch_alone(trees: Trees) -> None:
    masked, workspace, folder = trees
    for name, mode in (("run.sh", 0o755), ("plain", 0o600)):
        (workspace / name).write_text("x\n")
        (workspace / name).chmod(mode)
    (workspace / "link").symlink_to("/etc/passwd")
    take_submission(workspace, masked, folder)
    files = folder.submission / "files"
    assert sorted(os.listdir(files)) == ["plain", "run.sh"]  # noqa: PTH208
    assert [(files / name).stat().st_mode & 0o777 for name in ("run.sh", "plain")] == [0o755, 0o644]
    assert b"+/etc/passwd" in (folder.submission / "patch.diff").read_bytes()


def test_a_script_that_the_repository_brings_along_counts(trees: Trees) -> None:
    masked, workspace, folder = trees
    for tree in (masked, workspace):
        (tree / "reproduce.sh").write_text("echo\n")
    assert take_submission(workspace, masked, folder).reproduce
    (workspace / "reproduce.sh").unlink()
    assert not take_submission(workspace, masked, folder).reproduce
    (masked / "reproduce.sh").unlink()
    (workspace / "reproduce.sh").mkdir()
    assert not take_submission(workspace, masked, folder).reproduce


def test_bytes_that_are_no_text_come_through_as_they_are_beside_a_secret(trees: Trees) -> None:
    masked, workspace, folder = trees
    (workspace / "b").write_bytes(b"\xff\xfe key=ghp_" + b"Z9" * 20 + b"\x00\x80")
    (workspace / "c").write_bytes(b"\xff\xfe\x00")
    taken = take_submission(workspace, masked, folder)
    assert (folder.submission / "files" / "b").read_bytes() == b"\xff\xfe key=[redacted]\x00\x80"
    assert (folder.submission / "files" / "c").read_bytes() == b"\xff\xfe\x00"
    assert (taken.redacted, said(taken)) == (
        ("b",),
        [("b", "held what looks like a secret: it was blanked", Severity.WARNING)],
    )


@pytest.mark.parametrize("what", ["none", "link", "directory", "too long", "just fits", "deleted"])
def test_why_there_is_no_response(trees: Trees, what: str) -> None:
    masked, workspace, folder = trees
    path = workspace / "response.json"
    if what == "link":
        path.symlink_to("a.py")
    elif what == "directory":
        path.mkdir()
        (path / "x").write_text("{}")
    elif what == "deleted":
        (masked / "response.json").write_text("{}")
    elif what != "none":
        path.write_text("{}" + " " * (8 if what == "just fits" else 9))
    taken = take_submission(workspace, masked, folder, limits=SubmissionLimits(response_bytes=10))
    found = [(p.message, p.severity) for p in taken.problems if p.where == "response.json"]
    reasons = {"link": "is not a regular file", "too long": "is larger than 0 MB"}
    assert found == ([] if what == "just fits" else [(reasons.get(what, "there is none"), Severity.ERROR)])
    assert (taken.response is None) == (what != "just fits")
    assert (folder.submission / "response.json").is_file() == (what in {"just fits", "too long"})


# --- comparison and patch


@pytest.mark.parametrize(
    ("name", "git"),
    [(".git", True), (".GIT", True), (".git.", True), (".git ", True), ("git~1", True), ("GIT~1", True), ("git", False),
     (".gitignore", False), ("git~2", False), (".gi", False), (" .git", False)],
)  # fmt: skip
def test_names_that_git_takes_for_its_own(name: str, git: bool) -> None:
    assert is_git(name) == git


def test_every_kind_of_difference_is_one(tmp_path: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    for root, end in ((first, b"a"), (second, b"b")):
        root.mkdir()
        (root / "same").write_bytes(b"x" * (1 << 20))
        (root / "late").write_bytes(b"x" * (1 << 20) + end)  # in the second piece that is read
        (root / "longer").write_bytes(end * (1 if end == b"a" else 2))
        (root / "to").symlink_to(end.decode())
        (root / "still").symlink_to("same")
        (root / "mode").write_text("m")
        (root / "kind").write_text("k")
        (root / "group").write_text("g")
    (second / "group").chmod(0o654)  # not the owner's bit
    (second / "mode").chmod(0o744)
    (second / "kind").unlink()
    (second / "kind").symlink_to("k")
    (second / "dir").symlink_to(tmp_path)
    os.mkfifo(second / "pipe")
    assert [change.path for change in compare(first, second)] == ["dir", "kind", "late", "longer", "mode", "to"]
    assert [change.path for change in compare(second, first)] == ["dir", "kind", "late", "longer", "mode", "to"]


def test_a_link_is_no_binary_file_and_a_nul_far_in_makes_none(tmp_path: Path) -> None:
    (tmp_path / "near").write_bytes(b"x" * 7999 + b"\0")
    (tmp_path / "far").write_bytes(b"x" * 8000 + b"\0")
    (tmp_path / "link").symlink_to("near")
    found = {n: Change(n, None, tmp_path / n).described for n in ("near", "far", "link")}
    assert {name: (item.binary, item.size) for name, item in found.items()} == {
        "near": (True, 8000),
        "far": (False, 8001),
        "link": (False, 4),
    }


def test_a_patch_says_what_git_would(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    new.mkdir()
    (old / "a").write_text("".join(f"{n}\n" for n in range(9)))
    (new / "a").write_text("".join(f"{n if n != 4 else 'x'}\n" for n in range(9)))
    (old / "moved").write_text("1\n2\n3\n")
    (new / "there").write_text("1\n2\n3\n")
    (new / "b").write_bytes(b"\0")
    patch = make_patch(compare(old, new)).decode()
    assert "@@ -2,7 +2,7 @@" in patch
    assert "rename" not in patch
    assert "GIT binary patch" in patch
    assert "index 0000000000000000000000000000000000000000.." in patch
    assert make_patch([]) == b""


def test_git_that_is_missing_or_fails_is_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("x")
    changes = [Change("a", None, tmp_path / "a")]

    def missing(*_: object, **__: object) -> object:
        raise FileNotFoundError

    monkeypatch.setattr(subprocess, "run", missing)
    with pytest.raises(ExpbenchError) as caught:
        make_patch(changes)
    assert (caught.value.kind, caught.value.object) == (FailureKind.TOOL_MISSING, "git")
    for stderr, cause in ((b"one\nfatal: two\n", "fatal: two"), (b"", "failed without a message")):
        done = subprocess.CompletedProcess([], 1, b"", stderr)
        monkeypatch.setattr(subprocess, "run", lambda *_, done=done, **__: done)
        with pytest.raises(ExpbenchError) as caught:
            make_patch(changes)
        assert (caught.value.kind, caught.value.object, caught.value.cause) == (FailureKind.INTERNAL, "git init", cause)


# --- workspace


def test_nothing_is_written_through_a_link_of_the_masked_repository(tmp_path: Path) -> None:
    masked, changed, outside = tmp_path / "masked", tmp_path / "changed", tmp_path / "outside"
    for directory in (masked / "tree" / "inner", changed / "l", changed / "tree", outside):
        directory.mkdir(parents=True)
    (masked / "l").symlink_to(outside)
    (masked / "tree" / "inner" / "x").write_text("x")
    (masked / "sub" / ".git").mkdir(parents=True)
    (masked / "sub" / ".git" / "kept").write_text("only the root's is left out")
    (changed / "l" / "f").write_text("new")
    (changed / "tree" / "inner").write_text("now a file")
    produced = tuple(ProducedFile(path=path, size=1, sha256="") for path in ("l/f", "tree/inner"))
    removed = ("gone/before", "tree/inner/x/y", "sub")
    workspace_after(masked, changed, RunResult(commands=(), produced=produced, removed=removed), tmp_path / "into")
    assert list(outside.iterdir()) == []
    assert not (tmp_path / "into" / "l").is_symlink()
    assert (tmp_path / "into" / "l" / "f").read_text() == "new"
    assert (tmp_path / "into" / "tree" / "inner").read_text() == "now a file"
    assert (tmp_path / "into" / "tree" / "inner").stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "into" / "sub" / ".git" / "kept").exists()
    assert (masked / "tree" / "inner" / "x").read_text() == "x"


def test_where_links_cannot_be_made_files_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    masked = tmp_path / "masked"
    masked.mkdir()
    (masked / "a").write_text("a")
    (masked / "l").symlink_to("a")
    (tmp_path / "changed").mkdir()
    workspace_after(masked, tmp_path / "changed", RunResult(commands=()), tmp_path / "linked")
    assert (tmp_path / "linked" / "a").stat().st_ino == (masked / "a").stat().st_ino

    def refuse(*_: object, **__: object) -> None:
        raise OSError("another file system")

    monkeypatch.setattr(os, "link", refuse)
    workspace_after(masked, tmp_path / "changed", RunResult(commands=()), tmp_path / "copied")
    assert (tmp_path / "copied" / "a").read_text() == "a"
    assert (tmp_path / "copied" / "a").stat().st_ino != (masked / "a").stat().st_ino
    assert (tmp_path / "copied" / "l").readlink() == Path("a")


@pytest.mark.parametrize("name", ["/etc/x", "../x", "a/../../x"])
def test_an_adapter_lays_nothing_outside_of_the_inbox(tmp_path: Path, name: str) -> None:
    with pytest.raises(ExpbenchError) as caught:
        write_inbox(tmp_path, {name: "x"})
    assert (caught.value.kind, caught.value.object) == (FailureKind.INTERNAL, f"inbox file {name!r}")


def test_everybody_may_read_the_inbox_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        inbox, harness = write_inbox(tmp_path, {"d/a..b": "ü"})
    finally:
        os.umask(before)
    assert (inbox, harness) == (tmp_path / "inbox", tmp_path / "harness")
    assert (inbox / "d" / "a..b").read_text(encoding="utf-8") == "ü"
    assert {path.name for path in harness.iterdir()} == {"launch.py", "watch.py"}
    for path in (inbox, harness, *inbox.rglob("*"), *harness.rglob("*")):
        assert path.stat().st_mode & 0o777 == (0o755 if path.is_dir() else 0o644), path
