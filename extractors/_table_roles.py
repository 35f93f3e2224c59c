"""Which part of a table's headers and labels names the metric, and what the other parts are called.

Works on the layout (`extractors._table_layout`); whether the table holds results at all is decided before, in
`extractors.result_tables`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from extractors._table_layout import Layout, ValueCell, split_header
from extractors._vocabulary import CONDITION_HEADER, INDEX_HEADER, direction_of, find_metric, is_metric_header
from pipeline.paper import Quantity, Table

__all__ = ["Axis", "Metric", "Refusal", "ResultCell", "Roles", "headers_of", "label_words"]


class Metric(NamedTuple):
    """What a column (or row) measures. `direction`: +1 larger is better, -1 smaller is better, 0 not said."""

    name: str
    unit: str | None
    direction: int


class ResultCell(NamedTuple):
    """One reported number with its metric and the conditions it holds under."""

    row: int
    column: int
    text: str
    quantity: Quantity
    metric: Metric
    conditions: tuple[tuple[str, str], ...]
    bold: bool


class Axis(NamedTuple):
    """A condition and the values it takes in the table. `kind`: method, dataset, number or setting."""

    name: str
    values: tuple[str, ...]
    kind: str


class Refusal(NamedTuple):
    """Why a table gives no task. `kind`: empty, statistics, settings, no_metric or copied."""

    kind: str
    reason: str


def headers_of(layout: Layout) -> list[str]:
    """The header texts above a table's values, each once, in their order."""
    return list(dict.fromkeys(text for value in layout.values for _, text in value.heads))


class Roles:
    """Which part of a table's headers and labels names the metric; `refusal` is set when none does."""

    def __init__(self, table: Table, layout: Layout, described: str, known: Mapping[str, str], text: str) -> None:
        self.table, self.layout, self.known, self.text = table, layout, known, text
        self.aliases = _aliases(headers_of(layout), f"{table.caption} {described}", text)
        self.refusal: Refusal | None = None
        self.columns: dict[int, list[ValueCell]] = {}
        for value in layout.values:
            self.columns.setdefault(value.column, []).append(value)
        self.stub_metric = self._stub_metric()
        self.metric_columns = set(self.columns)
        self.metric_row = self._metric_row()
        self.shared: Metric | None = None
        if self.stub_metric is None:
            self._settle_columns(described)

    def _stub_metric(self) -> int | None:
        """The label column that names metrics row by row, e.g. a column headed `Metric`."""
        for index, head in enumerate(self.layout.label_heads):
            texts = list(dict.fromkeys(self._label(value, index) for value in self.layout.values))
            named = sum(is_metric_header(text) or split_header(text)[1] is not None for text in texts)
            if re.fullmatch(r"metrics?|measures?", head, re.IGNORECASE):
                return index
            columns_named = any(is_metric_header(text) for text in headers_of(self.layout))
            if texts and named * 2 >= len(texts) and named >= 2 and not columns_named:
                return index
        return None

    @staticmethod
    def _label(value: ValueCell, index: int) -> str:
        labels = [text for name, text in value.labels if name != "group"]
        return labels[index] if index < len(labels) else ""

    def _metric_row(self) -> int | None:
        """The header row in which most columns have a metric's name."""
        votes: Counter[int] = Counter()
        for values in self.columns.values():
            for row, text in values[0].heads:
                if self._is_metric(text):
                    votes[row] += 2  # `PSNR` under `CS 10%`: a name says more than a unit, which settings have as well
                elif split_header(text)[1] is not None and not self._is_condition(text):
                    votes[row] += 1
        return min(votes, key=lambda row: (-votes[row], row)) if votes else None

    @staticmethod
    def _is_condition(text: str) -> bool:
        return bool(CONDITION_HEADER.match(split_header(text)[0])) and not is_metric_header(text)

    def _is_metric(self, text: str) -> bool:
        return text in self.aliases or is_metric_header(text)

    def _is_setting(self, column: int, head: str) -> bool:
        """A column headed by a setting's name sets a condition, unless it is measured and stands among the metrics."""
        named = [c for c, values in self.columns.items() if any(self._is_metric(text) for _, text in values[0].heads)]
        among = bool(named) and column > min(named)
        return self._is_condition(head) and not (among and self._looks_measured(self.columns[column]))

    def _settle_columns(self, described: str) -> None:
        if self.metric_row is not None:
            for column, values in self.columns.items():
                head = next((text for row, text in values[0].heads if row == self.metric_row), "")
                named = any(self._is_metric(text) for _, text in values[0].heads)
                if not named and (not head or self._is_setting(column, head) or not self._looks_measured(values)):
                    self.metric_columns.discard(column)
            return
        source = re.split(r"(?<=[a-z)\]%])\.\s+(?=[A-Z])", self.table.caption)[0]
        spans = _measures(source)  # the first sentence says what the table holds, the others what it shows
        if not spans:
            source, spans = self.table.caption, _measures(self.table.caption)
        if not spans:
            source, spans = described, _measures(described)
        plain = [
            c for c, values in self.columns.items() if all(self._is_condition(t) for _, t in values[-1].heads[-1:])
        ]
        if len(plain) < len(self.columns):
            self.metric_columns -= {
                c for c in plain if self.columns[c][0].heads and not _is_numeric_head(self.columns[c])
            }
        if not spans or not any(self._looks_measured(v) for c, v in self.columns.items() if c in self.metric_columns):
            self.refusal = Refusal(
                "no_metric", "neither its headers, its rows, its caption nor the text names a metric"
            )
            return
        phrase = Counter(text for _, _, text in spans).most_common(1)[0][0]
        tail = source[source.find(phrase) + len(phrase) :][:12]
        unit = re.match(r"\s*[(\[]?\s*(?:in\s)?(%|ms|s|seconds)\s*[)\]]?", tail)
        self.shared = Metric(phrase, unit[1] if unit else None, direction_of(phrase))

    @staticmethod
    def _looks_measured(values: list[ValueCell]) -> bool:
        measured = sum(v.quantity.decimals > 0 or v.quantity.uncertainty is not None for v in values)
        return measured * 2 >= len(values)

    def read(self, value: ValueCell) -> ResultCell | None:
        """The meaning of one number; None for a number that sets a condition."""
        if value.column not in self.metric_columns:
            return None
        skip: set[int] = set()
        if self.stub_metric is not None:
            metric = _metric(self._label(value, self.stub_metric))
        elif self.shared is not None:
            metric = self.shared
        else:
            parts = [i for i, (row, _) in enumerate(value.heads) if row == self.metric_row]
            parts = parts or [i for i, (_, text) in enumerate(value.heads) if self._is_metric(text)]
            if not parts:
                return None
            skip.add(parts[0])
            head = value.heads[parts[0]][1]
            metric = _metric(head)
            metric = metric._replace(name=self.aliases.get(head, metric.name))
            if metric.direction == 0:
                metric = metric._replace(direction=self._said_direction(head) or direction_of(metric.name))
            below = _OF_AXIS.match(metric.name) if len(value.heads) > parts[0] + 1 else None
            metric = metric._replace(name=below[1]) if below else metric
            for i in range(parts[0] + 1, len(value.heads)):
                row = value.heads[i][0]
                if row < self.table.header_rows and not self._leaf_is_axis(row):
                    metric = Metric(
                        f"{metric.name} {split_header(value.heads[i][1])[0]}", metric.unit, metric.direction
                    )
                    skip.add(i)
        if not metric.name:
            return None
        unit = value.quantity.unit or metric.unit
        conditions = self._conditions(value, skip)
        metric = metric._replace(unit=metric.unit or value.quantity.unit)
        quantity = value.quantity.model_copy(update={"unit": unit})
        return ResultCell(value.row, value.column, value.text, quantity, metric, conditions, value.bold)

    def _said_direction(self, head: str) -> int:
        """What the caption says of a metric: `interval score (IS, smaller is better)`."""
        name = re.escape(split_header(head)[0])
        said = re.search(rf"\b{name}[^.;()]{{0,20}}\b(smaller|lower|larger|higher) is better", self.table.caption, re.I)
        if said is None:
            return 0
        return -1 if said[1].lower() in ("smaller", "lower") else 1

    def _leaf_is_axis(self, row: int) -> bool:
        """Does a header row below the metrics apply to all columns (an axis), or split some metrics into parts?"""
        return all(any(r == row for r, _ in self.columns[c][0].heads) for c in self.metric_columns)

    def _conditions(self, value: ValueCell, skip: set[int]) -> tuple[tuple[str, str], ...]:
        conditions: list[tuple[str, str]] = []
        position = -1
        for name, text in value.labels:
            position += name != "group"
            if name != "group" and position == self.stub_metric:
                continue
            clean = split_header(name)[0]
            if text and not INDEX_HEADER.match(clean or "-") and text != "—":
                conditions.append((clean or self._stub_name(position), text.strip()))
        for i, (row, text) in enumerate(value.heads):
            if i in skip or (self.stub_metric is not None and len(headers_of(self.layout)) == 1):
                continue
            if self._names_the_next(row):
                continue
            conditions.append(self._head_condition(row, text))
        for column, others in self.columns.items():
            head = next((text for _, text in reversed(others[0].heads) if ":" not in text), "")
            if column not in self.metric_columns and head and not INDEX_HEADER.match(head):
                conditions += [(split_header(head)[0], o.text.strip()) for o in others if o.row == value.row]
        return tuple(dict.fromkeys(conditions))

    def _stub_name(self, position: int) -> str:
        labels = list(dict.fromkeys(self._label(value, position) for value in self.layout.values))
        return "setting" if all(re.search(r"\d", label) for label in labels) else "method"

    def _texts_of_row(self, row: int) -> list[str]:
        return list(dict.fromkeys(t for values in self.columns.values() for r, t in values[0].heads if r == row))

    def _names_the_next(self, row: int) -> bool:
        """Is a header row one spanner over columns that differ below it (`Training points n` over 200, 400, 800)?"""
        rows = sorted({r for values in self.columns.values() for r, _ in values[0].heads})
        later = [r for r in rows if r > row and r < self.table.header_rows + 2]
        spans_all = all(any(r == row for r, _ in self.columns[c][0].heads) for c in self.metric_columns)
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
        for r in rows:
            axis = _OF_AXIS.match(split_header(self._texts_of_row(r)[0])[0]) if r < row else None
            if axis and r == self.metric_row:
                return axis[2]
        above = [r for r in rows if r < row and self._names_the_next(r)]
        if above and above[-1] != self.metric_row:
            return split_header(self._texts_of_row(above[-1])[0])[0]
        texts = self._texts_of_row(row)
        names = Counter(self.known[key] for text in texts if (key := label_words(text)) in self.known)
        if names and names.most_common(1)[0][1] * 2 >= len(texts):
            return names.most_common(1)[0][0]
        name = _shared_word(texts) or _word_behind(texts, self.text) or _caption_axis(self.table.caption)
        if name is not None:
            return name
        named = any(_COMPARED_HEAD.match(h) for h in self.layout.label_heads)
        if not named and all(re.match(r"[A-Z]\w*[A-Z]|[A-Z][a-z]+", text) for text in texts):
            return "method"
        return "condition" if any(r > row for r in rows if r != self.metric_row) else "setting"


def _shared_word(texts: Sequence[str]) -> str | None:
    """`noise`, for `Symmetric noise` and `Asymmetric noise`."""
    if len(texts) < 2 or any(len(text.split()) < 2 for text in texts):
        return None
    lasts = {text.split()[-1].lower() for text in texts}
    word = lasts.pop()
    return word if not lasts and word.isalpha() else None


_NO_NOUN: Final = re.compile(
    r"the|and|for|are|was|were|with|that|this|has|have|can|may|not|its|our|all|one|two|than|then|but|from|into|each"
)


def _word_behind(texts: Sequence[str], prose: str) -> str | None:
    """`noise`, for `Symmetric` and `Asymmetric`, where the paper writes `symmetric noise` and `asymmetric noise`.

    The noun that the prose puts behind each of the values says what they are values of.
    """
    if len(texts) < 2 or any(not re.fullmatch(r"[A-Z][a-z]{3,}", text) for text in texts):
        return None
    behind = [Counter(re.findall(rf"\b{text.lower()}\s([a-z]{{3,}})\b", prose.lower())) for text in texts]
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
_OF_AXIS: Final = re.compile(r"(.{3,40}?)\s(?:at|by|for|versus|vs\.?|against|with)\s(\S{1,20})$")


def _aliases(headers: Sequence[str], near: str, text: str) -> dict[str, str]:
    """Abbreviated headers with the metric they stand for: `Cov.` -> `coverage`, `WFC` -> `worst-fifth coverage`.

    The long form must be a metric's name written out in the paper: in the caption or the sentences about the table
    first, anywhere else second.
    """
    found: dict[str, str] = {}
    for header in headers:
        short = split_header(header)[0]
        if is_metric_header(header):
            continue
        if re.fullmatch(r"[A-Z]{2,5}", short):
            pattern = r"\b" + r"[- ]".join(f"{letter}[a-z]+" for letter in short) + r"\b"
        elif re.fullmatch(r"[A-Za-z]{3,7}\.", short):
            pattern = rf"\b{re.escape(short[:-1])}[a-z]+\b"
        else:
            continue
        for source in (near, text):
            long = Counter(
                match.group().lower()
                for match in re.finditer(pattern, source, re.IGNORECASE)
                if any(end == len(match.group()) for _, end, _ in find_metric(match.group()))
            )
            if long:
                found[header] = min(long, key=lambda name: (-long[name], name))
                break
    return found


def label_words(text: str) -> str:
    """A label as its words alone, in lower case, for comparing."""
    return re.sub(r"\W+", " ", text).strip().lower()


def _measures(text: str) -> list[tuple[int, int, str]]:
    """Metric phrases of a caption or sentence that can be what a table reports; a spread is never the measure."""
    return [m for m in find_metric(text) if not re.search(r"standard deviation|variance|^time$", m[2], re.IGNORECASE)]


def _is_numeric_head(values: list[ValueCell]) -> bool:
    return bool(values[0].heads) and bool(re.search(r"\d", values[0].heads[-1][1]))


def _metric(text: str) -> Metric:
    name, unit = split_header(text)
    return Metric(name, unit, direction_of(text))
