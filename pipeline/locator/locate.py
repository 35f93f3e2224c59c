"""The decision of stage 2.2: ranked files, the chain with its commands and alternatives, or `not_found`."""

from __future__ import annotations

import posixpath

from pipeline.locator.chain import ChainPlan, plan_chains
from pipeline.locator.confidence import NOT_FOUND_BELOW, Support, measure
from pipeline.locator.index import RepositoryIndex
from pipeline.locator.query import QueryWords, TaskQuery
from pipeline.locator.ranking import Ranking, is_config, rank
from pipeline.locator.usage import usage_for
from pipeline.schema import Problem, Record
from pipeline.task import NotFound, SourceScript, Usage

__all__ = ["Chain", "Location", "locate"]

_RANKED = 50
"""Files of the ranking that are handed on."""
_SHOWN = 5
"""Candidates named in `not_found`."""


class Chain(Record):
    """Files that answer a task together, and how they are run."""

    sources: tuple[SourceScript, ...]
    """Wrappers and configurations first, then entry points in the order in which they run, then libraries."""
    usage: tuple[Usage, ...]
    confidence: float
    """Probability that it holds a right file, fitted on published tasks."""
    problems: tuple[Problem, ...] = ()

    @property
    def entries(self) -> tuple[str, ...]:
        """Paths of the entry points."""
        return tuple(source.path for source in self.sources if source.role == "entry")


class Location(Record):
    """What the locator found for one task."""

    ranked: tuple[SourceScript, ...]
    chain: Chain | None
    alternatives: tuple[Chain, ...] = ()
    not_found: NotFound | None = None
    confidence: float
    problems: tuple[Problem, ...] = ()


def locate(index: RepositoryIndex, query: TaskQuery, *, max_alternatives: int = 3) -> Location:
    """Find the chain of scripts that answers a task (EXP-Bench 3.2, stage 2.2).

    Args:
        index: the repository, from `build_index`.
        query: the task.
        max_alternatives: how many next-best chains to give beside the best one.

    Returns:
        The location; exactly one of `chain` and `not_found` is set.
    """
    words = QueryWords.of(query)
    ranking = rank(index, words)
    support = measure(index, query)
    ranked = tuple(_listed(ranking, number) for number in ranking.order[:_RANKED])
    chains: list[Chain] = []
    for plan in plan_chains(ranking, max_alternatives + 1) if support.enough else ():
        # a chain further down is right only when those above are wrong
        right = (1.0 - chains[-1].confidence) * chains[-1].confidence if chains else support.chance
        chains.append(_chain(ranking, plan, words, right))
    if not chains:
        return Location(
            ranked=ranked, chain=None, alternatives=(), not_found=_not_found(ranking, support),
            confidence=round(1.0 - support.chance, 4), problems=index.problems,
        )  # fmt: skip
    best, *rest = chains
    return Location(
        ranked=ranked, chain=best, alternatives=tuple(rest), confidence=best.confidence,
        problems=(*index.problems, *best.problems),
    )  # fmt: skip


def _chain(ranking: Ranking, plan: ChainPlan, words: QueryWords, right: float) -> Chain:
    usage: list[Usage] = []
    problems: list[Problem] = []
    certainty = 1.0
    preferred = [path for path, role in plan.members.items() if role == "wrapper"]
    for entry in plan.entries:
        found = usage_for(ranking.index, entry, words, preferred)
        usage += [step for step in found.usage if step not in usage]
        problems += found.problems
        certainty = min(certainty, found.certainty)
        for wrapper in found.wrappers:
            if wrapper not in plan.members:
                plan.members = {wrapper: "wrapper", **plan.members}
                plan.because[wrapper] = f"states the command of {entry}"
    _add_commanded_configs(ranking, plan, usage)
    sources = [
        SourceScript(
            path=path,
            role=role,
            score=round(ranking.score(path), 4),
            reasons=(*((plan.because[path],) if path in plan.because else ()), *_reasons(ranking, path)),
        )
        for path, role in plan.members.items()
    ]
    return Chain(
        sources=tuple(sources),
        usage=tuple(usage),
        confidence=round(right * (0.5 + 0.5 * certainty), 4),
        problems=tuple(problems),
    )


def _add_commanded_configs(ranking: Ranking, plan: ChainPlan, usage: list[Usage]) -> None:
    """The configurations that the commands name are the chain's; those only guessed from the code give way to them."""
    position = ranking.index.position
    named: dict[str, str] = {}
    for step in usage:
        for word in step.argv[1:]:
            path = posixpath.normpath(posixpath.join(step.directory, word.split("=")[-1]))
            if path in position and is_config(ranking.index.facts[position[path]]):
                named.setdefault(path, f"named by the command: {step.reason.split(';')[0]}")
    if named:
        guessed = [path for path, role in plan.members.items() if role == "config" and path not in named]
        for path in guessed:
            del plan.members[path]
    plan.members = {**dict.fromkeys(named, "config"), **plan.members}
    plan.because.update(named)


def _reasons(ranking: Ranking, path: str) -> tuple[str, ...]:
    number = ranking.index.position.get(path)
    return ranking.reasons(number) if number is not None else ()


def _listed(ranking: Ranking, number: int) -> SourceScript:
    facts = ranking.index.facts[number]
    role = {"shell": "wrapper", "make": "wrapper"}.get(facts.file.kind)
    if is_config(facts):
        role = "config"
    elif role is None:
        role = "entry" if ranking.index.places[number].runs or ranking.stated[number] >= 0 else "library"
    return SourceScript.model_validate(
        {
            "path": facts.path,
            "role": role,
            "score": round(float(ranking.scores[number]), 4),
            "reasons": ranking.reasons(number),
        }
    )


def _not_found(ranking: Ranking, support: Support) -> NotFound:
    index = ranking.index
    what = f"the {support.names} names that the task writes" if support.names else "the words of the question"
    searched = [
        f"{index.size} files and {len(index.links.sections)} documentation sections by their text and paths, and "
        f"{len(index.units)} stated commands by what stands around them",
        f"of {what}, {support.held:.0%} occur in the repository",
    ]
    if support.missing:
        searched.append(f"nowhere in the repository: {', '.join(support.missing[:12])}")
    best = ranking.order[:_SHOWN]
    searched += [f"{index.facts[number].path} (score {ranking.scores[number]:.2f})" for number in best]
    if all(facts.file.kind == "document" for facts in index.facts):
        reason = "the repository holds no readable code"
    elif support.enough:
        reason = "no file of the repository can be run for this task"
    else:
        least = f", at least {NOT_FOUND_BELOW:.0%} are needed" if support.names else ""
        reason = f"the repository speaks too little of the task: it mentions {support.held:.0%} of {what}{least}"
    return NotFound(reason=reason, searched=tuple(searched))
