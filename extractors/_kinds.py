"""Is a name that a table lists a method or a data set? Read off how the paper's prose speaks of it.

A header often leaves it out (two unnamed levels of columns, an empty corner cell). Prose does not: one runs *on* a data
set and compares *with* a method. Each way of speaking is a vote; a tie is no answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from extractors._ownership import is_own
from extractors._reading import Reading

__all__ = ["LabelKinds"]

_DATA_NOUN: Final = r"(?:data ?sets?|corpus|corpora|benchmarks?|test sets?|splits?|collections?|tasks?|environments?)"
_METHOD_NOUN: Final = (
    r"(?:models?|methods?|algorithms?|approach|embeddings?|baselines?|networks?|classifiers?|variants?|optimi[sz]er|"
    r"systems?|loss|kernels?|encoders?|policy|agents?)"
)
_DOES: Final = (
    r"(?:outperforms?|achieves?|performs?|uses?|is trained|improves?|learns?|beats|surpasses|reaches|obtains?|takes|"
    r"computes?|applies|relies|extends|combines|first|also|yields?|fails?|requires?|produces?|predicts?)"
)
_OWN_METHOD: Final = re.compile(
    r"\bours\b|\(our\b|^our\b|\bproposed\b|^w/o?\b|^with(?:out)?\b|^[+−–-]\s?[A-Za-z]|^no\s", re.I
)
_LISTED: Final = r"(?:[\w&./-]+(?:, (?:and )?| and )){0,8}"


_LEAST_VOTES: Final = 2
"""One way of speaking may be a coincidence (`on other` makes no data set of `other`)."""


class LabelKinds:
    """Votes for `method` and `dataset` over the sentences and captions of one paper.

    Args:
        reading: the paper.
        own: names that the paper gives its own methods (see `extractors._ownership`).
    """

    def __init__(self, reading: Reading, own: frozenset[str] = frozenset()) -> None:
        self._own = own
        self._titled = {
            role: " ".join(
                line.text for line in reading.lines if re.search(words, reading.blocks[line.block].title, re.I)
            )
            for role, words in (
                ("dataset", r"data ?set|^data\b|corpora|benchmark|environment"),
                ("method", r"baseline|compared? |method|model|variant"),
            )
        }
        lines = [line.text for line in reading.lines if reading.role(line) != "skip"]
        captions = [table.caption for table in reading.document.tables]
        self._text = " ¶ ".join([*lines, *captions])
        self._votes: dict[str, tuple[int, int]] = {}

    def of(self, labels: Iterable[str]) -> str | None:
        """`method` or `dataset` when the prose says of the labels together, more than half of the votes; else None."""
        votes = [self._of_one(label) for label in dict.fromkeys(labels)]
        methods, data = sum(v[0] for v in votes), sum(v[1] for v in votes)
        if methods == data or max(methods, data) < _LEAST_VOTES:
            return None
        return "method" if methods > data else "dataset"

    def _of_one(self, label: str) -> tuple[int, int]:
        bare = re.sub(r"\s*[\[(].*$", "", label).strip()
        if bare not in self._votes:
            self._votes[bare] = self._count(label, bare)
        return self._votes[bare]

    def _count(self, label: str, bare: str) -> tuple[int, int]:
        if _OWN_METHOD.search(label) or is_own(label, self._own):
            return 5, 0
        if len(bare) < 2 or not re.search(r"[^\W\d_]", bare):
            return 0, 0
        name = rf"(?<![\w-]){re.escape(bare)}(?![\w-])"
        data = self._found(
            rf"{name}(?:-\w+)?(?:,? an? (?:\w+ )?)? {_DATA_NOUN}",
            rf"{name}, an? (?:\w+ ){{0,2}}{_DATA_NOUN}",
            rf"{_DATA_NOUN}[^.¶]{{0,80}}{name}",
            rf"\b[Oo]n (?:the |both )?{_LISTED}{name}",
        )
        method = self._found(
            rf"{name} {_METHOD_NOUN}", rf"{name} {_DOES}", rf"\b(?:than|over|against|compared (?:to|"
            rf"with)) {_LISTED}{name}",
            rf"{_METHOD_NOUN}[^.¶]{{0,60}}(?:such as|including|called|named|[:(]) ?{_LISTED}{name}",
        )  # fmt: skip
        data += 2 * bool(re.search(name, self._titled["dataset"]))
        method += 2 * bool(re.search(name, self._titled["method"]))
        return min(method, 5), min(data, 5)

    def _found(self, *patterns: str) -> int:
        return sum(len(re.findall(pattern, self._text)) for pattern in patterns)
