"""Makes real git repositories for tests, ordinary and hostile ones.

Hostile ones are made with plumbing (`hash-object`, `commit-tree`): porcelain refuses to make them.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.repository import Snapshot, open_snapshot

ENV = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_AUTHOR_DATE": "2024-05-06T07:08:09+02:00",
    "GIT_COMMITTER_DATE": "2024-05-06T07:08:09+02:00",
}
MIT = (
    "MIT License\n\nCopyright (c) 2024 A\n\nPermission is hereby granted, free of charge, to any person obtaining a "
    "copy\nof this software ... The above copyright notice and this permission notice shall be included in all copies.\n"
)


def git(where: Path, *arguments: str, stdin: bytes | None = None) -> str:
    vector = ["git", "-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main", *arguments]
    done = subprocess.run(vector, cwd=where, env=ENV, input=stdin, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode("utf-8", "surrogateescape").strip()


def make(where: Path, files: dict[str, str] | None = None) -> Path:
    """A repository with one commit."""
    where.mkdir(parents=True)
    git(where, "init", "-q")
    commit(where, {"main.py": "print(1)\n"} if files is None else files)
    return where


def commit(where: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        path = where / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    if files:
        git(where, "add", "--", *files)
    git(where, "commit", "-q", "--allow-empty", "-m", "c")
    return git(where, "rev-parse", "HEAD")


def blob(where: Path, content: bytes) -> str:
    return git(where, "hash-object", "-w", "--stdin", stdin=content)


def commit_tree(where: Path, *entries: tuple[str, str, bytes]) -> str:
    """A commit of raw entries (mode, oid, path without `/`), sorted or not, sane or not."""
    raw = b"".join(mode.encode() + b" " + name + b"\0" + bytes.fromhex(oid) for mode, oid, name in entries)
    tree = git(where, "hash-object", "-w", "-t", "tree", "--literally", "--stdin", stdin=raw)
    oid = git(where, "commit-tree", tree, "-m", "raw")
    git(where, "update-ref", "HEAD", oid)
    return oid


def failure(kind: FailureKind, source: str | Path, into: Path, **options: object) -> ExpbenchError:
    with pytest.raises(ExpbenchError) as caught:
        open_snapshot(source, into=into, **options)  # type: ignore[arg-type]
    assert caught.value.kind is kind, str(caught.value)
    assert not into.exists()
    assert list(into.parent.glob(f"*{into.name}*")) == []
    assert all((caught.value.object, caught.value.cause, caught.value.consequence, caught.value.next_step))
    return caught.value


def messages(snapshot: Snapshot) -> dict[str, str]:
    return {problem.where: problem.message for problem in snapshot.problems}


def add_submodule(parent: Path, url: str, path: str, oid: str) -> None:
    """Record a submodule without cloning it."""
    text = (parent / ".gitmodules").read_text() if (parent / ".gitmodules").exists() else ""
    (parent / ".gitmodules").write_text(f'{text}[submodule "{path}"]\n\tpath = {path}\n\turl = {url}\n')
    git(parent, "update-index", "--add", "--cacheinfo", f"160000,{oid},{path}")
    git(parent, "add", ".gitmodules")
    git(parent, "commit", "-qm", "submodule")
