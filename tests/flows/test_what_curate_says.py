"""What a user is told when little comes out: names of papers, and why nothing became a task."""

from __future__ import annotations

from pathlib import Path

import pytest

from extractors.drafting import DraftResult
from flows.curate import _paper_id
from flows.draft_stage import _say_why_nothing
from pipeline.progress import SilentReporter
from pipeline.repository import RepositoryRef, Snapshot
from pipeline.schema import Problem, Severity


class Told(SilentReporter):
    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warn(self, message: str) -> None:
        self.warnings.append(message)


@pytest.mark.parametrize(
    ("name", "id_"),
    [
        ("paper", "their-code"), ("Paper_FINAL", "their-code"), ("main2", "their-code"), ("v2", "their-code"),
        ("manuscript-revised-3", "their-code"), ("2301.13334v2", "2301-13334v2"), ("bert", "bert"),
        ("main_ieee", "main-ieee"),
    ],
)  # fmt: skip
def test_a_paper_is_called_after_what_says_most(name: str, id_: str, tmp_path: Path) -> None:
    snapshot = Snapshot(ref=RepositoryRef(url="https://x.org/their-code.git", commit="0" * 40), root=tmp_path, files=())
    assert _paper_id(tmp_path / f"{name}.pdf", snapshot) == id_


def test_a_paper_without_tasks_says_why(tmp_path: Path) -> None:
    problems = [
        Problem(component="draft", where=f"Table {n}", message="no task: no metric", severity=Severity.INFO)
        for n in range(14)
    ]
    told = Told()
    _say_why_nothing(DraftResult(drafts=(), problems=tuple(problems)), None, told)
    assert told.warnings[0] == "Table 0: no task: no metric"
    assert "and 2 more" in told.warnings[-2]
    assert "--engine model" in told.warnings[-1]
