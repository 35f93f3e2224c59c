"""Re-execution: run a task's chain N times in clean sandboxes and decide whether the paper's numbers came out.

A run that has ended is never made again: its `result.json`, written last and atomically, holds the digest of everything
that determined it. Runs that differ in that digest, or that were cut off, are removed and made anew.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from pipeline.digests import digest_of
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.execution_plan import ExecutionPlan, RunScale, Scale
from pipeline.files import remove_tree, write_text
from pipeline.progress import Reporter, SilentReporter
from pipeline.repository import Snapshot
from pipeline.sandbox.base import Image, Limits, RunResult, RunSpec, Sandbox
from pipeline.schema import Problem, Record, Severity
from pipeline.task import ClaimMatch, RunReport, Task, ValidationReport, Verdict
from pipeline.validation.diagnosis import Diagnosis, absent_data, diagnose, hints, missing_in_log, read_tail
from pipeline.validation.monitor import WINDOWS_ONLY, inspect_run, shipped_and_rewritten
from pipeline.validation.observation import Observation
from pipeline.validation.outcome import decide, flakiness, match_claims
from pipeline.validation.outputs import read_run
from pipeline.validation.plan import execution_plan, make_plan
from pipeline.validation.system_packages import missing_libraries, missing_programs
from pipeline.validation.variants import with_files, without_files

__all__ = ["FIRST_RUN", "missing_parts", "validate"]

_STAGE: Final = "validate"
_RESULT: Final = "result.json"
FIRST_RUN: Final = "run-1"
"""Name of the first clean run."""
_MINUTES_FROM_S: Final = 120
_COPIED: Final = "the repository ships it with claimed numbers, and a run that starts without it does not make it"
_TOO_BIG: Final = frozenset(
    {FailureKind.RUN_TIMEOUT.value, FailureKind.RUN_OUT_OF_MEMORY.value, FailureKind.RUN_DISK_FULL.value}
)
"""How a run ends that is too big for its limits: a smaller one may still show that the code runs."""


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
    scale: Scale = "full",
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
        scale: `smoke` runs the small variant once and compares no number; `auto` does so when full scale hits a limit
            or wants a GPU that is not there.

    Returns:
        The report; `RunReport.log` is `<name of out>/run-<n>`, of a smoke run `<name of out>/smoke`.

    Raises:
        ExpbenchError: the task cannot be run here (`make_plan`), or the sandbox broke.
    """
    listener = reporter or SilentReporter()
    plan = execution_plan(task, snapshot)
    series = _Series(task, snapshot, image, sandbox, out, owner, limits, plan)
    if scale == "smoke":
        return _smoke_report(series, "asked for", listener)
    try:
        full = _full_report(series, repeats, listener)
    except ExpbenchError as error:
        if scale != "auto" or error.kind is not FailureKind.GPU_UNAVAILABLE or not plan.smoke:
            raise
        return _smoke_report(series, f"full scale cannot run here: {error.cause}", listener)
    if scale == "full" or full.runs[-1].failure not in _TOO_BIG:
        return full
    if not plan.smoke:
        return full.evolve(scale_reason=f"there is no smoke scale to fall back to: {plan.no_smoke}")
    return _smoke_report(series, f"full scale: {full.reason}", listener, before=full)


@dataclass(frozen=True)
class _Series:
    """Runs of one task on one tree in one environment."""

    task: Task
    snapshot: Snapshot
    image: Image
    sandbox: Sandbox
    out: Path
    owner: str
    limits: Limits
    plan: ExecutionPlan

    def spec(self, repeat: int, scale: RunScale = "full") -> RunSpec:
        return make_plan(
            self.task, self.snapshot, limits=self.limits, repeat=repeat, plan=self.plan, scale=scale
        )  # fmt: skip

    def run(self, spec: RunSpec, directory: Path, snapshot: Snapshot) -> RunResult:
        """The run, or what is stored of it when the same one has ended there."""
        files = [(f.path, f.sha256, f.executable) for f in snapshot.files]
        key = digest_of([spec.model_dump(mode="json"), self.image.digest, self.sandbox.name, files])
        return _run_once(spec, snapshot, self.image, self.sandbox, directory, self.owner, key)


def _full_report(series: _Series, repeats: int, listener: Reporter) -> ValidationReport:
    runs: list[tuple[RunResult, Path]] = []
    sources = [source.path for source in series.task.truth.sources]
    claims = series.task.truth.expected.claims
    left_out: tuple[str, ...] = ()
    repeats = max(1, repeats)
    tree, scratch = series.snapshot, series.out / "without-results"
    while len(runs) < repeats:
        number = len(runs) + 1
        spec = series.spec(number)
        listener.step(_STAGE, f"{series.task.id}: run {number} of {repeats}, at most {_duration(spec.limits.wall_s)}")
        directory = series.out / f"run-{number}"
        runs.append((series.run(spec, directory, tree), directory))
        if runs[-1][0].failure is not None or not _shows_something(series.task, spec, *runs[-1]):
            break
        if number == 1 and (left_out := shipped_and_rewritten(series.snapshot, sources, runs[0][0], claims)):
            tree = without_files(tree, left_out, scratch)
            repeats = max(repeats, 2)  # one run cannot tell what was computed from what was copied
    remove_tree(scratch)
    return _report(series, spec, runs, left_out)


def _duration(seconds: float) -> str:
    return f"{seconds / 60:g} min" if seconds >= _MINUTES_FROM_S else f"{seconds:g} s"


def _smoke_report(
    series: _Series, why: str, listener: Reporter, *, before: ValidationReport | None = None
) -> ValidationReport:
    """One small run: does the code run, and does it compute? Its numbers are not the paper's and are not compared.

    Args:
        series: what to run.
        why: why not at full scale.
        listener: progress.
        before: the report of full scale, when that was tried.
    """
    earlier = before.runs if before else ()
    problems = before.problems if before else ()
    whole = ValidationReport(
        verdict=Verdict.UNKNOWN, reason="", sandbox=series.sandbox.name, runs=earlier, problems=problems,
        scale="smoke", scale_reason=why, plan=series.plan,
    )  # fmt: skip
    if not series.plan.smoke:
        return whole.evolve(reason=f"smoke: there is no smaller variant to run: {series.plan.no_smoke}")
    listener.step(_STAGE, f"{series.task.id}: smoke run ({why})")
    snapshot, directory = series.snapshot, series.out / "smoke"
    changed = {file.path: file.text for file in series.plan.smoke_files}
    tree = series.out / "smoke-tree"
    if changed:
        snapshot = with_files(snapshot, changed, tree)
    try:
        spec = series.spec(1, "smoke")
        result = series.run(spec, directory, snapshot)
    finally:
        remove_tree(tree)
    sources = [source.path for source in series.task.truth.sources]
    claims = series.task.truth.expected.claims
    monitor = inspect_run(series.snapshot, sources, result, directory, claims)
    seen, complaints = read_run(result, directory, spec.commands)
    run = _run_report(1, result, directory, "smoke")
    whole = whole.evolve(
        runs=(*earlier, run), monitor=monitor,
        problems=tuple(dict.fromkeys((*problems, *result.problems, *complaints, *_too_good(series, seen)))),
    )  # fmt: skip
    serious = [problem for problem in monitor if problem.severity is Severity.ERROR]
    if result.failure is not None:
        cause = _cause(series.task, series.snapshot, result, directory).reason
        return whole.evolve(reason=f"smoke: does not run: {cause} ({why}; at smoke scale that may be its small size)")
    if serious:
        reason = f"the outcome was not computed: {serious[0].where}: {serious[0].message}"
        return whole.evolve(verdict=Verdict.FAIL, reason=reason)
    return whole.evolve(reason=f"smoke: runs; numbers are compared at full scale only ({why})")


def _too_good(series: _Series, seen: Sequence[Observation]) -> list[Problem]:
    """The paper's numbers from a run that is a fraction of the paper's."""
    claims = series.task.truth.expected.claims
    verdict, _ = decide(claims, match_claims(claims, [seen])) if claims else (Verdict.UNKNOWN, "")
    if verdict is not Verdict.PASS:
        return []
    message = (
        "the paper's numbers came out of a run at smoke scale: what was made smaller does not decide them, or they are "
        "not computed"
    )
    return [Problem(component="validation.scale", where=series.task.id, message=message)]


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


def _run_report(repeat: int, result: RunResult, directory: Path, scale: RunScale = "full") -> RunReport:
    return RunReport(
        repeat=repeat,
        exit_codes=tuple(command.exit_code for command in result.commands),
        failure=None if result.failure is None else result.failure.value,
        log=f"{directory.parent.name}/{directory.name}",
        produced=tuple((item.path, item.sha256) for item in result.written),
        scale=scale,
    )


def _report(
    series: _Series, spec: RunSpec, runs: Sequence[tuple[RunResult, Path]], left_out: Sequence[str]
) -> ValidationReport:
    task, expected = series.task, series.task.truth.expected
    observations: list[tuple[Observation, ...]] = []
    problems: list[Problem] = []
    for result, directory in runs:
        seen, complaints = read_run(result, directory, spec.commands)
        observations.append(seen)
        problems += [item for item in (*result.problems, *complaints) if item not in problems]
    matches = match_claims(expected.claims, observations, comparisons=expected.comparisons)
    last, directory = runs[-1]
    sources = [source.path for source in task.truth.sources]
    monitor = (*_only_copied(last, left_out), *inspect_run(series.snapshot, sources, last, directory, expected.claims))
    verdict, reason = _verdict(task, series.snapshot, runs, matches, monitor)
    return ValidationReport(
        verdict=verdict,
        reason=reason,
        sandbox=series.sandbox.name,
        runs=tuple(_run_report(number, result, where) for number, (result, where) in enumerate(runs, start=1)),
        matches=matches,
        flakiness=flakiness(expected.claims, matches),
        monitor=monitor,
        problems=(*problems, *_not_written(series, last)),
        plan=series.plan,
    )


def _only_copied(last: RunResult, left_out: Sequence[str]) -> list[Problem]:
    """Results that the first run only wrote again: a later one that started without them did not make them."""
    if last.failure not in {None, FailureKind.RUN_FAILED}:
        return []  # it was stopped before it could
    made = {item.path for item in last.written}
    return [
        Problem(component="validation.monitor", where=path, message=_COPIED, severity=Severity.ERROR)
        for path in left_out
        if path not in made
    ]


def _not_written(series: _Series, result: RunResult) -> list[Problem]:
    """Files that the code names and a finished run did not write; which of them a run writes may depend on options."""
    if result.failure is not None:
        return []
    there = [item.path for item in result.written]
    missing = [name for name in series.plan.outputs if not any(path.endswith(name.lstrip("./")) for path in there)]
    message = "stands in the code as a file to write, and the run did not write it"
    return [
        Problem(component="validation.outputs", where=name, message=message, severity=Severity.INFO) for name in missing
    ]


def _verdict(
    task: Task,
    snapshot: Snapshot,
    runs: Sequence[tuple[RunResult, Path]],
    matches: Sequence[ClaimMatch],
    monitor: Sequence[Problem],
) -> tuple[Verdict, str]:
    last, directory = runs[-1]
    copied = any(problem.message == _COPIED for problem in monitor)
    if last.failure is not None and not copied:
        cause = _cause(task, snapshot, last, directory)
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
        if any(problem.message == WINDOWS_ONLY for problem in monitor):
            return verdict, f"{WINDOWS_ONLY}; {reason}"
        if hint := hints(logs):
            reason += f" (the run says: `{hint}`)"
    return verdict, reason


def _cause(task: Task, snapshot: Snapshot, result: RunResult, directory: Path) -> Diagnosis:
    own = [source.path for source in task.truth.sources] + [masked.path for masked in task.masked]
    return diagnose(snapshot, result, directory, masked=own)


def missing_parts(report: ValidationReport, out: Path) -> tuple[set[str], set[str]]:
    """Modules, and Debian packages with libraries and programs, that a failed validation missed.

    Args:
        report: a report of `validate`.
        out: the directory that was given to `validate`.
    """
    texts = []
    for run in report.runs if any(run.failure for run in report.runs) else ():
        directory = out / Path(run.log).name
        for index in range(len(run.exit_codes)):
            texts += [read_tail(directory / f"{index}.stderr"), read_tail(directory / f"{index}.stdout")]
    log = "\n".join(texts)
    return set(missing_in_log(log)), {*missing_libraries(log), *missing_programs(log)}
