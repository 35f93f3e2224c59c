"""Code of files and notebooks as trees whose lines lead back to the file; what cannot be parsed is no error."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.tracing.source import notebook_cells, parse_python, read_unit


def cell(*lines: str) -> dict[str, Any]:
    return {"cell_type": "code", "source": [*lines], "outputs": [{"text": ["1\n", "2\n"]}], "metadata": {}}


NOTEBOOK = json.dumps({"cells": [cell("x = 1\n", "y = 2"), cell("def f():\n", "    return 1")]}, indent=1)


def test_lines_of_a_notebook_lead_to_the_file() -> None:
    stored = NOTEBOOK.splitlines()
    unit = read_unit("notes.ipynb", NOTEBOOK)
    shown = [stored[unit.line(number) - 1].strip().strip('",') for number in range(1, 5)]
    assert shown == ["x = 1\\n", "y = 2", "def f():\\n", "    return 1"]
    assert unit.code.splitlines() == ["x = 1", "y = 2", "def f():", "    return 1"]


def test_a_cell_on_one_line_is_found_whatever_its_text_holds() -> None:
    text = '!run loggers=[] "a=[]"'
    raw = json.dumps({"cells": [{"cell_type": "code", "source": text, "outputs": []}, cell("y = 2")]}, indent=1)
    first = notebook_cells(raw)[0]
    assert [raw.splitlines()[line - 1].strip() for line in first.stored] == ['"source": "!run loggers=[] \\"a=[]\\"",']
    assert read_unit("a.ipynb", raw).shell == ((first.stored[0], 'run loggers=[] "a=[]"'),)


@pytest.mark.parametrize(
    ("path", "raw", "said"),
    [
        ("a.py", "print 'two'\n", "Python 2"),
        ("a.py", "x = 1\n" * 300_000, "not parsed"),
        ("a.ipynb", "{", "not JSON"),
        ("a.ipynb", "[]", "the top level is not an object"),
    ],
)
def test_what_cannot_be_parsed_says_why(path: str, raw: str, said: str) -> None:
    unit = read_unit(path, raw)
    assert unit.tree is None
    assert said in (unit.error or "")


@given(st.text(max_size=60))
def test_no_text_is_an_error(text: str) -> None:
    tree, error = parse_python(text)
    assert (tree is None) is (error is not None)
    assert read_unit("a.ipynb", text).path == "a.ipynb"
