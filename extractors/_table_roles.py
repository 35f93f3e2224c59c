"""Which part of a table's headers and labels names the metric, and what the other parts are called.

Works on the layout (`extractors._table_layout`); whether the table holds results at all is decided before, in
`extractors.result_tables`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from extractors._conditions import OF_AXIS, Conditions
from extractors._surroundings import Surroundings
from extractors._table_layout import Layout, ValueCell, headers_of, label_at, split_header
from extractors._vocabulary import CONDITION_HEADER, direction_of, find_metric, is_metric_header
from pipeline.paper import Quantity, Table

__all__ = ["Axis", "Metric", "Refusal", "ResultCell", "Roles"]


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
    """Why a table gives no task. `kind`: empty, statistics, settings, no_metric, copied or unclear."""

    kind: str
    reason: str


class Roles:
    """Which part of a table's headers and labels names the metric; `refusal` is set when none does."""

    def __init__(self, table: Table, layout: Layout, near: Surroundings) -> None:
        self.table, self.layout, self.near = table, layout, near
        described = near.described
        names = [*headers_of(layout), *dict.fromkeys(text for value in layout.values for _, text in value.labels)]
        self.aliases = _aliases(headers_of(layout), f"{table.caption} {described}", near.text)
        self.aliases |= _from_legend(names, near.legend)
        self.refusal: Refusal | None = None
        self.columns: dict[int, list[ValueCell]] = {}
        for value in layout.values:
            self.columns.setdefault(value.column, []).append(value)
        self.stub_metric = self._stub_metric()
        self.derived = {
            c
            for c, values in self.columns.items()
            if _DERIVED.search(values[0].heads[-1][1] if values[0].heads else "")
        }
        self.metric_columns = set(self.columns)
        self.metric_row = self._metric_row()
        self.shared: Metric | None = None
        self.by_caption: frozenset[int] = frozenset()
        """Columns that hold the caption's metric, in a table in which others name their own."""
        if self.stub_metric is None:
            self._settle_columns(described)
        kept = {c: values for c, values in self.columns.items() if c not in self.derived}
        self.conditions = Conditions(
            table, layout, near, kept, frozenset(self.metric_columns), self.metric_row, self.stub_metric
        )

    def _stub_metric(self) -> int | None:
        """The label column that names metrics row by row, e.g. a column headed `Metric`."""
        for index, head in enumerate(self.layout.label_heads):
            texts = list(dict.fromkeys(label_at(value, index) for value in self.layout.values))
            named = sum(self._is_metric(text) or _names_with_unit(text) for text in texts)
            if named and re.fullmatch(r"metrics?|measures?", head, re.IGNORECASE):
                return index
            columns_named = any(self._is_metric(text) for text in headers_of(self.layout))
            if texts and named * 2 >= len(texts) and named >= 2 and not columns_named:
                return index
            odd = [text for text in texts if not self._is_metric(text)]
            if named and len(texts) <= 3 and not columns_named and all(re.search(r"[a-z][A-Z]", text) for text in odd):
                return index  # an abbreviation beside a metric (`Ins`, `mCls`) is one too
            said = re.search(r"\bvalues?\b", self.table.caption) and not columns_named and len(texts) > 1
            if said and all(_holds_word(self.table.caption, text) for text in texts):
                return index  # `The mean inCD and outCD values`: the caption calls the rows measures
            beside = not head and len(self.layout.label_heads) > 1
            if beside and texts and named == len(texts) and not columns_named:
                return index  # `Prediction accuracy` once, beside the methods it was measured for
        return None

    def _metric_row(self) -> int | None:
        """The header row in which most columns have a metric's name."""
        votes: Counter[int] = Counter()
        for values in self.columns.values():
            for row, text in values[0].heads:
                if self._is_metric(text):
                    votes[row] += 2  # `PSNR` under `CS 10%`: a name says more than a unit, which settings have as well
                elif _names_with_unit(text) and not self._is_condition(text):
                    votes[row] += 1
        return min(votes, key=lambda row: (-votes[row], row)) if votes else self._only_header()

    def _only_header(self) -> int | None:
        """The header row of a table's one column of numbers, when it says in plain words what they are.

        Where the rows are what is compared and the caption names no metric, nothing else can: `Average Complexity`.
        """
        if len(self.columns) != 1 or _measures(self.table.caption):
            return None
        values = next(iter(self.columns.values()))
        heads = [
            (row, text) for row, text in values[0].heads if re.fullmatch(r"[A-Z]?[a-z]{2,}(?: [A-Z]?[a-z]+)*", text)
        ]
        named = [row for row, text in heads if not self._is_condition(text) and self.near.kind([text]) is None]
        plain = len(named) == len(values[0].heads) == 1 and self._looks_measured(values) and self._lists_results()
        return named[0] if plain and not re.fullmatch(_VALUE_HEADER, heads[0][1], re.IGNORECASE) else None

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
        self.metric_columns -= self.derived
        if self.metric_row is not None:
            for column, values in self.columns.items():
                head = next((text for row, text in values[0].heads if row == self.metric_row), "")
                named = any(self._is_metric(text) for _, text in values[0].heads)
                if not named and (not head or self._is_setting(column, head) or not self._looks_measured(values)):
                    self.metric_columns.discard(column)
            self._take_caption_metric()
            return
        source = re.split(r"(?<=[a-z)\]%])\.\s+(?=[A-Z])", self.table.caption)[0]
        # the first sentence says what the table holds, the others what it shows
        spans = self._of_no_row(_measures(source))
        if not spans:
            source, spans = self.table.caption, self._of_no_row(_measures(self.table.caption))
        if not spans:
            source, spans = described, self._of_no_row(_measures(described))
        plain = [
            c for c, values in self.columns.items() if all(self._is_condition(t) for _, t in values[-1].heads[-1:])
        ]
        if len(plain) < len(self.columns):
            self.metric_columns -= {
                c for c in plain if self.columns[c][0].heads and not _is_numeric_head(self.columns[c])
            }
        measured = any(self._looks_measured(v) for c, v in self.columns.items() if c in self.metric_columns)
        units = {value.quantity.unit for value in self.layout.values} - {None, "%"}  # seconds are no accuracy
        if not spans and measured and self.near.measure and not units and self._lists_results():
            self.shared = Metric(self.near.measure, None, direction_of(self.near.measure))
            return
        if not spans or not measured:
            self.refusal = Refusal(
                "no_metric", "neither its headers, its rows, its caption nor the text names a metric"
            )
            return
        phrase = Counter(text for _, _, text in spans).most_common(1)[0][0]
        name = phrase.lower() if phrase.isupper() and " " in phrase else phrase  # a caption set in capitals
        name = re.sub(r"(?<=accurac)ies$", "y", name)
        tail = source[source.find(phrase) + len(phrase) :][:12]
        unit = re.match(r"\s*[(\[]?\s*(?:in\s)?(%|ms|s|seconds)\s*[)\]]?", tail)
        self.shared = Metric(name, unit[1] if unit else None, direction_of(phrase))

    def _of_no_row(self, spans: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
        """Without phrases that name a row: beside a row `Ours (Wasserstein)`, `Wasserstein distance` is compared."""
        labels = " ".join(text for value in self.layout.values for _, text in value.labels)
        named = set(re.findall(r"[A-Z][a-z]{4,}", labels))
        return [span for span in spans if not set(span[2].split()[:-1]) & named]

    def _take_caption_metric(self) -> None:
        """Where only a few columns name a metric (`Time`) and the caption names another, it is that of the others."""
        named = {c for c in self.metric_columns if any(self._is_metric(text) for _, text in self.columns[c][0].heads)}
        others = self.metric_columns - named
        spans = [m for m in _measures(self.table.caption.split(". ")[0]) if direction_of(m[2])]
        heads = " ".join(text for c in named for _, text in self.columns[c][0].heads).lower()
        spans = [span for span in spans if span[2].lower() not in heads]  # `AUPRC of all models and runtime`
        if len(others) >= len(named) and spans:
            self.by_caption = frozenset(others)
            phrase = spans[0][2]
            name = phrase.lower() if phrase.isupper() and " " in phrase else phrase
            name = re.sub(r"(?<=accurac)ies$", "y", name)
            self.shared = Metric(name, None, direction_of(phrase))
        elif len(others) > len(named) > 0 and self.near.kind([self.columns[c][0].heads[-1][1] for c in sorted(others)]):
            self.metric_columns = named  # columns of methods whose measure is not said

    def _lists_results(self) -> bool:
        """Do the table's own names show that it compares methods or data sets of the paper, rather than settings?"""
        rows = list(
            dict.fromkeys(text for value in self.layout.values for name, text in value.labels if name != "group")
        )
        return self.near.kinds is not None and any(
            self.near.kinds.of(names) is not None for names in (rows, headers_of(self.layout)) if names
        )

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
            label = label_at(value, self.stub_metric)
            if not self._is_metric(label) and value.quantity.decimals == 0:
                return None  # `N` between the measures counts what they were taken over
            metric = _metric(label)
            metric = self._written_out(label, metric)
        elif self.shared is not None and (not self.by_caption or value.column in self.by_caption):
            metric = self.shared
        else:
            parts = [i for i, (row, _) in enumerate(value.heads) if row == self.metric_row]
            parts = parts or [i for i, (_, text) in enumerate(value.heads) if self._is_metric(text)]
            if not parts:
                return None
            skip.add(parts[0])
            head = value.heads[parts[0]][1]
            metric = self._written_out(head, _metric(head))
            if metric.direction == 0:
                metric = metric._replace(direction=self._said_direction(head) or direction_of(metric.name))
            below = OF_AXIS.match(metric.name) if len(value.heads) > parts[0] + 1 else None
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
        conditions = self.conditions.of(value, skip)
        metric = metric._replace(unit=metric.unit or value.quantity.unit)
        quantity = value.quantity.model_copy(update={"unit": unit})
        return ResultCell(value.row, value.column, value.text, quantity, metric, conditions, value.bold)

    def _written_out(self, label: str, metric: Metric) -> Metric:
        """The metric by the name that the paper writes out for its abbreviation."""
        name = self.aliases.get(label, metric.name)
        return metric._replace(name=name, direction=metric.direction or direction_of(name))

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


def _from_legend(headers: Sequence[str], legend: Mapping[str, str]) -> dict[str, str]:
    """Headers and labels that a legend explains as a metric: `M` -> `METEOR`, `U` -> `accuracy of unseen classes`.

    Other entries of a legend (`LValue = log value`) explain methods and are none.
    """
    found: dict[str, str] = {}
    for header in headers:
        short = split_header(header)[0]
        long = legend.get(short)
        if long is None:
            continue
        spans = find_metric(long)
        if not spans and re.search(r"[A-Za-z]- ?[A-Za-z]", long):  # a word that was divided at the end of a line
            long = re.sub(r"(?<=[A-Za-z])- ?(?=[A-Za-z])", "", long)
            spans = find_metric(long)
        if spans and (spans[-1][0] == 0 or spans[-1][1] == len(long) or direction_of(long)):
            found[header] = long
    return found


def _holds_word(caption: str, label: str) -> bool:
    """Does a caption name the last word of a label that has capitals inside (`inCD`), as nothing but a name has?"""
    last = label.rsplit(maxsplit=1)[-1] if label.split() else ""
    return bool(re.search(r".[A-Z]", last)) and re.search(rf"(?<!\w){re.escape(last)}(?!\w)", caption) is not None


def _names_with_unit(text: str) -> bool:
    """Has a header a name and a unit in brackets? `80 %` is a value."""
    name, unit = split_header(text)
    return unit is not None and re.search(r"[^\W\d_]", name) is not None


_VALUE_HEADER: Final = (
    r"results?|values?|numbers?|counts?|ours|mean|average|avg|baseline|model|method|test|train\w*|validation|score"
)
"""Headers that say no more than that there is a number below."""
_DERIVED: Final = re.compile(
    r"^\s*[∆Δ]|\([∆Δ]\)|^gap\b|\bdiff(?:\.|erences?)?\b|\([^()]+\s?[−–-]\s?[^()]+\)\s?/|^(?:relative |abs\.? |"
    r"rel\.? )?(?:improv\w*|gains?)\b",
    re.I,
)
"""A column that is computed from two others (`(B-A)/A`, `Δ`, `Improvement`): a comparison, not a measurement."""


_FUNCTION_WORD: Final = re.compile(r"(?:to|the|an?|of|and|or|we|in|on|for|with|by|as|at|that|is|are)\b", re.IGNORECASE)


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
                and not _FUNCTION_WORD.match(match.group())  # `TAP` is no `to achieve precision`
            )
            if long:
                found[header] = min(long, key=lambda name: (-long[name], name))
                break
    return found


def _measures(text: str) -> list[tuple[int, int, str]]:
    """Metric phrases of a caption or sentence that can be what a table reports; a spread is never the measure."""
    return [
        m
        for m in find_metric(text)
        if not re.search(r"standard deviation|variance|^(?:time|gain|gap)$", m[2], re.IGNORECASE)
    ]


def _is_numeric_head(values: list[ValueCell]) -> bool:
    return bool(values[0].heads) and bool(re.search(r"\d", values[0].heads[-1][1]))


def _metric(text: str) -> Metric:
    name, unit = split_header(text)
    return Metric(name, unit, direction_of(text))
