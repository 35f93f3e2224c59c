"""Which files lose single functions: those that others use, and those that a person names."""

from __future__ import annotations

from pathlib import Path

import pytest

from masking import partial
from masking.partial import MaskPolicy, PartialMasks, partial_masks
from masking.plan import plan_mask
from masking.sources import masked_sources
from pipeline.errors import ExpbenchError
from pipeline.task import CodeEvidence, Requirement, Task
from pipeline.witness.records import FunctionRun
from tests.masking import builders

LIBRARY = b"def wanted():\n    return 1\n\n\ndef other():\n    return 2\n"


def chain(*paths: str, role: str = "library", line: int = 2) -> Task:
    task = builders.task([(path, role) for path in paths])
    spans = tuple(CodeEvidence(path=path, start=line, end=line) for path in paths)
    return task.evolve(truth=task.truth.evolve(requirements=(Requirement(text="r", spans=spans),)))


def masks(tmp_path: Path, files: dict[str, bytes], task: Task, **policy: object) -> PartialMasks:
    builders.write_tree(tmp_path / "original", files)
    snapshot = builders.snapshot(tmp_path / "original")
    return partial_masks(task, snapshot, masked_sources(task), MaskPolicy.model_validate(policy))


@pytest.mark.parametrize(
    ("path", "user", "code", "partly"),
    [
        ("lib.py", "a.py", b"import lib\n", True), ("lib.py", "a.py", b"x = 1\n  from lib import other\n", True),
        ("lib.py", "a.py", b"from pkg.lib import other\n", True), ("lib.py", "a.py", b"import os, lib\n", True),
        ("lib.py", "a.py", b"import libs\n", False), ("lib.py", "a.py", b"# import lib\n", False),
        ("lib.py", "a.py", b"from os import (path,\n  lib)\n", False), ("lib.py", "a.txt", b"import lib\n", False),
        ("pkg/__init__.py", "a.py", b"import pkg\n", True), ("pkg/__init__.py", "a.py", b"import __init__\n", False),
        ("__init__.py", "a.py", b"import a\n", False),
    ],
)  # fmt: skip
def test_a_library_that_a_kept_file_imports_loses_functions(
    path: str, user: str, code: bytes, partly: bool, tmp_path: Path
) -> None:
    found = masks(tmp_path, {path: LIBRARY, user: code}, chain(path))
    assert found.reasons == (
        {path: "bodies of wanted: they answer the question, others use the rest"} if partly else {}
    )
    assert [LIBRARY[edit.start : edit.end] for edit in found.edits] == ([b"return 1"] if partly else [])
    assert found.problems == []


def test_masked_files_and_huge_ones_import_nothing(tmp_path: Path) -> None:
    files = {"lib.py": LIBRARY, "second.py": b"import lib\n"}
    assert masks(tmp_path, files, chain("lib.py", "second.py")).reasons == {}
    line = b"import lib\n"
    for size, partly in ((1 << 20, True), ((1 << 20) + 1, False)):
        found = masks(tmp_path, {**files, "second.py": line + b"#" * (size - len(line))}, chain("lib.py"))
        assert bool(found.reasons) is partly


@pytest.mark.parametrize(
    ("change", "partly"),
    [({}, True), ({"role": "entry"}, False), ({"line": 3}, False), ({"line": 99}, False), ({"line": 6}, True)],
    ids=str,
)
def test_only_what_the_requirements_name_in_a_chain_of_libraries(
    change: dict[str, object], partly: bool, tmp_path: Path
) -> None:
    files = {"lib.py": LIBRARY, "a.py": b"import lib\n"}
    assert bool(masks(tmp_path, files, chain("lib.py", **change)).reasons) is partly
    assert masks(tmp_path, files, chain("lib.py", **change), level="file").reasons == {}


def test_what_ran_is_masked_too_and_without_requirements_and_a_run_the_file_goes_whole(tmp_path: Path) -> None:
    code = (
        LIBRARY + b"\n\nclass Fit:\n    def run(self):\n        return 3\n\n    def unused(self):\n        return 4\n"
    )
    files = {"lib.py": code, "a.py": b"import lib\n"}
    named = chain("lib.py")
    runs = [("Fit.run", "lib.py"), ("<module>", "lib.py"), ("other", "a.py"), ("wanted.<locals>.g", "lib.py")]
    ran = tuple(FunctionRun(path=path, name=name, line=1, calls=1) for name, path in runs)
    recorded = named.evolve(truth=named.truth.evolve(ran=ran))
    assert masks(tmp_path, files, recorded).reasons == {
        "lib.py": "bodies of wanted, Fit.run: they answer the question, others use the rest"
    }
    alone = recorded.evolve(truth=recorded.truth.evolve(requirements=()))
    assert [code[edit.start : edit.end] for edit in masks(tmp_path, files, alone).edits] == [b"return 3"]
    unknown = named.evolve(truth=named.truth.evolve(requirements=()))
    assert masks(tmp_path, files, unknown).reasons == {}
    removed = plan_mask(unknown, builders.snapshot(tmp_path / "original")).with_action("removed")
    assert "lib.py" in removed


@pytest.mark.parametrize("known", [True, False])
def test_the_scripts_of_a_chain_go_whole_whatever_is_known_of_their_steps(known: bool, tmp_path: Path) -> None:
    """A requirement names lines; the mask of a script that answers the question never depends on them."""
    files = {
        "run.py": b"import lib\n\n\ndef main():\n    return lib.wanted()\n",
        "lib.py": LIBRARY,
        "a.sh": b"python run.py\n",
    }
    task = builders.task([("run.py", "entry"), ("a.sh", "wrapper"), ("lib.py", "library")])
    if known:
        span = CodeEvidence(path="run.py", start=5, end=5)
        run = FunctionRun(path="run.py", name="main", line=4, calls=1)
        task = task.evolve(truth=task.truth.evolve(requirements=(Requirement(text="r", spans=(span,)),), ran=(run,)))
    builders.write_tree(tmp_path, files)
    plan = plan_mask(task, builders.snapshot(tmp_path))
    assert {"run.py", "a.sh"} <= set(plan.with_action("removed"))
    assert [edit for edit in plan.edits if edit.path in {"run.py", "a.sh"}] == []


def test_all_of_a_libraries_functions_are_the_whole_file_and_inner_ones_do_not_count(tmp_path: Path) -> None:
    nested = b"def wanted():\n    def inner():\n        return 1\n    return inner()\n"
    files = {"lib.py": nested, "a.py": b"import lib\n"}
    assert masks(tmp_path, files, chain("lib.py")).reasons == {}


def test_a_library_that_is_no_python_or_is_gone_is_noted_and_the_next_one_done(tmp_path: Path) -> None:
    files = {
        "bad.py": b"print 'old'\n",
        "lib.py": LIBRARY,
        "a.py": b"import lib, bad, gone\n",
        "b.py": b"import gone\n",
    }
    found = masks(tmp_path, files, chain("bad.py", "gone.py", "lib.py"))
    assert list(found.reasons) == ["lib.py"]
    assert [(item.where, item.message.partition(": ")[0]) for item in found.problems] == [
        (path, "masked as a whole, its functions cannot be taken out one by one") for path in ("bad.py", "gone.py")
    ]
    assert found.problems[1].message.endswith("it is not a file of the repository")


def test_what_a_person_names_comes_before_the_rule(tmp_path: Path) -> None:
    files = {"lib.py": LIBRARY, "a.py": b"import lib\n\n\ndef run():\n    return 3\n"}
    found = masks(tmp_path, files, chain("lib.py"), functions=("lib.py::other", "a.py::run"))
    assert found.reasons == {
        "a.py": "bodies of run: a person wants them masked", "lib.py": "bodies of other: a person wants them masked",
    }  # fmt: skip
    assert [files[edit.path][edit.start : edit.end] for edit in found.edits] == [b"return 3", b"return 2"]
    both = masks(tmp_path, files, chain("lib.py"), functions=("lib.py::other", "lib.py::wanted"), level="file")
    assert both.reasons == {"lib.py": "bodies of other, wanted: a person wants them masked"}


def test_what_cannot_be_masked_is_said_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(ExpbenchError) as caught:
        masks(tmp_path, {"lib.py": LIBRARY}, chain("lib.py"), functions=("lib.py::a", "lib.py::b"))
    assert (caught.value.object, caught.value.cause) == ("lib.py::a, b", "it has no function or class a, b")


def test_how_large_a_file_that_imports_may_be() -> None:
    assert partial._MAX_IMPORTER == 1024 * 1024
