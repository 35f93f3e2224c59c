"""A checked candidate becomes a draft: its outcome composed from the claims alone, and nothing that gives it away.

Question and method are the model's words where the paper supports them; expected outcome and instructions are
composed from checked values, with the same code as the keyless engine's. A draft without a claim, without a step, or
with a question that states its answer is not made; the reason is reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from extractors._roles import Roles, roles_of
from extractors.answers import states_answer
from extractors.claims import find_numbers
from extractors.drafting import instructions
from extractors.engine.asking import Asker
from extractors.engine.checking import CheckedTask, Step, Supported
from extractors.engine.evidence import Paper
from extractors.engine.said import QuestionAnswer
from extractors.outcome import compose_expected
from pipeline.schema import Problem, Severity
from pipeline.task import DesignVariable, Draft, Evidence, Expected, TableEvidence
from pipeline.text import slug

__all__ = ["compose", "confidence_parts", "lacks"]

_COMPONENT: Final = "extract.model.compose"
_MAX_STEPS: Final = 14
"""What an agent reads as a method, not a manual; the keyless engine keeps twelve sentences."""


def lacks(task: CheckedTask) -> str:
    """Why a candidate can be no task whatever the rest of the paper adds; empty when it can."""
    if not task.claims:
        return "no claim of it has evidence that holds"
    if not task.question:
        return "it asks nothing"
    return ""


def compose(asker: Asker, paper: Paper, task: CheckedTask) -> tuple[Draft | None, list[Problem]]:
    """Make the draft, or say why there is none.

    Args:
        asker: the model; is asked at most once, for a question that gives its answer away.
        paper: where everything is looked up.
        task: a candidate after refinement.
    """
    problems: list[Problem] = []
    where = f"{task.title} ({task.where})"

    def refuse(why: str) -> tuple[None, list[Problem]]:
        problems.append(Problem(component=_COMPONENT, where=where, message=f"no task: {why}"))
        return None, problems

    expected = compose_expected(task.claims, [span.text for span in task.statements])
    probe = Draft(slug="probe", question="-", method="-", expected=expected, confidence=0)
    roles = roles_of(task.claims)
    steps = _steps(task, probe, problems, where)
    if not steps:
        return refuse("no step of its method has a sentence of the paper behind it without stating the result")
    question, said = _question(asker, paper, task, probe, where)
    problems += said
    if question is None:
        return refuse("its question gives the answer away, and so does the one worded again")
    settings = [s for s in task.settings if not states_answer(f"{s.name} = {s.value}", probe)]
    method = " ".join(_sentence(step.text) for step in steps)
    told = instructions(task.claims, roles)
    for field, text in (("method", method), ("agent instructions", told)):
        given_away = states_answer(text, probe)
        if given_away:
            return refuse(f"its {field} would give the answer away ({given_away[0]})")
    design = _design(task, roles)
    evidence = _evidence(paper, task, steps, design)
    draft = Draft(
        slug=_slug(task, expected), question=question, method=method, agent_instructions=told,
        expected=expected, constant=_variables(design["constant"]), independent=_variables(design["independent"]),
        dependent=_variables(design["dependent"]), hyperparameters=tuple(settings), evidence=evidence,
        sections=(task.section,), confidence=round(min(1.0, sum(confidence_parts(task, steps).values())), 3),
    )  # fmt: skip
    missing = _unsupported(paper, draft)
    if missing is not None:
        return refuse(f"a quoted span does not stand on page {getattr(missing, 'page', '?')}")
    return draft, problems


def confidence_parts(task: CheckedTask, steps: Sequence[Step]) -> dict[str, float]:
    """What a draft's confidence is made of; the parts add up to at most 1.

    `supported`: 0.5 times the share of what the model said that the paper supports. `takeaway`: 0.15 when it answers
    one. `stated`: 0.1 when a sentence states its result. `method`: 0.15 from three steps on, 0.08 below. `settings`:
    0.1 when any were found.

    Args:
        task: a candidate after refinement.
        steps: its method.
    """
    return {
        "supported": 0.5 * task.kept / max(task.kept + task.dropped, 1),
        "takeaway": 0.15 if task.takeaways else 0.0,
        "stated": 0.1 if task.statements else 0.0,
        "method": 0.15 if len(steps) >= 3 else 0.08,
        "settings": 0.1 if task.settings else 0.0,
    }


def _steps(task: CheckedTask, probe: Draft, problems: list[Problem], where: str) -> list[Step]:
    kept: list[Step] = []
    for step in task.steps:
        reasons = states_answer(step.text, probe)
        if reasons:
            message = f"step dropped, because it {reasons[0]}: `{step.text[:100]}`"
            problems.append(Problem(component=_COMPONENT, where=where, message=message, severity=Severity.INFO))
        elif step.text not in {other.text for other in kept}:
            kept.append(step)
    return kept[:_MAX_STEPS]


def _question(
    asker: Asker, paper: Paper, task: CheckedTask, probe: Draft, where: str
) -> tuple[str | None, list[Problem]]:
    """The question, worded again once when it states its answer or a number that the paper does not hold."""
    wrong = _wrong_with(paper, task.question, probe)
    if not wrong:
        return task.question, []
    with asker.stage("refine"):
        answer = asker.ask(
            "reword_question", QuestionAnswer, where, question=task.question, reasons="; ".join(wrong[:3])
        )
    problems = list(answer.problems)
    message = f"the question was worded again, because it {wrong[0]}"
    problems.append(Problem(component=_COMPONENT, where=where, message=message, severity=Severity.INFO))
    again = " ".join(answer.value.question.split()) if answer.value else ""
    return (again, problems) if again and not _wrong_with(paper, again, probe) else (None, problems)


def _wrong_with(paper: Paper, question: str, probe: Draft) -> list[str]:
    foreign = [n.text for n in find_numbers(question) if not paper.knows(n.text.strip("%× ")) and n.decimals > 0]
    foreign += paper.foreign_names(question)
    return states_answer(question, probe) + [f"speaks of {name}, which the paper does not" for name in foreign]


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?", ":")) else text + "."


def _design(task: CheckedTask, roles: Roles) -> dict[str, list[Supported]]:
    """The model's variables, completed by those that the claims themselves show."""
    claimed = tuple(dict.fromkeys(evidence for claim in task.claims for evidence in claim.evidence))[:1]

    def completed(said: Iterable[Supported], more: Iterable[DesignVariable]) -> list[Supported]:
        kept = list(said)
        for variable in more:
            values = {value.lower() for value in variable.values}
            covered = any(
                s.variable.name.lower() == variable.name.lower()
                or (values and values <= {value.lower() for value in s.variable.values})
                for s in kept
            )
            if not covered:
                kept.append(Supported(variable, claimed))
        return kept

    axes = [DesignVariable(name=axis.name, values=axis.values) for axis in roles.axes]
    fixed = [DesignVariable(name=name, values=(value,)) for name, value in roles.fixed]
    fixed += [DesignVariable(name=s.name, values=(s.value,)) for s in task.settings]
    measures = dict.fromkeys((claim.metric, claim.unit) for claim in task.claims)
    metrics = [DesignVariable(name=name, values=(unit,) if unit else ()) for name, unit in measures]
    independent = completed(task.independent, axes)
    varying = {s.variable.name.lower() for s in independent}
    constant = [s for s in completed(task.constant, fixed) if s.variable.name.lower() not in varying]
    # a dependent variable is what was measured: one that no claim measures was not
    measured = [s for s in task.dependent if any(_same_metric(s.variable.name, name) for name, _ in measures)]
    dependent = measured + [
        Supported(v, claimed) for v in metrics if not any(_same_metric(s.variable.name, v.name) for s in measured)
    ]
    return {"constant": constant, "independent": independent, "dependent": dependent}


def _same_metric(one: str, other: str) -> bool:
    first, second = set(one.lower().split()), set(other.lower().split())
    return first <= second or second <= first


def _variables(supported: Sequence[Supported]) -> tuple[DesignVariable, ...]:
    unique = {s.variable.name.lower(): s.variable for s in reversed(supported)}
    return tuple(dict.fromkeys(unique[s.variable.name.lower()] for s in supported))


def _evidence(
    paper: Paper, task: CheckedTask, steps: Sequence[Step], design: dict[str, list[Supported]]
) -> dict[str, tuple[Evidence, ...]]:
    labels = dict.fromkeys(e.label for c in task.claims for e in c.evidence if isinstance(e, TableEvidence))
    tables = [table for label in labels if (table := paper.table(label)) is not None]
    whole: list[Evidence] = [paper.reading.caption_evidence(table) for table in tables]
    stated: list[Evidence] = [span.evidence() for span in task.statements]
    claimed: list[Evidence] = [e for claim in task.claims for e in claim.evidence if not isinstance(e, TableEvidence)]
    found: dict[str, list[Evidence]] = {
        "question": whole or stated[:2] or claimed[:2],
        "method": [span.evidence() for step in steps for span in step.spans],
        "expected": [*whole, *stated, *claimed],
        **{name: [e for s in supported for e in s.evidence] for name, supported in design.items()},
    }
    return {name: tuple(dict.fromkeys(spans)) for name, spans in found.items() if spans}


def _slug(task: CheckedTask, expected: Expected) -> str:
    words, metric = slug(task.title, 44), slug(expected.claims[0].metric, 40)
    return slug(words if metric in words else f"{words} {metric}", 56) or "experiment"


def _unsupported(paper: Paper, draft: Draft) -> Evidence | None:
    spans = [span for spans in draft.evidence.values() for span in spans]
    spans += [span for setting in draft.hyperparameters for span in setting.evidence]
    spans += [span for claim in draft.expected.claims for span in claim.evidence]
    return next((span for span in spans if not paper.supports(span)), None)
