"""Exact pins for requirements: `uv pip compile` as of a date, from wheels, with bounded and reported concessions.

Building a source archive would run its code on this machine: packages that exist as source archives only are pinned
without being opened, and built inside the sandbox. Finished resolutions are kept by the digest of their inputs.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import subprocess
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from pipeline.digests import digest_of
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import write_text
from pipeline.schema import Problem, Record, Severity
from pipeline.scratch import scratch_directory

__all__ = ["PYTHON", "Resolution", "Wanted", "name_of", "resolved"]

PYTHON: Final = "3.11"
"""The Python of the sandbox's base image (Debian 12)."""
_COMPONENT: Final = "validation.environment"
_TIMEOUT_S: Final = 300
_LATER: Final = ("3.13",)
_DROPS: Final = 12
"""At most this many packages are set aside in one attempt (unknown names, source archives)."""
_YEARS: Final = 3
"""How many years later than the code its packages may be before today's are taken."""
_VERSION: Final = 4
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


class Wanted(NamedTuple):
    """Requirements by what is known about them."""

    all: tuple[str, ...]
    """Declared requirements and those added from imports."""
    needed: tuple[str, ...]
    """Distributions that the reached files import, with the declared versions where there are any."""
    guesses: frozenset[str]
    """Canonical names that nobody declared: they may not exist."""
    optional: frozenset[str]
    """Canonical names whose every import is guarded."""
    from_imports: bool


class Resolution(Record):
    """Pins and what was conceded on the way; stored in the cache."""

    pins: tuple[str, ...]
    problems: tuple[Problem, ...] = ()
    python: str = PYTHON
    as_of: datetime.date | None = None
    """The day of which its versions are; None: today's."""


def resolved(
    wanted: Wanted, before: datetime.date | None, cache: Path | None, pythons: tuple[str, ...],
    as_of: datetime.date | None = None,
) -> Resolution:  # fmt: skip
    """The pins for what is wanted.

    Args:
        wanted: requirements.
        before: only distributions uploaded until the end of this day (UTC), where that resolves.
        cache: directory of finished resolutions; None for no cache.
        pythons: to try, best first.
        as_of: what is declared without a version is of this day, or nothing resolves; None: as `before` says.

    Raises:
        ExpbenchError: `ENVIRONMENT_UNBUILDABLE` (nothing resolves), `NETWORK`, `TOOL_MISSING`.
    """
    guesses, optional = sorted(wanted.guesses), sorted(wanted.optional)
    key = digest_of([_VERSION, list(pythons), wanted.all, wanted.needed, guesses, optional, str(before), str(as_of)])
    if cache is None:
        return _resolve(wanted, before, pythons, as_of)
    path = cache / "resolutions" / f"{key}.json"
    if path.is_file():
        return Resolution.model_validate_json(path.read_text(encoding="utf-8"))
    found = _resolve(wanted, before, pythons, as_of)
    write_text(path, json.dumps(found.model_dump(mode="json"), indent=1, sort_keys=True) + "\n")
    return found


def _resolve(
    wanted: Wanted, before: datetime.date | None, pythons: tuple[str, ...], as_of: datetime.date | None
) -> Resolution:
    """Try the whole declaration, then what is needed, then without version limits; each dated first.

    What is declared is tried with every Python before anything is conceded: old pins have wheels for old Pythons only.
    """
    python = pythons[0]
    if not wanted.all:
        return Resolution(pins=(), python=python)
    dated: Resolution | str | None = None
    if as_of is not None:
        dated = _earlier(wanted, before, pythons, as_of)
    elif before is not None:
        dated = _dated(wanted, before, pythons)
    if isinstance(dated, Resolution):
        return dated
    refusal = dated or ""
    loose = tuple(sorted({name_of(item) for item in wanted.needed}, key=str.lower))
    plans = [
        (wanted.all, ""),
        (
            wanted.needed,
            "the declared packages do not resolve together: only those that the files import are installed",
        ),
        (loose, "the declared versions do not resolve: other versions of the imported packages are installed"),
    ]
    for requirements, concession in plans if as_of is None else ():
        if concession and not requirements:
            continue
        for date in [before, None] if before and concession else [None]:
            attempt = _attempt(requirements, wanted, date, python)
            if isinstance(attempt, str):
                refusal = refusal or attempt
                continue
            notes = [concession] if concession else []
            if before and date is None:
                notes.append(f"nothing resolves as of {before}: today's versions are used")
            problems = [_problem("packages", f"{note} ({_brief(refusal)})") for note in notes]
            return Resolution(pins=attempt.pins, problems=(*problems, *attempt.problems), python=python, as_of=date)
    if not wanted.needed and as_of is None:
        note = "the declared packages do not resolve, and the files import none: nothing is installed"
        problem = _problem("packages", f"{note} ({_brief(refusal)})")
        return Resolution(pins=(), problems=(problem,), python=python)
    raise ExpbenchError(
        FailureKind.ENVIRONMENT_UNBUILDABLE,
        "the repository's packages",
        f"they cannot be resolved for Python {python}: {_brief(refusal)}",
        consequence="Its code was not run",
        next_step="Check the repository's declarations; a package that is not on the index cannot be installed",
    )


def _earlier(
    wanted: Wanted, before: datetime.date | None, pythons: tuple[str, ...], as_of: datetime.date
) -> Resolution | str:
    """All that is wanted as of an earlier day, for the first Python that has wheels of it; else a refusal.

    A package whose version is declared is as its authors say: the day is for those of which they say nothing. Seen: a
    declared numpy of 2023, and code that runs with the pandas of 2022 only, which is declared nowhere.
    """
    declared = [name_of(item) for item in wanted.all if Requirement(item).specifier]
    attempt: Resolution | str = ""
    # a later Python has no wheels of earlier packages: it would build their archives
    for python in (item for item in pythons if Version(item) <= Version(pythons[0])):
        attempt = _attempt(wanted.all, wanted, as_of, python, declared, before)
        if isinstance(attempt, Resolution):
            problem = _problem(
                "packages", f"where no versions are declared, those of {as_of} are used (Python {python})"
            )
            return attempt.evolve(problems=(problem, *attempt.problems), python=python, as_of=as_of)
    return attempt


def _dated(wanted: Wanted, before: datetime.date, pythons: tuple[str, ...]) -> Resolution | None:
    """All that is wanted as of a date, for the first Python that has wheels of it; else as of the nearest later year.

    Seen: code of July 2018, of which no Python that is still served has wheels; today's imbalanced-learn has lost the
    function that it calls, that of 2020 has it.
    """
    python = pythons[0]
    for years in range(_YEARS + 1):
        date = before + datetime.timedelta(days=365 * years)
        if years and date >= datetime.date.today():
            return None
        refusals = ""
        for other in pythons:
            attempt = _attempt(wanted.all, wanted, date, other)
            if isinstance(attempt, str):
                refusals += attempt
                continue
            note = f"what is declared resolves as of {date} for Python {other}, not for {python}: {other} is used"
            if years:
                note = f"nothing resolves as of {before}: the versions of {date} for Python {other} are used"
            problem = _problem("packages", note).evolve(severity=Severity.WARNING if years else Severity.INFO)
            told = () if not years and other == python else (problem,)
            return Resolution(pins=attempt.pins, problems=(*told, *attempt.problems), python=other, as_of=date)
        if "wheels" not in refusals:
            return None  # its versions contradict each other, whenever
    return None


def name_of(requirement: str) -> str:
    """The distribution that a requirement names."""
    return Requirement(requirement).name


def _problem(where: str, message: str) -> Problem:
    return Problem(component=_COMPONENT, where=where, message=message)


def _brief(message: str) -> str:
    lines = [line.strip(" ×╰─▶│") for line in message.splitlines()]
    text = " ".join(line for line in lines if line and not line.startswith("hint"))
    text = re.sub(r"^.*?(?=[Bb]ecause )", "", text, count=1)
    return text[:300]


def _attempt(
    requirements: Sequence[str], wanted: Wanted, date: datetime.date | None, python: str,
    apart_from: Collection[str] = (), theirs: datetime.date | None = None,
) -> Resolution | str:  # fmt: skip
    """Pins for these requirements, or the resolver's refusal.

    Names that are not on the index leave the set when nobody declared them; source archives are pinned apart. The date
    holds for all packages `apart_from` some, of which another holds, or none.
    """
    left = list(requirements)
    dates = _dates(date, apart_from, theirs)
    sources: list[str] = []
    apart: list[str] = []
    problems: list[Problem] = []
    for _ in range(_DROPS):
        code, out, error = _uv(left, dates, wheels=True, python=python, apart=apart)
        if code == 0:
            pins = set(_pins(out))
            if sources:
                code, out, error = _uv(sources, dates, wheels=False, python=python)
                if code:
                    return error
                pins |= set(_pins(out))
            return Resolution(pins=tuple(sorted(pins, key=str.lower)), problems=tuple(problems))
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
        members = [item for item in left if canonicalize_name(name_of(item)) == culprit]
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
    return any(_uv(requirements, (), wheels=True, python=other)[0] == 0 for other in _LATER if other != python)


def _dates(date: datetime.date | None, apart_from: Collection[str], theirs: datetime.date | None) -> list[str]:
    """Options for: nothing that was uploaded later, of some packages nothing later than on another date."""
    if date is None:
        return []

    def end(day: datetime.date) -> str:
        # the whole day in UTC: a bare date would be read in the machine's time zone
        return f"{day + datetime.timedelta(days=1)}T00:00:00Z"

    options = ["--exclude-newer", end(date)]
    for name in apart_from:
        options += ["--exclude-newer-package", f"{name}={end(theirs or datetime.date.today())}"]
    return options


def _uv(
    requirements: Sequence[str],
    dates: Sequence[str],
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
    command += dates
    with scratch_directory() as directory:
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
