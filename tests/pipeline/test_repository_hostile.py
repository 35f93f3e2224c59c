"""Repositories that mean harm: names, links, configuration, submodules."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline._git.export import hostile_part
from pipeline._git.run import shown
from pipeline.errors import FailureKind
from pipeline.repository import Snapshot, open_snapshot
from tests.pipeline.repositories import MIT, add_submodule, blob, commit, commit_tree, failure, git, make, messages


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make(tmp_path / "repo", {"main.py": "print(1)\n", "LICENSE": MIT, "sub/run me.sh": "echo\n"})


@pytest.fixture
def into(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out" / "snapshot"


def test_odd_file_names_are_exported_as_bytes(repo: Path, into: Path) -> None:
    names = [b"a b.py", b"new\nline.py", "ünï.py".encode(), b"caf\xe9.py", b"-rf", b'"q"', b"tab\t.py"]
    for name in names:
        (repo / os.fsdecode(name)).write_text("x\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "odd")
    snapshot = open_snapshot(repo, into=into)
    written = {os.fsencode(path.name) for path in into.iterdir()}
    assert written - {b"main.py", b"LICENSE", b"sub"} == set(names)
    paths = [file.path for file in snapshot.files]
    assert "caf\\xe9.py" in paths
    assert snapshot.text("new\nline.py") == "x\n"
    assert paths == sorted(paths)
    assert Snapshot.load(into) == snapshot


def test_two_names_that_look_alike_once_escaped(repo: Path, into: Path) -> None:
    (repo / os.fsdecode(b"x\xe9.py")).write_text("1")
    (repo / "x\\xe9.py").write_text("2")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "odd")
    snapshot = open_snapshot(repo, into=into)
    assert [file.path for file in snapshot.files].count("x\\xe9.py") == 1
    assert "not listed" in messages(snapshot)["x\\xe9.py"]


def test_links_that_stay_inside_are_kept_and_others_dropped(repo: Path, tmp_path: Path, into: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    links = {
        "ok.py": "main.py",
        "sub/up.py": "../main.py",
        "dangling": "not/there",
        "dir": "sub",
        "via-dir": "dir/run me.sh",
        "absolute": "/etc/passwd",
        "outside": "../secret",
        "sneaky": "sub/../../secret",
        "far": "hop/secret",
        "hop": "sub/back",
        "sub/back": "../..",
        "loop": "loop",
        "into-git": ".git/config",
    }
    for name, target in links.items():
        (repo / name).symlink_to(target)
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "links")
    snapshot = open_snapshot(repo, into=into)
    made = {str(p.relative_to(into)) for p in into.rglob("*") if p.is_symlink()}
    assert made == {"ok.py", "sub/up.py", "dangling", "dir", "via-dir"}
    dropped = {w for w, m in messages(snapshot).items() if m.startswith("symbolic link")}
    assert dropped == set(links) - made
    root = into.resolve()
    assert all(p.resolve().is_relative_to(root) for p in into.rglob("*"))
    assert not {file.path for file in snapshot.files} & set(links)


@pytest.mark.parametrize(
    "name",
    [b"..", b".", b".git", b".GIT", b".Git ", b".git.", b"git~1", b".g\xe2\x80\x8cit", b"x\\..\\y", b".git::$INDEX"],
)
def test_hostile_paths_are_left_out_and_reported(repo: Path, into: Path, name: bytes) -> None:
    code, evil = blob(repo, b"print(1)\n"), blob(repo, b"evil")
    inner = git(repo, "hash-object", "-w", "-t", "tree", "--literally", "--stdin",
                stdin=b"100644 evil\0" + bytes.fromhex(evil))  # fmt: skip
    commit_tree(repo, ("40000", inner, name), ("100644", code, b"main.py"))
    snapshot = open_snapshot(repo, into=into)
    assert [file.path for file in snapshot.files] == ["main.py"]
    assert [p.name for p in into.iterdir()] == ["main.py"]
    assert len([p for p in snapshot.problems if "not exported" in p.message]) == 1
    assert [p.name for p in into.parent.iterdir() if p.is_file()] == ["snapshot.json"]


def test_nothing_is_written_through_a_link(repo: Path, tmp_path: Path, into: Path) -> None:
    """The classic: a link `d` to elsewhere, then a file `d/x` in the same tree."""
    target = tmp_path / "target"
    target.mkdir()
    code, link = blob(repo, b"print(1)\n"), blob(repo, str(target).encode())
    inner = git(repo, "mktree", "-z", stdin=f"100644 blob {code}\tx.py\0".encode())
    commit_tree(
        repo, ("120000", link, b"d"), ("40000", inner, b"d"), ("100644", code, b"m.py"), ("100644", code, b"m.py")
    )
    snapshot = open_snapshot(repo, into=into)
    assert list(target.iterdir()) == []
    assert (into / "d").is_dir()
    assert not (into / "d").is_symlink()
    assert "twice" in messages(snapshot)["m.py"]


def test_entries_that_are_not_what_the_tree_says(repo: Path, into: Path) -> None:
    """A "file" that is a tree object, and a "link" of a megabyte: what follows must not be read out of step."""
    code, link = blob(repo, b"print(1)\n"), blob(repo, b"x/" * 500_000)
    tree = git(repo, "rev-parse", "HEAD^{tree}")
    commit_tree(repo, ("100644", tree, b"a"), ("120000", link, b"b"), ("100644", code, b"c.py"))
    snapshot = open_snapshot(repo, into=into)
    assert [p.name for p in into.iterdir()] == ["c.py"]
    assert snapshot.text("c.py") == "print(1)\n"
    assert {"a", "b"} <= set(messages(snapshot))


def test_a_tree_that_unfolds_into_more_files_than_any_disk_holds(repo: Path, into: Path) -> None:
    """Ten levels, each naming the one below ten times: a few kilobytes that stand for 10^10 files."""
    entries = "".join(f"100644 blob {blob(repo, b'x')}\tf{n}\0" for n in range(10))
    for _ in range(10):
        tree = git(repo, "mktree", "-z", stdin=entries.encode())
        entries = "".join(f"040000 tree {tree}\td{n}\0" for n in range(10))
    git(repo, "update-ref", "HEAD", git(repo, "commit-tree", tree, "-m", "bomb"))
    assert "more than 500000 files" in failure(FailureKind.REPOSITORY_INVALID, repo, into).cause


@given(
    st.lists(st.sampled_from([b"a", b"..", b".", b"", b".git", b"b c", b"\xff", b".gitignore", b"git~1"]), max_size=5)
)
def test_hostile_part_refuses_exactly_what_is_dangerous(parts: list[bytes]) -> None:
    path = b"/".join(parts)
    bad = not parts or any(p in (b"..", b".", b"", b".git", b"git~1") for p in path.split(b"/"))
    assert (hostile_part(path) is not None) == bad


@given(st.binary(max_size=30))
def test_shown_paths_print_on_one_line(path: bytes) -> None:
    assert shown(path).isprintable()


def test_hooks_filters_fsmonitor_and_other_configuration_do_not_run(repo: Path, tmp_path: Path, into: Path) -> None:
    marker = tmp_path / "marker"
    script = tmp_path / "evil.sh"
    script.write_text(f"#!/bin/sh\necho $0 $@ >> {marker}\ncat\n")
    script.chmod(0o755)
    commit(repo, {".gitattributes": "* filter=evil diff=evil text eol=crlf\n", "x.py": "print(1)\n"})
    for hook in ("post-checkout", "reference-transaction", "post-index-change", "fsmonitor-watchman", "pre-auto-gc"):
        shutil.copy(script, repo / ".git" / "hooks" / hook)
    for key in (
        "core.fsmonitor", "core.pager", "core.sshCommand", "core.editor", "core.askPass", "core.gitProxy",
        "filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "diff.evil.command", "diff.evil.textconv",
        "core.alternateRefsCommand", "uploadpack.packObjectsHook", "remote.origin.uploadpack", "credential.helper",
        "diff.external", "gpg.program",
    ):  # fmt: skip
        git(repo, "config", key, str(script))
    git(repo, "config", "log.showSignature", "true")
    git(repo, "config", "include.path", str(tmp_path / "included"))
    (tmp_path / "included").write_text(f"[core]\n\tfsmonitor = {script}\n")
    (repo / "x.py").write_text("print(2)\n")  # a changed file is what clean filters run on
    snapshot = open_snapshot(repo, into=into)
    assert not marker.exists()
    assert snapshot.text("x.py") == "print(1)\n"  # no eol conversion either
    assert "x.py" in messages(snapshot)["."]


def test_replace_refs_do_not_change_what_a_commit_holds(repo: Path, into: Path) -> None:
    first = git(repo, "rev-parse", "HEAD:main.py")
    git(repo, "replace", first, blob(repo, b"print('replaced')\n"))
    assert open_snapshot(repo, into=into).text("main.py") == "print(1)\n"


def test_callers_git_variables_do_not_matter(
    repo: Path, tmp_path: Path, into: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make(tmp_path / "other", {"other.py": "1"})
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git/index"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    assert "main.py" in {file.path for file in open_snapshot(repo, into=into).files}


def test_submodules_are_exported_in_place_and_recursively(tmp_path: Path, into: Path) -> None:
    inner = make(tmp_path / "inner", {"inner.py": "1\n"})
    middle = make(tmp_path / "middle", {"middle.py": "2\n"})
    add_submodule(middle, "../inner", "deep/inner", git(inner, "rev-parse", "HEAD"))
    recorded = git(middle, "rev-parse", "HEAD")
    commit(middle, {"later.py": "not recorded by the parent\n"})
    outer = make(tmp_path / "outer")
    add_submodule(outer, str(middle), "libs/middle", recorded)
    snapshot = open_snapshot(outer, into=into)
    assert snapshot.submodules == (
        ("libs/middle", recorded),
        ("libs/middle/deep/inner", git(inner, "rev-parse", "HEAD")),
    )
    owners = {file.path: file.submodule for file in snapshot.files}
    assert owners == {
        ".gitmodules": None,
        "main.py": None,
        "libs/middle/.gitmodules": "libs/middle",
        "libs/middle/middle.py": "libs/middle",
        "libs/middle/deep/inner/inner.py": "libs/middle/deep/inner",
    }


def test_a_clone_that_holds_its_submodules_needs_no_network(tmp_path: Path, into: Path) -> None:
    lib = make(tmp_path / "lib", {"lib.py": "1\n"})
    outer = make(tmp_path / "outer")
    git(outer, "submodule", "--quiet", "add", str(lib), "lib")
    git(outer, "commit", "-qm", "lib")
    git(tmp_path, "clone", "-q", "--recursive", str(outer), "clone")
    shutil.rmtree(lib)
    snapshot = open_snapshot(tmp_path / "clone", into=into)
    assert snapshot.text("lib/lib.py") == "1\n"
    assert not [p for p in snapshot.problems if p.severity != "info"]


def test_missing_submodule_fails_unless_allowed(tmp_path: Path, into: Path) -> None:
    outer = make(tmp_path / "outer")
    add_submodule(outer, "../gone", "gone", "1" * 40)
    error = failure(FailureKind.SUBMODULE_UNAVAILABLE, outer, into)
    assert "gone" in error.object
    snapshot = open_snapshot(outer, into=into, allow_missing_submodules=True)
    assert snapshot.submodules == ()
    assert "left out" in messages(snapshot)["gone"]


def test_submodule_without_declaration(tmp_path: Path, into: Path) -> None:
    outer = make(tmp_path / "outer")
    git(outer, "update-index", "--add", "--cacheinfo", f"160000,{'2' * 40},ghost")
    git(outer, "commit", "-qm", "x")
    assert "declare" in failure(FailureKind.SUBMODULE_UNAVAILABLE, outer, into).cause


@pytest.mark.parametrize("url", ["-u./payload", "--upload-pack=touch marker", "ext::sh -c touch", "plain/folder"])
def test_submodule_urls_that_are_options_or_commands(tmp_path: Path, into: Path, url: str) -> None:
    outer = make(tmp_path / "outer")
    add_submodule(outer, url, "evil", "3" * 40)
    git(outer, "config", "-f", ".gitmodules", "submodule.evil.update", f"!touch {tmp_path}/marker")
    git(outer, "add", ".gitmodules")
    git(outer, "commit", "-qm", "x")
    failure(FailureKind.SUBMODULE_UNAVAILABLE, outer, into)
    assert not (tmp_path / "marker").exists()


def test_submodule_names_do_not_lead_out_of_the_git_directory(tmp_path: Path, into: Path) -> None:
    """CVE-2018-11235: `submodule.<../../x>` made git look for a repository, and its hooks, in the work tree."""
    secret = make(tmp_path / "secret", {"secret.py": "1\n"})
    outer = make(tmp_path / "outer")
    add_submodule(outer, "https://host.invalid/x", "lib", git(secret, "rev-parse", "HEAD"))
    name = '[submodule "../../../secret/.git"]\n\tpath = lib\n\turl = https://host.invalid/x\n'
    commit(outer, {".gitmodules": name})
    failure(FailureKind.SUBMODULE_UNAVAILABLE, outer, into)
