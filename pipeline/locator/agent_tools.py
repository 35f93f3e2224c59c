"""The tools of the locator's agent: list, grep, read, references, README, paper, ranking; and a run in a sandbox.

Everything a tool gives back is text of others and goes to the model delimited (`pipeline.llm.tool_output`). Nothing is
cut silently: what does not fit is counted in the answer, with how to see it. What was looked at is kept, because
`not_found` has to say it; text that addresses its reader as a model is kept as well, for the reviewer.
"""

from __future__ import annotations

import fnmatch
import posixpath
import shlex
from collections.abc import Callable, Sequence
from typing import Any, Final

from pydantic import BaseModel, Field, ValidationError

from pipeline.llm import ToolCall, ToolSpec, addressed_to_models
from pipeline.locator.agent_answer import AgentAnswer
from pipeline.locator.agent_runs import AgentSandbox, RunCommand
from pipeline.reader.search import PatternSearch, SearchTime
from pipeline.locator.index import RepositoryIndex
from pipeline.locator.lexical import Lexicon, Vocabulary
from pipeline.locator.locate import Location
from pipeline.locator.text import tokens
from pipeline.paper import Document
from pipeline.schema import Problem, Record, Severity
from pipeline.tracing.lines import FileLines

__all__ = ["SUBMIT", "Toolbox", "describe_ranking"]

SUBMIT: Final = "submit"
_LISTED: Final = 200
_MATCHES: Final = 60
_LINE: Final = 400
_PASSAGES: Final = 6
_SEARCH_SECONDS: Final = 20.0
"""Of processor time for one search, whatever the number of files."""
_SEARCHES_SECONDS: Final = 120.0
"""For all searches of one task."""
_WORDS: Final = 400
"""Letters of a path, title or command in a listing."""
_SUBJECTS: Final = 25


class _List(Record):
    """List files."""

    directory: str = Field(default=".", max_length=1000, description="relative to the root of the repository")
    pattern: str = Field(default="*", max_length=300, description="of the path below it, with * and ?")
    start: int = Field(default=1, ge=1, description="number of the first entry shown")


class _Grep(Record):
    """Search file contents."""

    pattern: str = Field(min_length=1, max_length=300, description="a regular expression, matched line by line")
    path: str = Field(default="*", max_length=300, description="only in paths like this, with * and ?")
    ignore_case: bool = True
    start: int = Field(default=1, ge=1, description="number of the first match shown")


class _Read(Record):
    """Read lines of a file."""

    path: str = Field(max_length=1000)
    start: int = Field(default=1, ge=1)
    end: int | None = Field(default=None, ge=1, description="last line; left out: as far as fits")


class _References(Record):
    """What a file has to do with others."""

    path: str = Field(max_length=1000)


class _Readme(Record):
    """Read the documentation."""

    section: str = Field(
        default="", max_length=300, description="a title of the table of contents; empty: the table of contents"
    )


class _Paper(Record):
    """Search the paper."""

    query: str = Field(min_length=1, max_length=500)


class _Ranking(Record):
    """See more of the ranking."""

    start: int = Field(default=1, ge=1, description="rank of the first file shown")


class Toolbox:
    """The tools on one snapshot, with a memory of what was looked at.

    Args:
        index: the repository.
        files: its files as numbered lines.
        ranking: what the deterministic search found.
        document: the paper; None: there is none to look up.
        characters: the longest result of one call.
        runner: what executes commands; None: nothing is executed.
    """

    def __init__(
        self,
        index: RepositoryIndex,
        files: FileLines,
        ranking: Location,
        document: Document | None,
        characters: int,
        runner: AgentSandbox | None = None,
    ) -> None:
        self._index, self._files, self._ranking, self._characters = index, files, ranking, characters
        self._passages = _passages(document) if document is not None else ()
        self._lexicon = Lexicon.of([text for _, text in self._passages], Vocabulary())
        self._time = SearchTime(_SEARCHES_SECONDS)
        self.searched: list[str] = []
        """What was looked at, in order, each once."""
        self._flagged: dict[str, Problem] = {}
        self._tools: dict[str, tuple[type[BaseModel], str, Callable[[Any], str]]] = {
            "list_files": (_List, "List the files of the repository.", self._list),
            "grep": (_Grep, "Find lines in the files of the repository.", self._grep),
            "read_file": (_Read, "Read a file of the repository with its line numbers.", self._read),
            "references": (
                _References,
                "What a file imports, loads and runs, and what imports, runs or mentions it.",
                self._references,
            ),
            "readme": (_Readme, "Read README and documentation by section.", self._readme),
            "ranking": (_Ranking, "More of the deterministic ranking, with its evidence.", self._ranked),
        }
        self._runner = runner
        if runner is not None:
            self._tools["run"] = (RunCommand, runner.description, self._run)
        if self._passages:
            self._tools["paper"] = (_Paper, "Find passages, captions and tables of the paper.", self._paper)

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """All tools, `submit` last."""
        reading = tuple(ToolSpec.of(name, text, model) for name, (model, text, _) in self._tools.items())
        return (*reading, self.submit)

    @property
    def has_paper(self) -> bool:
        """Can the paper be looked up?"""
        return bool(self._passages)

    @property
    def runs(self) -> bool:
        """Can commands be run?"""
        return self._runner is not None

    @property
    def submit(self) -> ToolSpec:
        """The tool that ends the work."""
        return ToolSpec.of(SUBMIT, "Submit the chain of files and its commands, or that there is none.", AgentAnswer)

    @property
    def flagged(self) -> tuple[Problem, ...]:
        """Text that addresses its reader as a model, by place."""
        return tuple(self._flagged[where] for where in sorted(self._flagged))

    def call(self, call: ToolCall) -> str:
        """The result of one call; a call that does not fit is answered with what is wrong with it."""
        if call.name not in self._tools:
            return f"There is no tool {call.name[:60]!r}. The tools are {', '.join([*self._tools, SUBMIT])}."
        model, _, function = self._tools[call.name]
        try:
            arguments = model.model_validate(call.arguments)
        except ValidationError as error:
            return f"The call does not fit {call.name}: {said(error)}"
        return function(arguments)

    def flag(self, where: str, text: str, offset: int = 0) -> None:
        """Keep what of `text`, found at `where` from line `offset` + 1, addresses a model."""
        for found in addressed_to_models(text):
            place = f"{where}:{found.line + offset}"
            self._flagged[place] = Problem(
                component="locator.agent",
                where=place,
                message=f"text that {found.kind} reached the model as data: {found.quote!r}",
                severity=Severity.WARNING,
            )

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
        self._note(f"list {prefix}{wanted.pattern}: {len(paths)} files")
        return _page(paths, wanted.start, _LISTED, self._characters, "files")

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
        self._note(
            f"grep {wanted.pattern!r} in {wanted.path}: {len(found)} lines{', not in all files' if left_out else ''}"
        )
        return _page(found, wanted.start, _MATCHES, self._characters, "matching lines") + left_out

    def _read(self, wanted: _Read) -> str:
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
            if size > self._characters and shown:
                break
            shown.append(line)
            reached = number
            self.flag(wanted.path, text[:_LINE], number - 1)
        if not shown:
            return f"{wanted.path} has no lines {wanted.start} to {end}; it has {last}."
        self._note(f"read {wanted.path}:{wanted.start}-{reached}")
        rest = f"\n[lines {reached + 1} to {last} are not shown]" if reached < last else ""
        return f"{wanted.path}, {last} lines:\n" + "\n".join(shown) + rest

    def _references(self, wanted: _References) -> str:
        path, links = wanted.path, self._index.links
        if path not in self._files:
            return f"{path} is not a file of the repository."
        forward = {"imports": links.imports, "runs": links.runs, "loads or names": links.configs}
        parts = [f"{verb}: {_some(sorted(edges.get(path, ())))}" for verb, edges in forward.items()]
        backward = {"imported by": links.imports, "run by": links.runs, "loaded or named by": links.configs}
        parts += [
            f"{verb}: {_some(sorted(source for source, targets in edges.items() if path in targets))}"
            for verb, edges in backward.items()
        ]
        parts += [
            f"command in {command.path}:{command.line}: {_argv(command.launch.argv)} (from {command.directory})"
            for command in [item for item in links.commands if item.target == path][:_SUBJECTS]
        ]
        mentions = [f"{section.path}:{section.line} {section.title[:_WORDS]}" for section, named, run in links.sections
                    if path in named | run]  # fmt: skip
        parts.append(f"mentioned in: {_some(mentions)}")
        self._note(f"references of {path}")
        return _page(parts, 1, len(parts), self._characters, "kinds of references")

    def _readme(self, wanted: _Readme) -> str:
        sections = [section for section, _, _ in self._index.links.sections]
        if not sections:
            return "The repository has no README and no documentation."
        if not wanted.section.strip():
            self._note(f"documentation: {len(sections)} sections")
            titles = [f"{item.path}:{item.line} {item.title[:_WORDS] or '(before the first heading)'}"
                      for item in sections]  # fmt: skip
            return _page(titles, 1, _LISTED, self._characters, "sections")
        low = wanted.section.strip().lower()
        chosen = [item for item in sections if low in f"{item.path}:{item.line} {item.title}".lower()]
        if not chosen:
            return f"No section is called {wanted.section!r}; an empty `section` lists all."
        for item in chosen:
            self.flag(item.path, item.text, item.line - 1)
        self._note(f"documentation {wanted.section!r}")
        texts = [f"{item.path}, from line {item.line}, {item.title}:\n{item.text}" for item in chosen]
        return _page(texts, 1, _LISTED, self._characters, "sections")

    def _paper(self, wanted: _Paper) -> str:
        scores = self._lexicon.scores(tokens(wanted.query))
        best = [i for i in sorted(range(len(self._passages)), key=lambda i: (-scores[i], i)) if scores[i] > 0]
        self._note(f"paper {wanted.query!r}: {len(best)} passages")
        if not best:
            return "No passage of the paper has these words."
        for number in best[:_PASSAGES]:
            self.flag(f"paper {self._passages[number][0]}", self._passages[number][1])
        texts = [f"[{self._passages[i][0]}] {self._passages[i][1]}" for i in best[:_PASSAGES]]
        return _page(texts, 1, _PASSAGES, self._characters, "passages")

    def _run(self, wanted: RunCommand) -> str:
        assert self._runner is not None, "the tool is offered with a runner only"
        text = self._runner.run(wanted, self._files, self._characters)
        command = " ".join(wanted.argv)
        self.flag(f"output of {command[:120]}", text)
        self._note(f"ran {command} in {wanted.directory}")
        return text

    def _ranked(self, wanted: _Ranking) -> str:
        ranked = self._ranking.ranked
        lines = [f"{n}. {file.path} ({file.role}, {file.score:.2f}): {'; '.join(file.reasons)}"
                 for n, file in enumerate(ranked, 1)]  # fmt: skip
        self._note(f"ranking from {wanted.start}")
        return _page(lines, wanted.start, _SUBJECTS, self._characters, "ranked files")

    def _note(self, what: str) -> None:
        if what not in self.searched:
            self.searched.append(what)


def describe_ranking(ranking: Location, shown: int) -> str:
    """The deterministic result in words: its decision, the next-best chains, the first files with their evidence."""
    parts = []
    if ranking.chain is not None:
        parts.append(f"Best chain (probability {ranking.chain.confidence:.2f}):")
        chains = [ranking.chain, *ranking.alternatives]
    else:
        reason = ranking.not_found.reason if ranking.not_found else ""
        parts.append(f"No chain: {reason}")
        chains = []
    for number, chain in enumerate(chains):
        if number:
            parts.append(f"Alternative {number} (probability {chain.confidence:.2f}):")
        parts += [f"  {file.role}: {file.path}" for file in chain.sources]
        parts += [f"  command in {step.directory}: {_argv(step.argv)} ({step.reason})" for step in chain.usage[:6]]
    parts.append("Files by score:")
    parts += [
        f"  {number}. {file.path} ({file.role}, {file.score:.2f}): {'; '.join(file.reasons)}"
        for number, file in enumerate(ranking.ranked[:shown], 1)
    ]
    return "\n".join(parts)


def said(error: ValidationError) -> str:
    """A validation error in words for the model."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(f"{'.'.join(map(str, e['loc']))[:100] or 'the value'}: {e['msg']}" for e in found[:8])


def _page(items: Sequence[str], start: int, most: int, characters: int, what: str) -> str:
    """Some of the items, as many as fit, and what is left out."""
    if not items:
        return f"There are no {what}."
    shown: list[str] = []
    size = 0
    for item in items[start - 1 : start - 1 + most]:
        if shown and size + len(item) > characters:
            break
        room = characters - size
        shown.append(item if len(item) <= room else f"{item[:room]} [{len(item) - room} more characters]")
        size += len(item) + 1
    if not shown:
        return f"There are only {len(items)} {what}."
    head = f"{what} {start} to {start + len(shown) - 1} of {len(items)}"
    return f"{head}:\n" + "\n".join(shown)


def _argv(words: Sequence[str]) -> str:
    """A command as it is typed; the end of a long one is counted."""
    text = shlex.join(words)
    return text if len(text) <= _WORDS else f"{text[:_WORDS]} [{len(text) - _WORDS} more characters]"


def _some(paths: Sequence[str]) -> str:
    if not paths:
        return "nothing"
    more = f" and {len(paths) - _SUBJECTS} more" if len(paths) > _SUBJECTS else ""
    return ", ".join(paths[:_SUBJECTS]) + more


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
