"""From exports and answers to the list that `curate` takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.progress import SilentReporter
from pipeline.sources.build import CandidateList, build_list, plan_list
from pipeline.sources.filters import Filters
from pipeline.sources.listing import fetch_papers, write_list
from pipeline.sources.services import GitHub, Lookup, OpenAlex
from pipeline.sources.web import WebClient
from tests.pipeline.sources.api_server import PDF, Services
from tests.pipeline.sources.conftest import Clock

ROWS = [
    {"title": "Fast Weights for Slow Learners", "venue": "ICLR", "year": 2024, "code_url": "https://github.com/lab/fast-weights"},
    {"title": "A Theory Without Any Code", "venue": "ICLR", "year": 2024},
    {"title": "Popular Elsewhere, Not Here", "venue": "Workshop", "year": 2024, "code_url": "https://github.com/a/b", "stars": 900},
    {"title": "Known From Its Export Alone", "venue": "NeurIPS", "year": 2023, "code_url": "https://github.com/c/d",
     "stars": 5000, "citations": 300, "pdf_url": "PAGE"},
]  # fmt: skip


@pytest.fixture
def rows(tmp_path: Path, services: Services) -> Path:
    path = tmp_path / "in" / "papers.jsonl"
    path.parent.mkdir()
    text = "".join(json.dumps(row) + "\n" for row in ROWS)
    path.write_text(text.replace("PAGE", f"{services.url}/papers/page.pdf"))
    return path


def build(path: Path, client: WebClient, *lookups: Lookup, **options: object) -> CandidateList:
    values = {"venues": (), "filters": Filters(), "limit": None} | options
    return build_list([path], lookups=lookups, client=client, reporter=SilentReporter(), **values)  # type: ignore[arg-type]


def test_the_list_is_ranked_and_every_rejection_is_explained(rows: Path, client: WebClient, services: Services) -> None:
    services.answers["/github/repos/c/d"] = services.answers["/github/repos/lab/fast-weights"] | {
        "stargazers_count": 5000,
        "html_url": "https://github.com/c/d",
    }
    result = build(rows, client, OpenAlex(), GitHub())
    assert [item.candidate.title for item in result.candidates] == [ROWS[3]["title"], ROWS[0]["title"]]
    assert [item.rank for item in result.candidates] == [1, 2]
    assert {item.candidate.title: [reason.filter for reason in item.reasons] for item in result.rejected} == {
        ROWS[1]["title"]: ["code"],
        ROWS[2]["title"]: ["venues"],
    }
    assert result.rejections() == {"code": 1, "venues": 1}
    fast = result.candidates[1].candidate
    assert (fast.stars, fast.citations, fast.license) == (412, 61, "MIT")
    # what lasting facts exclude is not looked up
    asked = {path.removesuffix("/commits/main") for path in services.paths() if "github" in path}
    assert asked == {"/github/repos/lab/fast-weights", "/github/repos/c/d"}


def test_a_repository_that_is_gone_is_rejected_with_that_reason(rows: Path, client: WebClient) -> None:
    result = build(rows, client, GitHub())
    gone = next(item for item in result.rejected if item.candidate.title == ROWS[3]["title"])
    assert "https://github.com/c/d is not there" in gone.reasons[0].reason


def test_a_service_that_fails_leaves_what_it_knows_unknown(rows: Path, client: WebClient, services: Services) -> None:
    services.refusals = [(429, {"Retry-After": "3600"})] * 5
    result = build(rows, client, GitHub(), filters=Filters(licenses=("MIT",)))
    assert [item.candidate.title for item in result.candidates] == [ROWS[3]["title"], ROWS[0]["title"]]
    assert result.candidates[1].unknown == ("min_stars", "licenses")
    assert len(result.problems) == 1
    assert "not asked again" in result.problems[0].message
    assert len(services.requests) == 1
    again = build(rows, client, GitHub(), filters=Filters(licenses=("MIT",), unknown="reject"))
    assert again.candidates == ()


def test_an_interrupted_list_goes_on_where_it_was(tmp_path: Path, rows: Path, services: Services, clock: Clock) -> None:
    def run() -> CandidateList:
        with WebClient(tmp_path / "kept", now=clock.now, clock=clock.clock, sleep=clock.sleep) as client:
            return build(rows, client, GitHub(), OpenAlex())

    first = run()
    asked = len(services.requests)
    assert asked > 2
    assert run().evolve(asked=first.asked) == first
    assert len(services.requests) == asked


def test_a_dry_run_asks_nobody(rows: Path, client: WebClient, services: Services) -> None:
    lookups = [GitHub(), OpenAlex()]
    plan = plan_list([rows], venues=["ICLR.cc/2024/Conference"], lookups=lookups, filters=Filters(), client=client)
    assert services.requests == []
    assert (plan.read, plan.rejected_before) == (4, 2)
    assert plan.requests == {"openreview": 1, "github": 2, "openalex": 1}
    build(rows, client, *lookups)
    after = plan_list([rows], venues=[], lookups=lookups, filters=Filters(), client=client)
    assert after.requests == {}
    assert after.cached == {"github": 2, "openalex": 1}


def test_the_same_paper_counts_once_and_each_source_adds_what_it_knows(
    tmp_path: Path, rows: Path, client: WebClient
) -> None:
    other = tmp_path / "other.csv"
    other.write_text("title,year,citations,arxiv\nFast weights for slow learners,2024,7,2402.00001\n")
    result = build_list(
        [rows, other], venues=["ICLR.cc/2024/Conference"], lookups=(), filters=Filters(), client=client,
        reporter=SilentReporter(),
    )  # fmt: skip
    assert result.read == 5  # the venue's other paper is a fifth
    fast = next(item.candidate for item in result.candidates if item.candidate.title == ROWS[0]["title"])
    assert (fast.citations, fast.arxiv, fast.openreview) == (7, "2402.00001", "aB3dE5fG7h")
    assert fast.origins["citations"].startswith("other.csv") or "title" not in fast.origins["citations"]


def test_the_list_is_what_curate_reads_and_papers_are_fetched_beside_it(
    tmp_path: Path, rows: Path, client: WebClient, services: Services
) -> None:
    from flows.orchestration.source_list import read_sources

    services.answers["/github/repos/c/d"] = services.answers["/github/repos/lab/fast-weights"] | {
        "stargazers_count": 5000,
        "html_url": "https://github.com/c/d",
    }
    services.answers["/openalex/works"]["results"][1]["best_oa_location"]["pdf_url"] = f"{services.url}/papers/fast.pdf"
    result = build(rows, client, OpenAlex(), GitHub())
    out = tmp_path / "out" / "list.jsonl"
    problems = fetch_papers(result, out, client, SilentReporter())
    assert [problem.message.rpartition("/")[2] for problem in problems] == ["page.pdf is no PDF: it has no PDF yet"]
    files = write_list(result, out)
    assert [path.name for path in files] == ["list.jsonl", "list.rejected.jsonl", "list.report.json"]
    sources = read_sources(out)
    assert [source.repository for source in sources] == [
        "https://github.com/c/d",
        "https://github.com/lab/fast-weights",
    ]
    assert sources[1].commit == "7638417db6d59f3c431d3e1f261cc637155684cd"
    assert sources[1].pdf.read_bytes() == PDF
    before = len(services.requests)
    fetch_papers(result, out, client, SilentReporter())
    assert services.paths()[before:] == ["/papers/page.pdf"]  # what is there is not fetched again
    rejected = [json.loads(line) for line in files[1].read_text().splitlines()]
    assert {row["reasons"][0]["filter"] for row in rejected} == {"code", "venues"}
    report = json.loads(files[2].read_text())
    assert (report["read"], report["kept"], report["rejected"]) == (4, 2, 2)
    assert write_list(result, out) == files
