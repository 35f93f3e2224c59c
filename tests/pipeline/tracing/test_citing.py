import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.tracing.citing import FAR, NEAR, price, priced
from tests.pipeline.locator.repositories import make

FILES = {
    "train.py": "import os\nprint(1)\n",
    "eval.py": "print(2)\n",
    "long.py": "".join(f"x{n} = {n}\n" for n in range(900)),
    "far.py": "print(3)\n",
    "README.md": "# Nothing\n",
}


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory):
    return make(tmp_path_factory.mktemp("citing"), FILES)


def near(files):
    return [file.path for file in files if file.price <= NEAR]


def test_the_best_file_and_those_near_it_are_cited(snapshot):
    files = priced(snapshot, [("train.py", 5.0), ("eval.py", 4.6), ("far.py", 3.0)], ["train.py"])
    assert near(files) == ["train.py", "eval.py"]
    assert [file.path for file in files] == ["train.py", "eval.py", "far.py"]
    assert files[0].likely > files[1].likely > files[2].likely


def test_a_long_file_must_be_nearer_than_a_short_one(snapshot):
    ranked = [("train.py", 5.0), ("eval.py", 4.5), ("long.py", 4.5)]
    assert near(priced(snapshot, ranked, [])) == ["train.py", "eval.py"]


def test_the_chain_may_lie_further_off_but_not_anywhere(snapshot):
    ranked = [("train.py", 5.0), ("eval.py", 3.7), ("far.py", 0.0)]
    assert near(priced(snapshot, ranked, ["train.py"])) == ["train.py"]
    assert near(priced(snapshot, ranked, ["train.py", "eval.py", "far.py"])) == ["train.py", "eval.py"]


def test_what_defines_nothing_and_what_is_not_ranked_is_not_cited(snapshot):
    assert priced(snapshot, [("README.md", 5.0)], ["eval.py"]) == ()
    assert priced(snapshot, [], ["eval.py"]) == ()


@given(st.floats(0, 10), st.floats(0, 10), st.integers(1, 5000), st.integers(1, 5000), st.booleans())
def test_a_price_never_falls_with_distance_or_length(gap, more, lines, added, in_chain):
    here = price(gap, lines, in_chain=in_chain)
    assert 0 <= here <= price(gap + more, lines + added, in_chain=in_chain)
    assert price(gap, lines, in_chain=True) <= price(gap, lines, in_chain=False)
    assert price(0.0, lines, in_chain=in_chain) == 0
    assert math.isinf(price(math.inf, lines, in_chain=in_chain))


def test_limits_are_in_order():
    assert 0 < NEAR < FAR
