"""Headings: which lines they are, their numbers, their levels, and what kind of section they open.

Numbered papers are read by their numbering: the longest plausible run of section numbers among the lines that stand
out; it also gives the levels. Papers without numbers are read by style: the styles that set well-known titles.
Non-goal: run-in headings (bold words at the start of a paragraph), which open no section here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from extractors._layer import TextLine
from extractors._text import squeeze
from pipeline.paper import Box, Section, SectionKind

__all__ = ["Heading", "find_headings", "parse_number"]

_NUMBERED: Final = re.compile(
    r"^(?:(?P<word>Appendix|APPENDIX|Section|Supplement(?:ary)?)\s+)?"
    r"(?P<number>(?:[IVX]{2,5}(?=[.\s])|[A-Z]|\d{1,2})(?:\.\d{1,2}){0,3})(?P<dot>[.:)_]?)\s*(?P<title>(?=\S).*)$"
)
_KNOWN: Final = re.compile(
    r"^(abstract|introduction|related works?|background|preliminar\w*|methods?|methodology|approach|experiments?|"
    r"experimental\b.*|results?|discussions?|conclusions?|conclud\w*|acknowledge?ments?|references|bibliography|"
    r"limitations?|appendix|appendices|supplement\w*|summary|ethic\w*|broader impacts?|impact statement|evaluations?|"
    r"datasets?|reproducibility|data availability|author contributions?|checklist)\b",
    re.IGNORECASE,
)
_REFERENCES: Final = re.compile(r"^(references?( cited)?|bibliography|literature cited|works cited)\W*$", re.IGNORECASE)
_APPENDIX: Final = re.compile(r"^(appendi(x|ces)|supplement(ary|al)?)\b", re.IGNORECASE)
_CONTENTS: Final = re.compile(r"(\. ?){4,}\s*\d{0,3}$|^(table of )?contents$", re.IGNORECASE)
_BULLET: Final = re.compile(r"^[•·◦▪■●‣∙⋄⋆▶►–—*✓]\s")
_LONGEST: Final = 150


@dataclass(slots=True)
class Heading:
    """A heading candidate: one line or a wrapped one."""

    lines: list[TextLine]
    order: int
    """Index of its first line in the reading order."""
    standalone: bool
    number: list[str] | None = None
    title: str = ""
    level: int = 1
    kind: SectionKind = SectionKind.BODY
    style: tuple[float, bool, bool, bool] = field(default=(0.0, False, False, False))

    @property
    def text(self) -> str:
        """Number and title as printed."""
        return squeeze(" ".join(line.text for line in self.lines))

    @property
    def printed_number(self) -> str | None:
        """The number as it stands on the page, `Appendix A` with its word."""
        if not self.number:
            return None
        word = re.match(r"(appendix)\s", self.text, re.IGNORECASE)
        return f"{'Appendix ' if word else ''}{'.'.join(self.number)}"

    @property
    def size(self) -> float:
        """Font size in points."""
        return self.lines[0].size

    def section(self, to_page: Callable[[Box], Box]) -> Section:
        """The record; `to_page` maps the upright frame to the page's own."""
        box = self.lines[0].box
        for line in self.lines[1:]:
            box = box.union(line.box)
        return Section(
            number=self.printed_number,
            title=self.title or self.text,
            level=self.level,
            page=self.lines[0].page,
            box=to_page(box),
            kind=self.kind,
        )


def _is_caps(text: str) -> bool:
    letters = re.sub(r"[^A-Za-z]", "", text)
    return len(letters) > 3 and letters.isupper()


def parse_number(text: str) -> tuple[list[str], str] | None:
    """(number parts, title) of a numbered heading: `3.1 Data`, `A. Proofs`, `Appendix B: Data`, `IV. RESULTS`."""
    match = _NUMBERED.match(text)
    if match is None:
        return None
    number, title = match["number"], match["title"]
    if not re.match(r"[A-Z(“\"‘$\\\[]|[a-zα-ωΑ-Ωβ]|\d+\w*[ -][A-Za-z]", title):
        return None
    spaced = text[match.end("dot") : match.start("title")] != ""
    letter = number.isalpha() and len(number) == 1
    if letter and not match["word"] and not (spaced and title[0].isupper()):
        return None
    if not letter and not match["dot"] and not spaced and title[0].islower():
        return None
    if number.isalpha() and len(number) > 1 and not (match["dot"] or match["word"]):
        return None
    return number.split("."), title


def _stands_out(line: TextLine, body: float) -> bool:
    text = squeeze(line.text)
    if (
        len(text) > _LONGEST
        or _BULLET.match(text)
        or not re.search(r"[^\W\d_]{3}", text)
        or line.size < body - 1
        or _CONTENTS.search(text)
    ):
        return False
    if line.size >= body + 0.5 or line.bold or _is_caps(text):
        return True
    return line.italic and parse_number(text) is not None


def _collect(lines: Sequence[TextLine], body: float) -> list[Heading]:
    """Candidates with wrapped lines joined."""
    found: list[Heading] = []
    last = -2
    for order, line in enumerate(lines):
        head = found[-1] if found and last == order - 1 else None
        if head is not None and _wraps(head, line) and (_stands_out(line, body) or line.italic):
            head.lines.append(line)
            last = order
            continue
        if not _stands_out(line, body):
            continue
        follower = lines[order + 1] if order + 1 < len(lines) else None
        run_in = (
            follower is not None
            and follower.page == line.page
            and abs(follower.baseline - line.baseline) < 2
            and 0 <= follower.x0 - line.x1 < 12
        )
        found.append(Heading([line], order, not run_in))
        last = order
    for head in found:
        text = head.text
        parsed = parse_number(text)
        head.number, head.title = parsed if parsed else (None, text)
        head.style = (head.size, head.lines[0].bold, head.lines[0].italic, _is_caps(text))
    return found


def _wraps(head: Heading, line: TextLine) -> bool:
    above = head.lines[-1]
    step = line.baseline - above.baseline
    if above.page != line.page or above.size != line.size or (above.bold, above.italic) != (line.bold, line.italic):
        return False
    if not 0 < step < 1.45 * line.size or len(head.lines) >= 4:
        return False
    return parse_number(squeeze(line.text)) is None and not _KNOWN.fullmatch(squeeze(line.text))


# --- numbering


def _roman(text: str) -> int:
    values = {"I": 1, "V": 5, "X": 10}
    total = 0
    for index, letter in enumerate(text):
        larger = index + 1 < len(text) and values[text[index + 1]] > values[letter]
        total += -values[letter] if larger else values[letter]
    return total


def _value(part: str) -> int:
    return int(part) if part.isdigit() else ord(part[0]) - 64


def _follows(before: list[str], after: list[str]) -> bool:
    """May `after` be the next section number after `before`? One number may be missing (a heading not read)."""
    if before[0].isdigit() != after[0].isdigit():
        return before[0].isdigit() and after == ["A"]
    old, new = [_value(part) for part in before], [_value(part) for part in after]
    if len(new) == len(old) + 1:
        return new[:-1] == old and new[-1] <= 2
    if len(new) > len(old):
        return False
    step = new[-1] - old[len(new) - 1]
    return new[:-1] == old[: len(new) - 1] and 1 <= step <= (2 if len(new) > 1 else 1)


def _next_heading(before: Heading, after: Heading) -> bool:
    """As `_follows`; a top-level number may be missing between two headings of one style (`A`, `C`)."""
    old, new = before.number or [], after.number or []
    if _follows(old, new):
        return True
    if len(new) != 1 or before.style[:3] != after.style[:3] or old[0].isdigit() != new[0].isdigit():
        return False
    return _value(new[0]) - _value(old[0]) == 2


def _best_run(
    usable: list[Heading], starts: Sequence[str], follows: Callable[[Heading, Heading], bool]
) -> list[Heading]:
    """The longest chain in reading order, by dynamic programming; of equal ones, the larger and bolder print."""
    scores: list[tuple[float, int]] = []
    for index, head in enumerate(usable):
        own = 1 + 0.01 * head.size + 0.1 * head.style[1]
        score = (own if head.number and head.number[0] in starts and len(head.number) == 1 else float("-inf"), -1)
        for earlier in range(index):
            if scores[earlier][0] > 0 and follows(usable[earlier], head):
                score = max(score, (scores[earlier][0] + own, earlier))
        scores.append(score)
    run: list[Heading] = []
    index = max(range(len(scores)), key=lambda i: scores[i][0]) if scores else -1
    while index >= 0 and scores[index][0] > 0:
        run.append(usable[index])
        index = scores[index][1]
    return run[::-1]


def _decimal_run(heads: list[Heading]) -> list[Heading]:
    """1, 1.1, 2, ..., A, A.1: the run of most numbered papers."""
    usable = [head for head in heads if head.number and head.standalone]
    run = _best_run(usable, ("1", "0", "A"), _next_heading)
    for head in run:
        head.level = len(head.number or [])
    return run


def _roman_run(heads: list[Heading]) -> list[Heading]:
    """I, A, B, II, A, ...: IEEE and physics journals. Letters start anew in each section; the number is as printed."""
    usable = [head for head in heads if head.number and head.standalone]
    roman = [
        head for head in usable if len(head.number or []) == 1 and re.fullmatch("[IVX]+", (head.number or [""])[0])
    ]
    main = _best_run(roman, ("I",), lambda a, b: _roman((b.number or [""])[0]) == _roman((a.number or [""])[0]) + 1)
    if len(main) < 3 or len({head.style[0] for head in main}) > 2:
        return []
    ids = {id(head) for head in main}
    run: list[Heading] = []
    inside, letter, appendix = False, 0, 0
    for head in heads:
        number = (head.number or [""])[0]
        next_one = head.standalone and len(number) == 1 and "A" <= number <= "Z"
        if id(head) in ids:
            inside, letter = True, 0
            head.level = 1
        elif inside and next_one and _APPENDIX.match(head.text):
            if ord(number) - 64 != appendix + 1:
                continue
            appendix, letter, head.level = appendix + 1, 0, 1
        elif inside and next_one and 1 <= ord(number) - 64 - letter <= 2:  # one may not have been read
            letter, head.level = ord(number) - 64, 2
        else:
            continue
        run.append(head)
    return run


# --- the whole


def find_headings(lines: Sequence[TextLine], body: float) -> list[Heading]:
    """The headings of a paper in reading order, with numbers, levels and kinds.

    Args:
        lines: running lines of the whole paper in reading order, without furniture, floats and captions.
        body: font size of the running text.
    """
    candidates = _collect(lines, body)
    run = max(_decimal_run(candidates), _roman_run(candidates), key=len)
    heads = _by_number(candidates, run, body) if len(run) >= 3 else _by_style(candidates, body)
    _set_kinds(heads)
    if all(head.kind is not SectionKind.ABSTRACT for head in heads):
        heads = _run_in_abstract(lines, heads) + heads
    return heads


def _run_in_abstract(lines: Sequence[TextLine], heads: list[Heading]) -> list[Heading]:
    """`Abstract—We present ...`: the heading is the first word of its paragraph."""
    first = heads[0].order if heads else len(lines)
    for order, line in enumerate(lines[:first]):
        if re.match(r"abstract\s*[—–:.-]", line.text, re.IGNORECASE):
            return [Heading([line], order, standalone=False, title="Abstract", kind=SectionKind.ABSTRACT)]
    return []


def _by_number(candidates: list[Heading], run: list[Heading], body: float) -> list[Heading]:
    chosen = {id(head) for head in run}
    top = {head.style for head in run if head.level == 1}
    first = min(head.order for head in run)
    heads: list[Heading] = []
    for head in candidates:
        if id(head) not in chosen:
            alike = head.order > first and head.number is None and _is_like(head, top, body)
            if not alike and not _is_unnumbered(head, top, body):
                continue
            head.number, head.title, head.level = None, head.text, 1
        heads.append(head)
    return heads


def _is_like(head: Heading, top: set[tuple[float, bool, bool, bool]], body: float) -> bool:
    """Set like the numbered sections, in print that nothing else has: `Declarations`, `Data and code availability`."""
    text = head.text
    large = head.size >= body + 1
    return (
        large
        and head.standalone
        and head.style in top
        and len(text) < 90
        and text[:1].isupper()
        and text[-1:] not in ".,;:"
    )


def _is_unnumbered(head: Heading, top: set[tuple[float, bool, bool, bool]], body: float) -> bool:
    text = head.text
    if re.fullmatch(r"abstract\W*", text, re.IGNORECASE):
        return True
    if not head.standalone or len(text) >= 60 or not _KNOWN.match(text):
        return False
    large = head.size >= body + 0.5
    return any(abs(head.size - style[0]) <= 1 and (head.style[1] == style[1] or large) for style in top)


def _by_style(candidates: list[Heading], body: float) -> list[Heading]:
    known = {
        (head.style, re.sub("[^a-z]", "", head.text.lower())) for head in candidates
        if head.standalone and len(head.text) < 40 and head.size >= body and _KNOWN.match(head.text)
    }  # fmt: skip
    counts = Counter(style for style, _ in known)
    if not counts:
        return []
    top = max(counts, key=lambda style: (counts[style] >= 2, style[0], style[1], counts[style]))
    first = min(head.order for head in candidates if head.style == top and _KNOWN.match(head.text))
    heads: list[Heading] = []
    for head in candidates:
        early = head.order < first and not re.match("abstract", head.text, re.IGNORECASE)
        if not head.standalone or early:
            continue
        if head.style == top or (head.style in counts and head.size >= body):
            head.level = 1 if head.style == top else 2
        elif head.style[1] and body <= head.size <= top[0] and not head.text.endswith((".", ",", ";")):
            if head.size < body + 0.5:
                continue
            head.level = 2
        else:
            continue
        head.number, head.title = None, head.text
        heads.append(head)
    return heads


def _set_kinds(heads: list[Heading]) -> None:
    """Abstract, references, appendix: the last begins at a heading of that name or a lettered number after digits."""
    seen_digit = in_appendix = False
    for head in heads:
        text = head.title or head.text
        seen_digit = seen_digit or bool(head.number and head.number[0].isdigit())
        lettered = bool(head.number and re.fullmatch("[A-Z]", head.number[0]))
        if (lettered and seen_digit) or _APPENDIX.match(head.text):
            in_appendix = True
        if re.fullmatch(r"abstract\W*", text, re.IGNORECASE):
            head.kind = SectionKind.ABSTRACT
        elif _REFERENCES.match(text):
            head.kind = SectionKind.REFERENCES
        elif in_appendix:
            head.kind = SectionKind.APPENDIX
