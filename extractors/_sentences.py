"""Sentence boundaries in the prose of papers.

Not a general tokenizer: it knows what scientific English does with full stops (abbreviations, initials, decimals,
references) and nothing else. Every sentence is a slice of the text it came from, so that it can be quoted as evidence.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final, NamedTuple

__all__ = ["Sentence", "split_sentences"]


class Sentence(NamedTuple):
    """A sentence as a slice: `text == whole[start:end]`, without white space at the ends."""

    start: int
    end: int
    text: str


_END: Final = re.compile(r"[.!?][\"'”’)\]]*\s+(?=[^\sa-z.,;:)\]])")
_ABBREVIATIONS: Final = frozenset({
    "al", "fig", "figs", "tab", "tabs", "eq", "eqs", "eqn", "eqns", "sec", "secs", "sect", "app", "ref", "refs",
    "e.g", "i.e", "vs", "cf", "resp", "approx", "ca", "dr", "prof", "st", "mr", "ms", "mrs", "w.r.t", "a.k.a", "inc",
    "ltd", "co", "vol", "pp", "def", "thm", "thms", "prop", "cor", "lem", "alg", "algs", "ch", "chap", "ex", "no",
    "nos", "et", "viz", "incl", "dept", "univ", "jr", "sr", "s.t", "i.i.d", "a.s", "cfr",
})  # fmt: skip
# Words that end a sentence more often than they abbreviate something in it are left out on purpose: `etc`, `max`.


def _is_abbreviation(before: str) -> bool:
    match = re.search(r"([^\s(\[“\"]+)$", before)
    if match is None:
        return False
    word = match.group(1).lower()
    if re.fullmatch(r"[^\W\d_]", match.group(1)) and match.group(1).isupper() and match.group(1) not in "I":
        # an initial (`J. R. Smith`, `and A. Tiwari`), unlike the symbol that ends `on the matrix H.`
        previous = before[: match.start()].split()[-1:]
        if previous and re.fullmatch(
            r"\(?(?:Appendix|Table|Figure|Section|Class|Case|Type|Model|Group|Set)", previous[0]
        ):
            return False
        return not previous or bool(re.match(r"[A-Z][\w´’'-]*[.,]?$|and$|by$|\W", previous[0]))
    return word in _ABBREVIATIONS


def split_sentences(text: str) -> tuple[Sentence, ...]:
    """Split running text into sentences, in order.

    Returns:
        Slices that cover every character of `text` that is not white space, without overlap.
    """
    cuts = [0]
    for match in _END.finditer(text):
        stop = match.start()
        if text[stop] == "." and _is_abbreviation(text[cuts[-1] : stop]):
            continue
        cuts.append(match.end())
    cuts.append(len(text))
    sentences: list[Sentence] = []
    for start, end in pairwise(cuts):
        piece = text[start:end]
        left = start + len(piece) - len(piece.lstrip())
        right = start + len(piece.rstrip())
        if right > left:
            sentences.append(Sentence(left, right, text[left:right]))
    return tuple(sentences)
