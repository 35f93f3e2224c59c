"""Recipes: the spans that a mask overwrote are found again, and give the same repository."""

from __future__ import annotations

import hashlib
from pathlib import Path

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
