"""What a rehearsal tells of one candidate command."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from pipeline.data.records import DataRecord
from pipeline.errors import FailureKind
from pipeline.sandbox.base import RunResult
from pipeline.schema import Problem, StoredRecord
from pipeline.survey import Candidate
from pipeline.task import Environment, Usage
from pipeline.witness.records import FunctionRun

__all__ = ["Rehearsal"]


class Rehearsal(StoredRecord):
    """One candidate command, and how its run went."""

    SCHEMA_VERSION: ClassVar[int] = 1

    candidate: Candidate
    usage: tuple[Usage, ...] = ()
    """The commands as they ran: the candidate's, put right where its directory, a folder or an earlier step was
    missing. A task that is drafted from this rehearsal takes these."""
    repairs: tuple[str, ...] = ()
    """In words, what was put right."""
    failure: FailureKind | None = None
    """None when it ended well. What a run printed and wrote before it failed is kept all the same."""
    blocked: bool = False
    """It failed for want of something that is not the code's: data, a network, a module, a limit, arguments."""
    message: str = ""
    """Why it failed, or was not run, in words."""
    ran: bool = False
    """False: not run at all (no environment, or the budget was used up before its turn)."""
    duration_s: float = 0.0
    """Of the last run alone."""
    directory: Path | None = None
    """`<n>.stdout`, `<n>.stderr`, `files/`, `outbox/` of the last run; None when it did not run."""
    result: RunResult | None = None
    witnessed: bool = False
    """Was a witness beside it? Without one, what follows is not known."""
    functions: tuple[FunctionRun, ...] = ()
    """Functions of the repository that ran, with the settings they were called with."""
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    """Files opened, relative to the repository where below it."""
    seeds: tuple[str, ...] = ()
    mapped: tuple[tuple[str, str], ...] = ()
    """(absolute path that the code names, file of the repository that was there instead)."""
    data: DataRecord | None = None
    """What it downloads: fetched once, and answered from there in the run."""
    image: str = ""
    """Digest of the environment's image."""
    environment: Environment | None = None
    problems: tuple[Problem, ...] = ()
