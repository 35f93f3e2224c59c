"""The models of `expbench locate`: one that checks the ranking of a task, and one whose vectors the ranking uses.

Neither is needed. What they were asked and answered, what that cost, and the whole way of the first (`agent.json`) lie
in a directory of the task. Non-goal: commands of the agent in a sandbox, which need an environment of the repository;
`expbench curate` builds one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from flows.engines import ModelOptions
from flows.grading_model import recorded_model
from flows.locate_engines import checked, ranked
from pipeline.digests import digest_of
from pipeline.errors import ExpbenchError
from pipeline.files import write_text
from pipeline.llm import CacheMode, ModelClient, model_config_from_environment
from pipeline.llm.config import find_key
from pipeline.locator import Location, RepositoryIndex, TaskQuery
from pipeline.locator.agent import AgentRun
from pipeline.progress import Reporter
from pipeline.settings import Settings

__all__ = ["TRAJECTORY", "check_embeddings", "check_model", "checked_by_model", "embedding_model", "record_of"]

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


def check_embeddings(settings: Settings) -> str | None:
    """The embedding model that is configured (`EXPBENCH_EMBEDDINGS`); None: there is none.

    Raises:
        ExpbenchError: `AUTHENTICATION`: it needs a key and there is none; `USAGE`: a setting is invalid.
    """
    if not settings.embeddings:
        return None
    try:
        find_key(model_config_from_environment(settings.embeddings))
    except ExpbenchError as error:
        raise ExpbenchError(
            error.kind, error.object, f"EXPBENCH_EMBEDDINGS asks for {settings.embeddings}, but {error.cause}",
            consequence="Nothing was searched",
            next_step=f"{error.next_step}; or unset EXPBENCH_EMBEDDINGS, which is not needed",
        ) from error  # fmt: skip
    return settings.embeddings


@contextmanager
def embedding_model(name: str | None, options: ModelOptions, record: Path) -> Iterator[ModelClient | None]:
    """The embedding model with its store and ledger in `record`; None where none is configured.

    Args:
        name: from `check_embeddings`.
        options: what it may cost, and what becomes of recorded vectors.
        record: the directory.

    Raises:
        ExpbenchError: of the model layer.
    """
    if name is None:
        yield None
        return
    with recorded_model(options.evolve(name=name), record, "locate embeddings") as client:
        yield client


def checked_by_model(
    index: RepositoryIndex,
    query: TaskQuery,
    options: ModelOptions,
    record: Path,
    reporter: Reporter,
    embeddings: str | None = None,
) -> tuple[Location, str]:
    """Let a model check the deterministic ranking of one task.

    Args:
        index: the repository, from `build_index`.
        query: the task.
        options: which model, and what it may cost, the embedding model included.
        record: directory for its exchanges, costs and trajectory; a second call finds its answers there.
        reporter: notes of stage `locate`.
        embeddings: the embedding model, from `check_embeddings`.

    Returns:
        The model's decision and its name; or the deterministic one with a problem and "keyless", where the model
        refused or its answer did not hold.

    Raises:
        ExpbenchError: no model is configured, its key is missing, its endpoint fails, or the budget is used up.
    """
    where = index.snapshot.ref.url
    with embedding_model(embeddings, options, record) as vectors:
        ranking = ranked(index, query, embeddings=vectors, where=where)
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
