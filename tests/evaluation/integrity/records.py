"""Stored records of scripted agents, laid out as episodes again."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from evaluation.episode import EpisodeFolder
from evaluation.harness.response import parse_response
from evaluation.integrity.patch import parse_patch
from evaluation.submission import REPRODUCE, RESPONSE, ChangedFile, Submission
from evaluation.task import EvaluationTask
from evaluation.trajectory import Event, FileChange, TrajectoryHead
from evaluation.trajectory_io import write_trajectory
from pipeline.digests import text_digest
from pipeline.files import write_text
from tests.evaluation.integrity.world import KEPT, MASKED, task

__all__ = ["episode", "make_trees", "read_records"]

_EVENT: TypeAdapter[Event] = TypeAdapter(Event)


def read_records(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a file that `generate.py` wrote."""
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def make_trees(root: Path) -> EvaluationTask:
    """The task with its masked and its original tree under `root`."""
    for folder, files in (("masked", KEPT), ("original", {**KEPT, **MASKED})):
        for path, text in files.items():
            write_text(root / folder / path, text)
    return task().evolve(masked_repository=root / "masked", original_tree=root / "original")


def episode(record: dict[str, Any], root: Path) -> tuple[EpisodeFolder, Submission]:
    """Write a record as an episode's folder.

    Args:
        record: one line of the stored set.
        root: where the folder is made.
    """
    folder = EpisodeFolder(root)
    events = [_EVENT.validate_python(event) for event in record["events"]]
    for index, event in enumerate(events):
        if isinstance(event, FileChange) and event.path == RESPONSE:
            events[index] = event.evolve(text=record["response"])
    head = TrajectoryHead(episode="robust-location-mse/0", agent=record.get("agent", "command"))
    write_trajectory(folder.trajectory, head, events)
    for name, text in (
        ("patch.diff", record["patch"]),
        (RESPONSE, record["response"]),
        (REPRODUCE, record["reproduce"]),
    ):
        if text:
            write_text(folder.submission / name, text)
    response, problems = parse_response(record["response"].encode()) if record["response"] else (None, ())
    changed = tuple(
        ChangedFile(path=file.path, action=file.action, binary=file.binary) for file in parse_patch(record["patch"])
    )
    submission = Submission(
        response=response, reproduce=bool(record["reproduce"]), changed=changed, problems=problems,
        patch_sha256=text_digest(record["patch"]) if record["patch"] else "", patch_bytes=len(record["patch"].encode()),
    )  # fmt: skip
    write_text(folder.submission / "submission.json", submission.model_dump_json())
    return folder, submission
