from __future__ import annotations

from pipeline.errors import FAILURES, Cause, ExpbenchError, FailureKind, exit_code_table


def test_every_kind_has_a_row() -> None:
    assert set(FAILURES) == set(FailureKind)


def test_no_failure_of_ours_or_of_the_machine_is_graded() -> None:
    for kind, row in FAILURES.items():
        if row.cause in {Cause.INFRASTRUCTURE, Cause.US, Cause.USER}:
            assert not row.graded, kind
            assert not row.score_valid, kind


def test_no_failure_exits_with_success() -> None:
    assert 0 not in exit_code_table()
    assert exit_code_table()[130] == [FailureKind.INTERRUPTED]


def test_an_error_tells_object_cause_consequence_and_next_step() -> None:
    error = ExpbenchError(
        FailureKind.PAPER_INVALID, "a.pdf", "is a PNG image", consequence="Nothing was started", next_step="Give a PDF"
    )
    assert str(error) == "a.pdf: is a PNG image. Nothing was started. Give a PDF."
    assert error.as_dict()["exit_code"] == 3
