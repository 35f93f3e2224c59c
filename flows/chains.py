"""A task together with the chains of scripts that may answer it."""

from __future__ import annotations

from pipeline.digests import digest_of
from pipeline.locator import Chain
from pipeline.repository import Snapshot
from pipeline.schema import Record
from pipeline.task import Hyperparameter, Task
from pipeline.tracing import Trace, trace

__all__ = ["Located", "Traces", "traced", "with_chain"]


class Located(Record):
    """A task with the chains that may answer it, best first."""

    task: Task
    chains: tuple[Chain, ...] = ()
    rehearsed: tuple[Task, ...] = ()
    """The task as each chain's rehearsal gave it, with its environment; empty where the chains were only looked for."""


def traced(snapshot: Snapshot, task: Task, chain: Chain) -> Trace:
    """What the chain does, needs and is set to; of a script with several experiments, the one the task is about."""
    metrics = " ".join(sorted({claim.metric for claim in task.truth.expected.claims}))
    return trace(snapshot, chain.sources, chain.usage, about=f"{task.question} {metrics}")


class Traces:
    """Traces that were made already: locating reports a chain that validating runs, and tracing takes seconds."""

    def __init__(self) -> None:
        self._made: dict[str, Trace] = {}

    def of(self, snapshot: Snapshot, task: Task, chain: Chain) -> Trace:
        """As `traced`, once for the same files, scripts, commands and question."""
        metrics = sorted({claim.metric for claim in task.truth.expected.claims})
        parts = [chain.model_dump(mode="json", include={"sources", "usage"}), task.question, metrics]
        key = digest_of([str(snapshot.root), *parts])
        if key not in self._made:
            self._made[key] = traced(snapshot, task, chain)
        return self._made[key]


def with_chain(task: Task, chain: Chain, trace_: Trace) -> Task:
    """The task with this chain as its ground truth; requirements of its own recorded run stay."""
    recorded = bool(task.truth.ran) and task.truth.usage == chain.usage
    truth = task.truth.evolve(
        sources=chain.sources,
        usage=chain.usage,
        requirements=task.truth.requirements if recorded else trace_.requirements,
        ran=task.truth.ran if recorded else (),
        hyperparameters=_merged(trace_.hyperparameters, task.truth.hyperparameters),
        data_needs=trace_.data_needs,
    )
    return task.evolve(truth=truth)


def _merged(code: tuple[Hyperparameter, ...], paper: tuple[Hyperparameter, ...]) -> tuple[Hyperparameter, ...]:
    """What the code does comes first; what only the paper says is added."""
    names = {item.name.lower() for item in code}
    return (*code, *(item for item in paper if item.name.lower() not in names))
