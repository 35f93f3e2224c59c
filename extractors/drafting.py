"""Second pass: one draft per experiment, composed with the context that the rest of the paper gives.

After EXP-Bench 3.2, stage 2.1: each subsection is implementation context or a candidate question (its role, see
`extractors._reading`); the context is collected first and every draft is composed against it. A draft that would give
its answer away, or that no sentence of method supports, is not made; the reason is reported.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from extractors._fitness import DOUBT, doubts_of, unfit_reason
from extractors._reading import Line, Reading, label_key, references_in
from extractors._scope import scope_of
from extractors._steps import is_row_debris
from extractors._vocabulary import find_metric
from extractors.answers import states_answer
from extractors.claims import find_numbers, normalize, symbols_in
from extractors.method_text import Context, MethodLine, caption_text, method_lines, settings_for
from extractors.outcome import compose_expected, repeats_claims
from extractors.prose import clean_name, singular, slugify
from extractors.questions import agent_instructions, closing_step, compose_question
from extractors.takeaways import Experiment
from extractors.variables import Plan, design_variables, plan_experiment
from pipeline.schema import Problem, Severity
from pipeline.task import Draft, Evidence

__all__ = ["compose_draft", "confidence_parts", "unique_slugs"]

_COMPONENT: Final = "extract.drafting"


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
    plan.fixed += _fixed_by_caption(plan)
    plan.data = plan.data or _data(context, experiment, plan)
    unfit = unfit_reason(experiment, plan)
    if unfit is not None:
        _report(problems, where, f"no task: {unfit}")
        return None
    names = _spelled_out(context, plan)
    plan.shown = _symbols_spelled_out(reading, plan)
    statements = _statements(experiment, plan)
    expected = compose_expected(plan.claims, [line.text for line in statements])
    probe = Draft(slug="probe", question="-", method="-", expected=expected, confidence=0)
    question = compose_question(plan, names, _topic(reading, experiment, plan))
    scope = scope_of(context.labels, context.data, plan)
    method = method_lines(context, experiment, plan, probe, scope)
    if not method:
        _report(problems, where, "no task: no sentence of the paper says how it was done without stating the result")
        return None
    settings = settings_for(context, experiment, plan, method, scope)
    instructions = agent_instructions(plan, names)
    text = " ".join([*(item.text for item in method), closing_step(plan, names)])
    for field, content in (("question", question), ("method", text), ("agent instructions", instructions)):
        given_away = states_answer(content, probe)
        if given_away:
            _report(problems, where, f"no task: its {field} would give the answer away ({given_away[0]})")
            return None
    design = design_variables(plan, [(s.name, s.value, s.evidence) for s in settings])
    doubts = doubts_of(experiment, plan, len(method))
    for doubt in doubts:
        _report(problems, where, f"to check: {doubt}")
    sure = sum(confidence_parts(experiment, plan, len(method), bool(settings)).values())
    draft = Draft(
        slug=_slug(experiment, plan), question=question, method=text, agent_instructions=instructions,
        expected=expected,
        constant=design["constant"], independent=design["independent"], dependent=design["dependent"],
        hyperparameters=settings, evidence=_evidence(context, experiment, statements, method),
        sections=_section_titles(reading, experiment),
        confidence=round(max(0.0, min(1.0, sure) - DOUBT * len(doubts)), 3),
    )  # fmt: skip
    return _checked(reading, draft, where, problems)


def _fixed_by_caption(plan: Plan) -> tuple[tuple[str, str], ...]:
    """What the caption says all its numbers hold for: `Results on CIFAR-10-LT (IF=50)`."""
    known = {axis.name for axis in (*plan.axes, *plan.sweeps)} | {name for name, _ in plan.fixed} | set(plan.attributes)
    given: dict[str, set[str]] = {}
    for name, value, _, _ in symbols_in(plan.caption):
        given.setdefault(name, set()).add(value.rstrip(".,"))
    single = [(name, values.pop()) for name, values in given.items() if len(values) == 1 and name not in known]
    return tuple((name, value) for name, value in single if re.fullmatch(r"[\d.,]+%?", value))


def _where(experiment: Experiment) -> str:
    if experiment.table is not None:
        return f"{experiment.label} (page {experiment.table.table.page})"
    return f"{experiment.label} (page {experiment.statements[0].page})"


def _report(problems: list[Problem], where: str, message: str, severity: Severity = Severity.INFO) -> None:
    problems.append(Problem(component=_COMPONENT, where=where, message=message, severity=severity))


# --- context ---------------------------------------------------------------------------------------------------------


_ON_DATA: Final = re.compile(
    r"(?<!trained )(?<!tuned )\b(?:[Oo]n|over)\s(?P<data>(?:the\s)?(?!average|which|top|other|all|each|various|"
    r"different|same|\d+ (?:random )?(?:seeds|runs|trials|folds|rep\w+|draws))(?:[^\s,;:.()]+\s){0,5}?[^\s,;:.()]+)"
    r"(?=\s(?:with|using|at|for|and|by|is|was|are|when|over|from|in|under|across|vs)\b|\s?[,;:.(]|$)"
)


_IS_DATA: Final = re.compile(
    r"^(?!.*\b(?:use|effect|choice|impact|number|importance|contribution|role|design|size) of\b).*"
    r"(?:[A-Z]|\d|\b(?:data|sets?|corpus|corpora|benchmarks?|tasks?|problems?|images?|texts?|graphs?|points?|samples?|"
    r"questions?|environments?|sequences?|functions?|splits?|recordings?|documents?|sentences?|prediction|detection|"
    r"recognition|classification|translation|generation|retrieval|segmentation)\b)"
)
"""What an experiment can run on: a name, or a noun of data or of a task; `the use of repulsion` is neither."""


_WHICH_DATA: Final = re.compile(r"(?:\s(?:in|from|of)\s[^,.;:(]{3,50}?)+(?=[,.;:(]|$)")
"""What tells an unnamed task apart: `on word prediction in contexts from Wikicorpus`."""


def _data(context: Context, experiment: Experiment, plan: Plan) -> str | None:
    """What the experiment runs on, from its conditions or its caption: a phrase, or the one data set that it names."""
    reading = context.reading
    for name, value in plan.fixed:
        if re.match(r"data|corpus|benchmark|task|environment|problem", name, re.IGNORECASE):
            return value
    if any(axis.kind == "dataset" and axis.name != "split" for axis in plan.axes):
        return None
    if experiment.table is not None:
        match = _ON_DATA.search(caption_text(reading, experiment.table.table).split(". ")[0])
        effect = match and re.search(r"\b(?:effect|impact|influence|ablation)s?\b", match.string[: match.start()], re.I)
        if match and not effect and _IS_DATA.search(match["data"]) and not find_metric(match["data"]):
            caption = match.string
            more = None if re.search(r"[A-Z]", match["data"]) else _WHICH_DATA.match(caption, match.end())
            return match["data"].strip() + (more.group().rstrip() if more else "")
        named = {name for name in context.data if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", plan.caption)}
        if len(named) == 1:
            return named.pop()
        if not named and len(context.data) == 1:
            return next(iter(context.data))  # the only data set that any table of the paper names
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
    for metric in plan.metrics:
        written = _as_written(context.reading, metric.name)
        if written != metric.name:
            names.setdefault(metric.name, written)
    table = plan.experiment.table
    if table is not None and len(plan.metrics) == 1:
        caption = caption_text(context.reading, table.table)
        name = plan.metrics[0].name
        match = re.match(
            rf"{re.escape(name)}\sof\s(?P<of>(?:[^.,;()]|\([^()]*\)|\.(?=\s[a-z])){{3,50}}?)"
            r"(?=\s(?:by|for|on|with|across|under|at|when)\b|\s\(|[,;]|\.(?!\s?[a-z])|$)",
            caption,
        )
        if match and name not in names:
            names[name] = f"{name} of {match['of']}"
    return names


_BARE_QUANTITY: Final = re.compile(
    r"(?:ratio|rate|percentage|percent|level|number|amount|fraction|proportion|size|degree|strength)s?\s?(?:\(%\))?",
    re.IGNORECASE,
)
_VARIED: Final = re.compile(
    r"\b(?:different|various|varying|several|increasing)\s(ratios|rates|percentages|levels|numbers|amounts|fractions|"
    r"proportions|sizes|degrees|strengths)\sof\s((?:[a-z][\w-]*\s){0,3}[a-z][\w-]*)(?=[.,;(]|$)"
)


def _symbols_spelled_out(reading: Reading, plan: Plan) -> dict[str, str]:
    """Axes whose header is a bare symbol, in the words of the caption: `by rate p of noise`, `by number of points`."""
    table = plan.experiment.table
    if table is None:
        return {}
    caption = caption_text(reading, table.table)
    shown: dict[str, str] = {}
    varied = set(_VARIED.findall(caption))
    for axis in plan.axes:
        if len(varied) == 1 and _BARE_QUANTITY.fullmatch(axis.name):
            amount, of = next(iter(varied))
            shown[axis.name] = f"{singular(amount)} of {of}"
        if not re.fullmatch(r"[^\W\d_]{1,2}|[a-zA-Z](?:train|test|val|cal)", axis.name):
            continue
        symbol = (
            rf"\b(?:by|against|over|versus)\s(?:the\s)?((?:[a-z][\w-]*\s){{1,4}}{axis.name}(?:\sof\s[a-z][a-z ]*)?)\b"
        )
        phrase = (
            r"\bby\s(?:the\s)?(number of [a-z][a-z ]*|[a-z]+ (?:rate|size|level|strength|length|depth))(?=[.,;(]|$)"
        )
        match = re.search(symbol, caption) or re.search(phrase, caption)
        heads = (text for row in table.table.grid[: table.table.header_rows] for text in row)
        percent = any(re.match(rf"{re.escape(axis.name)}\s?[\[(]%", head) for head in heads)
        if match is not None:
            shown[axis.name] = match[1].strip() + (" (in %)" if percent else "")
    return shown


def _as_written(reading: Reading, name: str) -> str:
    """A header in title case as the body writes its words: `Gauge Factor` -> `gauge factor`; `Rand Index` stays."""
    if not re.fullmatch(r"[A-Z][a-z]+(?:[ -][A-Z]?[a-z]+)+", name):
        return name
    body = " ".join(line.text for line in reading.lines)
    words = re.findall(r"[A-Za-z]+", name)
    lower = all(re.search(rf"\b{word.lower()}\b", body) for word in words)
    return name.lower() if lower else name


def _topic(reading: Reading, experiment: Experiment, plan: Plan) -> str:
    """` in the experiment on <title>`, for experiments that only a heading tells apart."""
    if plan.data or any(axis.name != "statistic" for axis in plan.axes):
        return ""
    title = experiment.label if experiment.table is None else ""
    section = reading.section_title(experiment.blocks[0]) if experiment.blocks else None
    if re.match(r"results?\b|findings?\b|analysis\b", title, re.IGNORECASE) or not title:
        title = section or ""
    title = re.sub(r"^(?:[A-Z]|\d+(?:\.\d+)*|[IVX]+)\.?\s+(?=[A-Z])", "", title).strip(" .?!")
    return f" in the experiment on {clean_name(title)}" if title else ""


# --- evidence -------------------------------------------------------------------------------------------------------


def _statements(experiment: Experiment, plan: Plan) -> list[Line]:
    """Result sentences in reading order without repetitions: whole ones that are about this experiment's own numbers.

    Beside a table a sentence must repeat its numbers, or give none and refer to it or stand where it is discussed.
    """
    seen: dict[str, Line] = {}
    key = label_key(experiment.label)
    for line in experiment.statements:
        if is_row_debris(line.text) or len(re.findall(r"[A-Za-z]{2,}", line.text)) < 5:
            continue
        if experiment.table is not None:
            keys = references_in(line.text)
            results = any(number.decimals or number.unit == "%" for number in find_numbers(line.text))
            told = repeats_claims(line.text, plan.claims) if results else key in keys or line.block in experiment.blocks
            if not told or (keys and key not in keys):
                continue
        seen.setdefault(normalize(line.text).lower(), line)
    return list(seen.values())


def _evidence(
    context: Context, experiment: Experiment, statements: Sequence[Line], method: Sequence[MethodLine]
) -> dict[str, tuple[Evidence, ...]]:
    reading = context.reading
    table: list[Evidence] = [reading.caption_evidence(experiment.table.table)] if experiment.table else []
    claims: list[Evidence] = [reading.quote(line) for line in statements]
    headlines: list[Evidence] = [reading.quote(line) for line in experiment.headlines[:3]]
    mentions: list[Evidence] = [reading.quote(line) for line in experiment.mentions[:2]]
    return {
        "question": (*table, *mentions) or tuple(claims[:2]),
        "method": tuple(reading.quote(item.line) for item in method),
        "expected": (*table, *claims, *headlines),
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


def unique_slugs(drafts: Sequence[Draft]) -> list[Draft]:
    """The drafts with slugs made unique in the order given: the second `x` becomes `x-2`."""
    seen: dict[str, int] = {}
    result = []
    for draft in drafts:
        count = seen[draft.slug] = seen.get(draft.slug, 0) + 1
        result.append(draft if count == 1 else draft.evolve(slug=f"{draft.slug[:56]}-{count}"))
    return result
