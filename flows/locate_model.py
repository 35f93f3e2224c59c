"""The model of `expbench locate`, which chooses the files of a repository's tasks, all asked together.

What it was asked and answered, what that cost, and its whole way (`reader.json`) lie in a directory of the task.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from flows.engines import ModelOptions
from flows.grading_model import recorded_model
from pipeline.digests import digest_of
from pipeline.files import write_text
from pipeline.llm import CacheMode, model_config_from_environment
from pipeline.llm.config import find_key
from pipeline.locator import Location, RepositoryIndex, TaskQuery, locate
from pipeline.progress import Reporter

if TYPE_CHECKING:
    from pipeline.reader.gate import Choice
    from pipeline.reader.loop import Conversation

__all__ = ["WAY", "Search", "check_model", "choosing_model", "record_of"]

Search = Callable[[RepositoryIndex, Sequence[TaskQuery], str], list[tuple[Location, str]]]
"""Decides tasks of one repository: for each the location and who did; the text names the file of the model's way."""

WAY: Final = "reader.json"
_RECORDS: Final = "expbench-locate"


def record_of(task: Path, repository: str, query: TaskQuery) -> Path:
    """Where a model's work on a task is kept by default: in a directory of its own, so that no other task's is lost."""
    name = re.sub(r"[^\w.-]+", "-", task.stem).strip("-.")[:40] or "task"
    return Path(_RECORDS) / f"{name}-{digest_of([repository, query.model_dump(mode='json')])[:8]}"


def check_model(options: ModelOptions) -> str:
    """Is there a model, and its key? Asked before a repository is fetched.

    Returns:
        What decides its answers, as a digest: the model, how it generates, the prompt.

    Raises:
        ExpbenchError: `USAGE`: no model is named; `AUTHENTICATION`: it needs a key and there is none.
    """
    from pipeline.reader.choose import choose_prompt

    config = model_config_from_environment(options.name)
    if options.cache is not CacheMode.REPLAY:
        find_key(config)
    return digest_of([config.identity, config.parameters.model_dump(mode="json"), choose_prompt().digest])


@contextmanager
def choosing_model(options: ModelOptions, record: Path, reporter: Reporter) -> Iterator[Search]:
    """A model that chooses the files of tasks, one repository after the other, within one budget.

    Args:
        options: which model, and what it may cost.
        record: directory for its exchanges, costs and ways; a second call finds its answers there.
        reporter: notes of stage `locate`.

    Yields:
        What decides tasks: gives the model's decisions and its name; or the deterministic ones with a problem and
        "keyless", where the model refused or its answer did not hold.

    Raises:
        ExpbenchError: no model is configured, its key is missing, its endpoint fails, or the budget is used up.
    """
    from pipeline.reader.choose import choose

    with recorded_model(options, record, "locate") as client:
        model = client.config.model

        def search(index: RepositoryIndex, tasks: Sequence[TaskQuery], way: str) -> list[tuple[Location, str]]:
            def keep(talk: Conversation[Choice], batch: range) -> None:
                stem, dot, ending = way.rpartition(".")
                path = record / (way if len(batch) == len(tasks) else f"{stem}-{batch.start + 1}{dot}{ending}")
                write_text(path, talk.model_dump_json(indent=1) + "\n")
                reporter.note("locate", f"{len(talk.steps)} turns of {model} for {len(batch)} tasks, kept in {path}")

            rankings = [locate(index, task) for task in tasks]
            found = choose(index, tasks, rankings, client=client, document=None, reporter=reporter, keep=keep)
            return [(item.location, model if item.accepted else "keyless") for item in found]

        yield search
