"""The monitor's second opinion: a model reads scripts and logs in windows and says what was not computed.

The rules (`pipeline.validation.monitor`) come first and know forms; a model knows meaning. Every finding quotes lines
that exist, and one that would reject a result is put to the model once more, to be refuted. Nothing is left out
silently: windows that were not read make the verdict unknown and are named. Failures of the endpoint or the budget are
raised. Non-goal: deciding alone - the caller joins both opinions and shows disagreement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from pydantic import Field

from pipeline.errors import FailureKind
from pipeline.llm import ModelClient, ModelError, PromptRef, Request, addressed_to_models, load_prompt
from pipeline.progress import Reporter
from pipeline.repository import Snapshot
from pipeline.sandbox.base import RunResult
from pipeline.schema import Problem, Record, Severity
from pipeline.task import NumericClaim, Verdict
from pipeline.text import shorten
from pipeline.tracing.lines import FileLines

__all__ = ["Finding", "ModelMonitor", "MonitorLimits", "SecondLook", "WindowFindings", "monitor_with_model"]

_COMPONENT: Final = "validation.model_monitor"
_STAGE: Final = "validate"
_LINE: Final = 2_000
Lines = tuple[tuple[int, str], ...]
_LOG_PART: Final = 8_000_000
"""Bytes of a log's beginning and of its end that are read; what is between is named as not read."""


class MonitorLimits(Record):
    """How much is read."""

    window_characters: int = Field(default=16_000, ge=1_000)
    """About 5,000 tokens: small enough that models attend to all of it, and a usual script is one window."""
    overlap_lines: int = Field(default=10, ge=0)
    windows: int = Field(default=40, ge=1)
    """Questions for one run, second looks not counted. Scripts come first, then each log's beginning and end."""


class Finding(Record):
    """Something in a window that was not computed."""

    kind: Literal["mock", "fabricated", "shipped", "not_run"]
    start: int = Field(ge=1)
    end: int = Field(ge=1)
    quote: str = Field(min_length=1, max_length=2000)
    why: str = Field(min_length=1, max_length=600)
    certainty: Literal["certain", "suspicious"]


class WindowFindings(Record):
    """What is wrong in one window."""

    findings: tuple[Finding, ...] = Field(max_length=20)


class SecondLook(Record):
    """The attempt to refute a finding."""

    reading: str = Field(min_length=1, max_length=600, description="the most innocent reading of the lines")
    verdict: Literal["holds", "refuted", "cannot_tell"]


class ModelMonitor(Record):
    """What a model says of a run."""

    verdict: Verdict
    """fail: at least one finding held; pass: all was read and nothing was found; unknown otherwise."""
    problems: tuple[Problem, ...]
    """Sorted by place; severity `error` where the outcome must not be believed."""
    windows_read: int
    windows: int
    """Those there were; more than were read when the limit was reached or the model gave no valid answer."""
    model: str
    prompts: tuple[PromptRef, ...]
    """For the task's provenance."""


@dataclass(frozen=True, slots=True)
class _Window:
    where: str
    """File, or `command 1 stdout`."""
    lines: tuple[tuple[int, str], ...]

    @property
    def place(self) -> str:
        return f"{self.where}, lines {self.lines[0][0]} to {self.lines[-1][0]}"

    @property
    def text(self) -> str:
        return "\n".join(f"{number}: {text}" for number, text in self.lines)


def monitor_with_model(
    snapshot: Snapshot,
    sources: Sequence[str],
    result: RunResult,
    out: Path,
    claims: Sequence[NumericClaim],
    *,
    client: ModelClient,
    reporter: Reporter,
    limits: MonitorLimits = MonitorLimits(),  # noqa: B008 - immutable
) -> ModelMonitor:
    """Ask a model whether the outcome of a run was computed; the arguments are those of `monitor.inspect_run`.

    Args:
        snapshot: the repository.
        sources: files of the chain.
        result: the run.
        out: its output directory.
        claims: the numbers that count as its result.
        client: the model; its calls count in the current budget.
        reporter: notes of stage `validate`.
        limits: size and number of windows.

    Raises:
        ModelError: the endpoint failed (an invalid answer or a refusal leaves its window unread instead).
        BudgetError: the budget does not allow the next call.
    """
    places, missing, problems = _read(snapshot, sources, result, out)
    problems += missing
    windows = [window for where, lines in places for window in _windows(where, lines, limits)]
    chosen = _chosen(windows, limits.windows)
    reader = _Reader(client, claims, [f"{where} ({len(lines)} lines)" for where, lines in places])
    for number, window in enumerate(chosen, 1):
        reporter.note(_STAGE, f"monitor: window {number} of {len(chosen)}, {window.place}")
        problems += reader.read(window)
    for window in windows:
        problems += _addressed(window)
        if window not in chosen:
            problems.append(_problem(window.place, f"not read: more than {limits.windows} windows"))
    problems = sorted(set(problems), key=lambda item: (item.where, item.message))
    complete = reader.done == len(windows) and not missing
    failed = any(problem.severity is Severity.ERROR for problem in problems)
    doubtful = not complete or reader.undecided or not windows
    return ModelMonitor(
        verdict=Verdict.FAIL if failed else Verdict.UNKNOWN if doubtful else Verdict.PASS,
        problems=tuple(problems),
        windows_read=reader.done,
        windows=len(windows),
        model=client.config.model,
        prompts=reader.prompts,
    )


class _Reader:
    """Asks about windows, one after the other."""

    def __init__(self, client: ModelClient, claims: Sequence[NumericClaim], places: Sequence[str]) -> None:
        self._first = load_prompt("pipeline.validation.prompts", "monitor")
        self._second = load_prompt("pipeline.validation.prompts", "monitor_confirm")
        self._client = client
        self._claims = "\n".join(
            f"{claim.metric} = {claim.text}" + "".join(f", {c.name}: {c.value}" for c in claim.conditions)
            for claim in claims
        )
        self._places = "\n".join(places)
        self.done = 0
        self.undecided = False
        """Was there a finding that neither held nor was refuted?"""

    @property
    def prompts(self) -> tuple[PromptRef, ...]:
        return (self._first.ref, self._second.ref)

    def read(self, window: _Window) -> list[Problem]:
        messages = self._first.render(
            claims=self._claims or "(none)", place=window.place, window=window.text, others=self._places
        )
        request = Request(messages=messages, prompt=self._first.ref)
        try:
            answer = self._client.structured(request, WindowFindings, check=lambda value: _check(value, window))
        except ModelError as error:
            if error.kind not in {FailureKind.INVALID_OUTPUT, FailureKind.REFUSAL}:
                raise
            return [_problem(window.place, f"not read: the model gave no valid answer ({shorten(error.cause, 200)})")]
        self.done += 1
        return [self._judged(window, finding) for finding in answer.value.findings]

    def _judged(self, window: _Window, finding: Finding) -> Problem:
        where = f"{window.where}:{finding.start}"
        message = f"model: {_KINDS[finding.kind]}: {finding.why} {shorten(finding.quote, 160)!r}"
        if finding.certainty == "suspicious":
            self.undecided = True
            return _problem(where, message)
        look = self._look_again(window, finding)
        if look is None:
            self.undecided = True
            return _problem(where, f"{message}; the second look gave no valid answer")
        if look.verdict == "holds":
            return _problem(where, message, Severity.ERROR)
        if look.verdict == "refuted":
            return _problem(where, f"{message}; refuted: {look.reading}", Severity.INFO)
        self.undecided = True
        return _problem(where, f"{message}; a second look could not tell: {look.reading}")

    def _look_again(self, window: _Window, finding: Finding) -> SecondLook | None:
        said = f"{finding.kind}, lines {finding.start} to {finding.end}: {finding.why}\n{finding.quote}"
        messages = self._second.render(finding=said, place=window.place, window=window.text)
        try:
            return self._client.structured(Request(messages=messages, prompt=self._second.ref), SecondLook).value
        except ModelError as error:
            if error.kind not in {FailureKind.INVALID_OUTPUT, FailureKind.REFUSAL}:
                raise
            return None


_KINDS: Final = {
    "mock": "a stand-in instead of a measurement",
    "fabricated": "a made-up result",
    "shipped": "a result that came with the code",
    "not_run": "the experiment did not run",
}


def _check(value: WindowFindings, window: _Window) -> None:
    """Quotes must stand in the lines that are named, inside the window."""
    wrong = []
    for finding in value.findings:
        held = " ".join(" ".join(text for n, text in window.lines if finding.start <= n <= finding.end).split())
        quote = " ".join(finding.quote.split())
        if not quote or quote not in held:
            wrong.append(f"the quote {shorten(finding.quote, 80)!r} does not stand in lines "
                         f"{finding.start}-{finding.end} of the window")  # fmt: skip
    if wrong:
        raise ValueError("; ".join(wrong[:6]))


# --- windows ---------------------------------------------------------------------------------------------------------


def _read(
    snapshot: Snapshot, sources: Sequence[str], result: RunResult, out: Path
) -> tuple[list[tuple[str, Lines]], list[Problem], list[Problem]]:
    """(place, numbered lines) of all that is to be read, scripts first; what could not be read; notes."""
    files = FileLines(snapshot)
    places = [(path, files.lines(path)) for path in sorted(set(sources))]
    missing = [
        _problem(path, "not read: it is no text file of the repository")
        for path in sorted(set(sources))
        if not files.readable(path)
    ]
    notes: list[Problem] = []
    for index, command in enumerate(result.commands):
        for stream, size in (("stdout", command.stdout_bytes), ("stderr", command.stderr_bytes)):
            where = f"command {index + 1} {stream}"
            path = out / f"{index}.{stream}"
            if not path.is_file():
                if size:
                    missing.append(_problem(where, "not read: the log is not there"))
                continue
            begin, end, left_out = _log(path)
            places += [(where, begin), (f"{where} (end)", end)]
            if left_out:
                missing.append(_problem(where, f"not read: {left_out} bytes in the middle of the log"))
        if command.truncated:
            notes.append(_problem(f"command {index + 1}", "its logs were cut at their size limit", Severity.INFO))
    return [(where, lines) for where, lines in places if lines], missing, notes


def _log(path: Path) -> tuple[Lines, Lines, int]:
    """Numbered lines of a log's beginning and, where it is too long to be read whole, of its end; bytes between."""
    left_out = max(0, path.stat().st_size - 2 * _LOG_PART)
    with path.open("rb") as stream:
        if not left_out:
            return _numbered(stream.read(), 1), (), 0
        head = stream.read(_LOG_PART)
        between, rest = 0, left_out
        while rest > 0 and (block := stream.read(min(rest, 1 << 20))):
            between += block.count(b"\n")
            rest -= len(block)
        tail = stream.read(_LOG_PART)
    return _numbered(head, 1), _numbered(tail, head.count(b"\n") + between + 1), left_out


def _numbered(data: bytes, first: int) -> Lines:
    return tuple(enumerate(data.decode("utf-8", "replace").split("\n"), first)) if data else ()


def _windows(where: str, lines: Sequence[tuple[int, str]], limits: MonitorLimits) -> Iterator[_Window]:
    """Windows of whole lines that overlap; a line longer than `_LINE` is shown in parts with its one number."""
    pieces = [(number, text[at : at + _LINE]) for number, text in lines for at in range(0, max(len(text), 1), _LINE)]
    start = 0
    while start < len(pieces):
        end, size = start, 0
        while end < len(pieces) and (end == start or size + len(pieces[end][1]) + 8 <= limits.window_characters):
            size += len(pieces[end][1]) + 8
            end += 1
        yield _Window(where, tuple(pieces[start:end]))
        if end == len(pieces):
            return
        start = max(start + 1, end - limits.overlap_lines)


def _chosen(windows: Sequence[_Window], most: int) -> list[_Window]:
    """All windows, or as many as are allowed: scripts in order, then in turn each log's first, last, second, ..."""
    if len(windows) <= most:
        return list(windows)
    by_place: dict[str, list[_Window]] = {}
    for window in windows:
        by_place.setdefault(window.where, []).append(window)
    places = list(by_place)
    logs = [where for where in places if where.startswith("command ")]
    chosen = [window for where in places if where not in logs for window in by_place[where]][:most]
    queues = {where: list(by_place[where]) for where in logs}
    turn = 0
    while len(chosen) < most and any(queues.values()):
        for where in logs:
            if queues[where] and len(chosen) < most:
                chosen.append(queues[where].pop(0 if turn % 2 == 0 else -1))
        turn += 1
    return [window for window in windows if window in chosen]


def _addressed(window: _Window) -> Iterator[Problem]:
    for number, text in window.lines:
        for found in addressed_to_models(text):
            yield _problem(
                f"{window.where}:{number}", f"text that {found.kind} reached the model as data: {found.quote!r}"
            )


def _problem(where: str, message: str, severity: Severity = Severity.WARNING) -> Problem:
    return Problem(component=_COMPONENT, where=where, message=message, severity=severity)
