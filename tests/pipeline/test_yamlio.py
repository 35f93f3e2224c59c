from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import Field

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.schema import Record
from pipeline.yamlio import dump_yaml, parse_yaml, plain_yaml


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


def loaded(text: str, load: Callable[[str], object]) -> object:
    try:
        return load(text)
    except yaml.YAMLError as error:
        return str(error)


# what a document may be made of: whole pieces, so that many of the texts are YAML, and characters, so that many are not
PIECES = [
    "a: b\n",
    "- x\n",
    "  ",
    "? k\n",
    ": v\n",
    ">-\n",
    "&a ",
    "*a",
    "<<: ",
    "---\n",
    "...\n",
    "\n",
    "'",
    '"',
    "#c\n",
    "!!str ",
    "!",
    "%",
    "[",
    "]",
    "{",
    "}",
    ", ",
    "key: ",
    "\\n",
    "\t",
    "\ufeff",
    "\x85",
    "é",
    "1.0",
]
pieces = st.lists(
    st.sampled_from([*PIECES, "|\n"]),
    max_size=12,
).map("".join)


@settings(max_examples=400)
@given(pieces | printable)
@example(">#").via("libyaml takes the comment, PyYAML does not")
@example("!*!").via("libyaml takes the tag")
@example("3\t").via("libyaml takes the tab")
@example("\x85\ufeffb").via("libyaml drops the mark")
def test_every_text_is_read_as_the_slower_loader_reads_it(text: str) -> None:
    slow = loaded(text, lambda given: yaml.load(given, Loader=yaml.BaseLoader))
    assert loaded(text, plain_yaml) == slow


def test_stored_files_are_read_as_the_slower_loader_reads_them() -> None:
    root = Path(__file__).parents[2]
    files = [path for place in ("datasets", "docs", "extractors", "prefect.yaml", "mkdocs.yml")
             for path in sorted([root / place] if (root / place).is_file() else (root / place).rglob("*.y*ml"))]  # fmt: skip
    assert len(files) > 5
    for path in files:
        text = path.read_text(encoding="utf-8")
        slow = loaded(text, lambda given: yaml.load(given, Loader=yaml.BaseLoader))
        assert loaded(text, plain_yaml) == slow, path
