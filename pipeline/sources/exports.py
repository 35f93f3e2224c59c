"""Exports of papers: the published conference rows, JSON Lines, JSON, CSV and BibTeX, read into candidates.

Names of columns differ from export to export; the known ones are in `_NAMES`, others are left alone. A row that is no
paper is a problem with its line, and the others are read. Nothing is looked up here.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.schema import Problem, Severity
from pipeline.sources.candidate import Candidate, candidate_id, repository_url, same_title, urls_of_code
from pipeline.sources.needs import read_needs

__all__ = ["ENDINGS", "read_export", "short_venue"]

ENDINGS: Final = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".bib")
_COMPONENT: Final = "sources.exports"
_MAX_BYTES: Final = 512 << 20
_CONFERENCE: Final = re.compile(r"(?P<venue>[a-z]+)[-_ ]?(?P<year>(?:19|20)\d\d)", re.IGNORECASE)
_FORUM: Final = re.compile(r"openreview\.net/(?:forum|pdf|attachment)\?(?:[^#\s]*&)?id=(?P<id>[\w-]+)")
_ARXIV: Final = re.compile(r"(?:arxiv\.org/(?:abs|pdf)/|arxiv:\s*)(?P<id>\d{4}\.\d{4,5})", re.IGNORECASE)
_DOI: Final = re.compile(r"\b(?P<doi>10\.\d{4,9}/[^\s\"'<>{}]+)")
_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "title": ("title", "paper_title", "name"),
    "authors": ("authors", "author"),
    "venue": ("venue", "conference", "booktitle", "journal"),
    "year": ("year", "publication_year"),
    "url": ("url", "paper_url", "link", "forum"),
    "pdf_url": ("pdf_url", "pdfurl", "open_access_pdf", "pdf_link"),
    "pdf": ("pdf", "pdf_file", "file"),
    "abstract": ("abstract", "summary"),
    "keywords": ("keywords", "topics", "tags"),
    "doi": ("doi",),
    "arxiv": ("arxiv", "arxiv_id", "eprint"),
    "repository": ("repository", "code_url", "repo", "github", "code", "repo_url", "repository_url"),
    "commit": ("commit", "sha"),
    "citations": ("citations", "citation_count", "citationcount", "cited_by_count", "cit"),
    "stars": ("stars", "stargazers_count", "github_stars"),
    "forks": ("forks", "forks_count", "github_forks"),
    "license": ("license", "licence"),
    "language": ("language",),
    "active": ("active", "pushed_at", "last_commit", "updated_at"),
    "archived": ("archived",),
    "needs": ("reproduce_difficulty", "needs", "resources", "resource_requirements"),
}
_NUMBERS: Final = ("citations", "stars", "forks")


def read_export(path: Path) -> tuple[list[Candidate], list[Problem]]:
    """The papers of one export, in its order, and what could not be read.

    Args:
        path: `.jsonl`, `.json`, `.csv`, `.tsv` or `.bib`. The directory of a published conference file (`iclr2024`)
            names venue and year of its rows.

    Raises:
        ExpbenchError: `RECORD_INVALID`: the file cannot be read, has another ending, or holds no paper at all.
    """
    problems: list[Problem] = []
    candidates: dict[str, Candidate] = {}
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ValueError(f"it is larger than {_MAX_BYTES} bytes")
        rows = list(_rows(path, problems))
    except (OSError, ValueError, csv.Error, RecursionError) as error:
        raise _refused(path, str(error).splitlines()[0] if str(error) else type(error).__name__) from error
    for where, row in rows:
        try:
            candidate = _candidate(row, path, where)
        except (ValidationError, ValueError) as error:
            problems.append(_problem(where, f"it is no paper ({str(error).splitlines()[-1].strip()})"))
            continue
        if candidate.id in candidates:
            problems.append(
                _problem(where, f"the same paper as before ({candidate.id}): not taken again", Severity.INFO)
            )
        else:
            candidates[candidate.id] = candidate
    if not candidates:
        why = f": {problems[0].where}: {problems[0].message}" if problems else ""
        raise _refused(path, f"it holds no paper{why}")
    return list(candidates.values()), problems


def _rows(path: Path, problems: list[Problem]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(where, row) of a file.

    Raises:
        ValueError: it is not what its ending says.
    """
    ending = path.suffix.lower()
    if ending == ".bib":
        from pipeline.sources.bibtex import read_bibtex

        yield from read_bibtex(path, problems)
        return
    text = path.read_text(encoding="utf-8-sig")
    if ending in {".csv", ".tsv"}:
        reader = csv.DictReader(io.StringIO(text, newline=""), delimiter="\t" if ending == ".tsv" else ",")
        for row in reader:
            yield f"{path.name} line {reader.line_num}", {str(key): value for key, value in row.items() if value}
    elif ending in {".jsonl", ".ndjson"}:
        for number, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                yield from _json_row(f"{path.name} line {number}", line, problems)
    elif ending == ".json":
        value = json.loads(text)
        items = value if isinstance(value, list) else _listed(value)
        for number, item in enumerate(items):
            if isinstance(item, dict):
                yield f"{path.name} item {number}", item
            else:
                problems.append(_problem(f"{path.name} item {number}", "it is no object"))
    else:
        raise ValueError(f"its ending is none of {', '.join(ENDINGS)}")


def _json_row(where: str, line: str, problems: list[Problem]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    try:
        row = json.loads(line)
    except ValueError as error:
        problems.append(_problem(where, f"it is not JSON ({error})"))
        return
    if isinstance(row, dict):
        yield where, row
    else:
        problems.append(_problem(where, "it is no object"))


def _listed(value: Any) -> list[Any]:
    """The list of papers inside an object: of OpenReview `notes`, of OpenAlex `results`, of Semantic Scholar `data`."""
    if isinstance(value, dict):
        for key in ("papers", "notes", "results", "data"):
            if isinstance(value.get(key), list):
                return list(value[key])
        return [value]
    raise ValueError("it is neither a list nor an object")


# --- one row


def _candidate(row: Mapping[str, Any], path: Path, where: str) -> Candidate:
    """One paper.

    Raises:
        ValueError, pydantic.ValidationError: it has no title, or a value that cannot be one.
    """
    fields = _fields(row)
    title = _text(fields.get("title"))
    if not title:
        raise ValueError("it has no title")
    url, pdf_url, abstract = _text(fields.get("url")), _text(fields.get("pdf_url")), _text(fields.get("abstract"))
    pdf = _text(fields.get("pdf"))
    if pdf and re.match(r"https?://", pdf):
        pdf_url, pdf = pdf_url or pdf, None
    venue, year = _venue(fields, path)
    number = row.get("id")
    identified = number if isinstance(number, str | int) and str(number).strip() else None
    links = f"{url or ''} {pdf_url or ''} {abstract or ''}"
    known = {
        "title": title,
        "authors": _names(fields.get("authors")),
        "venue": venue,
        "year": year,
        "url": url,
        "pdf_url": pdf_url,
        "pdf": pdf,
        "abstract": abstract or "",
        "keywords": _names(fields.get("keywords")),
        "doi": _found(_DOI, "doi", f"{_text(fields.get('doi')) or ''} {url or ''}"),
        "arxiv": _found(_ARXIV, "id", links) or _bare_arxiv(fields.get("arxiv")),
        "openreview": _found(_FORUM, "id", links),
        **_repository(row, fields, abstract or ""),
        "commit": _text(fields.get("commit")),
        "license": _text(fields.get("license")),
        "language": _text(fields.get("language")),
        "active": _day(fields.get("active")),
        "archived": _flag(fields.get("archived")),
        "needs": read_needs(fields.get("needs")),
        **{name: _count(fields.get(name)) for name in _NUMBERS},
    }
    if known["stars"] is None and isinstance(row.get("reproduce_difficulty"), dict):
        known["stars"] = _count(row["reproduce_difficulty"].get("stars"))
    values = {name: value for name, value in known.items() if value not in (None, "", ())}
    name = candidate_id(f"{venue or ''}{year or ''}", identified) if identified else _title_id(title, venue, year)
    return Candidate(id=name, origins=dict.fromkeys(values, where), **values)


def _fields(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row's values under our names; values of OpenReview's second form (`{"value": ...}`) are unwrapped."""
    content = row.get("content")
    merged = {**row, **content} if isinstance(content, dict) else dict(row)
    plain = {
        re.sub(r"[\s-]+", "_", str(key).strip().lower()): item["value"]
        if isinstance(item, dict) and set(item) == {"value"} else item
        for key, item in merged.items()
    }  # fmt: skip
    found: dict[str, Any] = {}
    for name, others in _NAMES.items():
        value = next((plain[other] for other in others if plain.get(other) not in (None, "", [])), None)
        if value is not None:
            found[name] = value
    return found


def _repository(row: Mapping[str, Any], fields: Mapping[str, Any], abstract: str) -> dict[str, str | None]:
    """`code_url`, or `reproduce_eval.code`, or what the abstract names (EXP-Bench's rows have all three)."""
    stated = _text(fields.get("repository"))
    evaluated = row.get("reproduce_eval")
    if not stated and isinstance(evaluated, dict):
        stated = _text(evaluated.get("code"))
    found = repository_url(stated) if stated else None
    if found is None and stated and re.fullmatch(r"[\w.-]+/[\w.-]+", stated):
        found = f"https://github.com/{stated}"
    named = urls_of_code(abstract)
    return {"repository": found or (named[0] if named else None)}


def _venue(fields: Mapping[str, Any], path: Path) -> tuple[str | None, int | None]:
    """Venue and year: of the row, else of the directory that it lies in (`iclr2024/conference_data.jsonl`)."""
    stated, year = _text(fields.get("venue")), _count(fields.get("year"))
    here = _CONFERENCE.fullmatch(path.resolve().parent.name)
    venue = short_venue(stated) if stated else here["venue"].upper() if here else None
    if year is None and stated and (match := re.search(r"\b(?:19|20)\d\d\b", stated)):
        year = int(match[0])
    return short_venue(venue) if venue else None, year if year is not None else int(here["year"]) if here else None


_LONG_VENUES: Final = (
    ("neural information processing systems", "NeurIPS"), ("learning representations", "ICLR"),
    ("conference on machine learning", "ICML"), ("computer vision and pattern recognition", "CVPR"),
    ("journal of machine learning research", "JMLR"), ("transactions on machine learning research", "TMLR"),
)  # fmt: skip
_SHORT_VENUES: Final = ("NeurIPS", "ICLR", "ICML", "CVPR", "ICCV", "ECCV", "ACL", "EMNLP", "NAACL", "AAAI", "IJCAI",
                        "KDD", "UAI", "AISTATS", "COLM", "CoRL", "JMLR", "TMLR")  # fmt: skip


def short_venue(text: str) -> str:
    """The usual short name of a venue; one that is not known stays as it is, on one line."""
    plain = " ".join(text.split())
    for long, short in _LONG_VENUES:
        if long in plain.lower():
            return short
    for short in _SHORT_VENUES:
        if re.search(rf"\b{short}(?=\b|\d)", plain, re.IGNORECASE) or plain.lower() == short.lower():
            return short
    return "NeurIPS" if re.fullmatch(r"nips\d*", plain, re.IGNORECASE) else plain


def _title_id(title: str, venue: str | None, year: int | None) -> str:
    return candidate_id(f"{venue or ''}{year or ''}", title) if same_title(title) else candidate_id("paper")


def _text(value: object) -> str | None:
    return " ".join(value.split()) or None if isinstance(value, str) else None


def _names(value: object) -> tuple[str, ...]:
    """A list, or a text with separators; authors may be `{"name": ...}`."""
    if isinstance(value, str):
        separator = r"\s*;\s*|\s+and\s+" if re.search(r";|\sand\s", value) else r"\s*,\s*"
        parts: Iterable[object] = re.split(separator, value)
    elif isinstance(value, list | tuple):
        parts = [item.get("name", item.get("display_name")) if isinstance(item, dict) else item for item in value]
    else:
        return ()
    return tuple(text for part in parts if (text := _text(part)))


def _count(value: object) -> int | None:
    """A number of things; a text that is not one is not a number."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return int(value) if value >= 0 else None
    text = str(value).replace(",", "").strip()
    return int(float(text)) if re.fullmatch(r"\d+(\.0+)?", text) else None


def _flag(value: object) -> bool | None:
    if isinstance(value, bool):
        return value
    return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}.get(str(value).lower())


def _day(value: object) -> str | None:
    match = re.match(r"(?:19|20)\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])", str(value or ""))
    return match[0] if match else None


def _found(pattern: re.Pattern[str], group: str, text: str) -> str | None:
    match = pattern.search(text)
    return match[group].rstrip(".,;)") if match else None


def _bare_arxiv(value: object) -> str | None:
    match = re.fullmatch(r"(?:arxiv:)?(\d{4}\.\d{4,5})(?:v\d+)?", str(value or "").strip(), re.IGNORECASE)
    return match[1] if match else None


def _problem(where: str, message: str, severity: Severity = Severity.WARNING) -> Problem:
    return Problem(component=_COMPONENT, where=where, message=message, severity=severity)


def _refused(path: Path, cause: str) -> ExpbenchError:
    return ExpbenchError(
        FailureKind.RECORD_INVALID,
        str(path),
        f"it cannot be read as an export of papers ({cause})",
        consequence="No list was made",
        next_step="Give JSON Lines, JSON, CSV or BibTeX with at least a title per paper",
    )
