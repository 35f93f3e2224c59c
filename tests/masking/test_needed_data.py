"""Data that the experiment reads stays, though it lies where results usually do."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from masking.plan import plan_mask
from pipeline.tracing.needs import needed_file
from tests.masking.builders import document, make, task

MEASURED = b"depth,time\n1,2\n3,4\n5,6\n"


@pytest.mark.parametrize(
    ("need", "kept"),
    [
        (None, False),
        ("file results/measured.csv (run_all.py:12)", True),
        ("file ./results/measured.csv (lib/data.py:3)", True),
        ("file ../repository/results/measured.csv (lib/data.py:3)", True),
        ("results/measured.csv", True),
        ("file results/measured.csv", True),
        ("file measured.csv (run_all.py:12)", False),  # a bare name may be any file of that name
        ("environment variable results/measured.csv (run_all.py:12)", False),
    ],
)
def test_a_needed_file_of_a_results_folder_stays(tmp_path: Path, need: str | None, kept: bool) -> None:
    snapshot = make(tmp_path / "original", {"results/measured.csv": MEASURED})
    plain = task()
    truth = plain.truth.evolve(data_needs=() if need is None else (need,))
    plan = plan_mask(snapshot=snapshot, task=plain.evolve(truth=truth), documents=(document(),), paper_sha256="d" * 64)
    assert ("results/measured.csv" not in plan.with_action("removed")) is kept


@given(st.text(alphabet="abc /._-", min_size=1).map(str.strip).filter(bool), st.integers(1, 9))
def test_the_path_of_a_need_is_read_back(path: str, line: int) -> None:
    assert needed_file(f"file {path} (a.py:{line})") == path.removeprefix("./")
    assert needed_file(f"data set or model {path} (a.py:{line})") is None
