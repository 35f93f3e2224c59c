"""What holds of an answer becomes a draft: its outcome composed from the claims alone, with the chain that gives it.

Question and method are the reader's words; expected outcome and the form of the answer are composed from checked
values, with the same code as the keyless engine's. A draft without a claim, or with a question that tells the outcome,
is not made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from extractors._roles import Roles, roles_of
from extractors.answers import states_answer
from extractors.drafting import instructions
from extractors.engine.gates import Checked, Supported
from extractors.engine.listing import Listing
from extractors.outcome import compose_expected
from pipeline.task import DesignVariable, Draft, Evidence, Expected, NumericClaim, TableEvidence
from pipeline.text import slug

__all__ = ["compose", "why_no_task"]


def why_no_task(checked: Checked) -> str:
    """Why there can be no task of what holds; empty when there can."""
    if not checked.claims:
        return "no claim of it holds"
    if not checked.question:
        return "its question is missing, or tells the outcome"
    if not checked.sources and not checked.not_found:
        return "neither a chain that holds nor a reason for there being none"
    return ""


def compose(listing: Listing, title: str, checked: Checked) -> Draft:
    """Make the draft.

    Args:
        listing: the paper.
        title: of the experiment.
        checked: what holds; `why_no_task` has nothing against it. Claims that a run gave have their places in it.
    """
    claims = checked.claims
    expected = compose_expected(claims, [item.quote for item in checked.results])
    roles = roles_of(claims)
    probe = Draft(slug="probe", question="-", method="-", expected=expected, confidence=0)
    told = [checked.instructions, instructions(claims, roles)]
    said = "\n".join(text for text in told if text and not states_answer(text, probe))
    design = _design(checked, claims, roles)
    return Draft(
        slug=_slug(title, expected), question=checked.question,
        method=" ".join(_sentence(step.text) for step in checked.steps), agent_instructions=said, expected=expected,
        constant=_variables(design["constant"]), independent=_variables(design["independent"]),
        dependent=_variables(design["dependent"]), hyperparameters=checked.settings,
        evidence=_evidence(listing, checked, claims, design), sections=_sections(checked),
        confidence=_confidence(checked),
    )  # fmt: skip


def _confidence(checked: Checked) -> float:
    """Half of it for the share of what was said that holds, 0.3 for numbers that a run gave, 0.2 for a method."""
    ran = sum(bool(claim.place) for claim in checked.claims) / len(checked.claims)
    held = checked.kept / max(checked.kept + len(checked.complaints), 1)
    return round(0.5 * held + 0.3 * ran + (0.2 if checked.steps else 0.0), 3)


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?", ":")) else text + "."


def _design(checked: Checked, claims: Sequence[NumericClaim], roles: Roles) -> dict[str, list[Supported]]:
    """The reader's variables, completed by those that the claims themselves show."""
    claimed = tuple(dict.fromkeys(evidence for claim in claims for evidence in claim.evidence))[:1]

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
    measures = dict.fromkeys((claim.metric, claim.unit) for claim in claims)
    independent = completed(checked.independent, axes)
    varying = {s.variable.name.lower() for s in independent}
    constant = [s for s in completed(checked.constant, fixed) if s.variable.name.lower() not in varying]
    # what was measured is what the claims state: a dependent variable that none measures was not
    measured = [s for s in checked.dependent if any(_same_metric(s.variable.name, name) for name, _ in measures)]
    dependent = measured + [
        Supported(DesignVariable(name=name, values=(unit,) if unit else ()), claimed)
        for name, unit in measures
        if not any(_same_metric(s.variable.name, name) for s in measured)
    ]
    return {"constant": constant, "independent": independent, "dependent": dependent}


def _same_metric(one: str, other: str) -> bool:
    first, second = set(one.lower().split()), set(other.lower().split())
    return first <= second or second <= first


def _variables(supported: Sequence[Supported]) -> tuple[DesignVariable, ...]:
    unique = {s.variable.name.lower(): s.variable for s in reversed(supported)}
    return tuple(dict.fromkeys(unique[s.variable.name.lower()] for s in supported))


def _evidence(
    listing: Listing, checked: Checked, claims: Sequence[NumericClaim], design: dict[str, list[Supported]]
) -> dict[str, tuple[Evidence, ...]]:
    cells = [e for claim in claims for e in claim.evidence if isinstance(e, TableEvidence)]
    tables = [t for t in listing.tables.values() if any((e.label, e.page) == (t.label, t.page) for e in cells)]
    whole: list[Evidence] = [listing.reading.caption_evidence(table) for table in tables]
    stated: list[Evidence] = [e for claim in claims for e in claim.evidence if not isinstance(e, TableEvidence)]
    found: dict[str, list[Evidence]] = {
        "question": whole or stated[:2],
        "method": [e for step in checked.steps for e in step.evidence],
        "expected": [*whole, *checked.results, *stated],
        **{name: [e for s in supported for e in s.evidence] for name, supported in design.items()},
    }
    return {name: tuple(dict.fromkeys(spans)) for name, spans in found.items() if spans or name in _ALWAYS}


_ALWAYS = frozenset({"question", "method", "expected"})


def _sections(checked: Checked) -> tuple[str, ...]:
    found = [getattr(e, "section", None) for step in checked.steps for e in step.evidence]
    return tuple(dict.fromkeys(section for section in found if section))


def _slug(title: str, expected: Expected) -> str:
    words, metric = slug(title, 44), slug(expected.claims[0].metric, 40)
    return slug(words if metric in words else f"{words} {metric}", 56) or "experiment"
