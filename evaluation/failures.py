"""The failure taxonomy (EXP-Bench 4.3): insights from the evidence of all episodes, then types with prevalence.

Two engines, never presented as each other: *keyless* (rules and clustering, `evaluation.failure_rules`) and *model*
(prompts, `evaluation.failure_model`). Prevalence is a type's share of the insights of its phase, as in Table 2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import ClassVar, Final

from pydantic import Field

from evaluation.episode import EpisodeFolder
from evaluation.failure_evidence import PHASES, FailureEvidence, Phase, collect_evidence
from evaluation.failure_model import group_by_model
from evaluation.failure_rules import Grouped, group_keyless, insight_of
from evaluation.verdicts import Grader
from pipeline.llm import ModelClient
from pipeline.progress import Reporter
from pipeline.schema import Problem, Record, StoredRecord

__all__ = ["FailureExample", "FailureType", "Taxonomy", "find_failures", "make_taxonomy"]

_STAGE: Final = "failures"
_EXAMPLES: Final = 5


class FailureExample(Record):
    """One piece of evidence of a type."""

    episode: str
    """`<run>/<task>/<repeat>`."""
    text: str
    where: str = ""


class FailureType(Record):
    """A way in which agents fail."""

    id: str
    """`<phase>-<number>`, by prevalence."""
    phase: Phase
    name: str
    description: str
    known: bool
    """A type of fixed name (most are from the paper's Table 2); otherwise it was found in the evidence."""
    insights: int
    episodes: int
    prevalence: float = Field(ge=0, le=1)
    """Share of the insights of its phase."""
    examples: tuple[FailureExample, ...] = ()
    """From different episodes."""


class Taxonomy(StoredRecord):
    """`failures.json` of a run."""

    SCHEMA_VERSION: ClassVar[int] = 1

    grader: Grader
    episodes: int
    """Episodes that were looked at."""
    failing: int
    """Episodes with at least one insight."""
    insights: int
    unassigned: int = 0
    """Evidence that the model could not be asked about; in no type."""
    types: tuple[FailureType, ...] = ()
    """By phase, most prevalent first."""
    members: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Episode -> ids of its types."""
    problems: tuple[Problem, ...] = ()

    @property
    def how(self) -> str:
        """Who made it, of what; shown wherever the types are shown."""
        who = "keyless (rules and clustering of messages, no language model)"
        if self.grader.engine != "keyless":
            who = f"language model {self.grader.model}"
        lost = f"; {self.unassigned} could not be assigned" if self.unassigned else ""
        return (
            f"Engine: {who}. {self.insights} insights from {self.failing} of {self.episodes} episodes{lost}; "
            "prevalence is the share of a phase's insights."
        )


def find_failures(
    episodes: Iterable[tuple[str, EpisodeFolder]], *, client: ModelClient | None, reporter: Reporter
) -> Taxonomy:
    """Read the evidence of episodes and make the taxonomy.

    Args:
        episodes: (`<run>/<task>/<repeat>`, folder).
        client: a model; None: the keyless engine.

    Raises:
        ModelError: no batch of evidence could be answered; the key or the quota is not good.
        BudgetError: the budget does not allow the next call.
    """
    listed = sorted(episodes, key=lambda item: item[0])
    reporter.start(_STAGE, len(listed))
    evidence: list[FailureEvidence] = []
    problems: list[Problem] = []
    for name, folder in listed:
        found, unreadable = collect_evidence(name, folder)
        evidence += found
        problems += unreadable
        reporter.step(_STAGE, name)
    taxonomy = make_taxonomy(evidence, episodes=len(listed), client=client, reporter=reporter)
    reporter.end(_STAGE, f"{len(taxonomy.types)} failure types from {taxonomy.insights} insights")
    return taxonomy.evolve(problems=(*problems, *taxonomy.problems))


def make_taxonomy(
    evidence: Sequence[FailureEvidence], *, episodes: int, client: ModelClient | None, reporter: Reporter
) -> Taxonomy:
    """Both passes over evidence that is at hand; see `find_failures`."""
    if client is None:
        chosen = _prefer(evidence, ("item", "report", "log"))
        return _counted(group_keyless(chosen), episodes, Grader(engine="keyless"))
    chosen = _prefer(evidence, ("analysis", "report", "log"))
    outcome = group_by_model(chosen, client, reporter)
    taxonomy = _counted(outcome.groups, episodes, outcome.grader)
    return taxonomy.evolve(unassigned=outcome.unassigned, problems=outcome.problems)


def _prefer(evidence: Sequence[FailureEvidence], sources: tuple[str, ...]) -> list[FailureEvidence]:
    """Evidence without duplicates: a judge's analysis and its failed criteria say the same, so one of them is taken.

    The rules read criteria, a model reads analyses; where an episode's phase has only the other, that is taken.
    """
    having = {(item.episode, item.phase) for item in evidence if item.source in sources}
    chosen = [item for item in evidence if item.source in sources or (item.episode, item.phase) not in having]
    return sorted(chosen, key=lambda item: (PHASES.index(item.phase), item.episode, item.kind, item.text))


def _counted(groups: Sequence[Grouped], episodes: int, grader: Grader) -> Taxonomy:
    totals = Counter(dict.fromkeys(PHASES, 0))
    for group in groups:
        totals[group.phase] += len(group.evidence)
    ordered = sorted(groups, key=lambda group: (PHASES.index(group.phase), -len(group.evidence), group.name))
    numbers: Counter[str] = Counter()
    types: list[FailureType] = []
    members: dict[str, list[str]] = {}
    for group in ordered:
        numbers[group.phase] += 1
        identifier = f"{group.phase}-{numbers[group.phase]}"
        touched = sorted({item.episode for item in group.evidence})
        for episode in touched:
            members.setdefault(episode, []).append(identifier)
        types.append(
            FailureType(
                id=identifier,
                phase=group.phase,
                name=group.name,
                description=group.description,
                known=group.known,
                insights=len(group.evidence),
                episodes=len(touched),
                prevalence=len(group.evidence) / totals[group.phase],
                examples=_examples(group.evidence),
            )
        )
    return Taxonomy(
        grader=grader,
        episodes=episodes,
        failing=len(members),
        insights=sum(totals.values()),
        types=tuple(types),
        members={episode: tuple(found) for episode, found in sorted(members.items())},
    )


def _examples(evidence: Sequence[FailureEvidence]) -> tuple[FailureExample, ...]:
    """The first of each episode, different texts first."""
    chosen: list[FailureEvidence] = []
    seen: set[str] = set()
    for item in evidence:
        if len(chosen) < _EXAMPLES and item.text not in seen and item.episode not in {old.episode for old in chosen}:
            seen.add(item.text)
            chosen.append(item)
    return tuple(FailureExample(episode=item.episode, text=insight_of(item), where=item.where) for item in chosen)
