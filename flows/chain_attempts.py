"""One chain tried in its environment, with what its failed runs ask for: modules, libraries, folders, earlier steps."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from flows.chains import with_chain
from pipeline.execution_plan import Scale
from pipeline.locator import Chain, RepositoryIndex, build_index
from pipeline.repository import Snapshot
from pipeline.schema import Problem, Severity
from pipeline.task import Task, ValidationReport, Verdict
from pipeline.validation.environments import Built, Environments, reached_files
from pipeline.validation.refine import rank_of
from pipeline.validation.repair import repaired, stopped_commands
from pipeline.validation.rerun import missing_parts, validate

__all__ = ["ChainAttempts", "Learnt", "Tried"]

_ENVIRONMENT_ROUNDS: Final = 3
"""How often a missing module may extend an environment: each round names one more, and research code rarely has more
than two that nothing declares."""
_REPAIRS: Final = 4
"""Of one chain: another directory, two folders for output and the steps before it are the most that was seen."""


class Learnt:
    """What trying chains of a snapshot has shown: its commands as the locator reads them, and which are too long."""

    def __init__(self) -> None:
        self._made: dict[Path, RepositoryIndex] = {}
        self.slow: set[tuple[str, ...]] = set()
        """Commands that hit a limit: they are no way to what another chain misses."""

    def index(self, environments: Environments) -> RepositoryIndex:
        """The index of the snapshot of these environments, made once and only when it is needed."""
        snapshot = environments.snapshot
        if snapshot.root not in self._made:
            self._made[snapshot.root] = build_index(snapshot, cache=environments.settings.cache_dir / "indexes")
        return self._made[snapshot.root]


@dataclass(frozen=True)
class Tried:
    """The task with the chain as it was run at last, and how that went."""

    task: Task
    report: ValidationReport


@dataclass(frozen=True)
class ChainAttempts:
    """Tries chains of one snapshot."""

    environments: Environments
    repeats: int
    learnt: Learnt = field(default_factory=Learnt)

    def attempt(self, base: Task, chain: Chain, name: str) -> Tried:
        """Validate one chain; one that stopped for want of what the repository can give is put right and run again.

        Args:
            base: the task before any chain.
            chain: what to run.
            name: of the attempt, and of the directory of its runs.

        Returns:
            The last try, unless an earlier one showed more.

        Raises:
            ExpbenchError: the machinery failed; nothing is known about the task.
        """
        best = self.once(base, chain, name)
        what: list[str] = []
        current = best
        for number in range(1, _REPAIRS + 1):
            if not any(run.failure for run in current.report.runs):
                break
            found = repaired(
                chain, current.report, self._out(base, _name(name, number - 1)), snapshot=self._snapshot,
                index=self.learnt.index(self.environments), slow=self.learnt.slow,
            )  # fmt: skip
            if found is None:
                break
            chain = found.chain
            what.append(found.what)
            self.environments.reporter.step("validate", f"{base.id}: again, {found.what}")
            current = self.once(base, chain, _name(name, number))
            if rank_of(current.report) >= rank_of(best.report):
                best = Tried(current.task, _noted(current.report, what))
        return best

    def once(
        self, base: Task, chain: Chain, name: str, *, repeats: int | None = None, scale: Scale | None = None
    ) -> Tried:
        """Validate one chain as it is; modules and libraries that its run misses extend the environment, bounded."""
        environments, settings = self.environments, self.environments.settings
        task = with_chain(base, chain)
        out = self._out(base, name)
        modules: tuple[str, ...] = ()
        libraries: tuple[str, ...] = ()
        # a task that was drafted from a run has its environment; what was only looked for is resolved anew
        placed = any(claim.place for claim in base.truth.expected.claims)
        known = placed and base.environment.spec_digest is not None
        for _ in range(_ENVIRONMENT_ROUNDS):
            built = environments.again(task) if known else self._environment(task, modules, libraries)
            if built.image is None or built.environment is None:
                reason = f"the environment cannot be built: {built.problems[-1].message}"
                report = ValidationReport(
                    verdict=Verdict.UNKNOWN, reason=reason, sandbox=environments.sandbox.name, problems=built.problems
                )
                return Tried(task, report)
            task = task.evolve(environment=built.environment)
            report = validate(
                task,
                snapshot=self._snapshot,
                image=built.image,
                sandbox=environments.sandbox,
                repeats=repeats or self.repeats,
                out=out,
                owner=environments.workspace.owner,
                limits=settings.limits,
                reporter=environments.reporter,
                scale=settings.scale if scale is None else scale,
            )
            missed_modules, missed_libraries = missing_parts(report, out)
            more_modules, more_libraries = missed_modules - set(modules), missed_libraries - set(libraries)
            if known or report.verdict is Verdict.PASS or not (more_modules or more_libraries):
                break
            modules, libraries = (*modules, *sorted(more_modules)), (*libraries, *sorted(more_libraries))
        self.learnt.slow.update(stopped_commands(chain.usage, report))
        return Tried(task, report.evolve(problems=(*built.problems, *report.problems)))

    def _environment(self, task: Task, modules: Collection[str], libraries: Collection[str]) -> Built:
        sources = [source.path for source in task.truth.sources]
        reached = reached_files(self.learnt.index(self.environments), sources)
        return self.environments.of_files(sources, reached, modules=tuple(modules), libraries=libraries)

    @property
    def _snapshot(self) -> Snapshot:
        return self.environments.snapshot

    def _out(self, task: Task, name: str) -> Path:
        return self.environments.workspace.task_dir(task.id) / "validation" / name


def _name(name: str, repair: int) -> str:
    return f"{name}-again-{repair}" if repair else name


def _noted(report: ValidationReport, what: list[str]) -> ValidationReport:
    problems = [
        Problem(component="validate.repair", where="chain", message=item, severity=Severity.INFO) for item in what
    ]
    return report.evolve(problems=(*problems, *report.problems))
