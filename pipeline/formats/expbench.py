"""EXP-Bench's published data: read into tasks, and written back, with nothing lost.

Layout as published: `<conference>/<paper>/<paper>_complete_final.json`, one file a paper with its questions, and
`<conference>/conference_data.jsonl`, one row a paper (title, repository). The files are untyped and drifted; every
departure is a `Problem` whose component ends in the name of a `Quirk`, and is counted. Each record is kept verbatim
beside its task, so that reading, writing and reading again gives the same, and writing an unchanged task gives the
record.

Normalisation of what becomes a task: `hypothesis` is `question`, `experiment_design_complexity` is `design_complexity`,
a design wrapped in itself is unwrapped; variables' values are texts; paths are relative to the repository; spans leave
the words of a requirement; commands are those of the usage instructions that need no shell and no placeholder.

The data names no commit, so a task has git's null id until one is given (`KnownRepository`).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from pydantic import Field, JsonValue

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import write_text
from pipeline.formats._expbench_record import COMPONENT, Origin, Quirk, record_to_task, task_to_record
from pipeline.formats._expbench_rows import (
    ROWS,
    ConferenceLine,
    ConferenceRows,
    read_rows,
    unused_lines,
    write_rows,
)
from pipeline.paper import Paper
from pipeline.repository import RepositoryRef
from pipeline.schema import Problem, Record, Severity, StoredRecord
from pipeline.task import Task

__all__ = [
    "NULL_COMMIT", "KnownRepository", "PublishedDataset", "PublishedPaper", "PublishedTask", "Quirk", "is_published",
    "quirk_counts", "read_known_repositories", "read_published", "record_to_task", "task_to_record", "write_published",
]  # fmt: skip

NULL_COMMIT: Final = "0" * 40
"""Git's id for "no object": the published data does not say which commit it was made from."""

_SUFFIX: Final = "_complete_final.json"
_CONFERENCE: Final = re.compile(r"(?P<venue>[a-z]+)(?P<year>(?:19|20)\d\d)", re.IGNORECASE)
_URL: Final = re.compile(r"https?://[^\s\"'<>]+")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_MAX_BYTES: Final = 64 << 20
"""The largest published file has 0.2 MB."""


class KnownRepository(Record):
    """What a user knows of a paper's repository beyond the published data."""

    url: str
    commit: str = Field(pattern=r"^[0-9a-f]{40,64}$")


class PublishedTask(Record):
    """A task, where it stood, and the record as published."""

    task: Task
    index: int
    original: dict[str, JsonValue]


class PublishedPaper(StoredRecord):
    """One file of the published data."""

    SCHEMA_VERSION: ClassVar[int] = 1

    paper: Paper
    file: str
    """Relative to the data's directory."""
    category: str = ""
    """Research area where the conference's row names one."""
    row: dict[str, JsonValue] | None = None
    """The conference's row, verbatim."""
    row_line: int | None = None
    """Where it stands in the conference's file."""
    rest: dict[str, JsonValue] | None = Field(default_factory=dict)
    """The file's other keys, verbatim; None: the file is a list of records."""
    skipped: tuple[tuple[int, JsonValue], ...] = ()
    """(index, record) of what is no task."""


class PublishedDataset(Record):
    """Everything that was read."""

    papers: tuple[PublishedPaper, ...]
    tasks: tuple[PublishedTask, ...]
    """Sorted by id."""
    problems: tuple[Problem, ...] = ()
    other_lines: tuple[ConferenceLine, ...] = ()
    """Of the conferences' files, what is about no paper with tasks."""


def quirk_counts(problems: Iterable[Problem]) -> dict[str, int]:
    """How often each quirk occurs, most frequent first."""
    prefix = f"{COMPONENT}."
    counts = Counter(
        problem.component.removeprefix(prefix) for problem in problems if problem.component.startswith(prefix)
    )
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def is_published(directory: Path) -> bool:
    """Does a directory hold published EXP-Bench data?"""
    return directory.is_dir() and any(directory.rglob(f"*{_SUFFIX}"))


def read_known_repositories(path: Path) -> dict[str, KnownRepository]:
    """Repositories and commits by paper id: `{"18865": {"url": "https://...", "commit": "<40 hex>"}}`.

    `repo` (`owner/name` on GitHub) and `head` are understood for `url` and `commit`.

    Raises:
        ExpbenchError: `RECORD_INVALID`, it is not such a file.
    """
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        return {
            str(paper): KnownRepository(
                url=row["url"] if "url" in row else f"https://github.com/{row['repo']}",
                commit=row["commit"] if "commit" in row else row["head"],
            )
            for paper, row in rows.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ExpbenchError(
            FailureKind.RECORD_INVALID,
            str(path),
            f"it does not name repositories by paper ({type(error).__name__}: {str(error).splitlines()[0]})",
            consequence="Nothing was imported",
            next_step='Give JSON like {"18865": {"url": "https://github.com/owner/name", "commit": "<40 hex digits>"}}',
        ) from error


def read_published(directory: Path, known: Mapping[str, KnownRepository] | None = None) -> PublishedDataset:
    """Read all files below a directory; a bad file is a problem, the others are read.

    Args:
        directory: of the published layout, or a part of it; a single file's directory will do.
        known: repositories and commits by paper id.

    Raises:
        ExpbenchError: `RECORD_INVALID`, there is no file of the published form in it.
    """
    files = sorted(directory.rglob(f"*{_SUFFIX}")) if directory.is_dir() else []
    if not files:
        raise ExpbenchError(
            FailureKind.RECORD_INVALID,
            str(directory),
            f"it holds no published EXP-Bench data (no *{_SUFFIX})",
            consequence="Nothing was imported",
            next_step="Name the directory that holds the conferences' folders",
        )
    problems: list[Problem] = []
    rows = {}
    for place in sorted({_rows_of(file) for file in files}):
        name = place.relative_to(directory).as_posix() if place.is_relative_to(directory) else place.name
        rows[place] = read_rows(place, name, lambda text, where: _parse(text, where, problems), problems)
    papers: list[PublishedPaper] = []
    tasks: list[PublishedTask] = []
    for file in files:
        name = file.relative_to(directory).as_posix()
        content = _read_json(file, name, problems)
        if content is None:
            continue
        paper, found = _read_paper(content, file, name, rows[_rows_of(file)], known or {}, problems)
        papers.append(paper)
        tasks += found
    tasks.sort(key=lambda item: item.task.id)
    others = []
    for place, lines in rows.items():
        used = [
            paper.row_line for paper in papers
            if paper.row_line is not None and _rows_of(directory / paper.file) == place
        ]  # fmt: skip
        others += unused_lines(lines, used, problems)
    return PublishedDataset(
        papers=tuple(papers), tasks=tuple(tasks), problems=tuple(problems), other_lines=tuple(others)
    )  # fmt: skip


# --- files


def _rows_of(file: Path) -> Path:
    return file.parent.parent / ROWS


def _problem(quirk: Quirk, where: str, message: str, severity: Severity = Severity.WARNING) -> Problem:
    return Problem(component=f"{COMPONENT}.{quirk}", where=where, message=message, severity=severity)


def _read_json(file: Path, name: str, problems: list[Problem]) -> Any:
    """The file's value; None, with a problem, when it cannot be read."""
    try:
        if file.is_symlink() or not file.is_file():  # a link leads anywhere, and a pipe is never read to its end
            raise ValueError("a link, or no regular file")
        if file.stat().st_size > _MAX_BYTES:
            raise ValueError(f"larger than {_MAX_BYTES} bytes")
        return _parse(file.read_text(encoding="utf-8-sig"), name, problems)
    except (OSError, ValueError, RecursionError) as error:
        message = f"it cannot be read ({str(error).splitlines()[0]}): none of its tasks was imported"
        problems.append(_problem(Quirk.BAD_FILE, name, message, Severity.ERROR))
        return None


def _parse(text: str, name: str, problems: list[Problem]) -> Any:
    """JSON without NaN and lone surrogates (they cannot be written again); repeated keys are reported.

    Raises:
        ValueError: it is not JSON, or holds what JSON cannot.
    """

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        repeated = sorted(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        if repeated:
            message = f"key(s) given more than once, the last counts: {', '.join(repeated)}"
            problems.append(_problem(Quirk.DUPLICATE_KEY, name, message))
        return dict(pairs)

    def constant(text: str) -> Any:
        raise ValueError(f"{text} is not JSON")

    value = json.loads(text, object_pairs_hook=members, parse_constant=constant)
    if "\\ud" in text.lower() and _SURROGATE.search(json.dumps(value, ensure_ascii=False)):
        raise ValueError("it holds half of a surrogate pair")
    return value


# --- papers


def _read_paper(
    content: Any,
    file: Path,
    name: str,
    rows: ConferenceRows,
    known: Mapping[str, KnownRepository],
    problems: list[Problem],
) -> tuple[PublishedPaper, list[PublishedTask]]:
    number = file.name.removesuffix(_SUFFIX)
    conference = file.parent.parent.name
    line, row = rows.by_id.get(number, (None, None))
    if row is None:
        problems.append(_problem(Quirk.NO_CONFERENCE_ROW, name, f"no row of {ROWS} is about it: title and URL unknown"))
    paper = _paper(number, conference, row)
    questions, rest = _questions(content, name, problems)
    url = known[number].url if number in known else _repository_url(row)
    repository = RepositoryRef(url=url, commit=known[number].commit if number in known else NULL_COMMIT)
    tasks: list[PublishedTask] = []
    skipped: list[tuple[int, JsonValue]] = []
    for index, record in enumerate(questions):
        where = f"{name} record {index}"
        task = None
        if isinstance(record, dict):
            origin = Origin(f"{paper.id}-{index:02d}", paper, repository, where)
            task, found = record_to_task(record, origin)
            problems += found
        else:
            message = f"it is a {type(record).__name__}, not a record: kept as it is"
            problems.append(_problem(Quirk.SKIPPED, where, message, Severity.ERROR))
        if task is None:
            skipped.append((index, record))
        else:
            tasks.append(PublishedTask(task=task, index=index, original=record))
    category = _category(row)
    published = PublishedPaper(
        paper=paper, file=name, category=category, row=row, row_line=line, rest=rest, skipped=tuple(skipped)
    )  # fmt: skip
    return published, tasks


def _questions(content: Any, name: str, problems: list[Problem]) -> tuple[list[Any], dict[str, JsonValue] | None]:
    if isinstance(content, list):
        return content, None
    if isinstance(content, dict) and isinstance(content.get("questions"), list):
        return content["questions"], {key: value for key, value in content.items() if key != "questions"}
    message = "it has no list `questions`: nothing was imported from it, what it holds is kept"
    problems.append(_problem(Quirk.BAD_FILE, name, message, Severity.ERROR))
    return [], {"": content}


def _paper(number: str, conference: str, row: Mapping[str, JsonValue] | None) -> Paper:
    match = _CONFERENCE.fullmatch(conference)
    slug = re.sub(r"[^a-z0-9._-]+", "-", f"{conference}-{number}".lower()).strip("-._")[:80]
    title = row.get("title") if row else None
    url = row.get("url") if row else None
    return Paper(
        id=slug or "paper",
        title=title if isinstance(title, str) else number,
        venue=match["venue"].upper() if match else None,
        year=int(match["year"]) if match else None,
        url=url if isinstance(url, str) and url else None,
    )


def _repository_url(row: Mapping[str, JsonValue] | None) -> str:
    """`code_url`, or `reproduce_eval.code`, of the conference's row; empty when neither is there."""
    if row is None:
        return ""
    evaluation = row.get("reproduce_eval")
    for value in (row.get("code_url"), evaluation.get("code") if isinstance(evaluation, dict) else None):
        if isinstance(value, str) and (match := _URL.match(value.strip())):
            return match[0].rstrip(".,;)")
    return ""


def _category(row: Mapping[str, JsonValue] | None) -> str:
    for key in ("category", "keywords"):
        value = row.get(key) if row else None
        if isinstance(value, str) and value.strip():
            return value.strip()
        if isinstance(value, list) and value and isinstance(value[0], str):
            return value[0].strip()
    return ""


# --- writing


def write_published(
    directory: Path,
    papers: Sequence[PublishedPaper],
    tasks: Sequence[PublishedTask],
    other_lines: Sequence[ConferenceLine] = (),
) -> tuple[Path, ...]:
    """Write papers and tasks in the published layout; returns the files.

    Args:
        directory: where; existing files of the same names are replaced.
        papers: as read, or made for new tasks.
        tasks: those of the papers; what was changed since it was read is written in the canonical form.
        other_lines: of the conferences' files, beside the rows of these papers.

    Raises:
        ExpbenchError: `RECORD_INVALID`, a paper's file name leads out of `directory`.
    """
    written: list[Path] = []
    rows: dict[Path, list[tuple[int | None, JsonValue]]] = {}
    others: dict[Path, list[ConferenceLine]] = {}
    for line in other_lines:
        others.setdefault(_inside(directory, line.file), []).append(line)
    for paper in papers:
        path = _inside(directory, paper.file)
        records = [
            *((item.index, task_to_record(item.task, item.original)) for item in tasks
              if item.task.paper.id == paper.paper.id),
            *paper.skipped,
        ]  # fmt: skip
        questions: JsonValue = [record for _, record in sorted(records, key=lambda pair: pair[0])]
        content: JsonValue = questions if paper.rest is None else {"questions": questions, **paper.rest}
        if paper.rest is not None and "" in paper.rest and not records:
            content = paper.rest[""]
        write_text(path, json.dumps(content, indent=4, ensure_ascii=False) + "\n")
        written.append(path)
        if paper.row is not None:
            rows.setdefault(_rows_of(path), []).append((paper.row_line, paper.row))
    for place in sorted(rows.keys() | others.keys()):
        write_text(place, write_rows(rows.get(place, ()), others.get(place, ())))
        written.append(place)
    return tuple(written)


def _inside(directory: Path, name: str) -> Path:
    path = (directory / name).resolve()
    if not path.is_relative_to(directory.resolve()):
        raise ExpbenchError(
            FailureKind.RECORD_INVALID,
            name,
            "the name of a published file leads out of the directory to write",
            consequence="Nothing more was written",
            next_step="Correct the name in the paper's record",
        )
    return path
