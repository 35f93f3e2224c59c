"""The index of one snapshot: everything that does not depend on the task, computed once.

With `cache`, what each file says is kept by the file's digest, so that the same file is read once over all commits.
"""

from __future__ import annotations

import json
import os
import posixpath
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pipeline.digests import digest_of
from pipeline.locator.documents import DocumentSection, read_document
from pipeline.locator.facts import FileFacts, Import, analyse
from pipeline.locator.inventory import ListedFile, list_files, read_text
from pipeline.locator.lexical import Lexicon
from pipeline.locator.links import Links, find_links
from pipeline.locator.priors import static_signals
from pipeline.locator.shell import Invocation
from pipeline.locator.text import tokens
from pipeline.repository import Snapshot
from pipeline.schema import Problem, Severity

__all__ = ["RepositoryIndex", "build_index"]

Vector = npt.NDArray[np.float64]
# Raise when `FileFacts` or what fills it changes: older cache entries are then not read.
_FACTS_VERSION = 2
_BUNDLED = 6
"""Configurations and mentions with more files than this say little of each."""
_DATA_CONFIG = {"json", "toml", "cfg", "ini"}


@dataclass(slots=True)
class RepositoryIndex:
    """A snapshot, read. `facts` are the files that can be ranked, sorted by path; vectors are in the same order."""

    snapshot: Snapshot
    facts: list[FileFacts]
    position: dict[str, int]
    links: Links
    content: Lexicon
    bundles: Lexicon
    """Each file with its configurations, the wrappers that run it and what documents say of it."""
    paths: Lexicon
    prose: Lexicon
    chunks: Lexicon
    owners: npt.NDArray[np.int64]
    """File of each chunk."""
    sections: Lexicon
    mentions: Lexicon
    static: dict[str, Vector]
    defined: dict[str, list[int]]
    """Name of a function or class, lower case -> the files that define it."""
    problems: tuple[Problem, ...]

    @property
    def size(self) -> int:
        """Number of files that can be ranked."""
        return len(self.facts)


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
    for file in listed:
        if file.kind == "document":
            text, found = read_text(snapshot, file)
            documents += read_document(file.path, text)
        else:
            facts, found = _facts(snapshot, file, cache)
            read.append(facts)
        problems += found
    links = find_links(read, documents)
    used = _configurations(links)
    kept = [facts for facts in read if _can_matter(facts, used)]
    problems += [_unparsed(facts) for facts in kept if facts.error]
    chunk_lists, owners = [], []
    for number, facts in enumerate(kept):
        for chunk in facts.chunks:
            chunk_lists.append(chunk)
            owners.append(number)
    path_words = [tokens(facts.path) for facts in kept]
    defined: dict[str, list[int]] = {}
    for number, facts in enumerate(kept):
        for name in sorted({name.lower() for name in facts.definitions}):
            defined.setdefault(name, []).append(number)
    return RepositoryIndex(
        snapshot=snapshot,
        facts=kept,
        position={facts.path: number for number, facts in enumerate(kept)},
        links=links,
        content=Lexicon([facts.words + words for facts, words in zip(kept, path_words, strict=True)]),
        bundles=Lexicon(_bundles(kept, links, path_words)),
        paths=Lexicon(path_words, b=0.5),
        prose=Lexicon([facts.prose + words for facts, words in zip(kept, path_words, strict=True)]),
        chunks=Lexicon(chunk_lists),
        owners=np.asarray(owners, dtype=np.int64),
        sections=Lexicon([tokens(f"{section.title} {section.text}") for section, _, _ in links.sections]),
        mentions=Lexicon([tokens(text) for text, _ in links.mentions]),
        static=static_signals(kept, links),
        defined=defined,
        problems=tuple(problems),
    )


def _configurations(links: Links) -> set[str]:
    used: set[str] = set()
    for targets in (*links.configs.values(), *links.commanded.values()):
        used |= targets
    for _, named, run in links.sections:
        used |= named | run
    return used


def _bundles(kept: list[FileFacts], links: Links, path_words: list[list[str]]) -> list[list[str]]:
    """What belongs to running a file: an entry point is short where its configuration and wrapper say what it does."""
    words = {facts.path: facts.words for facts in kept}
    bundles = {facts.path: facts.words + name for facts, name in zip(kept, path_words, strict=True)}
    for facts in kept:
        for path in sorted(links.configs.get(facts.path, set()) | links.commanded.get(facts.path, set()))[:_BUNDLED]:
            bundles[facts.path] = bundles[facts.path] + words.get(path, []) + tokens(path)
        if facts.file.kind == "shell":
            for path in sorted(links.runs.get(facts.path, ())):
                if path in bundles:
                    bundles[path] = bundles[path] + words[facts.path] + tokens(facts.path)
    for text, named in links.mentions:
        if len(named) <= _BUNDLED:
            for path in sorted(named & bundles.keys()):
                bundles[path] = bundles[path] + tokens(text)
    return [bundles[facts.path] for facts in kept]


def _can_matter(facts: FileFacts, used: set[str]) -> bool:
    """JSON and the like count only where code, shell or a document names them: most of them are data."""
    if facts.file.kind == "document" or (not facts.words and facts.path.endswith("__init__.py")):
        return False
    suffix = posixpath.splitext(facts.path)[1].lstrip(".").lower()
    if facts.file.kind == "config":
        return not facts.file.tooling and (suffix not in _DATA_CONFIG or facts.path in used)
    return True


def _unparsed(facts: FileFacts) -> Problem:
    return Problem(
        component="locator.index",
        where=facts.path,
        message=f"not valid Python 3 ({facts.error}): ranked by its text only",
        severity=Severity.WARNING,
    )


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
    values = asdict(facts)
    del values["file"]
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        json.dump(values, stream, separators=(",", ":"))
    Path(name).replace(path)


def _load(path: Path, file: ListedFile) -> FileFacts | None:
    """A stored entry; None when there is none or it is damaged (it is then written anew)."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        values["imports"] = tuple(
            Import(item["level"], item["module"], tuple(item["names"])) for item in values["imports"]
        )
        values["commands"] = tuple(_invocation(item) for item in values["commands"])
        values["targets"] = {name: tuple(map(_invocation, items)) for name, items in values["targets"].items()}
        for name in ("definitions", "references", "hydra", "labels"):
            values[name] = tuple(values[name])
        return FileFacts(file=file, **values)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _invocation(item: dict[str, object]) -> Invocation:
    values = dict(item)
    values["argv"] = tuple(item["argv"])  # type: ignore[arg-type]
    values["environment"] = tuple(tuple(pair) for pair in item["environment"])  # type: ignore[attr-defined]
    return Invocation(**values)  # type: ignore[arg-type]
