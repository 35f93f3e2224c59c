from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.schema import Record
from pipeline.yamlio import dump_yaml, parse_yaml


class Sample(Record):
    text: str
    maybe: str | None = None
    number: float = 0.0
    whole: int = 0
    flag: bool = False
    items: tuple[str, ...] = ()
    mapping: dict[str, str] = Field(default_factory=dict)


printable = st.text(st.characters(blacklist_categories=("Cs",)), max_size=60)


@given(
    st.builds(
        Sample,
        text=printable,
        maybe=st.none() | printable,
        number=st.floats(allow_nan=False, allow_infinity=False),
        whole=st.integers(),
        flag=st.booleans(),
        items=st.lists(printable, max_size=4).map(tuple),
        mapping=st.dictionaries(printable, printable, max_size=3),
    )
)
def test_what_is_written_is_read_back(sample: Sample) -> None:
    assert parse_yaml(dump_yaml(sample), Sample, "sample") == sample


@pytest.mark.parametrize(
    "text", ["no", "1.0", "2024-01-01", "1e5", "null", "~", "0x1F", "on", "12:30:45", "", "- x", "a: b"]
)
def test_text_stays_text(text: str) -> None:
    assert parse_yaml(dump_yaml(Sample(text=text)), Sample, "sample").text == text


@pytest.mark.parametrize("typed", ["no", "1.0", "2024-01-01", "yes", "1e5", "null"])
def test_text_that_a_person_typed_without_quotes_stays_text(typed: str) -> None:
    assert parse_yaml(f"text: {typed}\n", Sample, "sample").text == typed


def test_numbers_and_booleans_are_read_by_the_type_of_their_field() -> None:
    sample = parse_yaml("text: x\nnumber: 1e3\nwhole: 12\nflag: yes\n", Sample, "sample")
    assert (sample.number, sample.whole, sample.flag) == (1000.0, 12, True)


def test_an_unknown_field_is_named() -> None:
    with pytest.raises(ExpbenchError, match="txet") as caught:
        parse_yaml("text: x\ntxet: y\n", Sample, "tasks/a/task.yaml")
    assert caught.value.kind is FailureKind.RECORD_INVALID
    assert caught.value.object == "tasks/a/task.yaml"


def test_broken_yaml_is_an_error_of_the_record() -> None:
    with pytest.raises(ExpbenchError) as caught:
        parse_yaml("text: [x", Sample, "f")
    assert caught.value.exit_code == 5
