"""The patch is exactly the difference: applied to the masked files it gives the workspace, whatever is in them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaluation.harness.patches import compare, make_patch

NAMES = st.sampled_from(
    ["a.txt", "b/c.py", "b/d.bin", "e f.txt", "ü.txt", ".gitignore", ".gitattributes", 'q"\\.txt', "tab\tdel\x7f\n.txt"]
)
CONTENTS = st.one_of(
    st.binary(max_size=60),
    st.sampled_from([b"", b"one\ntwo\n", b"one\r\ntwo\r\n", b"no newline", b"*\n", b"* text eol=crlf\n", b"\0bin\xff"]),
)
TREES = st.dictionaries(NAMES, st.tuples(CONTENTS, st.booleans()), max_size=6)


def lay(root: Path, files: dict[str, tuple[bytes, bool]]) -> Path:
    root.mkdir(parents=True)
    for name, (content, executable) in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o755 if executable else 0o644)
    return root


def git_apply(tree: Path, patch: bytes) -> None:
    command = ["git", "-c", "core.autocrlf=false", "apply", "--binary", "--whitespace=nowarn", "-"]
    env = {
        "PATH": "/usr/bin:/bin",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(tree.parent),
    }
    subprocess.run(command, cwd=tree, input=patch, check=True, capture_output=True, env=env)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(before=TREES, after=TREES)
def test_the_patch_turns_one_tree_into_the_other(
    before: dict[str, tuple[bytes, bool]],
    after: dict[str, tuple[bytes, bool]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    root = tmp_path_factory.mktemp("trees")
    first, second = lay(root / "first", before), lay(root / "second", after)
    changes = compare(first, second)
    assert bool(changes) == (before != after)
    patch = make_patch(changes)
    if patch:
        git_apply(first, patch)
    assert compare(first, second) == []


def test_links_are_part_of_it_and_git_directories_are_not(tmp_path: Path) -> None:
    first, second = lay(tmp_path / "first", {"a": (b"x", False)}), lay(tmp_path / "second", {"a": (b"x", False)})
    (second / "link").symlink_to("a")
    for name in (".git", "sub/.GIT", "sub/git~1"):
        (second / name).mkdir(parents=True)
        (second / name / "config").write_text("[core]\n")
    changes = compare(first, second)
    assert [change.path for change in changes] == ["link"]
    assert b"new file mode 120000" in make_patch(changes)


def test_no_configuration_of_anybody_takes_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".gitconfig").write_text(
        "[diff]\n\tnoprefix = true\n\texternal = false\n[core]\n\tautocrlf = true\n"
    )
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    first = lay(tmp_path / "first", {"a": (b"x\r\n", False)})
    second = lay(
        tmp_path / "second", {"a": (b"y\r\n", False), ".gitattributes": (b"* diff=evil filter=evil binary\n", False)}
    )
    patch = make_patch(compare(first, second))
    assert b"--- a/a" in patch
    assert b"+y\r\n" in patch


def test_described_for_people(tmp_path: Path) -> None:
    first = lay(tmp_path / "first", {"gone": (b"x", False), "same": (b"s", False), "mode": (b"m", False)})
    second = lay(tmp_path / "second", {"new": (b"\0\1", False), "same": (b"s", False), "mode": (b"m", True)})
    found = [(c.path, c.described.action, c.described.size, c.described.binary) for c in compare(first, second)]
    assert found == [("gone", "deleted", 0, False), ("mode", "modified", 1, False), ("new", "added", 2, True)]
