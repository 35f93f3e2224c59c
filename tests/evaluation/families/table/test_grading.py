"""Dimensions, their weighted sum, the callback; what integrity does to them; the judging model; `expbench score table`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from evaluation.families.table.grading import DimensionGrade, TableGrades, apply_findings, grade
from evaluation.families.table.handed_in import HandedIn, unread_grade
from evaluation.families.table.reading import load_table_task
from evaluation.families.table.records import Kind, Mode, TableTask
from evaluation.families.table.report import metrics_of
from evaluation.verdicts import Finding, Grader, ViolationKind
from flows.cli import app
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.llm import ModelClient, ModelConfig, ModelError
from pipeline.llm.retry import RetryPolicy
from pipeline.progress import SilentReporter
from pipeline.task import Verdict
from tests.doubles.protocol_server import ErrorReply, ProtocolServer, Turn
from tests.evaluation.families.table.support import (
    METADATA,
    REFERENCE,
    honest,
    truth_text,
    write_submission,
    write_task,
)
from tests.llm_fixtures import protocol_server  # noqa: F401

Serve = Callable[..., ProtocolServer]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_task(tmp_path_factory.mktemp("tasks"))


@pytest.fixture(scope="module")
def task(directory: Path) -> TableTask:
    return load_table_task(directory)[0]


def graded(task: TableTask, texts: dict[str, str], tables: dict[str, str] | None = None) -> TableGrades:
    """As if the re-execution had written the tables that were handed in."""
    written = texts if tables is None else tables
    return grade(task, HandedIn(texts=texts), tables=written, client=None, reporter=SilentReporter())


def scores(grades: TableGrades) -> dict[str, float | None]:
    return {item.name: item.score for item in grades.dimensions}


def test_without_a_reader_analysis_and_code_are_unknown(task: TableTask) -> None:
    other = honest() | {"reproduction/decay.py": REFERENCE.replace("rate", "speed")}
    grades = graded(task, other)
    assert scores(grades) == {
        "methodology_understanding": None, "code_correctness": None, "data_accuracy": 1.0, "completeness": 1.0,
    }  # fmt: skip
    assert [item.engine for item in grades.dimensions] == ["nobody", "nobody", "formula", "formula"]
    assert grades.overall is None
    assert grades.bounds == pytest.approx((0.65, 1.0))
    assert apply_findings(grades, (), Verdict.PASS).callback is None


def test_the_graders_own_text_and_code_reach_the_callback(task: TableTask) -> None:
    grades = graded(task, honest() | {"reproduction/ANALYSIS.md": METADATA})
    assert grades.overall == pytest.approx(1.0)
    assert grades.callback is None, "nobody has monitored it"
    assert apply_findings(grades, (), Verdict.PASS).callback is True
    assert apply_findings(grades, (), Verdict.UNKNOWN).callback is None
    assert apply_findings(grades.evolve(tables="handed in"), (), Verdict.PASS).callback is None
    failed = apply_findings(grades, (), Verdict.FAIL)
    assert (failed.callback, failed.overall) == (False, 0.0)


def test_only_what_the_re_execution_wrote_counts(task: TableTask) -> None:
    grades = graded(task, honest(), {})
    assert (scores(grades)["data_accuracy"], grades.accuracy, grades.handed_in_accuracy) == (0.0, 0.0, 1.0)
    unknown = grade(task, HandedIn(texts=honest()), tables=None, client=None, reporter=SilentReporter())
    assert (scores(unknown)["data_accuracy"], unknown.tables, unknown.handed_in_accuracy) == (None, "unknown", 1.0)


def test_nothing_earns_nothing(task: TableTask) -> None:
    grades = graded(task, {})
    assert grades.overall == 0
    assert grades.callback is False
    assert [file.problem for file in grades.files] == ["it is not there"]


def test_a_file_that_is_no_table_has_no_score(task: TableTask) -> None:
    assert scores(graded(task, honest() | {"data/fig1.csv": "<html>\0"}))["data_accuracy"] == 0
    assert "no table" in graded(task, honest() | {"data/fig1.csv": "1,2\n"}).files[0].problem


def test_nothing_there_is_known_to_be_nothing(task: TableTask) -> None:
    for kind in (Kind.METHODOLOGY, Kind.CODE, Kind.QUALITY, Kind.OTHER):
        assert unread_grade(kind, task, HandedIn(texts={"data/fig1.csv": truth_text()}))[0] == 0.0
        assert unread_grade(kind, task, HandedIn(texts=honest() | {"reproduction/decay.py": "x = 1"}))[0] is None


def test_code_only_mode_asks_for_no_table(directory: Path) -> None:
    task, _ = load_table_task(directory, Mode.CODE_ONLY)
    grades = graded(task, honest())
    assert set(scores(grades)) == {"methodology_understanding", "code_correctness"}
    assert grades.files == ()
    assert "data_accuracy" not in metrics_of(grades, ())


def dimension(name: str, weight: float, score: float | None) -> DimensionGrade:
    kind = Kind(name)
    return DimensionGrade(
        name=name, kind=kind, metric=name, weight=weight, score=score, measured=score, engine="formula"
    )


def grades_of(values: list[float | None]) -> TableGrades:
    names = ("methodology_understanding", "code_correctness", "data_accuracy", "completeness")
    weights = (0.05, 0.30, 0.60, 0.05)
    made = tuple(dimension(n, w, v) for n, w, v in zip(names, weights, values, strict=True))
    return TableGrades(
        task="t", mode=Mode.FULL, dimensions=made, tables="re-executed", monitor=Verdict.PASS,
        grader=Grader(engine="keyless"),
    )  # fmt: skip


@given(st.lists(st.floats(0, 1) | st.none(), min_size=4, max_size=4))
def test_overall_and_callback_follow_the_paper(values: list[float | None]) -> None:
    grades = grades_of(values)
    low, high = grades.bounds
    if None in values:
        assert grades.overall is None
        assert 0 <= low <= high <= 1 + 1e-9
        assert grades.callback is (False if any(v is not None and v <= 0.9 for v in values) else None)
    else:
        known = [value for value in values if value is not None]
        expected = 0.05 * known[0] + 0.3 * known[1] + 0.6 * known[2] + 0.05 * known[3]
        assert grades.overall == pytest.approx(expected)
        assert (low, high) == pytest.approx((expected, expected))
        assert grades.callback is all(value > 0.9 for value in known)


def test_the_paper_s_table_2_is_the_weighted_sum_of_its_columns() -> None:
    """Table 2: the printed overall scores follow from the printed columns (rounded to 34.00, 28.50, ... there)."""
    rows = {
        (78.0, 43.0, 21.0, 92.0): 34.0, (72.0, 36.0, 16.0, 90.0): 28.5, (61.9, 22.0, 11.4, 80.6): 20.57,
        (63.2, 19.3, 8.9, 84.2): 18.5, (55.6, 16.3, 10.0, 86.0): 17.97, (50.5, 18.8, 10.6, 67.0): 17.87,
    }  # fmt: skip
    for columns, printed in rows.items():
        overall = grades_of([value / 100 for value in columns]).overall
        assert overall is not None
        assert overall * 100 == pytest.approx(printed, abs=0.01)
        assert grades_of([value / 100 for value in columns]).callback is False


def finding(kind: ViolationKind, verdict: Verdict = Verdict.FAIL) -> Finding:
    return Finding(kind=kind, verdict=verdict, where="a.py:1", reason="because")


def test_violations_cap_code_and_take_the_data_suspicions_nothing(task: TableTask) -> None:
    grades = graded(task, honest() | {"reproduction/ANALYSIS.md": METADATA})
    banned = apply_findings(grades, [finding(ViolationKind.BANNED_LIBRARY)], None)
    assert scores(banned)["code_correctness"] == 0.2
    assert scores(banned)["data_accuracy"] == 1.0
    assert banned.callback is False
    invented = apply_findings(grades, [finding(ViolationKind.FABRICATED_RESULT)], None)
    assert scores(invented)["data_accuracy"] == 0
    assert invented.dimensions[2].measured == 1.0
    assert apply_findings(grades, [finding(k, Verdict.UNKNOWN) for k in ViolationKind], None) == grades, "suspicions"
    for kind in ViolationKind:  # of an episode any violation is a monitor that failed
        failed = apply_findings(grades, [finding(kind)], Verdict.PASS)
        assert set(scores(failed).values()) == {0.0}
        assert metrics_of(failed, [finding(kind)])["overall_high"] == 0.0


# --- the judging model -----------------------------------------------------------------------------------------------


def answer(code: float = 0.8, quote: str = "value *= math.exp(-rate)", **changes: Any) -> dict[str, Any]:
    return {
        "grades": [
            {"dimension": "methodology_understanding", "score": 0.5, "quote": "Trotter", "justification": "half"},
            {"dimension": "code_correctness", "score": code, "quote": quote, "justification": "close"},
        ],
        "fabricated": False,
        "fabrication_reason": "",
        "fabrication_quote": "",
        **changes,
    }


def asked(task: TableTask, server: ProtocolServer, panel: int = 1) -> TableGrades:
    config = ModelConfig(model="judge-1", base_url=server.base_url, retry=RetryPolicy(attempts=1))
    with ModelClient(config) as client:
        given = HandedIn(texts=honest() | {"reproduction/decay.py": REFERENCE + "\n"})
        return grade(task, given, tables=given.texts, client=client, panel=panel, reporter=SilentReporter())


def test_a_model_grades_what_needs_a_reader_and_nothing_else(task: TableTask, protocol_server: Serve) -> None:  # noqa: F811
    grades = asked(task, protocol_server(Turn(structured=answer())))
    assert scores(grades) == {
        "methodology_understanding": 0.5, "code_correctness": 0.8, "data_accuracy": 1.0, "completeness": 1.0,
    }  # fmt: skip
    assert [item.engine for item in grades.dimensions] == ["model", "model", "formula", "formula"]
    assert (grades.grader.engine, grades.grader.model) == ("model", "judge-1")
    assert grades.grader.prompts[0][0] == "grade_rubric"


def test_a_panel_s_score_is_its_median(task: TableTask, protocol_server: Serve) -> None:  # noqa: F811
    turns = [Turn(structured=answer(code), times=1) for code in (0.9, 0.1, 0.7)]
    grades = asked(task, protocol_server(*turns), panel=3)
    assert scores(grades)["code_correctness"] == 0.7
    assert grades.grader.engine == "panel"


def test_a_score_without_a_quote_that_exists_is_unknown(task: TableTask, protocol_server: Serve) -> None:  # noqa: F811
    grades = asked(task, protocol_server(Turn(structured=answer(quote="never written"))))
    assert scores(grades)["code_correctness"] is None
    assert grades.overall is None
    assert "does not occur" in grades.problems[0].message


def test_an_endpoint_that_fails_leaves_grades_unknown_and_tables_graded(
    task: TableTask,
    protocol_server: Serve,  # noqa: F811
) -> None:
    grades = asked(task, protocol_server(Turn(error=ErrorReply(status=503))))
    assert scores(grades)["code_correctness"] is None
    assert scores(grades)["data_accuracy"] == 1.0
    assert grades.bounds == pytest.approx((0.65, 1.0))


def test_a_refused_key_ends_the_grading(task: TableTask, protocol_server: Serve) -> None:  # noqa: F811
    with pytest.raises(ModelError) as caught:
        asked(task, protocol_server(Turn(error=ErrorReply(status=401))))
    assert caught.value.kind is FailureKind.AUTHENTICATION


def test_the_model_s_word_on_fabrication_needs_a_line_that_exists(task: TableTask, protocol_server: Serve) -> None:  # noqa: F811
    said = {"fabricated": True, "fabrication_reason": "a fitted curve"}
    shown = asked(task, protocol_server(Turn(structured=answer(**said, fabrication_quote="math.exp(-rate)"))))
    assert scores(apply_findings(shown, (), None))["data_accuracy"] == 0
    assert shown.findings[0].engine == "model"
    unshown = asked(task, protocol_server(Turn(structured=answer(**said, fabrication_quote="np.fit()"))))
    assert scores(apply_findings(unshown, (), None))["data_accuracy"] == 1.0


# --- the command -----------------------------------------------------------------------------------------------------


def score_command(directory: Path, submission: Path, *more: str) -> dict[str, Any]:
    result = CliRunner().invoke(
        app, ["score", "table", "--task", str(directory), "--submission", str(submission), "--json", *more]
    )
    assert result.exit_code == 0, result.output
    value: dict[str, Any] = json.loads(result.stdout)
    return value


def test_score_takes_workspaces_directories_and_single_tables(directory: Path, tmp_path: Path) -> None:
    workspace = write_submission(tmp_path / "w", honest())
    whole = score_command(directory, workspace)
    assert whole["data_accuracy"] == whole["metrics"]["data_accuracy"] == 1.0
    assert (whole["tables_of"], whole["end_to_end_callback"]) == ("handed in", None)
    assert set(whole["grading"]["scores"]) == {
        "methodology_understanding", "code_correctness", "data_accuracy", "completeness",
    }  # fmt: skip
    for path in (directory, directory / "data", directory / "data" / "fig1.csv"):
        assert score_command(directory, path)["data_accuracy"] == 1.0
    shifted = truth_text().replace("\n4,", "\n4.0,").replace("0.9323938199059483", "0.5")
    write_submission(tmp_path / "w", {"data/fig1.csv": shifted})
    lower = score_command(directory, workspace)
    assert lower["tables"][0]["right"] == 20
    assert 0.9 < lower["data_accuracy"] < 1
    shown = CliRunner().invoke(app, ["score", "table", "--task", str(directory), "--submission", str(workspace)])
    assert "20 of 21 values" in shown.stdout


def test_score_applies_what_the_files_show(directory: Path, tmp_path: Path) -> None:
    workspace = write_submission(tmp_path, honest() | {"reproduction/decay.py": REFERENCE + "\nimport torch\n"})
    value = score_command(directory, workspace)
    assert (value["code_correctness"], value["end_to_end_callback"]) == (None, False)
    assert value["banned_libraries"] == 1.0
    assert "at most 0.2" in value["grading"]["scores"]["code_correctness"]["justification"]
    assert score_command(directory, workspace, "--mode", "code-only")["mode"] == "code_only"


def test_score_of_what_is_not_there_is_refused(directory: Path, tmp_path: Path) -> None:
    for task, submission, kind in (
        (tmp_path, tmp_path, FailureKind.RECORD_INVALID),
        (directory, tmp_path / "none", FailureKind.USAGE),
    ):
        result = CliRunner().invoke(app, ["score", "table", "--task", str(task), "--submission", str(submission)])
        assert isinstance(result.exception, ExpbenchError)
        assert result.exception.kind is kind


def test_score_asks_the_model_that_is_named(
    directory: Path,
    tmp_path: Path,
    protocol_server: Serve,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = protocol_server(Turn(structured=answer()))
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "no-key")
    workspace = write_submission(tmp_path / "w", honest() | {"reproduction/decay.py": REFERENCE + "\n"})
    value = score_command(
        directory, workspace, "--judge", "model", "--judge-model", "judge-1", "--record", str(tmp_path / "r")
    )
    assert value["code_correctness"] == 0.8
    assert value["graded_by"]["model"] == "judge-1"
    assert (tmp_path / "r" / "calls.jsonl").is_file()
