"""What runs and committed files gave of a paper becomes drafts: the part of the stage that starts nothing."""

from __future__ import annotations

import random
from dataclasses import replace

from flows.rehearse_stage import _choose, _ground, _Held, _parts, _without_runs
from pipeline.errors import FailureKind
from pipeline.match.records import CellMatch, Source, TableMatch
from pipeline.match.tables import match_tables
from pipeline.rehearse import Rehearsal
from pipeline.survey import Candidate
from pipeline.task import Usage
from pipeline.validation.observation import Observation
from pipeline.validation.places import places_of
from tests.extractors.drafting_documents import document, table

GRID = [["Method", "Moons", "Rings"], ["Ridge", "0.913", "0.851"], ["Lasso", "0.887", "0.803"]]


def held(name: str, origin: str) -> _Held:
    """A source that holds all numbers of the table in one column."""
    numbers = [
        Observation(
            value=float(GRID[row][column]), text=GRID[row][column], decimals=3, labels=("accuracy",),
            coordinates=(("estimator", GRID[row][0]), ("data", GRID[0][column])), where=f"{name} {row} {column}",
            source=name, record=f"{name} {row} {column}",
        )
        for row in (1, 2)
        for column in (1, 2)
    ]  # fmt: skip
    return _Held(Source(name=name, origin=origin, command="python run.py"), tuple(numbers))  # type: ignore[arg-type]


def match_of(source: _Held, *, at: int = 0) -> TableMatch:
    cells = tuple(
        CellMatch(
            row=1 + n // 2, column=1 + n % 2, text=seen.text, value=seen.value, decimals=3, source=source.source.name,
            place=place, where=seen.where, observed=seen.value,
        )
        for n, (place, seen) in enumerate(zip(places_of(source.observations), source.observations, strict=True))
    )  # fmt: skip
    return TableMatch(
        table=at, label="Table 1", page=2, source=source.source.name, origin=source.source.origin,
        command=source.source.command, cells=cells, compared=len(cells), chance=-9.0,
    )  # fmt: skip


def test_a_ground_takes_names_from_the_source_of_each_cell() -> None:
    """A bug it records: files of one kind match together, and a place of one was looked up in another."""
    one, two = held("a.csv", "committed"), held("b.csv", "committed")
    match = match_of(one)
    other = match_of(two).cells[3].evolve(place=match_of(two).cells[0].place)
    both = match.evolve(cells=(*match.cells[:3], other))
    ground = _ground(both, {"a.csv": one, "b.csv": two})
    assert {cell.field for cell in ground.cells} == {"accuracy"}
    assert ground.keys["Ridge"] == "estimator"


def test_of_two_tables_with_one_label_each_keeps_its_run() -> None:
    run = held("run:a", "run")
    matches = [match_of(run), match_of(run, at=1)]
    chosen, _, problems = _choose(matches, {"run:a": run}, {"run:a": frozenset()})
    assert [match.table for match in chosen] == [0, 1]
    assert problems == []


def test_a_run_that_reads_the_shipped_numbers_gives_nothing_and_the_file_is_drafted_without_proof() -> None:
    run, file = held("run:a", "run"), held("results.csv", "committed")
    matches = [match_of(run), match_of(file)]
    chosen, _, problems = _choose(matches, {"run:a": run}, {"run:a": frozenset({"results.csv"})})
    assert chosen == []
    assert "computes nothing" in problems[0].message
    paper = document([], (table("Table 1", "The methods.", GRID), table("Table 2", "Sizes.", [["", "n"], ["A", "5"]])))
    made = _without_runs(paper, matches, {"results.csv": file}, problems, None)
    (draft,) = made.drafts.drafts
    assert made.evidence == ()
    assert draft.confidence < 0.5
    assert draft.expected.claims[0].metric == "accuracy"
    assert draft.expected.claims[0].place == ""
    told = " ".join(problem.message for problem in made.drafts.problems)
    assert "no run gives its numbers; 4 stand in results.csv" in told
    assert "no task: it states 1 of the 3 numbers" in told


def test_a_run_that_ended_well_comes_before_one_that_shows_more_and_fails() -> None:
    whole, failed = held("run:whole", "run"), held("run:failed", "run")
    usage = Usage(argv=("python", "run.py"))
    candidate = Candidate(key="run", usage=usage, entry="run.py", origin="entry", where="run.py")
    run = Rehearsal(candidate=candidate, failure=FailureKind.RUN_FAILED, message="KeyError: 'M31'")
    failed = replace(failed, rehearsal=run)
    by_run: dict[str, _Held] = {"run:failed": failed, "run:whole": whole}
    read: dict[str, frozenset[str]] = {name: frozenset() for name in by_run}
    part = match_of(whole).evolve(cells=match_of(whole).cells[:3])
    chosen, others, problems = _choose([match_of(failed), part], by_run, read)
    assert ([match.source for match in chosen], problems) == (["run:whole"], [])
    assert [match.source for match in others[0]] == ["run:failed"]
    chosen, _, (problem,) = _choose([match_of(failed)], by_run, read)
    assert "4 of its numbers come out of" in problem.message
    assert problem.message.endswith("which then fails: KeyError: 'M31'")


def test_rows_that_come_from_one_command_each_are_tasks_of_their_own() -> None:
    """Seen on a table of three options priced by three scripts: the second one was taken for another way to the first."""
    one, two, both = held("run:ridge", "run"), held("run:lasso", "run"), held("run:all", "run")
    first = match_of(one).evolve(cells=match_of(one).cells[:2])
    second = match_of(two).evolve(cells=match_of(two).cells[2:])
    by_run = {"run:ridge": one, "run:lasso": two, "run:all": both}
    read: dict[str, frozenset[str]] = {name: frozenset() for name in by_run}
    chosen, others, _ = _choose([first, second], by_run, read)
    assert [match.source for match in chosen] == ["run:ridge", "run:lasso"]
    assert others == [[], []]
    chosen, others, _ = _choose([first, second, match_of(both)], by_run, read)
    assert [match.source for match in chosen] == ["run:all"]
    assert [match.source for match in others[0]] == ["run:ridge", "run:lasso"]


def test_a_small_file_of_a_run_is_not_drowned_by_its_traces() -> None:
    """A bug it records: the eight numbers of a summary matched nothing, beside 60,000 numbers of the same run's traces."""
    source = Source(name="run:a", origin="run", command="python run.py")
    summary = [item.evolve(source="summary.csv") for item in held("run:a", "run").observations]
    chance = random.Random(1)
    traces = [
        Observation(value=float(f"{value:.3f}"), text=f"{value:.3f}", decimals=3, labels=("accuracy",), where=f"t {n}",
                    source=f"traces.jsonl line {n}", record=f"t {n}")
        for n in range(20_000)
        for value in [chance.uniform(0.7, 1.0)]
    ]  # fmt: skip
    run = _Held(source, (*traces, *summary))
    document_ = document([], (table("Table 1", "Accuracy.", GRID),))
    parts = list(_parts(run))
    assert [len(numbers) for _, numbers in parts] == [20_004, 20_000, 4]
    assert match_tables(document_, parts[:1]) == ()
    (found,) = match_tables(document_, parts)
    assert len(found.cells) == 4
    assert {cell.place for cell in found.cells} <= set(places_of(run.observations))
