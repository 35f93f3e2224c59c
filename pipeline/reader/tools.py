"""What a reader can ask of one snapshot: list, grep, read, references, documentation, ranking, paper, numbers.

Everything a tool gives back is text of others and goes to the model delimited (`pipeline.llm.tool_output`). Nothing is
cut silently: what does not fit is counted in the answer, with how to see it. What was looked at is kept, because
`not_found` has to say it; text that addresses its reader as a model is kept as well, for the reviewer.
"""

from __future__ import annotations

import fnmatch
import math
import posixpath
import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, Final

from pydantic import Field

from pipeline.llm import addressed_to_models
from pipeline.locator.index import RepositoryIndex
from pipeline.locator.lexical import Lexicon, Vocabulary
from pipeline.locator.query import QueryWords, TaskQuery
from pipeline.locator.ranking import rank
from pipeline.locator.text import tokens
from pipeline.paper import Document
from pipeline.reader.loop import ReaderTool
from pipeline.reader.search import PatternSearch, SearchTime
from pipeline.schema import Problem, Record, Severity
from pipeline.tracing.lines import FileLines
from pipeline.validation.observation import Observation
from pipeline.validation.outputs import read_committed

__all__ = ["Toolbox", "shown_command"]

_LISTED: Final = 200
_MATCHES: Final = 60
_LINE: Final = 400
_PASSAGES: Final = 6
_RANKED: Final = 12
_SEARCH_SECONDS: Final = 20.0
"""Of processor time for one search, whatever the number of files."""
_SEARCHES_SECONDS: Final = 120.0
"""For all searches of one conversation."""
_WORDS: Final = 400
"""Letters of a path, title or command in a listing."""
_SUBJECTS: Final = 25

_Path = Annotated[str, Field(max_length=1000)]


class _List(Record):
    """List files."""

    directory: _Path = Field(default=".", description="relative to the root of the repository")
    pattern: str = Field(default="*", max_length=300, description="of the path below it, with * and ?")
    start: int = Field(default=1, ge=1, description="number of the first entry shown")


class _Grep(Record):
    """Search file contents."""

    pattern: str = Field(min_length=1, max_length=300, description="a regular expression, matched line by line")
    path: str = Field(default="*", max_length=300, description="only in paths like this, with * and ?")
    ignore_case: bool = True
    start: int = Field(default=1, ge=1, description="number of the first match shown")


class _Part(Record):
    """Lines of a file."""

    path: _Path
    start: int = Field(default=1, ge=1)
    end: int | None = Field(default=None, ge=1, description="last line; left out: as far as fits")


class _Read(Record):
    """Read lines of files, several at once."""

    parts: tuple[_Part, ...] = Field(min_length=1, max_length=12)


class _References(Record):
    """What files have to do with others."""

    paths: tuple[_Path, ...] = Field(min_length=1, max_length=8)


class _Readme(Record):
    """Read the documentation."""

    sections: tuple[Annotated[str, Field(max_length=300)], ...] = Field(
        default=(), max_length=8, description="titles or places (README.md:12); empty: the table of contents"
    )


class _Query(Record):
    """Search with words."""

    query: str = Field(min_length=1, max_length=2000)


class _Numbers(Record):
    """Look numbers up."""

    numbers: tuple[Annotated[str, Field(max_length=40)], ...] = Field(
        min_length=1, max_length=30, description='as printed, e.g. "0.731", "91.3"'
    )


class Toolbox:
    """The tools on one snapshot, with a memory of what was looked at.

    Args:
        index: the repository.
        files: its files as numbered lines.
        document: the paper; None: there is none to look up.
        characters: the longest result of one call.
    """

    def __init__(
        self, index: RepositoryIndex, files: FileLines, document: Document | None, characters: int = 12_000
    ) -> None:
        self._index, self._files, self._characters = index, files, characters
        self._passages = _passages(document) if document is not None else ()
        self._lexicon = Lexicon.of([text for _, text in self._passages], Vocabulary())
        self._time = SearchTime(_SEARCHES_SECONDS)
        self._numbers: list[Observation] | None = None
        self.searched: list[str] = []
        """What was looked at, in order, each once."""
        self._flagged: dict[str, Problem] = {}

    @property
    def tools(self) -> tuple[ReaderTool, ...]:
        """All that can be asked for; always in one order, as the schemas are part of what providers cache."""
        found: list[tuple[str, str, type[Record], Callable[[Any], str]]] = [
            ("read_file", "Read lines of files of the repository, with their numbers; several at once.", _Read,
             self._read),
            ("grep", "Find lines in the files of the repository.", _Grep, self._grep),
            ("list_files", "List the files of the repository.", _List, self._list),
            ("references", "What files import, load and run, and what imports, runs or mentions them.", _References,
             self._references),
            ("readme", "Read README and documentation by section.", _Readme, self._readme),
            ("rank", "The files of the repository that share most words with a text, by a search without a model.",
             _Query, self._rank),
            ("numbers", "Where numbers stand in the result files that are committed in the repository.", _Numbers,
             self._look_up),
        ]  # fmt: skip
        if self._passages:
            found.append(("paper", "Find passages, captions and tables of the paper.", _Query, self._paper))
        return tuple(ReaderTool(name, text, model, function) for name, text, model, function in found)

    @property
    def flagged(self) -> tuple[Problem, ...]:
        """Text that addresses its reader as a model, by place."""
        return tuple(self._flagged[where] for where in sorted(self._flagged))

    def flag(self, where: str, text: str, offset: int = 0) -> None:
        """Keep what of `text`, found at `where` from line `offset` + 1, addresses a model."""
        for found in addressed_to_models(text):
            place = f"{where}:{found.line + offset}"
            self._flagged[place] = Problem(
                component="reader",
                where=place,
                message=f"text that {found.kind} reached the model as data: {found.quote!r}",
                severity=Severity.WARNING,
            )

    def note(self, what: str) -> None:
        """Keep what was looked at."""
        if what not in self.searched:
            self.searched.append(what)

    # --- the tools ---

    def _list(self, wanted: _List) -> str:
        directory = posixpath.normpath(wanted.directory)
        if not self._files.is_directory(directory):
            return f"There is no directory {wanted.directory}."
        prefix = "" if directory == "." else f"{directory}/"
        paths = [
            f"{file.path} ({file.size} bytes{', binary' if file.binary else ''})"
            for file in self._index.snapshot.files
            if file.path.startswith(prefix) and fnmatch.fnmatchcase(file.path[len(prefix) :], wanted.pattern)
        ]
        self.note(f"list {prefix}{wanted.pattern}: {len(paths)} files")
        return self._page(paths, wanted.start, _LISTED, "files")

    def _grep(self, wanted: _Grep) -> str:
        try:
            search = PatternSearch(wanted.pattern, ignore_case=wanted.ignore_case, together=self._time,
                                   seconds=_SEARCH_SECONDS)  # fmt: skip
        except ValueError as error:
            return f"The pattern is no regular expression that can be searched for: {error}."
        found: list[str] = []
        wherein = [file.path for file in self._index.snapshot.files
                   if self._files.readable(file.path) and fnmatch.fnmatchcase(file.path, wanted.path)]  # fmt: skip
        for path in wherein:
            if search.ended:
                break
            lines = self._files.lines(path)
            for index in search.lines(path, [text for _, text in lines]):
                number, text = lines[index]
                found.append(f"{path}:{number}: {text[:_LINE]}")
                self.flag(path, text[:_LINE], number - 1)
        left_out = search.told(len(wherein))
        self.note(
            f"grep {wanted.pattern!r} in {wanted.path}: {len(found)} lines{', not in all files' if left_out else ''}"
        )
        return self._page(found, wanted.start, _MATCHES, "matching lines") + left_out

    def _read(self, wanted: _Read) -> str:
        share = self._characters // len(wanted.parts)
        texts, left = [], 0
        for part in wanted.parts:  # what one part does not need is the next one's
            text = self._read_part(part, share + left)
            left = max(0, share + left - len(text))
            texts.append(text)
        return "\n\n".join(texts)

    def _read_part(self, wanted: _Part, characters: int) -> str:
        if not self._files.readable(wanted.path):
            kind = "binary" if wanted.path in self._files else "not a file of the repository"
            return f"{wanted.path} is {kind}."
        lines = self._files.lines(wanted.path)
        last = max((number for number, _ in lines), default=0)
        end = last if wanted.end is None else min(wanted.end, last)
        shown: list[str] = []
        size, reached = 0, wanted.start - 1
        for number, text in lines:
            if not wanted.start <= number <= end:
                continue
            line = (
                f"{number}: {text if len(text) <= _LINE else f'{text[:_LINE]} [{len(text) - _LINE} more characters]'}"
            )
            size += len(line) + 1
            if size > characters and shown:
                break
            shown.append(line)
            reached = number
            self.flag(wanted.path, text[:_LINE], number - 1)
        if not shown:
            return f"{wanted.path} has no lines {wanted.start} to {end}; it has {last}."
        self.note(f"read {wanted.path}:{wanted.start}-{reached}")
        rest = f"\n[lines {reached + 1} to {last} are not shown]" if reached < last else ""
        return f"{wanted.path}, {last} lines:\n" + "\n".join(shown) + rest

    def _references(self, wanted: _References) -> str:
        return "\n\n".join(self._references_of(path) for path in wanted.paths)

    def _references_of(self, path: str) -> str:
        links = self._index.links
        if path not in self._files:
            return f"{path[:_WORDS]} is not a file of the repository."
        forward = {"imports": links.imports, "runs": links.runs, "loads or names": links.configs}
        backward = {"imported by": links.imports, "run by": links.runs, "loaded or named by": links.configs}
        parts = {verb: sorted(edges.get(path, ())) for verb, edges in forward.items()}
        parts |= {
            verb: sorted(source for source, targets in edges.items() if path in targets)
            for verb, edges in backward.items()
        }
        parts["command"] = [
            f"{command.path}:{command.line} {shown_command(command.launch.argv)} (from {command.directory})"
            for command in links.commands
            if command.target == path
        ]
        parts["mentioned in"] = [
            f"{section.path}:{section.line} {section.title[:_WORDS]}"
            for section, named, run in links.sections
            if path in named | run
        ]
        self.note(f"references of {path}")
        told = [f"{verb}: {_some(items)}" for verb, items in parts.items() if items]
        return "\n".join([path, *(told or ["nothing refers to it, and it refers to nothing"])])

    def _readme(self, wanted: _Readme) -> str:
        sections = [section for section, _, _ in self._index.links.sections]
        if not sections:
            return "The repository has no README and no documentation."
        names = [name.strip().lower() for name in wanted.sections if name.strip()]
        if not names:
            self.note(f"documentation: {len(sections)} sections")
            titles = [f"{item.path}:{item.line} {item.title[:_WORDS] or '(before the first heading)'}"
                      for item in sections]  # fmt: skip
            return self._page(titles, 1, _LISTED, "sections")
        places = {id(item): f"{item.path}:{item.line} {item.title}".lower() for item in sections}
        chosen = [item for item in sections if any(name in places[id(item)] for name in names)]
        if not chosen:
            return f"No section is called {', '.join(names)[:_WORDS]!r}; empty `sections` lists all."
        for item in chosen:
            self.flag(item.path, item.text, item.line - 1)
        self.note(f"documentation {', '.join(names)}")
        texts = [f"{item.path}, from line {item.line}, {item.title}:\n{item.text}" for item in chosen]
        return self._page(texts, 1, _LISTED, "sections")

    def _rank(self, wanted: _Query) -> str:
        ranking = rank(self._index, QueryWords.of(TaskQuery(question=wanted.query)))
        self.note(f"ranked by {wanted.query[:80]!r}")
        lines = [
            f"{place}. {self._index.facts[number].path}: {'; '.join(ranking.reasons(number))[:_WORDS]}"
            for place, number in enumerate(ranking.order[:_RANKED], 1)
        ]
        return self._page(lines, 1, _RANKED, "files by shared words")

    def _paper(self, wanted: _Query) -> str:
        scores = self._lexicon.scores(tokens(wanted.query))
        best = [i for i in sorted(range(len(self._passages)), key=lambda i: (-scores[i], i)) if scores[i] > 0]
        self.note(f"paper {wanted.query!r}: {len(best)} passages")
        if not best:
            return "No passage of the paper has these words."
        for number in best[:_PASSAGES]:
            self.flag(f"paper {self._passages[number][0]}", self._passages[number][1])
        texts = [f"[{self._passages[i][0]}] {self._passages[i][1]}" for i in best[:_PASSAGES]]
        return self._page(texts, 1, _PASSAGES, "passages")

    def _look_up(self, wanted: _Numbers) -> str:
        if self._numbers is None:
            self._numbers = [item for _, held in read_committed(self._index.snapshot) for item in held]
        texts = []
        for text in wanted.numbers:
            found = list(_standing(text, self._numbers))
            places = [f"{item.where}: {item.text}" for item in found]
            self.note(f"number {text}: {len(found)} places in committed files")
            texts.append(f"{text}: {_some(places) if places else 'nowhere'}")
        return "\n".join([f"{len(self._numbers)} numbers of committed files were searched.", *texts])

    def _page(self, items: Sequence[str], start: int, most: int, what: str) -> str:
        """Some of the items, as many as fit, and what is left out."""
        if not items:
            return f"There are no {what}."
        shown: list[str] = []
        size = 0
        for item in items[start - 1 : start - 1 + most]:
            if shown and size + len(item) > self._characters:
                break
            room = self._characters - size
            shown.append(item if len(item) <= room else f"{item[:room]} [{len(item) - room} more characters]")
            size += len(item) + 1
        if not shown:
            return f"There are only {len(items)} {what}."
        return f"{what} {start} to {start + len(shown) - 1} of {len(items)}:\n" + "\n".join(shown)


def _standing(text: str, numbers: Sequence[Observation]) -> Iterator[Observation]:
    """Numbers that, rounded as `text` is printed, are that number: as they stand, or in percent."""
    try:
        value = float(text.strip().rstrip("%"))
    except ValueError:
        return
    if not math.isfinite(value):
        return
    half = 0.5 * 10.0 ** -len(text.strip().rstrip("%").partition(".")[2]) * (1 + 1e-9)
    for item in numbers:
        if any(abs(item.value * factor - value) <= half for factor in (1.0, 100.0, 0.01)):
            yield item


def shown_command(words: Sequence[str]) -> str:
    """A command as it is typed; the end of a long one is counted."""
    text = shlex.join(words)
    return text if len(text) <= _WORDS else f"{text[:_WORDS]} [{len(text) - _WORDS} more characters]"


def _some(items: Sequence[str]) -> str:
    more = f" and {len(items) - _SUBJECTS} more" if len(items) > _SUBJECTS else ""
    return ", ".join(items[:_SUBJECTS]) + more


def _passages(document: Document) -> tuple[tuple[str, str], ...]:
    """(place, text) of all that can be looked up; hidden text is not part of it."""
    found = []
    for passage in document.passages:
        titles = " > ".join(section.title for section in document.section_path(passage))
        found.append((f"page {passage.page}, {titles}" if titles else f"page {passage.page}", passage.text))
    found += [(f"page {caption.page}, {caption.label}", caption.text) for caption in document.captions]
    for table in document.tables:
        rows = "\n".join(" | ".join(row) for row in table.grid)
        found.append((f"page {table.page}, {table.label}", f"{table.caption}\n{rows}"))
    return tuple(found)
