"""Retries follow the table of failures; papers have names before they are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import FAILURES, ExpbenchError, FailureKind


@pytest.mark.parametrize("kind", list(FailureKind))
def test_a_failure_is_retried_when_the_table_says_so(kind: FailureKind) -> None:
    from prefect.states import Failed

    from flows.orchestration.guard import worth_retrying

    error = ExpbenchError(kind, "x", "broke", consequence="Nothing", next_step="Again")
    nothing: Any = None
    assert worth_retrying(nothing, nothing, Failed(data=error)) is FAILURES[kind].retry


def test_a_defect_is_not_retried() -> None:
    from prefect.states import Failed

    from flows.orchestration.guard import worth_retrying

    nothing: Any = None
    assert not worth_retrying(nothing, nothing, Failed(data=ZeroDivisionError()))


@pytest.mark.parametrize(
    ("path", "label"), [("a/my-paper.pdf", "my-paper"), ("a/attention/paper.pdf", "attention"), ("/paper.pdf", "paper")]
)
def test_a_paper_is_called_after_its_file_or_its_directory(path: str, label: str) -> None:
    from flows.orchestration.guard import paper_label

    assert paper_label(Path(path)) == label
