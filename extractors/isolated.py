"""Reads a PDF in a process of its own, with limits of memory and time, so that a bad file can do no harm.

A damaged or hostile PDF may crash the parser, loop in it or eat memory; none of that can be caught in the process that
asks. The child tells its progress line by line and leaves the document in a file. Non-goals: protection against code in
the PDF (the parser runs none) and speed: starting the child costs about a second.
"""

from __future__ import annotations

import json
import resource
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final, Literal, NoReturn

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import write_text
from pipeline.paper import Document
from pipeline.progress import Reporter, SilentReporter

__all__ = ["ReadingLimits", "read_isolated"]


class ReadingLimits:
    """What the child may use.

    Attributes:
        memory_mb: address space in MiB; real papers take 100 to 250 MB of memory, OCR of an A4 page 400.
        silence_s: seconds without a sign of life between two pages; the slowest page of real papers took 5.
        ocr_s: the same while a page is read by OCR, which ends by itself after 180 s.
    """

    def __init__(self, memory_mb: int = 4096, silence_s: float = 60.0, ocr_s: float = 400.0) -> None:
        self.memory_mb = memory_mb
        self.silence_s = silence_s
        self.ocr_s = ocr_s


_GRACE: Final = 5.0
_START: Final = 120.0
"""Seconds for the child to load the parser: 1 s on a quiet machine, 10 s were seen on a busy one."""
_STARTED: Final = "extractors.isolated"


class _LineReporter(SilentReporter):
    """Tells progress as JSON lines on standard output."""

    @staticmethod
    def _say(*words: object) -> None:
        sys.stdout.write(json.dumps(words) + "\n")
        sys.stdout.flush()

    def start(self, stage: str, total: int | None = None) -> None:
        """A stage begins."""
        self._say("start", stage, total)

    def step(self, stage: str, message: str) -> None:
        """A step is done."""
        self._say("step", stage, message)

    def note(self, stage: str, message: str) -> None:
        """OCR of a page begins."""
        self._say("note", stage, message)

    def end(self, stage: str, message: str = "") -> None:
        """A stage has ended."""
        self._say("end", stage, message)


def read_isolated(
    pdf: Path, *, reporter: Reporter = SilentReporter(), ocr: Literal["auto", "off"] = "auto",  # noqa: B008
    limits: ReadingLimits = ReadingLimits(),  # noqa: B008 - never changed
) -> Document:  # fmt: skip
    """As `extractors.document.read_document`, in a child process with limits.

    Raises:
        ExpbenchError: what `read_document` raises; and `PAPER_UNREADABLE` when the child died, took too much memory or
            gave no sign of life in time.
    """
    with tempfile.TemporaryDirectory(prefix="expbench-read-") as scratch:
        answer = Path(scratch) / "answer.json"
        child = subprocess.Popen(
            [sys.executable, "-m", _STARTED, str(pdf), str(answer), ocr, str(limits.memory_mb)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, bufsize=1,
        )  # fmt: skip
        try:
            in_time = _listen(child, reporter, limits)
        finally:
            if child.poll() is None:
                child.kill()
            _, complaint = child.communicate()
        if not in_time:
            _give_up(pdf, f"reading it gave no sign of life for {limits.silence_s:.0f} s and was ended")
        if child.returncode != 0 or not answer.is_file():
            _give_up(pdf, _cause_of_death(child.returncode, complaint, limits))
        said = json.loads(answer.read_text("utf-8"))
    if "document" in said:
        return Document.model_validate(said["document"])
    raise ExpbenchError(
        FailureKind(said["kind"]), said["object"], said["cause"],
        consequence=said["consequence"], next_step=said["next_step"],
    )  # fmt: skip


def _give_up(pdf: Path, cause: str) -> NoReturn:
    raise ExpbenchError(
        FailureKind.PAPER_UNREADABLE, str(pdf), cause, consequence="The paper was not read",
        next_step="Download the paper again, or print it to a new PDF",
    )  # fmt: skip


def _cause_of_death(code: int, complaint: str, limits: ReadingLimits) -> str:
    if "MemoryError" in complaint or "cannot allocate" in complaint.lower() or "malloc" in complaint:
        return f"reading it takes more than {limits.memory_mb} MiB of memory"
    if code < 0:
        name = signal.Signals(-code).name if -code in {s.value for s in signal.Signals} else str(-code)
        return f"the PDF parser crashed on it ({name})"
    last = complaint.strip().splitlines()[-1:] or [f"exit code {code}"]
    return f"the reading process ended without an answer ({last[0][:200]})"


def _listen(child: subprocess.Popen[str], reporter: Reporter, limits: ReadingLimits) -> bool:
    """Hand on progress until the child has ended; False when it fell silent."""
    if child.stdout is None:
        raise ValueError("the child's output is not connected")
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        last, silence = time.monotonic(), max(_START, limits.silence_s)
        while True:
            left = silence - (time.monotonic() - last)
            if left <= 0:
                return False
            if not selector.select(min(left, _GRACE)):
                continue
            line = child.stdout.readline()
            if not line:
                return True
            last = time.monotonic()
            silence = limits.ocr_s if _hand_on(line, reporter) == "note" else limits.silence_s


def _hand_on(line: str, reporter: Reporter) -> str:
    try:
        word, stage, detail = json.loads(line)
    except ValueError:
        return ""  # a library's own remark
    if word == "start":
        reporter.start(stage, detail)
    elif word == "step":
        reporter.step(stage, detail)
    elif word == "note":
        reporter.note(stage, detail)
    else:
        reporter.end(stage, detail)
    return str(word)


def main() -> None:
    """The child: PDF, file for the answer, `auto` or `off`, MiB."""
    from extractors.document import read_document  # only here: the parent does not need the parser

    pdf, answer, ocr, memory = sys.argv[1:5]
    limit = int(memory) * 1024 * 1024
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    said: dict[str, object]
    try:
        document = read_document(Path(pdf), reporter=_LineReporter(), ocr="off" if ocr == "off" else "auto")
        said = {"document": document.model_dump(mode="json")}
    except ExpbenchError as error:
        said = {
            "kind": error.kind.value, "object": error.object, "cause": error.cause,
            "consequence": error.consequence, "next_step": error.next_step,
        }  # fmt: skip
    write_text(Path(answer), json.dumps(said))


if __name__ == "__main__":
    main()
