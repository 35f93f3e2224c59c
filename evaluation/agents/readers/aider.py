"""Aider: its chat history (Markdown), and what our script kept of the runs of `reproduce.sh`.

In the history, lines that begin with `#### ` are the user's, lines that begin with `> ` are aider's own, everything
else is the model's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from evaluation.agents.readers.events import Builder, hit_limit, read_log, tail
from evaluation.trajectory import Event, TokenUsage

__all__ = ["read_aider"]

_START: Final = "# aider chat started at"
_TOKENS: Final = re.compile(r"Tokens: ([\d.,]+)(k?) sent, (?:.*?)([\d.,]+)(k?) received")
_APPLIED: Final = re.compile(r"Applied edit to (.+)")
_CREATED: Final = re.compile(r"Create new file\?")
_ADDED: Final = re.compile(r"Added \d+ lines? of output to the chat")
_ERRORS: Final = re.compile(r"litellm\.|API provider|APIError|exceeded your")


def read_aider(chat: Path, runs: Path, stderr: Path) -> Iterator[Event]:
    """Events of a run.

    Args:
        chat: its chat history.
        runs: directory with `<n>.out` and `<n>.code` of each run of `reproduce.sh`.
        stderr: what it printed there.
    """
    build = Builder()
    lines = read_log(chat).decode("utf-8", "replace").splitlines()
    if not lines:
        yield build.no_log("aider", stderr)
        return
    reader = _Reader(build, _runs(runs))
    for line in lines:
        yield from reader.line(line.rstrip())
    yield from reader.rest()
    if reader.error:
        yield build.end("limit" if hit_limit(reader.error) else "agent_error", reader.error)
    elif reader.chats >= 2 and reader.answered:
        yield build.end("finished")


def _runs(folder: Path) -> list[tuple[str, int | None]]:
    """Output and exit code of each run, in their order."""
    found = []
    for path in sorted(folder.glob("*.out")) if folder.is_dir() else []:
        code = tail(path.with_suffix(".code"))
        text = read_log(path).decode("utf-8", "replace")
        found.append((text, int(code) if re.fullmatch(r"\d{1,3}", code) else None))
    return found


class _Reader:
    """Cuts the history into turns."""

    def __init__(self, build: Builder, runs: list[tuple[str, int | None]]) -> None:
        self._build, self._runs = build, runs
        self._user: list[str] = []
        self._model: list[str] = []
        self._own = ""
        self._created: set[str] = set()
        self.chats = 0
        self.answered = False
        self.error = ""

    def line(self, line: str) -> Iterator[Event]:
        """One line of the history."""
        if line.startswith(_START):
            yield from self._flush()
            if self.chats:  # all but the last run belong to the first call
                while len(self._runs) > 1:
                    yield self._run()
            self.chats += 1
            self.answered = False
        elif line.startswith("#### "):
            if self._model:
                yield from self._flush()
            self._user.append(line[5:])
        elif line.startswith("> "):
            yield from self._aider(line[2:])
        elif line.strip() or self._model:
            if self._user:
                yield self._build.utterance("user", "\n".join(self._user))
                self._user = []
            self._model.append(line)

    def _aider(self, line: str) -> Iterator[Event]:
        tokens = _TOKENS.search(line)
        applied = _APPLIED.search(line)
        if tokens:
            usage = TokenUsage(input_tokens=_count(tokens[1], tokens[2]), output_tokens=_count(tokens[3], tokens[4]))
            self.answered, self.error = True, ""
            yield from self._flush(usage)
        elif applied:
            created = applied[1] in self._created
            self._created.discard(applied[1])
            yield self._build.change(applied[1], "created" if created else "edited", "")
        elif _CREATED.search(line):
            self._created.add(self._own)  # it names the file in the line before
        elif _ADDED.search(line) and self._runs:
            yield self._run()
        elif _ERRORS.search(line):
            self.error = line
            yield self._build.note(line)
        self._own = line

    def _run(self) -> Event:
        output, code = self._runs.pop(0)
        return self._build.command("bash reproduce.sh", output, exit_code=code)

    def _flush(self, usage: TokenUsage | None = None) -> Iterator[Event]:
        if self._user:
            yield self._build.utterance("user", "\n".join(self._user))
        text = "\n".join(self._model).strip()
        if text:
            yield self._build.turn(text, usage=usage)
        self._user, self._model = [], []

    def rest(self) -> Iterator[Event]:
        """What is left at the end of the history."""
        yield from self._flush()
        while self._runs:
            yield self._run()


def _count(number: str, thousands: str) -> int:
    try:
        value = float(number.replace(",", ""))
    except ValueError:
        return 0
    return int(value * (1000 if thousands else 1))
