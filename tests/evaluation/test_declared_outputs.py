"""Declared outputs: what is one, what is deleted before the run, and that no link leads a deletion out of the tree."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from evaluation.checkout import PatchedPath
from evaluation.declared_outputs import Output, clear_outputs, declared_outputs, is_produced, without_copies
from pipeline.digests import file_digest, text_digest
from pipeline.sandbox.base import ProducedFile, RunResult
from pipeline.schema import Problem, Severity


class Tree:
    """Stands for a checkout: a directory, and what a patch changed in it."""

    def __init__(self, root: Path, files: Mapping[str, str], changed: Mapping[str, str] | None = None) -> None:
        self.tree = root / "tree"
        self.tree.mkdir()
        for name, text in files.items():
            (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
            (self.tree / name).write_text(text)
        self.changed = changed or {}

    def changes(self) -> tuple[PatchedPath, ...]:
        return tuple(PatchedPath(path=path, action=action) for path, action in self.changed.items())

    def clear(self, *declared: str) -> tuple[dict[str, str], list[Problem]]:
        problems: list[Problem] = []
        outputs = list(declared_outputs(declared, []))
        return clear_outputs(self, outputs, problems), problems  # type: ignore[arg-type]

    def left(self) -> set[str]:
        return {p.relative_to(self.tree).as_posix() for p in self.tree.rglob("*") if p.is_symlink() or p.is_file()}


# --- what is declared


@pytest.mark.parametrize(
    ("declared", "pattern"),
    [
        ("out.csv", "out.csv"), ("./out.csv", "out.csv"), ("  out.csv ", "out.csv"), ("/work/out.csv", "out.csv"),
        ("a/../out.csv", "out.csv"), ("a//b/", "a/b"), ("a/./b", "a/b"), ("..hidden/x", "..hidden/x"),
        ("work/x", "work/x"), ("results", "results"), ("*.csv", "*.csv"), ("a/work/x", "a/work/x"),
        ("/etc/passwd", None), ("../x", None), ("a/../../x", None), ("..", None), ("a/../..", None), ("//etc", None),
        ("/work/../x", None), ("/work", None),
    ],
)  # fmt: skip
def test_an_output_is_a_path_below_the_root(declared: str, pattern: str | None) -> None:
    problems: list[Problem] = []
    assert list(declared_outputs([declared], problems)) == [Output(declared, pattern)]
    said = [(problem.component, problem.where, problem.severity) for problem in problems]
    assert said == ([] if pattern else [("evaluation.execution", declared, Severity.WARNING)])
    assert all("outside the repository" in problem.message for problem in problems)


@pytest.mark.parametrize(
    "declared",
    ["", " ", ".", "./", "/work/", "a/..", "response.json", "./response.json", "/work/reproduce.sh", "reproduce.sh",
     *(f"run{suffix}" for suffix in ([".py", ".sh", ".bash", ".ipynb", ".r", ".R", ".jl", ".c", ".cc", ".cpp", ".cu", ".m", ".pl", ".js", ".ts"]))],
)  # fmt: skip
def test_scripts_and_the_submissions_own_files_are_none(declared: str) -> None:
    problems: list[Problem] = []
    assert list(declared_outputs([declared], problems)) == []
    [problem] = problems
    assert (problem.where, problem.severity) == (declared, Severity.WARNING)
    assert "it is none" in problem.message


def test_what_is_declared_twice_is_one_output_and_the_order_stays() -> None:
    problems: list[Problem] = []
    found = list(declared_outputs(["b", "a", "b", "/x", "a.py", "/x"], problems))
    assert [output.declared for output in found] == ["b", "a", "/x"]
    assert [problem.where for problem in problems] == ["/x", "a.py"]


# --- what is removed before the run


def test_a_declared_file_goes_whoever_brought_it(tmp_path: Path) -> None:
    tree = Tree(tmp_path, {"out.csv": "theirs", "own.csv": "shipped", "in.csv": "kept"}, {"own.csv": "added"})
    shipped, problems = tree.clear("out.csv", "own.csv")
    assert tree.left() == {"in.csv"}
    assert shipped == {}
    [problem] = problems
    assert (problem.where, problem.severity) == ("own.csv", Severity.INFO)
    assert "deleted before the run" in problem.message


@pytest.mark.parametrize("declared", ["results", "results/", "results/*", "*.csv", "results/[ab].csv", "results/?.csv"])
def test_of_a_directory_or_a_pattern_only_what_the_patch_holds_goes(tmp_path: Path, declared: str) -> None:
    tree = Tree(tmp_path, {"results/a.csv": "shipped", "results/b.csv": "input data"}, {"results/a.csv": "modified"})
    assert tree.clear(declared)[0] == {}
    assert tree.left() == {"results/b.csv"}


def test_what_the_patch_ships_elsewhere_is_kept_and_known_by_its_digest(tmp_path: Path) -> None:
    tree = Tree(tmp_path, {"d/data.csv": "1,2", "run.py": "x", "old": "o"}, {"d/data.csv": "added", "run.py": "added"})
    shipped, problems = tree.clear("out.csv")
    assert shipped == {"d/data.csv": file_digest(tree.tree / "d" / "data.csv")}  # a script is no data
    assert tree.left() == {"d/data.csv", "run.py", "old"}
    assert problems == []


def test_scripts_below_a_declared_directory_stay(tmp_path: Path) -> None:
    tree = Tree(
        tmp_path, {"results/plot.PY": "x", "results/a": "x"}, dict.fromkeys(("results/plot.PY", "results/a"), "added")
    )
    assert tree.clear("results")[0] == {}
    assert tree.left() == {"results/plot.PY"}


def test_a_file_that_the_patch_deleted_is_not_shipped(tmp_path: Path) -> None:
    tree = Tree(tmp_path, {"results/a": "x", "b": "y"}, {"results/a": "deleted", "b": "deleted"})
    assert tree.clear("results") == ({}, [])
    assert tree.left() == {"results/a", "b"}


def test_outputs_outside_of_the_tree_delete_nothing(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("x")
    tree = Tree(tmp_path, {"etc/passwd": "x"}, {"etc/passwd": "added"})
    shipped, _ = tree.clear("/etc/passwd", "../x")
    assert set(shipped) == {"etc/passwd"}
    assert tree.left() == {"etc/passwd"}
    assert (tmp_path / "x").exists()


@pytest.mark.parametrize("kind", ["file", "directory", "link", "link to a directory", "dangling"])
def test_the_response_goes_whatever_it_is_and_nothing_behind_it(tmp_path: Path, kind: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    tree = Tree(tmp_path, {"lib": "x"})
    path = tree.tree / "response.json"
    if kind == "file":
        path.write_text("{}")
    elif kind == "directory":
        path.mkdir()
        (path / "inner").symlink_to(outside)
        (path / "file").write_text("x")
    else:
        path.symlink_to({"link": outside / "kept", "dangling": tmp_path / "nothing"}.get(kind, outside))
    tree.clear()
    assert tree.left() == {"lib"}
    assert not path.is_symlink()
    assert (outside / "kept").read_text() == "x"


# --- links: an agent's link could make this machine delete files of its own


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Files of this machine that no declared output may reach."""
    directory = tmp_path / "outside"
    (directory / "results").mkdir(parents=True)
    for name in ("results/a.csv", "a.csv"):
        (directory / name).write_text("of this machine")
    return directory


def everything(root: Path) -> dict[str, str]:
    return {path.relative_to(root).as_posix(): path.read_text() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("link", "target", "declared"),
    [
        ("results", "results", "results"), ("results", "results", "results/a.csv"), ("results", "results", "*.csv"),
        ("deep/results", "results", "deep"), ("deep", ".", "deep/results/a.csv"), ("deep", ".", "deep/results"),
        ("a.csv", "a.csv", "a.csv"), ("results/a.csv", "a.csv", "results"), ("results/a.csv", "a.csv", "results/*"),
    ],
)  # fmt: skip
def test_no_link_is_followed_as_a_name_or_above_one(
    tmp_path: Path, outside: Path, link: str, target: str, declared: str
) -> None:
    before = everything(outside)
    names = (link, f"{link}/a.csv", f"{link}/results/a.csv", "a.csv")
    tree = Tree(tmp_path, {"lib": "x"}, dict.fromkeys(names, "added"))
    path = tree.tree / link
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(outside / target)
    shipped, problems = tree.clear(declared)
    assert everything(outside) == before
    assert (shipped, problems) == ({}, [])  # nor is what lies behind one read, or taken for the agent's
    assert path.is_symlink()


def test_links_within_the_tree_are_not_followed_either(tmp_path: Path) -> None:
    """Followed, a file that is no output would go under the name of one."""
    tree = Tree(tmp_path, {"data/a.csv": "input"}, {"results/a.csv": "added"})
    (tree.tree / "results").symlink_to("data")
    (tree.tree / "round").symlink_to(".")
    assert tree.clear("results/a.csv", "round") == ({}, [])
    assert (tree.tree / "data" / "a.csv").read_text() == "input"


# --- what counts as produced


def produced(*items: tuple[str, str, int]) -> RunResult:
    files = tuple(ProducedFile(path=path, sha256=digest, size=size) for path, digest, size in items)
    return RunResult(commands=(), produced=files)


def test_a_copy_of_what_was_shipped_is_not_produced() -> None:
    shipped, problems = {"a.csv": "1", "b.csv": "1", "c.csv": "2", "empty": "0"}, list[Any]()
    result = produced(("copy", "1", 5), ("own", "9", 5), ("nothing", "0", 0), ("other", "2", 1))
    assert [item.path for item in without_copies(result, shipped, problems).produced] == ["own", "nothing"]
    assert [(problem.where, problem.severity) for problem in problems] == [
        ("copy", Severity.WARNING), ("other", Severity.WARNING),
    ]  # fmt: skip
    assert "a copy of a.csv, " in problems[0].message  # the first of that content is named
    assert without_copies(result, {}, problems) == result


@pytest.mark.parametrize(
    ("pattern", "path", "made"),
    [
        ("out", "out", True), ("out", "out/a", True), ("out", "outer", False), ("out", "x/out", False),
        ("out/a", "out", False), ("*.csv", "a.csv", True), ("*.csv", "d/a.csv", True), ("*.csv", "A.CSV", False),
        ("?.csv", "a.csv", True), ("?.csv", "ab.csv", False), ("[ab].csv", "b.csv", True), ("[ab].csv", "c.csv", False),
        ("[ab].csv", "[ab].csv", True), ("d/*", "d/e/f", True), ("d?", "d1/x", False), (None, "out", False),
        ("a.b", "axb", False), ("", "a", False),
    ],
)  # fmt: skip
def test_what_an_output_means(pattern: str | None, path: str, made: bool) -> None:
    assert is_produced(Output("d", pattern), produced(("other", "1", 1), (path, "2", 1))) == made


def test_digests_are_of_the_bytes(tmp_path: Path) -> None:
    tree = Tree(tmp_path, {"data": "x\n"}, {"data": "added"})
    assert tree.clear()[0] == {"data": text_digest("x\n")}
