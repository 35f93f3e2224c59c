"""Services on this machine that answer as OpenAlex, Semantic Scholar, GitHub and OpenReview do.

The answers have the forms of the services' own documentation, cut to the fields that they were asked for. The server
counts requests, and can refuse the next ones: with a status, and headers such as `Retry-After`.
"""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

PDF = b"%PDF-1.7\n% a paper\n"

OPENALEX_WORK = {
    "id": "https://openalex.org/W4391591646",
    "doi": "https://doi.org/10.48550/arxiv.2402.00001",
    "title": "Fast Weights  for Slow Learners",
    "publication_year": 2024,
    "cited_by_count": 61,
    "primary_location": {"source": {"display_name": "arXiv (Cornell University)"}, "pdf_url": None},
    "best_oa_location": {"pdf_url": "https://papers.example/fast.pdf", "license": "cc-by"},
    "locations": [],
}
OPENALEX_LIST = {
    "meta": {"count": 2, "db_response_time_ms": 30, "page": 1, "per_page": 10},
    "results": [
        OPENALEX_WORK
        | {"id": "https://openalex.org/W1", "title": "Fast Weights for Slow Learners: A Survey", "cited_by_count": 900},
        OPENALEX_WORK,
        OPENALEX_WORK | {"id": "https://openalex.org/W2", "cited_by_count": 12},
    ],
    "group_by": [],
}
S2_MATCH = {
    "data": [
        {
            "paperId": "649def34f8be52c8b66281af98ae884c09aef38b",
            "externalIds": {"ArXiv": "2402.00001", "DOI": "10.48550/arXiv.2402.00001", "CorpusId": 267},
            "title": "Fast Weights for Slow Learners",
            "venue": "International Conference on Learning Representations",
            "year": 2024,
            "citationCount": 58,
            "openAccessPdf": {"url": "https://arxiv.org/pdf/2402.00001", "status": "GREEN"},
            "matchScore": 174.23,
        }
    ]
}
GITHUB_REPOSITORY = {
    "id": 1296269,
    "name": "fast-weights",
    "full_name": "lab/fast-weights",
    "private": False,
    "html_url": "https://github.com/lab/fast-weights",
    "fork": False,
    "pushed_at": "2025-03-02T19:06:43Z",
    "stargazers_count": 412,
    "forks_count": 37,
    "language": "Python",
    "archived": False,
    "default_branch": "main",
    "license": {"key": "mit", "name": "MIT License", "spdx_id": "MIT", "url": "https://api.github.com/licenses/mit"},
}
GITHUB_COMMIT = {"sha": "7638417db6d59f3c431d3e1f261cc637155684cd", "commit": {"message": "Fix"}}
OPENREVIEW_NOTES = {
    "notes": [
        {
            "id": "aB3dE5fG7h",
            "forum": "aB3dE5fG7h",
            "number": 17,
            "invitations": ["ICLR.cc/2024/Conference/-/Submission"],
            "content": {
                "title": {"value": "Fast Weights for Slow Learners"},
                "authors": {"value": ["Ada Byron", "Al Khwarizmi"]},
                "keywords": {"value": ["fast weights", "meta-learning"]},
                "abstract": {"value": "We learn. Code is available at https://github.com/lab/fast-weights."},
                "venue": {"value": "ICLR 2024 poster"},
                "venueid": {"value": "ICLR.cc/2024/Conference"},
                "pdf": {"value": "/pdf/0123.pdf"},
            },
        },
        {
            "id": "zZ9",
            "forum": "zZ9",
            "content": {"title": {"value": "A Theory Without Code"}, "abstract": {"value": "We prove."},
                        "venueid": {"value": "ICLR.cc/2024/Conference"}},
        },
    ],
    "count": 2,
}  # fmt: skip


class Services:
    """What the server does next, and what it was asked."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, list[str]], dict[str, str]]] = []
        """(path, parameters, headers in lower case)."""
        self.refusals: list[tuple[int, dict[str, str]] | tuple[int, dict[str, str], dict[str, Any]]] = []
        """(status, headers, body) of the next answers."""
        self.statuses: dict[str, tuple[int, dict[str, Any]]] = {}
        """(status, body) of what is always answered to a path."""
        self.answers: dict[str, Any] = copy.deepcopy(
            {
                "/openalex/works": OPENALEX_LIST,
                "/openalex/works/doi:10.48550/arxiv.2402.00001": OPENALEX_WORK,
                "/s2/paper/search/match": S2_MATCH,
                "/github/repos/lab/fast-weights": GITHUB_REPOSITORY,
                "/github/repos/lab/fast-weights/commits/main": GITHUB_COMMIT,
                "/openreview/notes": OPENREVIEW_NOTES,
                "/papers/fast.pdf": PDF,
                "/papers/page.pdf": b"<html>sign in</html>",
            }
        )
        self.url = ""

    def environment(self) -> dict[str, str]:
        """Variables that lead the clients here."""
        return {
            "EXPBENCH_SOURCES_OPENALEX_URL": f"{self.url}/openalex",
            "EXPBENCH_SOURCES_SEMANTIC_SCHOLAR_URL": f"{self.url}/s2",
            "EXPBENCH_SOURCES_GITHUB_URL": f"{self.url}/github",
            "EXPBENCH_SOURCES_OPENREVIEW_URL": f"{self.url}/openreview",
        }

    def paths(self) -> list[str]:
        return [path for path, _, _ in self.requests]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    services: Services

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.services.requests.append((unquote(parts.path), parse_qs(parts.query), headers))
        extra: dict[str, str] = {}
        if self.services.refusals:
            status, extra, *said = self.services.refusals.pop(0)
            body = json.dumps(said[0] if said else {"message": "refused"}).encode()
        elif unquote(parts.path) in self.services.statuses:
            status, value = self.services.statuses[unquote(parts.path)]
            body = json.dumps(value).encode()
        else:
            found = self.services.answers.get(unquote(parts.path))
            status = 404 if found is None else 200
            body = found if isinstance(found, bytes) else json.dumps(found or {"message": "Not Found"}).encode()
        self.send_response(status)
        for name, value in extra.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def api_server() -> Iterator[Services]:
    services = Services()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"services": services}))
    server.daemon_threads = True
    services.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield services
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
