"""A model's check of the ranking by rules; and what stands where a model fails at one task.

The one place for "the model failed, the rules stand": a refusal, an answer that does not hold or a task that no context
window has room for is a problem of that result. What says something about the endpoint, the account or the machine is
raised (`flows.engines.fails_here`). Used by `expbench curate` and `expbench locate`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from flows.engines import fails_here
from pipeline.llm import ModelClient, ModelError
from pipeline.locator import Location, RepositoryIndex, TaskQuery
from pipeline.paper import Document
from pipeline.progress import Reporter
from pipeline.schema import Problem

if TYPE_CHECKING:
    from pipeline.locator.agent import AgentRun
    from pipeline.locator.agent_runs import AgentSandbox

__all__ = ["checked"]


def checked(
    index: RepositoryIndex,
    query: TaskQuery,
    ranking: Location,
    *,
    client: ModelClient,
    document: Document | None,
    where: str,
    reporter: Reporter,
    keep: Callable[[AgentRun], None],
    runner: AgentSandbox | None = None,
) -> tuple[Location, AgentRun | None]:
    """Let a model check the ranking by rules.

    Args:
        index: the repository, from `build_index`.
        query: the task.
        ranking: from `pipeline.locator.locate`.
        client: the model.
        document: the paper for look-ups; None: none.
        where: the task or repository, for a problem.
        reporter: notes of stage `locate`.
        keep: stores the model's way: all of it, or what there is of one that was cut short.
        runner: executes the agent's commands; None: it only reads.

    Returns:
        The decision, and the model's way; or the ranking as it was, with a problem, and None where the model failed at
        this task.

    Raises:
        ExpbenchError: the endpoint fails, or the budget is used up.
    """
    from pipeline.locator.agent import AgentLimits, run_agent

    try:
        run = run_agent(
            index, query, client=client, snapshot=index.snapshot, document=document, ranking=ranking,
            limits=AgentLimits(), reporter=reporter, runner=runner, cut=keep,
        )  # fmt: skip
    except ModelError as error:
        message = f"the chain is the one of the deterministic search: the model {client.config.model}"
        problem = _failed(error, where, message)
        reporter.note("locate", problem.message)
        return _with(ranking, problem), None
    keep(run)
    return run.location, run


def _failed(error: ModelError, where: str, message: str) -> Problem:
    """The problem of a result that the rules decided, because a model failed at it.

    Raises:
        ModelError: the failure says nothing about this one question.
    """
    if not fails_here(error):
        raise error
    return Problem(component="locate.model", where=where, message=f"{message} failed ({error.cause})")


def _with(location: Location, problem: Problem) -> Location:
    return location.evolve(problems=(*location.problems, problem))
