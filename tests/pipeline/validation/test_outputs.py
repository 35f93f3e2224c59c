from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.sandbox.base import Command, CommandResult, ProducedFile, RunResult
from pipeline.validation.observation import Observation
from pipeline.validation.outputs import read_file, read_run
from pipeline.validation.text_output import observe_text


def find(observations: list[Observation], value: float) -> Observation:
    (found,) = [item for item in observations if item.value == value]
    return found


def text(content: str) -> list[Observation]:
    return list(observe_text(content, "stdout"))


def test_key_value_line_with_a_prefix_and_siblings() -> None:
    seen = text("[EXP1] accuracy\n  Order 3: R² = 0.9998476 ± 0.0000313 (n=20)\n")
    number = find(seen, 0.9998476)
    assert number.labels == ("Order 3", "R²")
    assert ("n", "20") in number.coordinates
    assert number.uncertainty == 0.0000313
    assert number.where == "stdout:2"
    assert "[EXP1] accuracy" in number.context


TABLES = {
    "aligned": "method        acc   f1\n------------------\nours         0.91  0.80\nsgd          0.85  0.70\n",
    "pipes": "| method | acc | f1 |\n|---|---|---|\n| ours | 0.91 | 0.80 |\n| sgd | 0.85 | 0.70 |\n",
    "box": "┏━━━┳━━━┳━━━┓\n┃ method ┃ acc ┃ f1 ┃\n┡━━━╇━━━╇━━━┩\n│ ours │ 0.91 │ 0.80 │\n│ sgd │ 0.85 │ 0.70 │\n└──┴──┴──┘\n",
    "pandas": "      acc    f1\nours  0.91  0.80\nsgd   0.85  0.70\n",
    "csv": "method,acc,f1\nours,0.91,0.80\nsgd,0.85,0.70\n",
    "latex": "Method & acc & f1 \\\\\n\\midrule\nours & \\textbf{0.91} & 0.80 \\\\\nsgd & 0.85 & 0.70 \\\\\n",
    "single": "method acc f1\nours 0.91 0.80\nsgd 0.85 0.70\n",
}


@pytest.mark.parametrize("kind", sorted(TABLES))
def test_tables_in_every_notation(kind: str) -> None:
    seen = text("Results\n" + TABLES[kind])
    assert {(item.value, item.labels) for item in seen} == {
        (0.91, ("ours", "acc")),
        (0.80, ("ours", "f1")),
        (0.85, ("sgd", "acc")),
        (0.70, ("sgd", "f1")),
    }


def test_the_line_above_a_table_is_its_title_even_with_numbers() -> None:
    seen = text("accuracy at noise rate 0.3\nmethod  moons\nours    0.91\n")
    assert "accuracy at noise rate 0.3" in find(seen, 0.91).context


def test_numbers_as_column_headers() -> None:
    seen = text("n        200   400\nours     84.8  88.1\nsgd      74.2  79.8\n")
    assert find(seen, 88.1).labels == ("ours", "400")


def test_progress_bars_and_terminal_codes_are_left_out() -> None:
    seen = text("\x1b[32macc: 0.91\x1b[0m\n 50%|█████     | 5/10 [00:01<00:01, 4.9it/s]\nloss 9.0\rloss 0.1\n")
    assert [item.value for item in seen] == [0.91, 0.1]


def test_log_prefixes_are_not_results() -> None:
    seen = text("2024-05-01 12:00:00,123 INFO root: test accuracy: 87.30% (n=500)\n")
    assert find(seen, 87.3).labels[-1].endswith("test accuracy")
    assert find(seen, 87.3).percent
    assert {item.value for item in seen} == {87.3, 500}


def test_epochs_are_coordinates() -> None:
    seen = text("Epoch 3/10 | train loss 0.30 | val acc 0.91\n")
    number = find(seen, 0.91)
    assert number.labels == ("Epoch 3/10", "val acc")


def write(root: Path, name: str, content: str | bytes) -> list[Observation]:
    path = root / Path(name).name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    seen, problems = read_file(path, name)
    assert not problems
    return seen


def test_csv(tmp_path: Path) -> None:
    seen = write(tmp_path, "results/x.csv", "noise,method,accuracy_mean\nsym,ours,0.91\nasym,ours,0.85\n")
    number = find(seen, 0.85)
    assert number.labels == ("asym", "ours", "accuracy_mean")
    assert number.where == "results/x.csv row 3, column accuracy_mean"


def test_json_records_and_nested_keys(tmp_path: Path) -> None:
    data = {"ours": {"accuracy": 0.91}, "results": [{"order": 3, "r2": 0.99}, {"order": 4, "r2": 0.98}]}
    seen = write(tmp_path, "m.json", json.dumps(data))
    assert find(seen, 0.91).labels == ("ours", "accuracy")
    assert ("order", "4") in find(seen, 0.98).coordinates
    assert find(seen, 0.98).where == "m.json: results[1].r2"


def test_json_columns_are_read_as_a_table(tmp_path: Path) -> None:
    seen = write(tmp_path, "m.json", json.dumps({"n": [100, 200], "rmse": [0.5, 0.25]}))
    assert ("n", "200") in find(seen, 0.25).coordinates


def test_yaml_jsonl_and_notebook(tmp_path: Path) -> None:
    assert find(write(tmp_path, "a.yaml", "ours:\n  acc: 0.5\n"), 0.5).labels == ("ours", "acc")
    lines = write(tmp_path, "a.jsonl", '{"epoch": 1, "loss": 0.5}\n{"epoch": 2, "loss": 0.25}\n')
    assert find(lines, 0.25).where == "a.jsonl line 2: loss"
    cell = {"cells": [{"outputs": [{"text": ["accuracy: 0.75\n"]}]}]}
    assert find(write(tmp_path, "a.ipynb", json.dumps(cell)), 0.75).where == "a.ipynb cell 1:1"


def test_arrays_are_never_unpickled(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", accuracy=np.array(0.5), curve=np.zeros(10_000))
    seen, problems = read_file(tmp_path / "a.npz", "a.npz")
    assert [(item.value, item.labels) for item in seen] == [(0.5, ("accuracy",))]
    assert not problems
    np.save(tmp_path / "b.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    assert read_file(tmp_path / "b.npy", "b.npy") == ([], [])


def test_a_lying_array_header_is_refused(tmp_path: Path) -> None:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": (400,)})
    (tmp_path / "x.npy").write_bytes(stream.getvalue())
    assert read_file(tmp_path / "x.npy", "x.npy") == ([], [])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", b"{"),
        ("a.json", b"[" * 100_000),
        ("a.npz", b"PK not a zip"),
        ("a.npy", b"no array"),
        ("a.yaml", b"a: [1, 2"),
        ("a.ipynb", b"{]"),
    ],
)
def test_broken_files_are_reported(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    seen, problems = read_file(tmp_path / name, name)
    assert seen == []
    assert problems[0].where == name


def test_yaml_aliases_do_not_explode(tmp_path: Path) -> None:
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    (tmp_path / "bomb.yaml").write_text("\n".join(lines))
    _, problems = read_file(tmp_path / "bomb.yaml", "bomb.yaml")
    assert "more than" in problems[0].message


def test_a_zip_member_that_lies_about_its_size(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("big.npy", b"\0" * 20_000_000)
    assert read_file(tmp_path / "a.npz", "a.npz") == ([], [])


def test_a_whole_run_with_its_commands_as_context(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "0.stdout").write_text("accuracy: 0.91\n")
    (tmp_path / "1.stdout").write_text("accuracy: 0.85\n")
    (tmp_path / "files" / "m.json").write_text('{"f1": 0.5}')
    result = RunResult(
        commands=(CommandResult(exit_code=0), CommandResult(exit_code=0)),
        produced=(ProducedFile(path="m.json", size=11, sha256="0" * 64),),
    )
    commands = [Command(argv=("python", "x.py", "--data", name)) for name in ("moons", "rings")]
    seen, problems = read_run(result, tmp_path, commands)
    assert not problems
    assert [(item.value, item.where) for item in seen] == [
        (0.91, "command 1 stdout:1"),
        (0.85, "command 2 stdout:1"),
        (0.5, "m.json: f1"),
    ]
    assert any("moons" in item for item in seen[0].context)


NAMES = st.text(alphabet="abcdefghijklmnopqrstuvwxyz", min_size=2, max_size=8)


@settings(deadline=None)  # examples take milliseconds, and a busy machine takes them away
@given(
    st.lists(NAMES, min_size=2, max_size=5, unique=True),
    st.lists(NAMES, min_size=1, max_size=5, unique=True),
    st.data(),
)
def test_every_cell_of_an_aligned_table_is_found_under_its_names(rows, columns, data) -> None:
    columns = [f"{name}x" for name in columns]
    values = {
        (row, column): data.draw(st.floats(-999, 999).map(lambda value: f"{value:.3f}"))
        for row in rows
        for column in columns
    }
    lines = ["  ".join(["name".ljust(12), *(column.rjust(12) for column in columns)])]
    lines += ["  ".join([row.ljust(12), *(values[row, column].rjust(12) for column in columns)]) for row in rows]
    seen = {item.labels: item.value for item in text("\n".join(lines))}
    assert seen == {(row, column): float(values[row, column]) for row in rows for column in columns}


@settings(deadline=None)  # examples take milliseconds, and a busy machine takes them away
@given(st.text(max_size=400))
def test_any_text_is_survived(content: str) -> None:
    for item in observe_text(content, "stdout"):
        assert item.where.startswith("stdout:")


@settings(deadline=None)  # examples take milliseconds, and a busy machine takes them away
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=5),
        lambda x: st.lists(x, max_size=4) | st.dictionaries(st.text(max_size=5), x, max_size=4),
        max_leaves=20,
    )
)
def test_any_json_is_survived(data) -> None:
    from pipeline.validation.outputs import read_values

    assert len(list(read_values(data, "x.json"))) <= 20


def test_a_long_list_that_is_no_table_is_read_once() -> None:
    """85,000 such lines of a real result file took many minutes: a table was tried from each line to the end."""
    lines = [f"({index}, {index + 7}, 1)" for index in range(6000)]

    assert len(text("\n".join(lines))) == 18_000
