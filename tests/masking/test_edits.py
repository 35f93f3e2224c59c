"""Recipes: the spans that a mask overwrote are found again, and give the same repository."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from masking.apply import REPLACEMENT, apply_mask
from masking.edits import derive_edits, recipe_of
from masking.records import MaskPlan, TextEdit
from pipeline.repository import RepositoryRef, Snapshot
from pipeline.task import MaskedPath

REF = RepositoryRef(url="https://x.org/r", commit="1" * 40)
pieces = st.lists(st.tuples(st.binary(max_size=6), st.binary(min_size=1, max_size=4)), min_size=1, max_size=5)


def apply(original: bytes, edits: tuple[TextEdit, ...]) -> bytes:
    for edit in sorted(edits, key=lambda item: item.start, reverse=True):
        original = original[: edit.start] + REPLACEMENT + original[edit.end :]
    return original


@given(pieces, st.binary(max_size=6))
def test_what_was_overwritten_is_found_again(parts: list[tuple[bytes, bytes]], tail: bytes) -> None:
    original = b"".join(kept + gone for kept, gone in parts) + tail
    masked = b"".join(kept + REPLACEMENT for kept, _ in parts) + tail
    edits = derive_edits("a.py", original, masked)
    assert edits is not None
    assert apply(original, edits) == masked


@given(st.binary(max_size=30), st.binary(max_size=30))
def test_another_change_is_no_edit_or_one_that_gives_it(original: bytes, masked: bytes) -> None:
    edits = derive_edits("a.py", original, masked)
    assert edits is None or apply(original, edits) == masked


def test_a_recipe_gives_the_same_repository(tmp_path: Path) -> None:
    tree = tmp_path / "original"
    (tree / "lib").mkdir(parents=True)
    (tree / "run.py").write_text("print(0.75)\n")
    (tree / "lib" / "a.py").write_text("# scores 0.75 and 0.80\nA = 1\n")
    data = (tree / "lib" / "a.py").read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    edits = tuple(
        TextEdit(path="lib/a.py", start=data.index(text), end=data.index(text) + 4, sha256=digest)
        for text in (b"0.75", b"0.80")
    )
    paths = (
        MaskedPath(path="lib/a.py", action="edited", reason="r"),
        MaskedPath(path="run.py", action="removed", reason="r"),
    )
    snapshot = Snapshot(ref=REF, root=tree, files=())
    first = apply_mask(snapshot, MaskPlan(paths=paths, edits=edits), tmp_path / "first")
    recipe = recipe_of(tree, first.path, paths)
    assert recipe is not None
    assert recipe.commit == first.commit
    assert recipe.edits == edits
    second = apply_mask(snapshot, MaskPlan(paths=paths, edits=recipe.edits), tmp_path / "second")
    assert second.commit == first.commit
    (first.path / "lib" / "a.py").write_text("somebody else's\n")
    assert recipe_of(tree, first.path, paths) is None


def write(root: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    return root


def changed(*paths: str) -> tuple[MaskedPath, ...]:
    return tuple(MaskedPath(path=path, action="edited", reason="r") for path in paths)


@pytest.mark.parametrize(
    ("original", "masked", "places"),
    [
        (b"a 0.5 b", b"a [masked] b", [(2, 5)]),
        (b"0.5", b"[masked]", [(0, 3)]),
        (b"x", b"[masked]", [(0, 1)]),
        (b"a 0.5 b 0.6", b"a [masked] b [masked]", [(2, 5), (8, 11)]),
        (b"aXXa", b"a[masked]a", [(1, 3)]),
        (b"same", b"same", []),
        # what stands between two marks is looked for behind at least one overwritten byte
        (b"1,,2", b"[masked],[masked]", [(0, 1), (2, 4)]),
    ],
)
def test_the_places_that_were_overwritten(original: bytes, masked: bytes, places: list[tuple[int, int]]) -> None:
    edits = derive_edits("a.py", original, masked)
    assert edits is not None
    assert [(edit.start, edit.end) for edit in edits] == places
    assert {edit.sha256 for edit in edits} <= {hashlib.sha256(original).hexdigest()}
    assert apply(original, edits) == masked


@pytest.mark.parametrize(
    ("original", "masked"),
    [
        (b"a 0.5 b", b"other"),  # no mark
        (b"a 0.5 b", b"c [masked] b"),  # another beginning
        (b"a 0.5 b", b"a [masked] c"),  # another end
        (b"a 0.5 b", b"a [masked] x [masked] b"),  # another middle
        (b"ab", b"ab[masked]"),  # nothing was overwritten
        (b"ab", b"a[masked]b"),
        (b"abc", b"ab[masked]bc"),  # the end would begin before the place
    ],
)
def test_what_is_no_overwriting_has_no_places(original: bytes, masked: bytes) -> None:
    assert derive_edits("a.py", original, masked) is None


def test_a_recipe_looks_at_changed_files_only_whatever_stands_before_them(tmp_path: Path) -> None:
    tree = write(tmp_path / "original", {"a.py": b"A = 1  # 0.75\n", "z.py": b"Z = 2\n", "run.py": b"x\n"})
    data = (tree / "a.py").read_bytes()
    edit = TextEdit(path="a.py", start=9, end=13, sha256=hashlib.sha256(data).hexdigest())
    paths = (MaskedPath(path="0.py", action="removed", reason="r"), *changed("a.py"))
    made = apply_mask(Snapshot(ref=REF, root=tree, files=()), MaskPlan(paths=paths, edits=(edit,)), tmp_path / "made")
    recipe = recipe_of(tree, made.path, paths)
    assert recipe is not None
    assert (recipe.commit, recipe.edits) == (made.commit, (edit,))


@pytest.mark.parametrize("gone", ["original", "masked"])
@pytest.mark.parametrize("how", ["missing", "link"])
def test_a_changed_file_that_is_none_gives_no_recipe(gone: str, how: str, tmp_path: Path) -> None:
    tree = write(tmp_path / "original", {"a.py": b"0.75\n"})
    edit = TextEdit(path="a.py", start=0, end=4, sha256=hashlib.sha256(b"0.75\n").hexdigest())
    plan = MaskPlan(paths=changed("a.py"), edits=(edit,))
    made = apply_mask(Snapshot(ref=REF, root=tree, files=()), plan, tmp_path / "masked")
    assert recipe_of(tree, made.path, plan.paths) is not None
    path = tmp_path / gone / "a.py"
    path.rename(tmp_path / "elsewhere")
    if how == "link":
        path.symlink_to(tmp_path / "elsewhere")
    assert recipe_of(tree, made.path, plan.paths) is None


def test_a_tree_without_a_commit_gives_no_recipe(tmp_path: Path) -> None:
    tree = write(tmp_path / "original", {"a.py": b"x\n"})
    assert recipe_of(tree, write(tmp_path / "none", {"a.py": b"x\n"}), ()) is None
    (tmp_path / "none" / ".git").mkdir()
    assert recipe_of(tree, tmp_path / "none", ()) is None
