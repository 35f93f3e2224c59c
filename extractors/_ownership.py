"""Which rows of a table the authors measured themselves, and which they took from other papers.

A leaderboard lists numbers that others published; repeating *those* is not the experiment of this paper. Three signs,
each written in the paper: a mark with its legend, a sentence that says where the baselines' numbers are from, and rows
that carry a citation where others do not - unless the paper says that it ran them itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from extractors._reading import Line, Reading, label_key, references_in
from pipeline.paper import Table

__all__ = ["cited_in", "copied_statement", "is_own", "own_names", "reran_statement", "uncited", "without_citation"]

_CITATION: Final = re.compile(
    r"\s*(?:\[\d+(?:\s?[,;–-]\s?\d+)*\]|\[[A-Z][^\[\]]*(?:19|20)\d\d[a-z]?\]|\((?:[A-Z][^()]{1,60}?,? ?)?(?:19|"
    r"20)\d\d[a-z]?\)|"
    r"\([A-Z][^()]{1,60}? et al\.?[^()]*\)|[A-Z][\w´’'-]+ et al\.?,? \(?(?:19|20)\d\d[a-z]?\)?)"
)
_OURS: Final = re.compile(r"\bours?\b|\bproposed\b|\bthis (?:work|paper)\b", re.IGNORECASE)
_NUMBERS: Final = r"(?:results?|numbers?|scores?|values?|performances?|accurac(?:y|ies)|metrics?)"
_SOURCE: Final = (
    r"(?:(?:original|corresponding|respective|previous|prior|their|published|existing|other|own)\s(?:\w+\s)?"
    r"(?:papers?|works?|publications?|articles?|literature|stud(?:y|ies)|reports?|authors)|literature|leaderboards?|"
    r"[A-Z][\w´’'-]+ (?:et al\.?|& |and [A-Z])[^.]{0,40}\d{4}|\[\d+)"
)
_ANY: Final = r"(?:[^.]|(?<=\bal)\.)"  # `et al.` ends no sentence
_COPIED: Final = re.compile(
    rf"\b(?:cit(?:e|ed|ing)|cop(?:y|ied)|quot(?:e|ed)|take|took|borrow(?:ed)?|use|used|adopt(?:ed)?|report|list|"
    rf"include)\b"
    rf"{_ANY}{{0,40}}\b{_NUMBERS}\b{_ANY}{{0,40}}\b(?:reported|published|given|presented|provided|stated|"
    rf"from)\b{_ANY}{{0,30}}"
    rf"{_SOURCE}|"
    rf"\b{_NUMBERS}\b{_ANY}{{0,80}}\b(?:are|were|is|was)\b{_ANY}{{0,30}}\b(?:taken|copied|quoted|cited|borrowed|"
    rf"reported|"
    rf"obtained|collected)\b{_ANY}{{0,15}}\b(?:from|in|by)\b{_ANY}{{0,30}}{_SOURCE}",
    re.IGNORECASE,
)
_RERAN: Final = re.compile(
    r"\bre-?(?:implement|run|ran|train|evaluat|produc)(?:ed?|s|d|ing)?\b[^.]{0,60}\b(?:baselines?|methods?|"
    r"models?|them|"
    r"algorithms?|competitors?|approach(?:es)?|results)\b|\bour (?:own )?(?:re-?)?implementations?\b|"
    r"\b(?:official|released|public(?:ly available)?|original|authors[’']) (?:code|implementation)|"
    r"\bwe (?:train|run|ran|trained|evaluated?|tuned?|implement(?:ed)?) (?:all|each|every|the|these|both|several)?\s?"
    r"(?:the )?(?:\w+ )?(?:baselines?|methods|models|competitors|compared)",
    re.IGNORECASE,
)
_PHRASE: Final = r"(?:(?!(?:for|in|on|to|with|using|by|based|from|that|which|where|and)\b)[\w’'-]+\s){0,10}?"
_NAMED: Final = re.compile(
    rf"\b(?:propos|present|introduc|develop|design)(?:es?|ed|ing)?\s{_PHRASE}"
    r"(?:(?:called|named|dubbed|termed|namely|i\.e\.,?),?\s(?:the\s|as\s)?|\(|"
    r",\s)?[“\"‘']?(?P<name>[A-Z][\w+-]*[A-Z0-9][\w+-]*)"
    r"(?P<rest>[^.]{0,60})|"
    r"\b(?:call|name|dub|term|denote|refer to)(?:s|ed|d)?\s(?:it|this|our|the|them)\s(?:\w+\s){0,4}?(?:as\s|by\s)?"
    r"(?:the\s)?(?P<called>[A-Z][\w+-]*[A-Z0-9][\w+-]*)"
)
_IS_DATA: Final = re.compile(r"\b(?:data ?sets?|corpus|corpora|benchmarks?|collection)\b", re.IGNORECASE)


def without_citation(label: str) -> str:
    """A row label without the reference that authors put behind a baseline's name."""
    return _CITATION.sub("", label).strip() or label.strip()


def uncited(label: str) -> bool:
    """Does a row label carry no reference to another paper?"""
    return _CITATION.search(label) is None


def own_names(reading: Reading) -> frozenset[str]:
    """Names of what a paper proposes: before the colon of its title, or where it says that it proposes it."""
    names: set[str] = set()
    head, colon, _ = reading.document.title.partition(":")
    titled = {head.strip()} if colon and len(head.split()) <= 3 and re.search(r"[A-Z]", head) else set()
    for line in reading.lines:
        if reading.role(line) in ("framing", "method") and re.search(r"\b(?:we|our|this paper)\b", line.text, re.I):
            for match in _NAMED.finditer(line.text):
                if not _IS_DATA.search(match.group()):
                    names.add(match["name"] or match["called"])
    cited = {
        m[1] for line in reading.lines for m in re.finditer(r"([A-Z][\w+-]*)\s?(?:\[\d|\([A-Z][^()]*\d{4})", line.text)
    }
    generic = re.compile(r".*[A-Z]s|.")  # a plural (`CNNs`) names a class of things
    return frozenset(titled | {name for name in names if not generic.fullmatch(name) and name not in cited})


def cited_in(text: str, label: str) -> bool:
    """Does a paper's prose put a reference behind a name: `DEVISE [10]`, `kernels (WL) (Shervashidze et al., 2011)`?"""
    name = rf"(?<![\w-]){re.escape(without_citation(label))}(?![\w-])"
    return re.search(rf"{name}[\w)]{{0,2}}\s?(?:\[\d|\([A-Z][^()]{{2,60}}\d{{4}})", text) is not None


def is_own(label: str, own: frozenset[str]) -> bool:
    """Is a row the authors' own: marked as ours, or named after what the paper proposes (`RMN (S+L)`)?"""
    if _OURS.search(label):
        return True
    return any(re.match(rf"(?:the )?{re.escape(name)}(?![A-Za-z])", label, re.IGNORECASE) for name in own)


def _same_part(reading: Reading, lines: Sequence[Line]) -> set[tuple[int, ...]]:
    return {reading.blocks[line.block].path[:1] for line in lines if reading.role(line) != "framing"}


def copied_statement(reading: Reading, mentions: Sequence[Line], table: Table) -> Line | None:
    """The sentence that says the baselines' numbers of a table are other papers'; None when there is none.

    It counts where it stands in the same part of the paper as the table's discussion, or on the table's page, and names
    no other table.
    """
    key = label_key(table.label)
    parts = _same_part(reading, mentions)
    for line in reading.lines:
        if reading.role(line) in ("skip", "framing") or not _COPIED.search(line.text):
            continue
        tables = {k for k in references_in(line.text) if k.startswith("table")}
        near = not parts or reading.blocks[line.block].path[:1] in parts or line.page == table.page
        if near and (not tables or key in tables):
            return line
    return None


def reran_statement(reading: Reading, mentions: Sequence[Line]) -> Line | None:
    """The sentence that says the authors ran the baselines themselves; None when there is none."""
    parts = _same_part(reading, mentions)
    for line in reading.lines:
        near = not parts or reading.blocks[line.block].path[:1] in parts
        if near and reading.role(line) not in ("skip", "framing") and _RERAN.search(line.text):
            return line
    return None
