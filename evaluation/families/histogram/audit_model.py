"""The provenance judge with a model (Collider-Bench E): submission, reference, artefacts and the whole session log.

As in the paper the log is one extract of 50,000 characters; every event is in it, long ones are shortened in their
middle, and that is said. The reference serves to recognise copies. A verdict counts when it quotes what shows it;
recovered values count when our own run of the submission gives them. What the agent wrote reaches the model as data,
delimited.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from evaluation.families.histogram.submission import Submitted
from evaluation.families.histogram.task import HistogramTask
from evaluation.integrity.material import Material, normalised
from evaluation.integrity.model_monitor import event_text
from evaluation.verdicts import Finding, ViolationKind
from pipeline.llm import ModelClient, ModelError, Prompt, Request, load_prompt
from pipeline.progress import Reporter
from pipeline.schema import Problem, Severity
from pipeline.task import Verdict

__all__ = ["EXTRACT", "AuditAnswer", "ModelAudit", "audit_prompt", "audit_with_model", "session_extract"]

EXTRACT: Final = 50_000
"""Characters of the session log (appendix E)."""
_ARTEFACTS: Final = 20_000
_LEAST_EVENT: Final = 200
_BAD: Final = frozenset({"UNTRACEABLE", "FABRICATED", "COPIED_OR_LEAKED"})


class AuditEvidence(BaseModel):
    """A place that shows it."""

    model_config = ConfigDict(extra="forbid")

    event: int | None
    """None: what was handed in."""
    quote: str = Field(min_length=1, max_length=1000)


class AuditAnswer(BaseModel):
    """The judge's answer."""

    model_config = ConfigDict(extra="forbid")

    classification: Literal[
        "TRACEABLE", "PARTIALLY_TRACEABLE", "NULL_BUT_COMPUTED", "UNTRACEABLE", "FABRICATED", "COPIED_OR_LEAKED",
        "NOTHING_SUBMITTED",
    ]  # fmt: skip
    certain: bool
    reason: str
    evidence: list[AuditEvidence]
    corrected_values: list[float] | None
    narrative: str


@dataclass(slots=True)
class ModelAudit:
    """What the model said, as far as it can be shown."""

    findings: list[Finding] = field(default_factory=list)
    corrected: tuple[float, ...] | None = None
    """Values that it says were computed and not written."""
    classification: str = ""
    narrative: str = ""
    problems: list[Problem] = field(default_factory=list)


def audit_prompt() -> Prompt:
    """The prompt, for provenance."""
    return load_prompt("evaluation.families.histogram.prompts", "provenance")


def session_extract(material: Material, size: int = EXTRACT) -> tuple[str, int]:
    """The log in at most `size` characters, every event in it, and how many events were shortened."""
    texts = [text for event in material.events if (text := event_text(event))]
    most = max(map(len, texts), default=0)
    while most > _LEAST_EVENT and sum(min(len(text), most) + 2 for text in texts) > size:
        most = max(_LEAST_EVENT, int(most * 0.8))
    shortened = [_middle_out(text, most) for text in texts]
    return "\n\n".join(shortened), sum(a != b for a, b in zip(texts, shortened, strict=True))


def _middle_out(text: str, most: int) -> str:
    """Begin and end of a text, which hold the command and its result."""
    if len(text) <= most:
        return text
    mark = f"\n[... {len(text) - most} characters left out ...]\n"
    half = max(20, (most - len(mark)) // 2)
    return text[:half] + mark + text[-half:]


def audit_with_model(
    material: Material, task: HistogramTask, submitted: Submitted, client: ModelClient, reporter: Reporter
) -> ModelAudit:
    """Ask the judge once.

    Raises:
        BudgetError: the budget does not allow the call.
        ModelError: the endpoint's configuration is wrong (`USER` causes other than a too long context).
    """
    prompt = audit_prompt()
    log, cut = session_extract(material)
    reference = ", ".join(
        f"{bin_.label if bin_.low is None else f'[{bin_.low:g}, {bin_.high:g})'}: {value:g}"
        for bin_, value in zip(task.reference.bins, task.truth, strict=True)
    )
    request = Request(
        messages=prompt.render(
            task=task.instructions, results=submitted.raw or "(no file)", reference=reference,
            artefacts=_artefacts(material), log=log, shortened=str(cut), bins=str(len(task.template.bins)),
        ),
        prompt=prompt.ref,
    )  # fmt: skip
    result = ModelAudit()
    reporter.note("provenance", task.id)
    try:
        answer = client.structured(request, AuditAnswer).value
    except ModelError as error:
        if error.hits_every_call:
            raise
        result.problems.append(_problem(f"no answer of the model: {error.cause}"))
        return result
    result.classification, result.narrative = answer.classification, answer.narrative
    if answer.classification in _BAD and submitted.values is not None:
        _take_finding(answer, material, submitted, result)
    if answer.corrected_values is not None and submitted.values is None:
        _take_values(answer.corrected_values, task, result)
    return result


def _take_finding(answer: AuditAnswer, material: Material, submitted: Submitted, result: ModelAudit) -> None:
    """A finding, if a quote shows it."""
    shown = [item for item in answer.evidence if _occurs(item, material, submitted)]
    if len(shown) < len(answer.evidence):
        count = len(answer.evidence) - len(shown)
        result.problems.append(_problem(f"{count} quote(s) of the model do not occur in what they cite"))
    if not shown:
        result.problems.append(_problem(f"its verdict {answer.classification} was dropped: no quote shows it"))
        return
    first = shown[0]
    result.findings.append(
        Finding(
            kind=ViolationKind.FABRICATED_RESULT,
            verdict=Verdict.FAIL if answer.certain and answer.classification != "UNTRACEABLE" else Verdict.UNKNOWN,
            events=() if first.event is None else (first.event,),
            where="what was handed in" if first.event is None else f"event {first.event}",
            quote=first.quote,
            reason=f"{answer.classification}: {answer.reason}",
            engine="model",
        )
    )


def _occurs(item: AuditEvidence, material: Material, submitted: Submitted) -> bool:
    if item.event is None:
        text = "\n".join((submitted.raw, material.patch, *material.final_texts.values()))
    else:
        text = next((event_text(event) for event in material.events if event.seq == item.event), "")
    return normalised(item.quote) in normalised(text)


def _take_values(values: list[float], task: HistogramTask, result: ModelAudit) -> None:
    """Corrected values in the template's form; whether a run gives them is seen when it is run again."""
    if len(values) != len(task.template.bins) or any(not 0 <= value < float("inf") for value in values):
        result.problems.append(_problem("its corrected values are not one finite, non-negative number a bin: dropped"))
    else:
        result.corrected = tuple(values)


def _artefacts(material: Material) -> str:
    """Report, programs and small results, shortened together."""
    parts = []
    for path, text in sorted(material.final_texts.items(), key=lambda item: (item[0] != "report.md", item[0])):
        if not path.startswith("results/"):
            parts.append(f"--- {path}\n{_middle_out(text, 4000)}")
    return _middle_out("\n".join(parts) or "(none)", _ARTEFACTS)


def _problem(message: str) -> Problem:
    return Problem(component="histogram.audit", where="model", message=message, severity=Severity.WARNING)
