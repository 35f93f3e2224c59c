"""Source lists: what is read, what is refused, and where relative paths begin."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.orchestration.source_list import read_sources
from pipeline.errors import ExpbenchError, FailureKind


def test_both_formats_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    jsonl, table = tmp_path / "list.jsonl", tmp_path / "list.csv"
    jsonl.write_text(
        json.dumps({"pdf": "a.pdf", "repository": "code", "stars": 7}) + "\n\n"
        + json.dumps({"pdf": "/b.pdf", "repository": "https://example.org/b.git", "commit": "abc"}) + "\n"
    )  # fmt: skip
    table.write_text("pdf,repository,commit,stars\na.pdf,code,,7\n/b.pdf,https://example.org/b.git,abc,\n")
    first, second = read_sources(jsonl)
    assert read_sources(table) == [first, second]
    assert first.pdf == tmp_path / "a.pdf"
    assert first.repository == str(tmp_path / "code")
    assert (second.repository, second.commit) == ("https://example.org/b.git", "abc")


def test_a_paper_that_is_listed_twice_is_curated_once(tmp_path: Path) -> None:
    path = tmp_path / "list.jsonl"
    path.write_text('{"pdf": "a.pdf", "repository": "https://example.org/a"}\n' * 2)
    assert len(read_sources(path)) == 1


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("l.jsonl", '{"pdf": "a.pdf", "repository": "x"}\nnonsense\n', "line 2 is not JSON"),
        ("l.jsonl", '["a.pdf", "x"]\n', "line 1 is not an object"),
        ("l.jsonl", '{"pdf": "a.pdf"}\n', "line 1: repository"),
        ("l.jsonl", '{"pdf": 7, "repository": "x"}\n', "line 1: pdf"),
        ("l.jsonl", "\n", "holds no source"),
        ("l.csv", "paper,code\na,b\n", "no columns `pdf` and `repository`"),
        ("l.csv", "pdf,repository\na.pdf,\n", "line 2: repository"),
        ("l.txt", "a.pdf b", "neither .jsonl nor .csv"),
        ("l.csv", "\udcff", "cannot be read"),
    ],
)
def test_what_is_no_source_is_named_with_its_line(tmp_path: Path, name: str, text: str, said: str) -> None:
    path = tmp_path / name
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ExpbenchError) as caught:
        read_sources(path)
    assert said in str(caught.value)
    assert caught.value.kind is FailureKind.USAGE
    with pytest.raises(ExpbenchError, match="cannot be read"):
        read_sources(tmp_path / "missing.csv")


@given(st.binary(max_size=200), st.sampled_from([".csv", ".jsonl"]))
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes, suffix: str) -> None:
    path = tmp_path_factory.mktemp("lists") / f"list{suffix}"
    path.write_bytes(data)
    try:
        sources = read_sources(path)
    except ExpbenchError:
        return
    assert sources
