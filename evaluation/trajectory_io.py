"""Writing and reading trajectories: one JSON line an event, appended so that a crash costs at most the last line.

A line is written with one `write` call and handed to the kernel at once: a process that is killed loses nothing that it
appended, and a reader beside it sees whole lines only (or one cut line at the end, which `read_trajectory` drops and
reports). The file is synced to disk when the writer closes; a power failure may cost the lines before that, and the
step that made them is then done again.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from pydantic import TypeAdapter, ValidationError

from evaluation.trajectory import Event, TrajectoryHead
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import write_text
from pipeline.schema import Problem, Severity

__all__ = ["TrajectoryWriter", "read_trajectory", "write_trajectory"]

_COMPONENT: Final = "evaluation.trajectory"
_EVENT: Final[TypeAdapter[Event]] = TypeAdapter(Event)


class TrajectoryWriter:
    """Appends events to a new trajectory file; safe to use from several threads.

    Args:
        path: the file; what was there is replaced.
        head: first line.
    """

    def __init__(self, path: Path, head: TrajectoryHead) -> None:
        self.path = path
        self._head = head
        self._next = 0
        self._guard = threading.Lock()
        self._file: int | None = None

    def __enter__(self) -> Self:
        """Create the file with its head.

        Raises:
            OSError: it cannot be written.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._write(self._head.model_dump_json())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._guard:
            if self._file is not None:
                os.fsync(self._file)
                os.close(self._file)
                self._file = None

    def append(self, event: Event) -> Event:
        """Write an event; it gets the next number.

        Returns:
            The event as it was written, with its `seq`.

        Raises:
            ValueError: the writer is closed.
        """
        with self._guard:
            numbered = event if event.seq == self._next else event.model_copy(update={"seq": self._next})
            self._write(numbered.model_dump_json())
            self._next += 1
        return numbered

    def _write(self, line: str) -> None:
        if self._file is None:
            raise ValueError(f"the trajectory {self.path.name} is not open for writing")
        data = memoryview(line.encode("utf-8", "backslashreplace") + b"\n")
        while data:  # one call, unless the disk is full half-way
            data = data[os.write(self._file, data) :]


def write_trajectory(path: Path, head: TrajectoryHead, events: list[Event]) -> list[Event]:
    """Replace a trajectory as a whole, atomically; events are renumbered in the order that is given.

    Returns:
        The events with their numbers.
    """
    numbered = [event.model_copy(update={"seq": seq}) for seq, event in enumerate(events)]
    lines = [head.model_dump_json(), *(event.model_dump_json() for event in numbered)]
    write_text(path, "".join(f"{line}\n" for line in lines))
    return numbered


def read_trajectory(path: Path) -> tuple[TrajectoryHead, list[Event], list[Problem]]:
    """Read a trajectory; what cannot be read of it is a problem, not the end of the reading.

    Args:
        path: a trajectory file.

    Returns:
        Its head, its events in the order of the file, and what was dropped: a last line that a crash cut, lines that
        are no event, numbers that are not in sequence.

    Raises:
        ExpbenchError: `RECORD_INVALID`: there is no file, or its first line is no head.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    *lines, rest = data.split(b"\n")
    if not lines:
        lines, rest = [rest], b""
    try:
        head = TrajectoryHead.model_validate_json(lines[0])
    except ValidationError as error:
        raise _unreadable(path, f"its first line is no head ({str(error).splitlines()[0]})") from error
    events: list[Event] = []
    problems: list[Problem] = []
    for number, line in enumerate(lines[1:], 2):
        try:
            event = _EVENT.validate_json(line)
        except ValidationError as error:
            problems.append(_problem(f"line {number}", f"is no event and was dropped: {str(error).splitlines()[0]}"))
            continue
        if events and event.seq <= events[-1].seq:
            problems.append(_problem(f"line {number}", f"event {event.seq} comes after event {events[-1].seq}"))
        events.append(event)
    if rest:
        message = f"its last line ({len(rest)} bytes) was cut off and dropped"
        problems.append(_problem(f"line {len(lines) + 1}", message))
    return head, events, problems


def _problem(where: str, message: str) -> Problem:
    return Problem(component=_COMPONENT, where=where, message=message, severity=Severity.WARNING)


def _unreadable(path: Path, cause: str) -> ExpbenchError:
    return ExpbenchError(
        FailureKind.RECORD_INVALID,
        str(path),
        f"cannot be read as a trajectory: {cause}",
        consequence="The episode's events are not known",
        next_step="Run the same `expbench evaluate` with --resume: an episode without a trajectory is run again",
    )
