"""A task as the harness needs it, wherever it comes from: a release, a workspace, or a published benchmark."""

from __future__ import annotations

from pathlib import Path

from pipeline.data.records import KeptData
from pipeline.digests import digest_of
from pipeline.schema import Record
from pipeline.task import ExperimentTruth, MaskedPath, NumericClaim, PublicTask

__all__ = ["EvaluationTask", "private_digest"]


class EvaluationTask(Record):
    """What the agent may see, what only the graders may see, and where the repositories are."""

    public: PublicTask
    truth: ExperimentTruth | None = None
    """Ground truth; None where the source has none (it cannot be judged then)."""
    masked_paths: tuple[MaskedPath, ...] = ()
    category: str = ""
    masked_repository: Path | None = None
    """Working tree with `.git` of one commit, as the agent gets it."""
    original_tree: Path | None = None
    """Files of the unmasked repository (for the oracle and for scans of what was read); graders' side only."""
    paper_pdf: Path | None = None
    """Graders' side only."""
    paper_texts: tuple[str, ...] = ()
    """Passages of the paper, for the similarity check of paper access; graders' side only."""
    blocked: str = ""
    """Why it cannot be carried out here; empty when it can."""
    private: Path | None = None
    """Directory with what only the graders of another family than `experiment` may see (its reference, its world)."""
    private_digest: str = ""
    """sha256 of the ground truth, for the lock."""

    @property
    def id(self) -> str:
        """The task's id."""
        return self.public.id

    @property
    def data(self) -> KeptData | None:
        """What the original's runs download: agents and re-executions get the same, or are not started."""
        return self.truth.data if self.truth else None

    @property
    def claims(self) -> tuple[NumericClaim, ...]:
        """The expected numbers."""
        return self.truth.expected.claims if self.truth else ()


def private_digest(truth: ExperimentTruth | None) -> str:
    """sha256 of a ground truth, empty for none: equal wherever the task was loaded from."""
    return digest_of(truth.model_dump(mode="json")) if truth is not None else ""
