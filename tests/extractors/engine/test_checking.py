"""Whatever a model says of a task, only what the paper supports is kept."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from extractors.claims import find_numbers, normalize
from extractors.engine.checking import CheckedTask, Checker
from extractors.engine.evidence import Paper, compact, contains
from extractors.engine.said import (
    SaidCells,
    SaidClaim,
    SaidCondition,
    SaidSetting,
    SaidStep,
    SaidTask,
    SaidVariable,
)
from pipeline.schema import Problem
from pipeline.task import TableEvidence
from tests.extractors.drafting_documents import document, table
from tests.extractors.engine.papers import paper

PAPER = Paper(paper())
SENTENCES = [
    "Every experiment is repeated with 10 random seeds.",
    "We draw 600 training points and 1500 test points for each problem.",
    "On Moons, Ours reaches 90.4% against 86.5% for Huber.",
    "Without centring the value on Rings drops to 80.3% from 88.1%.",
    "This sentence is an invention with 90.4% in it.",
    "",
]
LABELS = st.sampled_from(["Table 1", "TABLE II", "Table 5", "Table 9", ""])
QUOTES = st.sampled_from(SENTENCES)
VALUES = st.sampled_from(["90.4", "90.4%", "86.5", "99.9", "10", "0.55", "w/o centring", "-90.4", "x", ""])
NAMES = st.sampled_from(["Mean test accuracy", "value", "flavour", "Method", "Temperature", "Kernel bandwidth", ""])
PLACES = st.integers(-1, 5)
CONDITIONS = st.lists(st.builds(SaidCondition, name=NAMES, value=VALUES), max_size=2).map(tuple)
MAYBE = st.one_of(st.none(), PLACES)
CELLS = st.builds(
    SaidCells, table=LABELS, metric=NAMES, rows=st.lists(PLACES, max_size=3).map(tuple),
    columns=st.lists(PLACES, max_size=3).map(tuple), first_value=st.sampled_from(["81.2", "90.4", "x"]),
    last_value=st.sampled_from(["88.1", "80.3", "81.2", "x"]), row_conditions=st.lists(NAMES, max_size=2).map(tuple),
    column_conditions=st.lists(NAMES, max_size=2).map(tuple), conditions=CONDITIONS,
)  # fmt: skip
CLAIMS = st.builds(
    SaidClaim, metric=NAMES, value=VALUES, conditions=CONDITIONS, quote=st.one_of(st.none(), QUOTES),
    table=st.one_of(st.none(), LABELS), row=MAYBE, column=MAYBE,
)  # fmt: skip
VARIABLES = st.lists(
    st.builds(
        SaidVariable, name=NAMES, values=st.lists(VALUES, max_size=3).map(tuple), quote=st.one_of(st.none(), QUOTES),
        table=st.one_of(st.none(), LABELS),
    ),
    max_size=2,
).map(tuple)  # fmt: skip
TASKS = st.builds(
    SaidTask, title=st.just("Table 1"), question=st.just("How?"), takeaways=st.just(()),
    results=st.lists(QUOTES, max_size=3).map(tuple), cells=st.lists(CELLS, max_size=3).map(tuple),
    claims=st.lists(CLAIMS, max_size=3).map(tuple),
    method=st.lists(
        st.builds(SaidStep, quote=QUOTES, text=st.sampled_from(["Repeat it 10 times.", "Repeat it 11 times.", "Run it."])),
        max_size=3,
    ).map(tuple),
    constant=VARIABLES, independent=VARIABLES, dependent=VARIABLES,
    settings=st.lists(
        st.builds(
            SaidSetting, name=NAMES, value=VALUES, quote=st.one_of(st.none(), QUOTES),
            table=st.one_of(st.none(), LABELS),
        ),
        max_size=3,
    ).map(tuple),
)  # fmt: skip


def check(said: SaidTask, of: Paper = PAPER) -> tuple[CheckedTask, list[Problem]]:
    problems: list[Problem] = []
    return Checker(of, frozenset(), "Results (page 1)", problems).task(said, "Results"), problems


@settings(max_examples=150, deadline=None)
@given(TASKS)
def test_everything_that_is_kept_stands_in_the_paper(said: SaidTask) -> None:
    task, problems = check(said)
    assert len({claim.id for claim in task.claims}) == len(task.claims) == len(task.claim_keys)
    for claim in task.claims:
        (evidence,) = claim.evidence
        assert PAPER.supports(evidence)
        quote = evidence.quote
        assert any(abs(number.value) == abs(claim.value) for number in find_numbers(normalize(quote)))
        assert claim.band.holds(claim.value)
        assert PAPER.knows(claim.metric)
        if isinstance(evidence, TableEvidence):
            assert normalize(claim.text) == normalize(quote)
    for span in task.statements:
        assert PAPER.supports(span.evidence())
    for step in task.steps:
        held = " ".join(span.text for span in step.spans)
        assert all(contains(held, number.text) for number in find_numbers(step.text))
    for supported in (*task.constant, *task.independent, *task.dependent):
        assert all(PAPER.supports(evidence) for evidence in supported.evidence)
        assert supported.evidence
    for setting in task.settings:
        assert all(compact(setting.value)[0] in compact(e.quote)[0] for e in setting.evidence)  # type: ignore[union-attr]
    assert (task.dropped > 0) == bool(problems)


def block(**changes: object) -> SaidTask:
    cells = {
        "table": "Table 1", "metric": "Mean test accuracy", "rows": (1, 2, 3), "columns": (1, 2), "first_value": "81.2",
        "last_value": "88.1", "row_conditions": ("Method",), "column_conditions": ("problem",),
    }  # fmt: skip
    return SaidTask(title="t", question="q", cells=(SaidCells.model_validate(cells | changes),))


def test_a_block_of_cells_is_read_from_the_grid_with_the_labels_as_conditions() -> None:
    task, problems = check(block())
    assert problems == []
    assert [claim.value for claim in task.claims] == [81.2, 77.4, 86.5, 79.9, 90.4, 88.1]
    assert [(c.name, c.value) for c in task.claims[-1].conditions] == [("Method", "Ours"), ("problem", "Rings")]


def test_a_miscounted_block_is_dropped_whole() -> None:
    for changes in ({"first_value": "77.4"}, {"last_value": "90.4"}, {"rows": (0, 1, 2)}, {"columns": (1, 7)}):
        task, problems = check(block(**changes))
        assert task.claims == []
        assert "dropped: row" in problems[0].message


def test_conditions_that_the_paper_does_not_know_are_dropped_and_the_cells_own_labels_stay() -> None:
    task, problems = check(block(conditions=(SaidCondition(name="planet", value="Mars"),)))
    assert {c.value for c in task.claims[0].conditions} == {"Plain", "Moons"}
    assert "it is not in the paper" in problems[0].message


def test_labels_that_the_answer_calls_no_condition_are_left_out_unless_claims_would_be_alike() -> None:
    metrics = table(
        "Table 1", "Coverage and width.",
        [["", "Wave", "", "Step", ""], ["Method", "Cov.", "Width", "Cov.", "Width"], ["A", "90.4", "1.35", "89.3", "1.90"],
         ["B", "90.2", "1.13", "90.1", "1.54"]],
        header_rows=2, spans={(0, 1): 2, (0, 3): 2},
    )  # fmt: skip
    of = Paper(document([("Results", "body", ["Table 1 shows the coverage of both methods."])], (metrics,)))
    said = block(
        metric="Coverage", rows=(2, 3), columns=(1, 3), first_value="90.4", last_value="90.1",
        column_conditions=("problem", ""),
    )  # fmt: skip
    task, _ = check(said, of)
    assert [[c.value for c in claim.conditions] for claim in task.claims] == [
        ["A", "Wave"], ["A", "Step"], ["B", "Wave"], ["B", "Step"],
    ]  # fmt: skip
    alike = block(
        metric="Coverage", rows=(2, 3), columns=(1, 3), first_value="90.4", last_value="90.1",
        column_conditions=("", ""),
    )  # fmt: skip
    task, _ = check(alike, of)
    assert len({claim.conditions for claim in task.claims}) == 4


def test_bounds_are_no_claims() -> None:
    bound = "The accuracy is below 90.4% here."
    of = Paper(document([("Results", "body", [bound])]))
    claim = SaidClaim(metric="accuracy", value="90.4%", quote=bound)
    task, problems = check(SaidTask(title="t", question="q", claims=(claim,)), of)
    assert task.claims == []
    assert "a bound" in problems[0].message


def test_a_setting_needs_a_label_of_its_name() -> None:
    right = SaidSetting(name="Kernel bandwidth", value="0.55", table="Table 5")
    wrong = SaidSetting(name="learning rate", value="0.55", table="Table 5")
    task, problems = check(SaidTask(title="t", question="q", settings=(right, wrong)))
    assert [(s.name, s.value) for s in task.settings] == [("Kernel bandwidth", "0.55")]
    assert "no cell of Table 5 gives it this value" in problems[0].message
