"""Hits of the leak scan that a person accepted, beside the task: who, why, and exactly which finding.

An acceptance names a finding (kind, place, detail), not a place: when the file changes so that something else is found,
the new finding blocks again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import read_record, write_text
from pipeline.schema import StoredRecord
from pipeline.task import AcceptedHit, LeakReport

__all__ = ["FILE_NAME", "accept_hits", "accepted_hits"]

FILE_NAME = "accepted_leaks.json"


class _AcceptedFile(StoredRecord):
    """`accepted_leaks.json`."""

    accepted: tuple[AcceptedHit, ...] = ()


def accepted_hits(directory: Path) -> tuple[AcceptedHit, ...]:
    """What was accepted for the task in this directory.

    Raises:
        ExpbenchError: `RECORD_INVALID`: the file cannot be read.
    """
    path = directory / FILE_NAME
    if not path.is_file():
        return ()
    consequence = "It is not known which leaks a reviewer accepted, so none was"
    return read_record(path, _AcceptedFile, consequence=consequence, next_step="Correct the file or remove it").accepted


def accept_hits(
    directory: Path, report: LeakReport | None, ids: Sequence[str], *, reviewer: str, reason: str
) -> tuple[AcceptedHit, ...]:
    """Accept hits of the last scan.

    Args:
        directory: of the task.
        report: the last scan.
        ids: `LeakHit.id` of each.
        reviewer: name of the person who answers for it.
        reason: why the finding gives nothing away.

    Returns:
        All that are accepted now.

    Raises:
        ExpbenchError: `USAGE`: no name, no reason, or no such hit.
    """
    known = {hit.id: hit for hit in report.hits} if report is not None else {}
    missing = [id_ for id_ in ids if id_ not in known]
    cause = (
        "nobody's name was given" if not reviewer.strip()
        else "no reason was given" if not reason.strip()
        else f"the last leak scan has no hit {', '.join(missing)}" if missing
        else ""
    )  # fmt: skip
    if cause:
        raise ExpbenchError(
            FailureKind.USAGE, "accepting leaks", cause,
            consequence="Nothing was accepted",
            next_step="Name hits of the last scan (" + (", ".join(sorted(known)) or "it has none")
            + "), and who accepts them and why",
        )  # fmt: skip
    before = {item.hit.id: item for item in accepted_hits(directory)}
    new = {id_: AcceptedHit(hit=known[id_], reviewer=reviewer.strip(), reason=reason.strip()) for id_ in ids}
    merged = before | new
    value = _AcceptedFile(accepted=tuple(merged[id_] for id_ in sorted(merged)))
    write_text(directory / FILE_NAME, value.model_dump_json(indent=1) + "\n")
    return value.accepted
