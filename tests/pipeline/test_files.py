from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import exclusive_lock, is_locked, read_record, remove_tree, replace_directory, write_text
from pipeline.schema import Record


def test_a_failed_replacement_leaves_the_old_directory_and_no_rest(tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.mkdir()
    (target / "old").write_text("kept")

    def replace_and_fail() -> None:
        with replace_directory(target) as fresh:
            (fresh / "new").write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        replace_and_fail()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (target / "old").read_text() == "kept"


def test_a_directory_is_replaced_as_a_whole(tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.mkdir()
    (target / "old").write_text("gone")
    with replace_directory(target) as fresh:
        (fresh / "new").write_text("there")
    assert [path.name for path in target.iterdir()] == ["new"]


def test_removing_a_link_does_not_remove_what_it_points_to(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_text("x")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "kept")
    remove_tree(link)
    assert not link.is_symlink()
    assert (tmp_path / "kept" / "file").read_text() == "x"


def _hold(path: Path, held: multiprocessing.synchronize.Event, release: multiprocessing.synchronize.Event) -> None:
    with exclusive_lock(path, "it"):
        held.set()
        release.wait(30)


def test_a_lock_names_the_process_that_holds_it_and_is_free_when_that_was_killed(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    held, release = context.Event(), context.Event()
    process = context.Process(target=_hold, args=(tmp_path / "lock", held, release))
    process.start()
    assert held.wait(30)
    with pytest.raises(ExpbenchError, match=str(process.pid)) as caught, exclusive_lock(tmp_path / "lock", "it"):
        pass
    assert caught.value.kind is FailureKind.WORKSPACE_LOCKED
    assert is_locked(tmp_path / "lock")
    process.kill()
    process.join()
    assert not is_locked(tmp_path / "lock")
    with exclusive_lock(tmp_path / "lock", "it"):
        write_text(tmp_path / "f", "x")


class _Kept(Record):
    number: int


@pytest.mark.parametrize("text", [None, "{", '{"number": "x"}', "[]"])
def test_a_record_that_cannot_be_read_says_what_it_should_be_and_what_to_do(text: str | None, tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ExpbenchError) as caught:
        read_record(path, _Kept, consequence="Nothing was done", next_step="Write it again")
    assert (caught.value.kind, caught.value.object) == (FailureKind.RECORD_INVALID, str(path))
    assert caught.value.cause.startswith("cannot be read as Kept: ")
    assert "\n" not in str(caught.value)
    path.write_text('{"number": 3}')
    assert read_record(path, _Kept, consequence="c", next_step="n").number == 3
