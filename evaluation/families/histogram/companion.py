"""The reader of papers beside an agent's container: it answers `bin/read-paper` over a unix socket.

The container has no network and no extractor; the client in the workspace sends one line of JSON and gets one back.
What is read is fixed here: the task's own paper. A request names pages, never a path; whatever else it holds is
refused.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from pydantic import Field, ValidationError

from evaluation.families.histogram.paper_reader import PaperReader
from evaluation.families.socket_service import SocketService
from evaluation.trajectory import Event, Note
from pipeline.errors import ExpbenchError
from pipeline.schema import Record

__all__ = ["READ_PAPER", "SOCKET", "read_paper_service"]

SOCKET: Final = "paper.sock"
READ_PAPER: Final = "EXPBENCH_READ_PAPER"
"""Environment variable with the socket's path in the container."""
_MOST_REQUEST: Final = 4096


class _Request(Record):
    paper: str = Field(max_length=200)
    pages: str = Field(default="", max_length=200)
    figures: bool = False


class _Desk:
    """Answers requests about one paper, and keeps a line about each.

    Args:
        reader: of the paper.
        paper: its name in the workspace, without `.pdf`.
        log: file that gets a line for each request.
        emit: takes a note about each request for the trajectory.
    """

    def __init__(self, reader: PaperReader, paper: str, log: Path, emit: Callable[[Event], object]) -> None:
        self._reader, self._paper, self._log, self._emit = reader, paper, log, emit

    def answer(self, line: bytes) -> dict[str, Any]:
        """What a request gets."""
        try:
            request = _Request.model_validate_json(line)
        except ValidationError:
            self.note({"error": "no request"})
            return {"error": "this is no request of read-paper"}
        record: dict[str, Any] = {"pages": request.pages, "figures": request.figures}
        if Path(request.paper).name != f"{self._paper}.pdf":
            self.note(record | {"error": f"another file was named: {request.paper[:100]}"})
            return {"error": f"only papers/{self._paper}.pdf can be read here"}
        try:
            if request.figures:
                images = self._reader.figures(request.pages)
                self.note(record | {"images": len(images)})
                encoded = [
                    {"name": item.name, "page": item.page, "caption": item.caption,
                     "png": base64.b64encode(item.png).decode("ascii")}
                    for item in images
                ]  # fmt: skip
                return {"text": "" if encoded else "no figure was found on these pages\n", "figures": encoded}
            text = self._reader.text(request.pages)
        except ExpbenchError as error:
            self.note(record | {"error": error.cause})
            return {"error": f"{error.cause}. {error.next_step}"}
        self.note(record | {"characters": len(text)})
        return {"text": text}

    def note(self, record: Mapping[str, Any]) -> None:
        """Keep a line about a request, and say it in the trajectory."""
        told = ", ".join(f"{name} {value}" for name, value in record.items() if value not in {"", False})
        self._emit(Note(seq=0, at=0, text=f"read-paper: {told}"))
        with self._log.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(record, ensure_ascii=False) + "\n")


@contextmanager
def read_paper_service(
    pdf: Path, paper: str, *, directory: Path, log: Path, emit: Callable[[Event], object], seen_as: str
) -> Iterator[dict[str, str]]:
    """Answer requests until the context ends.

    Args:
        pdf: the paper's file on this side.
        paper: its name in the workspace, without `.pdf`.
        directory: for the socket.
        log: file that gets a line for each request.
        emit: takes a note about each request for the trajectory.
        seen_as: path of `directory` in the container.

    Yields:
        Environment variables for the agent.

    Raises:
        ExpbenchError: `SANDBOX_BROKEN`: the socket cannot be made, or a request could not be answered.
    """
    desk = _Desk(PaperReader(pdf, name=f"{paper}.pdf"), paper, log, emit)
    with SocketService(directory / SOCKET, desk.answer, name="read-paper", longest=_MOST_REQUEST):
        yield {READ_PAPER: f"{seen_as}/{SOCKET}"}
