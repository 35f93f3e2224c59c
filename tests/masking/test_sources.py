"""Which scripts and texts a mask is about, and what counts as the house's style."""

from __future__ import annotations

from pathlib import Path

import pytest

from masking import sources
from masking.functions import MASKED_BODY
from masking.records import TextEdit
from masking.sources import background, masked_sources, references
from pipeline.task import SourceScript
from tests.masking import builders


def script(path: str, role: str) -> SourceScript:
    return SourceScript.model_validate({"path": path, "role": role, "score": 1.0})


@pytest.mark.parametrize(
    ("roles", "equivalents", "masked"),
    [
        (("entry", "library", "wrapper", "config"), (), ("entry", "wrapper", "config")),
        (("library", "entry"), ("library",), ("entry", "twin-library")),
        (("library",), (), ("library",)),
        (("library",), ("entry",), ("library", "twin-entry")),
        ((), (), ()),
    ],
)
def test_libraries_are_masked_where_there_is_nothing_else(
    roles: tuple[str, ...], equivalents: tuple[str, ...], masked: tuple[str, ...]
) -> None:
    task = builders.task([(role, role) for role in roles])
    twins = tuple(script(f"twin-{role}", role) for role in equivalents)
    task = task.evolve(truth=task.truth.evolve(equivalents=twins))
    assert tuple(item.path for item in masked_sources(task)) == masked


def test_scripts_readmes_and_functions_are_looked_for(tmp_path: Path) -> None:
    files = {
        "docs/README.md": b"inner",
        "Readme": b"old",
        "lib.py": b"def f():\n    return 1\n\n\ndef g():\n    return 2\n",
    }
    snapshot = builders.make(tmp_path / "original", files)
    edit = TextEdit(path="lib.py", start=13, end=21, sha256="0" * 64, replacement=MASKED_BODY)
    number = TextEdit(path="estimators.py", start=0, end=1, sha256="0" * 64)
    task = builders.task((("run_experiment.py", "entry"), ("gone.py", "entry")))
    found = {item.path: item.data for item in references(task, snapshot, [number, edit])}
    assert list(found) == ["run_experiment.py", "README.md", "Readme", "lib.py"]
    assert found["lib.py"] == b"def f():\n    return 1"
    assert (found["run_experiment.py"], found["Readme"]) == (builders.RUN.encode(), b"old")
    assert [item.path for item in references(task, snapshot)] == ["run_experiment.py", "README.md", "Readme"]


def test_a_readme_that_is_masked_as_a_source_is_looked_for_once(tmp_path: Path) -> None:
    snapshot = builders.make(tmp_path / "original")
    task = builders.task((("README.md", "entry"),))
    assert [item.path for item in references(task, snapshot)] == ["README.md"]


def test_the_houses_style_is_other_code_once_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "a.py": b"a = 1\n", "b/again.py": b"a = 1\n", "copy.py": builders.RUN.encode(), "data.csv": b"1,2\n",
        "raw.py": b"\0\1", "long.py": b"x = 12\n", "longer.py": b"x = 123\n", "z.sh": b"ls\n",
    }  # fmt: skip
    monkeypatch.setattr(sources, "_MAX_BACKGROUND", 7)
    snapshot = builders.make(tmp_path / "original", files)
    assert list(background(builders.task(), snapshot)) == [b"a = 1\n", b"x = 12\n", b"ls\n"]


@pytest.mark.parametrize(("size", "counts"), [(1 << 20, True), ((1 << 20) + 1, False)])
def test_code_of_more_than_a_megabyte_is_generated(size: int, counts: bool, tmp_path: Path) -> None:
    snapshot = builders.make(tmp_path / "original", {"large.py": b"#" * size})
    assert (size in map(len, background(builders.task(), snapshot))) is counts
