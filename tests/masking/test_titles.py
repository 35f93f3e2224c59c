"""The paper's title, and numbers in the text cells of notebooks: overwritten where nothing that runs changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from masking.apply import apply_mask
from masking.comments import text_spans
from masking.papers import title_patterns
from masking.plan import plan_mask
from pipeline.paper import Paper
from tests.masking import builders

TITLE = "Shrinking Trimmed Means: A Second Look"


def masked(tmp_path: Path, files: dict[str, bytes]) -> tuple[Path, dict[str, str]]:
    snapshot = builders.make(tmp_path / "original", files)
    plan = plan_mask(builders.task(paper=Paper(id="shrinkage", title=TITLE)), snapshot)
    return apply_mask(snapshot, plan, tmp_path / "masked").path, {item.path: item.action for item in plan.paths}


def test_the_title_goes_from_comments_docstrings_and_documents(tmp_path: Path) -> None:
    """Seen: a package's docstring that was the paper's title stayed in every masked repository."""
    files = {
        "pkg/__init__.py": b'"""Shrinking trimmed means - a second look."""\n\nVALUE = 1\n',
        "pkg/code.py": b"# Shrinking Trimmed\n# Means: a second look, 2024\nshrinking = 2\n",
        "pkg/live.py": b"x = {'Shrinking Trimmed Means: A Second Look': 1}\n",
        "docs/cite.md": b"Cite *Shrinking trimmed\nmeans: a second look*.\n",
        "CITATION.cff": b'title: "Shrinking Trimmed Means: A Second Look"\nversion: 1\n',
        "other.py": b'"""Shrinking trimmed values, once."""\n',
    }
    root, actions = masked(tmp_path, files)
    assert (root / "pkg/__init__.py").read_bytes() == b'"""[masked]."""\n\nVALUE = 1\n'
    assert (root / "pkg/code.py").read_bytes().endswith(b"shrinking = 2\n")
    assert (root / "docs/cite.md").read_bytes() == b"Cite *[masked]*.\n"
    assert (root / "CITATION.cff").read_bytes() == b'title: "[masked]"\nversion: 1\n'
    assert (root / "other.py").read_bytes() == files["other.py"]
    assert actions["CITATION.cff"] == "edited"
    for path in sorted(root.rglob("*")):
        if path.is_file() and ".git" not in path.parts:
            assert b"second look" not in path.read_bytes().lower() or path.name == "code.py"


def test_a_text_cell_loses_claimed_numbers_and_the_notebook_stays_one(tmp_path: Path) -> None:
    number = builders.claims()[1].text
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": [f"Another table has {number} too.\n", "And 17 rows."]},
        {
            "cell_type": "code", "metadata": {}, "execution_count": 3, "source": ["x = 1\n", f"# gives {number}\n"],
            "outputs": [{"output_type": "stream", "name": "stdout", "text": ["done"]}],
        },
    ]  # fmt: skip
    notebook = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)
    root, actions = masked(tmp_path, {"analysis.ipynb": notebook.encode()})
    assert actions["analysis.ipynb"] == "outputs_cleared"
    left = json.loads((root / "analysis.ipynb").read_text())
    assert "".join(left["cells"][0]["source"]) == "Another table has [masked] too.\nAnd 17 rows."
    assert "".join(left["cells"][1]["source"]) == "x = 1\n# gives [masked]\n"
    assert left["cells"][1]["outputs"] == []


def test_code_cells_are_no_text() -> None:
    cells = [{"cell_type": "code", "source": ["value = 0.875\n"]}, {"cell_type": "markdown", "source": 'a "b" 0.875'}]
    data = json.dumps({"cells": cells}).encode()
    assert [data[span.start : span.end] for span in text_spans("x.ipynb", data)] == [b'a \\"b\\" 0.875']
    assert text_spans("x.ipynb", b"{") == []
    assert text_spans("x.ipynb", b"[]") == []


@pytest.mark.parametrize("title", ["", "Attention", "On Deep Learning"])
def test_short_titles_are_ordinary_words(title: str) -> None:
    assert title_patterns([title]) == []


@given(
    st.lists(st.text("abcdefgh", min_size=1, max_size=6), min_size=4, max_size=9),
    st.sampled_from([" ", "\n", " - ", "\n# "]),
)
def test_a_title_is_found_however_it_is_broken(words: list[str], separator: str) -> None:
    (pattern,) = title_patterns([" ".join(words).title()])
    assert pattern.search(f"see {separator.join(words)}.".encode())
    assert not pattern.search("".join(words).encode())
