"""Metric I without a model: which of the task's requirements does code carry out that ran?

Nothing is read out of names. A submission that hands in the originals has them. One whose re-execution gives the task's
numbers, and whose numbers answer to perturbations as an experiment's do, has carried them out, however it is written.
Otherwise a requirement is met when the functions that the original runs for it ran again with the same settings, not
met when they ran with others, and unknown when nothing that ran can be tied to it: that takes a reader.

On strangers' agents the comparison of words and names that stood here gave complete programs .75 and hollow ones .88.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from evaluation.integrity.material import Material, read_text
from evaluation.judges.conclusion import MEANING, RELATIONS
from evaluation.judges.settings_compared import differences, recognised
from evaluation.submission import RESPONSE
from evaluation.verdicts import ExecutionReport, ItemVerdict
from pipeline.task import CodeEvidence, ExperimentTruth, Requirement, Verdict
from pipeline.witness.records import FunctionRun

__all__ = ["confirmation", "judge_implementation", "requirement_id", "restores_originals"]

_FOUND: Final = 0.8
"""Share of the task's claims whose numbers must be found and right, for the rest to count as carried out too."""


def requirement_id(number: int) -> str:
    """Stable id of the requirement at a position from 0."""
    return f"requirement:{number + 1}"


def confirmation(execution: ExecutionReport | None, conclusion: Sequence[ItemVerdict], claims: int) -> str:
    """Why behaviour confirms a submission; empty when it does not.

    Args:
        execution: its re-execution.
        conclusion: verdicts on its conclusion, among them one for each claim's number.
        claims: number of claims of the task.
    """
    if execution is None or execution.verdict is not Verdict.PASS or not claims:
        return ""
    answered = [item for item in execution.counterfactuals if item.verdict is Verdict.PASS]
    numbers = [item.verdict for item in conclusion if item.item not in {MEANING, RELATIONS}]
    right = numbers.count(Verdict.PASS)
    if not answered or right < _FOUND * claims or Verdict.FAIL in numbers:
        return ""
    names = " and ".join(item.perturbation.value for item in answered)
    return f"re-executed, {right} of {claims} numbers are the task's, and they answer as an experiment's do ({names})"


def judge_implementation(
    truth: ExperimentTruth, material: Material, conclusion: Sequence[ItemVerdict]
) -> tuple[ItemVerdict, ...]:
    """The verdict on each requirement, in their order.

    Args:
        truth: of the task.
        material: the episode with its re-execution.
        conclusion: verdicts on its conclusion.
    """
    files = {path: text for path, text in sorted(material.final_texts.items()) if path != RESPONSE}
    if not material.patch.strip() and material.submission.patch_sha256:
        return _all(truth, Verdict.UNKNOWN, "the patch that was handed in is not among the saved artefacts")
    if not files:
        return _all(truth, Verdict.FAIL, "the submission changes nothing")
    if restores_originals(material):
        return _all(truth, Verdict.PASS, "hands in the original files as they are")
    witness = material.execution.witness if material.execution is not None else None
    if witness is None:  # then nothing was perturbed and confirmed either
        return _all(truth, Verdict.UNKNOWN, "nothing of it was seen running")
    confirmed = confirmation(material.execution, conclusion, len(truth.expected.claims))
    ran = {(item.path, item.name): item for item in witness.functions}
    told = recognised(material.task.public, truth)
    items = [
        _verdict(number, item, truth, ran, witness.seeds, told, seeds_only=bool(confirmed))
        for number, item in enumerate(truth.requirements)
    ]
    if confirmed:  # what ran with other settings did so, however near its numbers come: three seeds for ten
        sure = {"verdict": Verdict.PASS, "reason": f"confirmed: {confirmed}"}
        items = [item if item.verdict is Verdict.FAIL else item.evolve(**sure) for item in items]
    return tuple(items)


def _all(truth: ExperimentTruth, verdict: Verdict, reason: str) -> tuple[ItemVerdict, ...]:
    return tuple(_item(number, item, verdict, reason) for number, item in enumerate(truth.requirements))


def _item(number: int, item: Requirement, verdict: Verdict, reason: str, where: str = "") -> ItemVerdict:
    return ItemVerdict(item=requirement_id(number), text=item.text, verdict=verdict, reason=reason, where=where)


def restores_originals(material: Material) -> bool:
    """Is every file of the task's own chain that was taken out there again, byte for byte?

    Args:
        material: the episode.
    """
    root, given, truth = material.task.original_tree, material.task.masked_repository, material.task.truth
    if root is None or given is None or truth is None:
        return False
    paths = [source.path for source in truth.sources]
    taken_out = [path for path in paths if (root / path).is_file() and not (given / path).is_file()]
    files = material.final_texts
    return bool(taken_out) and all(path in files and files[path] == read_text(root / path) for path in taken_out)


def _verdict(
    number: int, item: Requirement, truth: ExperimentTruth, ran: Mapping[tuple[str, str], FunctionRun],
    seeds: Sequence[str], told: frozenset[str], *, seeds_only: bool,
) -> ItemVerdict:  # fmt: skip
    """Of one requirement, from the functions that the original runs for it."""
    wanted = list(dict.fromkeys(function for span in item.spans for function in _run_for(span, truth.ran)))
    if not wanted:
        return _item(number, item, Verdict.UNKNOWN, "no function of the original's run is tied to it")
    met = [(own, ran[own.path, own.name]) for own in wanted if (own.path, own.name) in ran]
    other = [
        reason
        for own, theirs in met
        for reason in differences(own, theirs, truth.seeds, seeds, told, seeds_only=seeds_only)
    ]
    where = f"{wanted[0].path}:{wanted[0].line}"
    if other:
        return _item(number, item, Verdict.FAIL, f"ran with other settings: {'; '.join(other[:3])}", where)
    missing = [own.name for own in wanted if (own.path, own.name) not in ran]
    if missing:
        reason = f"{', '.join(missing[:3])} did not run; whether its own code does the same takes a reader"
        return _item(number, item, Verdict.UNKNOWN, reason, where)
    names = ", ".join(own.name for own, _ in met[:4])
    return _item(number, item, Verdict.PASS, f"ran as in the original: {names}", where)


def _run_for(span: CodeEvidence, ran: Iterable[FunctionRun]) -> list[FunctionRun]:
    """Functions that the original runs for these lines: defined there, or else called from there."""
    inside = [
        item for item in ran
        if item.path == span.path and span.start <= item.line <= span.end and item.name != "<module>"
    ]  # fmt: skip
    called = [item for item in ran if any(_within(span, caller) for caller in item.callers)]
    return called or inside


def _within(span: CodeEvidence, caller: str) -> bool:
    path, _, line = caller.rpartition(":")
    return path == span.path and line.isdigit() and span.start <= int(line) <= span.end
