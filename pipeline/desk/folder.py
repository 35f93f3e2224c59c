"""The desk's files: requests filed, answers found and held against their requests. One thread, one desk a directory."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pipeline.desk.answers import FORMS, Answer, Form, RefusedAnswer, check_schemas, forms_for, read_answer
from pipeline.desk.page import request_page
from pipeline.desk.wire import ChatRequest, RequestError, digest_of, read_request, split_images
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import exclusive_lock, replace_directory, write_text
from pipeline.schema import Record

__all__ = ["DeskFolder", "OpenRequest", "open_desk", "open_requests"]

_ID: Final = re.compile(r"(\d{4,})-([0-9a-f]{12})")
_SETTLED_S: Final = 2.0
"""How long a file has to be unchanged before it is read: editors and agents write in several goes."""
_SUMMARY: Final = 100


class OpenRequest(Record):
    """A request that waits for an answer."""

    page: Path
    waiting_s: float
    takes: tuple[str, ...]
    """How the names of the files go on that may answer it."""
    summary: str
    """The beginning of the last message."""
    refused: bool
    """Was an answer written that did not fit?"""


@contextmanager
def open_desk(directory: Path, by: str, settled_s: float = _SETTLED_S) -> Iterator[DeskFolder]:
    """The desk in a directory, made where there is none; arguments as of `DeskFolder`.

    Raises:
        ExpbenchError: `USAGE`: it cannot be written; `WORKSPACE_LOCKED`: a desk runs there; `RECORD_INVALID`.
    """
    try:
        for name in ("inbox", "outbox"):
            (directory / name).mkdir(parents=True, exist_ok=True)
        problem = (
            "" if all(os.access(directory / name, os.W_OK) for name in (".", "inbox", "outbox")) else "no permission"
        )
    except OSError as error:
        problem = str(error.strerror)
    if problem:
        raise ExpbenchError(
            FailureKind.USAGE, f"desk {directory}", f"cannot be written: {problem}",
            consequence="The desk was not opened", next_step="Name another directory, or see to its permissions",
        )  # fmt: skip
    with exclusive_lock(directory / ".lock", f"the desk {directory}"):
        yield DeskFolder(directory, by, settled_s)


class DeskFolder:
    """Requests and answers of one desk; see the package for the files.

    Args:
        directory: of the desk.
        by: who answers, where an answer does not say.
        settled_s: seconds for which an answer's file has to be unchanged.

    Raises:
        ExpbenchError: `RECORD_INVALID`: a request in it was damaged.
    """

    def __init__(self, directory: Path, by: str, settled_s: float) -> None:
        self._inbox, self._outbox = directory.resolve() / "inbox", directory.resolve() / "outbox"
        self._by, self._settled_s = by, settled_s
        self._ids = {path.name.partition("-")[2]: path.name for path in _entries(self._inbox)}
        self._open = {name: _request_in(self._inbox / name) for name in self._ids.values() if self.answer(name) is None}
        self._conversations: dict[str, tuple[str, int]] = {}
        self._refused: dict[str, object] = {}

    def file_request(self, body: Any) -> tuple[str, ChatRequest]:
        """The id of a request, new or the one that the same content has already; and the request, checked.

        Raises:
            RequestError: the desk does not take it.
        """
        request, digest = read_request(body), digest_of(body)[:12]
        if digest not in self._ids:
            number = max((int(name.partition("-")[0]) for name in self._ids.values()), default=0) + 1
            self._write_request(f"{number:04d}-{digest}", request, body)
            self._ids[digest] = f"{number:04d}-{digest}"
            self._open[self._ids[digest]] = request
        return self._ids[digest], request

    def _write_request(self, name: str, request: ChatRequest, body: dict[str, Any]) -> None:
        try:
            check_schemas(request)
        except ValueError as error:
            raise RequestError(str(error)) from error
        kept, files = split_images(body)
        page = request_page(name, self._outbox, kept, self._earlier(name, body["messages"]))
        texts = {"request.md": page, "request.json": json.dumps(kept, ensure_ascii=False, indent=1)}
        if request.answer_schema is not None:
            texts["schema.json"] = json.dumps(request.answer_schema, ensure_ascii=False, indent=1)
        # "replace": lone surrogates, which JSON may spell and no encoding can hold
        files |= {file: text.encode("utf-8", "replace") for file, text in texts.items()}
        with replace_directory(self._inbox / name) as folder:
            for file, data in files.items():
                (folder / file).write_bytes(data)

    def _earlier(self, name: str, messages: list[Any]) -> tuple[str, int] | None:
        """The request, since the desk was opened, that these messages go on from, and how many it had."""
        prefix, found = hashlib.sha256(), None
        for message in messages:
            prefix.update(json.dumps(message, sort_keys=True).encode("ascii"))
            found = self._conversations.get(prefix.hexdigest(), found)
        self._conversations[prefix.hexdigest()] = (name, len(messages))
        return found

    def answer(self, name: str) -> Answer | None:
        """The answer that was taken for a request.

        Raises:
            ExpbenchError: `RECORD_INVALID`: somebody changed it.
        """
        path = self._inbox / name / "answer.json"
        try:
            return Answer.model_validate_json(path.read_bytes()) if path.exists() else None
        except ValueError as error:
            raise _damaged(path, "answer", error) from error

    def take_answers(self) -> list[str]:
        """Look through the outbox once; the ids of requests that have an answer now."""
        present = {path.name for path in self._outbox.iterdir()}
        return [name for name in list(self._open) if self._take(name, present)]

    def _take(self, name: str, present: set[str]) -> bool:
        found: dict[Path, Form] = {
            self._outbox / (name + end): form for form, end in FORMS.items() if name + end in present
        }
        try:
            states = {path: (path.stat().st_mtime, path.stat().st_size) for path in found}
        except FileNotFoundError:  # an editor replaces it
            return False
        settled = all(abs(time.time() - changed) >= self._settled_s for changed, _ in states.values())
        if not found or not settled or self._refused.get(name) == states:
            return False
        try:
            answer = self._read(name, found)
        except RefusedAnswer as refused:
            self._refused[name] = states
            self._refuse(name, f"# {', '.join(path.name for path in found)}: not taken\n\n{refused}")
            return False
        write_text(self._inbox / name / "answer.json", answer.model_dump_json(indent=1))
        (self._outbox / f"{name}.refused.md").unlink(missing_ok=True)
        del self._open[name]
        return True

    def _refuse(self, name: str, why: str) -> None:
        page = self._inbox / name / "request.md"
        write_text(
            self._outbox / f"{name}.refused.md", f"{why}\n\nThe request is still open: correct the file. See {page}.\n"
        )

    def _read(self, name: str, found: dict[Path, Form]) -> Answer:
        if len(found) > 1:
            raise RefusedAnswer("There is more than one answer: remove all but one.")
        ((path, form),) = found.items()
        said_by = self._outbox / f"{name}.by"
        try:
            data = path.read_bytes()
            by = said_by.read_text("utf-8").strip() if said_by.exists() else self._by
        except (OSError, UnicodeDecodeError) as error:
            raise RefusedAnswer(f"It cannot be read: {error}.") from error
        try:
            text, calls = read_answer(self._open[name], form, data)
        except RecursionError as error:
            raise RefusedAnswer("It is nested too deeply.") from error
        digest = hashlib.sha256(data).hexdigest()
        return Answer(form=form, text=text, calls=calls, by=by, at=datetime.now(UTC), sha256=digest)


def open_requests(directory: Path) -> list[OpenRequest]:
    """What waits at a desk, oldest first; the desk need not run.

    Raises:
        ExpbenchError: `USAGE`: the directory is no desk; `RECORD_INVALID`: a request in it was damaged.
    """
    if not (directory / "inbox").is_dir():
        raise ExpbenchError(
            FailureKind.USAGE, str(directory), "is no desk: it has no inbox",
            consequence="There is nothing to list", next_step=f"Open one with `expbench desk {directory}`",
        )  # fmt: skip
    waiting = []
    for folder in (path for path in _entries(directory / "inbox") if not (path / "answer.json").exists()):
        request = _request_in(folder)
        texts = [text for message in request.messages for part in message.parts if (text := part.text.strip())]
        waiting.append(OpenRequest(
            page=folder / "request.md", takes=tuple(FORMS[form] for form in forms_for(request)),
            waiting_s=round(max(0.0, time.time() - (folder / "request.json").stat().st_mtime), 1),
            summary=" ".join(texts[-1].split())[:_SUMMARY] if texts else "",
            refused=(directory / "outbox" / f"{folder.name}.refused.md").exists(),
        ))  # fmt: skip
    return waiting


def _entries(inbox: Path) -> list[Path]:
    return sorted(path for path in inbox.iterdir() if _ID.fullmatch(path.name))


def _request_in(folder: Path) -> ChatRequest:
    try:
        return read_request(json.loads((folder / "request.json").read_bytes()))
    except (OSError, ValueError, RequestError) as error:
        raise _damaged(folder / "request.json", "request", error) from error


def _damaged(path: Path, what: str, error: Exception) -> ExpbenchError:
    return ExpbenchError(
        FailureKind.RECORD_INVALID, str(path), f"is no {what}: {error}",
        consequence="The desk cannot go on", next_step=f"Remove {path.parent}; a client that asks again files it anew",
    )  # fmt: skip
