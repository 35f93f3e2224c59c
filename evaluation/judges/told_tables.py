"""The numbers of a text's Markdown tables, each with what it is a number of.

Non-goal: sentences (`propositions`).
"""

from __future__ import annotations

import re
from dataclasses import replace

from evaluation.judges.lexicon import content
from evaluation.judges.propositions import TABLE_ROW, Proposition
from evaluation.judges.quantities import quantities_in

__all__ = ["read_tables"]


def read_tables(text: str) -> list[Proposition]:
    """The numbers of a text's Markdown tables, each with the words of its row's labels and its column's header."""
    found: list[Proposition] = []
    header: list[str] = []
    for line in text.splitlines():
        if not TABLE_ROW.match(line):
            header = []
            continue
        cells = [re.sub(r"[*`]", "", cell).strip() for cell in line.strip().strip("|").split("|")]
        if all(re.fullmatch(r":?-+:?", cell) for cell in cells):
            continue
        if not header:
            header = cells
            continue
        found += _cells(header, cells, line)
    return found


def _cells(header: list[str], cells: list[str], line: str) -> list[Proposition]:
    numbers = [quantities_in(cell) for cell in cells]
    labels = [cell for cell, read in zip(cells, numbers, strict=True) if not read]
    if not content(" ".join(labels)):  # a row that is named by a number cannot be told from what is measured
        return []
    found = []
    for index, read in enumerate(numbers):
        if len(read) == 1 and index < len(header):
            words_ = content(" ".join([*labels, header[index]]))
            found.append(
                Proposition(
                    quote=line.strip()[:200], topic=words_, quantities=(replace(read[0], near=words_),), cell=True
                )
            )
    return found
