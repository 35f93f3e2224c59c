"""Look-ups against answers in the services' own forms, over HTTP."""

from __future__ import annotations

import pytest

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.progress import SilentReporter
from pipeline.sources.candidate import Candidate
from pipeline.sources.openreview import list_venue
from pipeline.sources.services import GitHub, OpenAlex, SemanticScholar
from pipeline.sources.web import WebClient
from tests.pipeline.sources.api_server import GITHUB_COMMIT, OPENREVIEW_NOTES, Services
from tests.pipeline.sources.conftest import Clock

PAPER = Candidate(id="p", title="Fast weights for slow learners", repository="https://github.com/lab/fast-weights")


def test_openalex_knows_the_citations_of_the_same_title_only(services: Services, client: WebClient) -> None:
    found = OpenAlex().look_up(PAPER, client)
    assert (found.citations, found.year, found.pdf_url) == (61, 2024, "https://papers.example/fast.pdf")
    assert found.origins["citations"] == "openalex"
    path, parameters, _ = services.requests[0]
    assert (path, parameters["filter"]) == ("/openalex/works", ["title.search:Fast weights for slow learners"])
    other = OpenAlex().look_up(PAPER.evolve(title="Fast weights"), client)
    assert other.citations is None


def test_openalex_asks_by_doi_where_there_is_one(services: Services, client: WebClient) -> None:
    found = OpenAlex().look_up(PAPER.evolve(doi="10.48550/arxiv.2402.00001"), client)
    assert found.citations == 61
    assert services.paths() == ["/openalex/works/doi:10.48550/arxiv.2402.00001"]


def test_semantic_scholar_falls_back_from_ids_to_the_title(services: Services, client: WebClient) -> None:
    found = SemanticScholar().look_up(PAPER.evolve(arxiv="9999.00000"), client)
    assert services.paths() == ["/s2/paper/ARXIV:9999.00000", "/s2/paper/search/match"]
    assert (found.citations, found.arxiv, found.pdf_url) == (58, "9999.00000", "https://arxiv.org/pdf/2402.00001")
    assert services.requests[1][1]["query"] == [PAPER.title]


def test_github_knows_popularity_terms_activity_and_the_commit(services: Services, client: WebClient) -> None:
    exported = PAPER.evolve(stars=3)
    found = GitHub().look_up(exported, client)
    assert (found.stars, found.forks, found.license, found.language) == (412, 37, "MIT", "Python")
    assert (found.active, found.archived, found.commit) == ("2025-03-02", False, GITHUB_COMMIT["sha"])
    assert services.requests[0][2]["x-github-api-version"] == "2022-11-28"
    services.answers["/github/repos/old/name"] = services.answers["/github/repos/lab/fast-weights"]
    renamed = GitHub().look_up(PAPER.evolve(repository="https://github.com/old/name", commit="b" * 40), client)
    assert renamed.repository == PAPER.repository
    pinned = GitHub().look_up(PAPER.evolve(commit="a" * 40), client)
    assert pinned.commit == "a" * 40


def test_a_repository_that_is_gone_is_no_repository(services: Services, client: WebClient) -> None:
    del services.answers["/github/repos/lab/fast-weights"]
    found = GitHub().look_up(PAPER, client)
    assert found.repository is None
    assert "is not there" in found.origins["repository"]
    assert not GitHub().needed(found)


def test_a_repository_without_licence_is_known_to_have_none(services: Services, client: WebClient) -> None:
    services.answers["/github/repos/lab/fast-weights"] |= {"license": None}
    assert GitHub().look_up(PAPER, client).license == "NONE"
    services.answers["/github/repos/lab/other"] = {
        **services.answers["/github/repos/lab/fast-weights"], "license": {"spdx_id": "NOASSERTION"},
    }  # fmt: skip
    other = GitHub().look_up(PAPER.evolve(repository="https://github.com/lab/other"), client)
    assert other.license is None  # there is one that GitHub does not recognise


def test_tokens_go_to_their_service(services: Services, client: WebClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "t-github")
    monkeypatch.setenv("S2_API_KEY", "t-s2")
    monkeypatch.setenv("OPENALEX_API_KEY", "t-openalex")
    for lookup in (GitHub(), SemanticScholar(), OpenAlex()):
        lookup.look_up(PAPER, client)
    sent = {path.split("/")[1]: (parameters, headers) for path, parameters, headers in services.requests}
    assert sent["github"][1]["authorization"] == "Bearer t-github"
    assert sent["s2"][1]["x-api-key"] == "t-s2"
    assert sent["openalex"][0]["api_key"] == ["t-openalex"]


def test_a_venue_is_listed_page_by_page(services: Services, client: WebClient, monkeypatch: pytest.MonkeyPatch) -> None:
    found = list_venue("ICLR.cc/2024/Conference", client, SilentReporter())
    assert [(paper.id, paper.venue, paper.year) for paper in found] == [
        ("iclr2024-ab3de5fg7h", "ICLR", 2024),
        ("iclr2024-zz9", "ICLR", 2024),
    ]
    assert found[0].repository == "https://github.com/lab/fast-weights"
    assert found[0].pdf_url == "https://openreview.net/pdf/0123.pdf"
    assert found[1].repository is None
    monkeypatch.setattr("pipeline.sources.openreview._PAGE", 2)  # the server answers two on every page
    monkeypatch.setattr("pipeline.sources.openreview._MOST_PAGES", 3)
    assert len(list_venue("ICLR.cc/2024/Conference", client, SilentReporter())) == 2
    offsets = [parameters["offset"][0] for _, parameters, _ in services.requests]
    assert offsets == ["0", "0", "2", "4"]


def test_a_venue_that_there_is_not_is_said(services: Services, client: WebClient) -> None:
    services.answers["/openreview/notes"] = OPENREVIEW_NOTES | {"notes": [], "count": 0}
    with pytest.raises(ExpbenchError, match="no paper with this venue id") as caught:
        list_venue("ICLR.cc/1824/Conference", client, SilentReporter())
    assert caught.value.kind is FailureKind.USAGE


def test_a_preprint_is_asked_for_by_its_doi_which_costs_nothing(services: Services, client: WebClient) -> None:
    found = OpenAlex().look_up(PAPER.evolve(arxiv="2402.00001"), client)
    assert found.citations == 61
    assert services.paths() == ["/openalex/works/doi:10.48550/arxiv.2402.00001"]


def test_a_title_without_a_word_is_not_searched_for(services: Services, client: WebClient) -> None:
    assert OpenAlex().look_up(PAPER.evolve(title="∀∃"), client).citations is None
    assert services.requests == []


@pytest.mark.parametrize("status", [404, 410, 451])
def test_a_repository_that_was_removed_or_taken_down_is_none(
    services: Services, client: WebClient, status: int
) -> None:
    services.refusals = [(status, {})]
    assert GitHub().look_up(PAPER, client).repository is None


def test_a_repository_without_a_commit_is_known_and_not_pinned(services: Services, client: WebClient) -> None:
    services.statuses["/github/repos/lab/fast-weights/commits/main"] = (409, {"message": "Git Repository is empty."})
    found = GitHub().look_up(PAPER, client)
    assert (found.stars, found.commit) == (412, None)


def test_an_address_that_may_not_be_shared_is_none(services: Services, client: WebClient) -> None:
    services.answers["/s2/paper/search/match"]["data"][0]["openAccessPdf"] = {
        "url": "",
        "status": None,
        "license": None,
    }
    services.answers["/s2/paper/search/match"]["data"][0]["externalIds"] = None
    found = SemanticScholar().look_up(PAPER, client)
    assert (found.citations, found.pdf_url, found.arxiv) == (58, None, None)


def test_a_title_that_semantic_scholar_does_not_match_stays_unknown(services: Services, client: WebClient) -> None:
    services.statuses["/s2/paper/search/match"] = (404, {"error": "Title match not found"})
    assert SemanticScholar().look_up(PAPER, client).citations is None


def test_a_secondary_limit_without_a_header_is_waited_out(services: Services, client: WebClient, clock: Clock) -> None:
    said = {"message": "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}
    services.refusals = [(403, {}, said)]
    assert GitHub().look_up(PAPER, client).stars == 412
    assert 60.0 in clock.waits


def test_openreview_s_challenge_is_explained(
    services: Services, client: WebClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {"name": "ChallengeRequiredError", "message": "Challenge verification is required", "status": 403}
    services.refusals = [(403, {}, said)]
    with pytest.raises(ExpbenchError, match=r"ChallengeRequiredError.*OPENREVIEW_TOKEN") as caught:
        list_venue("ICLR.cc/2024/Conference", client, SilentReporter())
    assert caught.value.kind is FailureKind.AUTHENTICATION
    monkeypatch.setenv("OPENREVIEW_TOKEN", "Bearer t-openreview")
    assert list_venue("ICLR.cc/2024/Conference", client, SilentReporter())
    assert services.requests[-1][2]["authorization"] == "Bearer t-openreview"
