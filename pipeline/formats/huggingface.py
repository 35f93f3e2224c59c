"""Write tasks as a data set for Hugging Face `datasets`: Parquet, typed features, answers in a configuration apart.

Layout: `tasks/` (what an agent may see), `truth/` (ground truth and evidence, joined by `id`), the masked repositories
as archives beside them where the licence allows redistribution (otherwise the truth holds URL, commit and mask as a
recipe), and `README.md`, the card, whose front matter names the configurations.
"""

from __future__ import annotations

import gzip
import json
import os
import tarfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml
from pydantic import JsonValue

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import replace_directory
from pipeline.schema import Record
from pipeline.store import Workspace
from pipeline.task import Task
from pipeline.version import version

if TYPE_CHECKING:
    from datasets import Features

__all__ = ["REDISTRIBUTABLE", "MaskRecipe", "write_dataset"]

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


_CONFIGS: Final = ("tasks", "truth")
_MARKER: Final = "expbench-release.json"


def write_dataset(
    directory: Path,
    tasks: list[Task],
    *,
    workspace: Workspace,
    name: str,
    recipes: Mapping[str, MaskRecipe] | None = None,
) -> tuple[str, ...]:
    """Write the data set; an earlier release in `directory` is replaced as a whole.

    Args:
        directory: to write.
        tasks: the approved ones.
        workspace: holds their masked repositories.
        name: of the data set.
        recipes: by task id, what the mask changed inside files; without it a masked repository that is not shipped can
            be built again only if its mask removes whole files.

    Returns:
        The names of the configurations.

    Raises:
        ExpbenchError: `WORKSPACE_CONFLICT` when `directory` holds something that is not a release.
    """
    if directory.exists() and not (directory / _MARKER).is_file() and any(directory.iterdir()):
        raise ExpbenchError(
            FailureKind.WORKSPACE_CONFLICT,
            str(directory),
            "holds files that are not a release of expbench",
            consequence="Nothing was written",
            next_step="Choose an empty or new directory with --out",
        )
    with replace_directory(directory) as fresh:
        known = recipes or {}
        public = [_public_row(task, known.get(task.id)) for task in tasks]
        _write_parquet(fresh / "tasks" / "test.parquet", public, _public_features())
        private = [_private_row(task, known.get(task.id)) for task in tasks]
        _write_parquet(fresh / "truth" / "test.parquet", private, _private_features())
        for task in tasks:
            if task.repository.license in REDISTRIBUTABLE:
                _write_archive(fresh / _archive(task), workspace.masked_repository(task.id))
        (fresh / "README.md").write_text(_card(name, tasks), encoding="utf-8")
        marker = {"name": name, "tasks": [task.id for task in tasks], "expbench": version()}
        (fresh / _MARKER).write_text(json.dumps(marker, indent=1) + "\n", encoding="utf-8")
    return _CONFIGS


def _archive(task: Task) -> str:
    return f"repositories/{task.id}.tar.gz"


def _write_archive(path: Path, repository: Path) -> None:
    """The repository's files without `.git`, byte for byte the same for the same files (modes and links kept)."""

    def neutral(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        if entry.name == ".git" or entry.name.startswith(".git/"):
            return None
        entry.uid = entry.gid = entry.mtime = 0
        entry.uname = entry.gname = ""
        entry.mode = 0o755 if entry.isdir() or entry.mode & 0o111 else 0o644
        return entry

    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        path.open("wb") as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for entry in sorted(repository.iterdir(), key=lambda item: os.fsencode(item.name)):
            archive.add(entry, arcname=entry.name, filter=neutral)


def _write_parquet(path: Path, rows: list[dict[str, Any]], features: Features) -> None:
    from datasets.utils.logging import disable_progress_bar

    from datasets import Dataset

    disable_progress_bar()  # a bar for a file that is written in milliseconds
    path.parent.mkdir(parents=True, exist_ok=True)
    Dataset.from_list(rows, features=features).to_parquet(str(path))


def _public_features() -> Features:
    from datasets import Features, List, Value

    text = Value("string")
    return Features(
        {
            "id": text,
            "family": text,
            "paper_id": text,
            "paper_title": text,
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
                          "wall_time_s": Value("int64")},
            "engine": text,
        }
    )  # fmt: skip


def _public_row(task: Task, recipe: MaskRecipe | None) -> dict[str, Any]:
    shipped = task.repository.license in REDISTRIBUTABLE
    return {
        "id": task.id,
        "family": task.family.value,
        "paper_id": task.paper.id,
        "paper_title": task.paper.title,
        "repository_url": task.repository.url,
        "repository_commit": task.repository.commit,
        "repository_license": task.repository.license,
        "masked_repository": _archive(task) if shipped else None,
        "masked_commit": recipe.commit if recipe else None,
        "question": task.question,
        "method": task.method,
        "agent_instructions": task.agent_instructions,
        "python": task.environment.python,
        "packages": list(task.environment.packages),
        "system_packages": list(task.environment.system_packages),
        "resources": task.resources.model_dump(),
        "engine": task.provenance.engine,
    }


def _private_features() -> Features:
    from datasets import Features, List, Value

    text = Value("string")
    variables = List({"name": text, "values": List(text)})
    return Features(
        {
            "id": text,
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
            "reviews": List({"reviewer": text, "decision": text, "comment": text, "at": text}),
        }
    )


def _private_row(task: Task, recipe: MaskRecipe | None) -> dict[str, Any]:
    truth = task.truth
    evidence = {name: [item.model_dump(mode="json") for item in items] for name, items in task.evidence.items()}
    return {
        "id": task.id,
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
        "masked": [item.model_dump() for item in task.masked],
        "masked_edits": None if recipe is None else json.dumps(recipe.edits),
        "truth": json.dumps(truth.model_dump(mode="json"), sort_keys=True),
        "evidence": json.dumps(evidence, sort_keys=True),
        "reviews": [review.model_dump(include={"reviewer", "decision", "comment", "at"}) for review in task.reviews],
    }


def _variable(variable: Any) -> dict[str, Any]:
    return {"name": variable.name, "values": list(variable.values)}


def _card(name: str, tasks: list[Task]) -> str:
    """The data set card: front matter that `datasets` reads, and what a reader must know."""
    front = {
        "pretty_name": name,
        "language": ["en"],
        "tags": ["research-agents", "reproducibility", "expbench"],
        "size_categories": ["n<1K"],
        "configs": [
            {"config_name": config, "data_files": [{"split": "test", "path": f"{config}/test.parquet"}]}
            for config in _CONFIGS
        ],
    }
    claims = sum(len(task.truth.expected.claims) for task in tasks)
    steps = sum(len(task.truth.requirements) for task in tasks)
    engines = ", ".join(sorted({task.provenance.engine for task in tasks}))
    reviewers = Counter(review.reviewer for task in tasks for review in task.reviews)
    lines = [
        "---",
        yaml.safe_dump(front, sort_keys=False).strip(),
        "---",
        "",
        f"# {name}",
        "",
        f"{len(tasks)} research-experiment task(s) with {claims} numeric claims and {steps} implementation "
        f"requirements, made with expbench {version()} (engine: {engines}).",
        "",
        "- `tasks`: what an agent may see: question, method, instructions, environment, masked repository.",
        "- `truth`: ground truth with evidence, joined by `id`. **Keep it away from agents.**",
        "- `repositories/<id>.tar.gz`: the files of the masked repository, where the licence allows redistribution; "
        "otherwise build it from `repository_url`, `repository_commit` and `masked`.",
        "",
        "Each task was re-executed in a clean sandbox; its numbers lie inside the band of each claim; the masked "
        "repository passed the leak scan and the round trip (original passes, masked fails, restored passes).",
        "",
        "## Approval",
        "",
        *(f"- {who}: {count} task(s)" for who, count in sorted(reviewers.items())),
        "",
        "## Sources",
        "",
        "| task | paper | repository | licence |",
        "|---|---|---|---|",
        *(_source_row(task) for task in tasks),
    ]
    return "\n".join(lines) + "\n"


def _source_row(task: Task) -> str:
    repository = task.repository
    licence = repository.license or "not recognised"
    where = f"{_cell(repository.url)} at `{repository.commit[:12]}`"
    return f"| {task.id} | {_cell(task.paper.title)} | {where} | {licence} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
