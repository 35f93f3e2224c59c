"""Binary tables as text for the other checks: bounded, and what is not read is said."""

from __future__ import annotations

import pytest

from masking import stored
from masking.stored import read_stored_tables
from masking.units import Budget, Unit
from pipeline.binary_tables import Cells
from pipeline.schema import Severity
from tests.masking.planting import database


def read(data: bytes, budget: Budget) -> list[Unit]:
    return list(read_stored_tables("a.db", "x/a.db", data, budget, 0))


def test_a_table_is_a_csv_with_its_columns() -> None:
    budget = Budget()
    (unit,) = read(database(), budget)
    assert (unit.where, unit.name, unit.role) == ("x/a.db!/final", "table.csv", "member")
    assert unit.data.splitlines()[:2] == [b"estimator,mse", b"plain,0.2"]
    assert budget.problems == []


def test_an_array_is_a_table_of_its_label_and_its_values(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = Cells("", (), ((0.5, 0), (0.75, 1)), labels=("test", "accuracy"))
    monkeypatch.setattr(stored, "read_apart", lambda path: [cells] if path.name == "file.h5" else [])
    (unit,) = read(b"\x89HDF\r\n\x1a\n...", Budget())
    assert (unit.where, unit.data) == ("x/a.db!/table", b"test accuracy,0.5\ntest accuracy,0.75\n")


@pytest.mark.parametrize(("size", "is_read"), [(2 << 20, True), ((2 << 20) + 1, False)])
def test_tables_of_more_than_two_megabytes_are_data(size: int, is_read: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "read_apart", lambda _: [Cells("", ("a",), (("1",),))])
    budget = Budget()
    assert [unit.data for unit in read(b"PAR1".ljust(size), budget)] == ([b"a\n1\n"] if is_read else [])
    assert ["more than 2 MB" in item.message for item in budget.problems] == ([] if is_read else [True])


def test_a_large_file_is_data_and_a_damaged_one_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    data = database()
    monkeypatch.setattr(stored, "_MAX", len(data) - 1)
    budget = Budget()
    assert read(data, budget) == []
    assert [(item.severity, "not searched for results" in item.message) for item in budget.problems] == [
        (Severity.INFO, True)
    ]
    monkeypatch.setattr(stored, "_MAX", len(data))
    assert len(read(data, budget)) == 1
    assert read(data[:100], budget) == []
    assert (budget.problems[1].severity, budget.problems[1].where) == (Severity.INFO, "x/a.db")
