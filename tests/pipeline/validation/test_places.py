from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pipeline.validation.observation import Observation
from pipeline.validation.outputs import read_values
from pipeline.validation.places import places_of, source_of
from pipeline.validation.text_output import observe_text

LABEL = st.sampled_from(["a", "b", "a :: 1", "", "a / b"])


@given(st.lists(st.tuples(st.sampled_from(["x", "y :: 1"]), st.lists(LABEL, max_size=3)), max_size=30))
def test_no_two_places_are_equal(names: list[tuple[str, list[str]]]) -> None:
    seen = [
        Observation(value=1, text="1", decimals=0, labels=tuple(labels), where=source, source=source)
        for source, labels in names
    ]

    assert len(set(places_of(seen))) == len(seen)


def test_places_follow_labels_not_lines() -> None:
    text = "loss: 0.5\nloss: 0.25\nmodel  acc\nrf     0.91\n"
    first = list(observe_text(text, "stdout"))
    again = list(observe_text(f"a warning\n\n{text.replace('0.25', '0.26')}", "stdout"))

    assert places_of(first) == places_of(again)
    assert places_of(first)[1] == "stdout :: loss :: 2"
    assert source_of(places_of(first)[0]) == "stdout"


def test_sources_are_counted_apart() -> None:
    seen = [*read_values({"acc": 0.5}, "a.json"), *read_values({"acc": 0.5}, "b.json")]

    assert places_of(seen) == ("a.json :: acc :: 1", "b.json :: acc :: 1")
