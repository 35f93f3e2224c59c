"""Looking into files: bounded, without executing anything, honest about what was not read."""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import json
import lzma
import random
import re
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from masking import texts
from masking import units as bounds
from masking.notebooks import clear_outputs, has_outputs
from masking.texts import Budget, read_units
from pipeline.schema import Severity
from tests.masking.planting import compiled, notebook, tarred, zipped


def read(name: str, data: bytes) -> tuple[dict[str, bytes], Budget]:
    budget = Budget()
    return {f"{unit.where}|{unit.role}": unit.data for unit in read_units(name, data, budget)}, budget


def test_containers_in_containers() -> None:
    units, budget = read("a.tgz", gzip.compress(tarred({"b.zip": zipped({"c.py": b"print(1)\n"})})))
    assert units["a.tgz!/a!/b.zip!/c.py|member"] == b"print(1)\n"
    assert budget.problems == []


def test_names_in_archives_are_labels_only(tmp_path: object) -> None:
    units, _ = read("x.tar", tarred({"../../etc/passwd": b"root\n", "/abs": b"x\n"}))
    assert units["x.tar!/../../etc/passwd|member"] == b"root\n"


def test_links_and_devices_in_archives_are_left_out() -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for kind, name in ((tarfile.SYMTYPE, "link"), (tarfile.CHRTYPE, "null"), (tarfile.LNKTYPE, "hard")):
            info = tarfile.TarInfo(name)
            info.type = kind
            info.linkname = "/etc/passwd"
            archive.addfile(info)
    units, _ = read("x.tar", buffer.getvalue())
    assert list(units) == ["x.tar|file"]


def test_a_bomb_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "MAX_MEMBER", 1 << 16)
    monkeypatch.setattr(bounds, "MAX_MEMBER", 1 << 16)
    units, budget = read("bomb.gz", gzip.compress(bytes(1 << 22)))
    assert sum(map(len, units.values())) < 1 << 18
    assert [problem.severity for problem in budget.problems] == [Severity.WARNING]
    _, budget = read("bomb.zip", zipped({"a": bytes(1 << 22)}))
    assert "larger" in budget.problems[0].message


@pytest.mark.parametrize(("levels", "read_whole"), [(4, True), (5, False), (12, False)])
def test_four_levels_of_archives_are_opened_and_what_is_deeper_is_said(levels: int, read_whole: bool) -> None:
    data = b"print(1)\n"
    for _ in range(levels):
        data = gzip.compress(data)
    units, budget = read("deep.gz", data)
    assert (b"print(1)\n" in units.values()) is read_whole
    assert [(problem.severity, "nested deeper than 4 levels" in problem.message) for problem in budget.problems] == (
        [] if read_whole else [(Severity.WARNING, True)]
    )
    assert len(units) == min(levels, 4) + 1


@pytest.mark.parametrize("data", [b"7z\xbc\xaf\x27\x1c....", b"Rar!\x1a\x07\x00", b"\x28\xb5\x2f\xfd...."])
def test_what_cannot_be_opened_is_said(data: bytes) -> None:
    _, budget = read("x", data)
    assert [problem.severity for problem in budget.problems] == [Severity.WARNING]


def test_an_encrypted_member_is_said() -> None:
    data = bytearray(zipped({"secret.py": b"print(1)\n" * 50}))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = data.index(signature) + offset
        data[place : place + 2] = struct.pack("<H", 1)
    units, budget = read("x.zip", bytes(data))
    assert list(units) == ["x.zip|file"]
    assert "encrypted" in budget.problems[0].message


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"PK\x03\x04broken", "BadZipFile"), (b"\x1f\x8bbroken", "error"), (b"BZhbroken", "OSError"),
        (b"\x78\x9c\xff\xff", "error"), (b"%PDF-1.7 broken", "ValueError"), (b"\xfd7zXZ\x00broken", "LZMAError"),
        (b"x" * 257 + b"ustar" + b"y" * 300, "ReadError"),
    ],
)  # fmt: skip
def test_damaged_is_information_only(data: bytes, error: str) -> None:
    units, budget = read("x", data)
    assert units == {"x|file": data}
    assert [(problem.where, problem.severity) for problem in budget.problems] == [("x", Severity.INFO)]
    assert budget.problems[0].message.startswith(f"not looked into: damaged ({error}: ")


PACKERS = [gzip.compress, zlib.compress, partial(bz2.compress, compresslevel=1), partial(lzma.compress, preset=0)]


@pytest.mark.parametrize("compress", PACKERS)
def test_a_repetition_far_behind_is_unpacked(compress: Callable[[bytes], bytes]) -> None:
    text = random.Random(6).randbytes(15_000).hex().encode() * 2
    assert read("a.x", compress(text))[0]["a.x!/a|member"] == text


@pytest.mark.parametrize("compress", PACKERS)
def test_what_is_there_of_a_file_that_was_cut_is_read(compress: Callable[[bytes], bytes]) -> None:
    text = b"".join(b"line %d\n" % (number * number) for number in range(30_000))
    packed = compress(text)
    units, budget = read("a.log.x", packed[: len(packed) * 2 // 3])
    (found,) = [data for where, data in units.items() if where == "a.log.x!/a.log|member"]
    assert text.startswith(found)
    assert len(found) > len(text) // 4
    assert budget.problems == []


def test_compiled_python_is_read_without_running_it() -> None:
    units, _ = read("x.pyc", compiled("ANSWER = 0.8734\ndef secret_name(argument):\n    return 'a longer text'\n"))
    strings = units["x.pyc#strings|strings"].split(b"\n")
    assert {b"ANSWER", b"secret_name", b"argument", b"a longer text"} <= set(strings)
    (unit,) = [u for u in read_units("x.pyc", compiled("X = 0.8734\n"), Budget()) if u.role == "strings"]
    assert 0.8734 in unit.values


def test_notebook_cells_and_outputs() -> None:
    units, _ = read("n.ipynb", notebook([("markdown", "# T", ""), ("code", "a = 1", "out"), ("code", "b = 2", "")]))
    assert units["n.ipynb#cell 0|cell"] == b"# T"
    assert units["n.ipynb#output 1|output"] == b"out"
    assert units["n.ipynb#code cells|cells"] == b"a = 1\nb = 2"


def test_clearing_keeps_cells_and_is_stable() -> None:
    data = json.loads(notebook([("markdown", "text", ""), ("code", "a = 1", "out")]))
    data["metadata"] = {"widgets": {"state": "0.873"}, "kernelspec": {"name": "python3"}}
    data["cells"][0]["attachments"] = {"image.png": {"image/png": "AAAA"}}
    cleared = clear_outputs(json.dumps(data).encode())
    result = json.loads(cleared)
    assert [cell["source"] for cell in result["cells"]] == [["text"], ["a = 1"]]
    assert result["cells"][1]["outputs"] == []
    assert result["metadata"] == {"kernelspec": {"name": "python3"}}
    assert "attachments" not in result["cells"][0]
    assert clear_outputs(cleared) == cleared
    assert not has_outputs(cleared)


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"\xff", b"[" * 100_000])
def test_not_a_notebook(data: bytes) -> None:
    with pytest.raises(ValueError):
        clear_outputs(data)


@settings(deadline=None)
@given(st.binary(max_size=300), st.sampled_from(["x.py", "x.ipynb", "x.html", "x.zip", "x"]))
def test_any_bytes_are_read_without_an_error(data: bytes, name: str) -> None:
    list(read_units(name, data, Budget()))
    list(read_units(name, zlib.compress(data), Budget()))


@settings(deadline=None)  # the first picture imports its reader
@given(st.binary(max_size=200))
def test_any_archive_content_comes_back(data: bytes) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("inner", data)
    units, _ = read("x.zip", buffer.getvalue())
    assert units["x.zip!/inner|member"] == data


# --- markup, notebooks, encodings ------------------------------------------------------------------------------------


def test_markup_is_read_as_rows_and_blocks() -> None:
    page = (
        "<html><head><style>.a { width: 0.5 }</style><script>var x = 0.6</script></head><body><p>One &amp; <b>two</b></p>"
        "<table><tr><th>a</th><th>b</th></tr>\n<tr><td>1</td>\n<td>2</td></tr></table><p>end</p></body></html>"
    )
    units, _ = read("p.html", page.encode())
    (text,) = [data.decode() for where, data in units.items() if where.endswith("|text")]
    blocks = [[" ".join(line.split()) for line in block.split("\n") if line.strip()] for block in text.split("\n\n")]
    assert [block for block in blocks if block] == [["One & two"], ["a b", "1 2"], ["end"]]


def test_every_kind_of_output_is_read_and_pictures_in_them_are_not_text() -> None:
    outputs = [
        {"text": ["one\n", "two"]}, {"traceback": ["bad"]}, "none",
        {"data": {"text/plain": "plain", "text/html": ["<b>bold</b>", "<i>it</i>"], "image/png": "AAAA",
                  "application/json": {"b": 1, "a": 2}}},
    ]  # fmt: skip
    cell = {"cell_type": "code", "source": "x", "outputs": outputs}
    units = list(read_units("n.ipynb", json.dumps({"cells": [cell]}).encode(), Budget()))
    texts_ = [" ".join(unit.data.decode().split()) for unit in units if unit.role == "output"]
    assert texts_ == ["one two", "bad", '{"a": 2, "b": 1}', "bold it", "plain"]


def test_cells_of_the_third_format_are_read() -> None:
    data = {"worksheets": [{"cells": [{"cell_type": "code", "input": ["a = 1"]}, 5]}, 7], "cells": 3}
    units, _ = read("n.ipynb", json.dumps(data).encode())
    assert units["n.ipynb#cell 0|cell"] == b"a = 1"


def test_a_damaged_notebook_is_searched_as_text() -> None:
    units, budget = read("n.ipynb", b"{ broken")
    assert units["n.ipynb|text"] == b"{ broken"
    assert [problem.severity for problem in budget.problems] == [Severity.INFO]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_text_of_two_bytes_a_letter_is_read(encoding: str) -> None:
    mark = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}.get(encoding, b"")
    units, _ = read("a.py", mark + "print(0.875)\n".encode(encoding))
    assert units["a.py|text"].strip(b"\xef\xbb\xbf") == b"print(0.875)\n"


# --- encoded blobs ---------------------------------------------------------------------------------------------------

CODE = b"".join(b"value_%d = compute(%d)\n" % (number, number) for number in range(12))


def encoded(data: bytes) -> list[tuple[str, bytes]]:
    units, _ = read("a.txt", data)
    return [(where.split("|")[0], text) for where, text in units.items() if "@" in where]


def test_encoded_text_is_found_however_it_is_broken() -> None:
    text = base64.b64encode(CODE)
    lines = [text[place : place + 76] for place in range(0, len(text), 76)]
    for written in (text, b"\n".join(lines), b"\\n".join(lines), b'"\n    "'.join(lines)):
        ((_, found),) = encoded(b"x = '" + written + b"'\n")
        assert CODE.startswith(found)
        assert len(CODE) - len(found) < 15  # a last line of less than 20 characters is not known to belong to it
    assert encoded(b"x = '" + text + b"'\n")[0][0] == "a.txt@base64 5"
    letters = CODE + "ÿþ".encode() * 3
    assert b"-" in base64.urlsafe_b64encode(letters) or b"_" in base64.urlsafe_b64encode(letters)
    assert [found for _, found in encoded(base64.urlsafe_b64encode(letters))] == [letters]
    assert next(found for _, found in encoded(CODE.hex().encode())) == CODE


def test_short_runs_and_what_is_no_text_behind_them_are_left() -> None:
    assert encoded(base64.b64encode(CODE)[:159]) == []
    assert len(encoded(base64.b64encode(CODE)[:160])) == 1
    assert encoded(CODE[:79].hex().encode()) == []
    assert len(encoded(CODE[:80].hex().encode())) == 1
    noise = random.Random(4).randbytes(600)
    assert encoded(base64.b64encode(noise)) == []
    assert encoded(b"a" * 59 + b" " + b"b" * 59) == []


@pytest.mark.parametrize("length", range(160, 170))
def test_a_run_that_ends_anywhere_gives_its_whole_bytes(length: int) -> None:
    assert [found for _, found in encoded(base64.b64encode(CODE)[:length])] == [CODE[: length * 3 // 4]]


def test_lines_of_sixty_letters_are_joined_from_the_first_byte_on() -> None:
    text = base64.b64encode(CODE[:180])
    for width, found in ((60, [CODE[:180]]), (59, [])):
        lines = [text[:width], *(text[place : place + 20] for place in range(width, 240, 20))]
        assert [
            data for _, data in encoded(b"\n".join(line for line in lines if len(line) == 20 or line == lines[0]))
        ] == (found)


def test_files_without_sixty_letters_in_a_row_are_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search takes 40 to 70 MB a second, and hardly any file has such a run."""
    searched: list[bytes] = []

    class Pattern:
        def finditer(self, data: bytes) -> list[re.Match[bytes]]:
            searched.append(data)
            return []

    monkeypatch.setattr(texts, "_HEX", Pattern())
    monkeypatch.setattr(texts, "_BASE64", Pattern())
    for text in (b"a" * 59, b"some words " * 50, b"a" * 59 + b"\n" + b"b" * 59):
        assert encoded(text) == []
    assert searched == []
    for text in (b"a" * 60, b"x = '" + b"a" * 60, b"a" * 60 + b"\n"):
        assert encoded(text) == []
        assert searched == [text, text]
        searched.clear()


def test_what_is_decoded_is_read_when_nineteen_of_twenty_bytes_are_text() -> None:
    def is_read(data: bytes) -> bool:
        return [found for _, found in encoded(data.hex().encode())] == [data]

    assert is_read(bytes([*range(32, 127), *b"\n\r\t"]) * 2)
    for odd in (0, 11, 31, 127, 200):
        assert is_read(b"x" * 190 + bytes([odd]) * 10)
        assert not is_read(b"x" * 189 + bytes([odd]) * 11)
    assert is_read(b"x" * 1900 + b"\1" * 100)
    assert not is_read(b"x" * 1899 + b"\1" * 101 + b"x" * 1000)
    assert is_read(b"x" * 2000 + b"\1" * 1000)  # the beginning decides


@pytest.mark.parametrize(
    ("data", "reader"),
    [
        (b"BM\x36\x10\0\0\0\0\0\0\x36", texts.read_picture), (b"BMI,weight\n21,80\n", None),
        (b"RIFF\x10\0\0\0WEBPVP8 ", texts.read_picture), (b"RIFF\x10\0\0\0WAVEfmt ", None), (b"text....WEBP", None),
        (b"\xa7\x0d\r\n" + bytes(12) + b"\xe3", texts._compiled), (b"\xa7\x0d\r\n" + bytes(12) + b"\x63", texts._compiled),
        (b"\xa7\x0d\r\n" + bytes(12) + b"x", None), (b"ab\ncd" + bytes(11) + b"\xe3", None), (b"II*\0", texts.read_picture),
        (b"PK\x05\x06" + bytes(18), texts._zip), (b"x" * 257 + b"ustar", texts._tar), (b"x" * 256 + b"ustar", None),
        (b"print(1)\n", None), (b"", None),
    ],
)  # fmt: skip
def test_formats_are_known_by_their_bytes(data: bytes, reader: object) -> None:
    assert texts._reader(data) is reader


def test_odd_parts_of_a_notebook_are_passed_over() -> None:
    cells = [
        {"cell_type": "code", "source": ["a", 3, "b"], "outputs": 7},
        {"cell_type": "markdown", "source": 5, "outputs": [{"text": 4, "traceback": {}, "data": [1]}, {"text": "t"}]},
    ]
    units = list(read_units("n.ipynb", json.dumps({"cells": cells}).encode(), Budget()))
    assert [(unit.where, unit.name, unit.data, unit.role, unit.binary) for unit in units[1:]] == [
        ("n.ipynb#cell 0", "cell.py", b"ab", "cell", False),
        ("n.ipynb#cell 1", "cell.md", b"", "cell", False),
        ("n.ipynb#output 1", "output.txt", b"t", "output", False),
        ("n.ipynb#code cells", "cells.py", b"ab", "cells", False),
    ]
    assert (units[0].role, units[0].binary) == ("file", True)  # as JSON it says less


def test_what_is_encoded_in_a_notebook_is_decoded() -> None:
    units, _ = read("n.ipynb", notebook([("code", f"x = '{base64.b64encode(CODE).decode()}'", "")]))
    assert [data for where, data in units.items() if "@base64" in where] == [CODE]


@pytest.mark.parametrize(
    ("suffix", "marked"), [("html", True), ("HTM", True), ("svg", True), ("xml", True), ("txt", False)]
)
def test_markup_is_known_by_its_suffix(suffix: str, marked: bool) -> None:
    data = b"<P>one</P><SCRIPT>var x = 1\nvar y = 2</Script>\n<b>two</b> &lt;"
    units = list(read_units(f"p.{suffix}", data, Budget()))
    assert [(unit.name, unit.data.decode().split()) for unit in units[1:]] == (
        [("p.md", ["one", "two", "<"])] if marked else []
    )
    assert len(list(read_units(f"p.{suffix}", b"\0" + data, Budget()))) == 1  # no text


def test_compiled_strings_come_in_their_order_and_short_noise_does_not() -> None:
    long = "a sentence of more than 255 letters " * 8
    source = f"first_name = 1\nsecond_name = {long!r}\nthird = 'dé'\n"
    data = compiled(source) + b"\xf5\x0a\0\0\0after that" + b"\xfa\x04last\xfa\x02no\xfa\x01x\xfa\x03a\tb"
    units, _ = read("x.pyc", data)
    lines = units["x.pyc#strings|strings"].decode().split("\n")
    assert long in lines
    assert {"first_name", "second_name"} <= set(lines)
    assert all(len(line) >= 2 for line in lines if line)
    assert lines[-3:] == ["after that", "last", "no"]


def test_bytes_that_are_mostly_no_text_are_no_string() -> None:
    def strings(raw: bytes) -> list[str]:
        data = compiled("x = 1\n") + b"\xf5" + struct.pack("<I", len(raw)) + raw
        return read("x.pyc", data)[0]["x.pyc#strings|strings"].decode().split("\n")

    assert "abcdefghijkl" in strings(b"\xff" * 8 + b"abcdefghijkl")  # three fifths
    assert "abcdefghijk" not in strings(b"\xff" * 8 + b"abcdefghijk")
    assert "abcdefgh" in strings(b"abcdefgh")
    assert "abcdefg" not in strings(b"abcdefg")


# --- containers ------------------------------------------------------------------------------------------------------


def test_a_part_that_cannot_be_read_leaves_the_others() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("folder/", b"")
        archive.writestr("doc.xml", b"<w:p>words</w:p>")
        archive.writestr("b.py", b"print(2)\n")
    data = bytearray(buffer.getvalue())
    units, budget = read("x.docx", bytes(data))
    assert units["x.docx!/doc.xml|text"].strip() == b"words"
    assert units["x.docx!/b.py|member"] == b"print(2)\n"
    assert budget.problems == []
    assert not any("folder" in where for where in units)


def test_what_is_too_large_in_an_archive_is_said_and_the_next_member_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MAX_MEMBER", 100)
    for name, make in (("x.zip", zipped), ("x.tar", tarred)):
        units, budget = read(name, make({"large": b"y" * 101, "small.py": b"print(1)\n", "exact": b"z" * 100}))
        assert [where for where in units if "!" in where] == [f"{name}!/small.py|member", f"{name}!/exact|member"]
        assert [problem.where for problem in budget.problems] == [f"{name}!/large"]


@pytest.mark.parametrize("compress", PACKERS)
def test_what_is_too_large_behind_a_compression_is_said_and_not_read(
    compress: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "MAX_TOTAL", 100)
    for size, problems in ((100, []), (101, ["x.log.gz"])):
        units, budget = read("x.log.gz", compress(b"y" * size))
        assert [len(data) for where, data in units.items() if "!" in where] == ([] if problems else [size])
        assert [problem.where for problem in budget.problems] == problems


def test_the_bounds_of_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MAX_TOTAL", 10)
    budget = Budget()
    assert [budget.allows("a", 6), budget.allows("b", 5), budget.allows("c", 4), budget.allows("d", 1)] == [
        True, False, True, False,
    ]  # fmt: skip
    monkeypatch.setattr(bounds, "MAX_MEMBERS", 2)
    budget = Budget()
    assert [budget.allows(name, 0) for name in "abc"] == [True, True, False]
    assert [problem.where for problem in budget.problems] == ["c"]
    assert budget.problems[0].message.startswith("not looked into: ")


def test_the_bounds_as_they_are() -> None:
    budget = Budget()
    assert budget.pictures.left == 100
    assert [budget.allows("a", (64 << 20) + 1), budget.allows("b", 64 << 20)] == [False, True]
    assert [budget.allows("c", 64 << 20) for _ in range(7)] == [True] * 7
    assert [budget.allows("d", 1), budget.allows("e", 0)] == [False, True]
    budget = Budget()
    assert all(budget.allows("a", 0) for _ in range(20_000))
    assert not budget.allows("b", 0)


def test_a_loose_git_object_is_read_without_its_header() -> None:
    units, _ = read("objects/ab", zlib.compress(b"blob 9\0print(1)\n"))
    assert units["objects/ab!/ab|member"] == b"print(1)\n"
    units, _ = read("objects/ab", zlib.compress(b"blobs 9\0print(1)\n"))
    assert units["objects/ab!/ab|member"] == b"blobs 9\0print(1)\n"


def test_a_file_is_binary_as_git_decides() -> None:
    assert texts.is_binary(b"x" * 7999 + b"\0")
    assert not texts.is_binary(b"x" * 8000 + b"\0")
