"""A task together with the chains of scripts that may answer it."""

from __future__ import annotations

from pipeline.locator import Chain
from pipeline.schema import Record
from pipeline.task import Task
from pipeline.validation.binding import unbound

__all__ = ["Located", "with_chain"]


class Located(Record):
    """A task with the chains that may answer it, best first."""

    task: Task
    chains: tuple[Chain, ...] = ()
    rehearsed: tuple[Task, ...] = ()
    """The task as each chain's rehearsal gave it, with its environment; empty where the chains were only looked for."""


def with_chain(task: Task, chain: Chain) -> Task:
    """The task with this chain as its ground truth; what other scripts do, or were seen doing, goes.

    Requirements stay with the scripts that they were taken from, by a run, a person or whoever published them; what a
    recorded run told stays with its commands. Of another chain nothing is known until it has run.
    """
    old = task.truth
    same = [source.path for source in old.sources] == [source.path for source in chain.sources]
    truth = old.evolve(sources=chain.sources, usage=chain.usage)
    if not same:
        truth = truth.evolve(requirements=())
    if old.sources and not same:  # a number has its place in the output of these scripts
        truth = truth.evolve(expected=old.expected.evolve(claims=unbound(old.expected.claims)))
    if not (same and old.usage == chain.usage):
        truth = truth.evolve(ran=(), seeds=(), data_needs=(), responses=())
    return task.evolve(truth=truth)
