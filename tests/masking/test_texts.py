"""Looking into files: bounded, without executing anything, honest about what was not read."""

from __future__ import annotations

import gzip
import io
import json
import struct
import tarfile
import zipfile
import zlib

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


def test_a_quine_of_archives_ends() -> None:
    data = b"print(1)\n"
    for _ in range(12):
        data = gzip.compress(data)
    _, budget = read("deep.gz", data)
    assert "nested deeper" in budget.problems[0].message


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
    "data", [b"PK\x03\x04broken", b"\x1f\x8bbroken", b"BZhbroken", b"\x78\x9cbroken", b"%PDF-1.7 broken"]
)
def test_damaged_is_information_only(data: bytes) -> None:
    _, budget = read("x", data)
    assert all(problem.severity is Severity.INFO for problem in budget.problems)


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
