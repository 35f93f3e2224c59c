"""Walking and copying trees: every file and link once, in an order that no machine changes, and nothing of git's."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from masking.tree import MAX_READ, copy_entry, display, entries
from tests.masking import builders


def paths(root: Path, *, git: bool = False) -> list[str]:
    return [entry.path for entry in entries(root, git=git)]


def test_files_and_links_come_in_the_order_of_their_bytes(tmp_path: Path) -> None:
    builders.write_tree(tmp_path, dict.fromkeys(("b", "a/z", "a/b/c", "a.txt", "B", "\udcff", "é"), b""))
    (tmp_path / "link").symlink_to("a")  # to a directory: not followed
    (tmp_path / "loose").symlink_to("nowhere")
    found = list(entries(tmp_path))
    assert [entry.raw for entry in found] == sorted(
        [b"B", b"a.txt", b"a/b/c", b"a/z", b"b", b"link", b"loose", "é".encode(), b"\xff"]
    )
    assert [entry.path for entry in found if entry.link] == ["link", "loose"]
    assert {entry.path: entry.read() for entry in found if entry.link} == {"link": b"a", "loose": b"nowhere"}


@pytest.mark.parametrize("name", [".git", ".GIT", ".Git. ", "git~1", "GIT~1"])
@pytest.mark.parametrize("kind", ["directory", "file", "link"])
def test_what_some_file_system_takes_for_git_is_left_out(name: str, kind: str, tmp_path: Path) -> None:
    builders.write_tree(
        tmp_path, {"sub/a": b"", **({f"sub/{name}/x": b"", f"{name}/y": b""} if kind == "directory" else {})}
    )
    if kind == "file":
        (tmp_path / "sub" / name).write_bytes(b"gitdir: x")
    if kind == "link":
        (tmp_path / "sub" / name).symlink_to("..")
    assert paths(tmp_path) == ["sub/a"]
    assert len(paths(tmp_path, git=True)) == (3 if kind == "directory" else 2)


@pytest.mark.parametrize("name", [".github", ".gitignore", "git", "a.git", "git~2", "a git~1"])
def test_names_like_gits_are_ordinary(name: str, tmp_path: Path) -> None:
    builders.write_tree(tmp_path, {f"{name}/a": b"", f"sub/{name}": b""})
    assert paths(tmp_path) == [f"{name}/a", f"sub/{name}"]


def test_what_is_neither_file_nor_link_is_left_out(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        assert paths(tmp_path) == []


@pytest.mark.parametrize(("mode", "executable"), [(0o755, True), (0o700, True), (0o644, False), (0o655, False)])
def test_a_file_is_what_its_owner_may_do(mode: int, executable: bool, tmp_path: Path) -> None:
    builders.write_tree(tmp_path / "from", {"deep/a": b"12345"})
    (tmp_path / "from/deep/a").chmod(mode)
    (entry,) = entries(tmp_path / "from")
    assert (entry.executable, entry.size, entry.link) == (executable, 5, False)
    for data, content in ((None, b"12345"), (b"", b""), (b"x", b"x")):
        copy_entry(entry, tmp_path / f"to {data!r}", data)
        copied = tmp_path / f"to {data!r}" / "deep/a"
        assert copied.read_bytes() == content
        assert stat.S_IMODE(copied.stat().st_mode) == (0o755 if executable else 0o644)


def test_a_link_is_copied_as_one(tmp_path: Path) -> None:
    (tmp_path / "from").mkdir()
    (tmp_path / "from/link").symlink_to("nowhere")
    (entry,) = entries(tmp_path / "from")
    copy_entry(entry, tmp_path / "to", b"ignored")
    assert (tmp_path / "to/link").readlink() == Path("nowhere")


def test_names_for_people_show_odd_bytes() -> None:
    assert display(b"a\xff\xc3\xa9") == "a\\xffé"


def test_how_much_of_a_file_is_read() -> None:
    assert MAX_READ == 128 * 1024 * 1024
