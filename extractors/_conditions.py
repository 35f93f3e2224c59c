"""What the parts of a table beside the metric set: conditions, and what each of them is called.

A header names its variable where it does (`Method`); where it does not, other tables of the paper, the prose, a word
that all values share or the caption do. Which part names the metric is decided in `extractors._table_roles`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Final

from extractors._surroundings import Surroundings
from extractors._table_layout import Layout, ValueCell, headers_of, label_at, split_header
from extractors._vocabulary import INDEX_HEADER
from extractors.claims import parse_cell
from pipeline.paper import Table

__all__ = ["OF_AXIS", "Conditions", "label_words"]


class Conditions:
    """Names and values of what a cell's labels and headers set.

    Args:
        table: the table.
        layout: its parts.
        near: what the paper says around it.
        columns: the values of each numeric column.
        metric_columns: the columns that hold results.
        metric_row: the header row that names the metrics, if one does.
        stub_metric: the label column that names the metrics, if one does.
    """

    def __init__(
        self, table: Table, layout: Layout, near: Surroundings, columns: Mapping[int, list[ValueCell]],
        metric_columns: Set[int], metric_row: int | None, stub_metric: int | None,
    ) -> None:  # fmt: skip
        self.table, self.layout, self.near, self.columns = table, layout, near, columns
        self.metric_columns, self.metric_row, self.stub_metric = metric_columns, metric_row, stub_metric

    def of(self, value: ValueCell, skip: set[int]) -> tuple[tuple[str, str], ...]:
        conditions: list[tuple[str, str]] = []
        position = -1
        part = self._part_left_out()
        for name, text in value.labels:
            position += name != "group"
            if name != "group" and position == self.stub_metric:
                continue
            clean = split_header(name)[0]
            if part and _WITH_OR_WITHOUT.fullmatch(text.strip()):
                conditions.append((part, "without" if re.match(r"w/?o|without|no", text.strip(), re.I) else "with"))
            elif text and not INDEX_HEADER.match(clean or "-") and not re.fullmatch(r"[—–-]", text.strip()):
                said = self._group_name() if name == "group" else self._corner_name(clean, position)
                conditions.append((said, text.strip()))
        for i, (row, text) in enumerate(value.heads):
            if i in skip or (self.stub_metric is not None and len(headers_of(self.layout)) == 1):
                continue
            if self._names_the_next(row):
                continue
            conditions.append(self._head_condition(row, text))
        for column, others in self.columns.items():
            head = " ".join(text for _, text in others[0].heads if ":" not in text)
            if column not in self.metric_columns and head and not INDEX_HEADER.match(head):
                line = self.table.grid[value.row]
                text = line[column].strip() if column < len(line) else ""  # also what is no number there: `64-512`
                told = re.search(r"\w", text) and (parse_cell(text) or not re.search(r"\d\.\d|±", text))
                conditions += [(split_header(head)[0], text)] if told else []  # several results in a cell set nothing
        return _distinct(dict.fromkeys(conditions))

    def _corner_name(self, head: str, position: int) -> str:
        """What a label column lists. A corner cell `Tasks` over variants of a method names the columns beside it."""
        if re.fullmatch(r"(?:\w+ )?(?:tasks?|data ?sets?|benchmarks?|metrics?)", head, re.IGNORECASE):
            labels = list(dict.fromkeys(label_at(value, position) for value in self.layout.values))
            head = "method" if self.near.kind(labels) == "method" else head
        return head or self._stub_name(position)

    def _part_left_out(self) -> str | None:
        """The part that rows `w/o` and `w` are without and with, by the caption: `with/without feature selection`."""
        said = re.search(
            r"\bwith(?:\s?/\s?|\sor\s|\sand\s)without\s(?:the\s|our\s|an?\s)?(?P<part>[a-z][\w -]{2,40}?)"
            r"(?=[.,;:(]|$|\s(?:on|in|for|at|by)\s)",
            f"{self.table.caption} {self.near.described}",
        )
        return said["part"].strip() if said else None

    def _stub_name(self, position: int) -> str:
        heads = self.layout.label_heads
        if any(_COMPARED_HEAD.match(head) for i, head in enumerate(heads) if i not in (position, self.stub_metric)):
            return "group"  # an unnamed column beside the one that lists methods puts them into groups
        labels = list(dict.fromkeys(label_at(value, position) for value in self.layout.values))
        told = self.near.kind(labels)
        return told or ("setting" if all(re.search(r"\d", label) for label in labels) else "method")

    def _group_name(self) -> str:
        """What the rows that stand across the table name: data sets, where the prose says so; else just groups."""
        labels = list(
            dict.fromkeys(text for value in self.layout.values for name, text in value.labels if name == "group")
        )
        return "dataset" if self.near.kind(labels) == "dataset" else "group"

    def _rows_are(self) -> str | None:
        """What the label columns list: methods by their header, else by what the prose says of the labels."""
        if any(_COMPARED_HEAD.match(h) for h in self.layout.label_heads):
            return "method"
        plain = [
            i for i, head in enumerate(self.layout.label_heads) if i != self.stub_metric and not split_header(head)[0]
        ]
        return self._stub_name(plain[0]) if plain else None

    def _texts_of_row(self, row: int) -> list[str]:
        columns = [values for column, values in self.columns.items() if column in self.metric_columns]
        return list(dict.fromkeys(t for values in columns for v in values for r, t in v.heads if r == row))

    def _names_the_next(self, row: int) -> bool:
        """Is a header row one spanner over columns that differ below it (`Training points n` over 200, 400, 800)?"""
        rows = sorted({r for values in self.columns.values() for r, _ in values[0].heads})
        later = [r for r in rows if r > row and r < self.table.header_rows + 2]
        below = [c for c in self.metric_columns if any(r in later for r, _ in self.columns[c][0].heads)]
        spans_all = bool(below) and all(any(r == row for r, _ in self.columns[c][0].heads) for c in below)
        return bool(later) and spans_all and len(self._texts_of_row(row)) == 1 and len(self._texts_of_row(later[0])) > 1

    def _head_condition(self, row: int, text: str) -> tuple[str, str]:
        named = re.fullmatch(r"([A-Za-z][\w -]{0,20}?)\s?[:=]\s?(.+)", text)
        if named:
            return named[1].strip().lower() if ":" in text else named[1].strip(), named[2].strip()
        return self._column_axis(row), split_header(text)[0]

    def _column_axis(self, row: int) -> str:
        """A name for what varies over the columns.

        A spanner above, other tables of the paper, a word that all values share, or the caption; `setting` (`condition`
        for an outer row) where none of them tells.
        """
        rows = sorted({r for values in self.columns.values() for r, _ in values[0].heads})
        texts = self._texts_of_row(row)
        name = self._said_above(row, rows, texts) or self._said_by_values(texts)
        if name is not None:
            return name
        told = self.near.kind(texts)
        told = told if told != self._rows_are() else None
        name = _shared_word(texts) or _word_behind(texts, self.near.text) or told or _caption_axis(self.table.caption)
        if name is not None:
            return name
        if self._rows_are() != "method" and all(re.match(r"[A-Z]\w*[A-Z]|[A-Z][a-z]+", text) for text in texts):
            return "method"
        return "condition" if any(r > row for r in rows if r != self.metric_row) else "setting"

    def _said_above(self, row: int, rows: Sequence[int], texts: Sequence[str]) -> str | None:
        """The name that a spanner above the values, or the corner cell over rows of metrics, gives them."""
        for r in rows:
            above_it = self._texts_of_row(r) if r < row else []
            axis = OF_AXIS.match(split_header(above_it[0])[0]) if above_it else None
            if axis and r == self.metric_row:
                return axis[2]
        above = [r for r in rows if r < row and self._names_the_next(r)]
        if above and above[-1] != self.metric_row:
            return split_header(self._texts_of_row(above[-1])[0])[0]
        corner = self.layout.label_heads[self.stub_metric] if self.stub_metric is not None else ""
        if corner and len(headers_of(self.layout)) == len(texts) and not re.match(r"metrics?|measures?", corner, re.I):
            return split_header(corner)[0]
        return None

    def _said_by_values(self, texts: Sequence[str]) -> str | None:
        """The name that the values themselves tell, or the header under which another table lists them."""
        if all(_SPLIT.fullmatch(text) for text in texts):
            return "split"
        counted = _counted(texts)
        if counted is not None:
            return counted
        names = Counter(self.near.known[key] for text in texts if (key := label_words(text)) in self.near.known)
        if names and names.most_common(1)[0][1] * 2 >= len(texts):
            return names.most_common(1)[0][0]
        return None


_WITH_OR_WITHOUT: Final = re.compile(r"w/?o?|with(?:out)?|yes|no", re.IGNORECASE)


def _distinct(conditions: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Conditions of one cell under names that differ: two levels of one table are never the same variable."""
    found: list[tuple[str, str]] = []
    taken: set[str] = set()
    for name, value in conditions:
        names = (name, "setting", "condition", *(f"{name} ({i})" for i in range(2, 20)))
        free = next(n for n in names if n.lower() not in taken)
        taken.add(free.lower())
        found.append((free, value))
    return tuple(found)


def _shared_word(texts: Sequence[str]) -> str | None:
    """`noise`, for `Symmetric noise` and `Asymmetric noise`."""
    if len(texts) < 2 or any(len(text.split()) < 2 for text in texts):
        return None
    lasts = {text.split()[-1].lower() for text in texts}
    word = lasts.pop()
    return word if not lasts and word.isalpha() else None


_SPLIT: Final = re.compile(r"(?:dev|test|train|val|valid|validation|training|development|held-out)(?:[- ]?\w+)?", re.I)


def _counted(texts: Sequence[str]) -> str | None:
    """`number of layers`, for `2-layer` and `3-layer`: what all values count."""
    found = [re.fullmatch(r"\d+[ -]?([a-z]{3,}?)s?", text) for text in texts]
    nouns = {match[1] for match in found if match is not None}
    return f"number of {nouns.pop()}s" if len(nouns) == 1 and all(found) and len(texts) > 1 else None


_NO_NOUN: Final = re.compile(
    r"the|and|for|are|was|were|with|that|this|has|have|can|may|not|its|our|all|one|two|than|then|but|from|into|each"
)


def _word_behind(texts: Sequence[str], prose: str) -> str | None:
    """`noise`, for `Symmetric` and `Asymmetric`, where the paper writes `symmetric noise` and `asymmetric noise`.

    The noun that the prose puts behind each of the values says what they are values of.
    """
    if len(texts) < 2 or any(not re.fullmatch(r"[A-Z][a-z]{3,}|[A-Z]{2,6}", text) for text in texts):
        return None
    behind = [
        Counter(re.findall(rf"\b{text}-([a-z]{{3,}})\b", prose))
        if text.isupper()
        else Counter(re.findall(rf"\b{text.lower()}\s([a-z]{{3,}})\b", prose.lower()))
        for text in texts
    ]
    shared = {word for word in set.intersection(*map(set, behind)) if not _NO_NOUN.fullmatch(word)}
    noun = min(shared, key=lambda word: (-min(counts[word] for counts in behind), word), default=None)
    return re.sub(r"(?<!s)s$", "", noun) if noun else None


def _caption_axis(caption: str) -> str | None:
    """`noise rate`, for a caption that ends in `by noise rate`."""
    match = re.search(
        r"(?:as a function of|varying|by|for each|across|versus|vs\.?)\s+(?:the\s)?"
        r"([a-z][\w-]*(?: [a-z][\w-]*)?)(?= and|[.,;:(]|$| for| on| with)",
        caption,
    )
    if match is None:
        return None
    return re.sub(r"(?<!s)s$", "", match[1])


_COMPARED_HEAD: Final = re.compile(
    r"method|model|approach|variant|algorithm|system|estimator|classifier|baseline|backbone|architecture|agent|task",
    re.IGNORECASE,
)
OF_AXIS: Final = re.compile(r"(.{3,40}?)\s(?:at|by|for|versus|vs\.?|against|with)\s(\S{1,20})$")


def label_words(text: str) -> str:
    """A label as its words alone, in lower case, for comparing."""
    return re.sub(r"\W+", " ", text).strip().lower()
