"""Which rows are the authors' own: every sign is written in the paper."""

from __future__ import annotations

import pytest

from extractors._ownership import (
    cited_in,
    copied_statement,
    is_own,
    own_names,
    reran_statement,
    uncited,
    without_citation,
)
from extractors._reading import Reading
from extractors.keyless import draft_tasks
from pipeline.paper import Document
from tests.extractors.drafting_documents import document, table

ROWS = [
    ["Method", "Moons", "Rings"],
    ["OLD (Smith et al., 2018)", "80.1", "79.2"],
    ["SLOW (Jones and Lee, 2019)", "82.4", "81.0"],
    ["ACME-S", "84.0", "83.1"],
    ["ACME-L", "86.5", "85.2"],
]


def paper(*setup: str, rows: list[list[str]] | None = None) -> Document:
    results = table("Table 1", "Test accuracy on Moons and Rings.", rows or ROWS)
    return document(
        [
            ("Introduction", "body", ["We propose a classifier named ACME for noisy labels."]),
            (
                "Experiments",
                "body",
                [
                    " ".join(["We train every model for 20 epochs with five seeds on each data set.", *setup]),
                    "Table 1 compares the test accuracy of the methods on Moons and Rings.",
                ],
            ),
        ],
        (results,),
    )


def methods(source: Document) -> tuple[str, ...]:
    found = draft_tasks(source)
    assert found.drafts, found.problems
    return next(v.values for v in found.drafts[0].independent if v.name == "Method")


def test_rows_that_cite_another_paper_are_left_out_and_said_so() -> None:
    assert methods(paper()) == ("ACME-S", "ACME-L")
    assert any("cite another paper" in problem.message for problem in draft_tasks(paper()).problems)


def test_rows_that_the_authors_ran_again_stay() -> None:
    ran = methods(paper("We reimplemented all baselines with the same features."))
    assert ran == ("OLD", "SLOW", "ACME-S", "ACME-L")


def test_a_sentence_tells_where_the_numbers_are_from() -> None:
    bare = [[without_citation(row[0]), *row[1:]] for row in ROWS]
    told = "The results of OLD (Smith et al., 2018) and SLOW (Jones et al., 2019) are taken from the original papers."
    assert methods(paper(told, rows=bare)) == ("ACME-S", "ACME-L")
    assert methods(paper(rows=bare)) == ("OLD", "SLOW", "ACME-S", "ACME-L")


def test_variants_of_an_ablation_are_nobody_elses() -> None:
    variants = [
        ["Method", "Moons", "Rings"],
        ["random", "80.1", "79.2"],
        ["no weights", "81.1", "80.2"],
        ["ACME", "84.0", "83.0"],
    ]
    told = "The results of comparative methods are cited from the original papers."
    assert methods(paper(told, rows=variants)) == ("random", "no weights", "ACME")


@pytest.mark.parametrize(
    ("label", "bare"),
    [
        ("MAM-RNN [Li et al., 2017]", "MAM-RNN"),
        ("GraphSAGE [5]", "GraphSAGE"),
        ("ICA (Lu & Getoor, 2003)", "ICA"),
        ("Negate (v ∈ [-100, 100])", "Negate (v ∈ [-100, 100])"),
        ("BERT (base)", "BERT (base)"),
    ],
)
def test_a_reference_behind_a_name_is_no_part_of_it(label: str, bare: str) -> None:
    assert without_citation(label) == bare
    assert uncited(label) is (label == bare)


def test_own_names_are_methods_that_the_paper_proposes() -> None:
    reading = Reading(paper())
    assert own_names(reading) == frozenset({"ACME"})
    assert is_own("ACME (S+L)", own_names(reading))
    assert is_own("Net (ours)", frozenset())
    assert not is_own("ACMEPLUS", own_names(reading))
    data = Reading(document([("Introduction", "body", ["We present MEASURES, a new dataset of units."])]))
    assert own_names(data) == frozenset()


def test_statements_count_in_their_own_part_of_the_paper() -> None:
    source = document(
        [
            (
                "Experiments",
                "body",
                ["Table 1 shows the scores. We quote the numbers reported in the original papers."],
            ),
            ("Retrieval", "body", ["Table 2 shows the ranks. We re-ran all baselines."]),
        ],
        (table("Table 1", "Scores.", ROWS), table("Table 2", "Ranks.", ROWS)),
    )
    reading = Reading(source)
    first = [line for line in reading.lines if "Table 1" in line.text]
    second = [line for line in reading.lines if "Table 2" in line.text]
    assert copied_statement(reading, first, source.tables[0]) is not None
    assert copied_statement(reading, second, source.tables[1]) is None
    assert reran_statement(reading, second) is not None
    assert reran_statement(reading, first) is None
    assert cited_in("the kernel DGK (Yanardag, 2015) and others", "DGK")
    assert not cited_in("the kernel DGK and others", "DGK")
