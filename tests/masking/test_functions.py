"""Masking single functions: bodies go, the rest is the same byte for byte, and the gate knows why the run fails."""

from __future__ import annotations

import ast
import re
import textwrap
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from masking import functions
from masking.apply import apply_mask
from masking.edits import derive_edits, recipe_of
from masking.functions import (
    MASKED_BODY,
    MASKED_PARAMETERS,
    FunctionPolicy,
    function_names,
    function_sources,
    mask_functions,
    names_at,
)
from masking.leaks import scan_leaks
from masking.numbers import BLOCKING
from masking.partial import MaskPolicy
from masking.plan import plan_mask
from masking.records import MaskPlan, TextEdit
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.task import CodeEvidence, Requirement, Task, Verdict
from tests.masking import builders
from tests.masking.test_roundtrip import go, validated

SOURCE = '''\
"""Module."""
import math


class Solver:
    """A solver."""

    steps = 3

    @property
    def rate(self): return 1 / self.steps  # the answer

    def run(self, x: float, *, scale: float = 2.0) -> float:
        # café: the trick
        """Run it.

        More words.
        """
        def inner(y):
            return y * scale
        return inner(math.sqrt(x))  # so


async def fetch(
    a,
    b,
):
    if a:
        return b
    # last words
    return a


def nothing():
    """Only words."""


def stub(): ...
'''


def masked(data: bytes, edits: tuple[TextEdit, ...]) -> bytes:
    for edit in sorted(edits, key=lambda item: item.start, reverse=True):
        data = data[: edit.start] + edit.replacement.encode() + data[edit.end :]
    return data


def test_bodies_are_replaced_and_everything_else_stays() -> None:
    data = SOURCE.encode()
    edits = mask_functions("a.py", data, ["Solver", "fetch"])
    text = masked(data, edits).decode()
    tree = ast.parse(text)
    assert text.count(MASKED_BODY) == 3
    for gone in ("trick", "inner", "math.sqrt", "the answer", "so\n", "last words", "if a"):
        assert gone not in text
    for kept in ('"""A solver."""', "More words.", "scale: float = 2.0", "steps = 3", "@property", "import math"):
        assert kept in text
    assert ast.unparse(tree.body[2].body[-1].args) == "self, x: float, *, scale: float=2.0"
    assert derive_edits("a.py", data, masked(data, edits)) == edits


def test_the_policy_decides_on_docstrings_and_signatures() -> None:
    data = SOURCE.encode()
    policy = FunctionPolicy(docstrings="remove", signatures="remove")
    text = masked(data, mask_functions("a.py", data, ["Solver.run"], policy)).decode()
    assert "More words" not in text
    assert "scale" not in text
    assert "-> float" in text
    assert '"""A solver."""' in text
    ast.parse(text)
    assert derive_edits("a.py", data, text.encode()) == mask_functions("a.py", data, ["Solver.run"], policy)


@pytest.mark.parametrize(
    ("source", "names", "message"),
    [
        (b"print 'old'\ndef f(x):\n    return x\n", ["f"], "not Python 3"),
        (b"def f(x:\n    return x\n", ["f"], "not Python 3"),
        (b"# coding: latin-1\ndef f(x):\n    return '\xe9'\n", ["f"], "not Python 3 in UTF-8"),
        (SOURCE.encode(), ["missing", "fetch"], "no function or class missing"),
        (SOURCE.encode(), ["nothing", "stub"], "there is no body"),
    ],
)
def test_what_cannot_be_masked_says_why(source: bytes, names: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mask_functions("a.py", source, names)


def test_a_mask_that_would_not_parse_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "MASKED_BODY", "raise (")
    with pytest.raises(ValueError, match="masking its functions would break it"):
        mask_functions("a.py", SOURCE.encode(), ["fetch"])


def test_names_come_from_lines() -> None:
    data = SOURCE.encode()
    assert function_names(data) == (
        "Solver.rate", "Solver.run", "Solver.run.inner", "fetch", "nothing", "stub",
    )  # fmt: skip
    line = SOURCE[: SOURCE.index("return y * scale")].count("\n") + 1
    assert names_at(data, [(line, line)]) == ("Solver.run",)
    assert names_at(data, [(1, 2)]) == ()
    assert names_at(data, [(1, 10_000)]) == ("Solver.rate", "Solver.run", "fetch", "nothing", "stub")
    end = SOURCE.count("\n")
    assert names_at(data, [(end, end)]) == names_at(data, [(end, end + 9)]) == ("stub",)
    assert names_at(data, [(end + 1, end + 9), (0, 13), (13, 12)]) == ()


def test_every_line_belongs_to_the_outermost_function_that_holds_it() -> None:
    tree = ast.parse(SOURCE)
    methods = [(item, "Solver.") for node in tree.body if isinstance(node, ast.ClassDef) for item in node.body]
    expected: dict[int, tuple[str, ...]] = {}
    for node, prefix in [*((node, "") for node in tree.body), *methods]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = range(node.lineno, (node.end_lineno or 0) + 1)
            expected |= dict.fromkeys(lines, (prefix + node.name,))
    found = {line: names_at(SOURCE.encode(), [(line, line)]) for line in range(1, SOURCE.count("\n") + 1)}
    assert {line: names for line, names in found.items() if names} == expected


@pytest.mark.parametrize(
    ("source", "kept", "removed"),
    [
        ("def f():\n    r'''doc'''\n    x = 1\n", "def f():\n    r'''doc'''\n    BODY\n", "def f(ARGS):\n    r'''TEXT'''\n    BODY\n"),
        ("def f(a):\n    ''\n    x = 1\n", "def f(a):\n    ''\n    BODY\n", "def f(ARGS):\n    ''\n    BODY\n"),
        ("def f():\n    'doc'; x = 1\n", "def f():\n    BODY\n", "def f(ARGS):\n    BODY\n"),
        ("def f(): 'doc'; return 2  # why\n", "def f(): BODY  #TEXT\n", "def f(ARGS): BODY  #TEXT\n"),
        ("def f():\n    'a' 'b'\n    return 1\n", "def f():\n    BODY\n", "def f(ARGS):\n    BODY\n"),
        # comments around the body go, an empty one has nothing to say
        ("def f():\n    # a\n    #\n    x = 1\n    # b\nelse_ = 1  # c\n", "def f():\n    #TEXT\n    #\n    BODY\n    # b\nelse_ = 1  # c\n", None),
        ("def f(a,  # the é\n      b):\n    return 1\n", "def f(a,  #TEXT\n      b):\n    BODY\n", "def f(ARGS):\n    BODY\n"),
        ("é = 'é'  # é\ndef f(): return é  # é\né = 2\n", "é = 'é'  # é\ndef f(): BODY  #TEXT\né = 2\n", None),
        ("def f():\n    return 1", "def f():\n    BODY", "def f(ARGS):\n    BODY"),
    ],
)  # fmt: skip
def test_what_is_left_of_a_function(source: str, kept: str, removed: str | None) -> None:
    words = {"BODY": MASKED_BODY, "TEXT": "[masked]", "ARGS": "" if "def f()" in source else MASKED_PARAMETERS}
    data = source.encode()
    for expected, policy in ((kept, None), (removed, FunctionPolicy(docstrings="remove", signatures="remove"))):
        if expected is not None:
            found = masked(data, mask_functions("a.py", data, ["f"], policy)).decode()
            assert found == re.sub("BODY|TEXT|ARGS", lambda match: words[match[0]], expected)


@pytest.mark.parametrize(
    ("source", "right"),
    [
        (b"# coding: ascii\ndef f():\n    return 1\n", True), (b"# coding: UTF-8\ndef f():\n    return 1\n", True),
        (b"# coding: latin-1\ndef f():\n    return 1\n", False), (b"\xef\xbb\xbfdef f():\n    return 1\n", False),
        (b"def f():\n    return 1\0\n", False), (b"def f():\n    return 1 is 1\n", True),
    ],
)  # fmt: skip
def test_which_files_can_be_masked_in_parts(source: bytes, right: bool) -> None:
    if right:
        assert function_names(source) == ("f",)
        return
    with pytest.raises(ValueError, match=r"it is not Python 3 in UTF-8|is not plain UTF-8"):
        function_names(source)


def test_a_name_that_begins_like_another_is_another() -> None:
    data = b"def run():\n    return 1\n\n\ndef run_all():\n    return 2\n\n\nclass A:\n    def run(self):\n        return 3\n"
    assert masked(data, mask_functions("a.py", data, ["run"])).count(MASKED_BODY.encode()) == 1
    assert [edit.start for edit in mask_functions("a.py", data, ["A.run", "run"])] == [
        data.index(b"return 1"),
        data.index(b"return 3"),
    ]
    assert names_at(data, [(1, 11)]) == ("run", "run_all", "A.run")


def test_a_stub_with_something_inside_keeps_only_its_own_words() -> None:
    """A method without a body of its own may hold a function that has one."""
    data = b"class A:\n    def f(self):\n        ...\n\n    def g(self):\n        return 1\n"
    assert masked(data, mask_functions("a.py", data, ["A"])) == data.replace(b"return 1", MASKED_BODY.encode())


def test_the_sources_of_masked_functions_are_whole_and_begin_at_the_margin() -> None:
    data = SOURCE.encode()
    edits = mask_functions("a.py", data, ["Solver.run", "fetch"], FunctionPolicy(signatures="remove"))
    found = function_sources(data, edits).decode()
    start, end = SOURCE.index("    def run"), SOURCE.index("\n\n\nasync")
    second, last = SOURCE.index("async"), SOURCE.index("\n\n\ndef nothing")
    assert found == textwrap.dedent(SOURCE[start:end]) + "\n\n" + SOURCE[second:last]
    assert function_sources(data, []) == b""
    assert function_sources(b"not python (", [edit.evolve(replacement="[masked]") for edit in edits]) == b""


statements = st.sampled_from(
    ["x = 1", "return x", "if x:\n    y = 2\nelse:\n    y = 3", "# note\nz = '#'", 'w = """a\nb"""', "pass", "t = 'é'"]
)


def indented(text: str) -> str:
    """In a function; lines of a text stay where they are."""
    return "\n".join(line if line == 'b"""' else f"    {line}" for line in text.split("\n"))


@settings(deadline=None, max_examples=40)
@given(st.lists(statements, min_size=1, max_size=5), st.booleans(), st.booleans(), st.integers(0, 2))
def test_any_body_is_replaced_by_one_statement(body: list[str], doc: bool, remove: bool, blank: int) -> None:
    lines = ['    """Words: 1."""'] if doc else []
    source = "def f(x, y=1):\n" + "\n" * blank + "\n".join([*lines, *map(indented, body)]) + "\n\n\nAFTER = f\n"
    data = source.encode()
    policy = FunctionPolicy(docstrings="remove" if remove else "keep")
    if all(statement == "pass" for statement in body):
        with pytest.raises(ValueError, match="no body"):
            mask_functions("a.py", data, ["f"], policy)
        return
    edits = mask_functions("a.py", data, ["f"], policy)
    result = masked(data, edits)
    function = ast.parse(result).body[0]
    assert isinstance(function, ast.FunctionDef)
    rest = function.body[1:] if doc else function.body
    assert [ast.unparse(item) for item in rest] == ["raise NotImplementedError('[masked]')"]
    assert result.endswith(b"\n\n\nAFTER = f\n")
    assert b"note" not in result
    assert (b"Words" in result) == (doc and not remove)
    assert b"".join(function_sources(data, edits).split()) == b"".join(source.split("\n\n\nAFTER")[0].encode().split())


# --- in a repository -------------------------------------------------------------------------------------------------

LIBRARY = (("estimators.py", "library"),)
OTHER = {"examples/mean.py": b"from estimators import plain_mean\n\nprint(plain_mean([1, 2]))\n"}


def library_task() -> Task:
    """A chain of one library file, of which the requirement names one function."""
    task = builders.task(LIBRARY)
    line = builders.ESTIMATORS[: builders.ESTIMATORS.index("ordered = ")].count("\n") + 1
    span = CodeEvidence(path="estimators.py", start=line, end=line + 3)
    return task.evolve(truth=task.truth.evolve(requirements=(Requirement(text="Trim the mean.", spans=(span,)),)))


def test_a_library_that_others_use_loses_only_what_answers_the_question(tmp_path: Path) -> None:
    snapshot = builders.make(tmp_path / "original", OTHER)
    plan = plan_mask(library_task(), snapshot)
    item = next(item for item in plan.paths if item.path == "estimators.py")
    assert (item.action, item.reason.split(":")[0]) == ("edited", "bodies of trimmed_mean")
    repository = apply_mask(snapshot, plan, tmp_path / "masked").path
    text = (repository / "estimators.py").read_text()
    assert "sum(values) / len(values)" in text
    assert "ordered" not in text
    report = scan_leaks(repository, snapshot=snapshot, plan=plan, task=library_task())
    assert not [hit for hit in report.hits if hit.score >= BLOCKING]
    recipe = recipe_of(snapshot.root, repository, plan.paths)
    assert recipe is not None
    again = apply_mask(snapshot, MaskPlan(paths=plan.paths, edits=recipe.edits), tmp_path / "again")
    assert again.commit == recipe.commit


def test_a_copy_of_a_masked_function_is_found_elsewhere(tmp_path: Path) -> None:
    code = builders.ESTIMATORS[builders.ESTIMATORS.index("def trimmed_mean") :]
    snapshot = builders.make(tmp_path / "original", {**OTHER, "lib/copied.py": code.encode()})
    plan = plan_mask(library_task(), snapshot)
    assert "lib/copied.py" in plan.with_action("removed")
    repository = apply_mask(snapshot, plan, tmp_path / "masked").path
    (repository / "notes.py").write_text(code)
    report = scan_leaks(repository, snapshot=snapshot, plan=plan, task=library_task())
    assert any(hit.where == "notes.py" and hit.score >= BLOCKING for hit in report.hits)


@pytest.mark.parametrize("change", ["nobody imports it", "whole files", "not Python 3", "every function"])
def test_a_library_goes_as_a_whole_where_functions_make_no_sense(change: str, tmp_path: Path) -> None:
    files = {} if change == "nobody imports it" else dict(OTHER)
    if change == "not Python 3":
        files["estimators.py"] = builders.ESTIMATORS.encode() + b"print 'old'\n"
    if change == "nobody imports it":
        files |= {"run_experiment.py": b"print('none')\n", "tests/test_estimators.py": b""}
    task = library_task()
    if change == "every function":
        span = CodeEvidence(path="estimators.py", start=1, end=20)
        task = task.evolve(truth=task.truth.evolve(requirements=(Requirement(text="All.", spans=(span,)),)))
    snapshot = builders.make(tmp_path / "original", files)
    policy = MaskPolicy(level="file") if change == "whole files" else None
    plan = plan_mask(task, snapshot, policy=policy)
    assert "estimators.py" in plan.with_action("removed")
    told = [problem.message for problem in plan.problems if problem.where == "estimators.py"]
    assert bool(told) == (change == "not Python 3")


def test_a_person_names_the_functions_and_the_round_trip_knows_why_it_fails(tmp_path: Path) -> None:
    snapshot = builders.make(tmp_path / "original")
    task = validated(builders.task())
    policy = MaskPolicy(functions=("run_experiment.py::squared_errors", "run_experiment.py::shrinkage_weight"))
    plan = plan_mask(task, snapshot, policy=policy)
    assert "run_experiment.py" in plan.with_action("edited")
    result = go(tmp_path, snapshot, task=task, plan=plan)
    assert result.verdict is Verdict.PASS, result
    assert "not implemented (masked)" in result.masked_failure


@pytest.mark.parametrize("name", ["nowhere.py::f", "run_experiment.py::missing", "README.md::f", "run_experiment.py"])
def test_a_function_that_is_not_there_is_refused(name: str, tmp_path: Path) -> None:
    snapshot = builders.make(tmp_path / "original")
    with pytest.raises(ExpbenchError) as caught:
        plan_mask(builders.task(), snapshot, policy=MaskPolicy(functions=(name,)))
    assert caught.value.kind is FailureKind.USAGE
