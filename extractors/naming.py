"""What a table's numbers are called: which labels name the measure, and which the conditions. Decided by structure.

The names of the artefact that holds the numbers count first (one field for all: that is the measure; different fields
for different columns or rows: their labels are). Else labels whose numbers differ in kind (unit, decimals, magnitude)
name measures. Where structure leaves it open, the reviewer is asked; no word is looked at for what it means.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations
from statistics import median
from typing import Final, Literal, NamedTuple

from extractors.claims import normalize
from extractors.prose import join_names
from pipeline.locator.text import tokens
from pipeline.paper import Quantity, Table
from pipeline.task import Condition
from pipeline.validation.numbers import parse_number

__all__ = ["NO_NAME", "UNNAMED", "ClaimedCell", "Naming", "as_key", "is_numeric", "split_unit"]

_UNIT: Final = re.compile(
    r"[\[(]\s*(?P<unit>%|percent|(?:×\s?)?10[−-]\d+\s?\w*|[µμnmk]?s|secs?|seconds|min(?:utes)?|h(?:ours)?|[kMGT]i?B|dB|"
    r"bits?(?:/\w+)?|[kMG]?(?:eV|Hz|W)|[µμnm]?[AVWm](?:/[\w°µε]+)?|nA/\S+|points?|nats|/|×|x|FPS|°C)\s*(?:,[^\])]*)?[\])]"
)
_SIGNS: Final = re.compile(r"[↑↓▲▼†‡§∗]|\(\s*\)|\[\s*\]|\*+$")
_NUMERIC: Final = re.compile(r"(?:[^\W\d_]{1,3}\s?=\s?)?[−–+-]?[\d., ]*\d\s?(?:%|[kKM])?(?:e-?\d+)?")
"""A number, also as the value of a symbol: `n = 400`."""
_PHRASE: Final = re.compile(r"(?:^|[.:;,(])\s*(?P<phrase>[^.:;,()\[\]]{2,60}?)\s*$")
_WORD: Final = re.compile(r"[^\s\[\](),;:/|=]+")
_SAME_DECIMALS: Final = 0.75
"""Share of numbers that print with as many digits: those of one measure do, but for `100` among `97.5`."""
_APART: Final = 10.0
"""Factor between the middles of two columns that do not overlap from which on they measure different things."""

NO_NAME: Final = "value"
"""What a measure is called that neither labels nor artefact name."""
UNNAMED: Final = {"row": "row", "column": "setting"}
"""What a condition is called that neither header nor artefact names."""

Level = tuple[Literal["row", "column"], int]
"""A column of row labels, or a row of column headers, by its index in the grid."""


class ClaimedCell(NamedTuple):
    """A cell of a table whose number is a claim, with what the artefact behind it says of the number."""

    row: int
    column: int
    place: str = ""
    """Where a run holds it; empty without a run."""
    factor: float = 1.0
    field: str = ""
    """What the artefact calls it: its column, its key."""


class Naming:
    """Names the metric and the conditions of the claimed cells of one table.

    Args:
        table: the table.
        cells: those whose numbers are claims.
        keys: label of the paper (see `as_key`) -> name of the artefact's key that holds it, where one does.
        fields: names of all fields of the artefact that the table's lines stand for, claimed or not.
    """

    def __init__(
        self, table: Table, cells: Sequence[ClaimedCell], keys: Mapping[str, str], fields: Collection[str] = ()
    ) -> None:
        self._table, self._cells, self._keys, self._fields = table, cells, keys, frozenset(fields)
        self._quantities = {(cell.row, cell.column): cell.quantity for cell in table.cells}
        self._beside: dict[int, list[tuple[Level, str]]] = {}
        self._above: dict[int, list[tuple[Level, str]]] = {}
        for row, text in _groups_of(table).items():
            self._beside[row] = [(("row", _GROUP), text)]
        for item in sorted(table.cells, key=lambda item: (item.column, item.row)):
            if item.text and item.column < table.stub_columns and item.row >= table.header_rows:
                for row in range(item.row, item.row + item.row_span):
                    self._beside.setdefault(row, []).append((("row", item.column), normalize(item.text)))
        for item in sorted(table.cells, key=lambda item: item.row):
            if item.text and item.row < table.header_rows:
                for column in range(item.column, item.column + item.column_span):
                    self._above.setdefault(column, []).append((("column", item.row), normalize(item.text)))
        self.doubt = ""
        """What the reviewer has to say; empty where structure says it."""
        self.level: Level | None = None
        self.metric = ""
        fields = {cell.field for cell in cells if cell.field}
        if len(fields) == 1:
            self._by_one_field(fields.pop())
        else:
            self.level = self._tied_to_fields(fields) or self._of_a_kind()
        if self.level is None and not self.metric:
            self.metric = _caption_measure(table.caption) or self._ask()
        self._spanners = self._find_spanners()

    # --- levels ---

    def _levels(self) -> list[Level]:
        """Innermost first, columns before rows."""
        columns: list[Level] = [("column", row) for row in reversed(range(self._table.header_rows))]
        rows: list[Level] = [("row", column) for column in reversed(range(self._table.stub_columns))]
        return [*columns, *rows]

    def _labels(self, cell: ClaimedCell) -> list[tuple[Level, str]]:
        """Labels of a cell with their level: rows before columns, the outermost first."""
        return [*self._beside.get(cell.row, ()), *self._above.get(cell.column, ())]

    def _grouped(self, level: Level) -> dict[str, list[ClaimedCell]]:
        """The cells under each label of a level; those that have none there are left out."""
        groups: dict[str, list[ClaimedCell]] = {}
        for cell in self._cells:
            text = dict(self._labels(cell)).get(level)
            if text:
                groups.setdefault(text, []).append(cell)
        return groups

    # --- by the artefact ---

    def _by_one_field(self, field: str) -> None:
        """All numbers are of one field: its name is the measure, as the paper spells it where a label is spelled so."""
        for level in self._levels():
            groups = self._grouped(level)
            # where other columns stand for other fields, a column's header is the measure however its field is called
            of_columns = len(self._fields) > 1 and level[0] == "column" and not any(map(is_numeric, groups))
            if len(groups) == 1 and (of_columns or _plain(next(iter(groups))) == _plain(field)):
                self.level = level
                return
        told = _caption_measure(self._table.caption)
        self.metric = told if set(tokens(told)) & set(tokens(field)) else " ".join(field.replace("_", " ").split())

    def _tied_to_fields(self, fields: set[str]) -> Level | None:
        """The level each of whose labels stands for one field of its own."""
        for level in self._levels():
            groups = self._grouped(level)
            tied = [{cell.field for cell in cells} for cells in groups.values()]
            if fields and len(groups) == len(fields) and all(len(found) == 1 for found in tied):
                if not self._differ(groups, level) and not _have_units(groups):
                    if _caption_measure(self._table.caption):
                        return None  # a table of one measure, of which the program keeps a column for each condition
                    self.doubt = _or_conditions(groups)
                return level
        return None

    # --- by the numbers ---

    def _of_a_kind(self) -> Level | None:
        """The innermost level whose numbers differ in kind by label, or with units; else the one column's header."""
        for level in self._levels():
            groups = self._grouped(level)
            named = len(groups) > 1 and not all(map(is_numeric, groups))
            if named and (_have_units(groups) or self._differ(groups, level)):
                return level
        columns = {cell.column for cell in self._cells}
        if len(columns) == 1:
            for level in self._levels():
                groups = self._grouped(level)
                if level[0] == "column" and groups and not is_numeric(next(iter(groups))):
                    return level
        return None

    def _differ(self, groups: Mapping[str, Sequence[ClaimedCell]], level: Level) -> bool:
        numbers = [[q for c in cells if (q := self._quantities.get((c.row, c.column)))] for cells in groups.values()]
        return any(_differ_in_kind(a, b, sized=level[0] == "column") for a, b in combinations(filter(None, numbers), 2))

    def _ask(self) -> str:
        """No name for the measure: the reviewer gives it."""
        innermost = next((groups for level in self._levels() if (groups := self._grouped(level))), {})
        if shared := _shared_words(innermost):
            self.doubt = f"is {shared!r} what its numbers measure? All labels of its columns say it"
            return shared
        if len(innermost) > 1 and not all(map(is_numeric, innermost)):
            self.doubt = f"what do its numbers measure, and {_or_conditions(innermost)}"
        else:
            self.doubt = "what do its numbers measure? Neither its labels nor its numbers say it"
        return NO_NAME

    # --- the names ---

    def _find_spanners(self) -> dict[int, str]:
        """Row of headers -> the one header over all of them that names it: `Training points` over `200`, `400`, ..."""
        found = {}
        for row in range(1, self._table.header_rows):
            above, own = self._grouped(("column", row - 1)), self._grouped(("column", row))
            spans = len(above) == 1 and len(own) > 1 and sum(map(len, above.values())) == len(self._cells)
            if spans and self.level not in (("column", row - 1), ("column", row)):
                found[row] = next(iter(above))
        return found

    def of(self, cell: ClaimedCell) -> tuple[str, str | None, tuple[Condition, ...]]:
        """Metric, unit (None: not said by labels or caption) and conditions of a claimed cell."""
        metric, unit = self.metric, split_unit(self._table.caption)[1] if self.level is None else None
        pairs: list[tuple[str, str]] = []
        for level, text in self._labels(cell):
            unit = split_unit(text)[1] or unit
            if level == self.level:
                metric = split_unit(text)[0] or text
            if level == self.level or (level[0] == "column" and level[1] + 1 in self._spanners):
                continue
            pairs.append((self._name(level) or self._key_of(level) or UNNAMED[level[0]], text))
        seen: Counter[str] = Counter()
        conditions = []
        for name, text in pairs:
            seen[name] += 1
            conditions.append(Condition(name=name if seen[name] == 1 else f"{name} {seen[name]}", value=text))
        return metric or NO_NAME, unit, tuple(conditions)

    def _key_of(self, level: Level) -> str:
        """The one key of the artefact that holds the labels of a level; of numbers all: any field may hold one."""
        labels = list(self._grouped(level))
        names = [self._keys.get(as_key(label), "") for label in labels]
        found = set(names) if all(map(is_numeric, labels)) else set(filter(None, names))
        return found.pop() if len(found) == 1 else ""

    def _name(self, level: Level) -> str:
        """What the header calls a column of row labels, and one header a row of them; empty where none does."""
        rows = self._table.grid[: self._table.header_rows]
        if level[0] == "column":
            return self._spanners.get(level[1], "")
        if level[1] == _GROUP:
            return "group"
        return normalize(next((r[level[1]] for r in reversed(rows) if level[1] < len(r) and r[level[1]].strip()), ""))


_GROUP: Final = -1
"""Stands for the column of headings between rows."""


def _groups_of(table: Table) -> dict[int, str]:
    """Row -> the heading above it: a row of the body that holds one text and nothing else."""
    found: dict[int, str] = {}
    heading = ""
    for row in range(table.header_rows, len(table.grid)):
        texts = [normalize(text) for text in table.grid[row] if text.strip()]
        if len(texts) == 1 and not any(cell.quantity for cell in table.cells if cell.row == row):
            heading = texts[0]
        elif heading:
            found[row] = heading
    return found


def split_unit(text: str) -> tuple[str, str | None]:
    """A header's name without arrows and footnote marks, and the unit that it gives in brackets."""
    unit = _UNIT.search(text)
    bare = normalize(_SIGNS.sub(" ", _UNIT.sub(" ", text))).strip(" :,")
    found = None if unit is None or unit["unit"] == "/" else unit["unit"]
    if found is None and "%" in bare:
        found, bare = "%", normalize(bare.replace("%", " "))
    return bare, found


def as_key(label: str) -> str:
    """A label as it is compared with the values of a key: `0`, `0.0` and `0.00` are one."""
    text = normalize(label)
    number = parse_number(text)
    return text if number is None else f"{number.value:g}"


def is_numeric(label: str) -> bool:
    """Is a label a number, or a symbol's value?"""
    return _NUMERIC.fullmatch(label.strip()) is not None


def _have_units(labels: Mapping[str, object]) -> bool:
    return len(labels) > 1 and all(_UNIT.search(label) for label in labels)


def _differ_in_kind(one: Sequence[Quantity], other: Sequence[Quantity], *, sized: bool) -> bool:
    """Do two groups of numbers measure different things, by unit, printed digits or (`sized`) magnitude?"""
    units = [{number.unit for number in group} for group in (one, other)]
    if not units[0] & units[1]:
        return True
    digits = [_decimals(group) for group in (one, other)]
    if None not in digits and digits[0] != digits[1]:
        return True
    low, high = sorted(([abs(number.value) for number in group] for group in (one, other)), key=median)
    return sized and max(low) < min(high) and median(high) >= _APART * median(low) > 0


def _decimals(numbers: Sequence[Quantity]) -> int | None:
    """How many digits numbers print behind the point, where most of them print as many."""
    decimals, count = Counter(number.decimals for number in numbers).most_common(1)[0]
    return decimals if count >= _SAME_DECIMALS * len(numbers) else None


def _caption_measure(caption: str) -> str:
    """What stands before the one unit in brackets that a caption gives: `Test accuracy (%) with ...`."""
    units = [unit for unit in _UNIT.finditer(caption) if caption[: unit.start()].endswith(" ")]
    if len(units) != 1 or units[0]["unit"] == "/":
        return ""
    phrase = _PHRASE.search(caption[: units[0].start()])
    return normalize(phrase["phrase"]) if phrase else ""


def _shared_words(labels: Iterable[str]) -> str:
    """What all labels have in common, as the first spells it: `R²` of `R²(xD)`, `R²(xB)` and `Avg R²`; empty of one."""
    words = [_WORD.findall(label) for label in labels]
    if len(words) <= 1:
        return ""
    return " ".join(word for word in words[0] if not is_numeric(word) and all(word in other for other in words[1:]))


def _or_conditions(groups: Mapping[str, object]) -> str:
    names = join_names([repr(text) for text in list(groups)[:4]])
    return f"are {names} measures of their own, or conditions of one measure? Their numbers do not say it"


def _plain(text: str) -> str:
    return "".join(letter for letter in text.casefold() if letter.isalnum())
