"""A task together with the chains of scripts that may answer it."""

from __future__ import annotations

from pipeline.locator import Chain
from pipeline.repository import Snapshot
from pipeline.schema import Record
from pipeline.task import Hyperparameter, Task
from pipeline.tracing import Trace, trace

__all__ = ["Located", "traced", "with_chain"]


class Located(Record):
    """A task with the chains that may answer it, best first."""

    task: Task
    chains: tuple[Chain, ...] = ()


def traced(snapshot: Snapshot, task: Task, chain: Chain) -> Trace:
    """What the chain does, needs and is set to; of a script with several experiments, the one the task is about."""
    metrics = " ".join(sorted({claim.metric for claim in task.truth.expected.claims}))
    return trace(snapshot, chain.sources, chain.usage, about=f"{task.question} {metrics}")


def with_chain(task: Task, chain: Chain, trace_: Trace) -> Task:
    """The task with this chain as its ground truth."""
    truth = task.truth.evolve(
        sources=chain.sources,
        usage=chain.usage,
        requirements=trace_.requirements,
        hyperparameters=_merged(trace_.hyperparameters, task.truth.hyperparameters),
        data_needs=trace_.data_needs,
    )
    return task.evolve(truth=truth)


def _merged(code: tuple[Hyperparameter, ...], paper: tuple[Hyperparameter, ...]) -> tuple[Hyperparameter, ...]:
    """What the code does comes first; what only the paper says is added."""
    names = {item.name.lower() for item in code}
    return (*code, *(item for item in paper if item.name.lower() not in names))
