"""The workspace on disk: readable with `ls`, written atomically, resumable from what was finished.

```
WORKSPACE/
  workspace.json                 what was curated, with which options
  index.html  summary.json       what came out
  ledger.jsonl                   what took how long
  papers/<paper>/                paper.pdf, document.json, drafts.json (with a model also reading.json)
  model/  model_calls.jsonl      with a model: recorded exchanges, and what each call took
  repository/                    the files of the repository at its commit (and repository.json)
  environments/<digest>/         build spec and build log
  tasks/<task>/
    task.yaml  repository/       what an agent may see
    truth.yaml  evidence.json    what only the judge may see, and so are
    evidence/  validation/  leaks.json  round_trip.json  locate.json (with a model)
  .stages/                       records of finished stages, for --resume
```

A stage is finished when its record is there: the record is written last, and it names the digest of everything that the
stage depended on. A record whose key differs is stale and the stage runs again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError

from pipeline.digests import digest_of, text_digest
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import read_record, write_text
from pipeline.ledger import Ledger
from pipeline.schema import Problem, Record, StoredRecord
from pipeline.task import (
    Evidence,
    ExperimentTruth,
    LeakReport,
    MaskedPath,
    PublicTask,
    Review,
    RoundTrip,
    Task,
    ValidationReport,
)
from pipeline.yamlio import dump_yaml, load_yaml

__all__ = ["Inputs", "Workspace", "WorkspaceInfo"]

ModelT = TypeVar("ModelT", bound=BaseModel)
_AGAIN: Final = "Run the same `expbench curate` with --resume: it writes the file again"


class Inputs(Record):
    """What decides the content of a workspace; `--resume` demands that it is the same."""

    paper_sha256: str
    repository: str
    commit: str
    engine: Literal["keyless", "model"]
    sandbox: Literal["docker", "process"]
    repeats: int
    max_tasks: int | None
    model: str | None = None
    """Name of the model; None with the keyless engine."""
    endpoint: str | None = None
    """Where the model is (`EXPBENCH_MODEL_ENDPOINT`, else the address): answers are recorded under it."""
    parameters: str | None = None
    """How its answers are generated."""


class WorkspaceInfo(StoredRecord):
    """The head of a workspace."""

    inputs: Inputs
    paper_id: str
    created_at: str
    expbench: str
    """Version that made it."""


class _TruthFile(StoredRecord):
    """`truth.yaml`: ground truth and decisions, short enough to be read and edited."""

    task: str
    status_reason: str = ""
    confidence: float = 0.0
    truth: ExperimentTruth
    masked: tuple[MaskedPath, ...] = ()
    reviews: tuple[Review, ...] = ()


class _EvidenceFile(StoredRecord):
    """`evidence.json`: quotes are arbitrary text and therefore not in YAML."""

    task: str
    evidence: dict[str, tuple[Evidence, ...]] = Field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


class _StageRecord(StoredRecord):
    """A finished stage: the digest of its inputs and its value."""

    key: str
    value: object


class Workspace:
    """One curated paper-repository pair on disk."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.ledger = Ledger(self.root / "ledger.jsonl")

    @property
    def info_path(self) -> Path:
        """The head of the workspace; a directory without it is not a workspace."""
        return self.root / "workspace.json"

    @property
    def lock_path(self) -> Path:
        """The lock file of the process that works here."""
        return self.root / ".lock"

    @property
    def exchanges_dir(self) -> Path:
        """Recorded exchanges with models."""
        return self.root / "model"

    @property
    def calls_path(self) -> Path:
        """The ledger of model calls (`pipeline.llm.CallLedger`)."""
        return self.root / "model_calls.jsonl"

    @property
    def owner(self) -> str:
        """Label of everything that runs on behalf of this workspace (containers, images under construction)."""
        return "ws-" + text_digest(str(self.root))[:16]

    def exists(self) -> bool:
        """Is there a workspace at the root?"""
        return self.info_path.is_file()

    def info(self) -> WorkspaceInfo:
        """The head of the workspace.

        Raises:
            ExpbenchError: `RECORD_INVALID` when there is none or it cannot be read.
        """
        if not self.exists():
            raise ExpbenchError(
                FailureKind.RECORD_INVALID,
                str(self.root),
                "is not an expbench workspace (no workspace.json)",
                consequence="There is nothing to show or to work on",
                next_step="Name the directory that `expbench curate --out` wrote",
            )
        return self.read_json(self.info_path, WorkspaceInfo)

    def write_info(self, info: WorkspaceInfo) -> None:
        """Write the head."""
        self.write_json(self.info_path, info)

    def paper_dir(self, paper_id: str) -> Path:
        """Directory of a paper."""
        return self.root / "papers" / paper_id

    def task_dir(self, task_id: str) -> Path:
        """Directory of a task."""
        return self.root / "tasks" / task_id

    def masked_repository(self, task_id: str) -> Path:
        """The masked repository of a task: beside `task.yaml`, all that an agent may see."""
        return self.task_dir(task_id) / "repository"

    # --- finished stages ---

    def finished(self, stage: str, key: object, model: type[ModelT]) -> ModelT | None:
        """The value of a stage that was finished with the same key, else None."""
        path = self._stage_path(stage)
        if not path.is_file():
            return None
        try:
            record = _StageRecord.model_validate_json(path.read_bytes())
            return model.model_validate(record.value) if record.key == digest_of(key) else None
        except ValidationError:
            return None  # written by another version: the stage runs again

    def finish(self, stage: str, key: object, value: BaseModel) -> None:
        """Record that a stage is finished; written last, after all files of the stage."""
        self.write_json(self._stage_path(stage), _StageRecord(key=digest_of(key), value=value.model_dump(mode="json")))

    def _stage_path(self, stage: str) -> Path:
        return self.root / ".stages" / f"{stage}.json"

    # --- tasks ---

    def save_task(self, task: Task) -> None:
        """Write the files of a task; each is replaced atomically, and only when its content changes."""
        directory = self.task_dir(task.id)
        truth = _TruthFile(
            task=task.id,
            status_reason=task.status_reason,
            confidence=task.confidence,
            truth=task.truth,
            masked=task.masked,
            reviews=task.reviews,
        )
        write_if_changed(directory / "truth.yaml", dump_yaml(truth))
        self.write_json(
            directory / "evidence.json", _EvidenceFile(task=task.id, evidence=task.evidence, problems=task.problems)
        )
        for name, report in (
            ("validation/report.json", task.validation),
            ("leaks.json", task.leaks),
            ("round_trip.json", task.round_trip),
        ):
            if report is not None:
                self.write_json(directory / name, report)
            else:
                (directory / name).unlink(missing_ok=True)
        write_if_changed(directory / "task.yaml", dump_yaml(task.public()))

    def load_task(self, task_id: str) -> Task:
        """Read a task from its files.

        Raises:
            ExpbenchError: `RECORD_INVALID` when a file is missing or does not fit its schema.
        """
        directory = self.task_dir(task_id)
        if not self.has_task(task_id):
            raise ExpbenchError(
                FailureKind.RECORD_INVALID,
                task_id,
                f"no such task in {self.root}",
                consequence="There is nothing to show",
                next_step="Choose one of: " + (", ".join(self.task_ids()) or "(this workspace has no tasks)"),
            )
        public = load_yaml(directory / "task.yaml", PublicTask)
        truth = load_yaml(directory / "truth.yaml", _TruthFile)
        evidence = self.read_json(directory / "evidence.json", _EvidenceFile)
        return Task.model_validate(
            {name: getattr(public, name) for name in PublicTask.model_fields}
            | {
                "truth": truth.truth,
                "status_reason": truth.status_reason,
                "confidence": truth.confidence,
                "masked": truth.masked,
                "reviews": truth.reviews,
                "evidence": evidence.evidence,
                "problems": evidence.problems,
                "validation": self._read_optional(directory / "validation" / "report.json", ValidationReport),
                "leaks": self._read_optional(directory / "leaks.json", LeakReport),
                "round_trip": self._read_optional(directory / "round_trip.json", RoundTrip),
            }
        )

    def has_task(self, task_id: str) -> bool:
        """Is there such a task? `task.yaml` is written last, so its other files are there too."""
        return (self.task_dir(task_id) / "task.yaml").is_file()

    def task_ids(self) -> list[str]:
        """Ids of all tasks, sorted."""
        return sorted(path.parent.name for path in self.root.glob("tasks/*/task.yaml"))

    def tasks(self) -> list[Task]:
        """All tasks, sorted by id."""
        return [self.load_task(task_id) for task_id in self.task_ids()]

    # --- JSON ---

    def write_json(self, path: Path, value: BaseModel) -> None:
        """Write a model as indented JSON, when its content changes."""
        write_if_changed(path, value.model_dump_json(indent=1) + "\n")

    def _read_optional(self, path: Path, model: type[ModelT]) -> ModelT | None:
        return self.read_json(path, model) if path.is_file() else None

    @staticmethod
    def read_json(path: Path, model: type[ModelT]) -> ModelT:
        """A record that a stage wrote.

        Raises:
            ExpbenchError: `RECORD_INVALID`: it is not there, or cannot be read.
        """
        return read_record(path, model, consequence="The workspace was not changed", next_step=_AGAIN)


def write_if_changed(path: Path, text: str) -> None:
    """Write `text` unless the file holds it already (saves an fsync, keeps modification times meaningful)."""
    data = text.encode("utf-8")
    if path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data:
        return
    write_text(path, text)
