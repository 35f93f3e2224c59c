"""`expbench locate --engine model`: a model checks the ranking of one task, outside a workspace.

What it asked and was answered lies in a directory of its own: exchanges, what they cost, and its whole way
(`agent.json`). Non-goal: commands of the agent in a sandbox, which need an environment of the repository; `expbench
curate` builds one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from flows.engines import ModelOptions, fails_here
from flows.grading_model import recorded_model
from pipeline.files import write_text
from pipeline.llm import CacheMode, ModelError, model_config_from_environment
from pipeline.llm.config import find_key
from pipeline.locator import Location, RepositoryIndex, TaskQuery, locate
from pipeline.locator.agent import AgentLimits, run_agent
from pipeline.progress import Reporter
from pipeline.schema import Problem

__all__ = ["TRAJECTORY", "check_model", "checked_by_model"]

TRAJECTORY: Final = "agent.json"


def check_model(options: ModelOptions) -> None:
    """Is there a model, and its key? Asked before a repository is fetched.

    Raises:
        ExpbenchError: `USAGE`: no model is named; `AUTHENTICATION`: it needs a key and there is none.
    """
    config = model_config_from_environment(options.name)
    if options.cache is not CacheMode.REPLAY:
        find_key(config)


def checked_by_model(
    index: RepositoryIndex, query: TaskQuery, options: ModelOptions, record: Path, reporter: Reporter
) -> tuple[Location, str]:
    """Let a model check the deterministic ranking of one task.

    Args:
        index: the repository, from `build_index`.
        query: the task.
        options: which model, and what it may cost.
        record: directory for its exchanges, costs and trajectory; a second call finds its answers there.
        reporter: notes of stage `locate`.

    Returns:
        The model's decision and its name; or the deterministic one with a problem and "keyless", where the model
        refused or its answer did not hold.

    Raises:
        ExpbenchError: no model is configured, its key is missing, its endpoint fails, or the budget is used up.
    """
    ranking = locate(index, query)
    reporter.start("locate")
    with recorded_model(options, record, "locate") as client:
        model = client.config.model
        try:
            run = run_agent(
                index, query, client=client, snapshot=index.snapshot, document=None, ranking=ranking,
                limits=AgentLimits(), reporter=reporter,
            )  # fmt: skip
        except ModelError as error:
            if not fails_here(error):
                raise
            message = f"the chain is the one of the deterministic search: {model} failed ({error.cause})"
            problem = Problem(component="locate.model", where=index.snapshot.ref.url, message=message)
            reporter.warn(message)
            return ranking.evolve(problems=(*ranking.problems, problem)), "keyless"
    write_text(record / TRAJECTORY, run.model_dump_json(indent=1) + "\n")
    reporter.end("locate", f"{len(run.steps)} steps of {model}, kept in {record / TRAJECTORY}")
    return run.location, model if run.accepted else "keyless"
