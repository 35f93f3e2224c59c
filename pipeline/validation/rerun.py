"""Re-execution: run a task's chain N times in clean sandboxes and decide whether the paper's numbers came out.

A run that has ended is never made again: its `result.json`, written last and atomically, holds the digest of everything
that determined it. Runs that differ in that digest, or that were cut off, are removed and made anew.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from pipeline.digests import digest_of
from pipeline.files import remove_tree, write_text
from pipeline.progress import Reporter, SilentReporter
from pipeline.repository import Snapshot
from pipeline.sandbox.base import Image, Limits, RunResult, RunSpec, Sandbox
from pipeline.schema import Problem, Record, Severity
from pipeline.task import ClaimMatch, RunReport, Task, ValidationReport, Verdict
from pipeline.validation.diagnosis import absent_data, diagnose, hints, missing_in_log, read_tail
from pipeline.validation.monitor import inspect_run
from pipeline.validation.observation import Observation
from pipeline.validation.outcome import decide, flakiness, match_claims
from pipeline.validation.outputs import read_run
from pipeline.validation.plan import make_plan
from pipeline.validation.system_packages import missing_libraries, missing_programs

__all__ = ["missing_modules", "missing_system_packages", "validate"]

_STAGE: Final = "validate"
_RESULT: Final = "result.json"


class _FinishedRun(Record):
    """What is stored of a finished run."""

    key: str
    result: RunResult


def validate(
    task: Task,
    *,
    snapshot: Snapshot,
    image: Image,
    sandbox: Sandbox,
    repeats: int,
    out: Path,
    owner: str,
    limits: Limits,
    reporter: Reporter | None = None,
) -> ValidationReport:
    """Re-execute a task and compare what came out with what the paper states.

    A run that fails, or that shows none of the claims, ends the series: another one would tell the same.

    Args:
        task: located task.
        snapshot: the repository (original, masked or restored).
        image: the built environment.
        sandbox: where it runs.
        repeats: number of clean runs, at least 1.
        out: directory of the attempt; run n lies in `out/run-<n>`, runs that are finished there are reused.
        owner: label of the run (`Sandbox.reap`).
        limits: ceilings of each run.
        reporter: progress.

    Returns:
        The report; `RunReport.log` is `<name of out>/run-<n>`.

    Raises:
        ExpbenchError: the task cannot be run here (`make_plan`), or the sandbox broke.
    """
    listener = reporter or SilentReporter()
    spec = make_plan(task, snapshot, limits=limits)
    key = digest_of(
        [
            spec.model_dump(mode="json"),
            image.digest,
            sandbox.name,
            [(f.path, f.sha256, f.executable) for f in snapshot.files],
        ]
    )
    runs: list[tuple[RunResult, Path]] = []
    for number in range(1, max(1, repeats) + 1):
        listener.step(_STAGE, f"{task.id}: run {number} of {repeats}")
        directory = out / f"run-{number}"
        runs.append((_run_once(spec, snapshot, image, sandbox, directory, owner, key), directory))
        if runs[-1][0].failure is not None or not _shows_something(task, spec, *runs[-1]):
            break
    return _report(task, snapshot, sandbox, spec, runs)


def _shows_something(task: Task, spec: RunSpec, result: RunResult, directory: Path) -> bool:
    """Does a run print or write a number that any claim could mean? Otherwise repeats teach nothing."""
    matches = match_claims(task.truth.expected.claims, [read_run(result, directory, spec.commands)[0]])
    return any(match.observed for match in matches)


def _run_once(
    spec: RunSpec, snapshot: Snapshot, image: Image, sandbox: Sandbox, directory: Path, owner: str, key: str
) -> RunResult:
    finished = _finished(directory / _RESULT, key)
    if finished is not None:
        return finished
    remove_tree(directory)
    directory.mkdir(parents=True)
    result = sandbox.run(image, snapshot.root, spec, out=directory, owner=owner)
    stored = _FinishedRun(key=key, result=result)
    write_text(directory / _RESULT, json.dumps(stored.model_dump(mode="json"), indent=1, sort_keys=True) + "\n")
    return result


def _finished(path: Path, key: str) -> RunResult | None:
    if not path.is_file():
        return None
    try:
        stored = _FinishedRun.model_validate_json(path.read_text(encoding="utf-8"))
    except (ValidationError, UnicodeDecodeError):
        return None  # written by another version: the run is made anew
    return stored.result if stored.key == key else None


def _report(
    task: Task, snapshot: Snapshot, sandbox: Sandbox, spec: RunSpec, runs: Sequence[tuple[RunResult, Path]]
) -> ValidationReport:
    expected = task.truth.expected
    observations: list[tuple[Observation, ...]] = []
    problems: list[Problem] = []
    for result, directory in runs:
        seen, complaints = read_run(result, directory, spec.commands)
        observations.append(seen)
        problems += [item for item in (*result.problems, *complaints) if item not in problems]
    matches = match_claims(expected.claims, observations, comparisons=expected.comparisons)
    last, directory = runs[-1]
    sources = [source.path for source in task.truth.sources]
    monitor = inspect_run(snapshot, sources, last, directory, expected.claims)
    verdict, reason = _verdict(task, snapshot, runs, matches, monitor)
    reports = [
        RunReport(
            repeat=number,
            exit_codes=tuple(command.exit_code for command in result.commands),
            failure=None if result.failure is None else result.failure.value,
            log=f"{where.parent.name}/{where.name}",
            produced=tuple((item.path, item.sha256) for item in result.produced),
        )
        for number, (result, where) in enumerate(runs, start=1)
    ]
    return ValidationReport(
        verdict=verdict,
        reason=reason,
        sandbox=sandbox.name,
        runs=tuple(reports),
        matches=matches,
        flakiness=flakiness(expected.claims, matches),
        monitor=monitor,
        problems=tuple(problems),
    )


def _verdict(
    task: Task,
    snapshot: Snapshot,
    runs: Sequence[tuple[RunResult, Path]],
    matches: Sequence[ClaimMatch],
    monitor: Sequence[Problem],
) -> tuple[Verdict, str]:
    last, directory = runs[-1]
    if last.failure is not None:
        cause = diagnose(task, snapshot, last, directory)
        return (Verdict.UNKNOWN if cause.blocked else Verdict.FAIL), cause.reason
    serious = [problem for problem in monitor if problem.severity is Severity.ERROR]
    if serious:
        return Verdict.FAIL, f"the outcome was not computed: {serious[0].where}: {serious[0].message}"
    expected = task.truth.expected
    verdict, reason = decide(expected.claims, matches, comparisons=expected.comparisons)
    if verdict is Verdict.UNKNOWN:
        logs = [read_tail(directory / f"{index}.stdout") for index in range(len(last.commands))]
        if not any(match.observed for match in matches) and (absent := absent_data(logs)):
            return verdict, f"blocked: data (the run says: `{absent}`); {reason}"
        if hint := hints(logs):
            reason += f" (the run says: `{hint}`)"
    return verdict, reason


def missing_modules(report: ValidationReport, out: Path) -> tuple[str, ...]:
    """Modules that a failed validation missed, so that the environment can be extended (`resolve_environment(extra=)`).

    Args:
        report: a report of `validate`.
        out: the directory that was given to `validate`.
    """
    if not any(run.failure for run in report.runs):
        return ()
    return missing_in_log(_logs(report, out))


def missing_system_packages(report: ValidationReport, out: Path) -> tuple[str, ...]:
    """Debian packages with the libraries and programs that a failed validation missed (see `extend_environment`)."""
    if not any(run.failure for run in report.runs):
        return ()
    log = _logs(report, out)
    return tuple(sorted({*missing_libraries(log), *missing_programs(log)}))


def _logs(report: ValidationReport, out: Path) -> str:
    texts = []
    for run in report.runs:
        directory = out / f"run-{run.repeat}"
        for index in range(len(run.exit_codes)):
            texts += [read_tail(directory / f"{index}.stderr"), read_tail(directory / f"{index}.stdout")]
    return "\n".join(texts)
