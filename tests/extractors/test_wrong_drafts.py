"""What made drafts of real papers wrong, each as small as it gets."""

from __future__ import annotations

import pytest

from extractors._roles import roles_of
from extractors._steps import _ROW, is_formula
from extractors._vocabulary import WINNER
from extractors.keyless import draft_tasks
from extractors.refining import _settings_in
from extractors.takeaways import about_others
from pipeline.task import Band, Condition, NumericClaim
from tests.extractors.drafting_documents import document, table


def test_a_number_after_a_comma_is_no_setting_of_the_next_name() -> None:
    found = _settings_in("Values that work well are batch size 16, learning rate: 3e-5, 2e-5.", own=True)
    assert ("learning rate", "16") not in [(setting.name, setting.value) for setting in found]
    found = _settings_in("We set the learning rate as 5e-5, and the batch size as 32.", own=True)
    assert ("learning rate", "5e-5") in [(setting.name, setting.value) for setting in found]


@pytest.mark.parametrize(
    "sentence",
    [
        "Samal et al. Samal et al. [2018] performed a comparison (average correlation coefficient 0.87).",
        "Smith and Jones [2019] reached an accuracy of 0.87.",
    ],
)
def test_what_others_measured_is_not_ours(sentence: str) -> None:
    assert about_others(sentence)
    assert not about_others("Our method reaches an accuracy of 0.87.")


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("Assume for all x, (1 −δK)∥x∥2 2 ≤ ∥Ax∥2 2 ≤ (1 + δK)∥x∥2 2 with constant δK < 1.", True),
        ("Observe y = Ax + ε where A ∈ Rm×n and ε is noise.", True),
        ("Use a balanced binary tree of depth 7 (n = 255 nodes) with m = 127 measurements.", False),
        ("Train for 200 epochs with Adam and a learning rate of 0.001.", False),
    ],
)
def test_flattened_formulas_are_no_instructions(text: str, formula: bool) -> None:
    assert is_formula(text) is formula


def test_a_property_of_the_compared_thing_is_no_variable_of_its_own() -> None:
    rows = [
        ("A", "32", -15.0),
        ("A-Sym", "32", -13.6),
        ("A-MM", "32", -17.0),
        ("Elem", "3", -15.8),
        ("Ours", "3", -28.7),
    ]
    claims = [
        NumericClaim(
            id=f"c{n}", metric="NMSE", value=value, text=str(value), decimals=1,
            conditions=(Condition(name="Variant of it", value=name), Condition(name="#Params", value=params)),
            band=Band(low=value - 1, high=value + 1, source="printed precision"),
        )
        for n, (name, params, value) in enumerate(rows)
    ]  # fmt: skip
    roles = roles_of(claims)
    assert [axis.name for axis in roles.axes] == ["Variant of it"]
    assert roles.attributes["#Params"][0] == "Variant of it"


def test_numbers_in_no_order_go_along_with_the_names_beside_them() -> None:
    """A table of tests with how many cases each has: the cases are not what is varied."""
    rows = [("Negate", "201", 100.0), ("Add", "441", 100.0), ("Multiply", "10", 97.5), ("Sort", "35", 77.5)]
    claims = [
        NumericClaim(
            id=f"c{n}", metric="accuracy", value=value, text=str(value), decimals=1,
            conditions=(Condition(name="Count", value=count), Condition(name="Test", value=name)),
            band=Band(low=value - 1, high=value + 1, source="printed precision"),
        )
        for n, (name, count, value) in enumerate(rows)
    ]  # fmt: skip
    roles = roles_of(claims)
    assert [axis.name for axis in roles.axes] == ["Test"]
    assert roles.attributes["Count"][1]["Sort"] == "35"


def test_twins_are_told_apart_by_what_only_one_caption_says() -> None:
    tables = tuple(
        table(
            label, f"Test accuracy (%) on the spirals data. A hit is a point {rule}.",
            [["Method", "Test accuracy (%)"], ["Plain", first], ["Huber", "86.5"], ["Ours", "90.4"]],
        )
        for label, first, rule in (("Table 1", "81.2", "within one metre"), ("Table 2", "71.7", "on the same side"))
    )  # fmt: skip
    told = [
        "We train each method on 600 points and test it on 1500 points.",
        "We draw five random seeds for each method.",
    ]
    said = ["Table 1 lists the accuracy under the first rule.", "Table 2 lists the accuracy under the second rule."]
    paper = document([("Setup", "body", told), ("Results", "body", said)], tables)
    questions = [draft.question for draft in draft_tasks(paper).drafts]
    assert len(questions) == len(set(questions)) == 2
    assert all(question.endswith(")?") and "a hit is a point" in question for question in questions)


@pytest.mark.parametrize("sentence", ["TU tops the ranking.", "It is 7 points ahead of the best baseline."])
def test_who_leads_is_a_finding(sentence: str) -> None:
    assert WINNER.search(sentence)
    assert not WINNER.search("The memory is allocated ahead of time.")


def test_rows_of_a_table_in_the_text_are_no_instructions() -> None:
    assert _ROW.search("Phase Steps Range 1 8,000 10% 1-2 2 20,000 15% 1-4 and each phase causes a spike.")
    assert not _ROW.search("We use sizes of 100, 200, 400, 800 and 1600 points.")
