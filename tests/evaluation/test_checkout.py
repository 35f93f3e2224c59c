"""A fresh checkout and a patch in it: the commit's files as they are, whole patches or none, and where links lead."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from evaluation.checkout import Checkout, PatchedPath, fresh_checkout
from evaluation.harness.patches import compare, make_patch
from evaluation.task import EvaluationTask
from pipeline._git.run import GitResult, run_git
from pipeline.errors import ExpbenchError, FailureKind
from tests.evaluation.execution_support import make_task

FILES: dict[str, str | bytes] = {
    "library.py": "N = 1\n",
    "data/in.csv": "a,b\r\n1,2\r\n",
    'ü\t".txt': "x",
    "bin": b"\0\xff",
}


@pytest.fixture
def masked(tmp_path: Path) -> Path:
    task: EvaluationTask = make_task(tmp_path, FILES)
    assert task.masked_repository is not None
    return task.masked_repository


@pytest.fixture
def fresh(masked: Path, tmp_path: Path) -> Checkout:
    return fresh_checkout(masked, tmp_path / "into")


def patch_of(fresh: Checkout, tmp_path: Path, edit: dict[str, str | bytes | Path | None]) -> Path:
    """A patch that writes, removes (None) or links (a path) files."""
    after = tmp_path / "after"
    shutil.copytree(fresh.tree, after, symlinks=True)
    for name, content in edit.items():
        path = after / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        if isinstance(content, Path):
            path.symlink_to(content)
        elif content is not None:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
    patch = tmp_path / "patch.diff"
    patch.write_bytes(make_patch(compare(fresh.tree, after)))
    return patch


def contents(root: Path) -> dict[str, bytes]:
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def test_it_holds_the_files_of_the_commit_and_no_git(fresh: Checkout, tmp_path: Path) -> None:
    wanted = {name: text.encode() if isinstance(text, str) else text for name, text in FILES.items()}
    assert contents(fresh.tree) == wanted
    assert fresh.tree == tmp_path / "into" / "tree"
    assert fresh.changes() == ()
    assert fresh.outward_links() == ()


def test_what_was_there_before_is_gone(masked: Path, tmp_path: Path) -> None:
    (tmp_path / "into" / "tree").mkdir(parents=True)
    (tmp_path / "into" / "tree" / "left.py").write_text("x")
    assert "left.py" not in contents(fresh_checkout(masked, tmp_path / "into").tree)


def test_the_commit_counts_and_not_the_working_tree_its_configuration_or_its_hooks(
    masked: Path, tmp_path: Path
) -> None:
    (masked / "library.py").write_text("changed")
    (masked / "more.py").write_text("more")
    marker = tmp_path / "marker"
    hook = masked / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {marker}\n")
    hook.chmod(0o755)
    with (masked / ".git" / "config").open("a") as stream:
        stream.write(f'[core]\n\tautocrlf = true\n[filter "x"]\n\tsmudge = touch {marker}\n')
    (masked / ".git" / "info").mkdir(exist_ok=True)
    (masked / ".git" / "info" / "attributes").write_text("* text=auto eol=crlf filter=x\n")
    tree = fresh_checkout(masked, tmp_path / "into").tree
    assert (tree / "library.py").read_bytes() == b"N = 1\n"
    assert not (tree / "more.py").exists()
    assert not marker.exists()


def test_attributes_of_the_repository_change_no_byte(tmp_path: Path) -> None:
    files = {".gitattributes": "* text eol=crlf\n*.py ident\n", "a.py": "# $Id$\nx = 1\n"}
    task = make_task(tmp_path, files)
    assert task.masked_repository is not None
    tree = fresh_checkout(task.masked_repository, tmp_path / "into").tree
    assert contents(tree) == {name: text.encode() for name, text in files.items()}


def test_a_patch_is_applied_and_its_changes_are_told(fresh: Checkout, tmp_path: Path) -> None:
    patch = patch_of(
        fresh, tmp_path,
        {"library.py": "N = 2\n", "new/ä.bin": b"\0new", "data/in.csv": None, "a link": Path("library.py")},
    )  # fmt: skip
    assert fresh.apply(patch) == ""
    assert fresh.changes() == (
        PatchedPath(path="a link", action="added", link=True), PatchedPath(path="data/in.csv", action="deleted"),
        PatchedPath(path="library.py", action="modified"), PatchedPath(path="new/ä.bin", action="added"),
    )  # fmt: skip
    assert (fresh.tree / "library.py").read_text() == "N = 2\n"
    assert (fresh.tree / "new" / "ä.bin").read_bytes() == b"\0new"
    assert not (fresh.tree / "data" / "in.csv").exists()


def test_a_rename_is_a_deletion_and_an_addition(fresh: Checkout, tmp_path: Path) -> None:
    assert fresh.apply(patch_of(fresh, tmp_path, {"library.py": None, "moved.py": FILES["library.py"]})) == ""
    assert [(item.path, item.action) for item in fresh.changes()] == [("library.py", "deleted"), ("moved.py", "added")]


def test_an_empty_patch_changes_nothing(fresh: Checkout, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert fresh.apply(tmp_path / "empty") == ""
    assert fresh.changes() == ()


def test_a_patch_is_found_whatever_the_directory(
    fresh: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch = patch_of(fresh, tmp_path, {"x": "1\n"})
    monkeypatch.chdir(tmp_path)
    patch.rename(tmp_path / "-p")
    assert fresh.apply(Path("-p")) == ""
    assert (fresh.tree / "x").read_text() == "1\n"


def test_white_space_at_the_end_of_lines_is_kept_and_no_matter(fresh: Checkout, tmp_path: Path) -> None:
    text = "x = 1  \n\t \ny\r\n\n\n"
    assert fresh.apply(patch_of(fresh, tmp_path, {"w.py": text})) == ""
    assert (fresh.tree / "w.py").read_bytes() == text.encode()


def test_a_patch_that_does_not_fit_is_refused_as_a_whole(fresh: Checkout, tmp_path: Path) -> None:
    good = patch_of(fresh, tmp_path, {"new.py": "1\n", "library.py": "N = 2\n"}).read_text()
    patch = tmp_path / "bad.diff"
    patch.write_text(good.replace("-N = 1", "-N = 7"))
    before = contents(fresh.tree)
    said = fresh.apply(patch)
    assert said == "library.py: patch does not apply"
    assert contents(fresh.tree) == before
    assert fresh.changes() == ()
    patch.write_text("no patch at all\n")
    assert "No valid patches" in fresh.apply(patch)


HOSTILE = "diff --git a/{0} b/{0}\nnew file mode 100644\n--- /dev/null\n+++ b/{0}\n@@ -0,0 +1 @@\n+planted\n"


@pytest.mark.parametrize("name", ["../planted", "a/../../planted", ".git/config", "sub/.git/hooks/x", ".GIT/config"])
def test_git_refuses_what_leaves_the_tree_or_is_its_own(fresh: Checkout, tmp_path: Path, name: str) -> None:
    patch = tmp_path / "hostile.diff"
    patch.write_text(HOSTILE.format(name))
    before = contents(tmp_path / "into")
    assert fresh.apply(patch)
    assert contents(tmp_path / "into") == before
    assert not (tmp_path / "planted").exists()


def test_nothing_is_written_through_a_link_of_the_same_patch(fresh: Checkout, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    link = f"diff --git a/d b/d\nnew file mode 120000\n--- /dev/null\n+++ b/d\n@@ -0,0 +1 @@\n+{outside}\n\\ No newline at end of file\n"
    patch = tmp_path / "hostile.diff"
    patch.write_text(link + HOSTILE.format("d/planted"))
    assert fresh.apply(patch)
    assert list(outside.iterdir()) == []
    assert not (fresh.tree / "d").is_symlink()


@pytest.mark.parametrize(
    ("link", "target", "outward"),
    [
        ("l", "library.py", False), ("l", "nothing", False), ("d/l", "../library.py", False), ("l", ".", False),
        ("d/l", "..", False), ("l", "..", True), ("d/l", "../..", True), ("l", "../treehouse", True),
        ("l", "/etc/passwd", True), ("d/l", "../../x", True), ("d/l", "x/../../../x", True), ("l", "/", True),
    ],
)  # fmt: skip
def test_links_out_of_the_tree_are_told(fresh: Checkout, tmp_path: Path, link: str, target: str, outward: bool) -> None:
    assert fresh.apply(patch_of(fresh, tmp_path, {link: Path(target), "plain": "x"})) == ""
    found = fresh.outward_links()
    assert [(problem.component, problem.where) for problem in found] == (
        [("evaluation.checkout", link)] if outward else []
    )
    assert all(problem.message == f"a symbolic link out of the repository (to {target})" for problem in found)


def test_a_link_into_the_tree_by_its_whole_path_stays_in_it(fresh: Checkout, tmp_path: Path) -> None:
    inside = Path(os.path.realpath(fresh.tree)) / "library.py"
    assert fresh.apply(patch_of(fresh, tmp_path, {"l": inside})) == ""
    assert fresh.outward_links() == ()


def test_a_link_that_was_removed_afterwards_is_not_told(fresh: Checkout, tmp_path: Path) -> None:
    assert fresh.apply(patch_of(fresh, tmp_path, {"l": Path("/etc/passwd")})) == ""
    (fresh.tree / "l").unlink()
    assert fresh.outward_links() == ()


def test_a_submodule_counts_as_a_link_and_leads_nowhere(fresh: Checkout, tmp_path: Path) -> None:
    patch = tmp_path / "submodule.diff"
    patch.write_text(
        "diff --git a/m b/m\nnew file mode 160000\nindex 0000000..1111111\n--- /dev/null\n+++ b/m\n@@ -0,0 +1 @@\n"
        f"+Subproject commit {'1' * 40}\n"
    )
    assert fresh.apply(patch) == ""
    assert fresh.changes() == (PatchedPath(path="m", action="added", link=True),)
    assert fresh.outward_links() == ()


def test_a_repository_that_cannot_be_read_is_a_defect_and_a_full_disk_is_not(
    masked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = run_git
    for said, kind, step in (
        ("error: one\nerror: cannot read\n", FailureKind.INTERNAL, "Report"),
        ("fatal: No space left on device\n", FailureKind.DISK_FULL, "Free space"),
        ("", FailureKind.INTERNAL, "Report"),
    ):
        for command in ("init", "read-tree", "checkout-index"):

            def broken(
                git_dir: Path | None, *words: str, said: str = said, command: str = command, **more: object
            ) -> GitResult:
                done = real(git_dir, *words, **more)  # type: ignore[arg-type]
                return done._replace(code=128, stderr=said) if words[0] == command else done

            monkeypatch.setattr("evaluation.checkout.run_git", broken)
            with pytest.raises(ExpbenchError) as caught:
                fresh_checkout(masked, tmp_path / "into")
            assert (caught.value.kind, caught.value.object) == (kind, f"git {command}")
            last = {"": "git ended with code 128 and no message"}.get(said, said.splitlines()[-1] if said else "")
            assert caught.value.cause == last.removeprefix("error: ")
            assert caught.value.next_step.startswith(step)


def test_changes_that_git_cannot_tell_are_a_defect(fresh: Checkout, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "into" / "git")
    with pytest.raises(ExpbenchError) as caught:
        fresh.changes()
    assert (caught.value.kind, caught.value.object) == (FailureKind.INTERNAL, "git diff-index")


def test_the_masked_repository_is_only_read(masked: Path, tmp_path: Path) -> None:
    before = contents(masked)
    made = fresh_checkout(masked, tmp_path / "into")
    made.apply(patch_of(made, tmp_path, {"library.py": "N = 9\n"}))
    assert contents(masked) == before
    assert (
        subprocess.run(
            ["git", "-C", masked, "-c", "safe.directory=*", "status", "--short"], capture_output=True, check=True
        ).stdout
        == b""
    )
