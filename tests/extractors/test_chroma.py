"""The dense index on disk: what it finds, that it survives, and that no network is asked."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path

import pytest

from extractors.chroma import LOCAL_EMBEDDING, ChromaIndex, Embedding, hashed_vectors
from extractors.index import FusedIndex, LexicalIndex, units_of
from pipeline.errors import ExpbenchError
from tests.extractors.engine.papers import paper

UNITS = units_of(paper())


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chroma's default embedding downloads a model: nothing here may open a connection."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the index opened a network connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)


def test_a_unit_is_found_by_another_form_of_its_words_and_cites_its_boxes(tmp_path: Path) -> None:
    index = ChromaIndex(UNITS, tmp_path)
    best = index.search("randomly seeded, repeatedly", 3)[0].unit
    assert best.id == "p2"
    assert LexicalIndex(UNITS).search("randomly seeded, repeatedly", 3) == []
    assert index.citation("p2") == best.boxes
    with pytest.raises(KeyError):
        index.citation("p99")
    assert index.search("  ", 3) == []
    index.close()


def test_the_index_stays_on_disk_and_vectors_are_made_once(tmp_path: Path) -> None:
    asked: list[int] = []

    def counting(texts: Sequence[str]) -> list[list[float]]:
        asked.append(len(texts))
        return hashed_vectors(texts)

    embedding = Embedding("counting", counting)
    first = ChromaIndex(UNITS, tmp_path, embedding)
    hits = first.search("kernel bandwidth", 4)
    first.close()
    again = ChromaIndex(UNITS, tmp_path, embedding)
    assert again.search("kernel bandwidth", 4) == hits
    assert asked == [len(UNITS), 1, 1]
    assert again.path == first.path
    again.close()
    other = ChromaIndex(UNITS[:3], tmp_path, embedding)
    assert other.path != first.path
    assert {hit.unit.id for hit in other.search("accuracy of the method", 9)} <= {unit.id for unit in UNITS[:3]}
    other.close()


def test_fused_with_the_lexical_index_it_is_deterministic(tmp_path: Path) -> None:
    dense = ChromaIndex(UNITS, tmp_path)
    fused = FusedIndex((LexicalIndex(UNITS), dense))
    hits = fused.search("repeated with random seeds", 5)
    assert hits[0].unit.id == "p2"
    assert hits == fused.search("repeated with random seeds", 5)
    dense.close()


def test_a_damaged_index_says_what_to_do(tmp_path: Path) -> None:
    index = ChromaIndex(UNITS, tmp_path)
    index.close()
    (index.path / "chroma.sqlite3").write_bytes(b"not a database" * 500)
    with pytest.raises(ExpbenchError, match="Delete"):
        ChromaIndex(UNITS, tmp_path)


def test_no_units_no_hits(tmp_path: Path) -> None:
    assert ChromaIndex((), tmp_path).search("anything", 3) == []


def test_hashed_vectors_have_length_one_and_do_not_depend_on_the_run() -> None:
    one, other, none = hashed_vectors(["Huber loss at 0.1", "huber losses at 0.1", "…"])
    for vector in (one, other, none):
        assert sum(x * x for x in vector) == pytest.approx(1)
    assert sum(a * b for a, b in zip(one, other, strict=True)) > 0.7
    assert LOCAL_EMBEDDING.name.startswith("hashed-")
