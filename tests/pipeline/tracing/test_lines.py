"""Files as numbered lines."""

import json

import pytest

from pipeline.tracing import lines
from pipeline.tracing.lines import FileLines
from tests.pipeline.locator.repositories import make

NOTEBOOK = json.dumps(
    {
        "cells": [
            {"cell_type": "markdown", "source": ["# Train\n", "the model"]},
            {"cell_type": "code", "outputs": [{"text": ["0.9"]}], "source": ["import os\n", 'print("a")']},
        ],
        "nbformat": 4,
    },
    indent=1,
)


@pytest.fixture
def files(tmp_path):
    project = {"a.py": "x = 1\nyes  =  2\n", "b/c.ipynb": NOTEBOOK, "d.bin": b"\0\1", "broken.ipynb": "not JSON\n"}
    return FileLines(make(tmp_path, project))


def test_lines_are_those_of_the_file(files):
    assert files.lines("a.py") == ((1, "x = 1"), (2, "yes  =  2"))
    assert files.lines("d.bin") == files.lines("nowhere") == ()
    assert "b/c.ipynb" in files
    assert [files.is_directory(path) for path in (".", "b", "a.py", "..")] == [True, True, False, False]


def test_lines_of_a_notebook_are_its_cells_where_they_are_stored(files):
    stored = NOTEBOOK.splitlines()
    for number, text in files.lines("b/c.ipynb"):
        assert json.loads(stored[number - 1].strip().rstrip(",")).rstrip("\n") == text
    assert [text for _, text in files.lines("b/c.ipynb")] == ["# Train", "the model", "import os", 'print("a")']
    assert files.lines("broken.ipynb") == ((1, "not JSON"),)


def test_what_is_held_in_memory_is_bounded(files, monkeypatch):
    monkeypatch.setattr(lines, "_KEPT", 20)
    assert [files.lines("a.py") for _ in range(2)] == [((1, "x = 1"), (2, "yes  =  2"))] * 2
    files.lines("b/c.ipynb")
    assert "a.py" not in files._kept
    assert files.lines("a.py") == ((1, "x = 1"), (2, "yes  =  2"))
