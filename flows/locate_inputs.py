"""What `expbench locate` is given: tasks in YAML, JSON or JSON Lines, and repositories in any of their forms.

Tasks come from people and from published data, so the names of the fields are those of EXP-Bench (`question`,
`method`, `expected_outcome`) with the drift that its published files show; whatever else a file holds is left alone.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from pipeline.digests import digest_of
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.locator import TaskQuery
from pipeline.locator.directory import directory_snapshot
from pipeline.progress import Reporter
from pipeline.repository import Snapshot, open_snapshot

__all__ = ["Case", "at_commit", "check_output", "open_repository", "read_asked", "read_cases", "read_task"]

_QUESTION: Final = ("question", "hypothesis")
"""2 of 466 published records say `hypothesis`."""
_BEFORE_COMMIT: Final = re.compile(r"(?:[a-z+]+://[^/]*/[^/]|github:[^/]+/.|[^/@]+@[^/:]+:.)")
"""A URL with a path, `github:owner/name` or `user@host:path`."""
_EXPECTED: Final = ("expected_outcome", "expected")


_TASK_FILES: Final = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True)
class Case:
    """One line of a cases file."""

    paper_id: str
    task_index: int
    query: TaskQuery


def read_task(path: Path) -> TaskQuery:
    """The task of a YAML or JSON file with `question`, `method` and `expected_outcome`.

    Raises:
        ExpbenchError: `RECORD_INVALID`: it cannot be read, or has no question.
    """
    text = _text(path, "Nothing was searched")
    try:
        # JSON first: it may hold tabs, which YAML refuses
        value = json.loads(text) if path.suffix.lower() == ".json" else yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - builds text, lists and mappings only
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise _invalid(str(path), f"cannot be parsed: {_brief(error)}") from error
    return _query(value, str(path))


def read_asked(asked: Path | str) -> tuple[Path | None, TaskQuery]:
    """The file and the task of what was asked: a task file, or a question in words (text that names no file).

    Raises:
        ExpbenchError: `USAGE`: there is no word in the question; else as `read_task`.
    """
    path = Path(asked)
    try:
        is_file = isinstance(asked, Path) or path.is_file()
    except (OSError, ValueError):  # a question may be longer than a file's name
        is_file = False
    if is_file or path.suffix.lower() in _TASK_FILES:  # a file that is not there is told as such
        return path, read_task(path)
    question = " ".join(str(asked).split())
    if not any(letter.isalnum() for letter in question):
        raise ExpbenchError(
            FailureKind.USAGE, "expbench locate", "the question is empty", consequence="Nothing was searched",
            next_step='Ask in words, e.g. expbench locate . "How accurate is the model on spirals?"',
        )  # fmt: skip
    return None, TaskQuery(question=question)


def read_cases(path: Path) -> list[Case]:
    """The tasks of a cases file: one JSON object a line with `paper_id`, `task_index` and the task's text.

    Raises:
        ExpbenchError: `RECORD_INVALID`, naming the line.
    """
    cases: list[Case] = []
    seen: set[tuple[str, int]] = set()
    for number, line in enumerate(_text(path, "No case was searched").splitlines(), 1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise _invalid(where, f"is no JSON: {_brief(error)}") from error
        query = _query(row, where)
        paper, index = row.get("paper_id"), row.get("task_index")
        if not isinstance(paper, str | int) or isinstance(paper, bool) or not str(paper).strip():
            raise _invalid(where, "has no paper_id")
        if str(paper) in {".", ".."} or "/" in str(paper) or "\0" in str(paper):
            raise _invalid(where, f"the paper_id {paper!r} cannot name a directory")
        if not isinstance(index, int) or isinstance(index, bool):
            raise _invalid(where, "task_index is no whole number")
        if (str(paper), index) in seen:
            raise _invalid(where, f"task {index} of paper {paper} is there twice")
        seen.add((str(paper), index))
        cases.append(Case(str(paper), index, query))
    if not cases:
        raise _invalid(str(path), "holds no case")
    return cases


def open_repository(source: str, commit: str | None, cache: Path, reporter: Reporter) -> Snapshot:
    """A repository to search.

    Args:
        source: a directory with a work tree, which is searched as it lies there; a bare repository, or a URL; a
            repository may have `@commit` behind it.
        commit: full or abbreviated id, branch or tag, which a git repository is exported at; None: HEAD, and a
            directory as it is.
        cache: where exports of repositories are kept.
        reporter: progress.

    Raises:
        ExpbenchError: as `pipeline.repository.open_snapshot` and `pipeline.locator.directory.directory_snapshot`;
            `USAGE`: two commits.
    """
    source, commit = at_commit(source, commit)
    path = Path(source)
    bare = path.is_dir() and (path / "HEAD").is_file() and (path / "objects").is_dir()
    if commit is None and path.is_dir() and not bare:
        return directory_snapshot(path)
    if not path.exists() and "://" not in source and ":" not in source:
        return directory_snapshot(path)  # says that there is none
    name = str(path.absolute()) if path.exists() else source
    into = cache / "repositories" / digest_of([name, commit])[:16]
    return open_snapshot(source, commit=commit, into=into, allow_missing_submodules=True, reporter=reporter)


def check_output(path: Path, *, inputs: Sequence[Path]) -> None:
    """Can a result be written there? Asked before anything is searched, and without leaving anything behind.

    Raises:
        ExpbenchError: `USAGE`: it is one of the inputs, a directory, or nothing can be written there.
    """
    cause = ""
    if path.is_dir():
        cause = "is a directory"
    elif any(path.resolve() == item.resolve() for item in inputs):
        cause = "is what is read: it would be replaced"
    else:
        above = next(parent for parent in path.absolute().parents if parent.exists())
        if not above.is_dir():
            cause = f"{above} is no directory"
        else:
            try:
                tempfile.TemporaryFile(dir=above).close()
            except OSError as error:
                cause = f"cannot be written: {error.strerror or error}"
    if cause:
        raise ExpbenchError(
            FailureKind.USAGE, str(path), cause, consequence="Nothing was searched", next_step="Name another file"
        )


def at_commit(source: str, commit: str | None) -> tuple[str, str | None]:
    """`REPO@COMMIT` taken apart. A path that exists is a path, and the `@` of `git@host` stands before a host.

    Raises:
        ExpbenchError: `USAGE`: `commit` names another one.
    """
    base, at, named = source.rpartition("@")
    repository = Path(base).exists() or _BEFORE_COMMIT.match(base)
    if not at or not named or not repository or ":" in named or Path(source).exists():
        return source, commit
    if commit is not None and commit != named:
        raise ExpbenchError(
            FailureKind.USAGE, source, f"names the commit {named}, and --commit another one, {commit}",
            consequence="Nothing was searched", next_step="Name the commit once",
        )  # fmt: skip
    return base, named


def _query(value: Any, where: str) -> TaskQuery:
    if not isinstance(value, Mapping):
        raise _invalid(where, "is no object with question, method and expected_outcome")
    question = next((text for name in _QUESTION if (text := _words(value.get(name)))), "")
    if not question:
        raise _invalid(where, "has no question")
    expected = next((text for name in _EXPECTED if (text := _words(value.get(name)))), "")
    return TaskQuery(question=question, method=_words(value.get("method")), expected=expected)


def _words(value: Any) -> str:
    """Text, or the text inside of lists and objects, as published records write methods and outcomes."""
    if value is None or isinstance(value, bool):
        return ""
    if isinstance(value, Mapping):
        return "\n".join(text for item in value.values() if (text := _words(item)))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "\n".join(text for item in value if (text := _words(item)))
    return str(value).strip()


def _text(path: Path, consequence: str) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        cause = error.strerror or str(error) if isinstance(error, OSError) else "is not UTF-8 text"
        raise _invalid(str(path), f"cannot be read: {cause}", consequence) from error


def _brief(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _invalid(where: str, cause: str, consequence: str = "Nothing was searched") -> ExpbenchError:
    return ExpbenchError(
        FailureKind.RECORD_INVALID,
        where,
        cause,
        consequence=consequence,
        next_step="Give YAML or JSON with question, method and expected_outcome (cases: also paper_id and task_index)",
    )
