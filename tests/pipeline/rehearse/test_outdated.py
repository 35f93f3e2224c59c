"""Failures that earlier packages may cure, told from the structure of tracebacks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.rehearse.outdated import fails_in_packages
from pipeline.rehearse.traces import read_trace
from tests.pipeline.validation.support import make_snapshot

SCRIPT = """\
import os
import numpy as np
from helper import scale
from sklearn.svm import SVC

model = SVC()
for size in np.arange(3):
    row = scale(size)
    model.fit_sample(row)
rate = os.environ.rate
print(scale)
"""
PACKAGE = "/opt/venv/lib/python3.11/site-packages/numpy/core/a.py"
NOTEBOOK = json.dumps(
    {"cells": [{"cell_type": "code", "source": "import numpy as np\n"}, {"cell_type": "code", "source": "x = 1\nnp.float(x)\ny = 2\ny.z\n"}],
     "nbformat": 4, "metadata": {"kernelspec": {"language": "python"}}}
)  # fmt: skip


def trace(error: str, *places: tuple[str, int]) -> str:
    lines = [f'  File "{path}", line {line}, in f\n    something()\n    ^^^^^^\n' for path, line in places]
    return f"Traceback (most recent call last):\n{''.join(lines)}{error}\n"


def cell(error: str, line: int, code: str) -> str:
    name = error.partition(":")[0]
    own = trace("nbclient.exceptions.CellExecutionError: An error occurred:", ("/x/site-packages/nbclient/a.py", 3))
    shown = f"      1 x = 1\n----> {line} {code}\n      3 y = 2\n"
    return f"{own}{name}            Traceback (most recent call last)\nCell In[2], line {line}\n{shown}\n{error}\n"


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (trace("KeyError: 'M31'", ("/work/run.py", 9), (PACKAGE, 12)), True),
        # json's own place is its caller's
        (trace("KeyError: 'M31'", (PACKAGE, 3), ("/usr/lib/python3.11/json/decoder.py", 12)), True),
        (trace("ValueError: x", ("/work/run.py", 3), ("/usr/lib/python3.11/json/decoder.py", 12)), False),
        (trace("ValueError: x", (PACKAGE, 12), ("/work/run.py", 9)), False),  # called back
        (trace("AttributeError: x", ("/work/run.py", 9)), True),  # what an import is bound to gave it
        (trace("TypeError: x", ("/work/run.py", 7)), True),
        (trace("ImportError: cannot import name 'SVC'", ("/work/run.py", 4)), True),
        (trace("ValueError: x", ("/work/run.py", 9)), False),
        (trace("AttributeError: x", ("/work/run.py", 10)), False),  # Python's own
        (trace("TypeError: x", ("/work/run.py", 11)), False),
        (trace("ModuleNotFoundError: No module named 'sklearn.svm'", ("/work/run.py", 4)), True),
        (trace("ModuleNotFoundError: No module named 'sklearn'", ("/work/run.py", 4)), False),
        (trace("ModuleNotFoundError: No module named 'helper.more'", ("/work/run.py", 4)), False),
        (trace("FileNotFoundError: [Errno 2] No such file or directory: 'a.csv'", (PACKAGE, 3)), False),
        (trace("AttributeError: x", ("/work/gone.py", 9)), False),
        ("AttributeError: x", False),
        ("", False),
    ],
)  # fmt: skip
def test_a_run_that_fails_in_packages_or_for_want_of_what_one_lost(log: str, expected: bool, tmp_path: Path) -> None:
    snapshot = make_snapshot(tmp_path, {"run.py": SCRIPT, "helper.py": "def scale(size): return size\n"})
    assert fails_in_packages(log, "run.py", snapshot) is expected


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (cell("AttributeError: x", 2, "np.float(x)"), True),
        (cell("AttributeError: x", 4, "y.z"), False),
        (cell("ValueError: x", 2, "np.float(x)"), False),
        (
            cell("ValueError: x", 2, "np.float(x)").replace("\n\nV", f"\n\nFile {PACKAGE}:12, in g(x)\n---> 12 z\n\nV"),
            True,
        ),
    ],
)
def test_cells_of_notebooks_fail_so_too(log: str, expected: bool, tmp_path: Path) -> None:
    snapshot = make_snapshot(tmp_path, {"a.ipynb": NOTEBOOK})
    assert fails_in_packages(log, "a.ipynb", snapshot) is expected


def test_the_last_traceback_is_read_with_its_class_and_places() -> None:
    log = (
        trace("ValueError: 1", ("/work/a.py", 1)) + "\nDuring handling\n\n" + trace("a.b.Odd: 2\n  more", (PACKAGE, 2))
    )
    found = read_trace(log)
    assert found is not None
    assert (found.error, [(place.path, place.line) for place in found.places]) == ("Odd", [(PACKAGE, 2)])
    assert read_trace("Traceback (most recent call last):\n") is None
