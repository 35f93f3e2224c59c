"""The environment of one chain or of several: resolved from declarations, built with bounded concessions, recorded."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.locator import RepositoryIndex
from pipeline.progress import Reporter
from pipeline.repository import Snapshot
from pipeline.sandbox import BuildSpec, Image, Sandbox, pythons_of
from pipeline.schema import Problem
from pipeline.settings import Settings
from pipeline.store import Workspace
from pipeline.task import Environment, Task
from pipeline.validation.building import build_with_corrections, unbuildable_package
from pipeline.validation.environment import EnvironmentPlan, extend_environment, resolve_environment

__all__ = ["Built", "Environments", "reached_files"]

_NO_BASE: Final = frozenset({FailureKind.SANDBOX_UNAVAILABLE, FailureKind.NETWORK})
"""How making the base image of another Python fails where Debian cannot be reached, or only root could do it."""
_TRIES_OF_A_PACKAGE: Final = 2
_UNBUILDABLE: Final = 6
"""A package that cannot be built is tried in another version, then left out; so many steps for one environment."""


@dataclass(frozen=True)
class Built:
    """An environment, or why there is none."""

    image: Image | None
    environment: Environment | None
    problems: tuple[Problem, ...]
    """What was conceded; without an image its last one is the reason."""
    as_of: date | None = None
    """The day of which its packages are; None: today's, or it has none."""


def reached_files(index: RepositoryIndex, entries: Iterable[str]) -> list[str]:
    """The Python files and notebooks that these import or run, themselves included: their imports have to be there."""
    found: dict[str, None] = {}
    waiting = deque(entries)
    while waiting:
        path = waiting.popleft()
        if path not in found:
            found[path] = None
            waiting.extend(sorted({*index.links.imports.get(path, ()), *index.links.runs.get(path, ())}))
    return [path for path in found if path.endswith((".py", ".ipynb"))]


@dataclass(frozen=True)
class Environments:
    """Environments of chains of one snapshot in one sandbox."""

    workspace: Workspace
    settings: Settings
    sandbox: Sandbox
    snapshot: Snapshot
    reporter: Reporter

    def of_task(self, task: Task) -> Image:
        """The task's image again; building it is a look-up, as it was built for the validation."""
        environment = task.environment
        spec = BuildSpec(
            python=environment.python or BuildSpec().python,
            packages=environment.packages,
            system_packages=environment.system_packages,
        )
        return self.sandbox.build(spec, log=self._log(spec), owner=self.workspace.owner, reporter=self.reporter)

    def again(self, task: Task) -> Built:
        """The environment that the task has, as it was built for its rehearsal."""
        return Built(self.of_task(task), task.environment, ())

    def of_files(
        self, sources: Sequence[str], reached: Sequence[str], *, modules: Sequence[str] = (),
        libraries: Collection[str] = (), as_of: date | None = None,
    ) -> Built:  # fmt: skip
        """Resolve and build; what this repository's declarations cannot give is a problem, not the end of the run.

        Args:
            sources: files that are to be run; the nearest declarations count.
            reached: files whose imports count.
            modules: imported by a failed run, declared nowhere.
            libraries: Debian packages that a failed run wanted.
            as_of: packages whose version is not declared are of this day; None: of that of the commit, if possible.
        """
        plan: EnvironmentPlan | None = None
        unbuildable: list[str] = []
        pythons = pythons_of(self.sandbox)
        noted: tuple[Problem, ...] = ()
        while True:
            try:
                plan = resolve_environment(
                    self.snapshot,
                    sources=sources,
                    reached=reached,
                    extra=modules,
                    before=_commit_date(self.snapshot),
                    cache=self.settings.cache_dir,
                    reporter=self.reporter,
                    pythons=pythons,
                    unbuildable=unbuildable,
                    as_of=as_of,
                )
                plan = extend_environment(plan, sorted(libraries))
                plan, image, found = build_with_corrections(plan, self._build, lambda plan: self._log(plan.spec))
            except ExpbenchError as error:
                other = plan.spec.python if plan is not None else pythons[0]
                if error.kind in _NO_BASE and other != pythons[0]:
                    message = f"Python {other} cannot be had here, another one is used instead: {error.cause}"
                    noted = (Problem(component="validate.environment", where="python", message=message),)
                    pythons = tuple(python for python in pythons if python != other)
                    continue
                if error.kind is not FailureKind.ENVIRONMENT_UNBUILDABLE:
                    raise
                name = unbuildable_package(error.cause)
                if name and unbuildable.count(name) < _TRIES_OF_A_PACKAGE and len(unbuildable) < _UNBUILDABLE:
                    unbuildable.append(name)
                    continue
                problem = Problem(component="validate.environment", where=error.object, message=error.cause)
                return Built(None, None, (*(plan.problems if plan else ()), problem))
            return Built(image, self._record(plan, image), (*noted, *plan.problems, *found), plan.as_of)

    def _build(self, plan: EnvironmentPlan) -> Image:
        log = self._log(plan.spec)
        self.workspace.write_json(log.with_name("spec.json"), plan.spec)
        return self.sandbox.build(plan.spec, log=log, owner=self.workspace.owner, reporter=self.reporter)

    def _log(self, spec: BuildSpec) -> Path:
        return self.workspace.root / "environments" / spec.digest[:12] / "build.log"

    def _record(self, plan: EnvironmentPlan, image: Image) -> Environment:
        return Environment(
            sandbox=self.sandbox.name,
            image=image.digest if self.sandbox.name == "docker" else None,
            spec_digest=plan.spec.digest,
            python=plan.spec.python,
            packages=plan.spec.packages,
            system_packages=plan.spec.system_packages,
            declared_in=plan.declared_in,
        )


def _commit_date(snapshot: Snapshot) -> date | None:
    stamp = snapshot.committed_at
    return date.fromisoformat(stamp[:10]) if stamp else None
