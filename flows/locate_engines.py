"""A reader's choice over the ranking by rules; and what stands where a model fails at some tasks.

The one place for "the model failed, the rules stand": a refusal, an answer that does not hold or tasks that no context
window has room for are a problem of that result. What says something about the endpoint, the account or the machine is
raised (`flows.engines.fails_here`). Used by `expbench curate` and `expbench locate`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from flows.engines import fails_here
from pipeline.llm import ModelClient, ModelError
from pipeline.locator import Location, RepositoryIndex, TaskQuery
from pipeline.paper import Document
from pipeline.progress import Reporter
from pipeline.schema import Problem

if TYPE_CHECKING:
    from pipeline.reader.choose import Chosen
    from pipeline.reader.gate import Choice
    from pipeline.reader.loop import Conversation

__all__ = ["chosen_by_reader"]


def chosen_by_reader(
    index: RepositoryIndex,
    tasks: Sequence[TaskQuery],
    rankings: Sequence[Location],
    *,
    client: ModelClient,
    document: Document | None,
    where: str,
    reporter: Reporter,
    keep: Callable[[Conversation[Choice], range], None],
) -> list[Chosen]:
    """Let a model choose the files of the tasks of one repository, asked together as far as they fit.

    Args:
        index: the repository, from `build_index`.
        tasks: what to look for.
        rankings: of each task, from `pipeline.locator.locate`.
        client: the model.
        document: the paper for look-ups; None: none.
        where: the task or repository, for a problem.
        reporter: notes of stage `locate`.
        keep: stores a conversation about some of the tasks: all of it, or what there is of one that was cut short.

    Returns:
        A decision for each task; the ranking as it was, with a problem, where the model failed.

    Raises:
        ExpbenchError: the endpoint fails, or the budget is used up.
    """
    from pipeline.reader.choose import Chosen, batches, choose

    found: list[Chosen] = []
    for batch in batches(len(tasks)):
        some = [rankings[number] for number in batch]
        try:
            found += choose(
                index, [tasks[number] for number in batch], some, client=client, document=document, reporter=reporter,
                keep=lambda talk, batch=batch: keep(talk, batch),  # type: ignore[misc]
            )  # fmt: skip
        except ModelError as error:
            if not fails_here(error):
                raise
            message = f"the chain is the one of the deterministic search: the model {client.config.model} failed"
            problem = Problem(component="locate.model", where=where, message=f"{message} ({error.cause})")
            reporter.note("locate", problem.message)
            found += [Chosen(location=item.evolve(problems=(*item.problems, problem)), accepted=False) for item in some]
    return found
