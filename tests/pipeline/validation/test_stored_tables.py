"""Results in binary tables; what cannot be read safely is said, never opened."""

from __future__ import annotations

import base64
import pickle
import sqlite3
import zlib
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import feather, ipc, parquet

from pipeline.binary_tables import read
from pipeline.schema import Severity
from pipeline.validation.outputs import read_file

COLUMNS = {"method": ["ours", "sgd"], "acc": [0.9134, 0.75], "n": [40, 40]}
# h5py: ours/accuracy = 0.875, ours/curve = 0, 1/8, 1/4, attribute ours.f1 = 0.75, a compound table, attribute seed = 3
HDF5 = (
    "c-rgqaB<`1lHy_j0S*oZ76t(ZWbhvfJVa3WF!=;1%?PDCp!5nRm^d?7P68?}05$)IFoYif6%Pq=bp@&Zj|O1&JYa?C9|a>3c(^)(lS%}X4@*xcm{8T_"
    "mlhR+=#s>woK&QA=|HBvxYF+gAqYQ$$n<L=fa>m1FtXFH0<64bMOBxWoLpLzm|O|t19@f0>DYoqdxQP_T^Jdd7&u_|GNYE)9#DP;TKW1yXf)1H%K=tM"
    "m@&fm94O()49wXewxEJNRK|h9gqy+SKQw$<fubOJCMG7Z77l1hz|3d?jT#O#8)poGP<dmI%0B?*U$6(2!)n2-izivVwJ%Ojfu$<@(Udd_M!_f;1*2dT"
    "3|)ZUuGC=1uO8O#X%HL@JN)fRNJud<GD6#x3}`gD?Mw#_>^;zqK@}c?&>jeSzk~<c^8xk8MS#9aGlZ(g5e|$froONz6wa_=1SWVmSAdm@F@fx6V8~4^"
    "$;eM3?0#XOCKgCP4$NmE<X@8GF#<<CYLFGq=;L)f3<mIY$pf^tI5idQYXJ@hxI0n%JrDo@-o$TX"
)


def database(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute('CREATE TABLE "final ""results""" (method TEXT, acc REAL, n INTEGER)')
    connection.executemany(
        'INSERT INTO "final ""results""" VALUES (?, ?, ?)', list(zip(*COLUMNS.values(), strict=True))
    )
    connection.execute("CREATE VIEW everything AS SELECT * FROM sqlite_master")
    connection.commit()
    connection.close()


WRITERS = {
    "r.parquet": lambda path: parquet.write_table(pa.table(COLUMNS), path),
    "r.feather": lambda path: feather.write_feather(pa.table(COLUMNS), str(path), compression="lz4"),
    "r.arrow": lambda path: feather.write_feather(pa.table(COLUMNS), str(path), compression="uncompressed"),
    "r.sqlite": database,
    "r.db": database,
}


@pytest.mark.parametrize("name", sorted(WRITERS))
def test_a_table_is_read_with_its_labels(name: str, tmp_path: Path) -> None:
    WRITERS[name](tmp_path / name)
    seen, problems = read_file(tmp_path / name, name)
    assert problems == []
    (ours,) = [item for item in seen if item.value == 0.9134]
    assert ours.labels[-1] == "acc"
    assert "ours" in ours.labels or ("method", "ours") in ours.coordinates
    assert ours.decimals == 4
    assert "row 1" in ours.where


def test_hdf5_gives_data_sets_attributes_and_compound_tables(tmp_path: Path) -> None:
    pytest.importorskip("pyfive")
    (tmp_path / "r.h5").write_bytes(zlib.decompress(base64.b85decode(HDF5)))
    seen, problems = read_file(tmp_path / "r.h5", "r.h5")
    assert problems == []
    labelled = {(item.labels, item.value) for item in seen}
    assert {(("ours", "accuracy"), 0.875), (("ours", "f1"), 0.75), (("seed",), 3.0)} <= labelled
    assert [item.value for item in seen if item.labels == ("ours", "curve")] == [0.0, 0.125, 0.25]
    assert any(item.value == 0.9134 and "ours" in str((item.labels, item.coordinates)) for item in seen)


@pytest.mark.parametrize("name", ["r.pkl", "model.pt"])
def test_a_pickle_is_never_opened(name: str, tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (Path.touch, (tmp_path / "ran",))

    (tmp_path / name).write_bytes(pickle.dumps(Bomb()))
    seen, (problem,) = read_file(tmp_path / name, name)
    assert seen == []
    assert problem.severity is Severity.INFO
    assert "runs code" in problem.message
    assert not (tmp_path / "ran").exists()


def test_data_is_not_taken_for_results(tmp_path: Path) -> None:
    many = pa.table({"x": list(range(5_000))})
    parquet.write_table(many, tmp_path / "d.parquet")
    feather.write_feather(many, str(tmp_path / "d.feather"))
    for name in ("d.parquet", "d.feather"):
        seen, (problem,) = read_file(tmp_path / name, name)
        assert seen == []
        assert "data rather than results" in problem.message


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 1), byte=st.integers(0, 255), cut=st.floats(0.1, 1), kind=st.sampled_from(sorted(WRITERS)))
def test_damaged_files_are_read_or_refused(place: float, byte: int, cut: float, kind: str, tmp_path: Path) -> None:
    path = tmp_path / kind
    path.unlink(missing_ok=True)
    WRITERS[kind](path)
    data = bytearray(path.read_bytes())
    data[int(place * (len(data) - 1))] = byte
    path.write_bytes(bytes(data[: max(1, int(cut * len(data)))]))
    with suppress(ValueError, OSError, pa.ArrowException, sqlite3.Error):
        assert all(len(row) == len(cells.columns) for cells in read(path) for row in cells.rows)


@pytest.mark.parametrize("size", [0, 3_000])
def test_whatever_a_parser_does_with_damage_is_a_problem_of_the_file(size: int, tmp_path: Path) -> None:
    (tmp_path / "r.h5").write_bytes(zlib.decompress(base64.b85decode(HDF5))[:size])
    seen, (problem,) = read_file(tmp_path / "r.h5", "r.h5")
    assert seen == []
    assert "could not be read as .h5" in problem.message


def test_streams_in_place_of_files_are_reported(tmp_path: Path) -> None:
    with pa.OSFile(str(tmp_path / "s.arrow"), "wb") as sink, ipc.new_stream(sink, pa.table(COLUMNS).schema) as writer:
        writer.write_table(pa.table(COLUMNS))
    assert len(read_file(tmp_path / "s.arrow", "s.arrow")[1]) == 1
