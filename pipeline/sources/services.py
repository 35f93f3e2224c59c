"""Whom candidates are looked up with, and what each answer says: OpenAlex, Semantic Scholar, GitHub.

Each look-up adds what it knows to a candidate. A paper is found by DOI or arXiv id where the candidate has one, else by
its title, which must then be the same letter by letter: a citation count of another paper is worse than none.

What the documentation of November 2026 says, and is heeded: OpenAlex wants a key (free; without one about 100 list
requests a day, while a work by DOI costs nothing, so that preprints are asked for by arXiv's DOI first), refuses those
who ask too fast with 403, and those whose day is used up with 429. GitHub answers 403 or 429 to both of its limits, the
secondary one without any header; 409 for a repository without commits; 451 for one that was taken down. Semantic
Scholar answers 404 to a title that it does not match, and an empty address where it may not share a PDF.

Addresses can be set by `EXPBENCH_SOURCES_<SERVICE>_URL`; keys are taken from `OPENALEX_API_KEY`, `S2_API_KEY` and
`GITHUB_TOKEN` and raise the services' limits. Forms of the answers: the services' own documentation (OpenAlex works,
Semantic Scholar Academic Graph v1, GitHub REST 2022-11-28).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, Literal, Protocol
from urllib.parse import quote

from pydantic import JsonValue

from pipeline.sources.candidate import Candidate, same_title
from pipeline.sources.web import Service, WebClient

__all__ = ["SERVICES", "GitHub", "Lookup", "OpenAlex", "SemanticScholar", "lookup_named"]

Name = Literal["openalex", "semantic-scholar", "github"]
SERVICES: Final[tuple[Name, ...]] = ("openalex", "semantic-scholar", "github")
_REPOSITORY: Final = re.compile(r"https://github\.com/(?P<owner>[^/]+)/(?P<name>[^/]+)")


class Lookup(Protocol):
    """Something that candidates are looked up with."""

    service: Service

    def needed(self, candidate: Candidate) -> bool:
        """Can this service say anything of the candidate that is not known yet?"""

    def requests(self, candidate: Candidate) -> tuple[tuple[str, dict[str, str]], ...]:
        """(path, parameters) of what would be asked first; for a dry run."""

    def look_up(self, candidate: Candidate, client: WebClient) -> Candidate:
        """The candidate with what the service knows.

        Raises:
            ExpbenchError: see `WebClient.get_json`.
        """


def lookup_named(name: Name) -> Lookup:
    """The look-up of that name, with addresses and keys of the environment."""
    made: dict[Name, Callable[[], Lookup]] = {
        "openalex": OpenAlex, "semantic-scholar": SemanticScholar, "github": GitHub,
    }  # fmt: skip
    return made[name]()


def address(name: str, default: str) -> str:
    """Base address of a service; `EXPBENCH_SOURCES_<NAME>_URL` names another, e.g. a mirror."""
    variable = f"EXPBENCH_SOURCES_{name.upper().replace('-', '_')}_URL"
    return os.environ.get(variable, default).rstrip("/")


class OpenAlex:
    """Citations, venue, year, open-access PDF."""

    _SELECT: Final = "id,doi,title,publication_year,cited_by_count,primary_location,best_oa_location,locations"

    def __init__(self) -> None:
        key = os.environ.get("OPENALEX_API_KEY")
        # 100 requests a second are allowed; far fewer leave room for others behind the same address
        self.service = Service(
            "openalex", address("openalex", "https://api.openalex.org"), 0.2,
            parameters={"api_key": key} if key else {}, variable="OPENALEX_API_KEY",
        )  # fmt: skip

    def needed(self, candidate: Candidate) -> bool:
        """See `Lookup.needed`."""
        return candidate.citations is None or candidate.pdf_url is None

    def requests(self, candidate: Candidate) -> tuple[tuple[str, dict[str, str]], ...]:
        """See `Lookup.requests`."""
        preprint = f"10.48550/arxiv.{candidate.arxiv}" if candidate.arxiv else None
        dois = dict.fromkeys(doi for doi in (candidate.doi, preprint) if doi)
        found = [(f"/works/doi:{quote(doi, safe='/')}", {"select": self._SELECT}) for doi in dois]
        words = " ".join(re.findall(r"\w+", candidate.title))
        if words:
            found.append(("/works", {"filter": f"title.search:{words}", "per_page": "10", "select": self._SELECT}))
        return tuple(found)

    def look_up(self, candidate: Candidate, client: WebClient) -> Candidate:
        """See `Lookup.look_up`."""
        for path, parameters in self.requests(candidate):
            answer = client.get_json(self.service, path, parameters)
            works = _mappings(answer.get("results")) if path == "/works" and isinstance(answer, dict) else [answer]
            same = [work for work in works if isinstance(work, dict) and _same(candidate, work.get("title"))]
            if same:
                # preprint and proceedings are two works there: the more cited one is what a reader would be shown
                work = max(same, key=lambda item: _number(item.get("cited_by_count")) or 0)
                return self._with(candidate, work)
        return candidate

    def _with(self, candidate: Candidate, work: Mapping[str, JsonValue]) -> Candidate:
        places = [work.get("best_oa_location"), work.get("primary_location")]
        pdf = next((place["pdf_url"] for place in places if isinstance(place, dict) and place.get("pdf_url")), None)
        doi = work.get("doi")
        known = candidate.with_known(
            self.service.name,
            year=_number(work.get("publication_year")),
            pdf_url=pdf if isinstance(pdf, str) else None,
            doi=re.sub(r"^https?://(dx\.)?doi\.org/", "", doi) if isinstance(doi, str) else None,
        )
        return known.updated(self.service.name, citations=_number(work.get("cited_by_count")))


class SemanticScholar:
    """Citations, venue, year, arXiv id and DOI, open-access PDF."""

    _FIELDS: Final = "title,year,venue,citationCount,externalIds,openAccessPdf"

    def __init__(self) -> None:
        key = os.environ.get("S2_API_KEY")
        # without a key 100 requests in 5 minutes, shared by all such users; with one, one a second
        self.service = Service(
            "semantic-scholar", address("semantic-scholar", "https://api.semanticscholar.org/graph/v1"),
            1.0 if key else 3.0, headers={"x-api-key": key} if key else {}, variable="S2_API_KEY",
        )  # fmt: skip

    def needed(self, candidate: Candidate) -> bool:
        """See `Lookup.needed`."""
        return candidate.citations is None or candidate.pdf_url is None

    def requests(self, candidate: Candidate) -> tuple[tuple[str, dict[str, str]], ...]:
        """See `Lookup.requests`."""
        found: list[tuple[str, dict[str, str]]] = []
        for prefix, value in (("ARXIV", candidate.arxiv), ("DOI", candidate.doi)):
            if value:
                found.append((f"/paper/{prefix}:{quote(value, safe='/')}", {"fields": self._FIELDS}))
        return (*found, ("/paper/search/match", {"query": candidate.title, "fields": self._FIELDS}))

    def look_up(self, candidate: Candidate, client: WebClient) -> Candidate:
        """See `Lookup.look_up`."""
        for path, parameters in self.requests(candidate):
            answer = client.get_json(self.service, path, parameters)
            if not isinstance(answer, dict):
                continue
            papers = _mappings(answer.get("data")) if path.endswith("/match") else [answer]
            paper = next((item for item in papers if _same(candidate, item.get("title"))), None)
            if paper is not None:
                return self._with(candidate, paper)
        return candidate

    def _with(self, candidate: Candidate, paper: Mapping[str, JsonValue]) -> Candidate:
        ids, pdf = paper.get("externalIds"), paper.get("openAccessPdf")
        known = candidate.with_known(
            self.service.name,
            year=_number(paper.get("year")),
            arxiv=ids.get("ArXiv") if isinstance(ids, dict) else None,
            doi=ids.get("DOI") if isinstance(ids, dict) else None,
            pdf_url=(pdf.get("url") or None) if isinstance(pdf, dict) else None,
        )
        return known.updated(self.service.name, citations=_number(paper.get("citationCount")))


class GitHub:
    """Stars, forks, licence, language, activity and the commit at the head of a repository."""

    def __init__(self) -> None:
        token = os.environ.get("GITHUB_TOKEN")
        headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
        # 60 requests an hour without a token: the pause cannot help, the reset that the answer names does
        self.service = Service(
            "github", address("github", "https://api.github.com"), 0.1,
            headers=headers | ({"Authorization": f"Bearer {token}"} if token else {}), variable="GITHUB_TOKEN",
        )  # fmt: skip

    def needed(self, candidate: Candidate) -> bool:
        """See `Lookup.needed`."""
        return _REPOSITORY.fullmatch(candidate.repository or "") is not None

    def requests(self, candidate: Candidate) -> tuple[tuple[str, dict[str, str]], ...]:
        """See `Lookup.requests`."""
        match = _REPOSITORY.fullmatch(candidate.repository or "")
        return ((f"/repos/{match['owner']}/{match['name']}", {}),) if match else ()

    def look_up(self, candidate: Candidate, client: WebClient) -> Candidate:
        """See `Lookup.look_up`; a repository that is gone is no repository."""
        ((path, _),) = self.requests(candidate)
        found = client.get_json(self.service, path)
        if not isinstance(found, dict):
            origins = candidate.origins | {"repository": f"{self.service.name}: {candidate.repository} is not there"}
            return candidate.evolve(repository=None, origins=origins)
        terms, pushed = found.get("license"), found.get("pushed_at")
        spdx = terms.get("spdx_id") if isinstance(terms, dict) else "NONE"
        branch, page = found.get("default_branch"), found.get("html_url")
        commit = self._commit(path, branch, client) if isinstance(branch, str) and candidate.commit is None else None
        return candidate.updated(
            self.service.name,
            stars=_number(found.get("stargazers_count")),
            forks=_number(found.get("forks_count")),
            license=spdx if isinstance(spdx, str) and spdx != "NOASSERTION" else None,
            language=found.get("language") if isinstance(found.get("language"), str) else None,
            archived=found.get("archived") if isinstance(found.get("archived"), bool) else None,
            active=pushed[:10] if isinstance(pushed, str) else None,
            commit=commit,
            # one that was renamed is answered under its new name
            repository=page if isinstance(page, str) and _REPOSITORY.fullmatch(page) else None,
        )

    def _commit(self, path: str, branch: str, client: WebClient) -> str | None:
        """The commit that the list is pinned to: the newest when it was looked up."""
        empty = self.service._replace(absent=self.service.absent | {409})
        head = client.get_json(empty, f"{path}/commits/{quote(branch, safe='')}")
        sha = head.get("sha") if isinstance(head, dict) else None
        return sha if isinstance(sha, str) and re.fullmatch(r"[0-9a-f]{40,64}", sha) else None


def _same(candidate: Candidate, title: object) -> bool:
    return isinstance(title, str) and same_title(title) == same_title(candidate.title)


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _mappings(value: object) -> Iterator[Mapping[str, JsonValue]]:
    yield from (item for item in (value if isinstance(value, list) else ()) if isinstance(item, dict))
