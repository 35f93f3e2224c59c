import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.tracing.citing import DECIDED, FAR, NEAR, chances, cite, select, stop
from pipeline.tracing.coverage import parts_of
from tests.pipeline.locator.repositories import make

HELPER = "def helper_{0}(x):\n    return x\n\n\n"
FILES = {
    "train.py": "import os\n\n\ndef main():\n" + "    print(1)\n" * 40,
    "eval.py": "print(2)\n" * 20,
    "far.py": "print(3)\n",
    "long.py": "".join(HELPER.format(number) for number in range(200)) + "def train():\n" + "    step()\n" * 80,
    "README.md": "# Nothing\n",
}
CHAIN = ["train.py"]


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory):
    return make(tmp_path_factory.mktemp("citing"), FILES)


def near(files):
    return [file.path for file in files if any(item.near for item in file.definitions)]


def test_where_the_ranking_is_sure_only_the_best_file_is_cited(snapshot):
    ranked = [("train.py", 9.0), ("eval.py", 4.0), ("far.py", 1.0)]
    assert near(cite(snapshot, chances(ranked, CHAIN), CHAIN)) == ["train.py"]


def test_where_the_ranking_is_flat_more_files_are(snapshot):
    ranked = [("train.py", 5.0), ("eval.py", 4.9), ("far.py", 0.0)]
    assert near(cite(snapshot, chances(ranked, ["train.py", "eval.py"]), CHAIN)) == ["train.py", "eval.py"]


def test_the_chain_comes_first_and_is_likelier(snapshot):
    ranked = [("train.py", 5.0), ("eval.py", 5.0)]
    found = chances(ranked, ["eval.py", "unknown.py"])
    assert list(found) == ["eval.py", "train.py"]
    assert found["eval.py"] > found["train.py"]


def test_of_a_long_file_the_body_is_cited_before_its_helpers(snapshot):
    (file,) = cite(snapshot, {"long.py": 0.9}, [])
    likely = {item.requirement.text.split()[1].rstrip(":"): item.likely for item in file.definitions}
    assert likely["train"] == max(likely.values())
    assert [item.requirement.spans[0].start for item in file.definitions] == sorted(
        item.requirement.spans[0].start for item in file.definitions
    )


def test_requirements_are_likelier_than_what_is_listed_apart(snapshot):
    chance = {"train.py": 0.7, "eval.py": 0.25, "far.py": 0.1}
    found = [item for file in cite(snapshot, chance, CHAIN) for item in file.definitions]
    kept, apart = ([item.likely for item in found if item.near is wanted] for wanted in (True, False))
    assert apart
    assert min(kept) >= max(apart)


def test_what_defines_nothing_and_what_is_not_ranked_is_not_cited(snapshot):
    assert cite(snapshot, chances([("README.md", 5.0)], ["eval.py"]), ["eval.py"]) == ()
    assert chances([], ["eval.py"]) == {}
    assert cite(snapshot, {}, []) == ()


def test_what_is_decided_to_be_the_answer_is_cited_as_a_whole(snapshot):
    (file,) = cite(snapshot, {"train.py": 0.95}, CHAIN, worth=DECIDED)
    assert {item.requirement.text for item in file.definitions} == {
        part.requirement.text for part in parts_of(snapshot, "train.py")
    }
    assert file.definitions[1].near


scores = st.lists(st.floats(-20, 20), min_size=1, max_size=30)


@given(scores, st.integers(0, 29))
def test_a_chance_is_a_probability_and_grows_with_the_score(values, raised):
    ranked = sorted(((f"{n}.py", value) for n, value in enumerate(values)), key=lambda item: -item[1])
    before = chances(ranked, [])
    assert all(0 <= value <= 1 for value in before.values())
    assert list(before.values()) == sorted(before.values(), reverse=True)
    path, _ = ranked[raised % len(ranked)]
    after = chances([(other, score + (other == path)) for other, score in ranked], [])
    if path in before:
        assert after[path] >= before[path]
    assert all(math.isfinite(value) for value in after.values())


lines = st.lists(st.tuples(st.floats(0.01, 1), st.integers(1, 500), st.floats(0.001, 1)), max_size=20)


@given(lines)
def test_the_more_precision_is_worth_the_fewer_are_taken(line):
    line.sort(key=lambda item: -item[0])
    taken = [stop(line, worth) for worth in (0.0, 1.0, 3.0, 100.0)]
    assert taken == sorted(taken, reverse=True)
    assert taken[0] == len(line)
    assert taken[-1] >= min(1, len(line))


def test_the_worth_of_precision_decides_how_much_is_cited(snapshot):
    parts = {path: parts_of(snapshot, path) for path in FILES}
    chance = {"train.py": 0.6, "eval.py": 0.4, "long.py": 0.2}

    def count(worth):
        return sum(len(file.definitions) for file in select(parts, chance, CHAIN, worth=(worth, worth)))

    assert count(0.1) > count(3.0) >= count(50.0) >= 1


def test_limits_are_in_order():
    assert 0 < FAR < NEAR
