"""What the supervisor's records of ended commands mean: which failure each one is, and what to say about it.

Non-goals: moving bytes (`_session.py`), and what follows from a failure (`pipeline.errors`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.errors import FailureKind
from pipeline.sandbox._commands import shown
from pipeline.sandbox.base import CommandResult, Limits, RunSpec
from pipeline.schema import Problem, Severity

__all__ = ["command_result", "failure_message", "problems_of"]

_DISK_WORDS = (b"[Errno 28]", b"No space left on device", b"[Errno 27]", b"File too large")
_MEMORY_WORDS = (b"MemoryError", b"[Errno 12]", b"Cannot allocate memory", b"std::bad_alloc", b"Unable to allocate")
_PROCESS_WORDS = (b"can't start new thread", b"Resource temporarily unavailable")


def command_result(record: Mapping[str, Any], errors: bytes) -> CommandResult:
    """The result of one command.

    Args:
        record: the supervisor's, of a command that ended.
        errors: the end of what it wrote to stderr.
    """
    return CommandResult(
        exit_code=record["exit_code"],
        failure=_failure(record, errors),
        stdout_bytes=record["stdout_bytes"],
        stderr_bytes=record["stderr_bytes"],
        truncated=record["truncated"],
        duration_s=record["duration_s"],
    )


def _failure(record: Mapping[str, Any], errors: bytes) -> FailureKind | None:
    if record["limit"]:
        return FailureKind(record["limit"])
    if record["exit_code"] == 0:
        return None
    # A file that is made to size in one call fails without ever filling the disk, one that hits the process
    # sandbox's limit of file size likewise, and so does memory that is refused: only the message tells.
    if any(words in errors for words in _DISK_WORDS):
        return FailureKind.RUN_DISK_FULL
    if any(words in errors for words in _MEMORY_WORDS):
        return FailureKind.RUN_OUT_OF_MEMORY
    if record["ungated"] and any(words in errors for words in _PROCESS_WORDS):
        return FailureKind.RUN_PROCESS_LIMIT
    return FailureKind.RUN_FAILED


def failure_message(spec: RunSpec, index: int, result: CommandResult, *, why: str, errors: bytes, ended_by: str) -> str:
    """One line about a command that failed.

    Args:
        spec: of the run.
        index: of the command.
        result: its result.
        why: it could not be started; empty: it was.
        errors: the end of what it wrote to stderr; its last line is quoted.
        ended_by: what ended it from outside; empty: nothing did.
    """
    text = f"command {index + 1} of {len(spec.commands)} ({shown(spec.commands[index])})"
    limits: Limits = spec.limits
    lines = errors.decode("utf-8", "replace").strip().splitlines()
    last = f": {lines[-1][:300]}" if lines else ""
    failed = f"{text} cannot be started: {why}" if why else f"{text} exited with {result.exit_code}{last}"
    return {
        FailureKind.RUN_FAILED: failed,
        FailureKind.RUN_TIMEOUT: f"{text} was ended at the wall limit of {limits.wall_s:g} s",
        FailureKind.RUN_OUT_OF_MEMORY: f"{text} went over the memory limit of {limits.memory_mb} MB",
        FailureKind.RUN_DISK_FULL: f"{text} filled the disk limit of {limits.disk_mb} MB",
        FailureKind.RUN_PROCESS_LIMIT: f"{text} hit the limit of {limits.pids} processes",
        FailureKind.RUN_OUTPUT_LIMIT: f"{text} printed more than {limits.output_mb} MB",
        FailureKind.INTERRUPTED: f"{text} was ended from outside: {ended_by}",
    }.get(result.failure or FailureKind.RUN_FAILED, text)


def problems_of(records: Sequence[Mapping[str, Any]]) -> tuple[Problem, ...]:
    """What the records say beside results: processes that would not end, a process limit that was only polled."""
    found = []
    if any(not record["all_ended"] for record in records):
        message = "processes of the run did not end when they were killed"
        found.append(Problem(component="sandbox", where="run", message=message, severity=Severity.ERROR))
    ungated = next((record["ungated"] for record in records if record["ungated"]), "")
    if ungated:
        message = f"the process limit was polled, a short excess could be missed ({ungated})"
        found.append(Problem(component="sandbox", where="run", message=message))
    return tuple(found)
