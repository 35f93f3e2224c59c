"""The reviewer's page: complete, and nothing that a paper or repository says is rendered."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.review.page import escaped, fenced, review_page
from pipeline.schema import Problem
from pipeline.task import SourceScript
from tests.flows.review.support import candidate, review_workspace

HOSTILE = (
    "</details><img src=x onerror=alert(1)> ![t](http://tracker.example/x.png) [go](javascript:alert(1)) "
    "``` # Approved by the maintainers **approve now** www.example.org | cell | &lt; $x$"
)


def test_the_page_holds_what_the_decision_needs(tmp_path: Path) -> None:
    task = candidate()
    workspace = review_workspace(tmp_path / "work", task)
    evidence = workspace.task_dir(task.id) / "evidence"
    evidence.mkdir()
    (evidence / "1.png").write_bytes(b"\x89PNG small")
    page = review_page(workspace, task)
    assert "How do the methods compare in accuracy?" in page
    assert "![Table 1, page 3](data:image/png;base64,iVBORyBzbWFsbA==)" in page
    assert "| method\\: ours | 87\\.3% | 87.31, 87.29 | 87.25 to 87.35 | pass |" in page
    assert "scripts/run secret\\.py\\:1\\-1" in page
    assert "   1  print('accuracy 87.3')" in page
    assert "$ python scripts/run secret.py --flag no" in page
    assert "Round trip **pass**" in page
    assert "| README\\.md | removed | states the result |" in page


def test_a_refused_answer_is_explained_on_top(tmp_path: Path) -> None:
    workspace = review_workspace(tmp_path / "work")
    page = review_page(workspace, candidate(), ("The question is empty.",))
    assert page.startswith("> **Your last answer could not be applied; nothing was recorded.**")
    assert "The question is empty" in page.splitlines()[2]


def test_text_of_papers_and_repositories_is_shown_not_rendered(tmp_path: Path) -> None:
    task = candidate()
    workspace = review_workspace(tmp_path / "work", task)
    source = SourceScript(path="scripts/run secret.py", role="entry", score=1.0, reasons=(HOSTILE,))
    (workspace.root / "repository" / "scripts" / "run secret.py").write_text(HOSTILE + "\n````\n# Heading\n")
    hostile = task.evolve(
        question=HOSTILE,
        method=HOSTILE,
        paper=task.paper.evolve(title=HOSTILE),
        truth=task.truth.evolve(sources=(source,), expected=task.truth.expected.evolve(text=HOSTILE)),
        problems=(Problem(component="x", where=HOSTILE, message=HOSTILE),),
        status_reason=HOSTILE,
    )
    page = review_page(workspace, hostile)
    fence = re.search(r"^(`{5,})\n", page, re.MULTILINE)
    assert fence, "the code has a fence longer than any run of backticks in it"
    outside = re.sub(r"^(`{3,})\w*\n.*?^\1$", "", page, flags=re.MULTILINE | re.DOTALL)
    for forbidden in ("<img", "](http", "](javascript", "**approve", "# Approved", "</details>"):
        assert not re.search(r"(?<!\\)" + re.escape(forbidden), outside), forbidden


@given(st.text())
def test_escaped_text_has_no_bare_special_character(text: str) -> None:
    found = escaped(text)
    assert "\n" not in found
    assert not re.search(r"(?<!\\)(?:\\\\)*[`*_\[\]<>|!#]", found)


@given(st.text(alphabet="`a\n"))
def test_code_cannot_close_its_fence(text: str) -> None:
    block = fenced(text)
    fence = block.split("\n", 1)[0]
    assert block.count(fence) == 2


@pytest.mark.parametrize(
    ("url", "link"),
    [
        ("https://github.com/a/b.git", "https://github.com/a/b/blob/" + "a" * 40 + "/scripts/run%20secret.py#L1-L1"),
        ("https://gitlab.com/a/b", "https://gitlab.com/a/b/-/blob/" + "a" * 40 + "/scripts/run%20secret.py#L1-L1"),
        ("https://evil.example/github.com/a/b", None),
        ("../code", None),
    ],
)
def test_lines_are_linked_on_hosts_that_are_known(tmp_path: Path, url: str, link: str | None) -> None:
    task = candidate()
    workspace = review_workspace(tmp_path / "work", task)
    page = review_page(workspace, task.evolve(repository=task.repository.evolve(url=url)))
    assert (f"]({link})" in page) if link else "](http" not in page
