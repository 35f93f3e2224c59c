"""Repositories as they should not be: nothing is fatal, and what was not read, parsed or understood is said."""

import json
import os
import string

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.errors import ExpbenchError
from pipeline.locator import TaskQuery, build_index, locate
from pipeline.locator.directory import directory_snapshot
from pipeline.locator.shell import parse_shell
from tests.pipeline.locator.repositories import PROJECT, make

QUERY = TaskQuery(question="What accuracy does training reach on spirals?", method="Train on spirals.")
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "a" * 64 + "\nsize 12345\n"
SPOILED = {
    "syntax.py": ("def f(:\n", "not valid Python 3"),
    "py2.py": ("print 'spirals'\n", "not valid Python 3"),
    "deep.py": ("x = " + "(" * 5000 + ")" * 5000 + "\n", "not valid Python 3"),
    "nested.py": ("x = a" + ".b" * 5000 + "\n", "not valid Python 3"),
    "huge.py": ("x = 1\n" * 260_000, "data or generated"),
    "generated.py": ("# Auto-generated\nx = 1\n", "written by a program"),
    "long.py": ("x = '" + "spirals " * 10_000 + "'\n", "written by a program"),
    "binary.py": (bytes(range(256)), "binary"),
    "wide.py": ("print('spirals')\n".encode("utf-16"), "UTF-16"),
    "latin.py": (b"# caf\xe9\nprint('spirals')\n", "not UTF-8"),
    "broken.ipynb": ("{", "no notebook that can be read"),
    "number.ipynb": ('{"cells": 3}', "no notebook that can be read"),
    "nested.ipynb": ("[" * 50_000 + "]" * 50_000, "no notebook that can be read"),
    "pointer.py": (POINTER, "Git LFS pointer"),
    "one.py": ("import two\n", "circle"),
    "two.py": ("import one\n", "circle"),
    "Same.py": ("x = 1\n", "capitals"),
    "same.py": ("x = 1\n", "capitals"),
    "data.json": ("[" + "1," * 40_000 + "1]", "data and not configuration"),
    "sub/.keep": ("", None),
}


def problems(root):
    found = locate(build_index(directory_snapshot(root)), QUERY)
    return found, [*directory_snapshot(root).problems, *found.problems]


def test_each_spoiled_file_is_named_and_none_is_fatal(tmp_path):
    make(tmp_path, PROJECT | {path: content for path, (content, _) in SPOILED.items()})
    (tmp_path / ".gitmodules").write_text('[submodule "x"]\n\tpath = third/party\n\turl = https://x.invalid/y\n')
    found, said = problems(tmp_path)
    assert found.ranked[0].path == "train.py"
    for path, (_, words) in SPOILED.items():
        if words is not None:
            assert any(words in item.message and path in f"{item.where} {item.message}" for item in said), path
    assert any(item.where == "third/party" and "not checked out" in item.message for item in said)
    pointers = [item for item in said if "pointer.py" in f"{item.where} {item.message}"]
    assert len(pointers) == 1  # not a syntax error besides


def test_a_byte_order_mark_is_no_syntax_error(tmp_path):
    make(tmp_path, {"train.py": b"\xef\xbb\xbfimport json\nprint('spirals accuracy')\n"})
    found, said = problems(tmp_path)
    assert not said
    assert found.ranked[0].path == "train.py"


def test_names_that_are_no_text_and_links_are_told_and_not_followed(tmp_path):
    make(tmp_path, {"train.py": "print('spirals')\n", "with space.py": "x = 1\n", "new\nline.py": "print('spirals')\n"})
    with open(os.fsencode(tmp_path) + b"/bad\xff.py", "wb") as stream:  # noqa: PTH123 - a name of bytes
        stream.write(b"print('spirals')\n")
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "secret.py").symlink_to("/etc/passwd")
    found, said = problems(tmp_path)
    assert {source.path for source in found.ranked} == {"train.py", "with space.py", "new\nline.py"}
    assert {"bad\\xff.py", "loop", "secret.py"} <= {item.where for item in said}


def test_a_part_of_a_work_tree_says_that_the_rest_is_not_seen(tmp_path):
    make(tmp_path / "project", {"a/train.py": "print('spirals')\n"})
    (tmp_path / "project" / ".git").mkdir()
    assert directory_snapshot(tmp_path / "project").problems == ()
    (problem,) = directory_snapshot(tmp_path / "project" / "a").problems
    assert "only a of the git repository project" in problem.message


def test_documentation_alone_is_not_found(tmp_path):
    make(tmp_path, {"README.md": "# Spirals\n"})
    found, _ = problems(tmp_path)
    assert found.chain is None
    assert found.not_found.reason == "the repository holds no readable code"


LOOPS = "".join(f"for v{level} in {{1..200}}; do\n" for level in range(6))


@pytest.mark.parametrize(
    "text",
    [
        "for i in {1..100000000000}; do python a.py $i; done",
        "for i in {1..%s}; do python a.py $i; done" % ("9" * 5000),
        LOOPS + "echo\n" + "done\n" * 6,
        LOOPS + "x=1\n" + "done\n" * 6,
        "A=xxxxxxxxxx\n" + 'A="$A$A"\n' * 60 + "python a.py $A\n",
        "for i in {1..200}; do\nA=x$A$A\ndone\npython a.py $A",
        "for i in 1; do\n" * 5000 + "python a.py\n" + "done\n" * 5000,
    ],
)
def test_shell_that_spells_out_without_end_is_read_in_bounds(text):
    found = parse_shell(text)
    assert len(found) <= 256
    assert sum(len(word) for item in found for word in item.argv) < 100_000


FRAGMENTS = st.sampled_from(
    [
        "import a\n", "from . import b\n", "def f(:\n", "class C:\n  pass\n", "print 'x'\n", "if __name__ == '__main__':\n",
        "    f()\n", "\t", "\ufeff", "\0", "é\n", "'''", "python a.py --x $y\n", "for i in {1..9}; do\n", "done\n", "a: &a [*a]\n",
        "{", "[", '{"cells": [{"cell_type": "code", "source": ["x=1\\n"]}]}', "defaults:\n - x: y\n", "train:\n\tpython a.py\n",
        "# train spirals accuracy\n", "`python a.py`\n", "```\n", "cd ..\n", "$(", "\\\n", "@hydra.main(config_name='c')\n",
    ]
)  # fmt: skip
CONTENT = st.one_of(st.lists(FRAGMENTS, max_size=8).map("".join).map(str.encode), st.binary(max_size=60))
STEMS = st.text(string.ascii_letters + " -_é\n[", min_size=1, max_size=4)
ENDINGS = st.sampled_from([".py", ".ipynb", ".sh", ".yaml", ".json", ".toml", ".md", ".rst", "/__init__.py", "/a.py"])
NAMES = st.one_of(
    st.builds("{}{}".format, STEMS, ENDINGS), st.sampled_from(["a.py", "b.py", "Makefile", "README.md", ".gitmodules"])
)


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files=st.dictionaries(NAMES, CONTENT, min_size=1, max_size=7))
def test_no_repository_breaks_the_search_and_it_says_the_same_twice(tmp_path_factory, files):
    root = tmp_path_factory.mktemp("fuzz")
    for name, content in files.items():
        path = root / name
        if any(parent.is_file() for parent in path.parents) or path.is_dir():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    try:
        found = locate(build_index(directory_snapshot(root)), QUERY)
    except ExpbenchError as error:
        raise AssertionError(f"{error} is fatal") from error
    assert (found.chain is None) != (found.not_found is None)
    assert json.loads(found.model_dump_json())
    cached = build_index(directory_snapshot(root), cache=root.parent / "cache")
    again = build_index(directory_snapshot(root), cache=root.parent / "cache")
    assert locate(cached, QUERY).ranked == locate(again, QUERY).ranked == found.ranked
