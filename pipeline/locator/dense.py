"""Likeness of meaning between a task and the best files, by the vectors of an embedding model; only where one is given.

Off unless a model is configured: with an offline model (MiniLM-L6) the metrics of published tasks moved within chance
(see `docs/locator.md`), so nothing is downloaded or asked for by default. Only the best files are compared: likeness of
meaning says what is about the field, not what is the experiment. Non-goal: an index that is kept; the client that makes
the vectors caches each of them.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from pipeline.locator.facts import FileFacts

__all__ = ["Embed", "describe", "likeness"]

Vector = npt.NDArray[np.float64]
Embed = Callable[[Sequence[str]], Sequence[Sequence[float]]]
"""Texts to vectors of one length, in order."""
_DEFINITIONS: Final = 25
_LETTERS: Final = 500
_ASKED: Final = 4000
"""Letters of a task that are embedded: about 1,000 of the 8,000 tokens that embedding models take."""


def describe(facts: FileFacts) -> str:
    """What is embedded of a file: its path, its summary and the names of its definitions, as words."""
    path = posixpath.splitext(facts.path)[0]
    names = " ".join(facts.definitions[:_DEFINITIONS])
    return f"{_spaced(path)}. {facts.summary}. {_spaced(names)}"[:_LETTERS]


def likeness(embed: Embed, query: str, files: Sequence[FileFacts]) -> Vector:
    """Cosine of each file with the task, less the mean of all: 0 says nothing for or against a file.

    Args:
        embed: makes the vectors.
        query: the task in words.
        files: the files to compare.

    Raises:
        ExpbenchError: whatever `embed` raises.
    """
    if not files:
        return np.zeros(0)
    vectors = np.asarray(embed([query[:_ASKED], *(describe(facts) for facts in files)]), dtype=np.float64)
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    normed = vectors / np.where(length == 0, 1.0, length)
    cosine: Vector = normed[1:] @ normed[0]
    return np.asarray(cosine - cosine.mean())


def _spaced(text: str) -> str:
    return re.sub(r"[/_\-]+", " ", text)
