"""How an experiment is done: the sentences and settings of the paper that say so, without its results.

The experiment's own blocks come first, then setup sections that are about all experiments, then whatever the lexical
index brings up. A sentence that states any result of the paper, or that would give the draft's answer away, is no
method.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from extractors._nearby import SETUP_TITLE, context_blocks, is_generic_top, top_title
from extractors._reading import Line, Reading, label_key, references_in, role_of_title
from extractors._scope import Scope
from extractors._vocabulary import FINDING, OBSERVED, WINNER
from extractors.answers import states_answer
from extractors.claims import find_numbers, normalize, text_claims
from extractors.prose import adapt_sentence, does_step
from extractors.refining import Index, find_settings, settings_of_table
from extractors.takeaways import Experiment, about_others
from extractors.variables import Plan
from pipeline.paper import SectionKind, Table
from pipeline.task import Draft, Hyperparameter

__all__ = ["Context", "MethodLine", "caption_text", "is_row_debris", "method_lines", "settings_for"]

_MAX_METHOD_SENTENCES: Final = 12
_MAX_METHOD_CHARACTERS: Final = 2200
_DOES: Final = re.compile(
    r"\b(?:us(?:e[sd]?|ing)|train(?:ed|s|ing)?|generat\w+|evaluat\w+|compar(?:e[sd]?|ing)|comput\w+|split\w*|set to|"
    r"run(?:s|ning)?|ran|sampl\w+|measur\w+|consider\w*|follow(?:s|ed|ing)?|adopt\w*|initiali[sz]\w+|repeat\w*|"
    r"averag\w+|"
    r"report\w*|implement\w*|optimi[sz]\w+|select\w*|fix(?:ed)?|var(?:y|ied|ies)|draw[ns]?|drew|divide[sd]?|"
    r"construct\w*|"
    r"appl(?:y|ied|ies)|consists?|contains?|fit(?:s|ted)?|tun(?:e[sd]?|ing)|perform(?:ed)?|conduct\w*|extract\w*|"
    r"concatenat\w+|classif\w+|defined? (?:as|by)|assess\w*|expand(?:s|ed)?|replace[sd]?|remov\w+|add(?:s|ed)?|"
    r"employ\w*|calculat\w+|estimat\w+|predict\w*|validat\w+|test(?:ed)? on|held out|seeds?|normali[sz]\w+|"
    r"standardi[sz]\w+|"
    r"minimi[sz]\w+|maximi[sz]\w+|corrupt\w*|perturb\w*|are drawn|is drawn|folds?|repetitions)\b",
    re.IGNORECASE,
)
_TALK: Final = re.compile(
    r"\b(?:(?:these|such|our) results|supports?|often|it is possible|is known for|requires?|suitable|testbed|"
    r"tables?|figures?|"
    r"fig\.|shown? in|summari[sz]ed|we (?:believe|hope|anticipate|note|attribute|hypothesi[sz]e)|"
    r"finding|contribution|acknowledg|future|motivat\w+|challeng\w+|important|novel|recently|popular|widely|intuiti\w+|"
    r"limitation|not (?:obvious|clear)|in contrast|lacks?|however|available at|publicly|github|https?:|may\b|might\b|"
    r"want to|as (?:below|follows)|under an? (?:minute|second|hour)|"
    r"(?:this|these)(?=[,.;]|\s(?:from|in|is|are|by|to|for|with)\b)|"
    r"questions? arise|following observations?|in this (?:sub)?section|to (?:address|answer) the \w+ question|"
    r"^this experiment\b|"
    r"will release|experimental results|\bsota\b|state-of-the-art (?:performance|results)|"
    r"^previous\b|seem to suggest|^for (?:instance|example)\b|\breason is\b|^this (?:work|paper|section|"
    r"appendix)\b|worth noting|(?:huge|big|large|great|strong|significant) (?:impact|influence|effect)|"
    r"commonly used|is considered|(?:brief|detailed) analysis|experimental study|the goal of|"
    r"refers? (?:the reader|to)|can serve|found\b(?! in)|(?:is|in|of|by|from|see|solves?) \(\d+\))",
    re.IGNORECASE,
)


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
    if line.order in stated or not _is_whole_sentence(reading, line, text):
        return False
    if reading.role(line) in ("skip", "framing") or WINNER.search(text) or _TALK.search(_strip_references(text)):
        return False
    if re.search(r"\b[Ww]e (?:\w+ly )?(?:also )?(?:observed?|find|found|see|saw|notice[ds]?)\b", text):
        return False
    if about_others(re.sub(r"^[A-Z]\w+:\s", "", text)):
        return False
    named = scope is not None and reading.role(line) in ("setup", "method") and scope.names(text)
    if not (_DOES.search(text) or named or does_step(text) or _is_general_setup(reading, line)):
        return False
    measured = [c for c in text_claims(text) if c.number.decimals > 0 or c.number.unit == "%"]
    told = reading.role(line) == "evaluation" and (
        FINDING.search(text) or OBSERVED.search(text) or _CONCEDES.match(text)
    )
    return not measured and not told


_CONCEDES: Final = re.compile(r"(?:Although|While|Despite|In contrast|Even|Overall|Nevertheless|Still)\b(?! each)")
"""How sentences of a results section begin that weigh what came out."""


def _is_whole_sentence(reading: Reading, line: Line, text: str) -> bool:
    """Not a heading, a question, half a sentence cut by a page or a float, a scrap of a formula or a monster."""
    words = re.findall(r"[A-Za-z]{3,}", text)
    if normalize(text).rstrip(".") == normalize(reading.blocks[line.block].title) or text.endswith("?"):
        return False
    if not re.search(r"[.:;!?][\"”)]?$", text) or re.match(r"[a-z]", line.text):
        return False
    if re.search(r"(?:^|\s)[a-z]\s[a-z]\s|\(\d+\)$", text) or _is_formula(text) or _ROW.search(text):
        return False
    return len(words) >= 5 and len(words) * 3 >= len(re.findall(r"[^\W\d_]+", text)) and len(text) <= 420


_ROW: Final = re.compile(r"(?:\S*\d[^\s,]*\s+){4,}")
"""Numbers one after the other without commas: a row of a table that no rules or caption mark as one."""


def is_row_debris(text: str) -> bool:
    """Is a row of a table caught in a sentence? Numbers one after the other without commas are no prose."""
    return _ROW.search(text) is not None


_MATH: Final = re.compile(r"[∥∑∏∫∂∇∀∃∈∉⊂⊆⊇∪∩⇒⇔→←↦≤≥≈≡≜∼⊙⊗⊕√∞⟨⟩⌊⌋⌈⌉′˜ˆ]|[^\W\d_]\(\w\)")
_DEBRIS: Final = re.compile(r"∈\s?R[\da-z]|[)∥|]\s?\d\s\d\b|\b[A-Za-z]{1,2}\(\w\)\s\w\b|[=≤≥]\s*(?:$|[.,;])")


def _is_formula(text: str) -> bool:
    """Formulas whose exponents and indices were flattened say nothing: three signs, or what is left of one."""
    return len(_MATH.findall(text)) >= 3 or bool(_DEBRIS.search(text))


_APPROACH_TITLE: Final = re.compile(
    r"^(?:the |our )?(?:proposed )?(?:methods?|methodology|approach|algorithm)\b|\bour (?:method|approach)|proposed",
    re.IGNORECASE,
)


def _describes_approach(reading: Reading, line: Line) -> bool:
    """A step of the paper's own approach, from the section that describes it; formulas do not survive as prose."""
    top = top_title(reading, line)
    step = reading.role(line) == "method" and bool(_APPROACH_TITLE.search(top))
    return step and not re.search(r"[=≤≥∈∑∏′|]|\w\(\w", line.text) and not OBSERVED.search(line.text)


_SETUP_PART: Final = re.compile(r"data ?sets?\b|settings?\b|implementation|metrics?\b|set-?up|protocol", re.IGNORECASE)


def _is_general_setup(reading: Reading, line: Line) -> bool:
    """Under `Experimental setup` every sentence says how things are done, whatever its verb."""
    top = top_title(reading, line)
    if reading.role(line) == "setup" and _SETUP_PART.search(reading.blocks[line.block].title):
        return True
    return reading.role(line) == "setup" and role_of_title(top) == "setup" and bool(SETUP_TITLE.search(top))


_FLOAT: Final = re.compile(r"^(?:Tables?|Figures?|Fig\.)\s[\w.]+\s(?=(?:var|compar|remov|replac|chang|add)[a-z]*s\s)")


def _strip_references(text: str) -> str:
    return re.sub(r"\s?\((?:see )?(?:Tables?|Figs?\.?|Figures?|Sections?|Appendix|Eqs?\.)[^()]*\)", "", text)


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


def _taken(candidates: Sequence[tuple[float, Line]], line: Line) -> bool:
    return bool(candidates) and candidates[-1][1].order == line.order - 1 and candidates[-1][1].passage == line.passage


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
    """Sentences on how to do it: from the experiment's own blocks and setup first, then from anywhere by retrieval."""
    reading = context.reading
    stated = context.stated
    near = context_blocks(reading, experiment)
    ranked = context.lookup.search(_query(reading, experiment, plan), 60)
    score = {line.order: value for value, line in ranked}
    top = next((value for value, line in ranked if line.order not in stated), 1.0)
    generic = is_generic_top(reading, experiment)
    sections = {reading.blocks[block].section for block in experiment.blocks}
    candidates: list[tuple[float, Line]] = []
    elsewhere = _speaks_of(context, experiment)
    alone = experiment.table is not None and experiment.table.copied > 0
    for line in reading.lines:
        if line.passage in elsewhere or (alone and _is_comparison(reading, line)):
            continue  # another float's experiment, or a comparison with numbers that were not measured here
        if _POINTS_BACK.search(line.text) and reading.role(line) != "method" and not _taken(candidates, line):
            continue  # `they calculate ...`: of whom, the sentence before says, which is not about this experiment
        own = line.block in experiment.blocks
        close = line.block in near
        beside = reading.blocks[line.block].section in sections and close
        worth = score.get(line.order, 0.0) / top
        if not scope.runs_on(_subject(reading, line)):
            continue  # a paragraph on another data set
        if not close and reading.role(line) == "evaluation":
            continue  # that is how another experiment is done
        # retrieved from elsewhere, a sentence must match at least half as well as the best one
        common = close and role_of_title(top_title(reading, line)) == "setup"
        if not (own or common or generic) and line.block in context.discussed:
            continue  # likewise: a setup passage under a heading with a subject that refers to another table
        theory = own and reading.role(line) == "method"  # a result told inside the method's own section
        least = 0.3 if theory else 0.0 if own or beside or common or (close and generic) else 0.3 if close else 0.5
        if _describes_approach(reading, line):
            least = min(least, 0.2)
        if worth >= least and scope.fits(line.text) and _is_method(reading, line, stated, scope):
            candidates.append((2.0 * own + 1.0 * close + worth, line))
    candidates.sort(key=lambda item: (-item[0], item[1].order))
    chosen = _adapted(candidates, probe, scope)
    if not chosen:  # nothing near: what the method sections say about the things that are compared
        wide = [
            (worth, line) for worth, line in ranked
            if reading.role(line) in ("method", "setup")
            and line.block not in context.discussed
            and scope.fits(line.text) and _is_method(reading, line, stated, scope)
        ]  # fmt: skip
        wide = [(worth, line) for worth, line in wide if worth >= 0.5 * wide[0][0] and worth >= 0.5 * top]
        chosen = _adapted(wide[:6], probe, scope)
    return sorted(chosen)


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
    lines += [line for line in reading.lines if line.block in near and line.order not in stated]
    own = frozenset(line.order for line in lines if line.block in near)
    for question in ("random seeds repetitions averaged over runs", "learning rate batch size epochs optimizer",
                     "hyper-parameter is set to", "default value threshold regularization"):  # fmt: skip
        query = f"{question} {_query(reading, experiment, plan)}"
        for _, line in context.lookup.search(query, 12):
            if _is_common_setup(reading, line, experiment) and line.order not in stated and not about_others(line.text):
                lines.append(line)
    usable = [
        line for line in dict.fromkeys(lines) if scope.fits(line.text)
        and (_is_method(reading, line, stated) or (reading.role(line) == "setup" and not _only_results(line)))
    ]  # fmt: skip
    compared = [axis.values for axis in plan.axes if axis.kind in ("method", "dataset") and len(axis.values) > 1]
    found = list(find_settings(reading, usable, varying, claimed, own, compared))
    methods = [value for axis in plan.axes if axis.kind == "method" for value in axis.values]
    methods += [value for name, value in plan.fixed if "method" in name.lower() or "model" in name.lower()]
    for table in context.settings_tables:
        found += settings_of_table(table, methods)
    listed = {name.lower() for name in (*context.labels, *context.data)}  # a data set's name sets nothing
    names: dict[str, Hyperparameter] = {}
    for setting in filter(lambda setting: scope.sets(setting.name) and setting.name.lower() not in listed, found):
        names.setdefault(setting.name.lower(), setting)
    return tuple(names.values())


def _symbols_of(plan: Plan) -> list[str]:
    """The symbol in an axis name: `n` of `training points n`."""
    lasts = [axis.name.split()[-1] for axis in plan.axes if len(axis.name.split()) > 1]
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
