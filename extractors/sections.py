"""Headings: which lines they are, their numbers, their levels, and what kind of section they open.

Numbered papers are read by their numbering: the longest plausible run of section numbers among the lines that stand
out; it also gives the levels. Papers without numbers are read by style: the styles that set well-known titles.
Non-goal: run-in headings (bold words at the start of a paragraph), which open no section here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from extractors._babel import ABSTRACT, REFERENCES
from extractors._heading_candidates import KNOWN, Heading, collect
from extractors._layer import TextLine
from extractors._numbering import follows, number_value, roman_value
from pipeline.paper import SectionKind

__all__ = ["Heading", "find_headings"]

_REFERENCES: Final = re.compile(
    rf"^({REFERENCES}|references?( cited)?|bibliography|literature cited|works cited)\W*$", re.IGNORECASE
)
_SENTENCE: Final = 6
"""Words from which on a line with a mark at its end is a sentence."""
_APPENDIX: Final = re.compile(r"^(appendi(x|ces)|supplement(ary|al)?)\b", re.IGNORECASE)

# --- numbering


def _next_heading(before: Heading, after: Heading) -> bool:
    """As `follows`; a top-level number may be missing between two headings of one style (`A`, `C`)."""
    old, new = before.number or [], after.number or []
    if follows(old, new):
        return True
    if len(new) != 1 or before.style[:3] != after.style[:3] or old[0].isdigit() != new[0].isdigit():
        return False
    return number_value(new[0]) - number_value(old[0]) == 2


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


def _next_roman(before: Heading, after: Heading) -> bool:
    """One number may be missing (a heading not read), as between decimal ones."""
    return 1 <= roman_value((after.number or [""])[0]) - roman_value((before.number or [""])[0]) <= 2


def _roman_run(heads: list[Heading]) -> list[Heading]:
    """I, A, B, II, A, ...: IEEE and physics journals. Letters start anew in each section; the number is as printed."""
    usable = [head for head in heads if head.number and head.standalone]
    roman = [
        head for head in usable if len(head.number or []) == 1 and re.fullmatch("[IVX]+", (head.number or [""])[0])
    ]
    main = _best_run(roman, ("I",), _next_roman)
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
    candidates = collect(lines, body)
    run = max(_decimal_run(candidates), _roman_run(candidates), key=len)
    if len(run) >= 3:
        heads = _by_number(candidates, run, body, _subheadings(candidates, run, lines, body))
    else:
        heads = _by_style(candidates, body)
    _set_kinds(heads)
    if all(head.kind is not SectionKind.ABSTRACT for head in heads):
        heads = _run_in_abstract(lines, heads) + heads
    return heads


def _run_in_abstract(lines: Sequence[TextLine], heads: list[Heading]) -> list[Heading]:
    """`Abstract—We present ...`: the heading is the first word of its paragraph."""
    first = heads[0].order if heads else len(lines)
    for order, line in enumerate(lines[:first]):
        if re.match(rf"({ABSTRACT})\s*[—–:.-]", line.text, re.IGNORECASE):
            return [Heading([line], order, standalone=False, title="Abstract", kind=SectionKind.ABSTRACT)]
    return []


def _subheadings(candidates: list[Heading], run: list[Heading], lines: Sequence[TextLine], body: float) -> set[int]:
    """Bold headings without a number inside numbered sections (`N-body methods: GEM` under `6 Evaluation`), by id.

    Each stands alone on its line, with white above and a paragraph of plain text right below; and one style of print
    sets at least two of them, since one bold line alone may be anything. Where a paper numbers its subsections, such
    lines are titles of paragraphs: bookmarks of three papers, and the hand-made truth of one, leave them out.
    """
    if not run or any(head.level > 1 for head in run):
        return set()
    numbered = {id(head) for head in run}
    first = min(head.order for head in run)
    found = [
        head for head in candidates
        if id(head) not in numbered and head.order > first and _heads_paragraph(head, lines, body)
    ]  # fmt: skip
    styles = Counter(head.style for head in found)
    return {id(head) for head in found if styles[head.style] >= 2}


def _heads_paragraph(head: Heading, lines: Sequence[TextLine], body: float) -> bool:
    text, top, bottom = head.text, head.lines[0], head.lines[-1]
    after = head.order + len(head.lines)
    if not (head.standalone and head.number is None and all(line.bold for line in head.lines) and after < len(lines)):
        return False
    if head.size < body - 0.3 or len(text) > 90 or not text[:1].isupper() or text[-1] in ".,;:" or len(head.lines) > 2:
        return False
    below, above = lines[after], lines[head.order - 1]
    step, white = below.baseline - bottom.baseline, top.baseline - above.baseline
    in_column = above.page == top.page and white > 0
    return (
        below.page == bottom.page and not below.bold and abs(below.size - body) < 0.6
        and 0 < step < 2.4 * head.size and abs(below.x0 - top.x0) < 2.2 * head.size
        and below.width > 8 * body and (not in_column or white > 1.45 * head.size)
    )  # fmt: skip


def _by_number(
    candidates: list[Heading], run: list[Heading], body: float, subheadings: set[int]
) -> list[Heading]:  # fmt: skip
    chosen = {id(head) for head in run}
    top = {head.style for head in run if head.level == 1}
    first = min(head.order for head in run)
    heads: list[Heading] = []
    depth = 1
    for head in candidates:
        if id(head) not in chosen:
            alike = head.order > first and head.number is None and _is_like(head, top, body)
            if alike or _is_unnumbered(head, top, body):
                head.level = 1
            elif id(head) in subheadings:
                head.level = depth + 1
            else:
                continue
            head.number, head.title = None, head.text
        if id(head) not in subheadings:
            depth = head.level
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
    if re.fullmatch(rf"({ABSTRACT})\W*", text, re.IGNORECASE):
        return True
    if not head.standalone or len(text) >= 60 or not KNOWN.match(text):
        return False
    large = head.size >= body + 0.5
    return any(abs(head.size - style[0]) <= 1 and (head.style[1] == style[1] or large) for style in top)


def _by_style(candidates: list[Heading], body: float) -> list[Heading]:
    known = {
        (head.style, re.sub("[^a-z]", "", head.text.lower())) for head in candidates
        if head.standalone and len(head.text) < 40 and head.size >= body and KNOWN.match(head.text)
    }  # fmt: skip
    counts = Counter(style for style, _ in known)
    if not counts:
        return _by_size(candidates, body)
    top = max(counts, key=lambda style: (counts[style] >= 2, style[0], style[1], counts[style]))
    first = min(head.order for head in candidates if head.style == top and KNOWN.match(head.text))
    heads: list[Heading] = []
    for head in candidates:
        early = head.order < first and not re.match("abstract", head.text, re.IGNORECASE)
        if not head.standalone or early or _is_sentence(head.text):
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


def _is_sentence(text: str) -> bool:
    """`The table below summarizes the performance of each model:` is set like a heading and is none."""
    return text[-1:] in ".,;:" and len(text.split()) >= _SENTENCE


def _by_size(candidates: list[Heading], body: float) -> list[Heading]:
    """Papers in another language: styles larger than the text that set three headings and more; levels by size."""
    large = [head for head in candidates if head.standalone and head.size >= body + 1 and head.lines[0].bold]
    counts = Counter(head.size for head in large)
    sizes = sorted((size for size, count in counts.items() if count >= 3), reverse=True)[:3]
    heads = [head for head in large if head.size in sizes]
    for head in heads:
        head.number, head.title, head.level = None, head.text, sizes.index(head.size) + 1
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
        if re.fullmatch(rf"({ABSTRACT})\W*", text, re.IGNORECASE):
            head.kind = SectionKind.ABSTRACT
        elif _REFERENCES.match(text):
            head.kind = SectionKind.REFERENCES
        elif in_appendix:
            head.kind = SectionKind.APPENDIX
