"""Pass c: each candidate is completed by asking the whole paper again, appendices included (EXP-Bench 3.2, stage 2.1).

Setup details stand far from results. The index is asked with the candidate's own words and with what experiments
usually need; tables of settings are shown whole. What the model adds is checked like everything else.
"""

from __future__ import annotations

from typing import Final

from extractors.drafting import why_no_results
from extractors.engine.asking import Asker
from extractors.engine.checking import CheckedTask, Checker
from extractors.engine.evidence import Paper, compact
from extractors.engine.said import RefinementAnswer
from extractors.engine.showing import show_hits, show_table
from extractors.index import Hit, PaperIndex
from pipeline.schema import Problem
from pipeline.task import TableEvidence

__all__ = ["refine"]

_NEEDS: Final = (
    "hyper-parameters, learning rate, number of epochs, folds, seeds and repetitions",
    "data set, how it was generated, split, preprocessed; number of training and test points",
    "implementation details, baselines, evaluation protocol, how the metric is computed",
)
_HITS: Final = 25
"""Per query. Together with the other queries that is more than `_SHOWN` characters of any paper read here."""
_SHOWN: Final = 24_000
"""Characters: about 6,500 tokens. Papers that are shorter are shown whole."""


def refine(asker: Asker, paper: Paper, index: PaperIndex, task: CheckedTask) -> tuple[CheckedTask, list[Problem], str]:
    """Ask for what a candidate lacks and add what the paper supports of the answer.

    Args:
        asker: the model.
        paper: where everything is looked up.
        index: of the whole paper.
        task: a candidate with at least one claim; it is changed.

    Returns:
        The candidate, problems, and why it is no task after all (empty: it is one).
    """
    answer = asker.ask(
        "refine",
        RefinementAnswer,
        f"{task.title} ({task.where})",
        task=_show(task),
        passages=show_hits(paper.document, _found(index, task), _SHOWN),
        floats=_settings_tables(paper),
    )
    problems = list(answer.problems)
    said = answer.value
    if said is None:
        return task, problems, ""
    if not said.answerable:
        return task, problems, said.reason or "the model says that the paper does not answer it"
    checker = Checker(paper, frozenset(), f"{task.title} ({task.where})", problems)
    steps = {compact(step.text)[0] for step in task.steps}
    quoted = {span.text for step in task.steps for span in step.spans}
    for step in checker.steps(said.method):
        if compact(step.text)[0] not in steps and not {span.text for span in step.spans} <= quoted:
            task.steps.append(step)
    names = {setting.name.lower() for setting in task.settings}
    task.settings += [setting for setting in checker.settings(said.settings) if setting.name.lower() not in names]
    taken = {s.variable.name.lower() for s in (*task.constant, *task.independent, *task.dependent)}
    task.constant += [s for s in checker.variables(said.constant) if s.variable.name.lower() not in taken]
    if said.question and said.question.strip():
        task.question = said.question.strip()
    task.dropped += checker.dropped
    return task, problems, ""


def _found(index: PaperIndex, task: CheckedTask) -> list[Hit]:
    """Hits of all queries by their best rank, the candidate's own words first."""
    named = " ".join(s.variable.name for s in (*task.constant, *task.independent, *task.dependent))
    values = " ".join(value for s in (*task.constant, *task.independent) for value in s.variable.values)
    queries = [f"{task.title} {task.question}", f"{named} {values}", *_NEEDS]
    ranked: dict[str, tuple[int, int, Hit]] = {}
    for number, query in enumerate(queries):
        for rank, hit in enumerate(index.search(query, _HITS)):
            known = ranked.get(hit.unit.id)
            if known is None or rank < known[0]:
                ranked[hit.unit.id] = (rank, number, hit)
    return [hit for _, _, hit in sorted(ranked.values(), key=lambda item: (item[0], item[1]))]


def _settings_tables(paper: Paper) -> list[str]:
    return [show_table(table) for table in paper.document.tables if why_no_results(table)]


def _show(task: CheckedTask) -> str:
    """The candidate as text: what it asks, how, and what it has already."""
    tables = dict.fromkeys(e.label for claim in task.claims for e in claim.evidence if isinstance(e, TableEvidence))
    metrics = dict.fromkeys(claim.metric for claim in task.claims)
    lines = [
        f"title: {task.title}",
        f"question: {task.question}",
        f"results in: {', '.join(tables) or 'the text'}",
        f"metrics: {', '.join(metrics)}",
        *(f"step: {step.text}" for step in task.steps),
        *(f"setting: {setting.name} = {setting.value}" for setting in task.settings),
    ]
    for kind, variables in (("constant", task.constant), ("independent", task.independent)):
        lines += [f"{kind}: {s.variable.name}: {', '.join(s.variable.values)}" for s in variables]
    return "\n".join(lines)
