"""How far may a judge be believed? Its verdicts against people's: accuracy, F1, Cohen's kappa, confusion by dimension.

Labels are JSON lines: `{"episode": "<task>/<repeat>", "dimension": "design", "item": "constant:n", "label": "pass"}`,
with the judge's own verdict beside (`"verdict": "fail"`) or looked up in a run. Unknown verdicts of the judge are a
class of their own: they lower accuracy and coverage, and are left out of F1 and kappa, which are about decisions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from pydantic import Field, ValidationError

from evaluation.verdicts import IntegrityReport, ItemVerdict, Judgement
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.schema import Record
from pipeline.task import Verdict

__all__ = ["Agreement", "Calibration", "Label", "calibrate", "cohen_kappa", "f1_score", "read_labels", "verdicts_of"]

Dimension = Literal["integrity", "design", "implementation", "conclusion"]
DIMENSIONS: Final[tuple[Dimension, ...]] = ("integrity", "design", "implementation", "conclusion")


class Label(Record):
    """What a person says of one criterion of one episode."""

    episode: str
    """`<task>/<repeat>`."""
    dimension: Dimension
    item: str = ""
    """Criterion id; empty for integrity, which is one verdict an episode."""
    label: Literal["pass", "fail"]
    verdict: Verdict | None = None
    """The judge's; None: look it up in the run."""
    annotator: str = ""
    comment: str = ""


class Agreement(Record):
    """A judge against people, over some criteria."""

    items: int = Field(ge=0)
    decided: int = Field(ge=0)
    """Criteria on which the judge is not unknown."""
    accuracy: float | None
    """Share of all items on which the judge agrees; unknown is no agreement. None without items."""
    accuracy_decided: float | None
    precision: float | None
    """Of `pass`, among the decided."""
    recall: float | None
    f1: float | None
    kappa: float | None
    """Cohen's kappa over the decided; None when both always say the same one thing."""
    confusion: dict[str, dict[str, int]]
    """Label -> verdict -> count."""


class Calibration(Record):
    """Agreement by dimension, and over all."""

    dimensions: dict[str, Agreement]
    overall: Agreement
    missing: tuple[str, ...] = ()
    """Labels for which there is no verdict."""


def read_labels(path: Path) -> list[Label]:
    """The labels of a JSONL file, in order.

    Raises:
        ExpbenchError: `RECORD_INVALID`: no such file, no label in it, or a line that is none.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise _invalid(str(path), f"cannot be read ({error})") from error
    labels = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            labels.append(Label.model_validate_json(line))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(map(str, first["loc"])) or "the line"
            raise _invalid(f"{path}:{number}", f"is no label: {place}: {first['msg']}") from error
    if not labels:
        raise _invalid(str(path), "holds no label")
    return labels


def _invalid(where: str, cause: str) -> ExpbenchError:
    return ExpbenchError(
        FailureKind.RECORD_INVALID,
        where,
        cause,
        consequence="Nothing was compared",
        next_step='Write one JSON object a line: {"episode": "TASK/0", "dimension": "design", "item": "constant:n", '
        '"label": "pass"}',
    )


def verdicts_of(judgement: Judgement | None, integrity: IntegrityReport | None) -> dict[tuple[str, str], Verdict]:
    """(dimension, item) -> verdict of one episode."""
    found: dict[tuple[str, str], Verdict] = {}
    if judgement is not None:
        groups: Mapping[str, Sequence[ItemVerdict]] = {
            "design": judgement.design, "implementation": judgement.implementation, "conclusion": judgement.conclusion,
        }  # fmt: skip
        for dimension, items in groups.items():
            found |= {(dimension, item.item): item.verdict for item in items}
    if integrity is not None:
        found["integrity", ""] = integrity.verdict
    return found


def calibrate(labels: Iterable[Label], verdicts: Mapping[str, Mapping[tuple[str, str], Verdict]]) -> Calibration:
    """Compare labels with verdicts.

    Args:
        labels: of people; a label's own `verdict` goes before the run's.
        verdicts: episode -> (dimension, item) -> verdict.
    """
    pairs: dict[str, list[tuple[str, Verdict]]] = {}
    missing = []
    for label in labels:
        verdict = label.verdict or verdicts.get(label.episode, {}).get((label.dimension, label.item))
        if verdict is None:
            missing.append(f"{label.episode} {label.dimension} {label.item}".rstrip())
            continue
        pairs.setdefault(label.dimension, []).append((label.label, verdict))
    everything = [pair for group in pairs.values() for pair in group]
    return Calibration(
        dimensions={name: _agreement(pairs[name]) for name in DIMENSIONS if name in pairs},
        overall=_agreement(everything),
        missing=tuple(sorted(missing)),
    )


def _agreement(pairs: Sequence[tuple[str, Verdict]]) -> Agreement:
    decided = [(label, verdict.value) for label, verdict in pairs if verdict is not Verdict.UNKNOWN]
    confusion = {label: {verdict.value: 0 for verdict in Verdict} for label in ("pass", "fail")}
    for label, verdict in pairs:
        confusion[label][verdict.value] += 1
    equal = sum(label == given for label, given in decided)
    precision, recall, f1 = f1_score(decided)
    return Agreement(
        items=len(pairs),
        decided=len(decided),
        accuracy=equal / len(pairs) if pairs else None,
        accuracy_decided=equal / len(decided) if decided else None,
        precision=precision,
        recall=recall,
        f1=f1,
        kappa=cohen_kappa(decided),
        confusion=confusion,
    )


def f1_score(pairs: Sequence[tuple[str, str]]) -> tuple[float | None, float | None, float | None]:
    """(precision, recall, F1) of `pass` over (label, verdict) pairs; None where the denominator is zero."""
    true = sum(label == given == "pass" for label, given in pairs)
    given_pass = sum(given == "pass" for _, given in pairs)
    label_pass = sum(label == "pass" for label, _ in pairs)
    precision = true / given_pass if given_pass else None
    recall = true / label_pass if label_pass else None
    f1 = 2 * true / (given_pass + label_pass) if given_pass + label_pass else None
    return precision, recall, f1


def cohen_kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    """Agreement beyond chance (Cohen, 1960): (p_o - p_e) / (1 - p_e); None without pairs or where p_e is 1."""
    if not pairs:
        return None
    total = len(pairs)
    observed = sum(left == right for left, right in pairs) / total
    left, right = Counter(label for label, _ in pairs), Counter(given for _, given in pairs)
    expected = sum(left[name] * right[name] for name in left) / total**2
    return None if expected == 1 else (observed - expected) / (1 - expected)
