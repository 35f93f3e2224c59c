"""What went wrong in an episode, as pieces of evidence by phase: the raw material of the failure taxonomy.

EXP-Bench 4.3 starts from the error analysis beside each score, made from logs (stderr) or from the comparison with the
ground truth. Here these are the judge's failed criteria and error analysis, and the report and log of the
re-execution. Unknown verdicts are no failures and give no evidence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, TypeVar, get_args

from pydantic import ValidationError

from evaluation.episode import EpisodeFolder
from evaluation.submission import Submission
from evaluation.verdicts import ExecutionReport, ItemVerdict, Judgement
from pipeline.schema import Problem, Record, StoredRecord
from pipeline.task import Verdict
from pipeline.text import shorten

__all__ = ["PHASES", "FailureEvidence", "Phase", "collect_evidence", "last_error", "log_files"]

Phase = Literal["design", "implementation", "execution", "conclusion"]
PHASES: Final[tuple[Phase, ...]] = get_args(Phase)

_COMPONENT: Final = "evaluation.failures"
_TAIL: Final = 16_384
"""Bytes of a log that are looked at, from its end: a traceback with its last line is shorter."""
_LONGEST: Final = 600
_NOT_REPORTED: Final = "not reported"
_ANSI: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_EXCEPTION: Final = re.compile(
    r"^(?:[\w.]+\.)?([A-Z]\w*(?:Error|Exception|Interrupt|Exit|Warning|NotFound\w*)):? ?(.*)$"
)
_COMPLAINT: Final = re.compile(
    r"command not found|No such file or directory|Permission denied|^Killed|Segmentation fault|out of memory|"
    r"^ERROR:|error: |: not found|Traceback",
    re.I,
)
RecordT = TypeVar("RecordT", bound=StoredRecord)


class FailureEvidence(Record):
    """One thing that went wrong in an episode."""

    episode: str
    """`<run>/<task>/<repeat>`."""
    phase: Phase
    source: Literal["item", "analysis", "report", "log"]
    """A judge's criterion, the judge's error analysis, the re-execution's report, or its log."""
    kind: str = ""
    """Id of the criterion or `FailureKind`, for the rules."""
    text: str
    subject: str = ""
    """The criterion's own words, without the judge's reason."""
    where: str = ""


def collect_evidence(episode: str, folder: EpisodeFolder) -> tuple[list[FailureEvidence], list[Problem]]:
    """Evidence of one episode, in the order of the phases, and the records that could not be read.

    Args:
        episode: `<run>/<task>/<repeat>`.
        folder: where its records are; one that is missing gives no evidence.
    """
    problems: list[Problem] = []
    submission = _read(folder.submission / "submission.json", Submission, episode, problems)
    judgement = _read(folder.judgement, Judgement, episode, problems)
    execution = _read(folder.execution, ExecutionReport, episode, problems)
    found: list[FailureEvidence] = []
    if judgement is not None:
        found += _judged(episode, judgement, submission)
    if execution is not None and execution.verdict is Verdict.FAIL:
        found += _executed(episode, folder, execution, submission)
    return sorted(found, key=lambda item: PHASES.index(item.phase)), problems


def last_error(text: str) -> str:
    """The line of a log that says why it ended: the last exception, else the last complaint; empty: there is none."""
    complaint = ""
    for line in reversed(_ANSI.sub("", text).splitlines()):
        stripped = line.strip()
        if _EXCEPTION.match(stripped):
            return shorten(stripped, _LONGEST)
        if not complaint and _COMPLAINT.search(stripped) and not stripped.startswith("Traceback"):
            complaint = stripped
    return shorten(complaint, _LONGEST)


def _judged(episode: str, judgement: Judgement, submission: Submission | None) -> Iterator[FailureEvidence]:
    parts: tuple[tuple[Phase, tuple[ItemVerdict, ...]], ...] = (
        ("design", judgement.design),
        ("implementation", judgement.implementation),
        ("conclusion", judgement.conclusion),
    )
    absent = _absent(submission)
    for phase, items in parts:
        failed = [item for item in items if item.verdict is Verdict.FAIL]
        if failed and phase in absent:  # one cause, not as many failures as there are criteria
            yield FailureEvidence(episode=episode, phase=phase, source="report", kind="absent", text=absent[phase])
            continue
        numbers = [item for item in failed if phase == "conclusion" and not item.item.endswith("meaning")]
        yield from _numbers(episode, numbers, len(items) - 1)
        for item in failed:
            if item in numbers:
                continue
            yield FailureEvidence(
                episode=episode,
                phase=phase,
                source="item",
                kind=item.item,
                text=shorten(f"{item.text}: {item.reason}", _LONGEST),
                subject=shorten(item.text, _LONGEST),
                where=item.where,
            )
    for phase, text in judgement.error_analysis:
        yield FailureEvidence(episode=episode, phase=phase, source="analysis", text=shorten(text, _LONGEST))


def _numbers(episode: str, failed: list[ItemVerdict], total: int) -> Iterator[FailureEvidence]:
    """Expected numbers that are missing, and that are wrong: one piece of evidence each, however many they are."""
    missing = [item for item in failed if item.reason.startswith(_NOT_REPORTED)]
    wrong = [item for item in failed if item not in missing]
    for kind, said, items in (("missing", "not reported", missing), ("wrong", "outside of their bands", wrong)):
        if items:
            first = f"{items[0].text}: {items[0].reason}"
            text = f"{len(items)} of {total} expected numbers are {said}, e.g. {first}"
            yield FailureEvidence(
                episode=episode,
                phase="conclusion",
                source="item",
                kind=kind,
                text=shorten(text, _LONGEST),
                where=items[0].where,
            )


def _absent(submission: Submission | None) -> dict[Phase, str]:
    """Phases of which nothing at all was handed in."""
    if submission is None:
        return {}
    response = submission.response
    found: dict[Phase, str] = {}
    if response is None or not (response.design.constant or response.design.independent or response.design.dependent):
        found["design"] = "no design was handed in"
    if not submission.changed:
        found["implementation"] = "nothing was implemented: the patch is empty"
    if response is None or not (response.conclusion.text.strip() or response.conclusion.numbers):
        found["conclusion"] = "no conclusion was handed in"
    return found


def _executed(
    episode: str, folder: EpisodeFolder, report: ExecutionReport, submission: Submission | None
) -> Iterator[FailureEvidence]:
    kind = report.failure or ""
    if submission is not None and not submission.reproduce:
        kind = "no_script"
    elif not report.applied:
        kind = "not_applied"
    # a run that ended well is not explained by what it logged
    error = _log_error(folder.root, report.log) if report.failure else ("", "")
    if error[0]:
        yield FailureEvidence(
            episode=episode, phase="execution", source="log", kind=kind, text=error[0], where=error[1]
        )
        return
    missing = [name for name, produced in report.outputs if not produced]
    if not kind:
        kind = "outputs" if missing else "numbers"
    yield FailureEvidence(
        episode=episode, phase="execution", source="report", kind=kind, text=shorten(report.reason, _LONGEST)
    )


def log_files(root: Path, log: str) -> list[Path]:
    """Files with what a re-execution printed, stderr first, then in order.

    Args:
        root: of the episode.
        log: `ExecutionReport.log`; one that leads out of the episode has no files.
    """
    directory = root / log
    inside = log and not Path(log).is_absolute() and ".." not in Path(log).parts
    if not inside or not directory.is_dir() or directory.is_symlink():
        return []
    files = sorted(path for path in directory.rglob("*") if path.is_file() and not path.is_symlink())
    return [path for name in ("stderr", "stdout") for path in files if name in path.name]


def _log_error(root: Path, log: str) -> tuple[str, str]:
    """(last error, file relative to the episode) of the logs of a re-execution."""
    for path in log_files(root, log):
        with path.open("rb") as stream:
            stream.seek(0, 2)
            stream.seek(max(0, stream.tell() - _TAIL))
            error = last_error(stream.read().decode("utf-8", "replace"))
        if error:
            return error, str(path.relative_to(root))
    return "", ""


def _read(path: Path, model: type[RecordT], episode: str, problems: list[Problem]) -> RecordT | None:
    try:
        return model.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        message = f"{path.name} cannot be read and gives no evidence: {str(error).splitlines()[0]}"
        problems.append(Problem(component=_COMPONENT, where=episode, message=message))
        return None
