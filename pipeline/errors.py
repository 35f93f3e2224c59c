"""ONE table of failures: what caused it, may it be retried, is it graded, does a score stay valid, which exit code.

Everything that has to decide "try again?", "count it?" or "which exit code?" asks this table; nobody keeps a list of
their own. The exceptions carry four parts - object, cause, consequence, next step - because a message that lacks one of
them sends its reader to the source code.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

__all__ = ["FAILURES", "Cause", "ExpbenchError", "Failure", "FailureKind", "exit_code_table"]


class Cause(StrEnum):
    """Who has to act for the failure to go away."""

    USER = "user"
    AGENT = "agent"
    MODEL = "model"
    INFRASTRUCTURE = "infrastructure"
    US = "us"


class FailureKind(StrEnum):
    """Every way in which a stage, a run or an episode can fail."""

    # user input
    USAGE = "usage"
    PAPER_INVALID = "paper_invalid"
    PAPER_ENCRYPTED = "paper_encrypted"
    PAPER_EMPTY = "paper_empty"
    PAPER_UNREADABLE = "paper_unreadable"
    REPOSITORY_INVALID = "repository_invalid"
    REPOSITORY_EMPTY = "repository_empty"
    REPOSITORY_NO_CODE = "repository_no_code"
    COMMIT_UNKNOWN = "commit_unknown"
    SUBMODULE_UNAVAILABLE = "submodule_unavailable"
    WORKSPACE_CONFLICT = "workspace_conflict"
    WORKSPACE_LOCKED = "workspace_locked"
    RECORD_INVALID = "record_invalid"
    NOTHING_TO_RELEASE = "nothing_to_release"
    # the code under test
    RUN_FAILED = "run_failed"
    RUN_TIMEOUT = "run_timeout"
    RUN_OUT_OF_MEMORY = "run_out_of_memory"
    RUN_DISK_FULL = "run_disk_full"
    RUN_PROCESS_LIMIT = "run_process_limit"
    RUN_OUTPUT_LIMIT = "run_output_limit"
    DATA_UNAVAILABLE = "data_unavailable"
    ENVIRONMENT_UNBUILDABLE = "environment_unbuildable"
    OUTCOME_MISMATCH = "outcome_mismatch"
    LEAK_FOUND = "leak_found"
    ROUND_TRIP_BROKEN = "round_trip_broken"
    # language models
    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    MODEL_TIMEOUT = "model_timeout"
    PROTOCOL_BROKEN = "protocol_broken"
    REQUEST_REJECTED = "request_rejected"
    CONTEXT_TOO_LONG = "context_too_long"
    REFUSAL = "refusal"
    INVALID_OUTPUT = "invalid_output"
    AUTHENTICATION = "authentication"
    QUOTA = "quota"
    BUDGET_EXCEEDED = "budget_exceeded"
    REPLAY_MISS = "replay_miss"
    PROMPT_INVALID = "prompt_invalid"
    # machinery
    SANDBOX_UNAVAILABLE = "sandbox_unavailable"
    SANDBOX_BROKEN = "sandbox_broken"
    GPU_UNAVAILABLE = "gpu_unavailable"
    NETWORK = "network"
    REMOTE_SILENT = "remote_silent"
    DISK_FULL = "disk_full"
    ENGINE_UNAVAILABLE = "engine_unavailable"
    TOOL_MISSING = "tool_missing"
    INTERRUPTED = "interrupted"
    INTERNAL = "internal"


class Failure(NamedTuple):
    """One row of the table."""

    cause: Cause
    retry: bool
    """May the same call succeed if it is simply made again?"""
    graded: bool
    """Does the failure count as a result of the code or agent under test?"""
    score_valid: bool
    """Is a score that was reached beside this failure still meaningful?"""
    exit_code: int


_USER, _AGENT, _MODEL, _INFRA, _US = Cause.USER, Cause.AGENT, Cause.MODEL, Cause.INFRASTRUCTURE, Cause.US

# Exit codes: 0 well; 1 our own defect; 2 usage; 3 paper; 4 repository; 5 workspace or record; 6 nothing came out;
# 7 sandbox, network or disk of this machine; 8 engine or model; 9 budget;
# 130 interrupted (128 + SIGINT, as shells report it).
FAILURES: Final[dict[FailureKind, Failure]] = {
    FailureKind.USAGE: Failure(_USER, False, False, False, 2),
    FailureKind.PAPER_INVALID: Failure(_USER, False, False, False, 3),
    FailureKind.PAPER_ENCRYPTED: Failure(_USER, False, False, False, 3),
    FailureKind.PAPER_EMPTY: Failure(_USER, False, False, False, 3),
    FailureKind.PAPER_UNREADABLE: Failure(_USER, False, False, False, 3),
    FailureKind.REPOSITORY_INVALID: Failure(_USER, False, False, False, 4),
    FailureKind.REPOSITORY_EMPTY: Failure(_USER, False, False, False, 4),
    FailureKind.REPOSITORY_NO_CODE: Failure(_USER, False, False, False, 4),
    FailureKind.COMMIT_UNKNOWN: Failure(_USER, False, False, False, 4),
    FailureKind.SUBMODULE_UNAVAILABLE: Failure(_USER, True, False, False, 4),
    FailureKind.WORKSPACE_CONFLICT: Failure(_USER, False, False, False, 5),
    FailureKind.WORKSPACE_LOCKED: Failure(_USER, True, False, False, 5),
    FailureKind.RECORD_INVALID: Failure(_USER, False, False, False, 5),
    FailureKind.NOTHING_TO_RELEASE: Failure(_USER, False, False, False, 6),
    FailureKind.RUN_FAILED: Failure(_AGENT, False, True, True, 6),
    FailureKind.RUN_TIMEOUT: Failure(_AGENT, False, True, True, 6),
    FailureKind.RUN_OUT_OF_MEMORY: Failure(_AGENT, False, True, True, 6),
    FailureKind.RUN_DISK_FULL: Failure(_AGENT, False, True, True, 6),
    FailureKind.RUN_PROCESS_LIMIT: Failure(_AGENT, False, True, True, 6),
    FailureKind.RUN_OUTPUT_LIMIT: Failure(_AGENT, False, True, True, 6),
    FailureKind.DATA_UNAVAILABLE: Failure(_INFRA, False, False, False, 6),
    FailureKind.ENVIRONMENT_UNBUILDABLE: Failure(_USER, False, False, False, 6),
    FailureKind.OUTCOME_MISMATCH: Failure(_AGENT, False, True, True, 6),
    FailureKind.LEAK_FOUND: Failure(_US, False, False, False, 6),
    FailureKind.ROUND_TRIP_BROKEN: Failure(_US, False, False, False, 6),
    FailureKind.RATE_LIMIT: Failure(_INFRA, True, False, False, 8),
    FailureKind.OVERLOADED: Failure(_INFRA, True, False, False, 8),
    FailureKind.MODEL_TIMEOUT: Failure(_INFRA, True, False, False, 8),
    FailureKind.PROTOCOL_BROKEN: Failure(_INFRA, True, False, False, 8),
    FailureKind.REQUEST_REJECTED: Failure(_USER, False, False, False, 8),
    FailureKind.CONTEXT_TOO_LONG: Failure(_USER, False, False, False, 8),
    FailureKind.REFUSAL: Failure(_MODEL, False, False, False, 8),
    FailureKind.INVALID_OUTPUT: Failure(_MODEL, False, False, False, 8),
    FailureKind.AUTHENTICATION: Failure(_USER, False, False, False, 8),
    FailureKind.QUOTA: Failure(_USER, False, False, False, 8),
    FailureKind.BUDGET_EXCEEDED: Failure(_USER, False, False, False, 9),
    FailureKind.REPLAY_MISS: Failure(_USER, False, False, False, 8),
    FailureKind.PROMPT_INVALID: Failure(_USER, False, False, False, 2),
    FailureKind.SANDBOX_UNAVAILABLE: Failure(_INFRA, False, False, False, 7),
    FailureKind.SANDBOX_BROKEN: Failure(_INFRA, True, False, False, 7),
    FailureKind.GPU_UNAVAILABLE: Failure(_INFRA, False, False, False, 7),
    FailureKind.NETWORK: Failure(_INFRA, True, False, False, 7),
    # an agent elsewhere had its whole time: asking again would take as long
    FailureKind.REMOTE_SILENT: Failure(_INFRA, False, False, False, 7),
    FailureKind.DISK_FULL: Failure(_INFRA, False, False, False, 7),
    FailureKind.ENGINE_UNAVAILABLE: Failure(_USER, False, False, False, 8),
    FailureKind.TOOL_MISSING: Failure(_INFRA, False, False, False, 7),
    FailureKind.INTERRUPTED: Failure(_USER, True, False, False, 130),
    FailureKind.INTERNAL: Failure(_US, False, False, False, 1),
}


class ExpbenchError(Exception):
    """An error that a user can act on.

    Args:
        kind: row of `FAILURES`.
        object_: what it is about (a path, a task id, an image).
        cause: what was found wrong, as observed.
        consequence: what did not happen because of it.
        next_step: what the reader can do now.
    """

    def __init__(self, kind: FailureKind, object_: str, cause: str, *, consequence: str, next_step: str) -> None:
        self.kind = kind
        self.object = object_
        self.cause = cause
        self.consequence = consequence
        self.next_step = next_step
        super().__init__(f"{object_}: {cause}. {consequence}. {next_step}.")

    @property
    def failure(self) -> Failure:
        """The row of the table for this error."""
        return FAILURES[self.kind]

    @property
    def exit_code(self) -> int:
        """The process exit code of this error."""
        return self.failure.exit_code

    def as_dict(self) -> dict[str, str | int]:
        """The machine-readable form that `--json` prints."""
        return {
            "error": self.kind.value,
            "object": self.object,
            "cause": self.cause,
            "consequence": self.consequence,
            "next_step": self.next_step,
            "exit_code": self.exit_code,
        }


def exit_code_table() -> dict[int, list[FailureKind]]:
    """Exit codes with the failures that lead to them, for the documentation and `--help`."""
    table: dict[int, list[FailureKind]] = {}
    for kind, failure in FAILURES.items():
        table.setdefault(failure.exit_code, []).append(kind)
    return dict(sorted(table.items()))
