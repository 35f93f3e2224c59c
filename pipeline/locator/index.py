"""The index of one snapshot: everything that does not depend on the task, computed once.

With `cache`, what each file says is kept by the file's digest, so that the same file is read once over all commits.
"""

from __future__ import annotations

import contextlib
import gc
import graphlib
import json
import os
import posixpath
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pipeline.digests import digest_of
from pipeline.locator.documents import DocumentSection, read_document
from pipeline.locator.facts import FileFacts, Import, analyse
from pipeline.locator.inventory import ListedFile, list_files, read_text, some_of
from pipeline.locator.lexical import Bag, Lexicon, Vocabulary
from pipeline.locator.links import Links, find_links
from pipeline.locator.priors import static_signals
from pipeline.locator.shell import Invocation
from pipeline.locator.spreading import Edges, lay_edges
from pipeline.locator.text import tokens
from pipeline.repository import Snapshot
from pipeline.schema import Problem, Severity

__all__ = ["RepositoryIndex", "build_index"]

Vector = npt.NDArray[np.float64]
# Raise when `FileFacts` or what fills it changes: older cache entries are then not read.
_FACTS_VERSION = 8
_MAIN_PACKAGE = 0.25
"""Share of the files from which a package is the project itself rather than one part of it."""
_DATA_CONFIG = {"json", "toml", "cfg", "ini"}


@dataclass(slots=True)
class RepositoryIndex:
    """A snapshot, read. `facts` are the files that can be ranked, sorted by path; vectors are in the same order."""

    snapshot: Snapshot
    facts: list[FileFacts]
    position: dict[str, int]
    links: Links
    vocabulary: Vocabulary
    bags: list[Bag]
    """The words of each file, those of its path included."""
    content: Lexicon
    paths: Lexicon
    chunks: Lexicon
    owners: npt.NDArray[np.int64]
    """File of each chunk."""
    sections: Lexicon
    static: dict[str, Vector]
    edges: Edges
    own_names: frozenset[str]
    """Words of the project's own name (its main package): every path and every task has them."""
    problems: tuple[Problem, ...]

    @property
    def size(self) -> int:
        """Number of files that can be ranked."""
        return len(self.facts)

    def speaks(self, number: int) -> set[int]:
        """The numbers (of `vocabulary`) of the words of a file and its path."""
        return set(self.bags[number].words.tolist())


def build_index(snapshot: Snapshot, *, cache: Path | None = None) -> RepositoryIndex:
    """Read a snapshot for `locate`.

    Args:
        snapshot: the repository at one commit.
        cache: a directory for what each file says; created when missing, safe to delete.

    Returns:
        The index. Files that could not be read or parsed are in its `problems`.
    """
    listed, problems = list_files(snapshot)
    read: list[FileFacts] = []
    documents: list[DocumentSection] = []
    vocabulary = Vocabulary()
    bags: dict[str, tuple[Bag, list[Bag]]] = {}
    with _no_search_for_cycles():
        for file in listed:
            if file.kind == "document":
                text, found = read_text(snapshot, file)
                documents += read_document(file.path, text)
            else:
                facts, found = _facts(snapshot, file, cache)
                read.append(_counted(facts, vocabulary, bags))
            problems += found
    links = find_links(read, documents)
    used = _configurations(links)
    kept = [facts for facts in read if _can_matter(facts, used, bags)]
    problems += [*(_unparsed(facts) for facts in kept if facts.error), *_generated(kept), *_cycle(kept, links)]
    chunks = [(number, bag) for number, facts in enumerate(kept) for bag in bags[facts.path][1]]

    static = static_signals(kept, links)
    whole = [bags[facts.path][0] for facts in kept]
    return RepositoryIndex(
        snapshot=snapshot,
        facts=kept,
        position={facts.path: number for number, facts in enumerate(kept)},
        links=links,
        vocabulary=vocabulary,
        bags=whole,
        content=Lexicon(whole, vocabulary),
        paths=Lexicon.of([facts.path for facts in kept], vocabulary, b=0.5),
        chunks=Lexicon([bag for _, bag in chunks], vocabulary),
        owners=np.asarray([number for number, _ in chunks], dtype=np.int64),
        sections=Lexicon.of([f"{section.title} {section.text}" for section, _, _ in links.sections], vocabulary),
        static=static,
        edges=lay_edges(kept, links, static),
        own_names=_own_names(snapshot, kept),
        problems=tuple(problems),
    )


@contextlib.contextmanager
def _no_search_for_cycles() -> Iterator[None]:
    """Syntax trees are many objects without cycles: looking for some is a fifth of the time to read a repository."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _counted(facts: FileFacts, vocabulary: Vocabulary, bags: dict[str, tuple[Bag, list[Bag]]]) -> FileFacts:
    """Move the words of a file into bags: as text, those of 10,000 files are a gigabyte."""
    words = Counter(facts.words)
    words.update(tokens(facts.path))
    bags[facts.path] = (vocabulary.bag(words), [vocabulary.bag(chunk) for chunk in facts.chunks])
    facts.words, facts.chunks = {}, []
    return facts


def _own_names(snapshot: Snapshot, kept: list[FileFacts]) -> frozenset[str]:
    """Words in the names of packages (directories with `__init__.py` in one without) that hold much of the code."""
    packages = {posixpath.dirname(file.path) for file in snapshot.files if file.path.endswith("/__init__.py")}
    found: set[str] = set()
    for package in packages:
        if posixpath.dirname(package) not in packages:
            inside = sum(facts.path.startswith(f"{package}/") for facts in kept)
            if inside >= _MAIN_PACKAGE * len(kept):
                found.update(tokens(posixpath.basename(package)))
    return frozenset(found)


def _configurations(links: Links) -> set[str]:
    used: set[str] = set()
    for targets in (*links.configs.values(), *links.commanded.values()):
        used |= targets
    for _, named, run in links.sections:
        used |= named | run
    return used


def _can_matter(facts: FileFacts, used: set[str], bags: dict[str, tuple[Bag, list[Bag]]]) -> bool:
    """JSON and the like count only where code, shell or a document names them: most of them are data."""
    if facts.file.kind == "document" or (not bags[facts.path][1] and facts.path.endswith("__init__.py")):
        return False
    suffix = posixpath.splitext(facts.path)[1].lstrip(".").lower()
    if facts.file.kind == "config":
        return not facts.file.tooling and (suffix not in _DATA_CONFIG or facts.path in used)
    return True


def _unparsed(facts: FileFacts) -> Problem:
    what = "no notebook that can be read" if facts.path.endswith(".ipynb") else "not valid Python 3"
    return _problem(facts.path, f"{what} ({facts.error}): ranked by its text only", Severity.WARNING)


def _generated(kept: list[FileFacts]) -> list[Problem]:
    found = [facts.path for facts in kept if facts.generated]
    message = f"{some_of(found)}: written by a program, by their header or the length of their lines: they rank low"
    return [_problem(found[0], message, Severity.INFO)] if found else []


def _cycle(kept: list[FileFacts], links: Links) -> list[Problem]:
    """One circle of imports, where there is one: Python resolves some of them, and others fail when they are run."""
    try:
        graphlib.TopologicalSorter({facts.path: sorted(links.imports.get(facts.path, ())) for facts in kept}).prepare()
    except graphlib.CycleError as error:
        circle = error.args[1]
        return [_problem(circle[0], f"imports lead in a circle: {some_of(circle[:-1])}", Severity.INFO)]
    return []


def _problem(where: str, message: str, severity: Severity) -> Problem:
    return Problem(component="locator.index", where=where, message=message, severity=severity)


def _facts(snapshot: Snapshot, file: ListedFile, cache: Path | None) -> tuple[FileFacts, list[Problem]]:
    stored = _entry(cache, file) if cache else None
    if stored is not None:
        known = _load(stored, file)
        if known is not None:
            return known, []
    text, problems = read_text(snapshot, file)
    facts = analyse(file, text)
    if stored is not None and not problems:
        _store(stored, facts)
    return facts, problems


def _entry(cache: Path, file: ListedFile) -> Path:
    key = digest_of([_FACTS_VERSION, file.path, file.sha256])
    return cache / key[:2] / f"{key}.json"


def _store(path: Path, facts: FileFacts) -> None:
    """Write atomically; two processes may write the same entry."""
    # shallow: copying every word of a file one by one costs as much as reading the file did
    values = {item.name: getattr(facts, item.name) for item in fields(facts) if item.name != "file"}
    values["imports"] = [asdict(item) for item in facts.imports]
    values["commands"] = [asdict(item) for item in facts.commands]
    values["targets"] = {name: [asdict(item) for item in items] for name, items in facts.targets.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        stream.write(json.dumps(values, separators=(",", ":")))
    Path(name).replace(path)


def _load(path: Path, file: ListedFile) -> FileFacts | None:
    """A stored entry; None when there is none or it is damaged (it is then written anew)."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        if not all(isinstance(words, dict) for words in (values["words"], *values["chunks"])):
            return None
        values["imports"] = tuple(
            Import(item["level"], item["module"], tuple(item["names"])) for item in values["imports"]
        )
        values["commands"] = tuple(_invocation(item) for item in values["commands"])
        values["targets"] = {name: tuple(map(_invocation, items)) for name, items in values["targets"].items()}
        for name in ("definitions", "references", "patterns", "hydra", "groups", "defaults", "labels"):
            values[name] = tuple(values[name])
        return FileFacts(file=file, **values)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _invocation(item: dict[str, object]) -> Invocation:
    values = dict(item)
    values["argv"] = tuple(item["argv"])  # type: ignore[arg-type]
    values["environment"] = tuple(tuple(pair) for pair in item["environment"])  # type: ignore[attr-defined]
    return Invocation(**values)  # type: ignore[arg-type]
