"""The model of `expbench locate`, which checks the ranking of a task.

What it was asked and answered, what that cost, and its whole way (`agent.json`) lie in a directory of the task.
Non-goal: commands of the agent in a sandbox, which need an environment of the repository; `expbench curate` builds one.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from flows.engines import ModelOptions
from flows.grading_model import recorded_model
from flows.locate_engines import checked
from pipeline.digests import digest_of
from pipeline.files import write_text
from pipeline.llm import CacheMode, model_config_from_environment
from pipeline.llm.config import find_key
from pipeline.locator import Location, RepositoryIndex, TaskQuery, locate
from pipeline.locator.agent import AgentRun
from pipeline.progress import Reporter

__all__ = ["TRAJECTORY", "check_model", "checked_by_model", "record_of"]

TRAJECTORY: Final = "agent.json"
_RECORDS: Final = "expbench-locate"


def record_of(task: Path, repository: str, query: TaskQuery) -> Path:
    """Where a model's work on a task is kept by default: in a directory of its own, so that no other task's is lost."""
    name = re.sub(r"[^\w.-]+", "-", task.stem).strip("-.")[:40] or "task"
    return Path(_RECORDS) / f"{name}-{digest_of([repository, query.model_dump(mode='json')])[:8]}"


def check_model(options: ModelOptions) -> None:
    """Is there a model, and its key? Asked before a repository is fetched.

    Raises:
        ExpbenchError: `USAGE`: no model is named; `AUTHENTICATION`: it needs a key and there is none.
    """
    config = model_config_from_environment(options.name)
    if options.cache is not CacheMode.REPLAY:
        find_key(config)


def checked_by_model(
    index: RepositoryIndex,
    query: TaskQuery,
    options: ModelOptions,
    record: Path,
    reporter: Reporter,
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
    where = index.snapshot.ref.url
    ranking = locate(index, query)
    reporter.start("locate")
    (record / TRAJECTORY).unlink(missing_ok=True)  # of an earlier call; exchanges and costs stay

    def keep(run: AgentRun) -> None:
        write_text(record / TRAJECTORY, run.model_dump_json(indent=1) + "\n")

    with recorded_model(options, record, "locate") as client:
        model = client.config.model
        location, run = checked(
            index, query, ranking, client=client, document=None, where=where, reporter=reporter, keep=keep
        )
    if run is None:
        return location, "keyless"
    reporter.end("locate", f"{len(run.steps)} steps of {model}, kept in {record / TRAJECTORY}")
    return location, model if run.accepted else "keyless"
