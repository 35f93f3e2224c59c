"""Exports as people have them: the published rows, tables, BibTeX. What is not known stays unknown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.sources import exports
from pipeline.sources.candidate import Candidate, repository_url, same_title, urls_of_code
from pipeline.sources.exports import read_export, short_venue
from pipeline.sources.needs import read_needs

PUBLISHED = Path(__file__).parents[4] / "shared" / "data" / "exp-bench"


def export(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_published_row_is_read(tmp_path: Path) -> None:
    row = {
        "id": "98326", "url": "https://nips.cc/virtual/2024/poster/98326", "title": "TorchThing",
        "authors": [], "abstract": "Abstract: ...", "pdf_url": "https://openreview.net/pdf?id=Ab-1_c", "code_url": "",
        "keywords": [], "reproduce_eval": {"code": "https://github.com/lab/torchthing"},
        "reproduce_difficulty": {
            "environment_setup": "Medium", "time_requirements": "1-2 hours", "difficulty": 3, "stars": 570,
            "resource_requirements": {"GPUs": {"type": "NVIDIA", "amount": 2}, "memory": "At least 8GB RAM"},
        },
    }  # fmt: skip
    path = export(tmp_path / "neurips2024" / "conference_data.jsonl", json.dumps(row) + "\nnot json\n[1]\n{}\n")
    (found,), problems = read_export(path)
    assert (found.id, found.venue, found.year) == ("neurips2024-98326", "NeurIPS", 2024)
    assert (found.repository, found.stars, found.openreview) == ("https://github.com/lab/torchthing", 570, "Ab-1_c")
    assert (found.needs.gpus, found.needs.memory_gb, found.needs.hours, found.needs.difficulty) == (2, 8.0, 2.0, 3)
    assert (found.citations, found.forks, found.license) == (None, None, None)
    assert found.origins["stars"] == "conference_data.jsonl line 1"
    assert [problem.where.rpartition(" ")[2] for problem in problems] == ["2", "3", "4"]


def test_code_that_only_the_abstract_names_is_found(tmp_path: Path) -> None:
    row = {"title": "T", "abstract": "Ours wins. Code: https://github.com/a/b.git. See https://github.com/topics/ml."}
    (found,), _ = read_export(export(tmp_path / "x.jsonl", json.dumps(row)))
    assert found.repository == "https://github.com/a/b"


def test_a_table_is_read_by_its_first_line(tmp_path: Path) -> None:
    text = (
        "Paper Title,Conference,Year,GitHub,Stars,Cit,pdf,Abstract\r\n"
        '"Fast, faster",ICML 2023,2023,lab/fast,"1,024",7,f.pdf,"Two\r\nlines"\r\n,x\r\n'
    )
    (found,), problems = read_export(export(tmp_path / "papers.csv", text))
    assert found.title == "Fast, faster"
    assert (found.venue, found.year, found.repository) == ("ICML", 2023, "https://github.com/lab/fast")
    assert (found.stars, found.citations, found.pdf, found.abstract) == (1024, 7, "f.pdf", "Two lines")
    assert len(problems) == 1


def test_bibtex_is_read_and_a_broken_entry_does_not_take_the_others_along(tmp_path: Path) -> None:
    text = """@string{iclr = "International Conference on Learning Representations"}
@inproceedings{byron24, title = {Fast {W}eights for M\\"uller \\& Sons}, author = {Byron, Ada and {Al Khwarizmi}},
  booktitle = iclr, year = 2024, url = {https://openreview.net/forum?id=aB3}, eprint = {2402.00001}}
@inproceedings{broken, title = {No end, year = 2024
@article{two, title={Second}, journal={Journal of Machine Learning Research}, year={2023}, doi={10.1234/jmlr.1}}
"""
    found, problems = read_export(export(tmp_path / "p.bib", text))
    assert [(paper.title, paper.venue, paper.year) for paper in found] == [
        ("Fast Weights for Muller & Sons", "ICLR", 2024),
        ("Second", "JMLR", 2023),
    ]
    assert found[0].authors == ("Ada Byron", "Al Khwarizmi")
    assert (found[0].openreview, found[0].arxiv, found[1].doi) == ("aB3", "2402.00001", "10.1234/jmlr.1")
    assert [problem.where for problem in problems] == ["p.bib line 4"]


def test_answers_of_the_services_are_exports_too(tmp_path: Path) -> None:
    from tests.pipeline.sources.api_server import OPENALEX_LIST, OPENREVIEW_NOTES, S2_MATCH

    notes, _ = read_export(export(tmp_path / "notes.json", json.dumps(OPENREVIEW_NOTES)))
    assert notes[0].repository == "https://github.com/lab/fast-weights"
    assert notes[0].keywords == ("fast weights", "meta-learning")
    works, _ = read_export(export(tmp_path / "works.json", json.dumps(OPENALEX_LIST)))
    assert {work.citations for work in works} == {900, 61, 12}
    papers, _ = read_export(export(tmp_path / "s2.json", json.dumps(S2_MATCH)))
    assert (papers[0].citations, papers[0].venue) == (58, "ICLR")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("p.jsonl", "\n"),
        ("p.jsonl", '{"x": 1}\n'),
        ("p.xlsx", "PK"),
        ("p.bib", "nothing"),
        ("p.json", "3"),
        ("p.json", "{"),
    ],
)
def test_a_file_without_papers_is_refused(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(ExpbenchError) as caught:
        read_export(export(tmp_path / name, text))
    assert caught.value.kind is FailureKind.RECORD_INVALID
    with pytest.raises(ExpbenchError):
        read_export(tmp_path / "missing.csv")


@pytest.mark.parametrize(
    ("value", "gpus", "kind", "memory", "api", "hours"),
    [
        ({"resource_requirements": {"GPUs": "1", "memory": "At least 16GB RAM", "API_call": "OpenAI API key required"},
          "time_requirements": "5"}, 1, None, 16.0, True, 5.0),
        ({"resource_requirements": {"GPUs": "None", "memory": "Standard", "API_calls": "None"}, "time_requirements": 2},
         0, None, None, False, 2.0),
        ({"resource_requirements": {"GPUs": {"type": "NVIDIA A100", "amount": 4}, "API_calls": "N/A"}},
         4, "A100", None, False, None),
        ({"resource_requirements": {"GPUs": "1x NVIDIA GPU (e.g., GTX 1080 or better)", "API_call": "Not mentioned"}},
         1, "GTX 1080", None, None, None),
        ({"resource_requirements": "1 GPU (NVIDIA recommended), 16 GB RAM", "time_requirements": "30 minutes"},
         1, None, 16.0, None, 0.5),
        ({"resource_requirements": "GPUs not specified, but likely. Memory unspecified.", "time_requirements": "3 days"},
         None, None, None, None, 72.0),
        ({"resource_requirements": "GPUs with CUDA support (exact types not specified)"}, 1, None, None, None, None),
        ({"resource_requirements": None, "time_requirements": "depends"}, None, None, None, None, None),
        ("4 x A40 48 GB", 4, "A40", 48.0, None, None),
        (None, None, None, None, None, None),
    ],
)  # fmt: skip
def test_needs_are_read_from_words(
    value: Any, gpus: int | None, kind: str | None, memory: float | None, api: bool | None, hours: float | None
) -> None:
    needs = read_needs(value)
    assert (needs.gpus, needs.gpu_type, needs.memory_gb, needs.api_calls, needs.hours) == (
        gpus,
        kind,
        memory,
        api,
        hours,
    )


@pytest.mark.parametrize(
    ("text", "short"),
    [("NIPS", "NeurIPS"), ("Advances in Neural Information Processing Systems 36", "NeurIPS"), ("ICLR2024", "ICLR"),
     ("ICML 2023 oral", "ICML"), ("Some Workshop", "Some Workshop"), ("neurips", "NeurIPS")],
)  # fmt: skip
def test_venues_have_short_names(text: str, short: str) -> None:
    assert short_venue(text) == short


def test_repositories_are_recognised_in_text() -> None:
    assert urls_of_code("(https://github.com/A/b.c/tree/main#x) and http://www.github.com/d/e.") == (
        "https://github.com/A/b.c",
        "https://github.com/d/e",
    )
    assert repository_url("https://code.example.org/x/y), see") == "https://code.example.org/x/y"
    assert repository_url("on request") is None
    assert same_title("Ünïque: a  Study") == same_title("unique - A study")


def _has_title(row: dict[str, Any]) -> bool:
    try:
        return bool(exports._candidate(row, Path("any.jsonl"), "here").title)
    except ValueError:
        return False


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
names = st.sampled_from(
    ["id", "title", "venue", "year", "stars", "citations", "authors", "abstract", "code_url", "reproduce_difficulty",
     "content", "pdf", "keywords", "doi", "archived", "pushed_at", "other"]
)  # fmt: skip


@settings(max_examples=120, deadline=None)
@given(rows=st.lists(st.dictionaries(names, values, max_size=6), min_size=1, max_size=3))
def test_whatever_a_row_holds_it_is_a_paper_or_a_problem(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    papers = [row for row in rows if _has_title(row)]
    if not papers:
        with pytest.raises(ExpbenchError):
            read_export(path)
        return
    found, problems = read_export(path)
    assert len(found) + len(problems) == len(rows)
    assert all(Candidate.model_validate(paper.model_dump()) == paper for paper in found)


@settings(deadline=None)
@given(values)
def test_needs_never_fail_and_are_never_negative(value: Any) -> None:
    for needs in (read_needs(value), read_needs({"resource_requirements": value, "time_requirements": value})):
        assert needs.gpus is None or needs.gpus >= 0
        assert needs.hours is None or needs.hours >= 0


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the published data is not on this machine")
@pytest.mark.parametrize(("conference", "papers"), [("iclr2024", 9), ("neurips2024", 7)])
def test_the_published_rows_are_read_as_they_are(conference: str, papers: int) -> None:
    found, problems = read_export(PUBLISHED / conference / "conference_data.jsonl")
    assert len(found) == papers
    assert problems == []
    assert all(paper.repository and paper.stars and paper.needs.gpus is not None for paper in found)
    assert {paper.id.partition("-")[2] for paper in found} == {
        path.name for path in (PUBLISHED / conference).iterdir() if path.is_dir()
    }
