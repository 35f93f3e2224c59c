"""How an experiment is done, in the paper's own sentences: those that the code behind its numbers bears out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from extractors._reading import Line, Reading, label_key, references_in
from extractors.answers import states_answer
from pipeline.locator.text import tokens
from pipeline.paper import Section, SectionKind
from pipeline.task import Draft, Expected, TableEvidence, TextEvidence
from pipeline.validation.numbers import absolute_values

__all__ = ["Method"]

_SENTENCES: Final = 8
_BORNE_OUT: Final = 0.5
"""Share of a sentence's information (in the paper's own word statistics) that stands in the code that ran."""
_FEWEST_WORDS: Final = 6
_ENDS: Final = (".", "!", "?", ":")
_ELSEWHERE: Final = frozenset({SectionKind.REFERENCES, SectionKind.ABSTRACT})


class Method:
    """Looks up the sentences of one paper that some code bears out.

    Args:
        reading: the paper.
    """

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._refers = [references_in(line.text) for line in reading.lines]
        """Tables and figures that each line refers to."""
        self._shows = {line.passage for line, keys in zip(reading.lines, self._refers, strict=True) if keys}
        """Passages that speak of a table or figure: they tell what it shows."""
        self._opening = _opening(reading.document.sections)
        self._words = [frozenset(tokens(line.text)) for line in reading.lines]
        counts: Counter[str] = Counter(word for words in self._words for word in words)
        total = max(len(reading.lines), 1)
        self._bits = {word: math.log2((total + 1) / count) for word, count in counts.items()}
        """What a word of this paper tells: the rarer among its sentences, the more."""

    def borne_out(self, code: str, expected: Expected) -> list[Line]:
        """The whole sentences that the code bears out most, in reading order; none of a passage that tells a result.

        A method is told between the opening section, which says why and what came out, and the end of the section that
        tells the result first (or in an appendix): what follows there is of other experiments, or concludes. In
        drafts of two papers 13 of 16 sentences stood elsewhere: none of them told how the task's numbers are made.
        A number with digits behind its point that the code does not set is an outcome, of this experiment or another.

        Args:
            code: text of the files behind the numbers; nothing is borne out by none.
            expected: the outcome, which must stay hidden.
        """
        spoken, settings = frozenset(tokens(code)), absolute_values(code, fractions=True)
        probe = Draft(slug="probe", question="-", method="-", expected=expected, confidence=0)
        scored: list[tuple[float, Line]] = []
        told = self._told(expected)
        for line, words in zip(self._reading.lines, self._words, strict=True):
            section = self._reading.section(line)
            if len(words) < _FEWEST_WORDS or line.passage in self._shows or not line.text.endswith(_ENDS):
                continue
            if section is not None and (section.kind in _ELSEWHERE or section in self._opening):
                continue
            if line.order > told and (section is None or section.kind is not SectionKind.APPENDIX):
                continue
            held = self._sum(words & spoken)
            if held >= _BORNE_OUT * self._sum(words) and absolute_values(line.text, fractions=True) <= settings:
                scored.append((held, line))
        near = {line.passage for _, line in scored}
        telling = {
            line.passage for line in self._reading.lines if line.passage in near and states_answer(line.text, probe)
        }
        scored = [(held, line) for held, line in scored if line.passage not in telling]
        best = sorted(scored, key=lambda item: (-item[0], item[1].order))[:_SENTENCES]
        return sorted((line for _, line in best), key=lambda line: line.order)

    def _told(self, expected: Expected) -> int:
        """Order of the last line of the section that first tells the outcome; its page's last where no line does."""
        found = [item for claim in expected.claims for item in claim.evidence]
        labels = {label_key(item.label) for item in found if isinstance(item, TableEvidence)}
        quotes = {item.quote for item in found if isinstance(item, TextEvidence)}
        lines = self._reading.lines
        told = zip(lines, self._refers, strict=True)
        tells = next((line for line, keys in told if line.text in quotes or labels & keys), None)
        if tells is None:
            last = max((item.page for item in found if isinstance(item, TableEvidence | TextEvidence)), default=0)
            return max((line.order for line in lines if line.page <= last), default=-1)
        section = self._reading.section(tells)
        return max(line.order for line in lines if self._reading.section(line) == section)

    def _sum(self, words: Iterable[str]) -> float:
        return sum(self._bits.get(word, 0.0) for word in words)


def _opening(sections: Sequence[Section]) -> tuple[Section, ...]:
    """The first section of the body with what it holds; none where it is the only one."""
    body = [section for section in sections if section.kind is SectionKind.BODY]
    top = min((section.level for section in body), default=0)
    starts = [number for number, section in enumerate(body) if section.level == top]
    return tuple(body[: starts[1]]) if len(starts) > 1 else ()
