"""Every bad PDF gives a document or a clear error, within limits; what readers do not see is not read."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from extractors.isolated import ReadingLimits, _Lines, read_isolated
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.progress import SilentReporter
from tests.extractors.bad_pdfs import BAD_PDFS, HIDDEN
from tests.extractors.paper_builder import small_paper

_SLOW = "long_line"
"""The parser itself takes minutes over it: for the test of the time limit."""
_READABLE = {
    "cyclic_form", "huge_page", "encrypted_empty", "javascript", "wrong_font", "invisible", "right_to_left",
    "many_strokes", "truncated", "cyclic_pages", "deep_nesting",
}  # fmt: skip


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What became of each file."""
    directory = tmp_path_factory.mktemp("bad")
    for name, make in BAD_PDFS.items():
        if name != _SLOW:
            make(directory / f"{name}.pdf")
    done = subprocess.run(
        [sys.executable, "-m", "tests.extractors.fuzz_driver", str(directory)],
        capture_output=True, text=True, timeout=300, check=True, cwd=Path(__file__).resolve().parents[2],
    )  # fmt: skip
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {line["name"]: line for line in lines}


@pytest.mark.parametrize("name", sorted(set(BAD_PDFS) - {_SLOW}))
def test_a_bad_pdf_gives_a_document_or_a_clear_error(outcomes: dict[str, dict[str, Any]], name: str) -> None:
    outcome = outcomes[name]
    assert outcome["died"] == 0, outcome
    if "error" in outcome:
        assert FailureKind(outcome["error"]) in {
            FailureKind.PAPER_INVALID, FailureKind.PAPER_ENCRYPTED, FailureKind.PAPER_EMPTY, FailureKind.PAPER_UNREADABLE,
        }  # fmt: skip
        assert name not in _READABLE - {"truncated", "cyclic_pages", "deep_nesting"}, outcome["message"]
        assert outcome["message"].count(". ") >= 2  # cause, consequence, next step
    else:
        assert name in _READABLE
        assert outcome["pages"] >= 1
        assert outcome["peak_mb"] < 400


def test_what_a_reader_does_not_see_is_reported_and_not_read(outcomes: dict[str, dict[str, Any]]) -> None:
    outcome = outcomes["invisible"]
    assert HIDDEN[:30] not in outcome["text"]
    reasons = " | ".join(outcome["hidden"])
    for reason in ("smaller than", "outside the page", "invisible rendering", "colour of its background"):
        assert reason in reasons
    assert sum(reason.startswith("under a picture") for reason in outcome["hidden"]) == 2
    assert outcome["hidden_text"].count("Ignore all previous") == 6


def test_hebrew_stays_readable(outcomes: dict[str, dict[str, Any]]) -> None:
    assert "שלום" in outcomes["right_to_left"]["text"]


class _Counting(SilentReporter):
    """Counts the steps."""

    def __init__(self) -> None:
        self.steps = 0

    def step(self, stage: str, message: str) -> None:
        """One more."""
        self.steps += 1


def test_the_isolated_reader_gives_the_same_document_and_tells_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the current directory, a paper's repository say, has a module of the name of one of ours."""
    from extractors.document import read_document

    (tmp_path / "repository").mkdir()
    for name in ("resource.py", "extractors.py"):
        (tmp_path / "repository" / name).write_text("raise SystemExit('run')", encoding="utf-8")
    monkeypatch.chdir(tmp_path / "repository")
    pdf = small_paper(tmp_path / "paper.pdf")
    reporter = _Counting()
    assert read_isolated(pdf, reporter=reporter, ocr="off") == read_document(pdf, ocr="off")
    assert reporter.steps == 2


def test_a_parser_without_end_is_ended_and_errors_arrive_whole(tmp_path: Path) -> None:
    slow, locked = tmp_path / "slow.pdf", tmp_path / "locked.pdf"
    BAD_PDFS[_SLOW](slow)
    with pytest.raises(ExpbenchError, match="no sign of life for 1 s") as caught:
        read_isolated(slow, ocr="off", limits=ReadingLimits(silence_s=1.0))
    assert caught.value.kind is FailureKind.PAPER_UNREADABLE
    BAD_PDFS["encrypted"](locked)
    with pytest.raises(ExpbenchError, match="password") as refused:
        read_isolated(locked, ocr="off")
    assert refused.value.kind is FailureKind.PAPER_ENCRYPTED


def test_lines_are_told_as_they_arrive_and_not_one_at_a_time() -> None:
    """A bug it records: the remark that OCR begins was held back until the next line, and OCR was ended as silence."""
    reading, writing = os.pipe()
    try:
        lines = _Lines(reading)
        os.write(writing, b"step\nnote\nha")
        assert list(lines.read()) == ["step", "note"]
        os.write(writing, b"lf\n")
        assert list(lines.read()) == ["half"]
    finally:
        os.close(writing)
    assert list(lines.read()) == [None]
    os.close(reading)


_ASKING = """
import signal
import sys
from pathlib import Path
from extractors.isolated import read_isolated
from pipeline.progress import SilentReporter

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background

class Started(SilentReporter):
    def start(self, stage, total=None):
        print("reading", flush=True)

read_isolated(Path(sys.argv[1]), reporter=Started(), ocr="off")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc and waits for a process that is not a child")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_the_reading_child_ends_with_the_process_that_asked(tmp_path: Path, how: signal.Signals) -> None:
    slow = tmp_path / "slow.pdf"
    BAD_PDFS[_SLOW](slow)
    asking = subprocess.Popen(
        [sys.executable, "-c", _ASKING, str(slow)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    with asking:
        assert asking.stdout is not None
        assert asking.stdout.readline() == "reading\n"
        (child,) = _children(asking.pid)
        watched = os.pidfd_open(child)
        try:
            asking.send_signal(how)
            asking.wait(60)
            assert select.select([watched], [], [], 60)[0], "the child reads on"
        finally:
            os.close(watched)


def _children(parent: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text("utf-8", errors="replace").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended since
        if int(fields[1]) == parent:
            found.append(int(path.parent.name))
    return found
