"""A task together with the chains of scripts that may answer it."""

from __future__ import annotations

from pipeline.locator import Chain
from pipeline.schema import Record
from pipeline.task import Task

__all__ = ["Located", "with_chain"]


class Located(Record):
    """A task with the chains that may answer it, best first."""

    task: Task
    chains: tuple[Chain, ...] = ()
    rehearsed: tuple[Task, ...] = ()
    """The task as each chain's rehearsal gave it, with its environment; empty where the chains were only looked for."""


def with_chain(task: Task, chain: Chain) -> Task:
    """The task with this chain as its ground truth.

    What a recorded run told of the same commands stays; of another chain nothing is known until it has run.
    """
    truth = task.truth.evolve(sources=chain.sources, usage=chain.usage)
    if not (task.truth.ran and task.truth.usage == chain.usage):
        truth = truth.evolve(requirements=(), ran=(), seeds=(), data_needs=(), responses=())
    return task.evolve(truth=truth)
