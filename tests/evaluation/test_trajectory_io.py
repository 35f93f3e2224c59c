"""Trajectories survive crashes: what was appended is there, a cut last line is dropped and named."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.trajectory import CommandRun, Event, Note, TrajectoryHead, Utterance
from evaluation.trajectory_io import TrajectoryWriter, read_trajectory, write_trajectory
from pipeline.errors import ExpbenchError, FailureKind

HEAD = TrajectoryHead(episode="t/0", agent="noop")
# lone surrogates are no text: JSON in UTF-8 cannot hold them, and readers decode with `replace`
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)


def written(path: Path, count: int) -> list[Event]:
    with TrajectoryWriter(path, HEAD) as writer:
        return [writer.append(Note(seq=0, at=float(number), text=f"event {number}")) for number in range(count)]


def test_events_are_renumbered_and_read_back(tmp_path: Path) -> None:
    events = written(tmp_path / "t.jsonl", 3)
    assert [event.seq for event in events] == [0, 1, 2]
    assert read_trajectory(tmp_path / "t.jsonl") == (HEAD, events, [])


@settings(max_examples=40, deadline=None)
@given(texts=st.lists(TEXT, max_size=5), data=st.data())
def test_a_file_cut_anywhere_gives_the_whole_lines_before_the_cut(
    texts: list[str], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("cut") / "t.jsonl"
    with TrajectoryWriter(path, HEAD) as writer:
        events = [writer.append(Utterance(seq=0, at=0, role="user", text=text)) for text in texts]
    content = path.read_bytes()
    first = content.index(b"\n") + 1
    cut = data.draw(st.integers(first, len(content)))
    path.write_bytes(content[:cut])
    _, found, problems = read_trajectory(path)
    whole = content[:cut].count(b"\n") - 1
    assert found == events[:whole]
    assert bool(problems) == (not content[:cut].endswith(b"\n"))


def test_damaged_lines_are_problems_and_cost_only_themselves(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    events = written(path, 3)
    lines = path.read_bytes().split(b"\n")
    lines[2] = b'{"kind": "note", "seq": '
    path.write_bytes(b"\n".join(lines))
    _, found, problems = read_trajectory(path)
    assert found == [events[0], events[2]]
    assert [problem.where for problem in problems] == ["line 3"]


def test_numbers_out_of_order_are_named(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    written(path, 2)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], lines[2], lines[1]]))
    assert "comes after" in read_trajectory(path)[2][0].message


def test_threads_append_whole_lines_with_their_own_numbers(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    with TrajectoryWriter(path, HEAD) as writer:

        def work(name: int) -> None:
            for number in range(50):
                writer.append(CommandRun(seq=0, at=0, command=f"{name} {number}", output="x" * 3000))

        threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    _, events, problems = read_trajectory(path)
    assert [event.seq for event in events] == list(range(200))
    assert problems == []


def test_a_file_without_head_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"kind": "note"}\n')
    for name in ("t.jsonl", "missing.jsonl"):
        with pytest.raises(ExpbenchError) as caught:
            read_trajectory(tmp_path / name)
        assert caught.value.kind is FailureKind.RECORD_INVALID


def test_a_closed_writer_refuses(tmp_path: Path) -> None:
    writer = TrajectoryWriter(tmp_path / "t.jsonl", HEAD)
    with writer:
        pass
    with pytest.raises(ValueError, match="not open"):
        writer.append(Note(seq=0, at=0, text="late"))


def test_a_whole_trajectory_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    written(path, 5)
    events = write_trajectory(path, HEAD, [Note(seq=7, at=0, text="only")])
    assert [event.seq for event in events] == [0]
    assert read_trajectory(path)[1] == events
