"""What a task says about each file: one vector a signal; and, once files have a first score, what tells the best apart.

What links add to a first score is in `spreading`.
"""

from __future__ import annotations

import math
import posixpath
import re
from collections import Counter

import numpy as np
import numpy.typing as npt

from pipeline.locator.index import RepositoryIndex
from pipeline.locator.lexical import best_by_owner, scaled, scores_among
from pipeline.locator.query import QueryWords
from pipeline.locator.spreading import link_signals
from pipeline.locator.text import GENERIC, compact, labels, stem, tokens

__all__ = ["later_signals", "query_signals"]

Vector = npt.NDArray[np.float64]
_PLAIN = re.compile(r"[A-Za-z0-9]+")
_ROUTE = re.compile(r"\w[\w\-]*(?:/[\w\-]+)+")
_NAMED = 1.25
"""Words of a path, as rare as can be, that make a full match: one common word in a name is little evidence. Where words
that the task repeats count more than once, it takes twice as many."""
_CANDIDATES = 20
"""Files that a question's words are compared over: twice as many as a reader looks at."""
_SHORTENED = 0.5
"""What a name's part counts that begins a word of the task (`diff-sorp`, diffusion-sorption): names are shortened to
their beginnings, but not every beginning is one. Counted in full, hit@1 of the published tasks fell by .05."""
_BEGINNING = 4
"""Letters from which a beginning tells anything."""
_RARE = 8.0
"""Weight of two rare words of a name: a name with two that the task does not say is another variant's."""


def query_signals(index: RepositoryIndex, words: QueryWords, *, documents: bool = True) -> dict[str, Vector]:
    """The vectors of all signals that compare files with the task.

    Args:
        index: the repository.
        words: the task.
        documents: whether README and documentation count (EXP-Bench's own harness removes the README).
    """
    own = index.own_names
    said = {word: weight for word, weight in words.stressed.items() if word not in own}
    asked = [word for word in words.question if word not in own]
    floor = _NAMED * index.paths.rarest
    chunk_scores = index.chunks.scores(words.all)
    return {
        "content": scaled(index.content.scores(words.stressed)),
        "question": scaled(index.content.scores(words.question)),
        "path": scaled(index.paths.scores(said), 2 * floor),
        "path_question": scaled(index.paths.scores(asked), floor),
        "chunk": scaled(best_by_owner(chunk_scores, index.owners, index.size)),
        "section": _sections(index, words) if documents else np.zeros(index.size),
        "label": _labels(index, words, documents),
        "named": _named(index, words),
        "directory": _directories(index, words),
        "explains": (1.0 - index.static["runnable"]) * float(words.how_to),
        **_names(index, words),
    }


def later_signals(
    index: RepositoryIndex, words: QueryWords, first: Vector, *, documents: bool = True
) -> dict[str, Vector]:
    """The vectors of all signals that need a first score: those along links, and what tells the best files apart.

    Args:
        index: the repository.
        words: the task.
        first: a first score of every file.
        documents: whether README and documentation count.
    """
    return {**link_signals(index.edges, first, documents=documents), "telling": _telling(index, words, first)}


def _telling(index: RepositoryIndex, words: QueryWords, first: Vector) -> Vector:
    """How well the best files match the question by the words that not all of them have."""
    best = np.argsort(-first, kind="stable")[:_CANDIDATES]
    found = np.zeros(index.size)
    found[best] = scaled(scores_among([index.bags[n] for n in best], index.vocabulary.weighed(words.question)))
    return found


def _sections(index: RepositoryIndex, words: QueryWords) -> Vector:
    """The best section of a document that names or runs the file; one that names many says little of each."""
    found = np.zeros(index.size)
    scores = scaled(index.sections.scores(words.all))
    for (_, named, run), behind, score in zip(index.links.sections, index.links.behind, scores, strict=True):
        members = [index.position[path] for path in named if path in index.position]
        for path in sorted(named | behind):
            number = index.position.get(path)
            if number is not None:
                value = score / (1 + math.log(max(len(members), 1))) * (1.0 if path in run else 0.7)
                found[number] = max(found[number], value)
    return scaled(found)


def _labels(index: RepositoryIndex, words: QueryWords, documents: bool) -> Vector:
    """The file, or the line of a document that names it, speaks of the table or figure that the task comes from."""
    found = np.zeros(index.size)
    for label in sorted(words.labels):
        members = {number for number, facts in enumerate(index.facts) if label in facts.labels}
        if documents:
            for text, named in index.links.mentions:
                if label in labels(text):
                    members |= {index.position[path] for path in named if path in index.position}
        for number in members:
            found[number] = max(found[number], min(1.0, 4.0 / len(members)))
    return found


def _named(index: RepositoryIndex, words: QueryWords) -> Vector:
    """The task writes the file's name, or the end of its path without the ending (`vmas/balance`)."""
    routes = {found.lower() for found in _ROUTE.findall(words.lower)}
    found = np.zeros(index.size)
    for number, facts in enumerate(index.facts):
        path = facts.path.lower()
        whole = f"/{posixpath.splitext(path)[0]}"
        if posixpath.basename(path) in words.lower or any(whole.endswith(f"/{route}") for route in routes):
            found[number] = 1.0
    return found


def _directories(index: RepositoryIndex, words: QueryWords) -> Vector:
    """The task names a directory that only part of the repository lies in."""
    parts = [{part.lower() for part in facts.path.split("/")[:-1]} for facts in index.facts]
    counts = Counter(part for listed in parts for part in listed)
    total = max(index.size, 2)
    weight = {
        part: math.log(total / count) / math.log(total)
        for part, count in counts.items()
        if len(part) > 2
        and part not in GENERIC
        and part not in index.own_names
        and count <= 0.6 * total
        and (part in words.names or compact(part) in words.names)
    }
    return scaled(np.asarray([max((weight.get(part, 0.0) for part in listed), default=0.0) for listed in parts]))


def _names(index: RepositoryIndex, words: QueryWords) -> dict[str, Vector]:
    """How much of a file's name and path the task says, and how much of it the task does not say.

    Parts are weighted by their rarity among the paths; generic ones (`train`, `model`, `utils`) do not count.
    """
    said = set(words.all) | words.names
    stems, unsaid, route = np.zeros(index.size), np.zeros(index.size), np.zeros(index.size)
    for number, facts in enumerate(index.facts):
        folder, base = posixpath.split(facts.path)
        name = posixpath.splitext(base)[0]
        if name == "__init__":
            folder, name = posixpath.split(folder)
        own, total = _said(index, name, said)
        whole = compact(name) in words.names and len(compact(name)) > 3 and name.lower() not in GENERIC
        if total:
            stems[number] = 1.0 if whole else own / total
            unsaid[number] = 0.0 if whole else min(1.0, (total - own) / _RARE)
        above, all_above = _said(index, folder, said)
        if total + all_above:
            route[number] = (own + above) / (total + all_above)
    return {"stem": stems, "unsaid": unsaid, "route": route}


def _said(index: RepositoryIndex, name: str, said: set[str]) -> tuple[float, float]:
    """(weight of the parts of a name that the task says, weight of all parts)."""
    spelled = " ".join(_PLAIN.findall(name))  # not the whole of `ippo_mpe` beside its parts: no task writes that
    parts = {
        part for part in tokens(spelled) if part not in GENERIC and part not in index.own_names and not part.isdigit()
    }
    weights = {part: index.paths.idf(part) for part in parts}
    own = sum(weight * _meant(part, said) for part, weight in weights.items())
    return own, sum(weights.values())


def _meant(part: str, said: set[str]) -> float:
    """How surely the task means a part of a name: 1 where it says it, `_SHORTENED` where it says a longer word."""
    if part in said or stem(part) in said:
        return 1.0
    shortened = len(part) >= _BEGINNING and any(word.startswith(part) for word in said)
    return _SHORTENED if shortened else 0.0
