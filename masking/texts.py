"""What can be read in a file: itself, and what lies in notebooks, archives, compiled Python, PDFs, pictures, blobs.

Nothing is executed and nothing is unmarshalled or unpickled: compiled Python is searched for its length-prefixed
strings, archives are read in memory with bounds. What could not be looked into is reported, because a scan that skipped
something must not look complete. Non-goals: tables larger than results are (their exact bytes are still compared).
"""

from __future__ import annotations

import base64
import binascii
import bz2
import html
import io
import json
import lzma
import re
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import PurePosixPath
from typing import Any, Final, Protocol

import numpy as np

from masking.pictures import pdf_text, read_pdf, read_picture
from masking.stored import STORED_MAGIC, read_stored_tables
from masking.units import MAX_DEPTH, MAX_MEMBER, Budget, Pictures, Unit
from pipeline.schema import Severity

__all__ = ["Budget", "Pictures", "Unit", "is_binary", "pdf_text", "read_units"]


def is_binary(data: bytes) -> bool:
    """True when the content is not text: a NUL byte in the first 8000, as git decides."""
    return b"\0" in data[:8000]


def read_units(name: str, data: bytes, budget: Budget, *, where: str | None = None, depth: int = 0) -> Iterator[Unit]:
    """All readable pieces of a file, itself first.

    Args:
        name: file name or path; its suffix matters for notebooks and markup.
        data: the bytes.
        budget: bounds and problems, shared by all pieces.
        where: label for reports; the name when None.
        depth: nesting so far.
    """
    where = name if where is None else where
    text = _utf16(data)
    binary = text is None and is_binary(data)
    suffix = PurePosixPath(name).suffix.lower()
    yield Unit(where, name, data, "file" if depth == 0 else "member", binary=binary or suffix == ".ipynb")
    if text is not None:
        yield Unit(where, name, text, "text")
    if depth >= MAX_DEPTH:
        if _reader(data) is not None:
            budget.unread(where, f"nested deeper than {MAX_DEPTH} levels")
        return
    if suffix == ".ipynb":
        yield from _notebook(where, data, budget)
        yield from _encoded(where, data, budget, depth)
        return
    reader = _reader(data)
    if reader is not None:
        try:
            yield from reader(name, where, data, budget, depth)
        except (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError,
                NotImplementedError, struct.error) as error:  # fmt: skip
            budget.unread(where, f"damaged ({type(error).__name__}: {error})", Severity.INFO)
    elif not binary:
        if suffix in {".html", ".htm", ".svg", ".xml"}:
            yield Unit(where, PurePosixPath(name).stem + ".md", _markup_text(data), "text")
        yield from _encoded(where, data, budget, depth)


def _utf16(data: bytes) -> bytes | None:
    if data[:2] in {b"\xff\xfe", b"\xfe\xff"}:
        return data.decode("utf-16", "replace").encode("utf-8", "replace")
    return None


_TAG_ROW: Final = re.compile(r"</tr\s*>|<br\s*/?>", re.IGNORECASE)
_TAG_CELL: Final = re.compile(r"</t[dh]\s*>|</?(?:span|b|i|em|strong|code|sub|sup|a|tspan)\b[^>]*>", re.IGNORECASE)
_TAG_BLOCK: Final = re.compile(r"</?(?:table|p|div|section|h[1-6]|ul|ol|article)\b[^>]*>", re.IGNORECASE)
_TAG_HIDDEN: Final = re.compile(r"<(script|style)\b.*?</\1\s*>", re.IGNORECASE | re.DOTALL)


def _markup_text(data: bytes) -> bytes:
    """The text of HTML, SVG or XML: a table row is a line, a block ends with an empty line."""
    text = re.sub(r"\s*\n\s*", " ", _TAG_HIDDEN.sub(" ", data.decode("utf-8", "replace")))
    text = _TAG_BLOCK.sub("\n\n", _TAG_CELL.sub(" ", _TAG_ROW.sub("\n", text)))
    return html.unescape(re.sub(r"<[^>]*>", " ", text)).encode("utf-8", "replace")


# --- notebooks -------------------------------------------------------------------------------------------------------


def _joined(value: Any) -> str:
    if isinstance(value, list):
        return "".join(part for part in value if isinstance(part, str))
    return value if isinstance(value, str) else ""


def _cells(notebook: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(notebook, dict):
        return
    sheets = notebook.get("worksheets")
    groups = [notebook, *(sheets if isinstance(sheets, list) else [])]
    for group in groups:
        cells = group.get("cells") if isinstance(group, dict) else None
        for cell in cells if isinstance(cells, list) else []:
            if isinstance(cell, dict):
                yield cell


def _output_texts(cell: dict[str, Any]) -> Iterator[str]:
    outputs = cell.get("outputs")
    for output in outputs if isinstance(outputs, list) else []:
        if not isinstance(output, dict):
            continue
        yield _joined(output.get("text"))
        yield _joined(output.get("traceback"))
        bundle = output.get("data")
        for kind, value in sorted(bundle.items()) if isinstance(bundle, dict) else []:
            if kind.startswith("text/html"):
                yield _markup_text(_joined(value).encode("utf-8", "replace")).decode("utf-8", "replace")
            elif not kind.startswith("image/"):
                yield _joined(value) if isinstance(value, str | list) else json.dumps(value, sort_keys=True)


def _notebook(where: str, data: bytes, budget: Budget) -> Iterator[Unit]:
    try:
        notebook = json.loads(data)
    except (ValueError, RecursionError) as error:
        budget.unread(where, f"not a notebook ({error}); its text is searched as it is", Severity.INFO)
        yield Unit(where, "notebook.txt", data, "text")
        return
    code: list[str] = []
    for number, cell in enumerate(_cells(notebook)):
        source = _joined(cell.get("source", cell.get("input")))
        if cell.get("cell_type") == "code":
            code.append(source)
        suffix = ".py" if cell.get("cell_type") == "code" else ".md"
        yield Unit(f"{where}#cell {number}", f"cell{suffix}", source.encode("utf-8", "replace"), "cell")
        for text in _output_texts(cell):
            if text:
                yield Unit(f"{where}#output {number}", "output.txt", text.encode("utf-8", "replace"), "output")
    joined = "\n".join(code).encode("utf-8", "replace")
    yield Unit(f"{where}#code cells", "cells.py", joined, "cells")


# --- containers ------------------------------------------------------------------------------------------------------

_PYC: Final = re.compile(rb"^[\x00-\xff]{2}\r\n")
_OPAQUE: Final = {b"7z\xbc\xaf\x27\x1c": "7z archive", b"Rar!\x1a\x07": "RAR archive", b"\x28\xb5\x2f\xfd": "Zstandard"}


_Reader = Callable[[str, str, bytes, Budget, int], Iterator[Unit]]


def _reader(data: bytes) -> _Reader | None:
    """The function that looks into data of this format; None for plain text and formats that hold no text."""
    for magic, reader in _READERS:
        if data.startswith(magic):
            return reader
    if data[257:262] == b"ustar":
        return _tar
    bitmap = data[:2] == b"BM" and data[6:10] == bytes(4)  # a table of `BMI` begins like one
    if bitmap or (data[:4] == b"RIFF" and data[8:12] == b"WEBP"):
        return read_picture
    return _compiled if _PYC.match(data[:4]) and data[16:17] in {b"\xe3", b"\x63"} else None


def _opaque(_name: str, where: str, data: bytes, budget: Budget, _depth: int) -> Iterator[Unit]:
    kind = next(text for magic, text in _OPAQUE.items() if data.startswith(magic))
    budget.unread(where, f"{kind}, which the Python standard library cannot read")
    yield from ()


def _zip(_name: str, where: str, data: bytes, budget: Budget, depth: int) -> Iterator[Unit]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for info in archive.infolist():
            inner = f"{where}!/{info.filename}"
            if info.is_dir() or not budget.allows(inner, info.file_size):
                continue
            if info.flag_bits & 1:
                budget.unread(inner, "encrypted archive member")
                continue
            with archive.open(info) as stream:
                content = stream.read(MAX_MEMBER)
            name = info.filename
            if name.endswith(".xml"):  # word processor and presentation files
                yield Unit(inner, "member.md", _markup_text(content), "text")
            yield from read_units(name, content, budget, where=inner, depth=depth + 1)


def _tar(_name: str, where: str, data: bytes, budget: Budget, depth: int) -> Iterator[Unit]:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        for member in archive:
            inner = f"{where}!/{member.name}"
            if not member.isfile() or not budget.allows(inner, member.size):
                continue
            stream = archive.extractfile(member)
            if stream is not None:
                yield from read_units(member.name, stream.read(), budget, where=inner, depth=depth + 1)


def _compressed(
    name: str, where: str, data: bytes, budget: Budget, depth: int, *, open_: Callable[[], _Decompressor]
) -> Iterator[Unit]:
    decompressor = open_()
    content = decompressor.decompress(data, MAX_MEMBER)
    complete = decompressor.eof
    if not complete and len(content) >= MAX_MEMBER:
        budget.unread(where, "larger than the bounds of the scan when unpacked")
    if budget.allows(where, len(content)):
        if re.match(rb"(?:blob|commit|tag|tree) \d+\0", content):  # a loose git object
            content = content.partition(b"\0")[2]
        inner = PurePosixPath(name).stem
        yield from read_units(inner, content, budget, where=f"{where}!/{inner}", depth=depth + 1)


class _Decompressor(Protocol):
    """What zlib, bz2 and lzma have in common."""

    @property
    def eof(self) -> bool:
        """Has the end of the stream been reached?"""

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        """At most `max_length` bytes."""


_PYC_SHORT: Final = re.compile(rb"[\xfa\xda\x7a\x5a](.)", re.DOTALL)
_PYC_LONG: Final = re.compile(rb"[\xe1\x61\xc1\x41\xf5\x75\xf4\x74](.{2}\x00\x00)", re.DOTALL)
_PYC_FLOAT: Final = re.compile(rb"[\xe7\x67](.{8})", re.DOTALL)


def _compiled(_name: str, where: str, data: bytes, _budget: Budget, _depth: int) -> Iterator[Unit]:
    """Names, strings and floats of compiled Python, found by marshal's type bytes and length prefixes.

    `marshal.loads` may crash on crafted input and knows one version of Python only; the type bytes are the same in all.
    """
    found: list[tuple[int, str]] = []
    for match in _PYC_SHORT.finditer(data):
        text = data[match.end() : match.end() + match[1][0]]
        if len(text) >= 2 and text.isascii() and text.decode("ascii").isprintable():
            found.append((match.start(), text.decode("ascii")))
    for match in _PYC_LONG.finditer(data):
        raw = data[match.end() : match.end() + struct.unpack("<I", match[1])[0]]
        decoded = raw.decode("utf-8", "ignore")
        if len(raw) >= 8 and len(decoded) >= 0.6 * len(raw):
            found.append((match.start(), decoded))
    values = frozenset(struct.unpack("<d", match[1])[0] for match in _PYC_FLOAT.finditer(data))
    joined = "\n".join(item for _, item in sorted(found)).encode("utf-8", "replace")
    yield Unit(f"{where}#strings", "strings.pyc", joined, "strings", values=values)


_PICTURES: Final = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"II*\0", b"MM\0*")
_READERS: Final[tuple[tuple[bytes, _Reader], ...]] = (
    (b"PK\x03\x04", _zip),
    (b"PK\x05\x06", _zip),
    (b"\x1f\x8b", partial(_compressed, open_=lambda: zlib.decompressobj(wbits=47))),
    (b"BZh", partial(_compressed, open_=bz2.BZ2Decompressor)),
    (b"\xfd7zXZ\x00", partial(_compressed, open_=lzma.LZMADecompressor)),
    (b"%PDF-", read_pdf),
    *((magic, read_picture) for magic in _PICTURES),
    *((magic, partial(_compressed, open_=zlib.decompressobj)) for magic in (b"\x78\x01", b"\x78\x9c", b"\x78\xda")),
    *((magic, _opaque) for magic in _OPAQUE),
    *((magic, read_stored_tables) for magic in STORED_MAGIC),
)


# --- encoded blobs ---------------------------------------------------------------------------------------------------

# 160 characters carry 120 bytes: less than a function of the size that a near-duplicate needs (30 tokens).
_BASE64: Final = re.compile(
    rb"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{60,}(?:(?:\\n|[\s\"']{1,24})[A-Za-z0-9+/_-]{20,})*={0,2}"
)
_HEX: Final = re.compile(rb"(?<![0-9a-fA-F])(?:[0-9a-fA-F]{2}){80,}")
_MIN_ENCODED: Final = 160


def _decode(text: bytes, kind: str) -> bytes | None:
    try:
        if kind == "hex":
            return binascii.unhexlify(text)
        clean = re.sub(rb"\\n|[\s\"']+", b"", text)
        clean = clean.translate(bytes.maketrans(b"-_", b"+/")).rstrip(b"=")
        return base64.b64decode(clean[: len(clean) - (len(clean) % 4 == 1)] + b"==")
    except (binascii.Error, ValueError):
        return None


def _worth_reading(data: bytes) -> bool:
    if _reader(data) is not None:
        return True
    head = data[:2000]
    printable = sum(32 <= byte < 127 or byte in b"\n\r\t" for byte in head)
    return printable >= 0.95 * len(head)


_RUN: Final = 60
_ENCODING: Final = np.zeros(256, dtype=bool)
_ENCODING[np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-", dtype=np.uint8)] = True


def _has_long_run(data: bytes) -> bool:
    """Are there RUN encoding characters in a row? Rules most files out at 1 GB/s."""
    gaps = np.flatnonzero(~_ENCODING[np.frombuffer(b" " + data + b" ", dtype=np.uint8)])
    return bool((np.diff(gaps) > _RUN).any())


def _encoded(where: str, data: bytes, budget: Budget, depth: int) -> Iterator[Unit]:
    if not _has_long_run(data):
        return
    for kind, pattern in (("hex", _HEX), ("base64", _BASE64)):
        for match in pattern.finditer(data):
            if len(match[0]) < _MIN_ENCODED:
                continue
            content = _decode(match[0], kind)
            if content is None or not _worth_reading(content):
                continue
            inner = f"{where}@{kind} {match.start()}"
            if budget.allows(inner, len(content)):
                # The decoded text is most likely code: that is what one would hide.
                yield from read_units(f"{kind}.py", content, budget, where=inner, depth=depth + 1)
