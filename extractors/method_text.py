"""How an experiment is done: the sentences and settings of the paper that say so, without its results.

The experiment's own blocks come first, then setup sections that are about all experiments, then whatever the lexical
index brings up. A sentence that states any result of the paper, or that would give the draft's answer away, is no
method.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from extractors._nearby import SETUP_TITLE, context_blocks, is_generic_top, top_title
from extractors._neighbours import Neighbours, neighbours_of, proper_names
from extractors._reading import Line, Reading, label_key, references_in, role_of_title
from extractors._scope import Scope
from extractors._steps import is_markup, is_talk, is_whole_sentence, measures, sets_only, tells_step
from extractors._vocabulary import FINDING, OBSERVED, WINNER, direction_of, find_metric
from extractors.answers import states_answer
from extractors.claims import find_numbers, normalize
from extractors.prose import adapt_sentence
from extractors.refining import Index, find_settings, settings_of_table
from extractors.takeaways import Experiment, about_others
from extractors.variables import Plan
from pipeline.paper import PassageKind, SectionKind, Table
from pipeline.task import Draft, Hyperparameter

__all__ = ["Context", "MethodLine", "caption_text", "method_lines", "settings_for"]

_MAX_METHOD_SENTENCES: Final = 12
_MAX_APPROACH_SENTENCES: Final = 4
_LEAST_WORTH: Final = 0.4
"""Of the best hit's score: what a section on the approach must reach to be about this experiment."""
_MAX_METHOD_CHARACTERS: Final = 2200


class Context(NamedTuple):
    """What is collected once per paper and used for every draft."""

    reading: Reading
    lookup: Index
    names: dict[str, str]
    """Metric or abbreviation -> how the paper spells it out."""
    settings_tables: tuple[Table, ...]
    discussed: frozenset[int]
    """Blocks that refer to a result table: each is about that table's experiment."""
    stated: frozenset[int]
    """Indices of all result sentences: what states one experiment's result is no method of another."""
    labels: frozenset[str] = frozenset()
    """Names of all methods and data sets that the paper's result tables compare (see `extractors._scope`)."""
    data: frozenset[str] = frozenset()
    """Names of the paper's data sets."""
    results: frozenset[str] = frozenset()
    """Keys (`table 2`) of the tables that report results."""
    experiments: tuple[Experiment, ...] = ()
    """All experiments of the paper, in reading order."""
    unread: tuple[Table, ...] = ()
    """Further tables of results, of which no experiment could be made."""


class MethodLine(NamedTuple):
    """A sentence of the paper and how it reads as an instruction."""

    line: Line
    text: str


def _recase(reading: Reading, text: str) -> str:
    """Captions set in capitals, as the body writes the same words."""
    letters = re.sub(r"[^A-Za-z]", "", text)
    if len(letters) < 12 or sum(c.isupper() for c in letters) < 0.7 * len(letters):
        return text
    body = " ".join(line.text for line in reading.lines)
    words = set(re.findall(r"[\w´’'-]+", body))
    by_lower: dict[str, str] = {}
    for word in sorted(words):
        by_lower.setdefault(word.lower(), word)
    out = []
    for token in re.split(r"(\W+)", text):
        lower = token.lower()
        plain = lower if lower in words else by_lower.get(lower, lower)
        out.append(plain if token.isupper() and len(token) > 1 else token)
    return "".join(out)


def caption_text(reading: Reading, table: Table) -> str:
    """A caption without its label, words in capitals written as the body writes them."""
    return re.sub(r"^\s*(?:TABLE|Table|Tab\.)\s*[\w.]+\s*[:.|–-]?\s*", "", _recase(reading, table.caption))


def _is_method(reading: Reading, line: Line, stated: frozenset[int], scope: Scope | None = None) -> bool:
    """Does a sentence say how something is done, without saying what came out?

    With a `scope`, what a setup says of a compared method by name (`Huber is ...`) counts as well.
    """
    text = _FLOAT.sub("", line.text)
    role = reading.role(line)
    if role == "setup" and not Neighbours.is_common(reading.blocks[line.block].title):
        tells = any(other.order in stated for other in reading.block_lines(line.block))
        role = "evaluation" if tells else role
    if line.order in stated or role in ("skip", "framing") or re.match(r"[a-z]|\d+ [a-z]", line.text):
        return False
    if not is_whole_sentence(text) or normalize(text).rstrip(".") == normalize(reading.blocks[line.block].title):
        return False
    if (
        text.endswith(":")
        or is_talk(text)
        or is_markup(text)
        or about_others(re.sub(r"^[A-Z]\w+:\s", "", text))
        or measures(text)
    ):
        return False
    if role == "evaluation" and (FINDING.search(text) or OBSERVED.search(text) or _CONCEDES.match(text)):
        return False
    described = role in ("setup", "method")
    named = scope is not None and (scope.holds(text) if role == "setup" else described and scope.names(text))
    return named or tells_step(text, as_own=described or text != line.text)


_CONCEDES: Final = re.compile(r"(?:Although|While|Despite|In contrast|Even|Overall|Nevertheless|Still)\b(?! each)")
"""How sentences of a results section begin that weigh what came out."""


_APPROACH_TITLE: Final = re.compile(
    r"^(?:the |our )?(?:proposed )?(?:methods?|methodology|approach|algorithm)\b|\bour (?:method|approach)|proposed",
    re.IGNORECASE,
)


def _describes_approach(reading: Reading, line: Line) -> bool:
    """A step of the paper's own approach, from the section that describes it; formulas do not survive as prose."""
    top = top_title(reading, line)
    step = reading.role(line) == "method" and bool(_APPROACH_TITLE.search(top))
    return step and not re.search(r"[=≤≥∈∑∏′|]|\w\(\w", line.text) and not OBSERVED.search(line.text)


_FLOAT: Final = re.compile(r"^(?:Tables?|Figures?|Fig\.)\s[\w.]+\s(?=(?:var|compar|remov|replac|chang|add)[a-z]*s\s)")


def _speaks_of(context: Context, experiment: Experiment) -> frozenset[int]:
    """Passages that refer to results, but only to those of other tables or figures: they tell of those."""
    reading = context.reading
    own = {label_key(experiment.label)} if experiment.table is not None else set()
    keys: dict[int, set[str]] = {}
    for line in reading.lines:
        if reading.role(line) == "evaluation":
            found = {key for key in references_in(line.text) if key.startswith("figure") or key in context.results}
            keys.setdefault(line.passage, set()).update(found)
    return frozenset(passage for passage, found in keys.items() if found and not found & own) if own else frozenset()


def _subject(reading: Reading, line: Line) -> str:
    """What a paragraph is about: the title of its block, or the words that its first sentence begins with."""
    start = " ".join(reading.document.passages[line.passage].text.split()[:4])
    return f"{reading.blocks[line.block].title} {start}"


_POINTS_BACK: Final = re.compile(r"^(?:(?:Then|Also|And|Here),?\s)?(?:it|they|this|these)\s|,\sthey\s", re.IGNORECASE)


def _is_comparison(reading: Reading, line: Line) -> bool:
    titles = f"{reading.blocks[line.block].title} {reading.section_title(line.block) or ''}"
    return bool(_COMPARES.search(line.text) or re.search(r"baseline|compar(?:ed|ison) ", titles, re.IGNORECASE))


_COMPARES: Final = re.compile(
    r"\bcompar\w+\b.{0,80}\b(?:methods?|approach(?:es)?|algorithms?|baselines?|models?|art)\b|\bbaselines?\b|"
    r"\bagainst\b.{0,40}\b(?:methods|approaches|algorithms|models)\b|"
    r"\b(?:algorithms|methods|models|baselines) are selected",
    re.IGNORECASE,
)


def _query(reading: Reading, experiment: Experiment, plan: Plan) -> str:
    words = [metric.name for metric in plan.metrics]
    words += [value for axis in plan.axes for value in (axis.name, *axis.values)]
    words += [value for pair in plan.fixed for value in pair]
    words += [plan.data or "", *(reading.blocks[b].title for b in experiment.blocks)]
    if experiment.table is not None:
        words.append(caption_text(reading, experiment.table.table))
    return " ".join(words)


def method_lines(
    context: Context, experiment: Experiment, plan: Plan, probe: Draft, scope: Scope
) -> list[MethodLine]:  # fmt: skip
    """Sentences on how to do it, few and certain: of the experiment's own blocks, then of the setup that all share.

    What a sentence leaves out, the code tells; one that belongs to another experiment misleads. Only where those two
    places say nothing, the sections on the paper's own approach are asked.
    """
    reading = context.reading
    ranked = context.lookup.search(_query(reading, experiment, plan), 60)
    top = max((value for value, _ in ranked), default=1.0)
    score = {line.order: value / top for value, line in ranked}
    near = neighbours_of(reading, context.experiments, experiment, context.unread, plan.data or "")
    lines = _without_others(reading, list(_asked(context, experiment, scope, near)), near, scope)
    usable = [
        line
        for line in lines
        if not sets_only(line.text, scope.symbols)
        and not _measures_else(plan, context, line.text)
        and _is_method(reading, line, context.stated, scope)
    ]
    orders = {line.order for line in usable}
    # `they calculate ...`: of whom, the sentence before says; without it the reader is lost
    usable = [line for line in usable if not _POINTS_BACK.search(line.text) or line.order - 1 in orders]
    own = [(2.0 + score.get(line.order, 0.0), line) for line in usable if line.block in experiment.blocks]
    shared = [(score.get(line.order, 0.0), line) for line in usable if line.block not in experiment.blocks]
    candidates = sorted([*own, *shared], key=lambda item: (-item[0], item[1].order))
    chosen = _adapted(candidates, probe, scope)
    if not chosen:
        wide = [
            (worth / top, line) for worth, line in ranked
            if worth >= _LEAST_WORTH * top and _describes_approach(reading, line)
            and scope.fits(line.text) and not near.claims(line.text)
            and _is_method(reading, line, context.stated, scope)
        ]  # fmt: skip
        chosen = _adapted(wide[:_MAX_APPROACH_SENTENCES], probe, scope)
    return sorted(chosen)


_MEASURED_BY: Final = re.compile(
    r"\b(?:report|measur|evaluat|assess|quantif|metrics?\b|in terms of|as (?:an? |the )?criterion)", re.IGNORECASE
)


def _measures_else(plan: Plan, context: Context, text: str) -> bool:
    """Does a sentence say how something is measured that this experiment does not report, and nothing that it does?"""
    named = [phrase.lower() for _, _, phrase in find_metric(text) if direction_of(phrase)]
    if not named or not _MEASURED_BY.search(text):
        return False
    own = " ".join(f"{metric.name} {context.names.get(metric.name, '')}" for metric in plan.metrics).lower()
    own = f"{own} {plan.caption.lower()}"
    return not any(re.sub(r"(?:ies|y|s)$", "", phrase.split()[-1]) in own for phrase in named)


def _without_others(reading: Reading, lines: Sequence[Line], near: Neighbours, scope: Scope) -> list[Line]:
    """The sentences that no other experiment claims.

    After a sentence on something else, what leans on it is about that too (`The images are resized ...`; where data
    sets are described, everything), until a sentence names a thing of this experiment or speaks of all.
    """
    kept: list[Line] = []
    lost: int | None = None
    for line in lines:
        leans = _LEANS.match(line.text) or _DATA_PART.search(reading.blocks[line.block].title)
        back = _OF_ALL.search(line.text) or proper_names(line.text) & near.own or scope.holds(line.text)
        if near.claims(line.text) or not scope.fits(line.text) or (scope.own_data and near.lists_others(line.text)):
            lost = line.passage
        elif line.passage != lost or back or not leans:
            lost = None if back or line.passage != lost else lost
            kept.append(line)
    return kept


_LEANS: Final = re.compile(
    r"(?:The|This|These|Those|They|It|Its|Their|Both|Here|Then|Such|Following|Each of|As before)\b"
    r"(?! (?:dependent|same))"
)
_OF_ALL: Final = re.compile(
    r"\b(?:all|each|every|any) (?:\w+ ){0,2}(?:experiments?|methods?|models?|runs?|data ?sets?|cases|settings|"
    r"configurations?|algorithms?|baselines?)\b",
    re.IGNORECASE,
)
_DATA_PART: Final = re.compile(r"\bdata ?sets?\b|^data\b|\bcorpora\b|\bbenchmarks?\b", re.IGNORECASE)


def _asked(context: Context, experiment: Experiment, scope: Scope, beside: Neighbours) -> Iterator[Line]:
    """The sentences that may be asked for a method: of the experiment's own blocks and of shared setup blocks."""
    reading = context.reading
    elsewhere = _speaks_of(context, experiment)
    near = context_blocks(reading, experiment)
    told = {reading.lines[order].block for order in context.stated}
    alone = experiment.table is not None and experiment.table.copied > 0
    for line in reading.lines:
        own = line.block in experiment.blocks
        if reading.document.passages[line.passage].kind is PassageKind.FOOTNOTE:
            continue  # an aside; which sentence it belongs to is lost
        if line.passage in elsewhere or (alone and _is_comparison(reading, line)):
            continue  # another float's experiment, or a comparison with numbers that were not measured here
        block = reading.blocks[line.block]
        common = role_of_title(block.title) == "setup" and beside.is_common(block.title)
        if not own and (line.block not in near or (not common and line.block in context.discussed | told)):
            continue  # a block with a subject that tells a result is that experiment's own
        parts = [block.title, *(reading.document.sections[index].title for index in block.path[1:])]
        if not own and not all(map(beside.concerns, parts)):
            continue  # a setup part with a subject of its own, of which this experiment says nothing
        if not own and reading.role(line) == "evaluation" and not _opens(reading, line):
            continue  # that is how another experiment is done
        titles = f"{block.title} {reading.section_title(line.block) or ''}"
        if re.search(r"\bdiscussions?\b", titles, re.IGNORECASE):
            continue  # there the authors explain, they do not do
        if scope.runs_on(_subject(reading, line)):
            yield line


def _opens(reading: Reading, line: Line) -> bool:
    """Does a sentence stand directly under `Experiments`, before the subsections? It speaks of all of them."""
    block = reading.blocks[line.block]
    return (
        len(block.path) == 1
        and bool(SETUP_TITLE.search(top_title(reading, line)))
        and block.title == top_title(reading, line)
    )


def _adapted(candidates: Sequence[tuple[float, Line]], probe: Draft, scope: Scope) -> list[MethodLine]:
    """The best candidates as instructions, without those that give the answer away, up to the limits."""
    chosen: list[MethodLine] = []
    length = 0
    for _, line in candidates:
        text = adapt_sentence(scope.freed(line.text))
        if text is None or states_answer(text, probe) or length + len(text) > _MAX_METHOD_CHARACTERS:
            continue
        chosen.append(MethodLine(line, text))
        length += len(text)
        if len(chosen) == _MAX_METHOD_SENTENCES:
            break
    return chosen


def settings_for(
    context: Context, experiment: Experiment, plan: Plan, method: Sequence[MethodLine], scope: Scope
) -> tuple[Hyperparameter, ...]:
    """Settings from the method sentences, then from what re-querying the paper for settings brings up."""
    reading = context.reading
    stated = context.stated
    beside = neighbours_of(reading, context.experiments, experiment, context.unread, plan.data or "")
    varying = frozenset(
        re.sub(r"s$", "", name.lower())
        for name in (
            *(a.name for a in (*plan.axes, *plan.sweeps)),
            *_symbols_of(plan),
            *scope.symbols,
            *plan.attributes,
            *(n for n, _ in plan.fixed),
        )
    )
    claimed = frozenset(n.text for claim in plan.claims for n in find_numbers(claim.text))
    lines = [item.line for item in method]
    near = context_blocks(reading, experiment)
    if not is_generic_top(reading, experiment):
        setups = {b for b in near if reading.blocks[b].path and role_of_title(
            reading.document.sections[reading.blocks[b].path[0]].title) == "setup"}  # fmt: skip
        near = setups | set(experiment.blocks)
    asked = _without_others(reading, list(_asked(context, experiment, scope, beside)), beside, scope)
    lines += [line for line in asked if line.block in near and line.order not in stated]
    own = frozenset(line.order for line in lines if line.block in near)
    for question in ("random seeds repetitions averaged over runs", "learning rate batch size epochs optimizer",
                     "hyper-parameter is set to", "default value threshold regularization"):  # fmt: skip
        query = f"{question} {_query(reading, experiment, plan)}"
        for _, line in context.lookup.search(query, 12):
            if _is_common_setup(reading, line, experiment) and line.order not in stated and not about_others(line.text):
                lines.append(line)
    usable = [
        line for line in dict.fromkeys(lines) if scope.fits(line.text) and not beside.claims(line.text)
        and (line.block in experiment.blocks or beside.concerns(reading.blocks[line.block].title))
        and (_is_method(reading, line, stated) or (reading.role(line) == "setup" and not _only_results(line)))
    ]  # fmt: skip
    compared = [axis.values for axis in plan.axes if axis.kind in ("method", "dataset") and len(axis.values) > 1]
    found = list(find_settings(reading, usable, varying, claimed, own, compared))
    methods = [value for axis in plan.axes for value in axis.values] + [value for _, value in plan.fixed]
    tables = context.settings_tables  # of several, each is of its own experiment
    for table in tables if len(tables) == 1 else [t for t in tables if proper_names(t.caption) & beside.own]:
        found += settings_of_table(table, methods)
    listed = {name.lower() for name in (*context.labels, *context.data)}  # a data set's name sets nothing
    names: dict[str, Hyperparameter] = {}
    for setting in filter(lambda setting: scope.sets(setting.name) and setting.name.lower() not in listed, found):
        names.setdefault(setting.name.lower(), setting)
    return tuple(names.values())


def _symbols_of(plan: Plan) -> list[str]:
    """The symbol in an axis name: `n` of `training points n`."""
    lasts = [axis.name.split()[-1].strip("()[]") for axis in plan.axes if len(axis.name.split()) > 1]
    return [last for last in lasts if len(last) <= 2]


def _is_common_setup(reading: Reading, line: Line, experiment: Experiment) -> bool:
    """A setup passage or an appendix, and not one that stands inside another experiment's section."""
    block = reading.blocks[line.block]
    tops = {reading.blocks[b].path[:1] for b in experiment.blocks}
    if not block.path or block.path[:1] in tops:
        return reading.role(line) == "setup"
    top = reading.document.sections[block.path[0]]
    if top.kind is SectionKind.APPENDIX:
        return reading.role(line) in ("setup", "method")
    return role_of_title(top.title) == "setup"


def _only_results(line: Line) -> bool:
    return bool(WINNER.search(line.text)) and bool(find_numbers(line.text))
