"""From a repository's declarations, or else its imports, to exact pins that a sandbox installs without resolving again.

Resolution is `uv pip compile` for the sandbox's Python, dated by the commit where that is possible, from wheels only:
building a source archive would run its code on this machine. Packages that exist as source archives only are pinned
without being opened and built inside the sandbox. Every concession is reported.

The Python is the one that the repository asks for where the sandbox has it, otherwise the one for which its pins have
wheels; each such choice is reported, and so is a Python that cannot be had. conda environments are mapped to the index:
there is no conda here, and what has no counterpart is reported.

Non-goals: system packages that nothing declares (`pipeline.validation.diagnosis` names those that a failure misses).
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from packaging.utils import canonicalize_name

from pipeline.progress import Reporter, SilentReporter
from pipeline.repository import Snapshot
from pipeline.sandbox.base import BuildSpec
from pipeline.schema import Problem, Record, Severity
from pipeline.validation.declarations import Declarations, read_declarations
from pipeline.validation.imports_map import Import, distribution_of, provided_by, third_party
from pipeline.validation.pythons import choose_pythons
from pipeline.validation.resolution import PYTHON, Wanted, name_of, resolved

__all__ = ["PYTHON", "EnvironmentPlan", "extend_environment", "resolve_environment"]

_NOTEBOOK_RUNNER: Final = tuple(
    Import(module=module, files=("the notebook's execution",), optional=False) for module in ("nbconvert", "ipykernel")
)
"""What `python -m nbconvert --execute` needs; repositories seldom declare it, since their authors use a browser."""


class EnvironmentPlan(Record):
    """An environment as exact pins, where they come from, and what had to be conceded."""

    spec: BuildSpec
    declared_in: tuple[str, ...]
    """Files of the repository; `imports` where something was taken from the imports of its files."""
    problems: tuple[Problem, ...] = ()
    as_of: datetime.date | None = None
    """The day of which its versions are; None: today's."""


def resolve_environment(
    snapshot: Snapshot,
    *,
    sources: Sequence[str] = (),
    reached: Sequence[str] = (),
    before: datetime.date | None = None,
    cache: Path | None = None,
    reporter: Reporter | None = None,
    extra: Sequence[str] = (),
    pythons: Sequence[str] = (PYTHON,),
    unbuildable: Sequence[str] = (),
    as_of: datetime.date | None = None,
) -> EnvironmentPlan:
    """The environment that a chain of scripts needs.

    Args:
        snapshot: the repository.
        sources: files of the chain; the nearest declarations win.
        reached: files whose imports count; `sources` when empty, all Python files when both are empty.
        before: only distributions uploaded until the end of this day (UTC), where that resolves.
        cache: directory of finished resolutions, by digest of their inputs; None for no cache.
        reporter: progress.
        extra: modules that a run missed; their distributions are added.
        pythons: what the sandbox has, the preferred one first.
        unbuildable: distributions whose declared version could not be built: another version is taken; one that stands
            there twice is left out.
        as_of: packages whose version is not declared are of this day, or nothing resolves; None: as `before` says.

    Raises:
        ExpbenchError: `ENVIRONMENT_UNBUILDABLE` (nothing that runs these files resolves), `NETWORK`, `TOOL_MISSING`.
    """
    listener = reporter or SilentReporter()
    listener.step("validate", "reading the declared environment")
    declared = read_declarations(snapshot, sources)
    files = list(reached or sources) or [file.path for file in snapshot.files if file.path.endswith(".py")]
    imports = third_party(snapshot, [path for path in files if _is_file(snapshot, path)])
    runner = _NOTEBOOK_RUNNER if any(path.endswith(".ipynb") for path in sources) else ()
    wanted = _wanted(declared, [*imports, *runner], extra)
    wanted = _without_versions(wanted, unbuildable, declared)
    chosen = choose_pythons(declared, tuple(pythons))
    _report_layout(snapshot, declared)
    listener.step("validate", f"resolving {len(wanted.all)} packages")
    outcome = resolved(wanted, before, cache, chosen, as_of)
    origin = [*declared.files, *(["imports"] if wanted.from_imports else [])]
    return EnvironmentPlan(
        spec=BuildSpec(
            python=outcome.python,
            packages=_left(outcome.pins, unbuildable, declared),
            system_packages=tuple(sorted(set(declared.system))),
        ),
        declared_in=tuple(origin),
        problems=(*declared.problems, *outcome.problems),
        as_of=outcome.as_of,
    )


def extend_environment(plan: EnvironmentPlan, system_packages: Sequence[str]) -> EnvironmentPlan:
    """The plan with Debian packages added (see `diagnosis.missing_libraries`)."""
    merged = tuple(sorted({*plan.spec.system_packages, *system_packages}))
    return plan.evolve(spec=plan.spec.evolve(system_packages=merged))


def _is_file(snapshot: Snapshot, path: str) -> bool:
    return (snapshot.root / path).is_file()


# --- what is wanted --------------------------------------------------------------------------------------------------


def _wanted(declared: Declarations, imports: Sequence[Import], extra: Sequence[str]) -> Wanted:
    names = {canonicalize_name(item.name) for item in declared.requirements}
    requirements = sorted({str(item) for item in declared.requirements}, key=str.lower)
    added: dict[str, Import] = {}
    needed: list[str] = []
    for found in [*imports, *(Import(module=m, files=("the failed run",), optional=False) for m in extra)]:
        providers = provided_by(found.module)
        if not providers:
            declared.report(found.files[0], f"`{found.module}` is imported and cannot be installed from an index")
            continue
        own = [str(item) for item in declared.requirements if canonicalize_name(item.name) in providers]
        distribution = distribution_of(found.module)
        if own:
            needed += own
        elif distribution:
            added[distribution] = found
            needed.append(distribution)
    for distribution, found in sorted(added.items()):
        if declared.files:
            message = f"`{found.module}` is imported and declared nowhere: `{distribution}` is added"
            declared.report(found.files[0], message, Severity.INFO)
    optional = {canonicalize_name(name) for name, found in added.items() if found.optional}
    guesses = {canonicalize_name(name) for name in added} - names
    everything = sorted({*requirements, *added}, key=str.lower)
    return Wanted(
        tuple(everything),
        tuple(sorted(set(needed), key=str.lower)),
        frozenset(guesses),
        frozenset(optional),
        bool(added),
    )


def _without_versions(wanted: Wanted, unbuildable: Sequence[str], declared: Declarations) -> Wanted:
    """The requirements without version limits where the declared version cannot be built."""
    names = {canonicalize_name(name) for name in unbuildable}

    def loosened(items: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name_of(item) if canonicalize_name(name_of(item)) in names else item for item in items)

    for name in sorted(names):
        declared.report(name, "the declared version cannot be built in the sandbox: another one is used")
    return wanted._replace(all=loosened(wanted.all), needed=loosened(wanted.needed)) if names else wanted


def _left(pins: tuple[str, ...], unbuildable: Sequence[str], declared: Declarations) -> tuple[str, ...]:
    """The pins without what could not be built in any version."""
    twice = {canonicalize_name(name) for name in unbuildable if unbuildable.count(name) > 1}
    for name in sorted(twice):
        declared.report(name, "no version of it can be built in the sandbox: left out")
    return tuple(pin for pin in pins if canonicalize_name(pin.split("==")[0]) not in twice)


def _report_layout(snapshot: Snapshot, declared: Declarations) -> None:
    names = {file.path for file in snapshot.files}
    packaged = sorted(names & {"setup.py", "setup.cfg", "pyproject.toml"})
    if packaged:
        message = "the repository's own package is not installed: its root and src/ are on PYTHONPATH"
        declared.report(packaged[0], message, Severity.INFO)
