"""Reads a PDF in a process of its own, with limits of memory and time, so that a bad file can do no harm.

A damaged or hostile PDF may crash the parser, loop in it or eat memory; none of that can be caught in the process that
asks. The child tells its progress line by line and leaves the document in a file. It leads a process group of its own
(its OCR ends with it) and is ended with the process that asked, however that ends. Non-goals: protection against code
in the PDF (the parser runs none) and speed: starting the child costs about a second.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, NoReturn

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import write_text
from pipeline.paper import Document
from pipeline.progress import Reporter, SilentReporter
from pipeline.scratch import scratch_directory

__all__ = ["ReadingLimits", "read_isolated"]


class ReadingLimits:
    """What the child may use.

    Attributes:
        memory_mb: address space in MiB; real papers take 100 to 250 MB of memory, OCR of an A4 page 400.
        silence_s: seconds without a sign of life between two pages; the slowest page of real papers took 5. On a busy
            machine the child may wait for its turn: it is ended when it computed for half of that, at the latest after
            five times of it.
        ocr_s: the same while a page is read by OCR, which ends by itself after 180 s.
    """

    def __init__(self, memory_mb: int = 4096, silence_s: float = 60.0, ocr_s: float = 400.0) -> None:
        self.memory_mb = memory_mb
        self.silence_s = silence_s
        self.ocr_s = ocr_s


_GRACE: Final = 5.0
_TICK: Final = 0.1
_START: Final = 120.0
"""Seconds for the child to load the parser: 1 s on a quiet machine, 10 s were seen on a busy one."""
_STARTED: Final = "extractors.isolated"
_LATEST: Final = 5.0
"""Times `silence_s` after which a child that does not compute either is ended."""
_PR_SET_PDEATHSIG: Final = 1


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
    with scratch_directory() as scratch:
        answer, complaints = Path(scratch) / "answer.json", Path(scratch) / "complaints.txt"
        with complaints.open("wb") as errors:  # a file: a child that complains a lot must not wait for a reader
            child = subprocess.Popen(
                # -P: a module of the same name in the current directory (a paper's repository) is never run
                [sys.executable, "-P", "-m", _STARTED, str(pdf), str(answer), ocr, str(limits.memory_mb),
                 str(os.getpid())],
                stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL, process_group=0,
            )  # fmt: skip
        try:
            silent = _listen(child, reporter, limits)
        finally:
            _end(child)
        if silent is not None:
            _give_up(pdf, f"reading it gave no sign of life for {silent:.0f} s and was ended")
        if child.returncode != 0 or not answer.is_file():
            complaint = complaints.read_text("utf-8", errors="replace")
            _give_up(pdf, _cause_of_death(child.returncode, complaint, limits))
        said = json.loads(answer.read_text("utf-8"))
    if "document" in said:
        return Document.model_validate(said["document"])
    raise ExpbenchError(
        FailureKind(said["kind"]), said["object"], said["cause"],
        consequence=said["consequence"], next_step=said["next_step"],
    )  # fmt: skip


def _end(child: subprocess.Popen[bytes], grace_s: float = 0.0) -> None:
    """Wait for a child that is ending; end it, and what it started, when it takes longer."""
    try:
        child.wait(grace_s)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    finally:
        child.wait()
        if child.stdout is not None:
            child.stdout.close()


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


def _listen(child: subprocess.Popen[bytes], reporter: Reporter, limits: ReadingLimits) -> float | None:
    """Hand on progress until the child has ended; the seconds for which it was silent when that was too long."""
    if child.stdout is None:
        raise ValueError("the child's output is not connected")
    lines = _Lines(child.stdout.fileno())
    limit, in_ocr = max(_START, limits.silence_s), False
    last, computed = time.monotonic(), _cpu_seconds(child.pid)
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while True:
            silent = time.monotonic() - last
            if silent >= limit:
                used = None if in_ocr or computed is None else (_cpu_seconds(child.pid) or 0.0) - computed
                if used is None or used >= limit / 2 or silent >= _LATEST * limit:
                    return limit
            if not selector.select(max(_TICK, min(limit - silent, _GRACE))):
                continue
            for line in lines.read():
                if line is None:
                    _end(child, _START)
                    return None
                word = _hand_on(line, reporter)
                in_ocr = word == "note"
                limit = limits.ocr_s if in_ocr else limits.silence_s
            last, computed = time.monotonic(), _cpu_seconds(child.pid)


class _Lines:
    """Whole lines of a pipe as soon as they are there.

    A buffered `readline` would keep all but the first of several lines to itself until the next one arrives, and the
    remark that OCR has begun (which allows more time) is written together with the line before it.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._rest = b""

    def read(self) -> Iterator[str | None]:
        """What has arrived; None at the end of the stream."""
        arrived = os.read(self._descriptor, 65536)
        *lines, self._rest = (self._rest + arrived).split(b"\n")
        yield from (line.decode("utf-8", errors="replace") for line in lines)
        if not arrived:
            yield None


def _cpu_seconds(pid: int) -> float | None:
    """What a process has computed so far; None where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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


def _die_with(parent: int) -> None:
    """End when the process that asked is gone, killed ones too (Linux; elsewhere the closed pipe ends the child)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit("the process that asked has ended")


def main() -> None:
    """The child: PDF, file for the answer, `auto` or `off`, MiB, process that asked."""
    pdf, answer, ocr, memory, parent = sys.argv[1:6]
    _die_with(int(parent))
    from extractors.document import read_document  # only here: the parent does not need the parser

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
