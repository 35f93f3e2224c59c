"""Candidate commands, run: bounded, offline, each in a clean copy, with the witness beside it where there can be one.

Everything is tried for a short while first, then what did not end in it for as long as one command may take: a slow
command at the top does not keep a quick one below from being seen, nor does a program that ends nowhere keep others
from their turn. After a round, the modules and libraries that its logs miss extend the environment, and what missed
them is run again; where hardly anything runs because of its packages, earlier ones are tried. What was run once is not
run again, whoever asks: runs are kept by content (see `pipeline.rehearse.kept`). The clock decides how much is run,
never what is found in it.

Non-goals: comparing with the paper (`pipeline.match`), repeats, perturbations (`pipeline.validation`).
"""

from __future__ import annotations

import posixpath
import shutil
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Final

from pipeline.data.phase import DataPhase
from pipeline.data.records import DataRecord
from pipeline.errors import FailureKind
from pipeline.files import remove_tree
from pipeline.locator import RepositoryIndex
from pipeline.progress import Reporter, SilentReporter
from pipeline.rehearse.authors_paths import Places, place_authors_path
from pipeline.rehearse.kept import KeptRun, KeptRuns
from pipeline.rehearse.outdated import fails_in_packages
from pipeline.rehearse.records import Rehearsal
from pipeline.rehearse.traces import read_trace
from pipeline.sandbox.base import Limits, StopHandle, StoppableSandbox
from pipeline.sandbox.lanes import count_lanes
from pipeline.schema import Problem, Severity
from pipeline.survey import Candidate
from pipeline.task import Usage
from pipeline.validation.declarations import read_declarations
from pipeline.validation.diagnosis import Diagnosis, diagnose, is_own_module, missing_in_log, read_tail
from pipeline.validation.environments import Built, Environments, reached_files
from pipeline.validation.repair import passes_over_errors, repaired_commands
from pipeline.validation.system_packages import missing_libraries, missing_programs
from pipeline.witness.read import read_witness
from pipeline.witness.records import Perturbation, WitnessReport

__all__ = ["rehearse"]

_STAGE: Final = "rehearse"
_COMPONENT: Final = "rehearse"
_ROUNDS: Final = ((60.0, 0.5), (300.0, 0.8))
"""How long everything is tried at first, and which share of the budget may be used up then: the quick half of published
scripts ends within a minute here. The rest of the budget is for commands that take longer."""
_ENVIRONMENT_ROUNDS: Final = 3
_CURABLE: Final = frozenset({"code", "module"})
"""Kinds of failures (`Diagnosis`) that an environment can cure."""
_EARLIER: Final = (1, 3, 5)
"""Years by which packages may be older than those with which hardly anything runs, tried in this order: what they lose
they announce for one or two years."""
_OUTDATED: Final = 0.75
"""Share of the commands whose failure can be told that has to end in packages, before earlier ones are tried."""
_PROBES: Final = 4
"""Programs that are run with earlier packages before all are that failed."""
_REPAIRS: Final = 8
"""Runs of one candidate that each put one thing right: paths of the author's come one by one."""


def rehearse(
    candidates: Sequence[Candidate], *, index: RepositoryIndex, environments: Environments, sandbox: StoppableSandbox,
    limits: Limits, out: Path, cache: Path, owner: str, reporter: Reporter | None = None, budget_s: float = 1200.0,
    per_command_s: float = 900.0, data: DataPhase | None = None,
) -> tuple[Rehearsal, ...]:  # fmt: skip
    """Run each candidate once, within the budget.

    Args:
        candidates: from `list_candidates`, most promising first.
        index: the repository they belong to.
        environments: makes its environments.
        sandbox: where they run; without mounts and outbox there is no witness, and no path of the author's is mapped.
        limits: ceilings of each run; its wall time is given by `per_command_s`.
        out: directory for what the runs leave behind, one folder a candidate; replaced.
        cache: directory of finished runs, shared by all repositories; what is there is not run again.
        owner: label of the runs (`Sandbox.reap`).
        reporter: progress.
        budget_s: for all runs together, on each of the (at most two) lanes. Building environments is not counted.
        per_command_s: for one candidate's run, the earlier steps that it needs included.
        data: fetches what a command downloads, recorded, for its offline run; None: nothing is fetched.

    Returns:
        One for each candidate, in their order; one that was not run says why.

    Raises:
        ExpbenchError: the sandbox broke, or a build was interrupted.
    """
    remove_tree(out)
    stop = StopHandle()
    kept = KeptRuns(index.snapshot, sandbox, cache / "rehearsals", owner, stop, data)
    stage = _Stage(index, environments, kept, limits, out, reporter or SilentReporter(), count_lanes(limits), budget_s)
    stage.reporter.start(_STAGE, len(candidates))
    projects = _projects(index, candidates)
    try:
        for project in projects:
            project.extend(stage)
        for most_s, share in (*_ROUNDS, (per_command_s, 1.0)):
            wall_s = min(most_s, per_command_s)
            pending = [candidate for candidate in candidates if not stage.ended(candidate, wall_s)]
            _settle(stage, pending, projects, wall_s, share)
            projects += [other for project in projects for other in project.go_back(stage, wall_s, share)]
    except BaseException:
        stop.abort("the rehearsal ends")
        raise
    stage.reporter.end(_STAGE)
    return tuple(stage.rehearsal(candidate, projects) for candidate in candidates)


def _settle(
    stage: _Stage, pending: Sequence[Candidate], projects: Sequence[_Project], wall_s: float, share: float,
    ran: Sequence[Candidate] = (),
) -> None:  # fmt: skip
    """Run candidates; what they, or those that ran before, miss extends their environments, bounded."""
    for _ in range(_ENVIRONMENT_ROUNDS):
        stage.run(pending, projects, wall_s, share)
        pending = [item for project in projects for item in project.lacking(stage, [*pending, *ran])]
        if not pending:
            break


@dataclass(frozen=True)
class _Tried:
    """A candidate as it was run at last."""

    usage: tuple[Usage, ...]
    repairs: tuple[str, ...]
    mapped: tuple[tuple[str, str], ...]
    data: DataRecord | None
    run: KeptRun
    built: Built
    wall_s: float
    cause: Diagnosis | None
    """Of its failure; None when it ended well."""
    outdated: bool
    """Earlier packages may help: it failed so, or ended only because cells that did so were passed over."""
    spent_s: float
    """By all of its runs, earlier tries included."""

    @property
    def telling(self) -> bool:
        """Does it say whether the environment is right? What lacks data or arguments does not."""
        return self.outdated or self.cause is None or not self.cause.blocked or self.cause.kind == "limit"

    @property
    def end(self) -> object:
        """How it failed: by a limit, or where with which exception; None where that is not known, or it did not."""
        if self.cause is None or self.cause.kind == "limit":
            return self.cause and self.cause.kind
        trace = read_trace(_log(self.run))
        return (
            None
            if trace is None
            else (trace.error, [(posixpath.basename(place.path), place.line) for place in trace.places])
        )


# --- environments ----------------------------------------------------------------------------------------------------


@dataclass
class _Project:
    """Candidates that share their declarations, and so an environment: a repository has one for each sub-project."""

    candidates: list[Candidate] = field(default_factory=list)
    modules: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    built: Built | None = None
    as_of: date | None = None
    """The day of which its packages are, where those of the commit's day do not do."""
    why: tuple[Problem, ...] = ()
    """What is told of that."""
    searched: set[str] = field(default_factory=set)
    """Keys of candidates for which earlier packages were tried."""

    def extend(self, stage: _Stage) -> None:
        """Build the environment; where one with more cannot be built, the one before stays."""
        entries = sorted({candidate.entry for candidate in self.candidates})
        built = stage.environments.of_files(
            entries, reached_files(stage.index, entries), modules=self.modules, libraries=self.libraries,
            as_of=self.as_of,
        )  # fmt: skip
        if built.image is not None or self.built is None:
            self.built = replace(built, problems=(*self.why, *built.problems))

    def go_back(self, stage: _Stage, wall_s: float, share: float) -> list[_Project]:
        """Try earlier packages where hardly anything runs with these, or a stated command does not because of them.

        Seen: code that nobody changed since its packages lost what it calls, while they are declared without versions.

        Returns:
            Those that run further so, as a project of their own; what ran with the present packages keeps them.
        """
        failed = [item for item in stage.outdated(self.candidates) if item.key not in self.searched]
        if not failed or self.built is None or self.built.image is None or stage.used_up(share):
            return []
        self.searched |= {item.key for item in failed}
        first = {candidate.entry: candidate for candidate in reversed(failed)}
        probes = [candidate for candidate in failed if first[candidate.entry] is candidate][:_PROBES]
        before = stage.tried(failed)
        all_fail = _count(stage.tried(self.candidates))[0] == 0
        theirs = [item for item in self.candidates if all_fail or item.entry in first]
        # the year's first day: what is cached of today's packages serves longer than a day
        start = self.built.as_of or date(date.today().year, 1, 1)
        for years in _EARLIER:
            day = start - timedelta(days=365 * years)
            what = f"a command fails with the packages of {self.built.as_of or 'today'}: those of {day}"
            stage.reporter.note(_STAGE, f"{what} are tried")
            why = (_info("packages", f"{what} are used"),)
            other = _Project(theirs, self.modules, self.libraries, as_of=day, why=why, searched=self.searched)
            other.extend(stage)
            if other.built is None or other.built.image is None:
                break
            stage.run(probes, [other], wall_s, share)
            if _count(stage.tried(probes)) > _count({item.key: before[item.key] for item in probes}):
                _settle(stage, [item for item in failed if item not in probes], [other], wall_s, share, probes)
                # a notebook that went on past its errors, and does not start with these
                after = stage.tried(failed)
                worse = {key: old for key, old in before.items() if old.cause is None and after[key].cause is not None}
                stage.put_back(worse)
                other.candidates = [item for item in theirs if item.key not in worse]
                self.candidates = [item for item in self.candidates if item not in other.candidates]
                return [other]
            stage.put_back(before)
        return []

    def lacking(self, stage: _Stage, ran: Collection[Candidate]) -> list[Candidate]:
        """Of those that just ran, what missed modules or libraries; the environment has them afterwards."""
        own = {file.path for file in stage.index.snapshot.files}
        modules: dict[str, None] = {}
        libraries: set[str] = set()
        lacking = []
        for candidate in self.candidates:
            log = stage.log_of(candidate) if candidate in ran else ""
            missed = [name for name in missing_in_log(log) if not is_own_module(name, own)]
            found = {*missing_libraries(log), *missing_programs(log)} - set(self.libraries)
            more = [name for name in missed if name not in self.modules]
            if more or found:
                lacking.append(candidate)
                modules |= dict.fromkeys(more)
                libraries |= found
        if lacking:
            stage.reporter.note(_STAGE, f"runs missed {', '.join([*modules, *sorted(libraries)])}")
            self.modules, self.libraries = (*self.modules, *modules), (*self.libraries, *sorted(libraries))
            self.extend(stage)
        return lacking


def _count(tried: Mapping[str, _Tried]) -> tuple[int, int]:
    """How many ended well; how many did not end in packages."""
    fit = [item for item in tried.values() if not item.outdated]
    return sum(item.cause is None for item in fit), len(fit)


def _projects(index: RepositoryIndex, candidates: Iterable[Candidate]) -> list[_Project]:
    found: dict[tuple[str, ...], _Project] = {}
    for candidate in candidates:
        declared = read_declarations(index.snapshot, [candidate.entry]).files
        key = tuple(path for path in declared if path != candidate.entry)
        found.setdefault(key, _Project()).candidates.append(candidate)
    return list(found.values())


# --- runs ------------------------------------------------------------------------------------------------------------


class _Stage:
    """The rehearsal under way: what was tried, and what of the budget is used."""

    def __init__(
        self, index: RepositoryIndex, environments: Environments, kept: KeptRuns, limits: Limits, out: Path,
        reporter: Reporter, lanes: int, budget_s: float,
    ) -> None:  # fmt: skip
        self.index, self.environments, self.kept, self.limits, self.out = index, environments, kept, limits, out
        self.reporter, self.lanes, self.budget_s = reporter, lanes, budget_s
        self._tried: dict[str, _Tried] = {}
        self._spent = 0.0

    def ended(self, candidate: Candidate, wall_s: float) -> bool:
        """Was it run, and would it not get further with this time?"""
        tried = self._tried.get(candidate.key)
        if tried is None:
            return False
        return tried.run.result.failure is not FailureKind.RUN_TIMEOUT or tried.wall_s >= wall_s

    def log_of(self, candidate: Candidate) -> str:
        """What its failed run printed at last; empty when there is none."""
        tried = self._tried.get(candidate.key)
        return "" if tried is None or tried.cause is None else _log(tried.run)

    def used_up(self, share: float) -> bool:
        """Is this share of the budget used?"""
        return self._spent >= self.budget_s * self.lanes * share

    def tried(self, candidates: Iterable[Candidate]) -> dict[str, _Tried]:
        """How they ran at last, by key; those that did not are left out."""
        return {item.key: self._tried[item.key] for item in candidates if item.key in self._tried}

    def put_back(self, tried: Mapping[str, _Tried]) -> None:
        """What is told of these is an earlier try; what the later ones took stays spent."""
        self._tried |= tried

    def outdated(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        """Those that earlier packages may help, where they are nearly all or the repository states one; else none."""
        tried = self.tried(candidates)
        telling = [item for item in tried.values() if item.telling]
        found = [item for item in candidates if item.key in tried and tried[item.key].outdated]
        hardly_any = _count(tried)[0] == 0 and len(found) >= _OUTDATED * len(telling)
        return found if hardly_any or any(item.origin != "entry" for item in found) else []

    def run(self, pending: Sequence[Candidate], projects: Sequence[_Project], wall_s: float, share: float) -> None:
        """Run candidates in order, as many at a time as there are lanes, until this share of the budget is used.

        A program that hit the limit, or failed twice in the same way, waits until every other one had its turn.
        """
        built = {item.key: project.built for project in projects for item in project.candidates}
        waiting = list(pending)
        ends: dict[str, list[object]] = defaultdict(list)
        hopeless: set[str] = set()
        under_way: dict[Future[_Tried], Candidate] = {}
        with ThreadPoolExecutor(self.lanes, thread_name_prefix="expbench-rehearsal") as pool:
            try:
                while waiting or under_way:
                    while waiting and len(under_way) < self.lanes:
                        candidate = next((item for item in waiting if item.entry not in hopeless), waiting[0])
                        waiting.remove(candidate)
                        environment = built[candidate.key]
                        if environment is not None and environment.image is not None and not self.used_up(share):
                            under_way[pool.submit(self._try, candidate, environment, wall_s)] = candidate
                    done, _ = wait(under_way, return_when=FIRST_COMPLETED)
                    for future in done:
                        candidate, tried = under_way.pop(future), future.result()
                        self._note(candidate, tried)
                        if tried.end is not None:
                            if tried.end == "limit" or tried.end in ends[candidate.entry]:
                                hopeless.add(candidate.entry)
                            ends[candidate.entry].append(tried.end)
            except BaseException:
                self.kept.stop.abort("the rehearsal ends")
                raise

    def _note(self, candidate: Candidate, tried: _Tried) -> None:
        self._tried[candidate.key] = tried
        self._spent += tried.spent_s
        how = tried.run.result.failure.value if tried.run.result.failure else "ended well"
        command = candidate.entry if candidate.entry.endswith(".ipynb") else " ".join(candidate.usage.argv)[:120]
        self.reporter.step(_STAGE, f"{command}: {how} after {tried.run.result.duration_s:.0f} s")

    def _try(self, candidate: Candidate, built: Built, wall_s: float) -> _Tried:
        """One candidate: run, put right what it misses and the repository has, run again."""
        snapshot = self.index.snapshot
        usage: tuple[Usage, ...] = (candidate.usage,)
        mapped: Places = ()
        repairs: tuple[str, ...] = ()
        data: DataRecord | None = None
        spent, outdated = 0.0, False
        best: _Tried | None = None
        for _ in range(_REPAIRS + 1):
            limits = self.limits.evolve(wall_s=wall_s)
            run = self.kept.run(usage, mapped, built, limits, data)
            spent += run.spent_s
            cause = diagnose(snapshot, run.result, run.directory) if run.result.failure else None
            if cause is not None:
                outdated = cause.kind in _CURABLE and self._may_be_outdated(_log(run), candidate, built)
            outdated = outdated and (cause is not None or passes_over_errors(usage))
            tried = _Tried(usage, repairs, mapped, data, run, built, wall_s, cause, outdated, spent)
            number = run.failed_command
            # a step that was put before it and fails itself was no help: what came before is told
            best = tried if best is None or number is None or number == len(usage) - 1 else best
            if run.result.failure is not FailureKind.RUN_FAILED or cause is None or number is None:
                break
            cwd = usage[number].directory
            places = place_authors_path(run.directory, number, snapshot, cwd, mapped) if self.kept.maps else None
            if places is not None:
                mapped = places
                continue
            if data is None and cause.kind == "network":
                data = self.kept.fetch(run, usage, mapped, built, limits)
                if data is not None:
                    continue
            found = repaired_commands(usage, number, run.directory, snapshot=snapshot, index=self.index)
            if found is None or found.usage == usage:
                break
            usage, repairs = found.usage, (*repairs, found.what)
        assert best is not None
        return replace(best, spent_s=spent)

    def _may_be_outdated(self, log: str, candidate: Candidate, built: Built) -> bool:
        """Did it fail in packages, or with an exception and packages that are not those of its authors?

        Seen: numpy and matplotlib pinned to versions of three years before, pandas declared nowhere; that of the
        commit's date reads a table in another way, and the program ends in its own code.
        """
        declared = read_declarations(self.index.snapshot, [candidate.entry]).requirements
        pinned = any("==" in str(item.specifier) for item in declared)
        imported = built.environment is not None and "imports" in built.environment.declared_in
        if pinned and (imported or not all(item.specifier for item in declared)) and read_trace(log) is not None:
            return True
        return fails_in_packages(log, candidate.entry, self.index.snapshot)

    # --- what is told ------------------------------------------------------------------------------------------------

    def rehearsal(self, candidate: Candidate, projects: Sequence[_Project]) -> Rehearsal:
        """What is known of a candidate at the end; its output is copied to the stage's directory."""
        tried = self._tried.get(candidate.key)
        if tried is None:
            return self._not_run(candidate, next(item for item in projects if candidate in item.candidates))
        run, built = tried.run, tried.built
        directory = self.out / candidate.key
        shutil.copytree(run.directory, directory, symlinks=True)
        cause = tried.cause
        report = read_witness(directory, perturbation=Perturbation.NONE, amount=0) if run.witnessed else None
        return Rehearsal(
            candidate=candidate, usage=tried.usage, repairs=tried.repairs, mapped=tried.mapped, data=tried.data,
            ran=True, failure=run.result.failure, blocked=cause is not None and cause.blocked,
            message=cause.reason if cause is not None else "", duration_s=run.result.duration_s, directory=directory,
            result=run.result, witnessed=run.witnessed, image=built.image.digest if built.image else "",
            environment=built.environment, problems=(*_told(candidate, tried, report), *run.result.problems),
            **_witnessed(report, tried.mapped),
        )  # fmt: skip

    def _not_run(self, candidate: Candidate, project: _Project) -> Rehearsal:
        built = project.built
        if built is None or built.image is None:
            why = built.problems[-1].message if built is not None and built.problems else "it could not be built"
            return Rehearsal(
                candidate=candidate, failure=FailureKind.ENVIRONMENT_UNBUILDABLE, blocked=True,
                message=f"the environment cannot be built: {why}", problems=built.problems if built else (),
            )  # fmt: skip
        message = f"not run: the budget of {self.budget_s:g} s was used up by the commands before it"
        return Rehearsal(
            candidate=candidate, failure=FailureKind.RUN_TIMEOUT, blocked=True, message=message,
            environment=built.environment, image=built.image.digest,
        )  # fmt: skip


def _log(run: KeptRun) -> str:
    """The end of what its commands printed, those of errors before the others of the same command."""
    return "\n".join(
        read_tail(run.directory / f"{number}.{stream}")
        for number in range(len(run.result.commands))
        for stream in ("stdout", "stderr")
    )


def _witnessed(report: WitnessReport | None, mapped: Collection[tuple[str, str]]) -> Mapping[str, tuple[object, ...]]:
    """Functions, seeds and files of the repository; files of the system and of libraries tell nothing."""
    if report is None:
        return {}
    authors = {path for path, _ in mapped}

    def own(paths: Iterable[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(path for path in paths if not path.startswith("/") or path in authors))

    return {
        "functions": report.functions,
        "seeds": report.seeds,
        "reads": own(path for process in report.processes for path in process.reads),
        "writes": own(path for process in report.processes for path in process.writes),
    }


def _told(candidate: Candidate, tried: _Tried, report: WitnessReport | None) -> list[Problem]:
    """What a reader has to know of how it was run."""
    where = candidate.where
    said = [f"put right: {what}" for what in tried.repairs]
    said += [f"`{path}` is the author's: `{own}` of the repository is found there" for path, own in tried.mapped]
    for file in tried.data.files if tried.data is not None else ():
        said.append(
            f"downloaded before the run: {file.url} ({file.size} bytes, sha256 {file.sha256[:16]}, {file.licence})"
        )
    if report is None:
        said.append("no witness: this sandbox cannot carry one, and which functions ran is not known")
    told = [_info(where, text) for text in said]
    return [*told, *tried.built.problems, *(report.problems if report is not None else ())]


def _info(where: str, message: str) -> Problem:
    return Problem(component=_COMPONENT, where=where, message=message, severity=Severity.INFO)
