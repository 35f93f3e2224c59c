"""Kinds of files by their path: what may go as a whole because of a number, and what is kept."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from masking import filekinds as kinds


@pytest.mark.parametrize(
    ("path", "prose", "document"),
    [
        ("docs/a.md", True, True), ("A.TXT", True, True), ("README", True, True), ("lib/readme", True, True),
        ("a.py", False, False), ("Makefile", False, False), ("notes", False, False), ("README.py", False, False),
        ("LICENSE.md", True, False), ("licence.txt", True, False), ("requirements-dev.txt", True, False),
        ("constraints.txt", True, False), ("COPYING.txt", True, False), ("licensed.md", True, True),
    ],
)  # fmt: skip
def test_prose_and_documents(path: str, prose: bool, document: bool) -> None:
    assert (kinds.is_prose(path), kinds.is_document(path)) == (prose, document)


@pytest.mark.parametrize(
    ("path", "result"),
    [
        ("results/a.csv", True),
        ("x/Outputs/deep/a.PNG", True),
        ("wandb/run.json", True),
        ("results.csv", False),
        ("results/plot.py", False),
        ("data/a.csv", False),
        ("data/events.out.tfevents.123.host", True),
    ],
)
def test_results_by_place(path: str, result: bool) -> None:
    assert kinds.is_result_path(path) is result


@pytest.mark.parametrize(
    ("path", "states"),
    [
        ("a.csv", True),
        ("a.rst", True),
        ("n.ipynb", True),
        ("tests/a.py", True),
        ("lib/test_a.py", True),
        ("README", True),
        ("lib/a.py", False),
        ("conf.yaml", False),
        ("a.sh", False),
        ("latest/a.py", False),
    ],
)
def test_what_may_go_because_of_a_number(path: str, states: bool) -> None:
    assert kinds.states_results(path) is states


def test_readmes_at_the_root_only() -> None:
    found = [path for path in ("README.md", "readme", "docs/README.md", "a.md") if kinds.is_root_readme(path)]
    assert found == ["README.md", "readme"]


def test_code_lists_and_how_numbers_are_read() -> None:
    assert [path for path in ("a.PY", "a.ipynb", "a.sh", "a.md", "a.json") if kinds.is_code(path)] == [
        "a.PY", "a.ipynb", "a.sh",
    ]  # fmt: skip
    assert [path for path in ("a.yaml", "a.SH", "a.json", "a.py") if kinds.is_list(path)] == [
        "a.yaml",
        "a.SH",
        "a.json",
    ]
    assert [kinds.text_kind(path) for path in ("a.md", "a.TSV", "a.csv", "a.py", "a")] == [
        "prose", "table", "table", "code", "code",
    ]  # fmt: skip
    assert [path for path in ("a.md", "c.cff", "x.bib", "a.py") if kinds.is_text_throughout(path)] == [
        "a.md", "c.cff", "x.bib",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "made"),
    [
        ("tex/main.bbl", True),
        ("tex/main.PDF", True),
        ("tex/main.synctex.gz", True),
        ("tex/main.sty", False),
        ("tex/other.bbl", False),
        ("main.bbl", False),
        ("tex/deep/main.bbl", False),
    ],
)
def test_what_latex_makes_of_a_source(path: str, made: bool) -> None:
    assert kinds.is_latex_byproduct(path, PurePosixPath("tex/main.tex")) is made
