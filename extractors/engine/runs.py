"""What was run before anybody read: shown to the reader with the paper, and taken as evidence where it chooses a run.

The numbers of a rehearsed command that stand in the paper's tables are known with their places (`pipeline.match`).
Times are not shown: they differ between machines, and a recorded reading is to be found again.
"""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Sequence
from typing import Final

from extractors.claims import printed_band
from extractors.engine.listing import Listing
from pipeline.match.records import CellMatch, TableMatch
from pipeline.paper import Document
from pipeline.rehearse import Rehearsal
from pipeline.schema import Record
from pipeline.task import NumericClaim, TableEvidence, Usage
from pipeline.text import shorten

__all__ = ["Rehearsed"]

_MOST_RUNS: Final = 60
_FILES: Final = 8
_FIELDS: Final = 12
_HALF: Final = 0.5
"""Share of a task's numbers from which on another run gives the answer away as well."""


class Rehearsed(Record):
    """The rehearsed commands of a repository, and which cells of the paper runs and committed files hold."""

    runs: tuple[Rehearsal, ...] = ()
    matches: tuple[TableMatch, ...] = ()

    def shown(self, document: Document, listing: Listing) -> str:
        """All of it in words, with the ids of the paper.

        Args:
            document: the paper that was matched.
            listing: the same with ids.
        """
        by_run: dict[str, list[TableMatch]] = {}
        for match in self.matches:
            by_run.setdefault(match.source, []).append(match)
        lines = [self._run(number, run, by_run, document, listing) for number, run in enumerate(self._shown_runs, 1)]
        if len(self.runs) > _MOST_RUNS:
            lines.append(f"and {len(self.runs) - _MOST_RUNS} more commands, of which none gave a number of a table")
        lines += [
            f"committed file {source}: holds {_held(match, document, listing)}"
            for source, matches in by_run.items()
            for match in matches
            if match.origin == "committed"
        ]
        return "\n".join(lines) or "Nothing was run."

    @property
    def _shown_runs(self) -> Sequence[Rehearsal]:
        if len(self.runs) <= _MOST_RUNS:
            return self.runs
        giving = {match.source for match in self.matches}
        return sorted(self.runs, key=lambda run: f"run:{run.candidate.key}" not in giving)[:_MOST_RUNS]

    def _run(
        self, number: int, run: Rehearsal, by_run: dict[str, list[TableMatch]], document: Document, listing: Listing
    ) -> str:
        steps = run.usage or (run.candidate.usage,)
        commands = "; ".join(f"`{shlex.join(step.argv)}` in {posixpath.normpath(step.directory)}" for step in steps)
        told = [f"run {number}: {commands} (stated in {run.candidate.where})"]
        if run.failure is not None or not run.ran:
            verb = "failed" if run.ran else "was not run"
            told.append(f"{verb}: {shorten(run.message, 300) or (run.failure.value if run.failure else '')}")
        else:
            told.append("ended well")
        if run.writes:
            more = f" and {len(run.writes) - _FILES} more" if len(run.writes) > _FILES else ""
            told.append(f"wrote {', '.join(sorted(run.writes)[:_FILES])}{more}")
        if run.data is not None:
            told.append("its data was downloaded and is at hand")
        for match in by_run.get(f"run:{run.candidate.key}", ()):
            copied = self._copied(match, run)
            why = f" - but reads them from {', '.join(copied)}, which the repository ships: that computes nothing"
            told.append(f"gives {_held(match, document, listing)}{why if copied else ''}")
        return "\n  ".join(told)

    def behind(self, usage: Sequence[Usage]) -> Rehearsal | None:
        """The rehearsal of just these commands, where one ended well."""
        wanted = _same(usage)
        return next((run for run in self.runs if run.ran and run.failure is None and _same(run.usage) == wanted), None)

    def bound(
        self, claims: Sequence[NumericClaim], run: Rehearsal, document: Document
    ) -> tuple[tuple[NumericClaim, ...], tuple[str, ...]]:
        """The claims with their places in the output of a run, as far as it gave them; and what was left out.

        A claim for which the run has another number is none.
        """
        held, other = self._cells(run, document), self._cells(run, document, missed=True)
        found, left_out = [], []
        for claim in claims:
            cell, differs = held.get(_place(claim)), other.get(_place(claim))
            if cell is not None:
                # what ran gave the number itself: the paper's own deviation says nothing of how far off a run may be
                band = printed_band(claim.value, 10.0**-claim.decimals)
                found.append(claim.evolve(place=cell.place, factor=cell.factor, band=band))
            elif differs is None:
                found.append(claim)
            else:
                where = f"row {differs.row}, column {differs.column}"
                shown = f"{differs.observed * differs.factor:.6g}"
                left_out.append(f"left out: {where} prints {claim.text}, and the run gives {shown}")
        return tuple(found), tuple(left_out)

    def others(
        self, claims: Sequence[NumericClaim], own: Rehearsal | None, document: Document
    ) -> tuple[Rehearsal, ...]:
        """Runs beside a task's own that gave at least half of its numbers: each gives the answer away."""
        wanted = {_place(claim) for claim in claims} - {None}
        return tuple(
            run
            for run in self.runs
            if run is not own
            and run.ran
            and len(wanted & set(self._cells(run, document))) >= max(1, _HALF * len(wanted))
        )

    def _copied(self, match: TableMatch, run: Rehearsal) -> list[str]:
        """Committed files that hold numbers of the table, and that the run read and did not write."""
        shipped = {
            cell.source
            for other in self.matches
            if other.origin == "committed" and other.table == match.table
            for cell in other.cells
        }
        return sorted(shipped & set(run.reads) - set(run.writes))

    def _cells(self, run: Rehearsal, document: Document, *, missed: bool = False) -> dict[object, CellMatch]:
        """Place in the paper -> what the run gave for it; `missed`: where that is another number."""
        source = f"run:{run.candidate.key}"
        found: dict[object, CellMatch] = {}
        for match in self.matches:
            table = document.tables[match.table]
            for cell in () if self._copied(match, run) else match.missed if missed else match.cells:
                if cell.source == source and cell.part == 0:
                    found.setdefault(
                        (table.label, table.place_of(cell.row, cell.column)[0], cell.row, cell.column), cell
                    )
        return found


def _same(usage: Sequence[Usage]) -> list[tuple[tuple[str, ...], str]]:
    return [(step.argv, posixpath.normpath(step.directory)) for step in usage]


def _place(claim: NumericClaim) -> object:
    cell = next((item for item in claim.evidence if isinstance(item, TableEvidence)), None)
    return None if cell is None else (cell.label, cell.page, cell.row, cell.column)


def _held(match: TableMatch, document: Document, listing: Listing) -> str:
    """What a source holds of a table, cell by cell, and what it calls columns and rows."""
    name = listing.name_of(document.tables[match.table])
    cells = [cell for cell in match.cells if cell.part == 0]
    told = f"{len(cells)} cells of {name}: {_ranges(cells)}"
    missed = [cell for cell in match.missed if cell.part == 0]
    if missed:
        told += "; other numbers for " + ", ".join(
            f"r{cell.row}c{cell.column} (prints {cell.text}, here {cell.observed * cell.factor:.4g})"
            for cell in missed[:_FIELDS]
        )
        told += f" and {len(missed) - _FIELDS} more" if len(missed) > _FIELDS else ""
    if match.fields:
        told += "; there called " + ", ".join(f"`{own}`: `{field}`" for own, field in match.fields[:_FIELDS])
    return told


def _ranges(cells: Sequence[CellMatch]) -> str:
    """`r2-7c1-8 r8c1`: cells as blocks of rows that have the same columns."""
    columns: dict[int, list[int]] = {}
    for cell in cells:
        columns.setdefault(cell.row, []).append(cell.column)
    blocks: dict[str, list[int]] = {}
    for row in sorted(columns):
        blocks.setdefault(_runs(sorted(columns[row])), []).append(row)
    return " ".join(f"r{_runs(rows)}c{held}" for held, rows in blocks.items())


def _runs(numbers: Sequence[int]) -> str:
    """`1-3,5` of 1, 2, 3, 5."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ",".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)
