"""What belongs to one experiment and what to its neighbours: names of methods and data, symbols that are varied.

A paper describes all its methods and data sets in one place; an experiment uses some of them. A sentence about a method
that is not run, or the fixed value of what is varied, would send whoever follows it the wrong way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from extractors.claims import symbols_in
from extractors.takeaways import Experiment
from extractors.variables import Plan

__all__ = ["Scope", "data_of", "labels_of", "scope_of"]

# Tesseract's English model has no Greek: it prints the Latin letter that looks most like it.
_LOOKS_LIKE: Final = {"p": "ρ", "a": "α", "B": "β", "A": "λ", "o": "σ", "t": "τ", "v": "ν", "y": "γ", "u": "µ"}
_SUBSCRIPT: Final = re.compile(r"^(?P<symbol>[A-Za-z])_?(?P<of>train|test|val|cal|[a-z]{3,})$")


class Scope(NamedTuple):
    """The names of one experiment against those of the whole paper."""

    own: frozenset[str]
    foreign: frozenset[str]
    """Labels of methods and data sets that other experiments of the paper compare and this one does not."""
    symbols: frozenset[str]
    """Symbols that are varied: a single value of them in the text is not this experiment's."""
    own_data: frozenset[str]
    other_data: frozenset[str]
    """Data sets of the paper that this experiment does not run on."""
    parts: tuple[tuple[str, str], ...]
    """(symbol, beginning of what it counts), e.g. (`ncal`, `cal`): `400 calibration points` is a value of it."""

    def fits(self, text: str) -> bool:
        """Is the sentence about this experiment, as far as the name it begins with tells?"""
        if not self.runs_on(text):
            return False
        named = [label for label in self.foreign - self.other_data if re.search(r"[A-Z].*[A-Z\d]", label)]
        if any(_holds(text, label) for label in named) and not any(_holds(text, label) for label in self.own):
            return False  # it names methods, and none of those that are compared here
        begun = _begun_with(text, self.own | self.foreign)
        return begun is None or begun in self.own or (not _is_entry(text) and self.holds(text))

    def holds(self, text: str) -> bool:
        """Does the text name a method or data set of this experiment?"""
        return any(_holds(text, label) for label in self.own)

    def runs_on(self, text: str) -> bool:
        """Is the text not about other data sets alone?"""
        other = any(_holds(text, label) for label in self.other_data)
        return not other or any(_holds(text, label) for label in self.own_data)

    def names(self, text: str) -> bool:
        """Does the sentence begin with a method or data set of this experiment?"""
        return any(re.match(rf"{re.escape(label)}(?![\w-])", text) for label in self.own)

    def sets(self, name: str) -> bool:
        """May a setting of this name be this experiment's? Not when it is named after a method that is not run."""
        if any(_holds(name, label) for label in self.own):
            return True
        return not any(_holds(name, label) for label in self.foreign)

    def freed(self, text: str) -> str:
        """The sentence with the symbol in place of the one value that is given elsewhere for what is varied here."""
        for name, value, start, end in reversed(symbols_in(text)):
            listed = re.match(r"\s?,\s?(?:\.|…|\d)", text[end:])  # `m = 0, ..., 5` gives all values, not one
            if name in self.symbols and value[0] not in "{[" and not listed:
                text = text[:start] + name + text[end:]
        for symbol, of in self.parts:
            text = re.sub(rf"\b\d[\d,]*(?=\s{of}[a-z]*\b)", symbol, text)
        return text


def _bare(label: str) -> str:
    return re.sub(r"\s*\([^()]*\)\s*$", "", label).strip()


def _holds(text: str, label: str) -> bool:
    """Does a text name the label? The mark of a footnote may cling to it: `GraphSAGE5:`, `the ORL2 data`."""
    return re.search(rf"(?<![\w-]){re.escape(label)}(?:\d(?=:|\s?\[)|(?<!\d)\d(?=\s)|(?![\w-]))", text) is not None


_ENTRY: Final = re.compile(r"^(?:[(\[]?\w{1,3}[)\].]\s|[•◦▪–-]\s*)")


def _is_entry(text: str) -> bool:
    """Is the sentence an entry of a list, `(1) SFT-Shortest [11]: ...`: about the one thing before its colon?"""
    return re.match(r"[^.:;]{3,60}:\s", _ENTRY.sub("", text)) is not None


def _begun_with(text: str, labels: Iterable[str]) -> str | None:
    """The label that a sentence, or the run-in heading before its colon, begins with; the longest of several."""
    text = _ENTRY.sub("", text)
    found = [label for label in labels if re.match(rf"(?:The\s)?{re.escape(label)}(?![\w-])", text)]
    head = re.match(r"[^.:;]{3,70}:\s", text)
    if head is not None:
        named = head.group().replace("-", " ").lower()
        found += [label for label in labels if _holds(named, label.replace("-", " ").lower())]
    return max(found, key=lambda label: (len(label), label), default=None)


def labels_of(experiments: Sequence[Experiment]) -> frozenset[str]:
    """Names of all methods and data sets that the paper's result tables compare."""
    labels = {
        _bare(value)
        for experiment in experiments if experiment.table is not None
        for axis in experiment.table.axes if axis.kind in ("method", "dataset")
        for value in axis.values
    }  # fmt: skip
    labels |= {_bare(name) for e in experiments if e.table is not None and e.table.copied for name in e.table.others}
    return frozenset(label for label in labels if re.search(r"[^\W\d_]{2}", label))


def data_of(experiments: Sequence[Experiment], known: Mapping[str, str], captions: Iterable[str]) -> frozenset[str]:
    """Names of the paper's data sets: values of data axes, rows that a table lists as data, and what captions run on.

    Args:
        experiments: what the first pass found.
        known: label as printed -> the header under which a table of the paper lists it.
        captions: captions of the paper's result tables, without labels.
    """
    names = {
        _bare(value)
        for experiment in experiments if experiment.table is not None
        for axis in experiment.table.axes if axis.kind == "dataset"
        for value in axis.values
    }  # fmt: skip
    names |= {
        _bare(label) for label, header in known.items() if re.match(r"data ?sets?\b|corpus|benchmark", header, re.I)
    }
    for caption in captions:
        on = re.search(r"\b[Oo]n (?:the )?([A-Z][\w&/-]*(?:-[\w]+)?)(?= data ?set|\s?[.,;]|$)", caption)
        names |= {on[1]} if on else set()
    return frozenset(
        name for name in names if re.search(r"[A-Z]", name) and len(name) > 1 and not _PART.fullmatch(name)
    )


_PART: Final = re.compile(r"(?:train|test|val|dev|valid)\w*(?: set| split)?|all|overall|total|none", re.IGNORECASE)
"""Parts of any data set, which name none."""


def scope_of(labels: frozenset[str], data: frozenset[str], plan: Plan) -> Scope:
    """What is the experiment's own among the paper's labels, and which symbols it varies.

    Args:
        labels: see `labels_of`.
        data: see `data_of`.
        plan: the experiment.
    """
    values = [value for axis in plan.axes for value in axis.values]
    values += [value for _, value in plan.fixed] + ([plan.data] if plan.data else [])
    own = {_bare(value) for value in values}
    whole = " | ".join([*values, plan.caption])
    own |= {label for label in labels if _holds(whole, label)}
    symbols: set[str] = set()
    parts: list[tuple[str, str]] = []
    for axis in (*plan.axes, *plan.sweeps):
        last = axis.name.split()[-1] if axis.name.split() else ""
        if len(last) <= 2:
            symbols |= {last, _LOOKS_LIKE.get(last, last)}
        match = _SUBSCRIPT.match(axis.name)
        if match is not None and axis.kind == "number" and len(axis.name) <= 6:
            symbols.add(axis.name)
            parts.append((axis.name, match["of"]))
    own = {label for label in own if re.search(r"[^\W\d_]{2}", label)}
    named = frozenset(name for name in data if _holds(whole, name))
    other = (
        data - own - named if named or own & data else frozenset()
    )  # of an experiment on unnamed data, nothing is known
    mine = named | (own & data)
    return Scope(frozenset(own | named), labels - own, frozenset(symbols), mine, other, tuple(parts))
