"""Near-duplicates: what reformatting and renaming keep, and that other programs stay apart."""

from __future__ import annotations

import ast
import random
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from masking.fingerprints import ABSTRACTED, CHUNK, KEPT, Index, code_only, fingerprint, kgrams
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


@pytest.mark.parametrize("text", [b"def (:\n", b"'''open", b"\tx\n y\n", b"\xff\xfe\x00", b""])
def test_what_does_not_tokenise_is_kept(text: bytes) -> None:
    assert isinstance(code_only(text), bytes)


@given(st.binary(max_size=2000))
def test_any_bytes_have_grams(data: bytes) -> None:
    for view, grams in kgrams(data):
        assert grams.dtype == np.uint64
        assert view in {KEPT, ABSTRACTED}
