"""The list on disk: a source list that `curate` takes as it is, and beside it why the others are not in it.

```
LIST.jsonl            one candidate a line, the best first: pdf, repository, commit, and what is known of it
LIST.rejected.jsonl   the others with their reasons
LIST.report.json      filters, counts, problems; written last
papers/<id>.pdf       the papers, where they were fetched
```

A line's `pdf` is where the paper lies or belongs (relative to the list); `pdf_url` is where it comes from.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from pipeline.errors import ExpbenchError
from pipeline.files import write_bytes, write_text
from pipeline.progress import Reporter
from pipeline.schema import Problem
from pipeline.sources.build import CandidateList, Ranked
from pipeline.sources.web import Service, WebClient

__all__ = ["fetch_papers", "list_row", "write_list"]

_COMPONENT: Final = "sources.papers"
_FIELDS: Final = (
    "id", "title", "authors", "venue", "year", "url", "pdf_url", "doi", "arxiv", "openreview", "citations", "stars",
    "forks", "license", "language", "active", "archived", "keywords",
)  # fmt: skip


def list_row(item: Ranked, exports: Path | None = None) -> dict[str, Any]:
    """One line of the list; only what is known.

    Args:
        item: a candidate that is kept.
        exports: directory to which the `pdf` of an export is relative.
    """
    candidate = item.candidate
    pdf = f"papers/{candidate.id}.pdf"
    if candidate.pdf is not None and exports is not None and (exports / candidate.pdf).is_file():
        pdf = str((exports / candidate.pdf).resolve())
    row: dict[str, Any] = {"rank": item.rank, "score": item.score, "pdf": pdf}
    if candidate.repository:
        row["repository"] = candidate.repository
    if candidate.commit:
        row["commit"] = candidate.commit
    values = candidate.model_dump(mode="json", include=set(_FIELDS))
    row |= {name: values[name] for name in _FIELDS if values[name] not in (None, "", [])}
    needs = candidate.needs.model_dump(mode="json", exclude={"stated"}, exclude_none=True)
    if needs:
        row["needs"] = needs
    row |= {"signals": list(item.signals), "unknown": list(item.unknown)}
    return row


def write_list(result: CandidateList, out: Path, exports: Path | None = None) -> tuple[Path, ...]:
    """Write list, rejections and report; returns the files.

    Args:
        result: the list.
        out: `.jsonl`.
        exports: see `list_row`.
    """
    rejected = out.with_name(f"{out.stem}.rejected.jsonl")
    report = out.with_name(f"{out.stem}.report.json")
    write_text(out, _lines([list_row(item, exports) for item in result.candidates]))
    write_text(
        rejected,
        _lines(
            [
                {"id": item.candidate.id, "title": item.candidate.title, "repository": item.candidate.repository,
                 "reasons": [reason.model_dump() for reason in item.reasons]}
                for item in result.rejected
            ]
        ),
    )  # fmt: skip
    head = {
        "read": result.read,
        "kept": len(result.candidates),
        "rejected": len(result.rejected),
        "rejections": result.rejections(),
        "filters": result.filters.model_dump(mode="json"),
        "problems": [problem.model_dump(mode="json") for problem in result.problems],
    }
    write_text(report, json.dumps(head, ensure_ascii=False, indent=1) + "\n")
    return out, rejected, report


def _lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def fetch_papers(result: CandidateList, out: Path, client: WebClient, reporter: Reporter) -> list[Problem]:
    """Fetch the PDFs of the candidates into `papers/` beside the list; those that lie there are not fetched again.

    Args:
        result: the list.
        out: where the list is written.
        client: fetches.
        reporter: progress, as steps of stage `papers`.

    Returns:
        Papers that could not be had, and why.
    """
    problems: list[Problem] = []
    reporter.start("papers", len(result.candidates))
    for item in result.candidates:
        candidate = item.candidate
        target = out.parent / "papers" / f"{candidate.id}.pdf"
        if not target.is_file() and (why := _fetched(candidate.pdf_url, target, client)):
            problems.append(Problem(component=_COMPONENT, where=candidate.id, message=f"{why}: it has no PDF yet"))
        reporter.step("papers", candidate.id)
    reporter.end("papers", f"{len(result.candidates) - len(problems)} of {len(result.candidates)}")
    return problems


def _fetched(url: str | None, target: Path, client: WebClient) -> str:
    """Fetch one paper; returns why it could not be had, or nothing."""
    if url is None or not re.match(r"https?://", url):
        return "no address of its PDF is known"
    parts = urlsplit(url)
    # each host is a service of its own, so that a proceedings site is not asked faster than once a second
    service = Service(parts.netloc, f"{parts.scheme}://{parts.netloc}", 1.0)
    try:
        data = client.get_file(service, url)
    except ExpbenchError as error:
        return f"{url}: {error.cause}"
    if data is None:
        return f"{url} is not there"
    if not data.startswith(b"%PDF-"):
        return f"{url} is no PDF"
    write_bytes(target, data)
    return ""
