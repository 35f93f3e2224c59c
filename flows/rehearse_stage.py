"""Run first: survey the repository, rehearse its commands, and match what they give with the paper's numbers.

What a run gives back beyond chance is drafted and goes on with the command that gave it; a committed file only says
where numbers are from. What was run is kept in the workspace and in the cache, and never run again for the same commit,
command and environment.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Final

from extractors.drafting import FEWEST, DraftResult, Ground, as_stated, draft_tables, ground_of
from extractors.engine.runs import Rehearsed
from extractors.keyless import draft_tasks
from extractors.naming import as_key
from extractors.stated import Said, draft_sentences
from flows.chains import Located, with_chain
from flows.shared_runs import SharedRuns
from flows.validate_stage import ValidateStage
from pipeline.data.phase import open_data_phase
from pipeline.locator import Chain, build_index
from pipeline.match.prose import match_prose
from pipeline.match.records import Source, TableMatch
from pipeline.match.tables import match_tables
from pipeline.paper import Document
from pipeline.progress import Details, Reporter
from pipeline.rehearse import Rehearsal, read_rehearsal, rehearse
from pipeline.repository import Snapshot
from pipeline.requirements import requirements_of_run
from pipeline.sandbox import StoppableSandbox
from pipeline.schema import Problem, Record, Severity
from pipeline.scratch import scratch_directory
from pipeline.settings import Settings
from pipeline.store import Workspace
from pipeline.survey import list_candidates
from pipeline.task import Requirement, SourceScript, Status, Task
from pipeline.validation.environments import Environments
from pipeline.validation.numbers import absolute_values
from pipeline.validation.observation import Observation
from pipeline.validation.outputs import read_committed
from pipeline.validation.places import by_file, places_of
from pipeline.validation.plan import make_plan
from pipeline.validation.rerun import FIRST_RUN
from pipeline.validation.resolution import PYTHON
from pipeline.validation.responses import RECORDED_RUN
from pipeline.version import STAGE_VERSIONS
from pipeline.witness.launch import with_witness
from pipeline.witness.records import Perturbation

__all__ = [
    "DraftedFromRuns", "RunEvidence", "adopt_rehearsals", "code_of", "draft_from_runs", "from_choice", "from_run",
    "read_rehearsed",
]  # fmt: skip

_STAGE: Final = "rehearse"
_CODE: Final = (".py", ".ipynb", ".sh", ".r", ".R", ".yaml", ".yml", ".toml", ".cfg", ".json")
_MAX_CODE: Final = 200_000
_DRAWN: Final = "plot "


class RunEvidence(Record):
    """The runs that gave the numbers of one task."""

    runs: tuple[Rehearsal, ...]
    """First the one that is drafted, which gave most of them; then others that gave at least half of them: each gives
    the answer away as well."""


class DraftedFromRuns(Record):
    """Drafts with the runs behind them, in one order."""

    drafts: DraftResult
    evidence: tuple[RunEvidence, ...] = ()


@dataclass(frozen=True)
class _Held:
    """A source of numbers: a run, or a committed file."""

    source: Source
    observations: tuple[Observation, ...]
    rehearsal: Rehearsal | None = None

    @cached_property
    def by_place(self) -> dict[str, Observation]:
        """Place of a number in it -> the number."""
        return dict(zip(places_of(self.observations), self.observations, strict=True))


def draft_from_runs(
    workspace: Workspace, settings: Settings, sandbox: StoppableSandbox, snapshot: Snapshot, document: Document,
    reporter: Reporter, max_tasks: int | None = None,
) -> DraftedFromRuns:  # fmt: skip
    """Rehearse the repository and draft what its runs give of the paper's numbers.

    Where they give nothing, what committed files hold is drafted, and tables of which nothing holds the numbers: these
    drafts come without evidence, and say so.

    Args:
        workspace: where; `rehearsal/` holds the runs, `rehearsal.json` what they gave.
        settings: limits and budget.
        sandbox: where commands run.
        snapshot: the repository.
        document: the paper.
        reporter: progress.
        max_tasks: keep only the best ones; None keeps all.

    Returns:
        The drafts, with the runs behind them where there are any; why others were not made is among the problems.

    Raises:
        ExpbenchError: the machinery failed; nothing is known.
    """
    key: dict[str, object] = {
        "stage": _STAGE, "versions": [STAGE_VERSIONS[name] for name in ("extract", "draft", "locate", "validate")],
        "document": document.sha256, "commit": snapshot.ref.commit, "sandbox": sandbox.name,
        "limits": settings.limits.model_dump(mode="json"), "budget": settings.rehearsal_s, "max_tasks": max_tasks,
        "data": [settings.data, *settings.data_hosts, settings.data_limit_mb],
    }  # fmt: skip
    reporter.start(_STAGE)
    found = workspace.finished(_STAGE, key, DraftedFromRuns)
    if found is None:
        with workspace.ledger.timed(_STAGE):
            found = _rehearsed(workspace, settings, sandbox, snapshot, document, Details(reporter, _STAGE), max_tasks)
            workspace.finish(_STAGE, key, found)
    claims = sum(len(draft.expected.claims) for draft in found.drafts.drafts[: len(found.evidence)])
    reporter.end(_STAGE, f"{len(found.evidence)} tables (or parts of one) came out of runs, with {claims} numbers")
    return found


def read_rehearsed(workspace: Workspace) -> Rehearsed:
    """What `draft_from_runs` ran, and what that gave; nothing where nothing was run."""
    path = _summary(workspace)
    return Rehearsed.model_validate_json(path.read_bytes()) if path.exists() else Rehearsed()


def _summary(workspace: Workspace) -> Path:
    return workspace.root / "rehearsal.json"


def _rehearsed(
    workspace: Workspace, settings: Settings, sandbox: StoppableSandbox, snapshot: Snapshot, document: Document,
    reporter: Reporter, max_tasks: int | None,
) -> DraftedFromRuns:  # fmt: skip
    index = build_index(snapshot, cache=settings.cache_dir / "indexes")
    candidates = list_candidates(index, document)
    reporter.step(_STAGE, f"{len(candidates)} commands to try")
    runs = rehearse(
        candidates, index=index, environments=Environments(workspace, settings, sandbox, snapshot, reporter),
        sandbox=sandbox, limits=settings.limits, out=workspace.root / "rehearsal", cache=settings.cache_dir,
        owner=workspace.owner, reporter=reporter, budget_s=settings.rehearsal_s,
        data=open_data_phase(settings, sandbox),
    )  # fmt: skip
    held = [_of_run(run) for run in runs if run.ran]
    committed = [_Held(Source(name=path, origin="committed"), tuple(held)) for path, held in read_committed(snapshot)]
    sources = [part for item in held for part in _parts(item)]
    found = match_tables(document, [*sources, *((item.source, item.observations) for item in committed)])
    matches = [match for match in (as_stated(document, item) for item in found) if len(match.cells) >= FEWEST]
    workspace.write_json(_summary(workspace), Rehearsed(runs=tuple(runs), matches=tuple(matches)))
    by_run = {item.source.name: item for item in held}
    chosen, others, problems = _choose(matches, by_run, _read_by(runs, committed))
    problems += _of_runs(runs)
    if not chosen:
        told, grounds = draft_sentences(document, _said(document, snapshot, held, committed))
        problems += told.problems
        if told.drafts:
            runs_of = [RunEvidence(runs=(_rehearsal(by_run[item.source]),)) for item in grounds[:max_tasks]]
            drafts = told.evolve(drafts=told.drafts[:max_tasks], problems=tuple(problems))
            return DraftedFromRuns(drafts=drafts, evidence=tuple(runs_of))
        return _without_runs(document, matches, {item.source.name: item for item in committed}, problems, max_tasks)
    problems += _only_committed(document, matches, chosen)
    made = draft_tables(
        document, [_ground(match, by_run, _code_of(snapshot, by_run[match.source])) for match in chosen]
    )
    behind = {
        (best.table, best.source): RunEvidence(runs=tuple(_rehearsal(by_run[match.source]) for match in (best, *also)))
        for best, also in zip(chosen, others, strict=True)
    }
    kept = made.result.drafts[:max_tasks]
    return DraftedFromRuns(
        drafts=DraftResult(drafts=kept, problems=(*made.result.problems, *problems)),
        evidence=tuple(behind[ground.table, ground.source] for ground in made.grounds[: len(kept)]),
    )


def _without_runs(
    document: Document, matches: Sequence[TableMatch], committed: Mapping[str, _Held], problems: Sequence[Problem],
    max_tasks: int | None,
) -> DraftedFromRuns:  # fmt: skip
    """Drafts where no run gives a number: of what committed files hold, then of what the paper alone states."""
    grounds: dict[int, Ground] = {}
    for match in sorted(matches, key=lambda item: -len(item.cells)):
        if match.origin == "committed":
            grounds.setdefault(match.table, _ground(match, committed))
    made = draft_tasks(document, max_tasks=max_tasks, held=grounds)
    return DraftedFromRuns(drafts=made.evolve(problems=(*made.problems, *problems)))


def _ground(match: TableMatch, held: Mapping[str, _Held], code: str = "") -> Ground:
    """A match as what a draft is made from, with the names that its sources give the numbers."""
    seen = {(cell.source, cell.place): held[cell.source].by_place[cell.place] for cell in match.cells}
    fields = {place: observation.labels[-1] for place, observation in seen.items() if observation.labels}
    keys: dict[str, str] = {}
    for observation in seen.values():
        for name, value in observation.coordinates:
            if name and value:
                keys.setdefault(as_key(value), name)
    return ground_of(match, code, keys, fields)


def _rehearsal(held: _Held) -> Rehearsal:
    assert held.rehearsal is not None, "only runs are drafted"
    return held.rehearsal


def _said(document: Document, snapshot: Snapshot, held: Sequence[_Held], committed: Sequence[_Held]) -> list[Said]:
    """For each run the numbers of sentences that it gave and no better one did.

    What its code sets, and what stands in a committed file that it reads, it did not compute.
    """
    runs = {item.source.name: item for item in held}
    shipped = {item.source.name: item for item in committed}

    @cache
    def code(name: str) -> str:
        return _code_of(snapshot, runs[name])

    @cache
    def known(name: str) -> frozenset[float]:
        read = shipped.keys() & set(_rehearsal(runs[name]).reads)
        return absolute_values(code(name)).union(*([abs(n.value) for n in shipped[path].observations] for path in read))

    matches = match_prose(
        document, [(item.source, item.observations) for item in held],
        lambda source, value: value in known(source.name),
    )  # fmt: skip
    counts = Counter(match.source for match in matches)
    taken: set[str] = set()
    result = []
    for item in sorted(held, key=lambda item: (_fails(item), -counts[item.source.name])):
        own = tuple(m for m in matches if m.source == item.source.name and m.printed not in taken)
        taken |= {match.printed for match in own}
        if own:
            result.append(Said(item.source.name, own, item.by_place, code(item.source.name)))
    return result


# --- sources of numbers ----------------------------------------------------------------------------------------------


def _of_run(run: Rehearsal) -> _Held:
    command = " ".join(run.candidate.usage.argv)
    source = Source(name=f"run:{run.candidate.key}", origin="run", command=command)
    # what was only drawn is seen by a witness, which clean repeats and round trips do not carry yet
    printed = tuple(item for item in read_rehearsal(run) if not item.source.startswith(_DRAWN))
    return _Held(source, printed, run)


def _parts(run: _Held) -> Iterator[tuple[Source, Sequence[Observation]]]:
    """A run's numbers together, then those of each of its files: traces of 6,550 steps drown a summary of eight."""
    yield run.source, run.observations
    files = by_file(run.observations)
    if len(files) > 1:
        yield from ((run.source, observations) for observations in files.values())


def _read_by(runs: Iterable[Rehearsal], committed: Iterable[_Held]) -> dict[str, frozenset[str]]:
    """Run -> committed files that it read and did not write: what stands there it did not compute."""
    shipped = {item.source.name for item in committed}
    return {f"run:{run.candidate.key}": frozenset(run.reads) & shipped for run in runs}


# --- the best run of each table --------------------------------------------------------------------------------------


def _choose(
    matches: Sequence[TableMatch], by_run: Mapping[str, _Held], read: Mapping[str, frozenset[str]]
) -> tuple[list[TableMatch], list[list[TableMatch]], list[Problem]]:
    """For each part of a table the run that gives most of it, the other runs that do, and what was set aside.

    A table whose rows come from one command each has as many parts. What a run that failed shows tells only where.
    """
    order = {name: number for number, name in enumerate(by_run)}
    shipped: dict[int, set[str]] = {}
    for match in matches:
        if match.source not in by_run:
            shipped.setdefault(match.table, set()).update(cell.source for cell in match.cells)
    found: dict[int, list[TableMatch]] = {}
    problems: list[Problem] = []
    for match in matches:
        if match.source not in by_run:
            continue
        copied = sorted(read[match.source] & shipped.get(match.table, set()))
        if copied:
            message = f"its run reads the numbers from {copied[0]}, which the repository ships: that computes nothing"
            problems.append(_problem(_where(match), f"{match.command}: {message}"))
            continue
        found.setdefault(match.table, []).append(match)

    def rank(match: TableMatch) -> tuple[bool, int, int, int]:
        """Of runs that give as many the one that gives least besides: a script of all experiments runs others, too."""
        held = by_run[match.source]
        return _fails(held), -len(match.cells), len(held.observations), order[match.source]

    groups: list[list[TableMatch]] = []
    for members in found.values():
        parts: list[list[TableMatch]] = []
        for match in sorted(members, key=rank):
            shared = [len(match.places & part[0].places) for part in parts]
            alike = [part for part, count in zip(parts, shared, strict=True) if 2 * count >= len(part[0].cells)]
            if alike:
                alike[0].append(match)
            elif not any(shared):  # another row or column, by another command
                parts.append([match])
        groups += parts
    for match in (group[0] for group in groups if _fails(by_run[group[0].source])):
        message = f"{len(match.cells)} of its numbers come out of `{match.command}`, which then fails"
        problems.append(_problem(_where(match), f"{message}: {_rehearsal(by_run[match.source]).message}"))
    return [group[0] for group in groups], [group[1:] for group in groups], problems


def _fails(held: _Held) -> bool:
    return held.rehearsal is not None and held.rehearsal.failure is not None


def _where(match: TableMatch) -> str:
    return f"{match.label} (page {match.page})"


def _problem(where: str, message: str) -> Problem:
    return Problem(component="rehearse", where=where, message=message, severity=Severity.INFO)


def _of_runs(runs: Iterable[Rehearsal]) -> list[Problem]:
    return [
        _problem(run.candidate.where, f"`{' '.join(run.candidate.usage.argv)}`: {run.message}")
        for run in runs
        if run.failure is not None or not run.ran
    ]


def _only_committed(document: Document, matches: Sequence[TableMatch], chosen: Sequence[TableMatch]) -> list[Problem]:
    """Tables of which a committed file holds the numbers, and no run gave them; and those that nothing holds."""
    ran = {match.table for match in chosen}
    problems = []
    for index, table in enumerate(document.tables):
        if index in ran:
            continue
        where = f"{table.label} (page {table.page})"
        stands = [match for match in matches if match.table == index]
        if stands:
            best = max(stands, key=lambda item: len(item.cells))
            message = f"not drafted: {len(best.cells)} of its numbers stand in {best.source}, but no run made them"
        else:
            message = "not drafted: its numbers came out of no run, and stand in no file of the repository"
        problems.append(_problem(where, message))
    return problems


# --- from a run to a chain -------------------------------------------------------------------------------------------


def _chain(run: Rehearsal) -> Chain:
    """The files that ran as a chain: what the command starts, and the files of the repository that state it."""
    why = (f"its run gives the table's numbers; stated in {run.candidate.where}",)
    sources = [SourceScript(path=run.candidate.entry, role="entry", score=1.0, reasons=why)]
    if run.candidate.origin == "shell":
        path = run.candidate.where.rpartition(":")[0]
        sources.insert(0, SourceScript(path=path, role="wrapper", score=1.0, reasons=("runs it",)))
    return Chain(sources=tuple(sources), usage=run.usage or (run.candidate.usage,), confidence=1.0)


def _code_of(snapshot: Snapshot, held: _Held) -> str:
    """Text of the repository's files that ran, the entry first."""
    run = _rehearsal(held)
    calls: Counter[str] = Counter(function.path for function in run.functions)
    return code_of(snapshot, [run.candidate.entry, *(path for path, _ in calls.most_common())])


def code_of(snapshot: Snapshot, paths: Iterable[str]) -> str:
    """Text of those of these files that are code or configuration of the repository, each once.

    Args:
        snapshot: the repository.
        paths: relative to its root.
    """
    known = {file.path for file in snapshot.files}
    wanted = [path for path in dict.fromkeys(paths) if path in known and path.endswith(_CODE)]
    return "\n".join(snapshot.text(path, _MAX_CODE) for path in wanted)


def from_run(task: Task, evidence: RunEvidence, snapshot: Snapshot, all_: Sequence[RunEvidence]) -> Located:
    """The task with the chain, the environment and the requirements of the run that gave its numbers.

    Args:
        task: draft.
        evidence: its runs.
        snapshot: the repository.
        all_: the runs of all tasks of the paper: what runs for each of them tells none from another.
    """
    same = {(item.path, item.name) for other in all_ if other is not evidence for item in other.runs[0].functions}
    chains = tuple(_chain(run) for run in evidence.runs)
    tasks = [
        _with_run(task, run, chain, snapshot, same, chains) for run, chain in zip(evidence.runs, chains, strict=True)
    ]
    return Located(task=tasks[0], chains=chains, rehearsed=tuple(tasks))


def from_choice(
    task: Task, chain: Chain, requirements: Sequence[Requirement], run: Rehearsal | None, others: Sequence[Rehearsal]
) -> Located:
    """The task with the chain and the requirements that a reader chose, and what is known of its run.

    Args:
        task: draft.
        chain: what carries it out.
        requirements: with their lines.
        run: the rehearsal of just these commands; None: they were not run.
        others: rehearsals that gave at least half of its numbers as well, and so give the answer away.
    """
    located = with_chain(task, chain).evolve(status=Status.LOCATED)
    also = _equivalents(chain, [_chain(other) for other in others])
    located = located.evolve(truth=located.truth.evolve(requirements=tuple(requirements), equivalents=also))
    if run is None:
        return Located(task=located, chains=(chain,))
    ran = _with_recorded(located, run, chain, tuple(requirements))
    return Located(task=ran, chains=(chain,), rehearsed=(ran,))


def _with_run(
    task: Task, run: Rehearsal, chain: Chain, snapshot: Snapshot, same: Collection[tuple[str, str]],
    chains: Sequence[Chain],
) -> Task:  # fmt: skip
    requirements = requirements_of_run(run.functions, snapshot=snapshot, entries=chain.entries, elsewhere=same)
    found = _with_recorded(task, run, chain, requirements)
    return found.evolve(truth=found.truth.evolve(equivalents=_equivalents(chain, chains)))


def _with_recorded(task: Task, run: Rehearsal, chain: Chain, requirements: tuple[Requirement, ...]) -> Task:
    """The task with a chain that was rehearsed, and what that run told."""
    truth = task.truth.evolve(
        sources=chain.sources, usage=chain.usage, requirements=requirements, ran=run.functions, seeds=run.seeds,
        mapped=run.mapped, data=None if run.data is None else run.data.kept,
    )  # fmt: skip
    environment = run.environment or task.environment
    return task.evolve(status=Status.LOCATED, truth=truth, environment=environment)


def adopt_rehearsals(shared: SharedRuns, located: Located, evidence: RunEvidence, stage: ValidateStage) -> None:
    """Take a rehearsal that ended well for the first clean run with the same commands, and for the recorded one.

    It ran the same files in the same environment in a sandbox of its own, and what it gave was not looked for before.

    Args:
        shared: where the runs of the tasks are kept.
        located: from `from_run`.
        evidence: its runs.
        stage: what validates the task.
    """
    for task, run in zip(located.rehearsed, evidence.runs, strict=True):
        spec = make_plan(task, stage.snapshot, limits=stage.settings.limits)
        ran = [(step.argv, posixpath.normpath(step.directory)) for step in run.usage]
        same = [(command.argv, command.directory) for command in spec.commands] == ran
        if run.failure is not None or run.result is None or run.directory is None or not same:
            continue
        image, root = stage.image_of(task), stage.snapshot.root
        if image.digest != run.image:
            continue
        shared.adopt(image, root, spec, FIRST_RUN, out=run.directory, result=run.result)
        if run.witnessed:
            with scratch_directory() as scratch:
                python = task.environment.python or PYTHON
                spec = with_witness(spec, perturbation=Perturbation.NONE, amount=0, python=python, scratch=scratch)
            shared.adopt(image, root, spec, RECORDED_RUN, out=run.directory, result=run.result)


def _equivalents(own: Chain, chains: Sequence[Chain]) -> tuple[SourceScript, ...]:
    """Files of other runs that gave the numbers: left in place, they would give the answer away."""
    masked = {source.path for source in own.sources}
    found = {source.path: source for chain in chains for source in chain.sources if source.path not in masked}
    return tuple(found.values())
