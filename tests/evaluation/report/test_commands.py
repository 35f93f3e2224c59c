"""`expbench report`, `compare` and `failures`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from evaluation.failures import Taxonomy
from flows.commands.results import WORSE, app
from flows.results import compare_runs
from pipeline.errors import FAILURES, ExpbenchError
from tests.doubles.protocol_server import turns
from tests.evaluation.report.conftest import SECRET
from tests.evaluation.report.synthetic import scores_row, write, write_run
from tests.llm_fixtures import Serve, no_ambient_model, protocol_server  # noqa: F401


def call(*arguments: object) -> Result:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if isinstance(result.exception, ExpbenchError):
        raise result.exception
    return result


def test_the_terminal_shows_tables(runs: list[Path]) -> None:
    result = call("report", *runs)
    assert result.exit_code == 0
    for name in (
        "Leaderboard",
        "Strictness ladder",
        "By category",
        "Stability",
        "pass@k",
        "Failure types",
        "Who graded",
    ):
        assert name in result.stdout


def test_json_is_one_value(runs: list[Path]) -> None:
    value = json.loads(call("report", *runs, "--json").stdout)
    assert [entry["run"] for entry in value["summary"]["entries"]] == ["second", "first"]
    assert value["taxonomy"]["grader"]["engine"] == "keyless"


def test_html_by_out_alone(runs: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "report"
    written = json.loads(call("report", *runs, "--out", out, "--json").stdout)["written"]
    assert written == [str((out / "index.html").resolve())]
    assert len(list(out.glob("episodes/*/*/*.html"))) == 40


def test_html_without_pages(runs: list[Path], tmp_path: Path) -> None:
    call("report", *runs, "--out", tmp_path / "r", "--no-pages")
    assert not (tmp_path / "r" / "episodes").exists()


@pytest.mark.parametrize(("form", "name"), [("md", "r.md"), ("csv", "r"), ("parquet", "r.parquet"), ("json", "r.json")])
def test_other_forms(runs: list[Path], tmp_path: Path, form: str, name: str) -> None:
    call("report", *runs, "--format", form, "--out", tmp_path / name)
    path = tmp_path / name
    if form == "csv":
        assert {"episodes.csv", "leaderboard.csv", "categories.csv", "failures.csv"} <= {p.name for p in path.iterdir()}
    else:
        assert path.stat().st_size > 1000


def test_markdown_and_csv_to_standard_output(runs: list[Path]) -> None:
    assert call("report", *runs, "--format", "md").stdout.startswith("# Evaluation\n")
    assert call("report", *runs, "--format", "csv").stdout.startswith("run,agent,model,task,")


@pytest.mark.parametrize("form", ["md", "csv", "json", "html", "parquet"])
def test_public_forms_hold_no_truth(runs: list[Path], tmp_path: Path, form: str) -> None:
    out = tmp_path / "out"
    call("report", *runs, "--format", form, "--out", out, "--public")
    for path in [out] if out.is_file() else out.rglob("*.*"):
        assert SECRET.encode() not in path.read_bytes()


@pytest.mark.parametrize("form", ["html", "parquet"])
def test_forms_that_need_a_place_say_so(runs: list[Path], form: str) -> None:
    with pytest.raises(ExpbenchError, match="needs a place"):
        call("report", runs[0], "--format", form)


def test_a_file_in_the_way(runs: list[Path], tmp_path: Path) -> None:
    (tmp_path / "x").write_text("mine")
    for form in ("csv", "html"):
        with pytest.raises(ExpbenchError) as caught:
            call("report", runs[0], "--format", form, "--out", tmp_path / "x")
        assert caught.value.exit_code == 5
    with pytest.raises(ExpbenchError, match="is a directory"):
        call("report", runs[0], "--format", "md", "--out", tmp_path)
    assert (tmp_path / "x").read_text() == "mine"


def test_a_run_without_scores_is_said_and_not_reported_as_0(tmp_path: Path) -> None:
    (tmp_path / "run" / "episodes" / "t" / "0").mkdir(parents=True)
    with pytest.raises(ExpbenchError, match=r"no episode has scores \(1 are not finished\)"):
        call("report", tmp_path / "run")


# --- compare ---


def run_of(root: Path, value: float, *, lock: str = "l", agent: str = "x", tasks: int = 12,
           monitor: float | None = None) -> Path:  # fmt: skip
    for number in range(tasks):
        row = scores_row(
            run=root.name, agent=agent, task=f"t{number}", paper=f"p{number % 4}", conclusion=value, design=value, monitor=monitor,
            lock=f"{lock}{number}",
        )  # fmt: skip
        write(root / "episodes" / f"t{number}" / "0" / "scores.json", row)
    return root


def test_exit_codes_for_ci(tmp_path: Path) -> None:
    good, bad = run_of(tmp_path / "good", 1.0), run_of(tmp_path / "bad", 0.0)
    assert call("compare", bad, good).exit_code == 0
    assert call("compare", good, good).exit_code == 0
    worse = call("compare", good, bad)
    assert worse.exit_code == WORSE
    assert "is worse in D, C, C·D" in " ".join(worse.stdout.split())
    assert WORSE not in {failure.exit_code for failure in FAILURES.values()}


def test_the_rank_follows_the_bounds_and_the_papers_convention_stands_beside_it(tmp_path: Path) -> None:
    """B cheats: in EXP-Bench's convention it is as good as A outside the ladder, and here it is 0 in everything."""
    a, b = run_of(tmp_path / "a", 1.0, monitor=1.0), run_of(tmp_path / "b", 1.0, monitor=0.0)
    found = call("compare", a, b)
    assert found.exit_code == WORSE
    text = " ".join(found.stdout.split())
    assert "EXP-Bench's convention" in text
    assert "x (b) ranks below x (a) by M·D·I·C·E" in text
    compared = compare_runs(a, b, allow_different=False)
    assert (compared.ahead, compared.comparisons[0].metric) == ("a", "M·D·I·C·E")
    first = compared.comparisons[0]
    assert (first.all_a.low, first.all_a.high, first.all_b.low, first.all_b.high) == (0.0, 1.0, 0.0, 0.0)
    paper = {item.metric: item for item in compared.paper}
    assert (paper["C"].difference, compared.comparisons[4].metric, compared.comparisons[5].difference) == (0.0, "E", -1)
    assert compare_runs(a, a, allow_different=False).ahead is None


def test_a_comparison_as_json(tmp_path: Path) -> None:
    good, bad = run_of(tmp_path / "good", 1.0), run_of(tmp_path / "bad", 0.0, tasks=13)
    value = json.loads(call("compare", bad, good, "--json").stdout)
    assert (value["tasks"], value["only_a"], value["only_b"]) == (12, 1, 0)
    assert value["better"] == ["D", "C", "C·D"]
    assert value["too_few"] is False
    row = next(item for item in value["comparisons"] if item["metric"] == "C")
    assert (row["difference"], row["better"]) == (1.0, 12)


def test_too_few_tasks_are_said(tmp_path: Path) -> None:
    good, bad = run_of(tmp_path / "good", 1.0, tasks=4), run_of(tmp_path / "bad", 0.0, tasks=4)
    found = call("compare", good, bad)
    assert found.exit_code == 0
    assert "no difference could be significant" in " ".join(found.stdout.split())


def test_differing_locks_are_refused_unless_allowed(tmp_path: Path) -> None:
    a, b = run_of(tmp_path / "a", 1.0), run_of(tmp_path / "b", 1.0, lock="other")
    with pytest.raises(ExpbenchError, match="12 of 12 shared tasks") as caught:
        call("compare", a, b)
    assert caught.value.exit_code == 5
    assert compare_runs(a, b, allow_different=True).differing == tuple(sorted(f"t{number}" for number in range(12)))
    assert "set up or graded differently" in call("compare", a, b, "--allow-different").stdout


def test_the_message_names_what_differs(tmp_path: Path) -> None:
    from evaluation.lock import EpisodeLock

    a, b = run_of(tmp_path / "a", 1.0, tasks=1), run_of(tmp_path / "b", 1.0, tasks=1, lock="other")
    for run, limits in ((a, "1"), (b, "2")):
        lock = EpisodeLock(task_id="t0", task="t", environment="e", limits=limits, instructions="i", graders=limits)
        write(run / "episodes" / "t0" / "0" / "lock.json", lock)
    with pytest.raises(ExpbenchError, match="what differs: graders, limits"):
        compare_runs(a, b, allow_different=False)


def test_nothing_shared_and_several_agents_are_refused(tmp_path: Path) -> None:
    a = run_of(tmp_path / "a", 1.0)
    other = tmp_path / "other"
    write(other / "episodes" / "z" / "0" / "scores.json", scores_row(task="z", run="other"))
    with pytest.raises(ExpbenchError, match="share no task"):
        call("compare", a, other)
    write(other / "episodes" / "t0" / "0" / "scores.json", scores_row(task="t0", run="other", agent="y"))
    with pytest.raises(ExpbenchError, match="one agent with one model each"):
        call("compare", a, other)


# --- failures ---


def test_failures_are_kept_in_the_run_and_used_by_the_report(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", tasks=4)
    assert "Misclassified" in call("failures", run).stdout
    kept = Taxonomy.model_validate_json((run / "failures.json").read_bytes())
    marked = kept.evolve(insights=kept.insights + 1000)
    (run / "failures.json").write_text(marked.model_dump_json())
    value = json.loads(call("report", run, "--json").stdout)
    assert value["taxonomy"]["insights"] == marked.insights
    (run / "failures.json").write_text("{")
    with pytest.raises(ExpbenchError, match="cannot be read as Taxonomy"):
        call("report", run)


@pytest.mark.usefixtures("no_ambient_model")
def test_failures_with_a_model_are_labelled_and_never_paid_twice(
    tmp_path: Path,
    protocol_server: Serve,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from evaluation.verdicts import Judgement
    from tests.evaluation.report.synthetic import GRADER

    run = tmp_path / "run"
    write(run / "episodes" / "t" / "0" / "scores.json", scores_row(task="t"))
    judgement = Judgement(grader=GRADER, error_analysis=(("design", "the variable TRUTH-VARIABLE is missing"),))
    write(run / "episodes" / "t" / "0" / "judgement.json", judgement)
    server = protocol_server(
        turns.structured({"insights": [{"note": 1, "insight": "a variable is missing"}]}),
        turns.structured(
            {
                "new_types": [{"number": 1, "name": "TRUTH-VARIABLE is missing", "description": "d"}],
                "assignments": [{"insight": 1, "type": 1}],
            }
        ),
    )
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    first = json.loads(call("failures", run, "--engine", "model", "--model", "m", "--json").stdout)
    again = json.loads(call("failures", run, "--engine", "model", "--model", "m", "--json").stdout)
    assert first == again
    assert len(server.requests) == 2
    assert first["grader"]["engine"] == "model"
    assert "language model m" in call("report", run, "--format", "md").stdout
    # a model's name for a type may come from the ground truth
    assert "TRUTH-VARIABLE" in call("report", run, "--format", "md").stdout
    for form in ("md", "json", "csv"):
        assert "TRUTH-VARIABLE" not in call("report", run, "--format", form, "--public").stdout
    call("report", run, "--out", tmp_path / "html", "--public")
    assert "TRUTH-VARIABLE" not in (tmp_path / "html" / "index.html").read_text()


@pytest.mark.usefixtures("no_ambient_model")
def test_a_model_that_is_not_named_is_a_usage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EXPBENCH_MODEL", raising=False)
    run = write_run(tmp_path / "run", tasks=1)
    with pytest.raises(ExpbenchError) as caught:
        call("failures", run, "--engine", "model")
    assert caught.value.exit_code == 2
