from __future__ import annotations

import difflib

from hypothesis import given
from hypothesis import strategies as st

from evaluation.integrity.patch import apply_hunks, parse_patch

LINES = st.lists(st.text(alphabet="ab +-@\\", max_size=6), max_size=12)


@given(LINES, LINES)
def test_applying_a_parsed_patch_gives_the_new_text(old: list[str], new: list[str]) -> None:
    before, after = "".join(f"{line}\n" for line in old), "".join(f"{line}\n" for line in new)
    body = "".join(difflib.unified_diff(before.splitlines(True), after.splitlines(True), "a/x y.py", "b/x y.py"))
    files = parse_patch("diff --git a/x y.py b/x y.py\n" + body)
    assert [file.path for file in files] == ["x y.py"]
    assert apply_hunks(before, files[0].hunks) == after


@given(st.text(max_size=400))
def test_any_text_is_parsed_without_an_error(text: str) -> None:
    assert isinstance(parse_patch(text), list)


def test_added_renamed_deleted_binary_and_quoted() -> None:
    files = parse_patch(
        'diff --git "a/caf\\303\\251.py" "b/caf\\303\\251.py"\nnew file mode 100644\n--- /dev/null\n'
        '+++ "b/caf\\303\\251.py"\n@@ -0,0 +1,2 @@\n+x = 1\n+--- not a header\n'
        "diff --git a/old.py b/new.py\nsimilarity index 100%\nrename from old.py\nrename to new.py\n"
        "diff --git a/gone.py b/gone.py\ndeleted file mode 100644\n--- a/gone.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
        "diff --git a/p.png b/p.png\nnew file mode 100644\nBinary files /dev/null and b/p.png differ\n"
    )
    assert [(file.path, file.action, file.binary) for file in files] == [
        ("café.py", "added", False), ("gone.py", "deleted", False), ("new.py", "modified", False), ("p.png", "added", True),
    ]  # fmt: skip
    assert [(line.number, line.text) for line in files[0].added] == [(1, "x = 1"), (2, "--- not a header")]


def test_a_hunk_that_does_not_fit_is_refused() -> None:
    (file,) = parse_patch("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-one\n+two\n")
    assert apply_hunks("three\n", file.hunks) is None
