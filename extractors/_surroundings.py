"""What a paper says around a table that its grid does not: names, legends, the measure, who ran what.

Collected once per paper (`Surroundings.of`), narrowed to one table (`at`). Non-goal: reading the table itself, which is
`extractors.result_tables`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from extractors._kinds import LabelKinds
from extractors._legend import legend_of
from extractors._ownership import own_names
from extractors._reading import Line, Reading
from extractors._vocabulary import direction_of, find_metric

__all__ = ["Surroundings"]


@dataclass(frozen=True)
class Surroundings:
    """The prose around a table; an empty one reads the table by itself."""

    described: str = ""
    """The sentences of the paper that refer to it."""
    known: dict[str, str] = field(default_factory=dict)
    """Label (lower case) -> the header under which other tables of the paper list it."""
    text: str = ""
    """The paper's prose, in which an abbreviated header is written out."""
    legend: dict[str, str] = field(default_factory=dict)
    """Short name -> what it stands for, by the table's caption first, by other captions and the prose second."""
    kinds: LabelKinds | None = None
    measure: str | None = None
    """The metric that this part of the paper reports, for a table that names none."""
    own: frozenset[str] = frozenset()
    """Names of what the paper proposes."""

    def kind(self, labels: Sequence[str]) -> str | None:
        """`method` or `dataset`, as far as the prose says (see `extractors._kinds`)."""
        return None if self.kinds is None else self.kinds.of(labels)

    @classmethod
    def of(cls, reading: Reading, known: dict[str, str]) -> Surroundings:
        """What holds for all tables of a paper.

        Args:
            reading: the paper.
            known: see `extractors.result_tables.known_labels`.
        """
        own = own_names(reading)
        lines = [line for line in reading.lines if reading.role(line) != "skip"]
        return cls(known=known, text=" ".join(line.text for line in lines), kinds=LabelKinds(reading, own), own=own)

    def at(self, reading: Reading, caption: str, mentions: Sequence[Line]) -> Surroundings:
        """Narrowed to the table with this caption that `mentions` refer to."""
        captions = [table.caption for table in reading.document.tables if table.caption != caption]
        described = " ".join(line.text for line in mentions)
        legend = legend_of([caption, described, *captions, self.text])
        return replace(self, described=described, legend=legend, measure=_measure(reading, mentions))


_CUE: Final = re.compile(
    r"\b(?:report|measur|evaluat|metrics?|in terms of|comput|as our (?:test )?result|final result|criterion)",
    re.IGNORECASE,
)


_NOT_REPORTED: Final = re.compile(r"^(?:train|valid|dev)|\b(?:time|memory|cost|loss(?:es)?)\b", re.IGNORECASE)
"""What training is stopped by, and what it costs, is spoken of everywhere and is not what an unnamed column holds."""


def _measure(reading: Reading, mentions: Sequence[Line]) -> str | None:
    """The metric that set-up and result sentences of the table's part of the paper speak of, if it is one.

    Sentences that say how things are measured weigh three times. One metric must have two thirds of all, since a part
    that reports several leaves open which of them an unnamed column holds.
    """
    parts = {reading.blocks[line.block].path[:1] for line in mentions if reading.role(line) not in ("framing", "skip")}
    votes: Counter[str] = Counter()
    phrases: dict[str, Counter[str]] = {}
    for line in reading.lines:
        if reading.role(line) not in ("evaluation", "setup") or reading.blocks[line.block].path[:1] not in parts:
            continue
        for _, _, phrase in find_metric(line.text):
            if direction_of(phrase) == 0 or _NOT_REPORTED.search(phrase):
                continue
            head = re.sub(r"(?:ies|y|s)$", "", phrase.lower().split()[-1])
            head = next((known for known in votes if known.startswith(head) or head.startswith(known)), head)
            cue = bool(_CUE.search(line.text))
            votes[head] += 3 if cue else 1
            phrases.setdefault(head, Counter())[_singular(phrase)] += 10 if cue else 1
    if not votes:
        return None
    head, count = votes.most_common(1)[0]
    if count < 3 or count * 3 < sum(votes.values()) * 2:
        return None
    named = phrases[head]
    return min(named, key=lambda phrase: (phrase.isupper(), -named[phrase], -len(phrase), phrase))


def _singular(phrase: str) -> str:
    return re.sub(r"(?<=[a-z])ies$", "y", phrase) if phrase.endswith("accuracies") else phrase
