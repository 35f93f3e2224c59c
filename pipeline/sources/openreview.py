"""The accepted papers of a venue, from OpenReview (API 2: `/notes?content.venueid=ICLR.cc/2024/Conference`).

Since 2026 its interface refuses callers who are not logged in with 403 and `ChallengeRequiredError` where it takes them
for a program: a token in `OPENREVIEW_TOKEN` (what its own client gets from `/login`) is sent along. Without one, a
venue's list can be exported by hand and read with `--input`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, Final

from pydantic import JsonValue

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.progress import Reporter
from pipeline.sources.candidate import Candidate, candidate_id, urls_of_code
from pipeline.sources.exports import short_venue
from pipeline.sources.services import address
from pipeline.sources.web import Service, WebClient

__all__ = ["list_venue", "openreview_service"]

_PAGE: Final = 1000
_MOST_PAGES: Final = 40
"""The largest venue has about 15,000 submissions."""
_SITE: Final = "https://openreview.net"


def openreview_service() -> Service:
    """OpenReview's second API; it names no limit for reading, one request a second is polite."""
    token = os.environ.get("OPENREVIEW_TOKEN", "").removeprefix("Bearer ")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return Service(
        "openreview", address("openreview", "https://api2.openreview.net"), 1.0, headers=headers,
        variable="OPENREVIEW_TOKEN",
    )  # fmt: skip


def list_venue(venue_id: str, client: WebClient, reporter: Reporter) -> list[Candidate]:
    """All papers whose `venueid` it is, in the order of their ids: those that were accepted.

    Args:
        venue_id: e.g. `ICLR.cc/2024/Conference`.
        client: asks.
        reporter: progress, as steps of stage `openreview`.

    Raises:
        ExpbenchError: `USAGE`: no paper has this venue id; otherwise see `WebClient.get_json`.
    """
    service = openreview_service()
    found: dict[str, Candidate] = {}
    reporter.start("openreview")
    for page in range(_MOST_PAGES):
        parameters = {
            "content.venueid": venue_id,
            "limit": str(_PAGE),
            "offset": str(page * _PAGE),
            "sort": "number:asc",
        }
        answer = client.get_json(service, "/notes", parameters)
        notes = answer.get("notes") if isinstance(answer, dict) else None
        notes = notes if isinstance(notes, list) else []
        for note in notes:
            candidate = _candidate(note, venue_id) if isinstance(note, dict) else None
            if candidate is not None:
                found[candidate.id] = candidate
        reporter.step("openreview", f"{venue_id}: {len(found)} papers")
        if len(notes) < _PAGE:
            break
    reporter.end("openreview", f"{len(found)} papers")
    if not found:
        raise ExpbenchError(
            FailureKind.USAGE, f"venue {venue_id}", "OpenReview has no paper with this venue id",
            consequence="No list was made", next_step="Give it as OpenReview does, e.g. ICLR.cc/2024/Conference",
        )  # fmt: skip
    return [found[name] for name in sorted(found)]


def _candidate(note: Mapping[str, Any], venue_id: str) -> Candidate | None:
    content = note.get("content")
    forum = note.get("forum") or note.get("id")
    if not isinstance(content, dict) or not isinstance(forum, str):
        return None
    title = _value(content, "title")
    if not isinstance(title, str) or not title.strip():
        return None
    abstract, pdf, keywords = _value(content, "abstract"), _value(content, "pdf"), _value(content, "keywords")
    authors = _value(content, "authors")
    words = " ".join(str(_value(content, name) or "") for name in ("code", "code_url", "abstract", "TLDR", "_bibtex"))
    code = urls_of_code(words)
    year = re.search(r"\b(?:19|20)\d\d\b", venue_id)
    venue = short_venue(re.sub(r"\.(cc|org)/", " ", venue_id).split()[0].replace(".cc", ""))
    values = {
        "title": " ".join(title.split()),
        "authors": tuple(str(name) for name in authors) if isinstance(authors, list) else (),
        "venue": venue,
        "year": int(year[0]) if year else None,
        "url": f"{_SITE}/forum?id={forum}",
        "pdf_url": (pdf if pdf.startswith("http") else f"{_SITE}{pdf}") if isinstance(pdf, str) and pdf else None,
        "abstract": abstract if isinstance(abstract, str) else "",
        "keywords": tuple(str(word) for word in keywords) if isinstance(keywords, list) else (),
        "openreview": forum,
        "repository": code[0] if code else None,
    }
    known = {name: value for name, value in values.items() if value not in (None, "", ())}
    identity = candidate_id(f"{venue}{year[0] if year else ''}", forum)
    return Candidate(id=identity, origins=dict.fromkeys(known, f"openreview {forum}"), **known)


def _value(content: Mapping[str, Any], name: str) -> JsonValue:
    """A field of a note: `{"value": ...}` in the second API, bare in the first."""
    found: JsonValue = content.get(name)
    return found["value"] if isinstance(found, dict) and "value" in found else found
