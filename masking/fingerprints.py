"""Near-duplicates of code and text: winnowed k-grams over normalised tokens, hashed with NumPy.

Two views of a text are fingerprinted (Schleimer, Wilkerson and Aiken, "Winnowing", 2003):

- *kept*: tokens as they are. White space, quotes, commas, parentheses, semicolons, backslashes and `#` comments do not
  count, so a reformatted copy has the same tokens.
- *abstracted*: every name is replaced by the distance to its previous occurrence (Baker's parameterised matching), so a
  copy with other names has the same tokens; keywords, numbers and operators stay.

The masked side is winnowed; the searched side is looked up with all its k-grams, which finds at least what winnowing
both sides would find. Non-goals: plagiarism across languages, semantic clones.
"""

from __future__ import annotations

import builtins
import io
import keyword
import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["ABSTRACTED", "KEPT", "Fingerprint", "Index", "Share", "View", "code_only", "fingerprint", "kgrams"]

Hashes = NDArray[np.uint64]

CHUNK: Final = 1 << 20
"""Bytes hashed at a time: keeps the working arrays (8 bytes a byte of text) near 50 MB."""
OVERLAP: Final = 4096
"""Bytes that consecutive chunks share, so that no k-gram is lost at a cut (12 tokens rarely need more)."""
MAX_DISTANCE: Final = 16
"""Names seen again within this many tokens are encoded by the distance, others as new."""
WINDOW: Final = 4
"""Winnowing window: every shared run of k + 3 tokens is certain to share a fingerprint."""
MIN_FINGERPRINTS: Final = 10
"""Below this many fingerprints (about 30 tokens) a text is too short to be told from coincidence: exact match only."""

_SKIP, _WORD, _MARK = 0, 1, 2


def _byte_classes() -> NDArray[np.uint8]:
    table = np.full(256, _MARK, dtype=np.uint8)
    for byte in range(256):
        character = chr(byte)
        if byte >= 0x80 or character.isalnum() or character == "_":
            table[byte] = _WORD
        elif byte <= 0x20 or character in ",;'\"`()\\":
            table[byte] = _SKIP
    return table


def _mix(values: Hashes) -> Hashes:
    """SplitMix64's finaliser: spreads the weak low bits of a polynomial hash."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


_CLASSES: Final = _byte_classes()
_BYTE_VALUES: Final[Hashes] = _mix(np.arange(1, 257, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15))
_BASE: Final = 0x9E3779B97F4A7C15
_GRAM_BASE: Final = 0xD6E8FEB86659FD93


@cache
def _powers(base: int, length: int) -> tuple[Hashes, Hashes]:
    """base^i and base^-i modulo 2^64 for i < length (an odd base has an inverse)."""
    inverse = pow(base, -1, 1 << 64)
    result: list[Hashes] = []
    for factor in (base, inverse):
        steps = np.full(length, factor, dtype=np.uint64)
        steps[0] = 1
        result.append(np.cumprod(steps, dtype=np.uint64))
    return result[0], result[1]


def _prefix_sums(values: Hashes, base: int) -> Hashes:
    """prefix[i] = sum over j < i of values[j] * base^j, modulo 2^64."""
    powers, _ = _powers(base, CHUNK + OVERLAP)
    prefix = np.zeros(len(values) + 1, dtype=np.uint64)
    np.cumsum(values * powers[: len(values)], dtype=np.uint64, out=prefix[1:])
    return prefix


def _spans_hash(values: Hashes, starts: NDArray[np.intp], ends: NDArray[np.intp], base: int) -> Hashes:
    """Polynomial hash of `values[start:end]` for every span, from prefix sums: independent of the position."""
    prefix = _prefix_sums(values, base)
    return _mix((prefix[ends] - prefix[starts]) * _powers(base, CHUNK + OVERLAP)[1][starts])


def _windows_hash(values: Hashes, k: int, base: int) -> Hashes:
    """The same for every window of k values, without looking each of them up."""
    prefix = _prefix_sums(values, base)
    count = len(values) - k + 1
    return _mix((prefix[k:] - prefix[:count]) * _powers(base, CHUNK + OVERLAP)[1][:count])


def _token_hashes(data: bytes) -> tuple[Hashes, NDArray[np.bool_]]:
    """(hash, is a name) of every token of at most CHUNK + OVERLAP bytes."""
    raw = np.frombuffer(data, dtype=np.uint8)
    classes = _CLASSES[raw]
    word = classes == _WORD
    mark = classes == _MARK
    around = np.pad(word, 1)
    starts = np.flatnonzero(mark | (word & ~around[:-2]))
    ends = np.flatnonzero(mark | (word & ~around[2:])) + 1
    hashes = _spans_hash(_BYTE_VALUES[raw], starts, ends, _BASE)
    is_name = word[starts] & (raw[starts] > ord("9"))
    return hashes, is_name


@cache
def _fixed_words() -> Hashes:
    """Hashes of words that renaming leaves alone."""
    words = sorted({*keyword.kwlist, *(name for name in dir(builtins) if name.islower()), "self"})
    return np.unique(_token_hashes(" ".join(words).encode())[0])


def _abstract(hashes: Hashes, is_name: NDArray[np.bool_]) -> Hashes:
    """Replace names by the distance to their previous occurrence (0 when farther than MAX_DISTANCE)."""
    fixed = _fixed_words()
    place = np.minimum(np.searchsorted(fixed, hashes), len(fixed) - 1)
    name = is_name & (fixed[place] != hashes)
    where = np.flatnonzero(name)
    order = where[np.argsort(hashes[where], kind="stable")]
    same = np.zeros(len(order), dtype=bool)
    same[1:] = hashes[order[1:]] == hashes[order[:-1]]
    distance = np.zeros(len(order), dtype=np.uint64)
    distance[1:] = np.where(same[1:], order[1:] - order[:-1], 0)
    distance[distance > MAX_DISTANCE] = 0
    result = hashes.copy()
    result[order] = _mix(np.uint64(_BASE) + distance)
    return result


@dataclass(frozen=True, slots=True)
class View:
    """How a text is seen: k tokens a gram, names kept or abstracted."""

    name: Literal["kept", "abstracted"]
    k: int


KEPT: Final = View("kept", 8)
ABSTRACTED: Final = View("abstracted", 12)

_COMMENT: Final = re.compile(rb"#[^\n]*")
"""From any `#` to the end of the line, on both sides alike: a literal prefix is searched ten times faster."""


def _chunks(data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data), CHUNK):
        yield data[start : start + CHUNK + OVERLAP]


def kgrams(data: bytes, views: tuple[View, ...] = (KEPT, ABSTRACTED)) -> Iterator[tuple[View, Hashes]]:
    """Hashes of all k-grams of a text in order, chunk by chunk.

    Args:
        data: the text's bytes; any ASCII-compatible encoding.
        views: which views to hash.

    Yields:
        (view, hashes of shape (number of tokens - k + 1,)) for every chunk and view.
    """
    for chunk in _chunks(_COMMENT.sub(b"", data)):
        hashes, is_name = _token_hashes(chunk)
        for view in views:
            # a table of numbers has no names: abstracted it is what it was, and the kept view has seen it
            if len(hashes) < view.k or (view.name == "abstracted" and not is_name.any()):
                continue
            tokens = hashes if view.name == "kept" else _abstract(hashes, is_name)
            yield view, _windows_hash(tokens, view.k, _GRAM_BASE)


def code_only(data: bytes) -> bytes:
    """Python source without comments and docstrings; anything that does not tokenise is returned as it is."""
    try:
        kept: list[str] = []
        previous = tokenize.NEWLINE
        stream = list(tokenize.tokenize(io.BytesIO(data).readline))
        for token, following in zip(stream, [*stream[1:], stream[-1]], strict=True):
            if token.type in {tokenize.COMMENT, tokenize.ENCODING, tokenize.NL}:
                continue
            statement_start = previous in {tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
            docstring = token.type == tokenize.STRING and statement_start and following.type == tokenize.NEWLINE
            if not docstring:
                kept.append("\n" if token.type == tokenize.NEWLINE else token.string)
            previous = token.type
        return " ".join(kept).encode("utf-8", "surrogateescape")
    except (tokenize.TokenError, SyntaxError, UnicodeDecodeError):
        return data


def _winnow(grams: Hashes) -> Hashes:
    windows = np.lib.stride_tricks.sliding_window_view(grams, min(WINDOW, len(grams)))
    return np.unique(windows.min(axis=1))


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The winnowed k-grams of one masked text."""

    name: str
    """What the text is, for the report: usually its path."""
    hashes: dict[str, Hashes] = field(repr=False)
    """View name -> sorted unique fingerprints."""

    def without(self, common: dict[str, Hashes], name: str) -> Fingerprint | None:
        """The part that is not common, under another name; None when too little is left."""
        left = {view: values[~np.isin(values, common[view])] for view, values in self.hashes.items() if view in common}
        left = {view: values for view, values in left.items() if len(values) >= MIN_FINGERPRINTS}
        return Fingerprint(name, left) if left else None


def fingerprint(name: str, data: bytes, *, abstracted: bool) -> Fingerprint | None:
    """Fingerprint a masked text, or None when it is too short to be recognised except by an exact match.

    Args:
        name: label for reports.
        data: the text; pass Python through `code_only` first.
        abstracted: also fingerprint with names abstracted (for code).
    """
    views = (KEPT, ABSTRACTED) if abstracted else (KEPT,)
    found: dict[str, list[Hashes]] = {}
    for view, grams in kgrams(data, views):
        found.setdefault(view.name, []).append(_winnow(grams))
    hashes = {name_: np.unique(np.concatenate(parts)) for name_, parts in found.items()}
    hashes = {name_: values for name_, values in hashes.items() if len(values) >= MIN_FINGERPRINTS}
    return Fingerprint(name, hashes) if hashes else None


@dataclass(frozen=True, slots=True)
class Share:
    """How much of a masked text a searched text holds."""

    name: str
    view: View
    share: float


_BITS: Final = 18


@dataclass(frozen=True, slots=True)
class _Table:
    """All fingerprints of one view: sorted distinct hashes, and (position in them, owner) pairs."""

    distinct: Hashes
    filter: NDArray[np.bool_]
    position: NDArray[np.intp]
    owner: NDArray[np.intp]
    sizes: NDArray[np.intp]

    @classmethod
    def of(cls, fingerprints: list[Fingerprint], view: View) -> _Table:
        parts = [item.hashes.get(view.name, np.empty(0, dtype=np.uint64)) for item in fingerprints]
        distinct, position = np.unique(np.concatenate(parts), return_inverse=True)
        sizes = np.array([len(part) for part in parts], dtype=np.intp)
        table = np.zeros(1 << _BITS, dtype=bool)
        table[distinct >> np.uint64(64 - _BITS)] = True
        return cls(distinct, table, position.astype(np.intp), np.repeat(np.arange(len(parts)), sizes), sizes)

    def mark(self, grams: Hashes, seen: NDArray[np.bool_]) -> None:
        """Set `seen` where a distinct hash occurs among `grams`; the table rejects most grams at one look-up each."""
        candidates = grams[self.filter[grams >> np.uint64(64 - _BITS)]]
        place = np.minimum(np.searchsorted(self.distinct, candidates), len(self.distinct) - 1)
        seen[place[self.distinct[place] == candidates]] = True


class Index:
    """Many fingerprints, searched together.

    Args:
        fingerprints: of the masked texts.
    """

    def __init__(self, fingerprints: list[Fingerprint]) -> None:
        self._names = [item.name for item in fingerprints]
        self._tables = {
            view: _Table.of(fingerprints, view)
            for view in (KEPT, ABSTRACTED)
            if any(view.name in item.hashes for item in fingerprints)
        }

    def _seen(self, data: bytes) -> dict[View, NDArray[np.bool_]]:
        seen = {view: np.zeros(len(table.distinct), dtype=bool) for view, table in self._tables.items()}
        if self._tables:
            for view, grams in kgrams(data, tuple(self._tables)):
                self._tables[view].mark(grams, seen[view])
        return seen

    def common(self, texts: Iterable[bytes], *, copies: float, files: int) -> dict[str, Hashes]:
        """Fingerprints that are the repository's habit rather than the masked text's own.

        Args:
            texts: other files of the repository, without repetitions.
            copies: a text that holds this share of any fingerprint is a copy of it and has no say.
            files: in how many texts a fingerprint must occur to be common.

        Returns:
            View name -> common fingerprints, sorted.
        """
        counts = {view: np.zeros(len(table.distinct), dtype=np.intp) for view, table in self._tables.items()}
        for text in texts:
            seen = self._seen(text)
            if all(share.share < copies for share in self._shares(seen)):
                for view, marks in seen.items():
                    counts[view] += marks
        return {view.name: table.distinct[counts[view] >= files] for view, table in self._tables.items()}

    def shares(self, data: bytes) -> list[Share]:
        """For every fingerprint and view the share of it that `data` holds; zero shares are left out."""
        return self._shares(self._seen(data))

    def _shares(self, seen: dict[View, NDArray[np.bool_]]) -> list[Share]:
        result: list[Share] = []
        for view, table in self._tables.items():
            counts = np.bincount(table.owner[seen[view][table.position]])
            result.extend(
                Share(self._names[owner], view, float(counts[owner] / table.sizes[owner]))
                for owner in np.flatnonzero(counts)
            )
        return result
