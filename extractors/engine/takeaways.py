"""Pass a: high-level takeaways of the whole paper, by retrieval (EXP-Bench 3.2, stage 2.1).

A few broad queries each bring up passages from everywhere in the paper; a model says which findings they state. What
it cannot quote is dropped, and findings that rest on the same sentences or floats are one takeaway.
"""

from __future__ import annotations

from typing import Final

from extractors._reading import label_key
from extractors.engine.asking import Asker, info
from extractors.engine.evidence import Paper, Span
from extractors.engine.said import SaidTakeaway, TakeawaysAnswer
from extractors.engine.showing import show_hits
from extractors.index import PaperIndex
from pipeline.progress import Reporter
from pipeline.schema import Problem, Record
from pipeline.task import TextEvidence

__all__ = ["QUERIES", "Takeaway", "find_takeaways"]

QUERIES: Final = (
    "main results compared with baselines and other methods, best accuracy or lowest error",
    "ablation study: effect of removing or replacing one part of the method",
    "effect of varying a parameter: sensitivity, amount of data, noise, number of steps",
    "run time, memory, cost, scaling and efficiency measured",
    "robustness, generalisation and transfer to other data sets or settings; statistical significance",
    "we find, we show, we conclude: summary of the experimental results and contributions",
)
"""What the experiments of a paper are usually about; the last one brings up abstract and conclusion."""
_SHARE: Final = 3
"""A query sees at most a third of the paper: less is not the whole experiment, more is no retrieval."""
_LEAST, _MOST = 6_000, 30_000
"""Characters. A paper below the first is shown whole; the second is about 8,000 tokens."""
_HITS: Final = 60
_COMPONENT: Final = "extract.model.takeaways"


class Takeaway(Record):
    """A finding of the paper with the sentences it was stitched together from."""

    id: str
    statement: str
    evidence: tuple[TextEvidence, ...]
    floats: tuple[str, ...] = ()


def find_takeaways(
    asker: Asker, paper: Paper, index: PaperIndex, problems: list[Problem], reporter: Reporter
) -> tuple[Takeaway, ...]:
    """Ask all queries; returns the takeaways in the order in which they were first found, as `t1`, `t2`, ...

    Args:
        asker: the model.
        paper: where quotes are looked up.
        index: of the whole paper.
        problems: receives what was dropped and why.
        reporter: is told about each query.
    """
    whole = sum(len(unit.text) for unit in index.units)
    limit = max(_LEAST, min(_MOST, whole // _SHARE))

    def ask(query: str) -> tuple[str, tuple[TakeawaysAnswer, ...], tuple[Problem, ...]]:
        hits = index.search(query, _HITS)
        if not hits:
            return query, (), (info(_COMPONENT, query, "no passage of the paper has anything to do with it"),)
        passages = show_hits(paper.document, hits, limit)
        answer = asker.ask("takeaways", TakeawaysAnswer, f"query `{query}`", query=query, passages=passages)
        return query, answer.values, answer.problems

    reporter.start("takeaways", len(QUERIES))
    found: list[Takeaway] = []
    with asker.stage("takeaways"):
        answers = asker.each(QUERIES, ask)
    for query, values, said in answers:
        problems += said
        before = len(found)
        for value in values:
            for takeaway in value.takeaways:
                _enter(found, paper, takeaway, problems)
        reporter.step("takeaways", f"{query}: {len(found) - before} new")
    reporter.end("takeaways", f"{len(found)} takeaways")
    return tuple(takeaway.evolve(id=f"t{number}") for number, takeaway in enumerate(found, 1))


def _enter(found: list[Takeaway], paper: Paper, said: SaidTakeaway, problems: list[Problem]) -> None:
    """Check one takeaway and add it, or join it to the one that rests on the same."""
    spans: list[Span] = []
    for quote in said.quotes:
        where = paper.find(quote)
        if not where:
            message = f"a quote of the takeaway `{said.statement}` is not in the paper: `{quote}`"
            problems.append(Problem(component=_COMPONENT, where="paper", message=message))
        spans += where
    if not spans:
        message = f"dropped the takeaway `{said.statement}`: nothing that it quotes is in the paper"
        problems.append(Problem(component=_COMPONENT, where="paper", message=message))
        return
    floats = tuple(dict.fromkeys(label for label in map(_known(paper), said.floats) if label))
    evidence = tuple(dict.fromkeys(span.evidence() for span in spans))
    twin = next((n for n, other in enumerate(found) if _same(other, evidence, floats)), None)
    if twin is None:
        found.append(Takeaway(id="t0", statement=said.statement, evidence=evidence, floats=floats))
        return
    other = found[twin]
    found[twin] = other.evolve(
        evidence=tuple(dict.fromkeys([*other.evidence, *evidence])),
        floats=tuple(dict.fromkeys([*other.floats, *floats])),
    )


def _same(other: Takeaway, evidence: tuple[TextEvidence, ...], floats: tuple[str, ...]) -> bool:
    quotes = {item.quote for item in evidence}
    shared = quotes & {item.quote for item in other.evidence}
    return len(shared) * 2 >= len(quotes) or bool(shared and floats and set(floats) == set(other.floats))


class _known:  # noqa: N801 - used as a function
    """A float's label as the paper writes it; empty when it has no such float."""

    def __init__(self, paper: Paper) -> None:
        document = paper.document
        labels = [*(caption.label for caption in document.captions), *(table.label for table in document.tables)]
        self._labels = {label_key(label): label for label in reversed(labels)}

    def __call__(self, label: str) -> str:
        return self._labels.get(label_key(label), "")
