"""Read what a witness told of a run.

The files come out of a container in which the code under test could write them too: they are bounded, checked field by
field, and what does not fit is a problem, never an exception.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from pipeline.schema import Problem, Severity
from pipeline.witness.records import Perturbation, ProcessRun, WitnessReport

__all__ = ["read_witness"]

_COMPONENT: Final = "witness.read"
# The witness writes at most 4,000 functions and 256 KiB of text; the largest record seen in tests had 1 MB
_MAX_BYTES: Final = 64 << 20
_MAX_ALL_BYTES: Final = 512 << 20
_MAX_PROCESSES: Final = 2000
_MAX_PROBLEMS: Final = 20


def read_witness(out: Path, *, perturbation: Perturbation, amount: int) -> WitnessReport:
    """The processes of the run whose output directory is `out`, in the order of their numbers.

    Args:
        out: output directory of `Sandbox.run`; the records lie in its `outbox`.
        perturbation: of the run (see `with_witness`).
        amount: of the run.
    """
    processes: list[ProcessRun] = []
    problems: list[Problem] = []
    folder = out / "outbox"
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() and not folder.is_symlink() else []
    records = sorted((name for name in names if name.endswith(".json")), key=_process_number)
    left = _MAX_ALL_BYTES
    for name in records[:_MAX_PROCESSES]:
        try:
            data = _read_bounded(folder / name, min(_MAX_BYTES, left))
            left -= len(data)
            processes.append(_read_process(data))
        except (OSError, ValueError, RecursionError) as error:
            problems.append(_problem(name, f"is not the record of a process: {_shorten(error)}"))
    if len(records) > _MAX_PROCESSES:
        problems.append(_problem("outbox", f"{len(records)} records, of which {_MAX_PROCESSES} were read"))
    strange = [name for name in names if not name.endswith((".json", ".part"))]
    if strange:
        problems.append(_problem(strange[0], f"{len(strange)} files in the outbox are none of the witness"))
    if not processes:
        problems.append(_problem("outbox", "no Python process told anything: nothing is known of what ran"))
    if len(problems) > _MAX_PROBLEMS:
        more = len(problems) - _MAX_PROBLEMS
        problems = [*problems[:_MAX_PROBLEMS], _problem("outbox", f"and {more} more problems")]
    return WitnessReport(perturbation=perturbation, amount=amount, processes=tuple(processes), problems=tuple(problems))


def _process_number(name: str) -> tuple[int, ...]:
    """By number, 9 before 10: where one process follows another, that is the order in every run."""
    return tuple(int(part) for part in name.removesuffix(".json").split("-")[1:] if part.isdecimal() and len(part) < 20)


def _read_bounded(path: Path, limit: int) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as source:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("it is no regular file")
        data = source.read(limit + 1)
    if len(data) > limit:
        raise ValueError(f"it is larger than {limit} bytes")
    return data


def _read_process(data: bytes) -> ProcessRun:
    value: Any = json.loads(data)
    if not isinstance(value, dict):
        raise ValueError("it is no JSON object")
    return ProcessRun.model_validate(_without_surrogates(value))


def _without_surrogates(value: Any) -> Any:
    """Text that can be written as UTF-8: JSON can spell half a character."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    return value


def _shorten(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"[:300]
    return str(error)[:300]


def _problem(where: str, message: str) -> Problem:
    return Problem(component=_COMPONENT, where=where[:200], message=message, severity=Severity.WARNING)
