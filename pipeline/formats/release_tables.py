"""Rows and typed features of a released data set: what an agent may see, and what only graders may see.

A row holds the fields that people filter and read as typed columns, and the whole half of the task as JSON in
`record`: the columns are for use, the record is what is read back, so that nothing is lost. The public row is built
from `Task.public()` alone; ground truth has no way in.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import JsonValue

from pipeline.formats.family_parts import (
    FamilyPart,
    FamilyShape,
    columns_of,
    private_columns,
    public_columns,
    struct_of,
)
from pipeline.schema import Record
from pipeline.task import DesignVariable, PublicTask, Task

if TYPE_CHECKING:
    from datasets import Features

__all__ = [
    "REDISTRIBUTABLE", "MaskRecipe", "archive_name", "family_private_row", "family_public_row", "is_shipped",
    "originals_name", "private_features", "private_record", "private_row", "public_features", "public_row", "task_of",
]  # fmt: skip

REDISTRIBUTABLE: Final = frozenset(
    {"MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "Unlicense", "ISC", "MPL-2.0"}
)
"""Licences that allow a changed copy to be shared with nothing but notices kept (SPDX identifiers)."""


class MaskRecipe(Record):
    """How a masked repository is made again from its original, beside the paths of the mask."""

    commit: str
    """Of the masked repository."""
    edits: tuple[dict[str, JsonValue], ...] = ()
    """Overwritten spans: path, start, end (bytes), sha256 of the whole file before."""


def archive_name(task_id: str) -> str:
    """Where the files of a masked repository lie in a release."""
    return f"repositories/{task_id}.tar.gz"


def originals_name(task_id: str) -> str:
    """Where the original files that the mask removed or changed lie in the private part."""
    return f"originals/{task_id}.tar.gz"


def is_shipped(task: PublicTask) -> bool:
    """May the masked repository be redistributed?"""
    return task.repository.license in REDISTRIBUTABLE


# --- what an agent may see


def public_features(shapes: Sequence[FamilyShape] = ()) -> Features:
    """Columns of the public tables; the same for all families of a release, so that they can be read as one.

    Args:
        shapes: of the families with files of their own that are in the release.
    """
    from datasets import Features, List, Value

    text = Value("string")
    return Features(
        {
            "id": text,
            "family": text,
            "paper_id": text,
            "paper_title": text,
            "paper_venue": text,
            "paper_year": Value("int64"),
            "paper_url": text,
            "paper_license": text,
            "repository_url": text,
            "repository_commit": text,
            "repository_license": text,
            "masked_repository": text,
            "masked_commit": text,
            "question": text,
            "method": text,
            "agent_instructions": text,
            "python": text,
            "packages": List(text),
            "system_packages": List(text),
            "resources": {"cpus": Value("float64"), "memory_mb": Value("int64"), "gpus": Value("int64"),
                          "gpu_type": text, "gpu_memory_mb": Value("int64"), "wall_time_s": Value("int64")},
            "engine": text,
            "record": text,
            **columns_of(public_columns(shapes)),
        }
    )  # fmt: skip


def public_row(task: PublicTask, *, masked_commit: str | None, paper_license: str | None) -> dict[str, Any]:
    """The public half of a task.

    Args:
        task: its public half (`Task.public()`).
        masked_commit: commit of the masked repository, to check what was unpacked or built.
        paper_license: SPDX identifier of the paper, where the publisher of the release stated it.
    """
    return {
        "id": task.id,
        "family": task.family.value,
        "paper_id": task.paper.id,
        "paper_title": task.paper.title,
        "paper_venue": task.paper.venue,
        "paper_year": task.paper.year,
        "paper_url": task.paper.url,
        "paper_license": paper_license,
        "repository_url": task.repository.url,
        "repository_commit": task.repository.commit,
        "repository_license": task.repository.license,
        "masked_repository": archive_name(task.id) if is_shipped(task) else None,
        "masked_commit": masked_commit,
        "question": task.question,
        "method": task.method,
        "agent_instructions": task.agent_instructions,
        "python": task.environment.python,
        "packages": list(task.environment.packages),
        "system_packages": list(task.environment.system_packages),
        "resources": task.resources.model_dump(),
        "engine": task.provenance.engine,
        "record": task.model_dump_json(),
    }


def family_public_row(part: FamilyPart, *, paper_license: str | None) -> dict[str, Any]:
    """The public half of a task that is made of files; it has no masked repository."""
    row = public_row(part.public, masked_commit=None, paper_license=paper_license)
    return {**row, "masked_repository": None, **struct_of(part, private=False)}


# --- what only graders may see


def private_features(shapes: Sequence[FamilyShape] = (), *, experiments: bool = True) -> Features:
    """Columns of the private tables; the same for all families of a release.

    Args:
        shapes: of the families with files of their own that are in the release.
        experiments: are there tasks of the `experiment` family, too?
    """
    from datasets import Features, Value

    text = Value("string")
    own = _experiment_columns() if experiments else {}
    return Features({"id": text, "canary": text, **own, "record": text, **columns_of(private_columns(shapes))})


def _experiment_columns() -> dict[str, Any]:
    from datasets import Image, List, Value

    text = Value("string")
    variables = List({"name": text, "values": List(text)})
    return {
        "expected_outcome": text,
        "claims": List(
            {
                "id": text,
                "metric": text,
                "value": Value("float64"),
                "text": text,
                "unit": text,
                "low": Value("float64"),
                "high": Value("float64"),
                "conditions": List({"name": text, "value": text}),
            }
        ),
        "constant": variables,
        "independent": variables,
        "dependent": variables,
        "source": List(text),
        "usage": List({"argv": List(text), "directory": text}),
        "requirements": List(
            {"text": text, "spans": List({"path": text, "start": Value("int64"), "end": Value("int64")})}
        ),
        "masked": List({"path": text, "action": text, "reason": text}),
        "masked_edits": text,
        "truth": text,
        "evidence": text,
        "evidence_images": List(Image()),
        "reviews": List({"reviewer": text, "decision": text, "comment": text, "at": text}),
    }


def family_private_row(part: FamilyPart, *, canary: str) -> dict[str, Any]:
    """The private half of a task that is made of files."""
    return {"id": part.id, "canary": canary, **struct_of(part, private=True)}


def private_record(task: Task) -> dict[str, JsonValue]:
    """Everything of a task that its public half does not hold, as JSON values."""
    record: dict[str, JsonValue] = task.model_dump(mode="json", exclude=set(PublicTask.model_fields))
    return record


def private_row(task: Task, *, recipe: MaskRecipe | None, canary: str, images: Sequence[Path]) -> dict[str, Any]:
    """The private half of a task.

    Args:
        task: the task.
        recipe: what the mask changed inside files.
        canary: the string that marks private artefacts.
        images: pictures of the evidence (PNG), embedded as they are.
    """
    truth = task.truth
    evidence = {name: [item.model_dump(mode="json") for item in items] for name, items in task.evidence.items()}
    return {
        "id": task.id,
        "canary": canary,
        "expected_outcome": truth.expected.text,
        "claims": [
            {
                **claim.model_dump(include={"id", "metric", "value", "text", "unit"}),
                "low": claim.band.low,
                "high": claim.band.high,
                "conditions": [condition.model_dump() for condition in claim.conditions],
            }
            for claim in truth.expected.claims
        ],
        "constant": [_variable(item) for item in truth.constant],
        "independent": [_variable(item) for item in truth.independent],
        "dependent": [_variable(item) for item in truth.dependent],
        "source": [source.path for source in truth.sources],
        "usage": [{"argv": list(usage.argv), "directory": usage.directory} for usage in truth.usage],
        "requirements": [
            {"text": step.text, "spans": [span.model_dump(include={"path", "start", "end"}) for span in step.spans]}
            for step in truth.requirements
        ],
        "masked": [item.model_dump(include={"path", "action", "reason"}) for item in task.masked],
        "masked_edits": None if recipe is None else json.dumps(recipe.edits),
        "truth": json.dumps(truth.model_dump(mode="json"), sort_keys=True),
        "evidence": json.dumps(evidence, sort_keys=True),
        "evidence_images": [{"bytes": path.read_bytes(), "path": path.name} for path in images],
        "reviews": [review.model_dump(include={"reviewer", "decision", "comment", "at"}) for review in task.reviews],
        "record": json.dumps(private_record(task), ensure_ascii=False),
    }


def _variable(variable: DesignVariable) -> dict[str, Any]:
    return {"name": variable.name, "values": list(variable.values)}


def task_of(public: Mapping[str, Any], private: Mapping[str, Any]) -> Task:
    """The task again from its two rows.

    Raises:
        pydantic.ValidationError: the records are not those of a task.
        KeyError, ValueError: the rows have no `record`, or it is not JSON.
    """
    return Task.model_validate(json.loads(public["record"]) | json.loads(private["record"]))
