"""First pass over the whole paper: which parts report results, and which experiment each of them belongs to.

After EXP-Bench 3.2, stage 2.1: the broad takeaways come first (here: result tables, result sentences and the headlines
of abstract and conclusion), and everything that says something about the same experiment is stitched together, wherever
it stands. One result table, or one result subsection without a table, is one experiment. What is left out is reported
with its reason. No prose is composed here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from extractors._ownership import copied_statement, reran_statement
from extractors._reading import Line, Reading, label_key, references_in
from extractors._steps import is_markup
from extractors._surroundings import Surroundings
from extractors._vocabulary import FINDING, WINNER, find_metric
from extractors.claims import TextClaim, bound_or_range, find_numbers, normalize, text_claims
from extractors.result_tables import Refusal, ResultTable, Source, known_labels, read_result_table
from pipeline.paper import Table
from pipeline.schema import Problem, Severity

__all__ = ["Experiment", "SentenceClaim", "Takeaways", "about_others", "find_takeaways"]


class SentenceClaim(NamedTuple):
    """A number that a sentence states, with where and under which conditions."""

    line: Line
    claim: TextClaim
    conditions: tuple[tuple[str, str], ...]


@dataclass
class Experiment:
    """Everything the paper says about one experiment's result."""

    label: str
    """`Table 2`, or the title of the subsection."""
    table: ResultTable | None
    blocks: list[int]
    """Blocks in which it is described or discussed, in reading order."""
    statements: list[Line] = field(default_factory=list)
    """Result sentences: those that refer to the table, repeat its numbers or make the claims."""
    mentions: list[Line] = field(default_factory=list)
    """Every sentence that refers to the table or figure, results or not."""
    claims: list[SentenceClaim] = field(default_factory=list)
    headlines: list[Line] = field(default_factory=list)
    """Sentences of abstract, introduction and conclusion that repeat its numbers."""


class Takeaways(NamedTuple):
    """What the first pass found, in reading order, and what it refused."""

    experiments: tuple[Experiment, ...]
    problems: tuple[Problem, ...]


_COMPONENT: Final = "extract.takeaways"
_OTHERS: Final = re.compile(
    r"^\[\d+[^\]]*\]\s(?:\w+\s)?[a-z]+s?\b|"
    r"^(?:[A-Z][\w´’'-]+(?:\s(?:et al\.?|and [A-Z][\w´’'-]+))?,?\s*(?:\[\d|\(\d{4}))|"
    r"^(?:[A-Z][\w´’'-]+(?:\sand\s[A-Z][\w´’'-]+)?\set al\.?,?\s)|"
    r"\bfor reference\b|\b(?:prior|previous|earlier|existing|recent) (?:work|works|studies|methods|results)\b[^.]*"
    r"\b(?:report|achiev|obtain|show)|\b(?:as )?reported (?:by|in)\b|\bthe original (?:paper|authors)\b|"
    r"\bin (?:their|his|her) (?:paper|work)\b|\bauthors of\b|"
    r"^[^.]{0,60}(?:\[\d+\]|\([A-Z][^()]*\d{4}[a-z]?\)) (?:achiev|report|obtain|reach|show)",
    re.IGNORECASE,
)
_SUBJECT: Final = re.compile(
    r"(?:^|[,;:]\s|\band\s|\bwhile\s|\bwhereas\s)(?P<subject>(?:[^\s,;:.()]+\s){0,7}?[^\s,;:.()]+)"
    r"(?:\sat\s[^,;]{1,25}?)?\s(?:only\s|still\s)?"
    r"(?:achieves?|achieved|reach(?:es|ed)|obtain(?:s|ed)|attain(?:s|ed)|yield(?:s|ed)|gives?|gave|gets|got|has|had|"
    r"scores?|scored|records?|shows?|needs?|takes?|stays at|remains at)\b"
)
_NO_SUBJECT: Final = re.compile(
    r"^(?:it|this|that|these|those|we|they|which|table|figure|results?|both|all|each|there|one|order)\b|\bestimates?$",
    re.IGNORECASE,
)
_ON: Final = re.compile(
    r"\b[Oo]n (?:the )?(?P<data>(?:[^\s,;:.()]+\s){0,5}?[^\s,;:.()]+)"
    r"(?=\s(?:with|using|at|for|and|by|is|was|are|the|when|over|from|in|achiev\w+|reach\w+|yield\w+)\b|\s?[,;:.(]|$)"
)
_NOT_DATA: Final = re.compile(
    r"^(?:same|average|other hand|contrary|top|which|this|these|each|all|both|a|an|our|one|their|its|every|how)\b", re.I
)


_CUT: Final = re.compile(r"\b(?:of|in|for|to|with|the|an?|and|or|by|from|at|on|over|under|between)$", re.IGNORECASE)
"""A phrase that goes on behind its last word (`the TF-IDF arm of ...`) names nothing."""


_RELATIVE: Final = re.compile(r"\b(?:gains?|gap|improvements?)$", re.IGNORECASE)
"""A difference of two results, of which the sentence gives neither."""
_BY: Final = re.compile(
    r"\bby (?:as much as |up to |about |roughly |over |around |an? (?:\w+ ){1,3}of )?$", re.IGNORECASE
)


def about_others(sentence: str) -> bool:
    """Does a sentence report what somebody else measured?"""
    return bool(_OTHERS.search(sentence))


def find_takeaways(reading: Reading) -> Takeaways:
    """Find the experiments whose results the paper reports.

    Args:
        reading: the paper as blocks and sentences.
    """
    problems: list[Problem] = []
    experiments = _table_experiments(reading, problems)
    loose = _attach_sentences(reading, experiments, problems)
    experiments += _text_experiments(reading, loose, problems)
    for experiment in experiments:
        experiment.blocks = sorted(set(experiment.blocks))
        experiment.statements = sorted(set(experiment.statements))
    _attach_headlines(reading, experiments)
    return Takeaways(tuple(experiments), tuple(problems))


def _refuse(problems: list[Problem], where: str, message: str) -> None:
    problems.append(Problem(component=_COMPONENT, where=where, message=message, severity=Severity.INFO))


# --- tables ----------------------------------------------------------------------------------------------------------


def _table_experiments(reading: Reading, problems: list[Problem]) -> list[Experiment]:
    experiments = []
    around = Surroundings.of(reading, known_labels(reading.document.tables))
    introduces = _introduced(reading)
    for table in reading.document.tables:
        key = label_key(table.label)
        mentions = [line for line in reading.lines if key in references_in(line.text)]
        where = f"{table.label} (page {table.page})"
        if mentions and all(reading.role(line) == "skip" for line in mentions):
            _refuse(problems, where, "no task: it is discussed only where other work is discussed")
            continue
        copied, reran = copied_statement(reading, mentions, table), reran_statement(reading, mentions)
        source = Source(copied.text if copied else "", reran.text if reran else "")
        found = read_result_table(table, around.at(reading, table.caption, mentions), source)
        if isinstance(found, Refusal):
            _refuse(problems, where, f"no task: {found.reason}")
            continue
        if found.copied:
            _refuse(problems, where, f"{found.copied} numbers left out, other papers': {found.copied_reason}")
        blocks = [line.block for line in mentions if reading.role(line) not in ("framing", "skip")]
        blocks = [block for block in blocks if key in introduces.get(block, (key,))] or blocks[:1]
        experiments.append(Experiment(table.label, found, blocks or _titled_blocks(reading, table), mentions=mentions))
    return experiments


def _introduced(reading: Reading) -> dict[int, tuple[str, ...]]:
    """Block -> the tables that are mentioned there first: the block is theirs, whatever else it cites."""
    first: dict[str, int] = {}
    for line in reading.lines:
        if reading.role(line) not in ("framing", "skip"):
            for key in sorted(references_in(line.text)):
                if key.startswith("table"):
                    first.setdefault(key, line.block)
    owners: dict[int, list[str]] = {}
    for key, block in first.items():
        owners.setdefault(block, []).append(key)
    return {block: tuple(keys) for block, keys in owners.items()}


def _titled_blocks(reading: Reading, table: Table) -> list[int]:
    """For a table that no sentence refers to: the result blocks on its page whose title says what its caption says.

    Without such a title none: what stands on the same page is as often about something else.
    """
    said = _long_words(table.caption)
    lines = [line for line in reading.lines if line.page == table.page and reading.role(line) == "evaluation"]
    return [line.block for line in lines if _long_words(reading.blocks[line.block].title) & said]


def _long_words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]{6,}", text.lower())) - {"results", "performance", "comparison", "different"}


def _table_numbers(experiment: Experiment) -> frozenset[str]:
    """Printed numbers that are distinctive enough (three digits) to recognise a table by, rounded forms included."""
    numbers: set[str] = set()
    for cell in experiment.table.cells if experiment.table else ():
        value, decimals = abs(cell.quantity.value), cell.quantity.decimals
        for places in range(1, decimals + 1):
            text = f"{value:.{places}f}"
            if len(re.sub(r"\D", "", text).lstrip("0")) >= (2 if places == decimals else 3):
                numbers.add(text)
    return frozenset(numbers)


# --- sentences -------------------------------------------------------------------------------------------------------


def _attach_sentences(
    reading: Reading, experiments: list[Experiment], problems: list[Problem]
) -> dict[int, list[tuple[Line, list[TextClaim]]]]:
    """Give each result sentence to the table it speaks of; return those that speak of none, by block."""
    numbers = [_table_numbers(experiment) for experiment in experiments]
    loose: dict[int, list[tuple[Line, list[TextClaim]]]] = {}
    symbols: dict[int, dict[str, str]] = {}
    for line in reading.lines:
        role = reading.role(line)
        if role in ("skip", "framing") or is_markup(line.text):
            continue
        if line.block not in symbols:
            symbols[line.block] = _metric_symbols(reading, line.block)
        claims = text_claims(line.text, symbols[line.block])
        if claims and about_others(line.text):
            _refuse(problems, f"page {line.page}", f"not ours to reproduce, it reports other work: {_short(line.text)}")
            continue
        keys = references_in(line.text)
        # `73.4M papers` counts something: it is no table's value, rounded
        numbered = [n for n in find_numbers(line.text) if n.decimals and n.unit not in ("K", "M", "B")]
        printed = {f"{abs(n.value):.{n.decimals}f}" for n in numbered}
        homes = _homes(line, keys, printed, experiments, numbers, _other_measures(claims))
        repeats = any(printed & known for known in numbers)
        states = bool(claims) or bool(WINNER.search(line.text)) or bool(printed and FINDING.search(line.text))
        states = states or (repeats and role == "evaluation")
        for home in homes:
            if line.block not in home.blocks and printed and label_key(home.label) in keys:
                home.blocks.append(line.block)  # the same digits alone may be another experiment's block
            if states:
                home.statements.append(line)
        if not homes and claims and _is_result(line, role, claims):
            loose.setdefault(line.block, []).append((line, claims))
    return loose


def _homes(
    line: Line, keys: frozenset[str], printed: set[str], experiments: list[Experiment],
    numbers: list[frozenset[str]], measures: dict[str, set[str]],
) -> list[Experiment]:  # fmt: skip
    """The experiments a sentence speaks of: the tables it names, else the one whose numbers it repeats.

    Among several of those the one discussed in the same block, then the one with most of the numbers.
    """
    named = [e for e in experiments if e.table and label_key(e.label) in keys]
    if named:
        return named
    ranked = [
        (line.block not in e.blocks, -len(printed & known), position)
        for position, (e, known) in enumerate(zip(experiments, numbers, strict=True))
        if any(_measures_alike(e, measures.get(number)) for number in printed & known)
    ]
    return [experiments[min(ranked)[2]]] if ranked else []


def _other_measures(claims: list[TextClaim]) -> dict[str, set[str]]:
    """Printed number -> the words of the metric that its sentence ties it to."""
    return {
        f"{abs(c.number.value):.{c.number.decimals}f}": set(re.findall(r"[a-z0-9]+", c.metric.lower())) for c in claims
    }


def _measures_alike(experiment: Experiment, words: set[str] | None) -> bool:
    """May a number of this metric stand in the table? The same digits in another measure are a coincidence."""
    if words is None or experiment.table is None:
        return True
    table = experiment.table
    names = " ".join([*(metric.name for metric in table.metrics), table.table.caption]).lower()
    return any(re.search(rf"\b{re.escape(re.sub('(?:ies|y|s)$', '', word))}", names) for word in words)


def _metric_symbols(reading: Reading, block: int) -> dict[str, str]:
    """Letters that name a metric in a block: `d` after `Cohen's d`."""
    symbols: dict[str, str] = {}
    for line in reading.block_lines(block):
        for _, _, phrase in find_metric(line.text):
            last = phrase.split()[-1]
            if " " in phrase and len(last) == 1:
                symbols[last] = phrase
    return symbols


def _is_result(line: Line, role: str, claims: list[TextClaim]) -> bool:
    """Outside evaluation sections a number counts as a result only when it is measured, not set."""
    measured = [c for c in claims if c.number.decimals > 0 or c.number.unit == "%" or c.number.uncertainty is not None]
    if not measured or re.search(r"\bwe (?:set|fix|use|choose|require)\b|\b(?:is|are|was|were) set to\b", line.text):
        return False
    return role == "evaluation" or bool(FINDING.search(line.text)) or line.text[:40].lower().startswith("result")


def _text_experiments(
    reading: Reading, loose: dict[int, list[tuple[Line, list[TextClaim]]]], problems: list[Problem]
) -> list[Experiment]:
    experiments = []
    for block in sorted(loose):
        for group in _split_by_metric(loose[block]):
            lines = [line for line, _ in group]
            experiment = Experiment(reading.blocks[block].title or "Results", None, [block], statements=lines)
            experiment.claims = _sentence_claims(group, problems)
            figures = frozenset(key for line in lines for key in references_in(line.text))
            experiment.mentions = [line for line in reading.lines if figures & references_in(line.text)]
            if experiment.claims:
                experiments.append(experiment)
            else:
                _refuse(
                    problems, f"page {lines[0].page}", f"no task: only bounds or ambiguous: {_short(lines[0].text)}"
                )
    return experiments


def _split_by_metric(
    found: list[tuple[Line, list[TextClaim]]],
) -> list[list[tuple[Line, list[TextClaim]]]]:
    """Paragraphs of one block that share no metric are experiments of their own."""
    groups: list[tuple[set[str], list[tuple[Line, list[TextClaim]]]]] = []
    for line, claims in found:
        names = {claim.metric.lower() for claim in claims}
        for known, members in groups:
            if members[-1][0].passage == line.passage or known & names:
                known.update(names)
                members.append((line, claims))
                break
        else:
            groups.append((names, [(line, claims)]))
    return [members for _, members in groups]


def _sentence_claims(group: list[tuple[Line, list[TextClaim]]], problems: list[Problem]) -> list[SentenceClaim]:
    found: list[SentenceClaim] = []
    data: str | None = None
    for line, claims in group:
        data = _data_of(line.text) or data
        for position, claim in enumerate(claims):
            reason = bound_or_range(claim)
            if reason is not None:
                _refuse(
                    problems, f"page {line.page}", f"{claim.number.text} ({claim.metric}) is {reason}: kept in words"
                )
                continue
            before = line.text[: claim.number.start]
            if _RELATIVE.search(claim.metric) or (_BY.search(before) and WINNER.search(line.text)):
                _refuse(problems, f"page {line.page}", f"{claim.number.text} ({claim.metric}) compares two results")
                continue
            conditions = list(claim.conditions)
            subject = _subject_of(line.text, claim.number.start)
            if subject:
                conditions.insert(0, ("method", subject))
            if data:
                conditions.append(("data", data))
            if re.search(r"\b(?:ranges?|varies|between)\b", line.text) and len(claims) == 2:
                conditions.append(("statistic", ("minimum", "maximum")[position]))
            found.append(SentenceClaim(line, claim, tuple(conditions)))
    seen: dict[tuple[str, tuple[tuple[str, str], ...]], set[str]] = {}
    for item in found:
        seen.setdefault((item.claim.metric.lower(), item.conditions), set()).add(normalize(item.claim.number.text))
    kept = []
    for item in found:
        if len(seen[item.claim.metric.lower(), item.conditions]) > 1:
            message = f"{item.claim.number.text} ({item.claim.metric}): its sentence does not say what sets it apart"
            _refuse(problems, f"page {item.line.page}", message)
        else:
            kept.append(item)
    return kept


def _subject_of(sentence: str, before: int) -> str | None:
    """What reached the number: the noun phrase in front of `achieves`, when it is a thing and not a metric."""
    matches = [m for m in _SUBJECT.finditer(sentence) if m.end() <= before]
    if not matches:
        return None
    subject = re.sub(r"^(?:the|our|a|an)\s", "", matches[-1]["subject"].strip(), flags=re.IGNORECASE)
    if len(subject) < 2 or _NO_SUBJECT.search(subject) or find_metric(subject):
        return None
    return subject


def _data_of(sentence: str) -> str | None:
    for match in _ON.finditer(sentence):
        data = match["data"].strip()
        if not _NOT_DATA.search(data) and re.search(r"[A-Za-z]{3}", data) and not _CUT.search(data):
            return data
    return None


def _attach_headlines(reading: Reading, experiments: list[Experiment]) -> None:
    for line in reading.lines:
        if reading.role(line) != "framing":
            continue
        printed = {f"{abs(n.value):.{n.decimals}f}" for n in find_numbers(line.text) if n.decimals}
        keys = references_in(line.text)
        for experiment in experiments:
            own = set(_table_numbers(experiment)) | {
                f"{abs(c.claim.number.value):.{c.claim.number.decimals}f}" for c in experiment.claims
            }
            if printed & own or (experiment.table and label_key(experiment.label) in keys):
                experiment.headlines.append(line)


def _short(text: str) -> str:
    return text if len(text) <= 90 else text[:87].rstrip() + "..."
