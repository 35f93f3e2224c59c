"""Tasks as a data set for Hugging Face `datasets`, and back: Parquet, typed features, answers in a part of their own.

```
OUT/
  README.md  CHANGELOG.md  images/      the card; what became of each task in which version; pictures of the card
  expbench-release.json                 name, version, digests
  tasks/<family>.parquet                what an agent may see
  repositories/<task>.tar.gz            masked repositories, where the licence allows redistribution
  private/                              a data set of its own, published apart with access on request
    README.md  truth/<family>.parquet   ground truth, evidence with pictures, mask recipes, reviews
    originals/<task>.tar.gz             what the mask took, where the licence allows: the oracle and scans need it
```

Tasks of the families that are made of files have those files in their rows (`pipeline.formats.family_parts`).

An *open* release has `truth/` beside `tasks/` and no `private/`. What agents may see and what only graders may see are
never in one file, so that a leak test is a path test; every private file carries the canary string.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from pydantic import Field, ValidationError

from pipeline.digests import file_digest
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import write_bytes, write_text
from pipeline.formats.archives import write_archive
from pipeline.formats.family_parts import FamilyPart, FamilyShape, part_of
from pipeline.formats.release_card import CardFacts, private_card, public_card
from pipeline.formats.release_log import VersionEntry, changelog_markdown
from pipeline.formats.release_statistics import plots
from pipeline.formats.release_tables import (
    REDISTRIBUTABLE,
    MaskRecipe,
    archive_name,
    family_private_row,
    family_public_row,
    is_shipped,
    originals_name,
    private_features,
    private_row,
    public_features,
    public_row,
    task_of,
)
from pipeline.schema import Record, StoredRecord
from pipeline.task import Family, PublicTask, Task
from pipeline.version import version

if TYPE_CHECKING:
    from datasets import Features

__all__ = [
    "MARKER", "PRIVATE", "REDISTRIBUTABLE", "MaskRecipe", "Part", "Release", "ReleaseHead", "canary_of",
    "images_by_task", "is_release", "read_family_parts", "read_head", "read_release", "read_tables", "write_dataset",
]  # fmt: skip

MARKER: Final = "expbench-release.json"
PRIVATE: Final = "private"
_NAMESPACE: Final = uuid.uuid5(uuid.NAMESPACE_URL, "https://expbench.invalid/canary")
_EARLIER: Final = {"tasks": "tasks/test.parquet", "truth": "truth/test.parquet"}
"""Where the first form of a release, with one table for all families, has its rows."""


class Part(Record):
    """One task with what a release holds beside it."""

    task: Task
    masked: Path
    """The masked repository (work tree with `.git`)."""
    recipe: MaskRecipe | None = None
    """What the mask changed inside files; without it a masked repository that is not shipped can be built again only if
    its mask removes whole files."""
    original: Path | None = None
    """Files of the unmasked repository; those that the mask took are in the private part, where the licence allows
    and all of them are there."""
    images: tuple[Path, ...] = ()
    """Pictures of the evidence."""


class Release(Record):
    """What is written."""

    name: str
    parts: tuple[Part, ...]
    """Sorted by the task's id."""
    versions: tuple[VersionEntry, ...]
    """The newest, which this is, first."""
    layout: Literal["split", "open"] = "split"
    license: str | None = None
    paper_licenses: dict[str, str] = Field(default_factory=dict)
    family_parts: tuple[FamilyPart, ...] = ()
    """Tasks of the other families, sorted by id."""
    shapes: tuple[FamilyShape, ...] = ()
    """Of the families of `family_parts`."""

    @property
    def tasks(self) -> list[PublicTask]:
        """The public halves of all tasks, sorted by id."""
        found = [*(part.task.public() for part in self.parts), *(part.public for part in self.family_parts)]
        return sorted(found, key=lambda task: task.id)


class ReleaseHead(StoredRecord):
    """`expbench-release.json`."""

    SCHEMA_VERSION: ClassVar[int] = 2

    name: str
    tasks: tuple[str, ...]
    expbench: str
    version: str = "1.0.0"
    layout: Literal["split", "open"] = "open"
    versions: tuple[VersionEntry, ...] = ()
    canary: str | None = None
    """Where this part holds ground truth."""
    files: dict[str, str] = Field(default_factory=dict)
    """sha256 of the files of this part by path, without the card (published alone, it names fewer configurations)."""


def canary_of(name: str) -> str:
    """The string that marks the private artefacts of a data set; the same in all its versions."""
    return f"expbench-canary-{uuid.uuid5(_NAMESPACE, name)}"


def is_release(directory: Path) -> bool:
    """Does a directory hold a release?"""
    return (directory / MARKER).is_file()


# --- writing


def write_dataset(directory: Path, release: Release) -> tuple[str, ...]:
    """Write a release into an empty directory; the same release gives the same bytes.

    Args:
        directory: exists, and is empty.
        release: what is written.

    Returns:
        The names of the configurations, the default first.
    """
    private = directory if release.layout == "open" else directory / PRIVATE
    canary = canary_of(release.name)
    public, hidden = _rows_by_family(release, canary)
    families = sorted(public)
    for family in families:
        _write_parquet(directory / "tasks" / f"{family}.parquet", public[family], public_features(release.shapes))
        features = private_features(release.shapes, experiments=bool(release.parts))
        _write_parquet(private / "truth" / f"{family}.parquet", hidden[family], features)
    for part in release.parts:
        if is_shipped(part.task):
            write_archive(directory / archive_name(part.task.id), part.masked)
            taken = [item.path for item in part.task.masked]
            if part.original is not None and all(os.path.lexists(part.original / name) for name in taken):
                write_archive(private / originals_name(part.task.id), part.original, names=taken, comment=canary)
    configs = _configs(families, "" if release.layout == "open" else f"{PRIVATE}/")
    tasks = [part.task for part in release.parts]
    pictures = plots(tasks, release.family_parts, release.shapes)
    facts = CardFacts(
        name=release.name, entry=release.versions[0], configs=configs, license=release.license,
        paper_licenses=release.paper_licenses, open_set=release.layout == "open", canary=canary,
        plots=sorted(pictures), family_parts=release.family_parts, shapes=release.shapes,
    )  # fmt: skip
    for path, picture in pictures.items():
        write_bytes(directory / path, picture)
    write_text(directory / "README.md", public_card(facts, tasks))
    write_text(directory / "CHANGELOG.md", changelog_markdown(release.versions))
    if private != directory:
        write_text(private / "README.md", private_card(facts, tasks))
        _write_head(private, release, canary)
    _write_head(directory, release, canary if private == directory else None)
    return tuple(name for name, _ in configs)


def _rows_by_family(
    release: Release, canary: str
) -> tuple[dict[str, list[dict[str, Any]]], dict[str, list[dict[str, Any]]]]:
    """(public rows, private rows), each by family."""
    public: dict[str, list[dict[str, Any]]] = {}
    hidden: dict[str, list[dict[str, Any]]] = {}
    for part in release.parts:
        task, licence = part.task, release.paper_licenses.get(part.task.paper.id)
        commit = part.recipe.commit if part.recipe else None
        row = public_row(task.public(), masked_commit=commit, paper_license=licence)
        public.setdefault(task.family.value, []).append(row)
        row = private_row(task, recipe=part.recipe, canary=canary, images=part.images)
        hidden.setdefault(task.family.value, []).append(row)
    for item in release.family_parts:
        family, licence = item.public.family.value, release.paper_licenses.get(item.public.paper.id)
        public.setdefault(family, []).append(family_public_row(item, paper_license=licence))
        hidden.setdefault(family, []).append(family_private_row(item, canary=canary))
    return public, hidden


def _configs(families: Sequence[str], private: str) -> list[tuple[str, str]]:
    """(configuration, its files): all tasks, each family, all truth, each family's truth."""
    return [
        ("tasks", "tasks/*.parquet"),
        ("truth", f"{private}truth/*.parquet"),
        *((family, f"tasks/{family}.parquet") for family in families),
        *((f"{family}-truth", f"{private}truth/{family}.parquet") for family in families),
    ]


def _write_head(directory: Path, release: Release, canary: str | None) -> None:
    files = {
        path.relative_to(directory).as_posix(): file_digest(path)
        for path in sorted(directory.rglob("*"))
        if path.is_file() and not path.relative_to(directory).as_posix().startswith((f"{PRIVATE}/", "README.md"))
    }
    head = ReleaseHead(
        schema_version=ReleaseHead.SCHEMA_VERSION, name=release.name,
        tasks=tuple(task.id for task in release.tasks), expbench=version(), layout=release.layout,
        version=release.versions[0].version, versions=release.versions, canary=canary,
        files=files,
    )  # fmt: skip
    write_text(directory / MARKER, head.model_dump_json(indent=1) + "\n")


def _write_parquet(path: Path, rows: list[dict[str, Any]], features: Features) -> None:
    from datasets.utils.logging import disable_progress_bar

    from datasets import Dataset

    disable_progress_bar()  # a bar for a file that is written in milliseconds
    path.parent.mkdir(parents=True, exist_ok=True)
    # a row has the columns of its own family; those of the others are empty
    whole = [{name: row.get(name) for name in features} for row in rows]
    Dataset.from_list(whole, features=features).to_parquet(str(path))


# --- reading


def read_head(directory: Path) -> ReleaseHead:
    """The head of a release.

    Raises:
        ExpbenchError: `RECORD_INVALID`: there is none, or it cannot be read.
    """
    path = directory / MARKER
    try:
        return ReleaseHead.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise _unreadable(path, str(error)) from error


def read_tables(directory: Path) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """(public rows, private rows) by task id; pictures are `{"bytes", "path"}`. Only the first may be complete.

    Raises:
        ExpbenchError: `RECORD_INVALID`: there is no public table, or one cannot be read.
    """
    places = {"tasks": [directory / "tasks"], "truth": [directory / PRIVATE / "truth", directory / "truth"]}
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for kind, directories in places.items():
        files = [file for place in directories for file in sorted(place.glob("*.parquet"))]
        if kind == "tasks" and not files:
            raise _unreadable(directory / _EARLIER[kind], "there is no such file")
        found[kind] = {row["id"]: row for file in files for row in _rows(file)}
    return found["tasks"], found["truth"]


def _rows(path: Path) -> list[dict[str, Any]]:
    import pyarrow as arrow  # type: ignore[import-untyped]
    from pyarrow import parquet

    try:
        return list(parquet.read_table(path).to_pylist())
    except (OSError, arrow.ArrowException) as error:
        raise _unreadable(path, str(error)) from error


def read_release(directory: Path) -> list[Task]:
    """Its tasks of the `experiment` family with their ground truth, equal to those that were released; sorted by id.

    Raises:
        ExpbenchError: `RECORD_INVALID`: it is no release, has no ground truth, or was written before rows held the
            whole record.
    """
    public, private = read_tables(directory)
    missing = sorted(public.keys() - private.keys())
    if missing:
        raise _unreadable(directory, f"it holds no ground truth of {len(missing)} task(s), e.g. {missing[0]}")
    try:
        return [
            task_of(public[task], private[task])
            for task in sorted(public)
            if public[task]["family"] == Family.EXPERIMENT.value
        ]
    except (KeyError, ValueError) as error:
        raise _unreadable(directory, f"its rows do not hold whole tasks ({error})") from error


def read_family_parts(directory: Path) -> list[FamilyPart]:
    """Its tasks of the other families, sorted by id; without the private part they have no ground truth.

    Raises:
        ExpbenchError: `RECORD_INVALID`: it is no release, or a row is not that of such a task.
    """
    public, private = read_tables(directory)
    chosen = [task for task in sorted(public) if public[task]["family"] != Family.EXPERIMENT.value]
    try:
        return [part_of(public[task], private.get(task)) for task in chosen]
    except (KeyError, TypeError, ValueError) as error:
        raise _unreadable(directory, f"its rows do not hold whole tasks ({error})") from error


def _unreadable(path: Path, cause: str) -> ExpbenchError:
    return ExpbenchError(
        FailureKind.RECORD_INVALID,
        str(path),
        f"it cannot be read as a part of a release ({(cause.splitlines() or ['unreadable'])[0]})",
        consequence="No task was loaded",
        next_step="Name a directory that `expbench release` wrote, complete",
    )


def images_by_task(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, bytes]]:
    """Pictures of the evidence by task and name, from private rows."""
    return {
        task: {image["path"]: image["bytes"] for image in row.get("evidence_images") or ()}
        for task, row in rows.items()
    }
