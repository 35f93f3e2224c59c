"""Records come out of a hostile place: nothing in them is an exception."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.sandbox import Command, RunSpec, is_container
from pipeline.sandbox.docker import DockerSandbox
from pipeline.sandbox.process import ProcessSandbox
from pipeline.witness import read
from pipeline.witness.launch import with_witness
from pipeline.witness.records import Perturbation, WitnessReport

GOOD = {"argv": ["a.py"], "directory": "."}
HOSTILE = {
    "empty": b"", "no json": b"{", "a list": b"[]", "a number": b"7", "half a character": b'"\\ud800"',
    "not utf-8": b"\xff\xfe{}", "unknown field": b'{"argv": [], "directory": ".", "more": 1}', "missing": b'{"argv": []}',
    "deep": b"[" * 100_000, "negative": b'{"argv": [], "directory": ".", "draws": -1}',
    "huge number": b'{"argv": [], "directory": ".", "draws": ' + b"9" * 5000 + b"}",
    "places": b'{"argv": [], "directory": ".", "plotted": [{"kind": "plot", "axes": 1, "x": [], "values": [1]}]}',
    "infinite": b'{"argv": [], "directory": ".", "plotted": [{"kind": "plot", "axes": 1, "x": [1], "values": [Infinity]}]}',
    "not a number": b'{"argv": [], "directory": ".", "touched": NaN}',
}  # fmt: skip


def read_all(out: Path) -> WitnessReport:
    return read.read_witness(out, perturbation=Perturbation.MOVED, amount=5)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_malformed_record_is_a_problem_beside_the_good_ones(name: str, tmp_path: Path) -> None:
    (tmp_path / "outbox").mkdir()
    (tmp_path / "outbox" / "bad.json").write_bytes(HOSTILE[name])
    (tmp_path / "outbox" / "good.json").write_text(json.dumps(GOOD))
    report = read_all(tmp_path)
    assert [process.argv for process in report.processes] == [("a.py",)]
    assert [problem.where for problem in report.problems] == ["bad.json"]
    assert WitnessReport.model_validate_json(report.model_dump_json()) == report
    assert (report.perturbation, report.amount) == (Perturbation.MOVED, 5)


def test_processes_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    (tmp_path / "outbox").mkdir()
    for number in ("9", "10-1", "10", "100"):
        (tmp_path / "outbox" / f"m1-{number}.json").write_text(json.dumps(GOOD | {"argv": [number]}))
    assert [process.argv for process in read_all(tmp_path).processes] == [("9",), ("10",), ("10-1",), ("100",)]


def test_half_characters_in_text_can_be_stored(tmp_path: Path) -> None:
    (tmp_path / "outbox").mkdir()
    (tmp_path / "outbox" / "a.json").write_text(json.dumps(GOOD | {"printed": "\ud800", "facts": ["\udfff"]}))
    report = read_all(tmp_path)
    assert report.problems == ()
    assert report.processes[0].printed == "\\ud800"
    assert report.model_dump_json()


def test_links_pipes_and_large_files_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "_MAX_BYTES", 100)
    monkeypatch.setattr(read, "_MAX_PROBLEMS", 4)
    outbox = tmp_path / "outbox"
    outbox.mkdir()
    (tmp_path / "secret").write_text(json.dumps(GOOD))
    (outbox / "link.json").symlink_to(tmp_path / "secret")
    os.mkfifo(outbox / "pipe.json")
    (outbox / "folder.json").mkdir()
    (outbox / "large.json").write_text(json.dumps(GOOD | {"printed": "x" * 100}))
    (outbox / "other.txt").write_text("")
    report = read_all(tmp_path)
    assert report.processes == ()
    assert len(report.problems) == 5
    assert report.problems[-1].message == "and 2 more problems"


def test_more_records_than_processes_can_be_are_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "_MAX_PROCESSES", 2)
    (tmp_path / "outbox").mkdir()
    for index in range(3):
        (tmp_path / "outbox" / f"{index}.json").write_text(json.dumps(GOOD))
    report = read_all(tmp_path)
    assert (len(report.processes), report.problems[0].message) == (2, "3 records, of which 2 were read")


def test_no_record_is_said(tmp_path: Path) -> None:
    assert "nothing is known" in read_all(tmp_path).problems[0].message


def test_only_containers_carry_a_witness(tmp_path: Path) -> None:
    assert is_container(DockerSandbox())
    assert not is_container(ProcessSandbox())
    spec = RunSpec(commands=(Command(argv=("true",)),), outbox="/mine")
    with pytest.raises(ExpbenchError) as caught:
        with_witness(spec, perturbation=Perturbation.NONE, amount=0, python="3.11", scratch=tmp_path)
    assert caught.value.kind is FailureKind.USAGE


def test_names_are_new_in_each_run_and_files_are_readable(tmp_path: Path) -> None:
    spec = RunSpec(commands=(Command(argv=("true",)),))
    first, second = (
        with_witness(spec, perturbation=Perturbation.NONE, amount=0, python="3.11", scratch=tmp_path) for _ in range(2)
    )
    assert first.outbox != second.outbox
    assert not {mount.target for mount in first.mounts} & {mount.target for mount in second.mounts}
    assert all(mount.source.stat().st_mode & 0o777 == 0o644 for mount in first.mounts)
