"""Unicode of extracted text: what is normalised, what is kept, what is invisible; and joining of broken words.

Non-goal: spelling. Nothing is corrected that the paper prints.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

__all__ = ["MINUS_SIGNS", "Vocabulary", "append_letter", "invisible_share", "normalise", "squeeze"]

MINUS_SIGNS: Final = "-\u2212\u2010\u2011\u2012\u2013\ufe63\uff0d"
"""Characters that papers use for a minus sign before a number."""

# Full NFKC would turn x² into x2, ½ into 1⁄2 and a spacing accent into a blank: only these ranges keep their meaning.
_COMPATIBLE: Final = (
    ("\ufb00", "\ufb06"),  # Latin ligatures
    ("\uff01", "\uff5e"),  # full-width ASCII
    ("\U0001d400", "\U0001d7ff"),  # mathematical letters and digits
    ("\u2000", "\u200a"),  # typographic blanks
    ("\u2126", "\u2126"),  # ohm sign
    ("\u212b", "\u212b"),  # angstrom sign
)
_BLANKS: Final = dict.fromkeys(map(ord, "\u00a0\u202f\u205f\u3000\t\r\n\f\v"), " ")
_ZERO_WIDTH: Final = frozenset("\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2064\ufeff\u00ad\u034f\u180e")
_TRANSLATE: Final = (
    _BLANKS
    | dict.fromkeys(map(ord, _ZERO_WIDTH))
    | dict.fromkeys(range(0xE0000, 0xE0080))
    | dict.fromkeys(c for c in range(32) if c not in _BLANKS)
    | {
        ord(letter): unicodedata.normalize("NFKC", letter)
        for first, last in _COMPATIBLE
        for letter in map(chr, range(ord(first), ord(last) + 1))
    }
)
_ACCENTS: Final = {
    "\u00b4": "\u0301", "`": "\u0300", "\u00a8": "\u0308", "\u02c6": "\u0302", "\u02dc": "\u0303",
    "\u00b8": "\u0327", "\u02c7": "\u030c", "\u02d8": "\u0306", "\u02da": "\u030a", "\u00af": "\u0304",
}  # fmt: skip
_DOTLESS: Final = {"\u0131": "i", "\u0237": "j"}
_SPACES: Final = re.compile(r" {2,}")
_LITTLE: Final = frozenset({"of", "the", "to", "in", "by", "and", "on", "for", "at", "a", "as", "or"})
_WORD: Final = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")


def normalise(text: str) -> str:
    """NFC, with ligatures, full-width and mathematical letters as plain ones; invisible characters removed."""
    if text.isascii() and text.isprintable():
        return text
    return unicodedata.normalize("NFC", text.translate(_TRANSLATE))


def append_letter(text: str, letter: str) -> str:
    """Add a letter; after a free-standing accent (`R´enyi`, as old TeX fonts print it) the two are combined."""
    mark = _ACCENTS.get(text[-1:])
    if mark is not None and letter.isalpha():
        combined = unicodedata.normalize("NFC", _DOTLESS.get(letter, letter) + mark)
        if len(combined) == 1:
            return text[:-1] + combined
    return text + letter


def squeeze(text: str) -> str:
    """Runs of blanks as one, none at the ends."""
    return _SPACES.sub(" ", text).strip()


def invisible_share(text: str) -> tuple[int, int]:
    """Counts of (zero-width characters, tag characters): the second kind has no use in a paper but to hide text."""
    zero = sum(character in _ZERO_WIDTH and character != "\u00ad" for character in text)
    tags = sum(0xE0000 <= ord(character) < 0xE0080 for character in text)
    return zero, tags


class Vocabulary:
    """The words that a document prints unbroken; it decides whether a hyphen at a line's end belongs to the word."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._words: set[str] = set()
        broken = False
        for line in lines:
            found = _WORD.findall(line)
            if found and broken:
                found.pop(0)
            broken = line.rstrip().endswith("-")
            if found and broken:
                found.pop()
            self._words.update(word.lower() for word in found)

    def join(self, left: str, right: str) -> str:
        """Two consecutive lines as running text; a broken word is joined.

        The hyphen stays where the document prints the compound elsewhere (`state-of-the-art`), before a capital or a
        digit, and after a digit.
        """
        if not left or not right:
            return left or right
        if not re.search(r"[^\W_]-$", left):
            return f"{left} {right}"
        return left + right if self._keeps_hyphen(left, right) else left[:-1] + right

    def _keeps_hyphen(self, left: str, right: str) -> bool:
        head = re.search(r"[^\W\d_]+(?:-[^\W\d_]+)*-$", left)
        tail = _WORD.match(right)
        if head is None or tail is None or right[0].isupper():
            return True
        broken, rest = head.group(0)[:-1].lower(), tail.group(0).lower()
        if broken + rest in self._words:
            return False
        if f"{broken}-{rest}" in self._words or self._both_words(broken, rest):
            return True
        # inside a compound of several parts (`leave-` / `one-out`, `state-of-the-` / `art`) a part that is a word
        # tells: fragments of a broken word are hardly ever words, nor does a broken word follow `of-` or `the-`
        begun, function = rest.split("-"), broken.split("-")
        return (len(begun) > 1 and begun[0] in self._words) or (len(function) > 1 and function[-1] in _LITTLE)

    def _both_words(self, left: str, right: str) -> bool:
        """`per-symbol`, `near-optimal`: both parts occur as words of their own."""
        last = left.rpartition("-")[2]
        return len(last) >= 3 and len(right) >= 4 and last in self._words and right.partition("-")[0] in self._words
