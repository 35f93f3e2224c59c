"""Opening repositories: what a snapshot holds, bad input, work trees, reuse."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline._git.run import redact
from pipeline._git.source import RemoteSource, parse_source, public_url, relative_url
from pipeline.digests import tree_digest
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.repository import Snapshot, open_snapshot
from tests.pipeline.repositories import MIT, add_submodule, commit, failure, git, make, messages


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make(tmp_path / "repo", {"main.py": "print(1)\n", "LICENSE": MIT, "sub/run me.sh": "echo\n"})


@pytest.fixture
def into(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out" / "snapshot"


def test_exports_files_bits_digests_and_date(repo: Path, into: Path) -> None:
    (repo / "main.py").chmod(0o755)
    oid = commit(repo, {"data.bin": "a\0b", "main.py": "print(1)\n"})
    snapshot = open_snapshot(repo, into=into)
    assert snapshot.ref.model_dump() == {"url": "repo", "commit": oid, "license": "MIT"}
    assert snapshot.committed_at == "2024-05-06T07:08:09+02:00"
    assert [file.path for file in snapshot.files] == ["LICENSE", "data.bin", "main.py", "sub/run me.sh"]
    by_path = {file.path: file for file in snapshot.files}
    assert by_path["main.py"].executable
    assert not by_path["LICENSE"].executable
    assert by_path["data.bin"].binary
    assert by_path["main.py"].sha256 == hashlib.sha256(b"print(1)\n").hexdigest()
    assert os.access(into / "main.py", os.X_OK)
    assert snapshot.text("sub/run me.sh") == "echo\n"
    assert not (into / ".git").exists()
    assert snapshot.problems == ()


@pytest.mark.parametrize("form", ["path", "str", "file-url", "dot-git", "bare", "git-file", "worktree"])
def test_every_form_of_a_local_repository_gives_the_same_tree(
    repo: Path, tmp_path: Path, into: Path, form: str
) -> None:
    sources: dict[str, str | Path] = {
        "path": repo,
        "str": str(repo),
        "file-url": repo.as_uri(),
        "dot-git": repo / ".git",
    }
    if form == "bare":
        git(tmp_path, "clone", "-q", "--bare", str(repo), "bare.git")
        sources[form] = tmp_path / "bare.git"
    if form == "git-file":
        git(tmp_path, "clone", "-q", f"--separate-git-dir={tmp_path / 'elsewhere'}", str(repo), "work")
        sources[form] = tmp_path / "work" / ".git"
    if form == "worktree":
        git(repo, "worktree", "add", "-q", "--detach", str(tmp_path / "linked"))
        sources[form] = tmp_path / "linked"
    direct = open_snapshot(repo, into=tmp_path / "direct")
    snapshot = open_snapshot(sources[form], into=into)
    assert tree_digest(into) == tree_digest(tmp_path / "direct")
    assert snapshot.ref.commit == direct.ref.commit
    assert snapshot.files == direct.files


def test_packed_repositories_branches_tags_and_short_ids(repo: Path, tmp_path: Path) -> None:
    first = git(repo, "rev-parse", "HEAD")
    git(repo, "tag", "-a", "v1", "-m", "one")
    git(repo, "branch", "old")
    second = commit(repo, {"more.py": "print(2)\n"})
    git(repo, "pack-refs", "--all")
    git(repo, "repack", "-adq")
    for number, (name, expected) in enumerate(
        [(None, second), ("v1", first), ("old", first), (first, first), (first[:10], first), ("HEAD", second)]
    ):
        snapshot = open_snapshot(repo, commit=name, into=tmp_path / f"s{number}")
        assert snapshot.ref.commit == expected, name


def test_sha256_repositories(tmp_path: Path, into: Path) -> None:
    (tmp_path / "repo").mkdir()
    git(tmp_path / "repo", "init", "-q", "--object-format=sha256")
    oid = commit(tmp_path / "repo", {"main.py": "print(1)\n"})
    assert len(oid) == 64
    assert open_snapshot(tmp_path / "repo", into=into).ref.commit == oid


def test_same_commit_same_bytes_whatever_the_umask(repo: Path, tmp_path: Path) -> None:
    old = os.umask(0o077)
    try:
        open_snapshot(repo, into=tmp_path / "one" / "s")
    finally:
        os.umask(old)
    open_snapshot(repo, into=tmp_path / "two" / "s")
    assert tree_digest(tmp_path / "one" / "s") == tree_digest(tmp_path / "two" / "s")
    record = (tmp_path / "one" / "s.json").read_text()
    assert record == (tmp_path / "two" / "s.json").read_text()
    assert str(tmp_path) not in record


def test_path_missing(tmp_path: Path, into: Path) -> None:
    assert "no such path" in failure(FailureKind.REPOSITORY_INVALID, tmp_path / "nowhere", into).cause


def test_not_a_repository(tmp_path: Path, into: Path) -> None:
    (tmp_path / "plain").mkdir()
    assert "not a git repository" in failure(FailureKind.REPOSITORY_INVALID, tmp_path / "plain", into).cause
    (tmp_path / "file.zip").write_bytes(b"PK")
    assert "a file" in failure(FailureKind.REPOSITORY_INVALID, tmp_path / "file.zip", into).cause


def test_folder_inside_a_repository_names_the_repository(repo: Path, into: Path) -> None:
    assert str(repo) in failure(FailureKind.REPOSITORY_INVALID, repo / "sub", into).next_step


@pytest.mark.parametrize(
    "source",
    ["", "-x", "--upload-pack=touch x", "ext::sh -c 'touch x'", "fd::3", "ftp://example.org/x", "https:///x",
     "ssh://-oProxyCommand=x/y", "git@example.org:-x", "https://example.org/-x", "https://example.org/\nx"],
)  # fmt: skip
def test_addresses_that_are_refused(source: str, into: Path) -> None:
    failure(FailureKind.REPOSITORY_INVALID, source, into)


def test_no_commits_and_unborn_head(tmp_path: Path, into: Path) -> None:
    (tmp_path / "empty").mkdir()
    git(tmp_path / "empty", "init", "-q")
    failure(FailureKind.REPOSITORY_EMPTY, tmp_path / "empty", into)
    repo = make(tmp_path / "repo")
    git(repo, "symbolic-ref", "HEAD", "refs/heads/none")
    assert "main" in failure(FailureKind.COMMIT_UNKNOWN, repo, into).next_step


def test_empty_tree_and_no_code(tmp_path: Path, into: Path) -> None:
    failure(FailureKind.REPOSITORY_EMPTY, make(tmp_path / "a", {}), into)
    failure(FailureKind.REPOSITORY_NO_CODE, make(tmp_path / "b", {"README.md": "x", "main.cpp": "y"}), into)
    shebang = make(tmp_path / "c", {"run": "#!/usr/bin/env python3\nprint(1)\n"})
    assert len(open_snapshot(shebang, into=into).files) == 1


@pytest.mark.parametrize("name", ["0" * 40, "beef", "no-such-tag", "-h", "HEAD^{/x}", "main:main.py", "a..b", ""])
def test_unknown_commits_say_what_there_is(repo: Path, into: Path, name: str) -> None:
    git(repo, "tag", "v1.0")
    error = failure(FailureKind.COMMIT_UNKNOWN, repo, into, commit=name)
    if name in ("0" * 40, "beef", "no-such-tag"):
        assert git(repo, "rev-parse", "HEAD")[:12] in error.next_step
        assert "v1.0" in error.next_step


def test_ambiguous_short_commit(repo: Path, into: Path) -> None:
    tree, seen = git(repo, "rev-parse", "HEAD^{tree}"), dict[str, str]()
    for number in range(2000):  # 16^4 prefixes: a pair is expected after about 300
        raw = f"tree {tree}\nauthor A <a> 1 +0000\ncommitter A <a> 1 +0000\n\n{number}\n".encode()
        oid = hashlib.sha1(b"commit %d\0" % len(raw) + raw).hexdigest()
        if oid[:4] in seen:
            for content in (seen[oid[:4]], raw.decode()):
                git(repo, "hash-object", "-w", "-t", "commit", "--stdin", stdin=content.encode())
            break
        seen[oid[:4]] = raw.decode()
    assert "ambiguous" in failure(FailureKind.COMMIT_UNKNOWN, repo, into, commit=oid[:4]).cause
    assert open_snapshot(repo, commit=oid[:20], into=into).ref.commit == oid


def test_missing_code_fails_and_missing_data_is_reported(tmp_path: Path, into: Path) -> None:
    repo = make(tmp_path / "repo", {"main.py": "print(1)\n", "data.csv": "1,2\n"})

    def lose(path: str) -> None:
        oid = git(repo, "rev-parse", f"HEAD:{path}")
        (repo / ".git" / "objects" / oid[:2] / oid[2:]).unlink()

    lose("data.csv")
    snapshot = open_snapshot(repo, into=into)
    assert "missing from this clone" in messages(snapshot)["data.csv"]
    lose("main.py")
    assert "main.py" in failure(FailureKind.REPOSITORY_INVALID, repo, tmp_path / "out" / "two").cause
    lose("")
    assert "missing" in failure(FailureKind.REPOSITORY_INVALID, repo, tmp_path / "out" / "two").cause


def test_unreachable_host_is_a_network_failure(into: Path) -> None:
    error = failure(FailureKind.NETWORK, "https://user:s3cret@host.invalid/x.git", into)
    assert "s3cret" not in str(error)
    assert error.failure.retry


def test_lfs_pointers_are_reported(tmp_path: Path, into: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 12345\n"
    repo = make(tmp_path / "repo", {"main.py": "1\n", "w.pt": pointer, ".gitattributes": "*.pt filter=lfs\n"})
    snapshot = open_snapshot(repo, into=into)
    assert "LFS" in messages(snapshot)["w.pt"]
    assert snapshot.text("w.pt") == pointer


def test_uncommitted_changes_are_reported_and_not_used(repo: Path, into: Path) -> None:
    (repo / "main.py").write_text("print('changed')\n")
    (repo / "notes.txt").write_text("x")
    snapshot = open_snapshot(repo, into=into)
    assert snapshot.text("main.py") == "print(1)\n"
    assert "1 changed (main.py); 1 untracked (notes.txt)" in messages(snapshot)["."]
    assert git(repo, "status", "--porcelain").splitlines() == ["M main.py", "?? notes.txt"]


@pytest.mark.parametrize(
    ("remote", "expected"),
    [
        ("https://user:token@github.com/o/n.git", "https://github.com/o/n.git"),
        ("git@github.com:o/n.git", "git@github.com:o/n.git"),
        ("ssh://me@git.example.org:2222/o/n", "ssh://git.example.org:2222/o/n"),
        ("/home/me/private", "repo"),
        ("https://localhost/o/n", "repo"),
        ("http://10.0.0.7/o/n", "repo"),
        ("buildhost:o/n", "repo"),
    ],
)
def test_url_of_a_local_repository(repo: Path, into: Path, remote: str, expected: str) -> None:
    git(repo, "remote", "add", "origin", remote)
    assert open_snapshot(repo, into=into).ref.url == expected


@given(st.text(max_size=40), st.text("abcXYZ019-._~!$&()*+,;=:%@", min_size=1, max_size=10))
def test_credentials_never_survive(path: str, secret: str) -> None:
    url = f"https://u{secret}:p@example.org/x{path}"
    assert f"u{secret}:p@" not in redact(url)
    assert f"u{secret}:p@" not in (public_url(url) or "")


@pytest.mark.parametrize(
    ("base", "url", "expected"),
    [
        ("https://example.org/a/b.git", "../c.git", "https://example.org/a/c.git"),
        ("https://example.org/a/b.git/", "../../c", "https://example.org/c"),
        ("git@example.org:a/b.git", "../c", "git@example.org:a/c"),
        ("git@example.org:b.git", "../c", "git@example.org:c"),
        ("/srv/git/a", "../b", "/srv/git/b"),
        ("/srv/git/a", "./b", "/srv/git/a/b"),
    ],
)
def test_relative_submodule_urls(base: str, url: str, expected: str) -> None:
    assert relative_url(base, url) == expected


def test_relative_urls_do_not_leave_the_host() -> None:
    with pytest.raises(ValueError, match="root"):
        relative_url("https://example.org/a", "../../../evil.org/x")


def test_short_form_of_github_addresses() -> None:
    assert parse_source("github:some-one/the.code") == RemoteSource("https://github.com/some-one/the.code")


def test_finished_exports_are_reused_and_changed_ones_redone(repo: Path, into: Path) -> None:
    class Reporter:
        def __init__(self) -> None:
            self.said: list[str] = []

        def start(self, stage: str, total: int | None = None) -> None: ...
        def step(self, stage: str, message: str) -> None:
            self.said.append(message)

        def end(self, stage: str, message: str = "") -> None: ...
        def warn(self, message: str) -> None:
            self.said.append(message)

    first = open_snapshot(repo, into=into)
    inode = (into / "main.py").stat().st_ino
    reporter = Reporter()
    assert open_snapshot(repo, into=into, reporter=reporter) == first
    assert (into / "main.py").stat().st_ino == inode
    assert reporter.said == ["already exported"]
    (into / "main.py").write_text("tampered")
    with pytest.raises(ExpbenchError):
        Snapshot.load(into)
    assert open_snapshot(repo, into=into, reporter=reporter).text("main.py") == "print(1)\n"
    assert any("made again" in message for message in reporter.said)


def test_an_interrupted_export_is_redone(repo: Path, into: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`kill -9` between the rename and the record leaves the folder and the staging folder."""
    expected = open_snapshot(repo, into=into)
    into.with_name("snapshot.json").unlink()
    into.with_name(".snapshot.partial").mkdir()
    (into / "main.py").unlink()
    assert open_snapshot(repo, into=into) == expected
    assert sorted(p.name for p in into.parent.iterdir()) == ["snapshot", "snapshot.json"]


def test_a_folder_of_somebody_else_is_not_touched(repo: Path, into: Path) -> None:
    into.mkdir()
    (into / "thesis.tex").write_text("precious")
    with pytest.raises(ExpbenchError) as caught:
        open_snapshot(repo, into=into)
    assert caught.value.kind is FailureKind.WORKSPACE_CONFLICT
    assert (into / "thesis.tex").read_text() == "precious"


def test_another_commit_in_the_same_place_is_a_conflict(repo: Path, into: Path) -> None:
    first = open_snapshot(repo, into=into)
    commit(repo, {"new.py": "1"})
    with pytest.raises(ExpbenchError) as caught:
        open_snapshot(repo, into=into)
    assert caught.value.kind is FailureKind.WORKSPACE_CONFLICT
    assert open_snapshot(repo, commit=first.ref.commit, into=into) == first


def test_load_without_a_snapshot(tmp_path: Path) -> None:
    with pytest.raises(ExpbenchError) as caught:
        Snapshot.load(tmp_path / "none")
    assert caught.value.kind is FailureKind.RECORD_INVALID
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(ExpbenchError, match="not a snapshot's record"):
        Snapshot.load(tmp_path / "bad")


@pytest.mark.parametrize(
    "name", ["with space", 'quo"te', "new\nline", "back\\slash", "colon:name", "#hash", "ünï", "-dash"]
)
def test_folders_with_odd_names(tmp_path: Path, into: Path, name: str) -> None:
    repo = make(tmp_path / name)
    assert open_snapshot(repo, into=into).text("main.py") == "print(1)\n"
    lib = make(tmp_path / "lib" / name, {"lib.py": "1\n"})
    add_submodule(repo, "placeholder", "lib", git(lib, "rev-parse", "HEAD"))
    git(repo, "config", "-f", ".gitmodules", "submodule.lib.url", str(lib))
    git(repo, "add", ".gitmodules")
    git(repo, "commit", "-qm", "x")
    if "\n" not in name:
        assert open_snapshot(repo, into=into.with_name("two")).text("lib/lib.py") == "1\n"


def test_a_repository_of_another_user_is_read(repo: Path, into: Path) -> None:
    """git refuses to work *in* such a repository ("dubious ownership"); reading its objects is no danger."""
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    for path in (repo, *repo.rglob("*")):
        os.lchown(path, 12345, 12345)
    assert open_snapshot(repo, into=into).text("main.py") == "print(1)\n"
