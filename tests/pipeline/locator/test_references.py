import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.locator.links import PathResolver
from pipeline.locator.references import read_references


@pytest.mark.parametrize(
    ("text", "words", "patterns"),
    [
        ("load('./config/a.yaml')", {"./config/a.yaml"}, set()),
        ("load(f'./config/lt_{args.suffix}.py')", {"args.suffix}.py"}, {"./config/lt_*.py"}),
        ('--config "configs/data/${DATA}.yaml"', {"DATA}.yaml"}, {"configs/data/*.yaml"}),
        ("--config configs/$1/base.yaml", {"1/base.yaml"}, {"configs/*/base.yaml"}),
        ("'conf/%s_big.yaml' % size", {"s_big.yaml"}, {"conf/*_big.yaml"}),
        ("f'{a}/{b}/{c}/{d}.json'", {"d}.json"}, set()),  # nothing of it is known
        ("nothing here. py", set(), set()),
    ],
)
def test_paths_are_read_with_the_parts_that_are_filled_in(text, words, patterns):
    assert tuple(map(set, read_references(text))) == (words, patterns)


@given(st.text(alphabet="ab/.{}$%[]'\" yamlpys", max_size=80))
def test_any_text_is_read(text):
    words, patterns = read_references(text)
    assert list(words) == sorted(set(words))
    assert all(1 <= pattern.count("*") <= 3 for pattern in patterns)
    resolver = PathResolver(["a/b.yaml", "conf/ab_cd.yaml"])
    for pattern in patterns:
        assert set(resolver.fitting(pattern, "a")) <= {"a/b.yaml", "conf/ab_cd.yaml"}


def test_a_pattern_means_what_lies_nearest_and_nothing_when_it_fits_too_much():
    resolver = PathResolver(
        ["x/conf/one.yaml", "conf/one.yaml", "conf/deep/two.yaml", *(f"many/run_{n}.yaml" for n in range(40))]
    )
    assert resolver.fitting("conf/*.yaml") == ["conf/one.yaml"]  # a hole is part of one name
    assert resolver.fitting("conf/*.yaml", "x") == ["x/conf/one.yaml"]
    assert resolver.fitting("*/deep/t*.yaml") == ["conf/deep/two.yaml"]
    assert resolver.fitting("many/run_*.yaml") == []
    assert resolver.fitting("*.yaml") == []
