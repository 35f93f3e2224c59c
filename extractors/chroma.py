"""The dense index of a paper in Chroma: embedded, persistent, without a server and without a network.

Chroma's own embedding function fetches a model at first use; vectors are always made here and handed to it. The local
default hashes words and their pieces into a fixed number of dimensions: deterministic, needs no model, and finds
`perturbations` by `perturbed` where BM25 does not. An embedding model of an OpenAI-compatible endpoint takes its place
by configuration. Non-goals: ranking words (see `extractors.index`), sharing one index among papers.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from extractors.index import Embed, Hit, Unit, tokens
from pipeline.digests import digest_of
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import replace_directory
from pipeline.paper import Box

__all__ = ["LOCAL_EMBEDDING", "ChromaIndex", "Embedding", "hashed_vectors"]

_DIMENSIONS: Final = 1024
_PIECE: Final = 4
"""Letters in a piece of a word: 3 mixes unrelated words, 5 misses short stems."""
_PIECES_WEIGHT: Final = 0.5
_COLLECTION: Final = "paper"
_BATCH: Final = 1000
_VERSION: Final = 1


class Embedding(NamedTuple):
    """Makes vectors; the name tells one embedding's index from another's."""

    name: str
    embed: Embed


def hashed_vectors(texts: Sequence[str]) -> list[list[float]]:
    """Unit vectors of texts by feature hashing (Weinberger et al., ICML 2009): words, and pieces of four letters.

    A feature counts with 1 + ln(occurrences) and a sign of its own, so that features that share a place cancel rather
    than add up.
    """
    return [_hashed(text) for text in texts]


def _hashed(text: str) -> list[float]:
    features: Counter[tuple[str, float]] = Counter()
    for word in tokens(text):
        features[f"w:{word}", 1.0] += 1
        marked = f"<{word}>"
        pieces = {marked[i : i + _PIECE] for i in range(max(1, len(marked) - _PIECE + 1))}
        if re.search(r"[a-z]{4}", word):
            for piece in pieces:
                features[f"p:{piece}", _PIECES_WEIGHT] += 1
    vector = np.zeros(_DIMENSIONS + 1)  # the last place: a text without any word
    for (feature, weight), count in sorted(features.items()):
        digest = int.from_bytes(hashlib.blake2b(feature.encode(), digest_size=8).digest(), "big")
        vector[(digest >> 1) % _DIMENSIONS] += (1 if digest & 1 else -1) * weight * (1 + math.log(count))
    length = float(np.linalg.norm(vector))
    if not length:
        vector[-1] = length = 1.0
    return [float(x) for x in vector / length]


LOCAL_EMBEDDING: Final = Embedding(f"hashed-{_DIMENSIONS}", hashed_vectors)
"""The default: no model, no network."""


class ChromaIndex:
    """Cosine similarity over the units of one paper, kept on disk.

    Args:
        units: what can be found.
        directory: where indexes lie; each has a folder of its own, named by units and embedding, so that a changed
            paper or embedding never meets old vectors. Safe to delete.
        embedding: makes the vectors; asked for the units only where the index is not there yet.

    Raises:
        ExpbenchError: the directory cannot be read or written.
    """

    def __init__(self, units: Sequence[Unit], directory: Path, embedding: Embedding = LOCAL_EMBEDDING) -> None:
        self.units: Sequence[Unit] = tuple(units)
        self._embedding = embedding
        described = [
            (unit.id, unit.title, unit.text, unit.page, [list(box) for box in unit.boxes]) for unit in self.units
        ]
        key = digest_of({"version": _VERSION, "embedding": embedding.name, "units": described})
        self.path = directory / key[:24]
        self._client: Any = None
        if self.units:
            self._open()

    def _open(self) -> None:
        import chromadb
        from chromadb.errors import ChromaError

        try:
            if not self.path.is_dir():
                with replace_directory(self.path) as fresh:
                    _build(fresh, self.units, self._embedding)
            self._client = chromadb.PersistentClient(path=str(self.path), settings=_settings())
            self._collection = self._client.get_collection(_COLLECTION, embedding_function=None)
            complete = self._collection.count() == len(self.units)
        except (ChromaError, OSError) as error:
            raise ExpbenchError(
                FailureKind.RECORD_INVALID, str(self.path), f"the index cannot be opened ({error})",
                consequence="The paper cannot be searched", next_step=f"Delete {self.path}; it is made again",
            ) from error  # fmt: skip
        if not complete:
            raise ExpbenchError(
                FailureKind.RECORD_INVALID, str(self.path), f"the index does not hold all {len(self.units)} units",
                consequence="The paper cannot be searched", next_step=f"Delete {self.path}; it is made again",
            )  # fmt: skip

    def search(self, query: str, limit: int) -> list[Hit]:
        """The units whose vectors point the query's way; ties in the order of the paper."""
        if self._client is None or not query.strip():
            return []
        (vector,) = self._embedding.embed([query])
        found = self._collection.query(
            query_embeddings=[list(vector)], n_results=min(len(self.units), limit + 5), include=["distances"]
        )
        scored = sorted(
            (-round(1 - float(distance), 6), int(name))
            for name, distance in zip(found["ids"][0], found["distances"][0], strict=True)
        )
        return [Hit(-score, self.units[place]) for score, place in scored[:limit] if score < 0]

    def citation(self, unit_id: str) -> tuple[tuple[int, Box], ...]:
        """(page, box) pairs of a unit as the index on disk holds them.

        Raises:
            KeyError: there is no such unit.
        """
        stored = self._collection.get(where={"unit": unit_id}, include=["metadatas"])["metadatas"]
        if not stored:
            raise KeyError(unit_id)
        return tuple((int(page), Box(*box)) for page, box in json.loads(stored[0]["boxes"]))

    def close(self) -> None:
        """Let go of the files."""
        if self._client is not None:
            self._client.close()
            self._client = None


def _settings() -> Any:
    from chromadb.config import Settings

    return Settings(anonymized_telemetry=False)


def _build(directory: Path, units: Sequence[Unit], embedding: Embedding) -> None:
    import chromadb

    vectors = embedding.embed([f"{unit.title}\n{unit.text}" for unit in units])
    client: Any = chromadb.PersistentClient(path=str(directory), settings=_settings())  # its types lack `close`
    try:
        collection = client.create_collection(
            _COLLECTION, embedding_function=None, configuration={"hnsw": {"space": "cosine", "ef_search": 200}}
        )
        for start in range(0, len(units), _BATCH):
            part = units[start : start + _BATCH]
            collection.add(
                ids=[str(number) for number in range(start, start + len(part))],
                embeddings=[list(vector) for vector in vectors[start : start + _BATCH]],
                documents=[unit.text for unit in part],
                metadatas=[
                    {"unit": unit.id, "title": unit.title, "page": unit.page, "boxes": json.dumps(unit.boxes)}
                    for unit in part
                ],
            )
    finally:
        client.close()
