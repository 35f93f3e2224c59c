import ast
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.tracing import coverage
from pipeline.tracing.coverage import definitions_of, lines_of
from pipeline.tracing.source import CodeUnit, cells_by_line, read_unit
from tests.pipeline.locator.repositories import make

SCRIPT = '''"""Trains."""
import json
from lib import fit

RATE = 0.1


@cached
def unused(x):
    """Scale the values."""
    return x * RATE


class Net(Base):
    """A small network.

    With more to say.
    """

    def forward(self, x):
        return x


print(unused(1))
'''


def cell(*lines):
    return {"cell_type": "code", "source": [*lines], "outputs": [{"text": ["1\n", "2\n"]}], "metadata": {}}


NOTEBOOK = json.dumps({"cells": [cell("x = 1\n", "y = 2"), cell("def f():\n", "    return 1")]}, indent=1)
FILES: dict[str, str | bytes] = {
    "train.py": SCRIPT,
    "run.sh": "#!/bin/sh\n# all\npython train.py\n",
    "big.yaml": "a: 1\n" * 2000,
    "old.py": "print 'x'\n",
    "notes.ipynb": NOTEBOOK,
    "binary.py": b"\0\1",
}


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory):
    return make(tmp_path_factory.mktemp("coverage"), FILES)


def cited(found):
    return [(item.text.split(":")[0], item.spans[0].start, item.spans[-1].end) for item in found]


def test_each_definition_is_named_with_its_whole_span_whether_called_or_not(snapshot):
    found = definitions_of(snapshot, ["train.py"])
    assert cited(found) == [
        ("Describes the file", 1, 1),
        ("Imports json, lib", 2, 3),
        ("Module-level code", 5, 5),
        ("Defines unused", 8, 11),
        ("Defines class Net", 14, 21),
        ("Module-level code", 24, 24),
    ]
    assert "Scale the values" in found[3].text
    assert found[4].text == "Defines class Net: A small network."
    assert found[3].spans[0].quote == "@cached"


def test_what_the_steps_hold_already_is_left_out(snapshot):
    found = definitions_of(snapshot, ["train.py"], {("train.py", line) for line in range(8, 22)})
    assert not any(item.text.startswith("Defines") for item in found)
    partly = definitions_of(snapshot, ["train.py"], {("train.py", line) for line in range(9, 12)})
    assert [item.text for item in partly if item.text.startswith("Defines unused")]


def test_plain_files_are_cited_as_a_whole_and_what_cannot_be_read_not_at_all(snapshot):
    found = definitions_of(snapshot, ["run.sh", "big.yaml", "old.py", "binary.py", "missing.py", "run.sh"])
    assert cited(found) == [("Shell script run.sh runs train.py", 1, 3)]


def test_spans_of_a_notebook_hold_source_lines_only(snapshot):
    stored = NOTEBOOK.splitlines()
    lines = lines_of(definitions_of(snapshot, ["notes.ipynb"]))
    assert [stored[line - 1].strip().strip('",').strip() for _, line in sorted(lines)] == [
        "x = 1\\n",
        "y = 2",
        "def f():\\n",
        "return 1",
    ]


def test_lines_of_a_notebook_lead_to_cells_and_back():
    stored = NOTEBOOK.splitlines()
    cells = cells_by_line(NOTEBOOK)
    assert {stored[line - 1].strip().strip('",'): number for line, number in cells.items()} == {
        "x = 1\\n": 0,
        "y = 2": 0,
        "def f():\\n": 1,
        "    return 1": 1,
    }
    unit = read_unit("notes.ipynb", NOTEBOOK)
    numbers = range(1, len(unit.code.splitlines()) + 1)
    assert {unit.line(number): unit.cell(number) for number in numbers} == cells


def test_a_cell_on_one_line_is_found_whatever_its_text_holds():
    raw = json.dumps(
        {"cells": [{"cell_type": "code", "source": '!run loggers=[] "a=[]"', "outputs": []}, cell("y = 2")]}, indent=1
    )
    held = {raw.splitlines()[line - 1].strip() for line, number in cells_by_line(raw).items() if number == 0}
    assert held == {'"source": "!run loggers=[] \\"a=[]\\"",'}


STATEMENTS = ["import os", "x = 1", "def f():\n    return 1", "class A:\n    y = 2", "", "for i in x:\n    i"]


@given(st.lists(st.sampled_from(STATEMENTS), max_size=12))
def test_every_statement_is_cited_and_no_line_twice(parts):
    code = "\n".join(parts)
    unit = CodeUnit("a.py", code, tree := ast.parse(code))
    spans = [span for part in coverage._parts(unit, tree) for span in part.requirement.spans]
    lines = [line for span in spans for line in range(span.start, span.end + 1)]
    assert len(lines) == len(set(lines))
    assert {node.lineno for node in tree.body} <= set(lines)
