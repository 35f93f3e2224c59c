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
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from pipeline.digests import digest_of
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import write_text
from pipeline.progress import Reporter, SilentReporter
from pipeline.repository import Snapshot
from pipeline.sandbox.base import BuildSpec
from pipeline.schema import Problem, Record, Severity
from pipeline.validation.declarations import Declarations, read_declarations
from pipeline.validation.imports_map import Import, distribution_of, provided_by, third_party
from pipeline.validation.pythons import choose_pythons

__all__ = ["PYTHON", "EnvironmentPlan", "extend_environment", "resolve_environment"]

PYTHON: Final = "3.11"
"""The Python of the sandbox's base image (Debian 12)."""
_COMPONENT: Final = "validation.environment"
_TIMEOUT_S: Final = 300
_LATER: Final = ("3.13",)
_DROPS: Final = 12
"""At most this many packages are set aside in one attempt (unknown names, source archives)."""
_VERSION: Final = 2
"""Raised when the rules below change, so that cached resolutions are not reused."""
_UNKNOWN = re.compile(
    r"[Bb]ecause (?:there are no versions of )?([\w.-]+) was not found in the "
    r"(?:package registry|provided package locations)"
)
_SOURCE_ONLY = re.compile(
    r"all versions of ([\w.-]+) have no usable wheels|only ([\w.-]+)==\S+ is available and \S+ has no usable wheels|"
    r"([\w.-]+)==\S+ has no usable wheels"
)
_OFFLINE = re.compile(
    r"error sending request|dns error|Failed to fetch|tls handshake|Connection refused|timed out", re.IGNORECASE
)

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
    outcome = _cached(wanted, before, cache, chosen)
    origin = [*declared.files, *(["imports"] if wanted.from_imports else [])]
    return EnvironmentPlan(
        spec=BuildSpec(
            python=outcome.python,
            packages=_left(outcome.pins, unbuildable, declared),
            system_packages=tuple(sorted(set(declared.system))),
        ),
        declared_in=tuple(origin),
        problems=(*declared.problems, *outcome.problems),
    )


def extend_environment(plan: EnvironmentPlan, system_packages: Sequence[str]) -> EnvironmentPlan:
    """The plan with Debian packages added (see `diagnosis.missing_libraries`)."""
    merged = tuple(sorted({*plan.spec.system_packages, *system_packages}))
    return plan.evolve(spec=plan.spec.evolve(system_packages=merged))


def _is_file(snapshot: Snapshot, path: str) -> bool:
    return (snapshot.root / path).is_file()


# --- what is wanted --------------------------------------------------------------------------------------------------


class _Wanted(NamedTuple):
    all: tuple[str, ...]
    """Declared requirements and those added from imports."""
    needed: tuple[str, ...]
    """Distributions that the reached files import, with the declared versions where there are any."""
    guesses: frozenset[str]
    """Canonical names that nobody declared: they may not exist."""
    optional: frozenset[str]
    """Canonical names whose every import is guarded."""
    from_imports: bool


def _wanted(declared: Declarations, imports: Sequence[Import], extra: Sequence[str]) -> _Wanted:
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
    return _Wanted(
        tuple(everything),
        tuple(sorted(set(needed), key=str.lower)),
        frozenset(guesses),
        frozenset(optional),
        bool(added),
    )


def _without_versions(wanted: _Wanted, unbuildable: Sequence[str], declared: Declarations) -> _Wanted:
    """The requirements without version limits where the declared version cannot be built."""
    names = {canonicalize_name(name) for name in unbuildable}

    def loosened(items: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(_name(item) if canonicalize_name(_name(item)) in names else item for item in items)

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


# --- resolution ------------------------------------------------------------------------------------------------------


class _Resolution(Record):
    """Pins and what was conceded on the way; stored in the cache."""

    pins: tuple[str, ...]
    problems: tuple[Problem, ...] = ()
    python: str = PYTHON


def _cached(wanted: _Wanted, before: datetime.date | None, cache: Path | None, pythons: tuple[str, ...]) -> _Resolution:
    if cache is None:
        return _resolve(wanted, before, pythons)
    key = digest_of(
        [
            _VERSION,
            list(pythons),
            wanted.all,
            wanted.needed,
            sorted(wanted.guesses),
            sorted(wanted.optional),
            str(before),
        ]
    )
    path = cache / "resolutions" / f"{key}.json"
    if path.is_file():
        return _Resolution.model_validate_json(path.read_text(encoding="utf-8"))
    found = _resolve(wanted, before, pythons)
    write_text(path, json.dumps(found.model_dump(mode="json"), indent=1, sort_keys=True) + "\n")
    return found


def _resolve(wanted: _Wanted, before: datetime.date | None, pythons: tuple[str, ...]) -> _Resolution:
    """Try the whole declaration, then what is needed, then without version limits; each dated first.

    What is declared is tried with every Python before anything is conceded: old pins have wheels for old Pythons only.
    """
    python = pythons[0]
    if not wanted.all:
        return _Resolution(pins=(), python=python)
    for other in pythons[1:] if before else ():
        if isinstance(_attempt(wanted.all, wanted, before, python), _Resolution):
            break
        attempt = _attempt(wanted.all, wanted, before, other)
        if isinstance(attempt, _Resolution):
            note = f"what is declared resolves as of {before} for Python {other}, not for {python}: {other} is used"
            problem = _problem("packages", note).evolve(severity=Severity.INFO)
            return _Resolution(pins=attempt.pins, problems=(problem, *attempt.problems), python=other)
    loose = tuple(sorted({_name(item) for item in wanted.needed}, key=str.lower))
    plans = [
        (wanted.all, ""),
        (
            wanted.needed,
            "the declared packages do not resolve together: only those that the files import are installed",
        ),
        (loose, "the declared versions do not resolve: other versions of the imported packages are installed"),
    ]
    refusal = ""
    for requirements, concession in plans:
        if concession and not requirements:
            continue
        for date in [before, None] if before else [None]:
            attempt = _attempt(requirements, wanted, date, python)
            if isinstance(attempt, str):
                refusal = refusal or attempt
                continue
            notes = [concession] if concession else []
            if before and date is None:
                notes.append(f"nothing resolves as of {before}: today's versions are used")
            problems = [_problem("packages", f"{note} ({_brief(refusal)})") for note in notes]
            return _Resolution(pins=attempt.pins, problems=(*problems, *attempt.problems), python=python)
    if not wanted.needed:
        note = "the declared packages do not resolve, and the files import none: nothing is installed"
        problem = _problem("packages", f"{note} ({_brief(refusal)})")
        return _Resolution(pins=(), problems=(problem,), python=python)
    raise ExpbenchError(
        FailureKind.ENVIRONMENT_UNBUILDABLE,
        "the repository's packages",
        f"they cannot be resolved for Python {python}: {_brief(refusal)}",
        consequence="Its code was not run",
        next_step="Check the repository's declarations; a package that is not on the index cannot be installed",
    )


def _name(requirement: str) -> str:
    return Requirement(requirement).name


def _problem(where: str, message: str) -> Problem:
    return Problem(component=_COMPONENT, where=where, message=message)


def _brief(message: str) -> str:
    lines = [line.strip(" ×╰─▶│") for line in message.splitlines()]
    text = " ".join(line for line in lines if line and not line.startswith("hint"))
    text = re.sub(r"^.*?(?=[Bb]ecause )", "", text, count=1)
    return text[:300]


def _attempt(
    requirements: Sequence[str], wanted: _Wanted, date: datetime.date | None, python: str
) -> _Resolution | str:
    """Pins for these requirements, or the resolver's refusal.

    Names that are not on the index leave the set when nobody declared them; source archives are pinned apart.
    """
    left = list(requirements)
    sources: list[str] = []
    apart: list[str] = []
    problems: list[Problem] = []
    for _ in range(_DROPS):
        code, out, error = _uv(left, date, wheels=True, python=python, apart=apart)
        if code == 0:
            pins = set(_pins(out))
            if sources:
                code, out, error = _uv(sources, date, wheels=False, python=python)
                if code:
                    return error
                pins |= set(_pins(out))
            return _Resolution(pins=tuple(sorted(pins, key=str.lower)), problems=tuple(problems))
        if _OFFLINE.search(error):
            raise ExpbenchError(
                FailureKind.NETWORK,
                "package index",
                f"could not be reached: {_brief(error)}",
                consequence="The repository's packages could not be resolved",
                next_step="Check the connection (or the index configured for uv) and run again with --resume",
            )
        unknown, source = _UNKNOWN.search(error), _SOURCE_ONLY.search(error)
        culprit = canonicalize_name(next(filter(None, (unknown or source).groups()))) if unknown or source else ""  # type: ignore[union-attr]
        members = [item for item in left if canonicalize_name(_name(item)) == culprit]
        if not members and source and not unknown and culprit and culprit not in apart:
            # a dependency of a dependency: taken out of the resolution and pinned apart as well
            apart.append(culprit)
            sources.append(culprit)
            note = "is needed by a package and exists as a source archive only: built in the sandbox"
            problems.append(_problem(culprit, note))
            continue
        if not members or (source and not unknown and source[3] and _for_another_python(members, python)):
            return error
        left = [item for item in left if item not in members]
        if source and not unknown:
            sources += members
            problems.append(
                _problem(
                    culprit, "exists as a source archive only: built in the sandbox, its own dependencies are unknown"
                )
            )
        elif culprit in wanted.guesses:
            how = "optional there" if culprit in wanted.optional else "imported, declared nowhere"
            problems.append(_problem(culprit, f"is not on the package index ({how}): left out"))
        else:
            problems.append(_problem(culprit, "is declared and not on the package index: left out"))
    return f"more than {_DROPS} packages cannot be installed"


def _pins(output: str) -> list[str]:
    lines = (line.split("#")[0].split(";")[0].strip() for line in output.splitlines())
    return [f"{canonicalize_name(line.split('==')[0])}=={line.split('==')[1]}" for line in lines if "==" in line]


def _for_another_python(requirements: Sequence[str], python: str) -> bool:
    """Are there wheels of these pins, but for a later Python? Then building their archive here would fail as well.

    The resolver says "has no usable wheels" of both cases.
    """
    return any(_uv(requirements, None, wheels=True, python=other)[0] == 0 for other in _LATER if other != python)


def _uv(
    requirements: Sequence[str],
    date: datetime.date | None,
    *,
    wheels: bool,
    python: str = PYTHON,
    apart: Sequence[str] = (),
) -> tuple[int, str, str]:
    """Exit code, output, messages of `uv pip compile`. Without `wheels` no archive is opened, names are only pinned.

    Packages that stand `apart` are taken to be there already.
    """
    command = [
        _uv_binary(), "pip", "compile", "-", "--python", sys.executable, "--python-version", python, "--quiet",
        "--no-header", "--no-annotate", "--no-progress", "--color", "never",
    ]  # fmt: skip
    command += ["--only-binary", ":all:"] if wheels else ["--no-deps"]
    if date is not None:
        # the whole day in UTC: a bare date would be read in the machine's time zone
        command += ["--exclude-newer", f"{date + datetime.timedelta(days=1)}T00:00:00Z"]
    with tempfile.TemporaryDirectory(prefix="expbench-resolve-") as directory:
        if apart:
            overrides = Path(directory) / "overrides.txt"
            overrides.write_text("".join(f"{name} ; python_version < '0'\n" for name in apart), encoding="utf-8")
            command += ["--override", str(overrides)]
        # an otherwise empty directory: no uv.toml or pyproject.toml of anybody takes part
        done = subprocess.run(
            command, input="\n".join(requirements), capture_output=True, text=True, cwd=directory, check=False,
            timeout=_TIMEOUT_S, env={**os.environ, "UV_PYTHON_DOWNLOADS": "never"},
        )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def _uv_binary() -> str:
    import uv

    try:
        return str(uv.find_uv_bin())
    except FileNotFoundError as error:
        raise ExpbenchError(
            FailureKind.TOOL_MISSING,
            "uv",
            "its program was not found beside its Python package",
            consequence="Packages of repositories cannot be resolved",
            next_step="Install expbench again (`pip install --force-reinstall uv`)",
        ) from error
