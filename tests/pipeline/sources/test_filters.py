"""Filters: each rejection says what was found and what was asked; what is not known decides nothing by itself."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.sources.candidate import Candidate, Needs
from pipeline.sources.filters import Filters, judge, read_filters
from pipeline.sources.ranking import score

PAPER = Candidate(
    id="p", title="Fast Weights", venue="ICLR", year=2024, abstract="A study of nets.", keywords=("meta-learning",),
    repository="https://github.com/lab/fast", citations=20, stars=150, forks=9, license="MIT", language="Python",
    active="2025-03-02", archived=False, needs=Needs(gpus=2, memory_gb=16, hours=4, difficulty=3, api_calls=True),
)  # fmt: skip
NONE = Filters(venues=(), min_stars=None, code=False)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"venues": ("NeurIPS",)}, "ICLR"),
        ({"years": (2025, None)}, "2024"),
        ({"years": (None, 2023)}, "2024"),
        ({"min_citations": 21}, "20"),
        ({"min_stars": 151}, "150"),
        ({"min_forks": 10}, "9"),
        ({"licenses": ("Apache-2.0",)}, "MIT"),
        ({"languages": ("Julia",)}, "Python"),
        ({"hosts": ("gitlab.com",)}, "github.com"),
        ({"active_since": date(2025, 4, 1)}, "2025-03-02"),
        ({"max_gpus": 1}, "2"),
        ({"max_memory_gb": 8}, "16"),
        ({"max_hours": 3.5}, "4"),
        ({"max_difficulty": 2}, "3"),
        ({"api_calls": False}, "needed"),
        ({"keywords": ("graph",)}, "none"),
        ({"without_keywords": ("nets",)}, "nets"),
    ],
)
def test_each_filter_rejects_with_its_reason(asked: dict[str, Any], found: str) -> None:
    rejections, unknown = judge(PAPER, NONE.evolve(**asked))
    assert [(item.filter, item.found) for item in rejections] == [(next(iter(asked)), found)]
    assert rejections[0].wanted
    assert rejections[0].reason
    assert unknown == []


@pytest.mark.parametrize(
    "asked",
    [
        {"venues": ("iclr",)}, {"years": (2024, 2024)}, {"min_citations": 20}, {"min_stars": 150}, {"min_forks": 9},
        {"licenses": "redistributable"}, {"licenses": ("mit",)}, {"languages": ("python",)}, {"code": True},
        {"active_since": date(2025, 3, 2)}, {"archived": False}, {"max_gpus": 2}, {"max_hours": 4},
        {"keywords": ("META-learning", "x")}, {"without_keywords": ("net", "fas")}, {"hosts": ("github.com",)},
    ],
)  # fmt: skip
def test_what_meets_a_filter_passes(asked: dict[str, Any]) -> None:
    assert judge(PAPER, NONE.evolve(**asked)) == ([], [])


UNKNOWN = Candidate(id="q", title="Q", repository="https://github.com/a/b")
ASKED = Filters(
    min_citations=1, years=(2020, None), min_stars=1, min_forks=1, licenses=("MIT",), languages=("Python",),
    active_since=date(2024, 1, 1), archived=False, max_gpus=1, max_memory_gb=1, max_hours=1, max_difficulty=1,
    api_calls=False,
)  # fmt: skip


def test_unknown_is_kept_and_named_or_rejected_by_choice() -> None:
    rejections, unknown = judge(UNKNOWN, ASKED)
    assert rejections == []
    assert unknown == [
        "venues", "years", "min_citations", "min_stars", "min_forks", "licenses", "languages", "active_since",
        "archived", "max_gpus", "max_memory_gb", "max_hours", "max_difficulty", "api_calls",
    ]  # fmt: skip
    rejections, _ = judge(UNKNOWN, ASKED.evolve(unknown="reject"))
    assert [item.filter for item in rejections] == unknown
    assert {item.found for item in rejections} == {"unknown"}


def test_without_code_nothing_is_asked_of_the_code() -> None:
    rejections, unknown = judge(Candidate(id="q", title="Q", venue="ICLR"), Filters(licenses=("MIT",)))
    assert [item.filter for item in rejections] == ["code"]
    assert unknown == []
    licence, _ = judge(PAPER.evolve(license="NONE"), NONE.evolve(licenses="redistributable"))
    assert licence[0].reason == "it has no licence"


def test_the_defaults_are_those_of_stage_1() -> None:
    assert judge(PAPER, Filters()) == ([], [])
    assert [item.filter for item in judge(PAPER.evolve(stars=99), Filters())[0]] == ["min_stars"]
    assert [item.filter for item in judge(PAPER.evolve(repository=None, venue="X"), Filters())[0]] == ["code", "venues"]


def test_filters_are_declared_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "filters.yaml"
    path.write_text("min_stars: 5\nlicenses: redistributable\nactive_since: 2024-02-01\nyears: [2023, null]\n")
    found = read_filters(path)
    assert (found.min_stars, found.licenses, found.active_since) == (5, "redistributable", date(2024, 2, 1))
    assert found.venues == Filters().venues
    path.write_text("")
    assert read_filters(path) == Filters()


@pytest.mark.parametrize("text", ["min_star: 5\n", "- a\n", "min_stars: many\n", "a: [\n"])
def test_a_filter_that_there_is_not_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "filters.yaml"
    path.write_text(text)
    with pytest.raises(ExpbenchError) as caught:
        read_filters(path)
    assert caught.value.kind is FailureKind.USAGE
    assert "min_stars" in caught.value.next_step


counts = st.none() | st.integers(0, 10**6)


@settings(deadline=None)
@given(counts, counts, counts, st.integers(1, 1000))
def test_scores_are_shares_that_grow_with_each_signal(
    citations: int | None, stars: int | None, forks: int | None, more: int
) -> None:
    paper = Candidate(id="p", title="P", citations=citations, stars=stars, forks=forks)
    value, signals = score(paper)
    assert 0 <= value <= 1
    assert signals == tuple(name for name in ("citations", "stars", "forks") if getattr(paper, name) is not None)
    if stars is not None:
        assert score(paper.evolve(stars=stars + more))[0] >= value
