from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipeline.digests import canonical_json, digest_of, tree_digest


def test_equal_values_have_equal_digests_whatever_the_order_of_keys() -> None:
    assert digest_of({"a": 1, "b": [2, 3]}) == digest_of({"b": [2, 3], "a": 1})
    assert digest_of({"a": [1, 2]}) != digest_of({"a": [2, 1]})


def test_not_a_number_has_no_canonical_form() -> None:
    with pytest.raises(ValueError, match="JSON"):
        canonical_json(float("nan"))


def test_a_tree_digest_sees_content_names_modes_and_links(tmp_path: Path) -> None:
    def build(name: str) -> Path:
        root = tmp_path / name
        (root / "sub dir").mkdir(parents=True)
        (root / "sub dir" / "a\nb").write_text("x")
        Path(os.fsdecode(os.fsencode(root) + b"/\xff")).write_text("y")
        (root / "link").symlink_to("sub dir")
        return root

    first, second = build("first"), build("second")
    assert tree_digest(first) == tree_digest(second)
    changes = [
        lambda: (second / "sub dir" / "a\nb").write_text("z"),
        lambda: (second / "sub dir" / "a\nb").chmod(0o755),
        (second / "empty").mkdir,
        lambda: ((second / "link").unlink(), (second / "link").symlink_to("elsewhere")),
    ]
    seen = {tree_digest(first)}
    for change in changes:
        change()
        assert tree_digest(second) not in seen
        seen.add(tree_digest(second))
