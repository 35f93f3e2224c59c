"""Second pass: one draft per experiment, composed with the context that the rest of the paper gives.

After EXP-Bench 3.2, stage 2.1: each subsection is implementation context or a candidate question (its role, see
`extractors._reading`); the context is collected first and every draft is composed against it. A draft that would give
its answer away, or that no sentence of method supports, is not made; the reason is reported.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from extractors._reading import Line, Reading, role_of_title
from extractors._vocabulary import FINDING, WINNER, find_metric
from extractors.answers import states_answer
from extractors.claims import find_numbers, normalize, text_claims
from extractors.prose import adapt_sentence, clean_name, slugify
from extractors.questions import agent_instructions, closing_step, comparisons, compose_question, expected_text
from extractors.refining import Index, find_settings, settings_of_table
from extractors.takeaways import Experiment, about_others
from extractors.variables import Plan, design_variables, plan_experiment
from pipeline.paper import SectionKind, Table
from pipeline.schema import Problem, Severity
from pipeline.task import Draft, Evidence, Expected, Hyperparameter

__all__ = ["Context", "compose_draft", "confidence_parts"]

_COMPONENT: Final = "extract.drafting"
_MAX_METHOD_SENTENCES: Final = 12
_MAX_METHOD_CHARACTERS: Final = 2200
_DOES: Final = re.compile(
    r"\b(?:us(?:e[sd]?|ing)|train(?:ed|s|ing)?|generat\w+|evaluat\w+|compar(?:e[sd]?|ing)|comput\w+|split\w*|set to|"
    r"run(?:s|ning)?|ran|sampl\w+|measur\w+|consider\w*|follow(?:s|ed|ing)?|adopt\w*|initiali[sz]\w+|repeat\w*|averag\w+|"
    r"report\w*|implement\w*|optimi[sz]\w+|select\w*|fix(?:ed)?|var(?:y|ied|ies)|draw[ns]?|drew|divide[sd]?|construct\w*|"
    r"appl(?:y|ied|ies)|consists?|contains?|fit(?:s|ted)?|tun(?:e[sd]?|ing)|perform(?:ed)?|conduct\w*|extract\w*|"
    r"concatenat\w+|classif\w+|defined? (?:as|by)|assess\w*|expand(?:s|ed)?|replace[sd]?|remov\w+|add(?:s|ed)?|"
    r"employ\w*|calculat\w+|estimat\w+|predict\w*|validat\w+|test(?:ed)? on|held out|seeds?|normali[sz]\w+|standardi[sz]\w+|"
    r"minimi[sz]\w+|maximi[sz]\w+|corrupt\w*|perturb\w*|are drawn|is drawn|folds?|repetitions)\b",
    re.IGNORECASE,
)
_TALK: Final = re.compile(
    r"\b(?:these results|supports?|often|it is possible|is known for|requires?|suitable|testbed|tables?|figures?|fig\.|shown? in|summari[sz]ed|we (?:believe|hope|anticipate|note|attribute|hypothesi[sz]e)|"
    r"finding|contribution|acknowledg|future|motivat\w+|challeng\w+|important|novel|recently|popular|widely|intuiti\w+|"
    r"limitation|not (?:obvious|clear)|in contrast|lacks?|however|available at|github|https?:)",
    re.IGNORECASE,
)


class Context(NamedTuple):
    """What is collected once per paper and used for every draft."""

    reading: Reading
    index: Index
    names: dict[str, str]
    """Metric or abbreviation -> how the paper spells it out."""
    settings_tables: tuple[Table, ...]
    stated: frozenset[int]
    """Indices of all result sentences: what states one experiment's result is no method of another."""


class _MethodLine(NamedTuple):
    line: Line
    text: str


def compose_draft(context: Context, experiment: Experiment, problems: list[Problem]) -> Draft | None:
    """Make one draft, or say in `problems` why there is none.

    Args:
        context: the paper with its index.
        experiment: what the first pass stitched together.
        problems: receives refusals and omissions.
    """
    reading = context.reading
    plan = plan_experiment(reading, experiment, problems)
    where = _where(experiment)
    if not plan.claims:
        _report(problems, where, "no task: no claim of it has evidence that holds")
        return None
    plan.data = plan.data or _data(reading, experiment, plan)
    if experiment.table is None and not (plan.axes or plan.fixed or plan.data or plan.sweeps):
        _report(problems, where, "no task: its sentences do not say under which conditions the numbers hold")
        return None
    names = _spelled_out(context, plan)
    statements = _statements(experiment)
    expected = Expected(
        text=expected_text(plan, [line.text for line in statements], names), claims=plan.claims,
        comparisons=comparisons(plan),
    )  # fmt: skip
    probe = Draft(slug="probe", question="-", method="-", expected=expected, confidence=0)
    question = compose_question(plan, names, _topic(reading, experiment, plan))
    method = _method(context, experiment, plan, probe)
    if not method:
        _report(problems, where, "no task: no sentence of the paper says how it was done without stating the result")
        return None
    settings = _settings(context, experiment, plan, method)
    asked = [(s.name, s.value) for s in settings if not states_answer(f"{s.name} = {s.value}", probe)]
    instructions = agent_instructions(plan, names, asked)
    text = " ".join([*(item.text for item in method), closing_step(plan, names)])
    for field, content in (("question", question), ("method", text), ("agent instructions", instructions)):
        given_away = states_answer(content, probe)
        if given_away:
            _report(problems, where, f"no task: its {field} would give the answer away ({given_away[0]})")
            return None
    design = design_variables(plan, [(s.name, s.value, s.evidence) for s in settings])
    parts = confidence_parts(experiment, plan, len(method), bool(settings))
    draft = Draft(
        slug=_slug(experiment, plan), question=question, method=text, agent_instructions=instructions, expected=expected,
        constant=design["constant"], independent=design["independent"], dependent=design["dependent"],
        hyperparameters=settings, evidence=_evidence(context, experiment, statements, method),
        sections=_section_titles(reading, experiment), confidence=round(min(1.0, sum(parts.values())), 3),
    )  # fmt: skip
    return _checked(reading, draft, where, problems)


def _where(experiment: Experiment) -> str:
    if experiment.table is not None:
        return f"{experiment.label} (page {experiment.table.table.page})"
    return f"{experiment.label} (page {experiment.statements[0].page})"


def _report(problems: list[Problem], where: str, message: str, severity: Severity = Severity.INFO) -> None:
    problems.append(Problem(component=_COMPONENT, where=where, message=message, severity=severity))


# --- context ---------------------------------------------------------------------------------------------------------


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


def _caption_text(reading: Reading, table: Table) -> str:
    return re.sub(r"^\s*(?:TABLE|Table|Tab\.)\s*[\w.]+\s*[:.|–-]?\s*", "", _recase(reading, table.caption))


_ON_DATA: Final = re.compile(
    r"(?<!trained )(?<!tuned )\b(?:[Oo]n|over)\s(?P<data>(?:the\s)?(?!average|which|top|other|all|each|various|different|same|\d+ (?:random )?(?:seeds|runs|trials|folds|rep\w+|draws))(?:[^\s,;:.()]+\s){0,5}?[^\s,;:.()]+)"
    r"(?=\s(?:with|using|at|for|and|by|is|was|are|when|over|from|in|under|across|vs)\b|\s?[,;:.(]|$)"
)


def _data(reading: Reading, experiment: Experiment, plan: Plan) -> str | None:
    """What the experiment runs on, from its conditions, its caption or the sentences around it."""
    for name, value in plan.fixed:
        if re.match(r"data|corpus|benchmark|task|environment|problem", name, re.IGNORECASE):
            return value
    if any(axis.kind == "dataset" for axis in plan.axes):
        return None
    if experiment.table is not None:
        match = _ON_DATA.search(_caption_text(reading, experiment.table.table).split(". ")[0])
        if match and re.search(r"[A-Za-z]{3}", match["data"]) and not find_metric(match["data"]):
            return match["data"].strip()
    return None


def _spelled_out(context: Context, plan: Plan) -> dict[str, str]:
    """Metric name -> the long form: an abbreviation's expansion, a symbol's definition, or the caption's own phrase."""
    names: dict[str, str] = {}
    for metric in plan.metrics:
        head = metric.name.split()[0] if metric.name else ""
        if metric.name in context.names:
            names[metric.name] = context.names[metric.name]
        elif len(head) <= 2 and head in context.names:
            part = metric.name[len(head) :].strip()
            names[metric.name] = f"{context.names[head]} ({part})" if part else context.names[head]
    table = plan.experiment.table
    if table is not None and len(plan.metrics) == 1:
        caption = _caption_text(context.reading, table.table)
        name = plan.metrics[0].name
        match = re.match(
            rf"{re.escape(name)}\sof\s(?P<of>(?:[^.,;()]|\([^()]*\)|\.(?=\s[a-z])){{3,50}}?)"
            r"(?=\s(?:by|for|on|with|across|under|at|when)\b|\s\(|[,;]|\.(?!\s?[a-z])|$)", caption
        )
        if match and name not in names:
            names[name] = f"{name} of {match['of']}"
    return names


def _topic(reading: Reading, experiment: Experiment, plan: Plan) -> str:
    """` in the experiment on <title>`, for experiments that only a heading tells apart."""
    if plan.data or any(axis.name != "statistic" for axis in plan.axes):
        return ""
    title = experiment.label if experiment.table is None else ""
    section = reading.section_title(experiment.blocks[0]) if experiment.blocks else None
    if re.match(r"results?\b|findings?\b|analysis\b", title, re.IGNORECASE) or not title:
        title = section or ""
    title = re.sub(r"^(?:[A-Z]|\d+(?:\.\d+)*|[IVX]+)\.?\s+(?=[A-Z])", "", title).strip(" .")
    return f" in the experiment on {clean_name(title)}" if title else ""


# --- method ----------------------------------------------------------------------------------------------------------


def _is_method(reading: Reading, line: Line, stated: frozenset[int]) -> bool:
    """Does a sentence say how something is done, without saying what came out?"""
    text = _FLOAT.sub("", line.text)
    words = re.findall(r"[A-Za-z]{3,}", text)
    if normalize(text).rstrip(".") == normalize(reading.blocks[line.block].title) or text.endswith("?"):
        return False
    if not re.search(r"[.:;!?][\"”)]?$", text) or re.match(r"[a-z]", text):
        return False  # half a sentence, cut by a page or a float
    if line.index in stated or len(words) < 5 or len(words) * 3 < len(re.findall(r"[^\W\d_]+", text)) or len(text) > 420:
        return False
    if reading.role(line) in ("skip", "framing") or WINNER.search(text) or _TALK.search(_strip_references(text)):
        return False
    if about_others(text) or not _DOES.search(text) or re.search(r"(?:^|\s)[a-z]\s[a-z]\s|\(\d+\)$", text):
        return False
    measured = [c for c in text_claims(text) if c.number.decimals > 0 or c.number.unit == "%"]
    return not measured and not (FINDING.search(text) and reading.role(line) == "evaluation")


_FLOAT: Final = re.compile(r"^(?:Tables?|Figures?|Fig\.)\s[\w.]+\s(?=(?:var|compar|remov|replac|chang|add)[a-z]*s\s)")


def _strip_references(text: str) -> str:
    return re.sub(r"\s?\((?:see )?(?:Tables?|Figs?\.?|Figures?|Sections?|Appendix|Eqs?\.)[^()]*\)", "", text)


def _context_blocks(reading: Reading, experiment: Experiment) -> set[int]:
    """The experiment's blocks, what stands directly under their ancestors, and setup blocks beside them."""
    wanted = set(experiment.blocks)
    tops = {reading.blocks[b].path[:1] for b in experiment.blocks if reading.blocks[b].path}
    ancestors = {s for b in experiment.blocks for s in reading.blocks[b].path}
    own = {reading.blocks[b].section for b in experiment.blocks}
    for block in reading.blocks:
        inside = block.path[:1] in tops
        top = reading.document.sections[block.path[0]].title if block.path else ""
        if block.role == "setup" and role_of_title(top) == "setup" and re.search(
            r"experiment|set-?up|setting|implementation|protocol|evaluation", top, re.IGNORECASE
        ):  # a section on the setup of all experiments
            wanted.add(block.index)
        plain_top = block.section in ancestors and block.section not in own
        same_section = block.section in own and block.role == reading.blocks[experiment.blocks[0]].role
        first_of_section = same_section and block.title == (reading.section_title(block.index) or "")
        if inside and (block.role == "setup" or plain_top or first_of_section):
            wanted.add(block.index)
    return wanted


def _generic_top(reading: Reading, experiment: Experiment) -> bool:
    """Is the experiment one of several under a heading such as `Experiments`, so that the setup there is its own too?

    Under a heading with a subject (`DNS tunnel classification`) a setup passage may be about that subject only.
    """
    for block in experiment.blocks:
        path = reading.blocks[block].path
        title = reading.document.sections[path[0]].title if path else ""
        if re.search(r"experiment|evaluation|result|empirical|simulation|numerical|appendi", title, re.IGNORECASE):
            return True
    return False


def _top_title(reading: Reading, line: Line) -> str:
    path = reading.blocks[line.block].path
    return reading.document.sections[path[0]].title if path else ""


def _query(reading: Reading, experiment: Experiment, plan: Plan) -> str:
    words = [metric.name for metric in plan.metrics]
    words += [value for axis in plan.axes for value in (axis.name, *axis.values)]
    words += [value for pair in plan.fixed for value in pair]
    words += [plan.data or "", *(reading.blocks[b].title for b in experiment.blocks)]
    if experiment.table is not None:
        words.append(_caption_text(reading, experiment.table.table))
    return " ".join(words)


def _method(context: Context, experiment: Experiment, plan: Plan, probe: Draft) -> list[_MethodLine]:
    """Sentences on how to do it: from the experiment's own blocks and setup first, then from anywhere by retrieval."""
    reading = context.reading
    stated = context.stated
    near = _context_blocks(reading, experiment)
    ranked = context.index.search(_query(reading, experiment, plan), 60)
    score = {line.index: value for value, line in ranked}
    top = ranked[0][0] if ranked else 1.0
    generic = _generic_top(reading, experiment)
    sections = {reading.blocks[block].section for block in experiment.blocks}
    candidates: list[tuple[float, Line]] = []
    for line in reading.lines:
        own = line.block in experiment.blocks
        close = line.block in near
        beside = reading.blocks[line.block].section in sections and close
        worth = score.get(line.index, 0.0) / top
        if not close and reading.role(line) == "evaluation":
            continue  # that is how another experiment is done
        # retrieved from elsewhere, a sentence must match at least half as well as the best one
        common = close and role_of_title(_top_title(reading, line)) == "setup"
        least = 0.0 if own or beside or common or (close and generic) else 0.3 if close else 0.5
        if worth >= least and _is_method(reading, line, stated):
            candidates.append((2.0 * own + 1.0 * close + worth, line))
    candidates.sort(key=lambda item: (-item[0], item[1].index))
    chosen = _adapted(candidates, probe)
    if not chosen:  # nothing near: what the method sections say about the things that are compared
        wide = [
            (worth, line) for worth, line in ranked
            if reading.role(line) in ("method", "setup") and _is_method(reading, line, stated)
        ]  # fmt: skip
        wide = [(worth, line) for worth, line in wide if worth >= 0.5 * wide[0][0] and worth >= 0.15 * top]
        chosen = _adapted(wide[:6], probe)
    return sorted(chosen)


def _adapted(candidates: Sequence[tuple[float, Line]], probe: Draft) -> list[_MethodLine]:
    """The best candidates as instructions, without those that give the answer away, up to the limits."""
    chosen: list[_MethodLine] = []
    length = 0
    for _, line in candidates:
        text = adapt_sentence(line.text)
        if text is None or states_answer(text, probe) or length + len(text) > _MAX_METHOD_CHARACTERS:
            continue
        chosen.append(_MethodLine(line, text))
        length += len(text)
        if len(chosen) == _MAX_METHOD_SENTENCES:
            break
    return chosen


# --- settings, evidence ----------------------------------------------------------------------------------------------


def _settings(
    context: Context, experiment: Experiment, plan: Plan, method: Sequence[_MethodLine]
) -> tuple[Hyperparameter, ...]:
    """Settings from the method sentences, then from what re-querying the paper for settings brings up."""
    reading = context.reading
    stated = context.stated
    varying = frozenset(
        re.sub(r"s$", "", name.lower())
        for name in (*(a.name for a in (*plan.axes, *plan.sweeps)), *_symbols_of(plan), *plan.attributes, *(n for n, _ in plan.fixed))
    )
    claimed = frozenset(n.text for claim in plan.claims for n in find_numbers(claim.text))
    lines = [item.line for item in method]
    near = _context_blocks(reading, experiment)
    if not _generic_top(reading, experiment):
        setups = {b for b in near if reading.blocks[b].path and role_of_title(
            reading.document.sections[reading.blocks[b].path[0]].title) == "setup"}  # fmt: skip
        near = setups | set(experiment.blocks)
    lines += [line for line in reading.lines if line.block in near and line.index not in stated]
    own = frozenset(line.index for line in lines if line.block in near)
    for question in ("random seeds repetitions averaged over runs", "learning rate batch size epochs optimizer",
                     "hyper-parameter is set to", "default value threshold regularization"):  # fmt: skip
        query = f"{question} {_query(reading, experiment, plan)}"
        for _, line in context.index.search(query, 12):
            if _is_common_setup(reading, line, experiment) and line.index not in stated and not about_others(line.text):
                lines.append(line)
    usable = [
        line for line in dict.fromkeys(lines)
        if _is_method(reading, line, stated) or (reading.role(line) == "setup" and not _only_results(line))
    ]  # fmt: skip
    found = list(find_settings(reading, usable, varying, claimed, own))
    methods = [value for axis in plan.axes if axis.kind == "method" for value in axis.values]
    methods += [value for name, value in plan.fixed if "method" in name.lower() or "model" in name.lower()]
    for table in context.settings_tables:
        found += settings_of_table(table, methods)
    names: dict[str, Hyperparameter] = {}
    for setting in found:
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


def _statements(experiment: Experiment) -> list[Line]:
    """Result sentences in reading order without repetitions."""
    seen: dict[str, Line] = {}
    for line in experiment.statements:
        seen.setdefault(normalize(line.text).lower(), line)
    return list(seen.values())


def _evidence(
    context: Context, experiment: Experiment, statements: Sequence[Line], method: Sequence[_MethodLine]
) -> dict[str, tuple[Evidence, ...]]:
    reading = context.reading
    table: list[Evidence] = [reading.caption_evidence(experiment.table.table)] if experiment.table else []
    claims: list[Evidence] = [reading.quote(line) for line in statements]
    headlines: list[Evidence] = [reading.quote(line) for line in experiment.headlines[:3]]
    mentions: list[Evidence] = [reading.quote(line) for line in experiment.mentions[:2]]
    return {
        "question": tuple([*table, *mentions] or claims[:2]),
        "method": tuple(reading.quote(item.line) for item in method),
        "expected": tuple([*table, *claims, *headlines]),
    }


def _section_titles(reading: Reading, experiment: Experiment) -> tuple[str, ...]:
    titles: dict[str, None] = {}
    for block in experiment.blocks:
        title = reading.section_title(block)
        if title:
            titles[title] = None
    return tuple(titles)


def _slug(experiment: Experiment, plan: Plan) -> str:
    words = slugify(experiment.label)
    caption = experiment.table.table.caption.lower() if experiment.table else ""
    for word in ("ablation", "robustness", "sensitivity", "runtime", "comparison", "generalization"):
        if word in caption and word not in words:
            words += f"-{word}"
            break
    metric = slugify(plan.metrics[0].name) if plan.metrics else ""
    slug = f"{words[:40].strip('-')}-{metric}" if metric and metric not in words else words
    return re.sub(r"-+", "-", slug)[:60].strip("-") or "experiment"


def confidence_parts(experiment: Experiment, plan: Plan, method: int, settings: bool) -> dict[str, float]:
    """What a draft's confidence is made of; the parts add up to at most 1.

    `source`: 0.35 times the table's own confidence, 0.2 for sentences. `metric`: 0.15 when every metric has a known
    direction or an arrow, 0.08 otherwise. `method`: 0.15 from three sentences on, 0.08 below. `conditions`: up to 0.15,
    the share of claims that say what they hold for. `headline`: 0.1 when abstract or conclusion repeats it.
    `discussed`: 0.05 when a sentence states its result in words. `settings`: 0.05 when any were found.

    Args:
        experiment: the experiment.
        plan: its claims and variables.
        method: number of method sentences.
        settings: whether any setting was found.
    """
    known = all(metric.direction for metric in plan.metrics)
    told = sum(bool(claim.conditions) for claim in plan.claims) / max(len(plan.claims), 1)
    return {
        "source": 0.35 * experiment.table.table.confidence if experiment.table else 0.2,
        "metric": 0.15 if known else 0.08,
        "method": 0.15 if method >= 3 else 0.08,
        "conditions": 0.15 * told,
        "headline": 0.1 if experiment.headlines else 0.0,
        "discussed": 0.05 if experiment.statements else 0.0,
        "settings": 0.05 if settings else 0.0,
    }


def _checked(reading: Reading, draft: Draft, where: str, problems: list[Problem]) -> Draft | None:
    """The last look: every span must stand in the document."""
    spans = [span for spans in draft.evidence.values() for span in spans]
    spans += [span for setting in draft.hyperparameters for span in setting.evidence]
    missing = [span for span in spans if not reading.supports(span)]
    if missing:
        _report(problems, where, f"no task: a quoted span does not stand on page {getattr(missing[0], 'page', '?')}",
                Severity.WARNING)  # fmt: skip
        return None
    return draft
