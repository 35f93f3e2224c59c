"""Tasks as they are published, wrong ones, and the import: an error a file, the rest goes on, all is counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from evaluation.families.registry import family_of_source
from evaluation.families.table.reading import load_table_task, read_table_tasks, task_directories
from evaluation.families.table.records import Kind, Mode, kind_of
from evaluation.families.table.workspace import INSTRUCTION, build_workspace, public_files
from evaluation.sources import load_tasks
from flows.cli import app
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.progress import SilentReporter
from pipeline.schema import Problem, Severity
from pipeline.task import Family
from tests.evaluation.families.table.support import METADATA, config, truth_text, write_task


def errors(problems: list[Problem]) -> list[str]:
    return [f"{item.where}: {item.message}" for item in problems if item.severity is Severity.ERROR]


def test_a_published_task_is_read_as_it_is(tmp_path: Path) -> None:
    task, problems = load_table_task(write_task(tmp_path))
    assert problems == []
    assert (task.id, task.mode, task.year) == ("task_decay_1999", Mode.FULL, 1999)
    assert (task.container.python, task.container.memory_mb, task.container.timeout_s) == ("3.11", 1024, 300)
    assert [item.weight for item in task.dimensions] == [0.05, 0.30, 0.60, 0.05]
    (file,) = task.files
    assert (file.path, file.truth, file.tolerance.relative) == ("data/fig1.csv", "data/fig1.csv", 0.05)
    assert file.tolerance.source.startswith("rubric")
    assert list(task.reference_code()) == ["decay.py"]


def test_code_only_mode_has_its_own_rubric_outputs_and_words(tmp_path: Path) -> None:
    task, _ = load_table_task(write_task(tmp_path), Mode.CODE_ONLY)
    assert task.id == "task_decay_1999.code-only"
    assert [item.kind for item in task.dimensions] == [Kind.METHODOLOGY, Kind.CODE]
    assert task.expected.data == ()
    assert task.files == ()
    assert task.instruction.endswith("Do not run it.\n")


def test_without_a_rubric_the_paper_s_weights_hold(tmp_path: Path) -> None:
    task, _ = load_table_task(write_task(tmp_path, grading=None))
    assert {item.name: item.weight for item in task.dimensions} == {
        "methodology_understanding": 0.05, "code_correctness": 0.30, "data_accuracy": 0.60, "completeness": 0.05,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("methodology_understanding", Kind.METHODOLOGY),
        ("code_correctness", Kind.CODE),
        ("Data Reproduction Accuracy", Kind.DATA),
        ("code_quality", Kind.QUALITY),
        ("task completeness", Kind.COMPLETENESS),
        ("correctness", Kind.OTHER),
    ],
)
def test_dimensions_are_known_by_their_names(name: str, kind: Kind) -> None:
    assert kind_of(name) is kind


def test_weights_that_do_not_add_up_are_scaled_and_said(tmp_path: Path) -> None:
    rubric = {"dimensions": [{"name": "code_correctness", "weight": 0.3}, {"name": "data_accuracy", "weight": 0.3}]}
    task, problems = load_table_task(write_task(tmp_path, grading=rubric))
    assert [item.weight for item in task.dimensions] == [0.5, 0.5]
    assert "0.6" in problems[0].message


def test_tables_may_be_compared_by_rules_of_their_own(tmp_path: Path) -> None:
    comparison = {
        "tolerance": 0.01,
        "files": {"data/fig1.csv": {"tolerance": "0.2", "keys": "n", "columns": {"fast": 0.3}, "trend": "no"}},
    }
    (file,) = load_table_task(write_task(tmp_path, comparison=comparison))[0].files
    assert (file.tolerance.relative, file.keys, file.trend) == (0.2, ("n",), False)
    assert file.columns["fast"].relative == 0.3


@pytest.mark.parametrize(
    "changes",
    [
        {"tolerances": {"fig1.csv": 0.2}, "key_columns": {"data/fig1.csv": ["n"]}},
        {
            "grading": config()["grading"]
            | {"tolerance": 0.01, "tolerances": {"data/fig1.csv": {"tolerance": 0.2, "keys": "n"}}}
        },
    ],
)
def test_tolerances_and_keys_may_stand_elsewhere(tmp_path: Path, changes: dict[str, Any]) -> None:
    task, problems = load_table_task(write_task(tmp_path, **changes))
    assert problems == []
    assert (task.files[0].tolerance.relative, task.files[0].keys) == (0.2, ("n",))


def test_the_graders_text_states_a_table_s_tolerance(tmp_path: Path) -> None:
    directory = write_task(tmp_path)
    (directory / "metadata.md").write_text(METADATA + "\n- `data/fig1.csv`: Monte Carlo, ~30% tolerance\n")
    (file,) = load_table_task(directory)[0].files
    assert file.tolerance.relative == 0.3


# --- what is wrong ---------------------------------------------------------------------------------------------------

OUTPUTS = config()["expected_outputs"]
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"paper": None}, "paper"),
    ({"task_id": ""}, "task_id"),
    ({"instruction_file": "../instruction.md"}, "does not stay inside"),
    ({"instruction_file": "/etc/passwd"}, "does not stay inside"),
    ({"metadata_file": "nothing.md"}, "no such file"),
    ({"input_files": ["..\\x"]}, "does not stay inside"),
    ({"input_files": ["data/fig1.csv"]}, "graders only"),
    ({"input_files": ["metadata.md"]}, "graders only"),
    ({"ground_truth_data_dir": "../../etc"}, "does not stay inside"),
    ({"expected_outputs": OUTPUTS | {"data": ["../../x.csv"]}}, "inside of the workspace"),
    ({"expected_outputs": OUTPUTS | {"code": ["/tmp/x.py"]}}, "inside of the workspace"),
    ({"expected_outputs": OUTPUTS | {"data": ["data/fig9.csv"]}}, "no truth"),
    ({"expected_outputs": OUTPUTS | {"data": ["data/fig1.csv", "data/fig1.csv"]}}, "more than once"),
    ({"expected_outputs": {}}, "nothing is expected"),
    ({"docker": {"memory_limit": "much"}}, "memory_limit"),
    ({"docker": {"timeout": -1}}, "timeout"),
    ({"grading": {"dimensions": [{"name": "data_accuracy", "weight": 2}]}}, "weight"),
    (
        {"grading": {"dimensions": [{"name": "code", "weight": 0.5}, {"name": "algorithm", "weight": 0.5}]}},
        "more than one",
    ),
    ({"expected_outputs": OUTPUTS | {"data": ["data/field.npy"]}}, "no table with truth"),
    ({"comparison": {"files": {"data/fig1.csv": {"keys": ["m"]}}}}, "'m' is not among"),
    ({"comparison": {"files": {"data/none.csv": {"tolerance": 1}}}}, "no expected table"),
]


@pytest.mark.parametrize(("changes", "words"), WRONG, ids=[words + str(n) for n, (_, words) in enumerate(WRONG)])
def test_what_is_wrong_with_a_configuration_is_said(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    write_task(tmp_path, "bad", **changes)
    write_task(tmp_path, "good")
    tasks, problems = read_table_tasks(tmp_path)
    assert [task.id for task in tasks] == ["good"]
    assert any(words in text and text.startswith("bad/") for text in errors(problems)), errors(problems)


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("task.yaml", "task_id: [unclosed\n", "no YAML"),
        ("task.yaml", "- a\n- b\n", "document"),
        ("task.yaml", b"\xff\xfe", "UTF-8"),
        ("instruction.md", b"\xff\xfe", "UTF-8"),
        ("data/fig1.csv", 'n,"Decay, slow",fast\n1,2\n', "cells"),
        ("data/fig1.csv", "1,2,3\n", "no header"),
        ("data/fig1.csv", "", "empty"),
        ("data/fig1.csv", "n,m,m\n1,2,3\n", "more than once"),
        ("data/fig1.csv", "n,slow,fast\n1,2,3\n", "the instruction asks for"),
        ("data/fig1.csv", 'n,"Decay, slow",fast\n,nan,\n', "no value"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, file: str, content: str | bytes, words: str) -> None:
    bad = write_task(tmp_path, "bad")
    (bad / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    write_task(tmp_path, "good")
    tasks, problems = read_table_tasks(tmp_path)
    assert [task.id for task in tasks] == ["good"]
    assert any(words in text and text.startswith("bad/") for text in errors(problems)), errors(problems)


def test_links_that_lead_out_are_not_followed(tmp_path: Path) -> None:
    bad = write_task(tmp_path / "tasks", "bad")
    (tmp_path / "secret.csv").write_text(truth_text())
    (bad / "data" / "fig1.csv").unlink()
    (bad / "data" / "fig1.csv").symlink_to(tmp_path / "secret.csv")
    tasks, problems = read_table_tasks(tmp_path / "tasks")
    assert tasks == []
    assert "leads out" in errors(problems)[0]


def test_the_second_task_of_one_id_is_an_error(tmp_path: Path) -> None:
    write_task(tmp_path, "a", task_id="same")
    write_task(tmp_path, "b", task_id="Same")
    tasks, problems = read_table_tasks(tmp_path)
    assert [task.root.name for task in tasks] == ["a"]
    assert errors(problems) == ["b/task.yaml: task_id 'Same' is that of a already"]
    write_task(tmp_path, "same", task_id="same")
    tasks, _ = read_table_tasks(tmp_path)
    assert [task.root.name for task in tasks] == ["same"], "the directory that is called as its task is kept"


def test_a_file_that_is_too_large_costs_its_task(tmp_path: Path) -> None:
    bad = write_task(tmp_path, "bad")
    with (bad / "instruction.md").open("wb") as stream:
        stream.truncate(1 << 30)
    tasks, problems = read_table_tasks(tmp_path)
    assert (tasks, errors(problems)) == ([], ["bad/instruction.md: instruction_file: is larger than 64 MB"])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers(-3, 9) | st.floats(allow_nan=True) | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
        max_leaves=6,
    ),
    field=st.sampled_from([*config(), "input_files", "comparison", "banned_libraries"]),
)
def test_no_value_of_a_field_breaks_the_reader(tmp_path: Path, value: object, field: str) -> None:
    directory = write_task(tmp_path, "t")
    data = config(task_id="t") | {field: value}
    (directory / "task.yaml").write_text(yaml.safe_dump(data))
    tasks, problems = read_table_tasks(tmp_path)
    assert len(tasks) == 1 or errors(problems)


# --- what the agent gets ---------------------------------------------------------------------------------------------


def test_the_workspace_holds_what_is_public_and_nothing_else(tmp_path: Path) -> None:
    directory = write_task(tmp_path / "tasks", input_files=["table.txt"])
    (directory / "table.txt").write_text("1 2 3")
    (directory / "images1").mkdir()
    (directory / "images1" / "a.png").write_bytes(b"\x89PNG")
    (directory / "decay.pdf").write_bytes(b"%PDF")
    (directory / "solution.tar.gz").write_bytes(b"x")
    task, _ = load_table_task(directory)
    assert sorted(public_files(task)) == ["decay.md", "decay.pdf", "images1/a.png", "table.txt"]
    tree = build_workspace(task, tmp_path / "scratch")
    there = {
        path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file() and ".git" not in path.parts
    }
    assert there == {INSTRUCTION, "decay.md", "decay.pdf", "images1/a.png", "table.txt"}
    everything = b"".join(path.read_bytes() for path in tree.rglob("*") if path.is_file())
    assert b"Trotter" not in everything
    assert build_workspace(task, tmp_path / "scratch") == tree


def test_the_harness_loads_the_family_s_tasks(tmp_path: Path) -> None:
    write_task(tmp_path / "tasks")
    rules = family_of_source(tmp_path / "tasks")
    assert rules is not None
    assert rules.family is Family.TABLE
    (task,), problems = load_tasks(tmp_path / "tasks", scratch=tmp_path / "scratch", reporter=SilentReporter())
    assert problems == []
    assert task.blocked == ""
    assert (task.public.resources.wall_time_s, task.public.resources.memory_mb) == (300, 1024)
    assert task.masked_repository is not None
    assert "Trotter" not in task.public.model_dump_json()
    named, _ = load_tasks(
        tmp_path / "tasks", scratch=tmp_path / "scratch", reporter=SilentReporter(), only=["task_decay_1999.code-only"]
    )
    assert [item.id for item in named] == ["task_decay_1999.code-only"]


# --- the command -----------------------------------------------------------------------------------------------------


def test_import_takes_what_can_be_read_and_counts_what_cannot(tmp_path: Path) -> None:
    source = tmp_path / "PRBench" / "data" / "tasks"
    write_task(source, "good")
    write_task(source, "broken", metadata_file="../../x")
    (write_task(source, "ugly") / "task.yaml").write_text("a: [")
    out = tmp_path / "out"
    result = CliRunner().invoke(app, ["import", "prbench", str(tmp_path / "PRBench"), "--out", str(out), "--json"])
    assert result.exit_code == 0, result.output
    value = json.loads(result.stdout)
    assert (value["directories"], value["tasks"], value["tables"], value["errors"]) == (3, 1, 1, 2)
    assert value["ids"] == ["good"]
    assert {item["where"] for item in value["problems"]} == {"broken/task.yaml", "ugly/task.yaml"}
    assert json.loads((out / "prbench.json").read_text())["errors"] == 2
    assert len(json.loads((out / "problems.json").read_text())) == 2
    assert [path.name for path in task_directories(out)] == ["good"]
    assert read_table_tasks(out)[0][0].files[0].truth == "data/fig1.csv"
    first = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    CliRunner().invoke(app, ["import", "prbench", str(source), "--out", str(out), "--json"])
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == first


def test_import_of_nothing_and_over_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    result = CliRunner().invoke(app, ["import", "prbench", str(tmp_path / "empty"), "--out", str(tmp_path / "o")])
    assert isinstance(result.exception, ExpbenchError)
    assert result.exception.kind is FailureKind.RECORD_INVALID
    write_task(tmp_path / "tasks")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    result = CliRunner().invoke(app, ["import", "prbench", str(tmp_path / "tasks"), "--out", str(tmp_path / "mine")])
    assert isinstance(result.exception, ExpbenchError)
    assert result.exception.kind is FailureKind.WORKSPACE_CONFLICT
    assert (tmp_path / "mine" / "thesis.tex").exists()
