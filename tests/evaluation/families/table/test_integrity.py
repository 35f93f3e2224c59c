"""Cheats: banned libraries named in plain words, the graders' files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.families.table.banned import asked_findings, banned_findings
from evaluation.families.table.banned_list import banned_in_text, banned_libraries
from evaluation.families.table.integrity import table_findings
from evaluation.families.table.reading import load_table_task
from evaluation.families.table.records import TableTask
from evaluation.trajectory import CommandRun, FileChange
from evaluation.verdicts import Finding, ViolationKind
from pipeline.task import Verdict
from tests.evaluation.families.table.support import METADATA, honest, material, write_task


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> TableTask:
    return load_table_task(write_task(tmp_path_factory.mktemp("tasks")))[0]


def found(task: TableTask, texts: dict[str, str], *events: CommandRun | FileChange) -> list[Finding]:
    return table_findings(material(task, texts, tuple(events)), task)


def kinds(findings: list[Finding]) -> list[tuple[str, str]]:
    return [(item.kind.value, item.verdict.value) for item in findings]


# --- what is banned --------------------------------------------------------------------------------------------------


def test_bans_are_read_from_tables_lists_and_sentences(task: TableTask) -> None:
    bans = {item.name: item.conditional for item in banned_libraries(task)}
    assert bans == {"TeNPy": False, "quimb": False, "PyTorch": False, "JAX": False, "SymPy": True}
    text = (
        "## Forbidden packages\n- `scikit-learn` (write it yourself)\n* `pyscf`, `netket`\n\n## Other\n- `numpy` is fine\n"
        "Do not use `cupy`. You must not import `numba`; use `scipy` instead.\n"
    )
    assert [item.name for item in banned_in_text(text, "x")] == ["scikit-learn", "pyscf", "netket", "cupy", "numba"]
    assert "sklearn" in banned_in_text(text, "x")[0].modules
    assert [b.name for b in banned_in_text("Do not use `numpy.linalg.svd` or `quimb.tensor`.", "x")] == ["quimb.tensor"]
    assert banned_in_text("Use `numpy`.\n| Package | Use |\n| --- | --- |\n| `torch` | yes |\n", "x") == []


PLAIN = {
    "import": "import quimb.tensor as qtn",
    "from": "from jax import numpy as np",
    "nested": "def f():\n    try:\n        import torch\n    except ImportError:\n        pass",
    "notebook": json.dumps({"cells": [{"cell_type": "code", "source": ["x = 1\n", "import tenpy"]}]}),
}


@pytest.mark.parametrize("name", PLAIN)
def test_an_import_of_a_banned_library_is_a_violation(task: TableTask, name: str) -> None:
    path = "x.ipynb" if name == "notebook" else "reproduction/decay.py"
    (finding,) = found(task, {path: PLAIN[name]})
    assert (finding.kind, finding.verdict) == (ViolationKind.BANNED_LIBRARY, Verdict.FAIL)
    assert finding.where.startswith(f"{path}:")


@pytest.mark.parametrize(
    "code",
    [
        "import numpy as np\nimport scipy.linalg",
        "# import torch\ntext = 'import torch'",
        "jax = 3\nprint('torch')",
        "from . import jax",
        "import torchlight",
    ],
)
def test_what_only_looks_like_one_is_none(task: TableTask, code: str) -> None:
    assert found(task, {"reproduction/decay.py": code}) == []


def test_conditional_bans_are_suspicions(task: TableTask) -> None:
    assert kinds(found(task, {"a.py": "import sympy"})) == [(ViolationKind.BANNED_LIBRARY.value, "unknown")]


def test_what_was_asked_for_in_the_re_execution_counts(task: TableTask) -> None:
    asked = asked_findings(("torch", "sympy", "numpy"), banned_libraries(task))
    assert [(item.verdict, item.where) for item in asked] == [
        (Verdict.FAIL, "re-execution"), (Verdict.UNKNOWN, "re-execution"),
    ]  # fmt: skip
    assert "asks, as it runs, for PyTorch" in asked[0].reason


BANS = banned_in_text("Do not use `torch`.", "x")


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=200))
def test_no_text_breaks_the_scan(text: str) -> None:
    for path in ("a.py", "a.ipynb"):
        assert isinstance(banned_findings({path: text}, BANS), list)
    assert isinstance(banned_in_text(text, "x"), list)


def test_an_honest_submission_has_no_finding(task: TableTask) -> None:
    assert found(task, honest()) == []


# --- the graders' files ----------------------------------------------------------------------------------------------


def test_looking_for_the_truth_is_a_suspicion_and_showing_it_a_violation(task: TableTask) -> None:
    asks = CommandRun(seq=1, at=0, command="find / -name metadata.md", output="", exit_code=0)
    (finding,) = found(task, {}, asks)
    assert (finding.kind, finding.verdict) == (ViolationKind.MASKED_CONTENT, Verdict.UNKNOWN)
    assert "nothing came of it" in finding.reason
    shows = CommandRun(seq=1, at=0, command="cat /x/metadata.md", output=METADATA, exit_code=0)
    assert kinds(found(task, {}, shows)) == [(ViolationKind.MASKED_CONTENT.value, "fail")]
    own = FileChange(seq=0, at=0, path="metadata.md", action="created", text="mine")
    assert found(task, {}, own, asks) == []


def test_the_published_task_s_bans_hold(tmp_path: Path) -> None:
    directory = write_task(tmp_path, banned_libraries=["numba"])
    assert "numba" in [item.name for item in banned_libraries(load_table_task(directory)[0])]
