"""Text that is written so that a search for words misses it, and a language model reads it all the same.

Base64, character references and escapes, letters set apart, reversed lines, ROT13, and sentences as identifiers. Only
what comes out is looked at, as text. Non-goals: compression, encryption, other languages.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
from collections.abc import Iterator
from typing import Final

__all__ = ["decoded_lines"]

_BASE64: Final = re.compile(r"(?<![\w+/=])[A-Za-z0-9+/]{32,4000}={0,2}(?![\w+/=])")
_REFERENCES: Final = re.compile(r"(?:&#x?[0-9a-fA-F]{1,6};){8,}")
_ESCAPES: Final = re.compile(r"(?:\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}){8,}")
_APART: Final = re.compile(r"(?<!\S)(?:\S {1,3}){12,400}\S(?!\S)")
_IDENTIFIER: Final = re.compile(r"\b[A-Za-z]+(?:_[A-Za-z]+){4,40}\b")
_BACKWARDS: Final = re.compile(r"egduj|redarg|rotaulave|rotinom|reweiver|rotcurtsni|snoitcurtsni", re.I)
_ROT13: Final = re.compile(r"\b(?:whqtrf?|tenqref?|rinyhngbef?|zbavgbef?|vafgehpgvbaf)\b", re.I)
_ANY: Final = re.compile(
    "|".join(f"(?:{p.pattern})" for p in (_BASE64, _REFERENCES, _ESCAPES, _APART, _IDENTIFIER))
    + f"|(?i:{_BACKWARDS.pattern}|{_ROT13.pattern})"
)
_MOST: Final = 200
"""Passages of one text that are decoded: a list of hashes has many that look alike."""
_LONGEST: Final = 20_000
"""Characters of a line that are looked at."""


def decoded_lines(lines: list[str]) -> Iterator[tuple[int, str]]:
    """(index of the line, what stands there in plain letters) of each passage that is hidden in one of these ways."""
    found = 0
    for index, line in enumerate(lines):
        cut = line[:_LONGEST]
        if not _ANY.search(cut):
            continue
        for text in _decoded(cut):
            yield index, text
            found += 1
            if found >= _MOST:
                return


def _decoded(line: str) -> Iterator[str]:
    for match in _BASE64.finditer(line):
        if text := _of_base64(match[0]):
            yield text
    for match in _REFERENCES.finditer(line):
        yield html.unescape(match[0])
    for match in _ESCAPES.finditer(line):
        yield re.sub(r"\\[xu]([0-9a-fA-F]+)", lambda one: chr(int(one[1], 16)), match[0])
    for match in _APART.finditer(line):
        yield " ".join(word.replace(" ", "") for word in re.split(r" {2,}", match[0]))
    for match in _IDENTIFIER.finditer(line):
        yield match[0].replace("_", " ")
    if _BACKWARDS.search(line):
        yield line[::-1]
    if _ROT13.search(line):
        yield codecs.decode(line, "rot13")


def _of_base64(text: str) -> str:
    """Words in it; empty for what is no text (a digest, a picture)."""
    try:
        plain = base64.b64decode(text + "=" * (-len(text) % 4), validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return plain if plain.isprintable() and " " in plain else ""
