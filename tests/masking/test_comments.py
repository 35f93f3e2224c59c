"""Where a file is text and not code: only there may something be overwritten."""

from __future__ import annotations

import json

import pytest

from masking.comments import text_spans


def spans(path: str, text: str) -> list[tuple[str, bool]]:
    data = text.encode()
    return [(data[span.start : span.end].decode(), span.prose) for span in text_spans(path, data)]


@pytest.mark.parametrize("path", ["run.sh", "a.YAML", "conf.toml", "Makefile", "x.r"])
def test_comments_behind_a_number_sign(path: str) -> None:
    text = "# whole line\nvalue: 1 # behind\nurl: a#b\n  # indented\n"
    assert spans(path, text) == [("# whole line", True), ("# behind", True), ("# indented", True)]


@pytest.mark.parametrize("path", ["a.c", "a.cu", "a.JS", "a.go"])
def test_comments_between_slashes(path: str) -> None:
    text = "int a; // one\n/* two\nlines */ int b; /* three */ int c;\n"
    assert spans(path, text) == [("// one", True), ("/* two\nlines */", True), ("/* three */", True)]


@pytest.mark.parametrize("path", ["a.csv", "a.json", "a.bin", "a.md"])
def test_other_formats_have_none(path: str) -> None:
    assert spans(path, "# no // comment /* here */\n") == []


def test_strings_of_python_are_text_but_no_prose() -> None:
    text = (
        '"""Module."""\n'
        "x = 'words'  # behind\n"
        "y = f'{x} 0.9'\n"
        "z = rf'{x}'\n"
        "def f():\n"
        "    'Doc.'\n"
        "    # own line\n"
        "    return r'raw'\n"
        "class A:\n"
        '    """Of A."""\n'
        "print('alone')\n"
        "'a statement'\n"
    )
    assert spans("a.py", text) == [
        ('"""Module."""', True), ("'words'", False), ("# behind", True), ("'Doc.'", True), ("# own line", True),
        ("r'raw'", False), ('"""Of A."""', True), ("'alone'", False), ("'a statement'", True),
    ]  # fmt: skip


def test_a_docstring_after_a_comment_and_empty_lines_is_still_one() -> None:
    assert spans("a.py", "# first\n\n'''Doc.'''\nx = 1\n") == [("# first", True), ("'''Doc.'''", True)]
    assert spans("a.py", "'''Doc.'''  # why\nx = 1\n")[0][0] == "'''Doc.'''"


def test_places_are_bytes_also_behind_letters_of_several() -> None:
    assert spans("a.py", "naïve = 'café'  # déjà vu\nb = 2  # next\n") == [
        ("'café'", False), ("# déjà vu", True), ("# next", True),
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["def (:\n  # kept\nx = '''open\n", "print 'x' ) # kept\n\tx\n  y = '''\n"])
def test_what_is_no_python_has_comments_only(text: str) -> None:
    assert [found for found, _ in spans("a.py", text)] == ["# kept"]


def test_cells_of_a_notebook() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["Line one\n", "line two"]},
        {"cell_type": "raw", "source": "raw text"},
        {"cell_type": "code", "source": ["x = 1\n", "  # comment\n", "y = 'text'"]},
        {"cell_type": "code", "source": "# a comment in one string"},
        "not a cell",
    ]
    found = spans("n.IPYNB", json.dumps({"cells": cells, "metadata": {"title": "no", "empty": ""}}))
    assert [json.loads(f'"{text}"') for text, _ in found] == [
        "Line one\n", "line two", "raw text", "  # comment\n", "# a comment in one string",
    ]  # fmt: skip
    assert all(prose for _, prose in found)


def test_a_byte_that_is_no_letter_leaves_comments_only() -> None:
    data = b"a = 1\nb = 2\nc = 'text'  # \xff kept\n"
    assert [data[span.start : span.end] for span in text_spans("a.py", data)] == [b"# \xff kept"]


def test_a_notebook_is_read_in_utf_8_only() -> None:
    text = json.dumps({"cells": [{"cell_type": "markdown", "source": ["Line one"]}]})
    for encoding, found in (("utf-8", [b"Line one"]), ("utf-8-sig", [b"Line one"]), ("utf-16", []), ("utf-16-le", [])):
        data = text.encode(encoding)
        assert [data[span.start : span.end] for span in text_spans("n.ipynb", data)] == found
    alone = b'{"cells": [{"cell_type": "raw", "source": "\xed\xa0\x80"}]}'  # as a cleared notebook may hold it
    assert [alone[span.start : span.end] for span in text_spans("n.ipynb", alone)] == [b"\xed\xa0\x80"]


@pytest.mark.parametrize("text", ["", "[1]", '{"cells": 3}', '{"cells": [[]]}', '"x"', "[" * 100_000])
def test_what_is_no_notebook_has_none(text: str) -> None:
    assert spans("n.ipynb", text) == []
