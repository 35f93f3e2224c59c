"""Near-duplicates: what reformatting and renaming keep, and that other programs stay apart."""

from __future__ import annotations

import ast
import random
import re
import string

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from masking.fingerprints import (
    _BYTE_VALUES,
    ABSTRACTED,
    CHUNK,
    KEPT,
    OVERLAP,
    Fingerprint,
    Index,
    _fixed_words,
    _mix,
    _Table,
    _token_hashes,
    code_only,
    fingerprint,
    kgrams,
)
from tests.masking import builders

RUN = builders.RUN.encode()


def shares(reference: bytes, text: bytes) -> dict[str, float]:
    found = fingerprint("masked", code_only(reference), abstracted=True)
    assert found is not None
    return {share.view.name: share.share for share in Index([found]).shares(text)}


def test_itself_is_found_whole() -> None:
    assert shares(RUN, code_only(RUN)) == {"kept": 1.0, "abstracted": 1.0}


def test_reformatting_keeps_the_tokens() -> None:
    compact = re.sub(rb"\n\s*(?=[a-z*{\[])", b"\n  ", RUN).replace(b'"', b"'")
    assert shares(RUN, compact)["kept"] > 0.9
    assert shares(RUN, ast.unparse(ast.parse(RUN)).encode())["kept"] > 0.8


@given(st.permutations(sorted(builders.RENAMED)))
def test_renaming_is_seen_through(order: list[str]) -> None:
    """Any one-to-one renaming, even one that swaps names, keeps the abstracted view."""
    names = dict(zip(sorted(builders.RENAMED), order, strict=True))
    renamed = re.sub(r"[A-Za-z_]\w*", lambda match: names.get(match[0], match[0]), builders.RUN).encode()
    assert shares(code_only(RUN), code_only(renamed))["abstracted"] > 0.85


def test_another_program_shares_little() -> None:
    other = builders.ESTIMATORS.encode() * 3
    found = shares(RUN, other)
    assert max(found.values(), default=0.0) < 0.3


def test_position_and_surroundings_do_not_matter() -> None:
    generator = random.Random(5)
    noise = b" ".join(b"w%d" % generator.randrange(10**6) for _ in range(200_000))
    for offset in (0, 777, CHUNK - 3000, CHUNK + 10):
        text = noise[:offset] + b"\n" + code_only(RUN) + b"\n" + noise[offset:]
        assert shares(RUN, text)["kept"] == 1.0


def test_common_code_is_not_the_masked_files_own() -> None:
    habit = b"".join(b"argument_%d = parser.add(%d)\n" % (i, i) for i in range(30))
    own = b"".join(b"result_%d = model.step(%d) + offset\n" % (i, i * 7) for i in range(30))
    found = fingerprint("masked", habit + own, abstracted=False)
    assert found is not None
    siblings = [habit + b"other_%d = 1\n" % i for i in range(3)]
    common = Index([found]).common(siblings, copies=0.8, files=2)
    left = found.without(common, "own")
    assert left is not None
    assert Index([left]).shares(siblings[0]) == []
    assert Index([left]).shares(own)[0].share > 0.9


def test_too_short_to_tell() -> None:
    assert fingerprint("masked", b"import os\nprint(os.getcwd())\n", abstracted=True) is None


@pytest.mark.parametrize(
    "text", [b"# c\nx = '''open", b"# c\n\tx\n y\n", b"\xff\xfe\x00", b"# c\na = 1\nb = 2\nc = '\xff'\n"]
)
def test_what_does_not_tokenise_is_kept(text: bytes) -> None:
    assert code_only(text) == text


@given(st.binary(max_size=2000))
def test_any_bytes_have_grams(data: bytes) -> None:
    for view, grams in kgrams(data):
        assert grams.dtype == np.uint64
        assert view in {KEPT, ABSTRACTED}


def words(count: int, start: int = 0) -> bytes:
    return b" ".join(b"w%d" % number for number in range(start, start + count))


def test_comments_and_docstrings_are_no_code() -> None:
    source = b'''"""Module."""\n# why\nimport os  # behind\n\n\ndef f(x):\n    "Doc."\n    y = "kept"\n    "alone"\n    return x\n'''
    text = code_only(source).decode()
    assert [word for word in ("Module", "why", "behind", "Doc", "alone") if word in text] == []
    assert text.split() == ["import", "os", "def", "f", "(", "x", ")", ":", "y", "=", '"kept"', "return", "x"]
    assert code_only(b"f(x)(\n'arg'\n)\n").split() == [b"f", b"(", b"x", b")", b"(", b"'arg'", b")"]


def test_what_does_not_count_as_a_token_makes_no_difference() -> None:
    text = b"alpha = beta(gamma, 'delta') + 1; epsilon = zeta[eta] * 2.5 - theta / iota"
    other = b'alpha=beta ( gamma "delta" )+1 \n# words of a comment\n epsilon=zeta [eta]*2.5-theta/iota'
    assert [(view, grams.tolist()) for view, grams in kgrams(text)] == [
        (view, grams.tolist()) for view, grams in kgrams(other)
    ]


@pytest.mark.parametrize("change", [(b"+", b"-"), (b"2.5", b"2.6"), (b"beta", b"eta"), (b"*", b"**")])
def test_what_counts_as_a_token_does(change: tuple[bytes, bytes]) -> None:
    text = b"alpha = beta(gamma) + 1 epsilon = zeta[eta] * 2.5 - theta / iota"
    assert [g.tolist() for _, g in kgrams(text, (KEPT,))] != [
        g.tolist() for _, g in kgrams(text.replace(*change), (KEPT,))
    ]


def test_a_gram_is_so_many_tokens() -> None:
    def count(tokens: int) -> dict[str, int]:
        return {view.name: len(grams) for view, grams in kgrams(words(tokens))}

    assert count(7) == {}
    assert count(8) == {"kept": 1}
    assert count(12) == {"kept": 5, "abstracted": 1}
    assert {view.name for view, _ in kgrams(b"1 2 3 " * 10)} == {"kept"}  # no names to be abstracted
    assert [view.name for view, _ in kgrams(words(8), (ABSTRACTED, KEPT))] == ["kept"]


def test_renaming_is_told_from_using_another_name() -> None:
    """`a b a` renamed is `x y x`, and not `x y y`."""

    def grams(text: bytes) -> list[list[int]]:
        return [found.tolist() for _, found in kgrams(text, (ABSTRACTED,))]

    text = b"one = two + one * three - two / four + one + 5 - two"
    renamed = text.replace(b"one", b"un").replace(b"two", b"deux").replace(b"three", b"trois").replace(b"four", b"q")
    assert grams(text) == grams(renamed)
    assert grams(text) != grams(text.replace(b"/ four", b"/ one"))
    assert grams(b"for x in y: x = len(y) + 1 - x * y / z + x") == grams(b"for a in b: a = len(b) + 1 - a * b / c + a")
    assert grams(b"for x in y: x = len(y) + 1 - x * y / z + x") != grams(b"for a in b: a = sum(b) + 1 - a * b / c + a")


def test_a_name_seen_long_ago_counts_as_new() -> None:
    def grams(filler: int, last: bytes) -> list[int]:
        text = b"name = 1 " + b"+ 2 " * filler + b"- " + last + b" * 3 / 4 % 5 + 6 - 7 * 8"
        ((_, found),) = kgrams(text, (ABSTRACTED,))
        return found.tolist()

    assert grams(6, b"name") != grams(6, b"other")  # 16 tokens apart
    assert grams(6, b"/ name") == grams(6, b"/ other")
    assert grams(7, b"name") == grams(7, b"other")


# --- tokens and hashes -----------------------------------------------------------------------------------------------


def test_which_bytes_belong_to_words_which_are_tokens_and_which_are_nothing() -> None:
    def count(data: bytes) -> int:
        return len(_token_hashes(data)[0])

    in_words = {*(string.ascii_letters + string.digits + "_").encode(), *range(0x80, 0x100)}
    nothing = {*range(0x21), *b",;'\"`()\\"}
    for byte in range(256):
        expected = 1 if byte in in_words else 2 if byte in nothing else 3
        assert count(b"a" + bytes([byte]) + b"b") == expected, byte
        assert count(bytes([byte])) == (0 if byte in nothing else 1)


def test_names_are_words_that_begin_with_no_digit() -> None:
    given_ = [b"A", b"z9", b"_a", b"\xc3\xa9", b"0", b"9x", b"5", b"+", b"a"]
    assert _token_hashes(b" ".join(given_))[1].tolist() == [True] * 4 + [False] * 4 + [True]


def test_the_same_letters_and_words_in_another_order_are_another_text() -> None:
    first, second, third = _token_hashes(b"stop pots stop")[0].tolist()
    assert first == third != second
    for length, found in enumerate(_token_hashes(b"a aa aaa")[0].tolist(), start=1):
        assert found == _token_hashes(b"x " + b"a" * length)[0].tolist()[1]
    forth, again, back = (next(kgrams(text, (KEPT,)))[1].tolist() for text in (b"+-*/%<>=", b"+-*/%<>=", b"=><%/*-+"))
    assert forth == again != back


def test_hashes_are_mixed_as_splitmix64_does() -> None:
    """The first outputs for seed 0, as published with the generator."""
    published = ["0xe220a8397b1dcdaf", "0x6e789e6aa1b965f4", "0x6c45d188009454f"]
    states = np.arange(1, 4, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    assert [hex(value) for value in _mix(states)] == published
    assert [hex(value) for value in _BYTE_VALUES[:3]] == published
    assert len(set(_BYTE_VALUES.tolist())) == len(_BYTE_VALUES) == 256


def test_renaming_leaves_keywords_builtins_and_self_alone() -> None:
    fixed = set(_fixed_words().tolist())
    words_ = (b"self", b"len", b"while", b"values", b"cls")
    assert [_token_hashes(word)[0].tolist()[0] in fixed for word in words_] == [True, True, True, False, False]
    assert _fixed_words() is _fixed_words()  # worked out once


def test_long_texts_are_hashed_in_pieces_that_overlap() -> None:
    assert CHUNK == 1 << 20  # keeps the working arrays near 50 MB
    text = b"word " * (2 * CHUNK // 5)
    first, second = (len(grams) for _, grams in kgrams(text, (KEPT,)))
    assert first == pytest.approx((CHUNK + OVERLAP) / 5, abs=10)
    assert second == pytest.approx(CHUNK / 5, abs=10)


def test_a_gram_of_four_kilobytes_is_found_at_a_cut() -> None:
    """It begins with the last byte of one piece, and ends with the last byte that this piece shares with the next."""
    run = b" ".join(bytes([97 + number]) * 511 for number in range(8)) + b"hh"
    assert len(run) == OVERLAP + 1 == 4097
    wanted = next(kgrams(run, (KEPT,)))[1][0]
    text = b"." * (CHUNK - 1) + run + b"." * 5000
    assert any((grams == wanted).any() for _, grams in kgrams(text, (KEPT,)))


def test_a_hash_beyond_the_last_known_one_is_not_known() -> None:
    table = _Table.of([Fingerprint("a", {"kept": np.array([5, 9], dtype=np.uint64)})], KEPT)
    seen = np.zeros(2, dtype=bool)
    table.mark(np.array([4, 6, 10, 11], dtype=np.uint64), seen)
    assert seen.tolist() == [False, False]
    table.mark(np.array([9, 1 << 63], dtype=np.uint64), seen)
    assert seen.tolist() == [False, True]


def test_how_short_a_text_can_be() -> None:
    """Ten fingerprints are the least; how many tokens that takes depends on the words."""
    shortest = next(n for n in range(8, 60) if fingerprint("a", words(n), abstracted=False))
    found = fingerprint("a", words(shortest), abstracted=False)
    assert found is not None
    assert len(found.hashes["kept"]) == 10
    assert set(found.hashes) == {"kept"}
    assert 18 <= shortest <= 40


def test_what_is_searched_is_found_in_parts() -> None:
    found = fingerprint("masked", words(100), abstracted=False)
    other = fingerprint("other", words(100, start=1000), abstracted=False)
    assert found is not None
    assert other is not None
    index = Index([found, other])
    assert [(share.name, share.view, share.share) for share in index.shares(words(100))] == [("masked", KEPT, 1.0)]
    (half,) = index.shares(words(50))
    assert 0.35 < half.share < 0.55
    both = {share.name: share.share for share in index.shares(words(100) + b" " + words(100, start=1000))}
    assert both == {"masked": 1.0, "other": 1.0}
    assert index.shares(words(100, start=5000)) == []
    assert Index([]).shares(words(100)) == []


def test_what_is_common_and_what_a_copy_has_no_say_in() -> None:
    found = fingerprint("masked", words(100), abstracted=False)
    assert found is not None
    index = Index([found])
    half = [words(50) + b" " + words(50, start=start) for start in (1000, 2000)]
    assert len(index.common(half[:1], copies=0.8, files=2)["kept"]) == 0
    common = index.common(half, copies=0.8, files=2)
    assert 0.35 < len(common["kept"]) / len(found.hashes["kept"]) < 0.55
    assert len(index.common([words(100), words(100)], copies=1.0, files=2)["kept"]) == 0  # copies
    assert len(index.common([words(100), words(100)], copies=1.1, files=2)["kept"]) == len(found.hashes["kept"])
    left = found.without(common, "own")
    assert left is not None
    assert left.name == "own"
    assert len(left.hashes["kept"]) == len(found.hashes["kept"]) - len(common["kept"])
    assert found.without({"kept": found.hashes["kept"][:-9]}, "own") is None  # nine are too few
    assert found.without({"kept": found.hashes["kept"][:-10]}, "own") is not None
    assert found.without({}, "own") is None


def test_two_fifths_of_the_grams_are_kept_and_a_run_of_eleven_tokens_is_certain() -> None:
    found = fingerprint("a", words(3000), abstracted=False)
    assert found is not None
    assert 0.37 < len(found.hashes["kept"]) / 2993 < 0.43
    index = Index([found])
    assert all(index.shares(b"x y z " + words(11, start=start) + b" x y z") for start in range(0, 900, 7))
