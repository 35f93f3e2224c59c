"""Reading runs, the summary, and its tables in plain forms."""

from __future__ import annotations

import csv
import io
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from evaluation.episode import EpisodeFolder
from evaluation.metrics import LADDER, TABLE_1, Metric
from evaluation.report.plain import episode_rows, fitting, to_csv, to_markdown, to_rich, write_parquet
from evaluation.report.results import Episode, Results, load_results
from evaluation.report.summary import Summary, pareto, summarise
from evaluation.report.tables import Table, all_tables
from evaluation.scores import EpisodeScores, EpisodeStatus
from pipeline.errors import ExpbenchError
from tests.evaluation.report.synthetic import scores_row, write_run


def results_of(*rows: EpisodeScores) -> Results:
    return Results(tuple(Episode(row, EpisodeFolder(Path("run") / row.task)) for row in rows), (), ())


# --- reading ---


def test_runs_are_read_in_order(results: Results) -> None:
    assert len(results.episodes) == 40
    assert [item.run for item in results.configurations] == ["first", "second"]
    keys = [episode.key for episode in results.episodes]
    assert len(set(keys)) == 40
    assert keys[0] == "first/paper-0-task-0/0"


def test_what_is_not_finished_is_counted_and_not_scored(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", tasks=3)
    (run / "episodes" / "paper-0-task-0" / "0" / "scores.json").unlink()
    (run / "run.yaml").write_text(
        "run: run\nrepeats: 2\ntasks:\n  paper-0-task-0: d\n  paper-1-task-1: d\n  paper-9: d\nagent: other fields\n"
    )
    found = load_results([run])
    assert len(found.episodes) == 2
    assert found.unfinished == (
        "run/paper-0-task-0/0",  # begun, no scores
        "run/paper-0-task-0/1", "run/paper-1-task-1/1", "run/paper-9/0", "run/paper-9/1",  # planned, not begun
    )  # fmt: skip
    assert summarise(found, resamples=10).unfinished == 5


def test_an_unreadable_row_is_a_problem_and_the_others_are_reported(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", tasks=3)
    (run / "episodes" / "paper-1-task-1" / "0" / "scores.json").write_text('{"run": 3}')
    found = load_results([run])
    assert len(found.episodes) == 2
    assert [problem.where for problem in found.problems] == ["run/paper-1-task-1/0"]


def test_no_run_a_run_twice_and_a_copy_are_refused(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", tasks=1)
    with pytest.raises(ExpbenchError, match="no directory `episodes`"):
        load_results([tmp_path])
    with pytest.raises(ExpbenchError, match="no such directory"):
        load_results([tmp_path / "nothing"])
    with pytest.raises(ExpbenchError, match="given twice"):
        load_results([run, tmp_path / "x" / ".." / "run"])
    shutil.copytree(run, tmp_path / "copy")
    with pytest.raises(ExpbenchError, match="the same episode"):
        load_results([run, tmp_path / "copy"])


# --- summary ---


FULL = {"design": 1.0, "implementation": 1.0, "conclusion": 1.0, "execution": 1.0, "execution_checked": True}


def test_ranks_by_the_bounds_of_the_whole_ladder() -> None:
    def agent(name: str, *changes: dict[str, object]) -> list[EpisodeScores]:
        return [
            scores_row(agent=name, task=f"t{number}", **(FULL | {"monitor": 1.0} | change))
            for number, change in enumerate(changes)
        ]

    wrong, open_, caught = {"conclusion": 0.0}, {"monitor": None}, {"monitor": 0.0}
    found = summarise(
        results_of(
            *agent("half", {}, wrong), *agent("half, one open", {}, open_), *agent("all", {}, {}),
            *agent("caught", caught, caught), *agent("none", wrong, wrong), *agent("open", open_, wrong),
        ),
        resamples=10,
    )  # fmt: skip
    assert [(entry.rank, entry.agent) for entry in found.entries] == [
        (1, "all"), (2, "half, one open"), (3, "half"), (4, "open"), (5, "caught"), (5, "none"),
    ]  # fmt: skip
    table = next(table for table in all_tables(found) if table.name == "leaderboard")
    assert [row[2:5] for row in table.rows[:2]] == [("100.0", "100.0", "100.0"), ("100.0", "50.0", "100.0")]
    paper = next(table for table in all_tables(found) if table.name == "exp-bench")
    assert paper.title == "EXP-Bench's convention"
    caught_row = next(row for row in paper.rows if row[0] == "caught")
    assert caught_row[paper.columns.index("AllX·E")] == "100.0", "in their convention the monitor does not count there"
    assert caught_row[paper.columns.index("M·D·I·C·E")] == "0.0"


def test_restated_designs_are_counted_and_said() -> None:
    found = summarise(results_of(scores_row(design=1.0, design_restated=True), scores_row(task="b")), resamples=10)
    assert found.entries[0].restated == 1
    assert "D is a restatement in 1 of 2 episodes" in all_tables(found)[0].note


def test_counts_graders_and_amounts(summary: Summary) -> None:
    entry = next(entry for entry in summary.entries if entry.run == "first")
    assert (entry.episodes, entry.tasks, entry.papers, entry.repeats) == (20, 10, 4, 2)
    assert entry.scored + entry.blocked + entry.unknown == 20
    assert entry.graders == ("integrity: keyless", "judge: keyless")
    assert entry.amount("cost").known == 20
    assert {rate.k for rate in entry.pass_rates} == {1, 2}
    assert [item.metric for item in entry.ladder] == list(LADDER)
    assert [item.metric for item in entry.paper] == [*TABLE_1, *LADDER]
    assert all(item.n == 20 for item in (*entry.estimates, *entry.ladder))
    # 20 episodes of which some were caught, blocked or lost: only ours keeps the caught ones in #E
    assert entry.paper[TABLE_1.index(Metric.E)].n < entry.checked < 20


def test_a_price_that_is_not_known_is_not_0() -> None:
    found = summarise(results_of(scores_row(cost_usd=2.0), scores_row(task="b")), resamples=10)
    amount = found.entries[0].amount("cost")
    assert (amount.n, amount.known, amount.mean, amount.total) == (2, 1, 2.0, 2.0)
    tables = {table.name: table for table in all_tables(found)}
    assert tables["cost"].rows[0][1] == "$2.00 (of 1)"
    nothing = summarise(results_of(scores_row()), resamples=10)
    assert {table.name: table for table in all_tables(nothing)}["cost"].rows[0][1] == "–"


def test_the_summary_does_not_depend_on_the_order_of_episodes(results: Results, summary: Summary) -> None:
    turned = results._replace(episodes=results.episodes[::-1])
    assert summarise(turned, resamples=200) == summary


def test_pareto() -> None:
    def entry(name: str, cost: float | None, value: float) -> EpisodeScores:
        return scores_row(agent=name, conclusion=value, cost_usd=cost)

    found = summarise(
        results_of(entry("cheap", 1, 0.2), entry("best", 3, 0.9), entry("bad", 4, 0.9), entry("free?", None, 1.0)),
        resamples=10,
    )
    assert pareto(found.entries, "cost", Metric.C) == ("cheap", "best")


def test_metrics_of_other_families_have_sections_of_their_own() -> None:
    def row(agent: str, task: str, distance: float | None, **changes: object) -> EpisodeScores:
        metrics = {"distance": distance, "acc_tau": None if distance is None else float(distance < 0.33), "new": 7.0}
        return scores_row(agent=agent, task=task, family="histogram", metrics=metrics, **changes)

    near = row("near", "a", 0.25, paper="p", cost_usd=1.0)
    far = row("far", "a", 0.5, paper="p", cost_usd=2.0)
    causal = scores_row(agent="near", task="w", family="causal", metrics={"solved": 1.0})
    found = summarise(results_of(near, row("near", "b", None, paper="q"), far, causal), resamples=10)
    assert found.entries == (), "none of them is a task of EXP-Bench"
    assert [section.family.value for section in found.families] == ["causal", "histogram"]
    histogram = found.families[1]
    assert [column.name for column in histogram.columns] == ["distance", "acc_tau"]
    assert [(label, item.name, item.mean) for label, item in histogram.others] == [
        ("far", "new", 7.0),
        ("near", "new", 7.0),
    ]
    assert [(line.rank, line.label) for line in histogram.rows] == [(1, "near"), (2, "far")], "a lower d is better"
    item = histogram.rows[0].estimates[0]
    assert (item.n, item.known, item.mean, item.interval) == (2, 1, 0.25, None)
    tables = {table.name: table for table in all_tables(found)}
    assert "leaderboard" not in tables
    assert tables["family-histogram"].columns[2:4] == ("d ↓", "Acc@τ ↑")
    assert [row[:3] for row in tables["family-histogram-more"].rows] == [("far", "new", "7"), ("near", "new", "7")]
    assert tables["family-histogram"].rows[0][2] == "0.25 (1 of 2)"
    assert tables["family-histogram"].rows[1][3] == "0.0"
    assert tables["family-causal"].rows[0][2] == "100.0"


def test_a_run_of_several_families_keeps_them_apart() -> None:
    own = scores_row(task="a", design=1.0, implementation=0.5, conclusion=1.0)
    other = scores_row(task="b", family="table", metrics={"overall": 0.9, "end_to_end_callback": 1.0})
    found = summarise(results_of(own, other), resamples=10)
    assert [entry.episodes for entry in found.entries] == [1]
    assert found.entries[0].estimate(Metric.D).n == 1
    assert found.families[0].rows[0].episodes == 1
    assert found.episodes == 2


# --- plain forms ---


def test_the_terminal_shows_what_is_unknown_as_a_dash() -> None:
    found = summarise(results_of(scores_row(status=EpisodeStatus.BLOCKED, agent="[red]x\x1b[2J")), resamples=10)
    console = Console(width=200, file=io.StringIO(), force_terminal=False)
    for table in all_tables(found):
        console.print(to_rich(table))
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert "[red]x" in text
    assert "\x1b" not in text
    leaderboard = text.partition("With the unknown")[0]
    row = next(line for line in leaderboard.splitlines() if "[red]x" in line)
    cells = [cell.strip() for cell in row.split("│")]
    # nothing is known: no mean, and bounds that leave everything open
    assert cells[3:6] == ["–", "0.0", "100.0"]
    assert set(cells[6:15]) == {"–"}


def test_markdown_cannot_be_broken_out_of() -> None:
    table = Table(name="t", title="a|b", columns=("x",), rows=(("1 | 2\n<script> [a](b)",),))
    lines = to_markdown([table], "# t").splitlines()
    assert lines[0] == "# \\# t"
    assert lines[-1] == "| 1 \\| 2 \\<script\\> \\[a\\](b) |"


def test_a_wide_table_is_turned_where_that_fits() -> None:
    table = Table(name="t", title="t", columns=("Rank", "Agent", *"abcdefgh"), rows=(("1", "x", *"12345678"),), stub=2)
    assert fitting(table, 200) == table
    turned = fitting(table, 30)
    assert turned.columns == ("Rank Agent", "1 x")
    assert turned.rows[0] == ("a", "1")
    assert len(turned.rows) == 8
    assert fitting(table, 5) == table  # neither fits: as it is


def test_csv_has_one_row_an_episode_and_no_formulas(results: Results) -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv(episode_rows(results)))))
    assert len(rows) == 40
    assert rows[0]["task"] == "paper-0-task-0"
    blocked = next(row for row in rows if row["status"] != "scored")
    assert blocked["D"] == ""  # unknown
    table = Table(name="t", title="t", columns=("a", "b"), rows=(("=1+1", "@x"), ("+1", "-2")))
    assert to_csv(table).splitlines() == ["a,b", "'=1+1,'@x", "'+1,'-2"]


def test_parquet_keeps_types_and_unknowns(results: Results, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    write_parquet(tmp_path / "e.parquet", episode_rows(results))
    table = pq.read_table(tmp_path / "e.parquet")
    assert table.num_rows == 40
    assert str(table.schema.field("D").type) == "double"
    assert str(table.schema.field("repeat").type) == "int64"
    statuses = zip(table["status"].to_pylist(), table["D"].to_pylist(), strict=True)
    assert all(value is None for status, value in statuses if status != "scored")
