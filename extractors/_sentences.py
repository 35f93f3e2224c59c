"""Sentence boundaries in the prose of papers, and the run-in headings that open paragraphs.

Not a general tokenizer: it knows what scientific English does with full stops (abbreviations, initials, decimals,
references) and nothing else. Every sentence is a slice of the text it came from, so that it can be quoted as evidence.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final, NamedTuple

__all__ = ["Sentence", "run_in_heading", "split_sentences", "without_heading"]


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
_MAX_HEADING_WORDS: Final = 10
_UNPOINTED: Final = re.compile(
    r"(?P<heading>[A-Z][a-z][\w-]{2,}(?: (?:[A-Z][\w-]*|of|and|the|for|on|with|vs\.?|&)){0,5}) "
    r"(?=(?:We|Our|In|To|For|Due|The|All|As|On|From|Each|Following|Since|During|Both|Given|When|If|Unless)\s"
    r"(?:[a-z]|[A-Z]\w* et al))"
)
"""A bold phrase that lost its full stop with its print: before `We` or `The` in capitals no sentence goes on."""
_OPENS_A_SENTENCE: Final = re.compile(
    r"(?:we|the|this|that|these|those|in|for|all|it|our|to|at|as|an?|here|there|following|with|on|by|each|every|both|if|"
    r"when|while|since|finally|first|next|under|from|let|note|such|where)\b",
    re.IGNORECASE,
)


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


def without_heading(text: str) -> tuple[str | None, str]:
    """A paragraph's first sentence as its heading and the rest, where a bold phrase opens it without a full stop.

    Returns:
        The heading (`Implementation Details`), None where there is none, and the text behind it.
    """
    match = _UNPOINTED.match(text)
    if match is None or _OPENS_A_SENTENCE.match(text):
        return None, text
    return match["heading"], text[match.end() :]


def run_in_heading(text: str) -> str | None:
    """The bold phrase that opens a paragraph (`Results. We find ...`), without its full stop; None when there is none.

    Typography is gone here, so the shape decides: at most ten words, not opened by a word that opens sentences (`we`,
    `the`, `in`), no equation, no reference to a float. `A Title in Capitals: We ...` counts too.
    """
    titled = re.match(
        r"((?:[A-Z][\w-]*|of|and|the|for|on|with)(?: (?:[A-Z][\w-]*|of|and|the|for|on|with)){1,5}): (?=[A-Z])", text
    )
    if titled:
        return titled[1]
    heading = without_heading(text)[0]
    if heading is not None:
        return heading
    sentences = split_sentences(text)
    if len(sentences) < 2 or not sentences[0].text.endswith("."):
        return None
    heading = sentences[0].text[:-1].strip()
    if _OPENS_A_SENTENCE.match(heading) or re.search(r"\b(?:Table|Figure|Fig\.|Section)\s", heading):
        return None
    if not heading or len(heading.split()) > _MAX_HEADING_WORDS or re.search(r"[=<>]|\d\.\d", heading):
        return None
    return heading
