"""The page of one episode: what the agent was told, verdicts with evidence, submission, patch, trajectory.

In a public report the page is built from what is public by naming it: verdicts without the criteria's words, reasons
and quotes; and nothing of the agent's where that may hold the answer. Long trajectories are cut into files that the
page loads when they are wanted.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from markupsafe import Markup
from pydantic import ValidationError

from evaluation.failure_evidence import log_files
from evaluation.metrics import FULL_MARKS, RANKED_BY, Metric, mark
from evaluation.report.cleaning import cleaner
from evaluation.report.diffs import Patch, read_patch
from evaluation.report.event_views import KIND_NAMES, events_html
from evaluation.report.measured import MEANINGS, basis_of, keyless_scores, load_measurement, measured_text
from evaluation.report.results import Episode
from evaluation.report.tables import bounds_text_of, dollars, percent
from evaluation.scores import EpisodeScores
from evaluation.submission import Submission
from evaluation.trajectory import Event, Utterance
from evaluation.trajectory_io import read_trajectory
from evaluation.verdicts import (
    ExecutionReport,
    Finding,
    Grader,
    IntegrityReport,
    ItemVerdict,
    Judgement,
    ViolationKind,
)
from pipeline.errors import ExpbenchError
from pipeline.schema import StoredRecord
from pipeline.task import Verdict

__all__ = ["CHUNK", "EpisodePage", "Render", "episode_page"]

CHUNK: Final = 150
"""Events in the page itself, and in each file after it: about 300 KB where commands print what they usually do."""
_MOST_CHUNKS: Final = 200
"""Files of a trajectory at most: a search loads all of them, and a browser needs some milliseconds for each."""
_LOG: Final = 20_000
_ANSWERS: Final = frozenset({ViolationKind.PAPER_ACCESS, ViolationKind.GIT_HISTORY, ViolationKind.MASKED_CONTENT})
"""Violations after which an agent's texts may hold the answer."""
_BOUND_BY_TRUTH: Final = frozenset({"oracle"})
_SHOWN: Final = (
    RANKED_BY, Metric.M, Metric.D, Metric.I, Metric.E, Metric.C, Metric.I_E, Metric.C_D, Metric.ALL, Metric.ALL_E,
)  # fmt: skip

Clean = Callable[[str], str]
Render = Callable[[str, dict[str, Any]], str]
"""Renders a template by its name."""
RecordT = TypeVar("RecordT", bound=StoredRecord)


class EpisodePage(NamedTuple):
    """What is written for an episode."""

    html: str
    chunks: tuple[str, ...]
    """Scripts with the events after the first `CHUNK`, in their order."""


class _Records(NamedTuple):
    integrity: IntegrityReport | None
    judgement: Judgement | None
    execution: ExecutionReport | None
    submission: Submission | None
    events: list[Event]
    problems: list[str]


def episode_page(
    episode: Episode, label: str, chunk_names: Callable[[int], str], render: Render, *, public: bool
) -> EpisodePage:
    """Build the page of an episode.

    Args:
        label: name of the agent and its model.
        chunk_names: file name of the n-th file of further events.
        render: renders a template of this package.
        public: leave out what only graders may see.
    """
    records = _read_records(episode, public)
    withheld = _withheld(episode.scores, records) if public else ""
    clean = cleaner(_private_texts(records.judgement) if public else ())
    events = [] if withheld else records.events
    size = max(CHUNK, -(-len(events) // _MOST_CHUNKS))
    rendered = [events_html(events[start : start + size], clean) for start in range(0, len(events), size)]
    kinds = Counter[str](event.kind for event in records.events)
    context = {
        "scores": episode.scores,
        "label": label,
        "public": public,
        "withheld": withheld,
        "facts": _facts(episode.scores),
        "marks": [_mark_view(episode.scores, metric) for metric in _SHOWN],
        "question": "" if withheld else _question(records.events, clean),
        "integrity": _integrity(records.integrity, clean, public),
        "judged": _judged(records.judgement, clean, public),
        "keyless": _keyless(episode.scores),
        "grader": _grader(records.judgement.grader) if records.judgement else "",
        "execution": _execution(records.execution, episode.folder.root, clean, withheld=bool(withheld)),
        "analysis": []
        if public or records.judgement is None
        else [(phase, clean(text)) for phase, text in records.judgement.error_analysis],
        "submission": None if withheld else _submission(records.submission, episode, clean),
        "patch": Patch((), 0) if withheld else _patch(episode, clean),
        "has_trajectory": bool(events),
        "kinds": [(kind, name, kinds[kind]) for kind, name in KIND_NAMES.items() if kinds[kind]],
        "total": len(events),
        "chunks": json.dumps([chunk_names(number) for number in range(1, len(rendered))]),
        "first": Markup("".join(rendered[0])) if rendered else "",  # noqa: S704 - `events_html` escapes
        "problems": [clean(text) for text in records.problems],
    }
    scripts = tuple(f"expbenchEvents({n}, {json.dumps(blocks)});\n" for n, blocks in enumerate(rendered[1:], 1))
    return EpisodePage(render("episode.html.j2", context), scripts)


def _read_records(episode: Episode, public: bool) -> _Records:
    folder, problems = episode.folder, []
    events: list[Event] = []
    if folder.trajectory.exists():
        try:
            _, events, found = read_trajectory(folder.trajectory)
            problems += [f"trajectory, {problem.where}: {problem.message}" for problem in found]
        except ExpbenchError as error:
            problems.append(f"trajectory: {error.cause}")
    return _Records(
        _read(folder.integrity, IntegrityReport, problems),
        _read(folder.judgement, Judgement, problems),
        _read(folder.execution, ExecutionReport, problems),
        _read(folder.submission / "submission.json", Submission, problems),
        events,
        [] if public else problems,
    )


def _read(path: Path, model: type[RecordT], problems: list[str]) -> RecordT | None:
    try:
        return model.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        problems.append(f"{path.name} cannot be read: {str(error).splitlines()[0]}")
        return None


def _withheld(scores: EpisodeScores, records: _Records) -> str:
    """Why nothing that the agent wrote may be shown in public; empty when it may."""
    if scores.agent in _BOUND_BY_TRUTH:
        return f"the agent {scores.agent} applies the ground truth"
    if records.integrity is None:
        return "the episode was not checked for integrity"
    if records.integrity.verdict is Verdict.UNKNOWN:
        return "the integrity check could not decide"
    kinds = sorted({finding.kind.value for finding in records.integrity.findings if finding.kind in _ANSWERS})
    return f"the integrity check found {', '.join(kinds)}" if kinds else ""


def _private_texts(judgement: Judgement | None) -> list[str]:
    if judgement is None:
        return []
    items = [*judgement.design, *judgement.implementation, *judgement.conclusion]
    return [text for item in items for text in (item.text, item.reason)] + [
        text for _, text in judgement.error_analysis
    ]


def _question(events: Sequence[Event], clean: Clean) -> str:
    """The instructions: the first message that the agent was given."""
    said = next((event.text for event in events if isinstance(event, Utterance) and event.role == "user"), "")
    return clean(said)


def _facts(scores: EpisodeScores) -> str:
    facts = []
    if scores.wall_s is not None:
        facts.append(f"{scores.wall_s / 60:.1f} min")
    if scores.cost_usd is not None:
        facts.append(dollars(scores.cost_usd))
    if scores.model_calls is not None:
        facts.append(f"{scores.model_calls} model calls")
    if scores.limits:
        facts.append(f"limits hit: {', '.join(scores.limits)}")
    return " · ".join(facts)


def _mark_view(scores: EpisodeScores, metric: Metric) -> dict[str, str]:
    value, low, high = mark(scores, metric)
    kind = "unknown" if value is None else "pass" if value >= 1 else "fail" if value <= 0 else ""
    title = f"unknown, {bounds_text_of(low, high)} per cent" if value is None else f"{percent(value)} per cent"
    basis = "" if metric in FULL_MARKS else basis_of(scores, metric)
    shown = "?" if value is None else f"{100 * value:.0f}"
    return {"name": metric.value, "text": shown, "kind": kind, "title": title, "basis": basis}


def _keyless(scores: EpisodeScores) -> list[tuple[str, str, str]]:
    """(score, what it rests on, how well that did) of the scores that no language model gave."""
    graders = [f"{role}: {_grader(grader)}" for role, grader in scores.graders]
    measurement = load_measurement()
    return [
        (metric.value, MEANINGS[metric], measured_text(measurement, metric))
        for metric in keyless_scores(graders)
        if mark(scores, metric).value is not None
    ]


def _integrity(report: IntegrityReport | None, clean: Clean, public: bool) -> dict[str, Any] | None:
    if report is None:
        return None

    def view(finding: Finding) -> dict[str, Any]:
        shown = {
            "kind": finding.kind.value.replace("_", " "),
            "verdict": finding.verdict.value,
            "events": finding.events,
        }
        if public:
            return shown | {"reason": "", "where": "", "quote": ""}
        return shown | {
            "reason": clean(finding.reason),
            "where": clean(finding.where),
            "quote": clean(finding.quote),
        }

    return {
        "verdict": report.verdict.value,
        "reason": "" if public else clean(report.reason),
        "grader": _grader(report.grader),
        "findings": [view(finding) for finding in report.findings],
        "flags": [] if public else [view(finding) for finding in report.flags],
        "numbers": []
        if public
        else [
            {
                "name": clean(number.name),
                "value": f"{number.value:g}",
                "verdict": number.verdict.value,
                "events": number.events,
                "files": [clean(name) for name in number.files],
            }
            for number in report.numbers
        ],
        "causes": [clean(cause) for cause in report.causes],
    }


def _judged(judgement: Judgement | None, clean: Clean, public: bool) -> list[dict[str, Any]]:
    def view(number: int, item: ItemVerdict) -> dict[str, Any]:
        if public:  # even a criterion's id may name a variable of the ground truth
            return {
                "verdict": item.verdict.value,
                "text": f"criterion {number}",
                "reason": "",
                "quote": "",
                "where": "",
            }
        votes = f" (votes: {', '.join(vote.value for vote in item.votes)})" if item.votes else ""
        return {
            "verdict": item.verdict.value,
            "text": clean(item.text),
            "reason": clean(item.reason) + votes + (" (the task tells it: it shows nothing)" if item.told else ""),
            "quote": clean(item.quote),
            "where": clean(item.where),
        }

    parts = (("D · design", "design"), ("I · implementation", "implementation"), ("C · conclusion", "conclusion"))
    found = []
    for name, field in parts:
        items: tuple[ItemVerdict, ...] = getattr(judgement, field) if judgement else ()
        verdicts = [item.verdict for item in items]
        found.append(
            {
                "name": name,
                "items": [view(number, item) for number, item in enumerate(items, 1)],
                "met": verdicts.count(Verdict.PASS),
                "unknown": verdicts.count(Verdict.UNKNOWN),
            }
        )
    return found


def _execution(report: ExecutionReport | None, root: Path, clean: Clean, *, withheld: bool) -> dict[str, Any] | None:
    if report is None:
        return None
    return {
        "verdict": report.verdict.value,
        "reason": "" if withheld else clean(report.reason),
        "exit_code": report.exit_code,
        "duration_s": report.duration_s,
        "outputs": [] if withheld else [(clean(name), produced) for name, produced in report.outputs],
        "perturbed": []
        if withheld
        else [(item.perturbation.value, item.verdict.value, clean(item.reason)) for item in report.counterfactuals],
        "logs": [] if withheld else _logs(root, report.log, clean),
    }


def _logs(root: Path, log: str, clean: Clean) -> list[dict[str, str]]:
    found = []
    for path in log_files(root, log):
        text, left_out = _tail(path)
        if text:
            note = f"[the first {left_out:,} bytes are left out]\n" if left_out else ""
            found.append({"name": clean(str(path.relative_to(root))), "text": note + clean(text)})
    return found


def _tail(path: Path) -> tuple[str, int]:
    with path.open("rb") as stream:
        size = stream.seek(0, 2)
        stream.seek(max(0, size - _LOG))
        return stream.read().decode("utf-8", "replace"), max(0, size - _LOG)


def _submission(submission: Submission | None, episode: Episode, clean: Clean) -> dict[str, Any] | None:
    if submission is None:
        return None
    response = submission.response
    design = response.design if response else None
    groups = [(kind, getattr(design, kind)) for kind in ("constant", "independent", "dependent")] if design else []
    script = episode.folder.submission / "reproduce.sh"
    notes = [f"{problem.where}: {problem.message}" for problem in submission.problems]
    notes += [f"left out of the patch because of its size: {path}" for path in submission.truncated]
    notes += [f"a secret was blanked in {path}" for path in submission.redacted]
    return {
        "design": [
            (kind, clean(name), clean(", ".join(values))) for kind, group in groups for name, values in group.items()
        ],
        "procedure": clean(design.procedure) if design else "",
        "conclusion": clean(response.conclusion.text) if response else "",
        "numbers": [(clean(name), f"{value:g}") for name, value in response.conclusion.numbers.items()]
        if response
        else [],
        "reproduce": clean(_tail(script)[0]) if script.is_file() and not script.is_symlink() else "",
        "problems": [clean(note) for note in notes],
    }


def _patch(episode: Episode, clean: Clean) -> Patch:
    path = episode.folder.submission / "patch.diff"
    if not path.is_file() or path.is_symlink():
        return Patch((), 0)
    return read_patch(path.read_bytes().decode("utf-8", "replace"), clean)


def _grader(grader: Grader) -> str:
    return f"{grader.engine} {grader.model}" if grader.model else grader.engine
