"""Judging with a model: the same criteria, read instead of matched; one draw, or a panel of draws that vote.

Each draw of a panel sees the criteria in another order, so that a verdict which depends on the order shows as
disagreement. A `met` must quote what it judges: where the quote does not occur there, the vote is unknown and a problem
says so. What the agent and the repository say is delimited and labelled as data. A failure of the endpoint makes votes
unknown, never `not met`. What rules decide better is never asked: whether a number lies in its band, and the order of
numbers (`evaluation.judges.conclusion`).
"""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from evaluation.integrity.material import Material, normalised, read_text
from evaluation.judges.answers import ItemAnswer, JudgeAnswer, refuse_other_items
from evaluation.judges.conclusion import MEANING
from evaluation.verdicts import Grader, ItemVerdict, Judgement
from pipeline.llm import ModelClient, ModelError, Prompt, Request, load_prompt
from pipeline.progress import Reporter
from pipeline.schema import Problem, Severity
from pipeline.task import ExperimentTruth, Verdict

__all__ = ["agreement", "judge_with_model", "majority"]

BATCH: Final = 24
"""Criteria of one request: an answer of 24 verdicts with quotes and reasons stays below the default of 4,096 tokens."""
PROMPTS: Final = ("judge_design", "judge_implementation", "judge_conclusion")
_VERDICTS: Final = {"met": Verdict.PASS, "not_met": Verdict.FAIL, "unknown": Verdict.UNKNOWN}
_EMPTY: Final = "(nothing)"


@dataclass(slots=True)
class _Dimension:
    """One of D, I, C: what is asked, about what."""

    name: str
    items: tuple[ItemVerdict, ...]
    """The keyless verdicts: ids and texts of the criteria, and the cross-check."""
    asked: dict[str, str]
    """Item id -> the criterion as it is shown; items that are missing keep their verdict."""
    inputs: dict[str, str]
    quoted: str
    """Where quotes must occur."""
    where: str
    answers: dict[str, list[ItemAnswer | None]] = field(default_factory=dict)


def judge_with_model(
    material: Material,
    keyless: Judgement,
    client: ModelClient,
    panel: int,
    reporter: Reporter,
    ran: Sequence[str] | None = None,
) -> Judgement:
    """Judge with `panel` draws.

    Args:
        material: what the agent did.
        keyless: the verdicts of the rules.
        client: the judging model.
        panel: draws that vote.
        reporter: progress.
        ran: functions that were left in the repository and that ran in the re-execution; None: not observed.

    Raises:
        BudgetError, ModelError, ExpbenchError: see `ModelClient.structured`; endpoint failures become unknown votes.
    """
    dimensions = _dimensions(material, keyless, ran)
    problems: list[Problem] = []
    reporter.start("judge", panel * len(dimensions))
    for draw in range(panel):
        for dimension in dimensions:
            _draw(dimension, material, client, draw, problems)
            reporter.step("judge", f"{dimension.name}, draw {draw + 1} of {panel}")
    judged = {dimension.name: _decided(dimension, panel, problems) for dimension in dimensions}
    problems += _agreement_problems(judged, keyless, panel)
    reporter.end("judge", f"{sum(map(len, judged.values()))} criteria")
    prompts = tuple((p.name, p.ref.digest) for p in map(_prompt, PROMPTS))
    grader = Grader(
        engine="panel" if panel > 1 else "model",
        model=client.config.model,
        prompts=prompts,
        version=keyless.grader.version,
    )
    return keyless.evolve(**judged, grader=grader, problems=(*keyless.problems, *problems))


def _prompt(name: str) -> Prompt:
    return load_prompt("evaluation.judges.prompts", name)


# --- what is asked ---------------------------------------------------------------------------------------------------


def _dimensions(material: Material, keyless: Judgement, ran: Sequence[str] | None) -> list[_Dimension]:
    truth = material.task.truth
    assert truth is not None
    public = material.task.public
    task = f"Question: {public.question}\nMethod: {public.method}\nInstructions: {public.agent_instructions}"
    response = material.response_text or _EMPTY
    conclusion = _conclusion(material)
    patch = f"{material.patch}\n--- reproduce.sh\n{material.reproduce}".strip() or _EMPTY
    used = "(not observed)" if ran is None else "\n".join(sorted(ran)) or _EMPTY
    codes = _requirement_texts(material, truth)
    lost = not material.patch.strip() and bool(material.submission.patch_sha256)
    implementation = tuple(map(_not_saved, keyless.implementation)) if lost else keyless.implementation
    return [
        _Dimension(
            "design", keyless.design, {item.item: f"{item.item}: {item.text}" for item in keyless.design},
            {"task": task, "response": response}, f"{response}\n{_plain(material)}", "response.json",
        ),
        _Dimension(
            "implementation", implementation,
            {item.item: f"{item.item}: {item.text}\n{codes.get(item.item, '')}" for item in implementation if not lost},
            {"task": task, "used": used, "patch": patch}, f"{patch}\n{_added(material)}", "patch",
        ),
        _Dimension(
            "conclusion", keyless.conclusion,
            {item.item: f"{item.item}: {item.text}" for item in keyless.conclusion if item.item == MEANING},
            {"task": task, "response": conclusion}, f"{conclusion}\n{response}\n{_plain(material)}",
            "response.json: conclusion",
        ),
    ]  # fmt: skip


def _not_saved(item: ItemVerdict) -> ItemVerdict:
    """Nothing can be said of a patch that was handed in and is gone: an empty one would be judged as no work at all."""
    reason = "the patch that was handed in is not among the saved artefacts"
    return ItemVerdict(item=item.item, text=item.text, verdict=Verdict.UNKNOWN, reason=reason)


def _conclusion(material: Material) -> str:
    response = material.submission.response
    if response is None:
        return _EMPTY
    numbers = "\n".join(f"{name}: {value:.12g}" for name, value in sorted(response.conclusion.numbers.items()))
    return f"{response.conclusion.text}\n\nNumbers:\n{numbers or _EMPTY}"


def _plain(material: Material) -> str:
    """The response's texts without JSON escapes."""
    response = material.submission.response
    return "" if response is None else "\n".join(_leaves(response.model_dump(mode="json")))


def _leaves(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for key, item in value.items() for text in (str(key), *_leaves(item))]
    if isinstance(value, list):
        return [text for item in value for text in _leaves(item)]
    return [value if isinstance(value, str) else json.dumps(value)]


def _added(material: Material) -> str:
    return "\n".join(file.added_text for file in material.patch_files)


def _requirement_texts(material: Material, truth: ExperimentTruth) -> dict[str, str]:
    found = {}
    for number, requirement in enumerate(truth.requirements, 1):
        pieces = []
        for span in requirement.spans:
            root = material.task.original_tree
            target = root / span.path if root is not None else None
            lines = read_text(target).split("\n")[span.start - 1 : span.end] if target is not None else [span.quote]
            pieces.append(f"  {span.path}:{span.start}-{span.end}\n" + "\n".join(f"    {line}" for line in lines))
        found[f"requirement:{number}"] = "\n".join(pieces)
    return found


# --- asking ----------------------------------------------------------------------------------------------------------


def _draw(dimension: _Dimension, material: Material, client: ModelClient, draw: int, problems: list[Problem]) -> None:
    """One draw over all criteria of a dimension, in an order of its own."""
    order = list(dimension.asked)
    if draw:
        random.Random(f"{material.task.id}:{dimension.name}:{draw}").shuffle(order)  # noqa: S311 - an order, no secret
    parameters = client.config.parameters.evolve(sample=draw)
    prompt = _prompt(f"judge_{dimension.name}")
    for start in range(0, len(order), BATCH):
        batch = order[start : start + BATCH]
        criteria = "\n".join(dimension.asked[item] for item in batch)
        request = Request(
            messages=prompt.render(criteria=criteria, **dimension.inputs), parameters=parameters, prompt=prompt.ref
        )
        try:
            pieces = client.structured_split(request, JudgeAnswer, check=partial(_complete, wanted=frozenset(batch)))
        except ModelError as error:
            if error.hits_every_call:
                raise
            where = f"{dimension.name}, draw {draw + 1}"
            problems.append(_problem(where, f"no answer of the model for {len(batch)} criteria: {error.cause}"))
            answers: dict[str, ItemAnswer | None] = dict.fromkeys(batch)
        else:
            answers = _united(batch, [piece.value for piece in pieces])
        for item in batch:
            dimension.answers.setdefault(item, []).append(answers[item])


def _complete(value: JudgeAnswer, wanted: frozenset[str]) -> None:
    refuse_other_items((item.item for item in value.items), wanted, "ids")


def _united(batch: Sequence[str], pieces: Sequence[JudgeAnswer]) -> dict[str, ItemAnswer | None]:
    """Answers for the pieces of a text that was too long for one: met in one piece is met."""
    rank = {"met": 0, "unknown": 1, "not_met": 2}
    found: dict[str, ItemAnswer | None] = dict.fromkeys(batch)
    for piece in pieces:
        for answer in piece.items:
            present = found[answer.item]
            if present is None or rank[answer.verdict] < rank[present.verdict]:
                found[answer.item] = answer
    return found


# --- deciding --------------------------------------------------------------------------------------------------------


def majority(votes: Sequence[Verdict]) -> Verdict:
    """The verdict of more than half of the votes; unknown when there is none."""
    counts = Counter(votes)
    verdict, count = max(counts.items(), key=lambda pair: (pair[1], pair[0].value)) if counts else (Verdict.UNKNOWN, 0)
    return verdict if count * 2 > len(votes) else Verdict.UNKNOWN


def agreement(votes: Sequence[Sequence[Verdict]]) -> float | None:
    """Share of pairs of votes on the same criterion that agree; None with fewer than two votes everywhere."""
    pairs = [(left, right) for item in votes for left, right in itertools.combinations(item, 2)]
    return sum(left is right for left, right in pairs) / len(pairs) if pairs else None


def _decided(dimension: _Dimension, panel: int, problems: list[Problem]) -> tuple[ItemVerdict, ...]:
    quoted = normalised(dimension.quoted)
    found = []
    for item in dimension.items:
        if item.item not in dimension.asked:
            found.append(item)
            continue
        votes: list[Verdict] = []
        shown: dict[Verdict, ItemAnswer] = {}
        for answer in dimension.answers.get(item.item, []):
            vote = Verdict.UNKNOWN if answer is None else _VERDICTS[answer.verdict]
            quote = normalised(answer.quote) if answer is not None else ""
            if answer is not None and vote is Verdict.PASS and (not quote or quote not in quoted):
                problems.append(
                    _problem(item.item, "a `met` was not counted: its quote does not occur in what was judged")
                )
                vote = Verdict.UNKNOWN
            votes.append(vote)
            if answer is not None:
                shown.setdefault(vote, answer)
        verdict = majority(votes)
        chosen = shown.get(verdict)
        keep = chosen is not None and bool(chosen.quote.strip()) and normalised(chosen.quote) in quoted
        found.append(
            ItemVerdict(
                item=item.item,
                text=item.text,
                verdict=verdict,
                reason=chosen.reason if chosen else ("the draws do not agree" if shown else "the model gave no answer"),
                quote=chosen.quote if chosen and keep else "",
                where=dimension.where if keep else "",
                votes=tuple(votes) if panel > 1 else (),
            )
        )
    return tuple(found)


def _agreement_problems(judged: dict[str, tuple[ItemVerdict, ...]], keyless: Judgement, panel: int) -> list[Problem]:
    """Figures for the reader: how far the draws agree with each other, and with the keyless judge."""
    found = []
    for name, items in judged.items():
        if not items:
            continue
        share = agreement([item.votes for item in items])
        if panel > 1 and share is not None:
            message = (
                f"the {panel} draws agree in {share:.0%} of their pairs over {len(items)} criteria, "
                f"each in another order"
            )
            found.append(_problem(name, message, Severity.INFO))
        other = {item.item: item.verdict for item in getattr(keyless, name)}
        differing = [item.item for item in items if item.verdict is not other[item.item]]
        if differing:
            some = ", ".join(differing[:8])
            message = f"differs from the keyless judge on {len(differing)} of {len(items)} criteria: {some}"
            found.append(_problem(name, message, Severity.INFO))
    return found


def _problem(where: str, message: str, severity: Severity = Severity.WARNING) -> Problem:
    return Problem(component="judges.model", where=where, message=message, severity=severity)
