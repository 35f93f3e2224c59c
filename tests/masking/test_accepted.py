"""Findings that a person accepted: who and why, exactly which, and nothing by mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from masking.accepted import FILE_NAME, accept_hits, accepted_hits
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.task import LeakHit, LeakReport, Verdict

FIRST = LeakHit(kind="number", where="a.py:3", detail="states claim c1", score=0.9)
SECOND = LeakHit(kind="exact", where="b.py", detail="identical", score=1.0)
REPORT = LeakReport(verdict=Verdict.FAIL, hits=(FIRST, SECOND), files=2, bytes=9, git_objects=3, checks=("exact",))


def test_acceptances_add_up_and_are_stored_with_name_and_reason(tmp_path: Path) -> None:
    assert accepted_hits(tmp_path) == ()
    accept_hits(tmp_path, REPORT, [SECOND.id], reviewer="  Ada ", reason=" a licence text ")
    both = accept_hits(tmp_path, REPORT, [FIRST.id], reviewer="Ben", reason="a page number")
    assert both == accepted_hits(tmp_path)
    assert {item.hit: (item.reviewer, item.reason) for item in both} == {
        FIRST: ("Ben", "a page number"),
        SECOND: ("Ada", "a licence text"),
    }
    assert [item.hit.id for item in both] == sorted([FIRST.id, SECOND.id])


def test_accepting_again_takes_the_new_name_and_reason(tmp_path: Path) -> None:
    accept_hits(tmp_path, REPORT, [FIRST.id], reviewer="Ada", reason="first thought")
    (item,) = accept_hits(tmp_path, REPORT, [FIRST.id], reviewer="Ben", reason="second thought")
    assert (item.reviewer, item.reason) == ("Ben", "second thought")


@pytest.mark.parametrize(
    ("report", "ids", "reviewer", "reason", "cause"),
    [
        (REPORT, [FIRST.id], " ", "r", "nobody's name was given"),
        (REPORT, [FIRST.id], "Ada", "\n", "no reason was given"),
        (REPORT, [FIRST.id, "x1", "x2"], "Ada", "r", "the last leak scan has no hit x1, x2"),
        (None, ["x1"], "Ada", "r", "the last leak scan has no hit x1"),
    ],
)
def test_what_is_refused_changes_nothing(
    report: LeakReport | None, ids: list[str], reviewer: str, reason: str, cause: str, tmp_path: Path
) -> None:
    with pytest.raises(ExpbenchError) as caught:
        accept_hits(tmp_path, report, ids, reviewer=reviewer, reason=reason)
    assert (caught.value.kind, caught.value.cause) == (FailureKind.USAGE, cause)
    known = ", ".join(sorted([FIRST.id, SECOND.id])) if report else "it has none"
    assert f"({known})" in caught.value.next_step
    assert not (tmp_path / FILE_NAME).exists()


@pytest.mark.parametrize("text", ["{", '{"accepted": 3}', ""])
def test_a_damaged_file_accepts_nothing_and_says_so(text: str, tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text(text)
    with pytest.raises(ExpbenchError) as caught:
        accepted_hits(tmp_path)
    assert caught.value.kind is FailureKind.RECORD_INVALID
    assert caught.value.cause.startswith("cannot be read as AcceptedFile: 1 validation error")
