"""Second pass: one draft per experiment, composed with the context that the rest of the paper gives.

After EXP-Bench 3.2, stage 2.1: each subsection is implementation context or a candidate question (its role, see
`extractors._reading`); the context is collected first and every draft is composed against it. A draft that would give
its answer away, or that no sentence of method supports, is not made; the reason is reported.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from extractors._reading import Line, Reading
from extractors._scope import scope_of
from extractors._vocabulary import find_metric
from extractors.answers import states_answer
from extractors.claims import normalize
from extractors.method_text import Context, MethodLine, caption_text, is_row_debris, method_lines, settings_for
from extractors.outcome import compose_expected
from extractors.prose import clean_name, slugify
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
    if not plan.claims:
        _report(problems, where, "no task: no claim of it has evidence that holds")
        return None
    plan.data = plan.data or _data(context, experiment, plan)
    if experiment.table is None and not (plan.axes or plan.fixed or plan.data or plan.sweeps):
        _report(problems, where, "no task: its sentences do not say under which conditions the numbers hold")
        return None
    names = _spelled_out(context, plan)
    plan.shown = _symbols_spelled_out(reading, plan)
    statements = _statements(experiment)
    expected = compose_expected(plan.claims, [line.text for line in statements])
    probe = Draft(slug="probe", question="-", method="-", expected=expected, confidence=0)
    question = compose_question(plan, names, _topic(reading, experiment, plan))
    scope = scope_of(context.labels, context.data, plan)
    method = method_lines(context, experiment, plan, probe, scope)
    if not method:
        _report(problems, where, "no task: no sentence of the paper says how it was done without stating the result")
        return None
    settings = settings_for(context, experiment, plan, method, scope)
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
        slug=_slug(experiment, plan), question=question, method=text, agent_instructions=instructions,
        expected=expected,
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


_ON_DATA: Final = re.compile(
    r"(?<!trained )(?<!tuned )\b(?:[Oo]n|over)\s(?P<data>(?:the\s)?(?!average|which|top|other|all|each|various|"
    r"different|same|\d+ (?:random )?(?:seeds|runs|trials|folds|rep\w+|draws))(?:[^\s,;:.()]+\s){0,5}?[^\s,;:.()]+)"
    r"(?=\s(?:with|using|at|for|and|by|is|was|are|when|over|from|in|under|across|vs)\b|\s?[,;:.(]|$)"
)


_WHICH_DATA: Final = re.compile(r"(?:\s(?:in|from|of)\s[^,.;:(]{3,50}?)+(?=[,.;:(]|$)")
"""What tells an unnamed task apart: `on word prediction in contexts from Wikicorpus`."""


def _data(context: Context, experiment: Experiment, plan: Plan) -> str | None:
    """What the experiment runs on, from its conditions or its caption: a phrase, or the one data set that it names."""
    reading = context.reading
    for name, value in plan.fixed:
        if re.match(r"data|corpus|benchmark|task|environment|problem", name, re.IGNORECASE):
            return value
    if any(axis.kind == "dataset" for axis in plan.axes):
        return None
    if experiment.table is not None:
        match = _ON_DATA.search(caption_text(reading, experiment.table.table).split(". ")[0])
        if match and re.search(r"[A-Za-z]{3}", match["data"]) and not find_metric(match["data"]):
            caption = match.string
            more = None if re.search(r"[A-Z]", match["data"]) else _WHICH_DATA.match(caption, match.end())
            return match["data"].strip() + (more.group().rstrip() if more else "")
        named = {name for name in context.data if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", plan.caption)}
        if len(named) == 1:
            return named.pop()
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


def _symbols_spelled_out(reading: Reading, plan: Plan) -> dict[str, str]:
    """Axes whose header is a bare symbol, in the words of the caption: `by rate p of noise`, `by number of points`."""
    table = plan.experiment.table
    if table is None:
        return {}
    caption = caption_text(reading, table.table)
    shown: dict[str, str] = {}
    for axis in plan.axes:
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


def _statements(experiment: Experiment) -> list[Line]:
    """Result sentences in reading order without repetitions."""
    seen: dict[str, Line] = {}
    for line in experiment.statements:
        if is_row_debris(line.text):
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
