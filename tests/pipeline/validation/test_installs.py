from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.validation.declarations import read_declarations
from pipeline.validation.installs import installs_of
from tests.pipeline.validation.support import make_snapshot

WRAPPER = (
    "import subprocess, sys\n"
    "def _pip(*a): subprocess.check_call([sys.executable, '-m', 'pip', 'install', '-q', *a])\n"
    "_pip('numpy==2.0.2', 'scipy')\n"
)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import os\nos.system('pip install -q foo==1.0 bar && echo done')\n", ("foo==1.0", "bar")),
        ("import sys\nrun([sys.executable, '-m', 'pip', 'install', '-r', 'x.txt', 'baz'])\n", ("baz",)),
        (WRAPPER, ("numpy==2.0.2", "scipy")),
        ("x = ['install', 'pip']\nprint('install')\n", ()),
        ("install('numpy')\n", ()),
        ("def broken(:\n", ()),
    ],
)
def test_programs_that_install(source: str, expected: tuple[str, ...]) -> None:
    assert installs_of("run.py", source) == expected


def test_messages_about_installing_are_no_installation() -> None:
    assert installs_of("run.py", "raise ImportError('please run pip install of-this package')\n") == ()


def test_notebook_cells_declare_what_they_install(tmp_path: Path) -> None:
    """Seen: a notebook's first cell pins Colab's versions; without network it ended there, as `blocked: data`."""
    code = ["!pip install -q six  # small\n", "%pip install 'tool>=2'\n", *WRAPPER.splitlines(keepends=True)]
    cells = [{"cell_type": "markdown", "source": ["!pip install never"]}, {"cell_type": "code", "source": code}]
    notebook = json.dumps({"cells": cells})
    assert installs_of("a.ipynb", notebook) == ("six", "tool>=2", "numpy==2.0.2", "scipy")
    assert installs_of("a.ipynb", "no notebook") == ()
    files = {"a.ipynb": notebook, "requirements.txt": "scipy\n"}
    found = read_declarations(make_snapshot(tmp_path, files), ["a.ipynb"])
    assert {str(item) for item in found.requirements} == {"six", "tool>=2", "numpy==2.0.2", "scipy"}
    assert found.files == ["requirements.txt", "a.ipynb"]
