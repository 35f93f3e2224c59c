"""The model of `expbench locate`, which checks the ranking of a task.

What it was asked and answered, what that cost, and its whole way (`agent.json`) lie in a directory of the task.
Non-goal: commands of the agent in a sandbox, which need an environment of the repository; `expbench curate` builds one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
from pipeline.progress import Reporter

__all__ = ["TRAJECTORY", "Search", "check_model", "checking_model", "record_of"]

Search = Callable[[RepositoryIndex, TaskQuery, str], tuple[Location, str]]
"""Decides one task; the text is the name of the file that the model's way is kept in."""

TRAJECTORY: Final = "agent.json"
_RECORDS: Final = "expbench-locate"


def record_of(task: Path, repository: str, query: TaskQuery) -> Path:
    """Where a model's work on a task is kept by default: in a directory of its own, so that no other task's is lost."""
    name = re.sub(r"[^\w.-]+", "-", task.stem).strip("-.")[:40] or "task"
    return Path(_RECORDS) / f"{name}-{digest_of([repository, query.model_dump(mode='json')])[:8]}"


def check_model(options: ModelOptions) -> str:
    """Is there a model, and its key? Asked before a repository is fetched.

    Returns:
        What of the model decides its answers, as a digest.

    Raises:
        ExpbenchError: `USAGE`: no model is named; `AUTHENTICATION`: it needs a key and there is none.
    """
    config = model_config_from_environment(options.name)
    if options.cache is not CacheMode.REPLAY:
        find_key(config)
    return digest_of([config.identity, config.parameters.model_dump(mode="json")])


@contextmanager
def checking_model(options: ModelOptions, record: Path, reporter: Reporter) -> Iterator[Search]:
    """A model that checks the deterministic ranking of tasks, one after the other, within one budget.

    Args:
        options: which model, and what it may cost.
        record: directory for its exchanges, costs and trajectories; a second call finds its answers there.
        reporter: notes of stage `locate`.

    Yields:
        What decides a task: gives the model's decision and its name; or the deterministic one with a problem and
        "keyless", where the model refused or its answer did not hold.

    Raises:
        ExpbenchError: no model is configured, its key is missing, its endpoint fails, or the budget is used up.
    """
    with recorded_model(options, record, "locate") as client:
        model = client.config.model

        def search(index: RepositoryIndex, query: TaskQuery, trajectory: str) -> tuple[Location, str]:
            way = record / trajectory
            way.unlink(missing_ok=True)  # of an earlier call; exchanges and costs stay
            location, run = checked(
                index, query, locate(index, query), client=client, document=None, where=index.snapshot.ref.url,
                reporter=reporter, keep=lambda run: write_text(way, run.model_dump_json(indent=1) + "\n"),
            )  # fmt: skip
            if run is None:
                return location, "keyless"
            reporter.note("locate", f"{len(run.steps)} steps of {model}, kept in {way}")
            return location, model if run.accepted else "keyless"

        yield search
