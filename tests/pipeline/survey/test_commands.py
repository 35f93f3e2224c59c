"""Which commands of a repository are worth running, in which order, and which are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.locator import build_index
from pipeline.paper import Box, Document, Page, Passage, PassageKind, Table
from pipeline.survey import Candidate, list_candidates
from tests.pipeline.validation.support import make_snapshot

RUNS = "import sys\nif __name__ == '__main__':\n    print(sys.argv)\n"
DEFINES = "def mean(values):\n    return sum(values) / len(values)\n"
NOTEBOOK = (
    '{"cells": [{"cell_type": "code", "source": ["print(1)"]}], "nbformat": 4, "nbformat_minor": 5, "metadata": {}}'
)
PAGE = Page(number=1, width=600, height=800, columns=1, text_quality=1.0)
PAPER = Document(sha256="0" * 64, title="P", pages=(PAGE,), extractor="by hand")


def listed(root: Path, files: dict[str, str], paper: Document = PAPER) -> list[Candidate]:
    return list(list_candidates(build_index(make_snapshot(root / "tree", files)), paper))


def said(candidates: list[Candidate]) -> list[str]:
    return [" ".join(candidate.usage.argv) for candidate in candidates]


def test_documents_come_before_scripts_docstrings_and_programs_that_nothing_speaks_of(tmp_path: Path) -> None:
    found = listed(
        tmp_path,
        {
            "README.md": "# Runs\n\n```bash\npython second.py --n 2\npython first.py\n```\n",
            "docs/more.md": "```bash\npython third.py\n```\n",
            "Makefile": "table:\n\tpython fourth.py --table\n",
            "run.sh": "python fifth.py\n",
            "sixth.py": '"""Shows it.\n\n    python sixth.py --all\n"""\n' + RUNS,
            "seventh.py": RUNS,
            **dict.fromkeys(["first.py", "second.py", "third.py", "fourth.py", "fifth.py"], RUNS),
        },
    )
    assert said(found)[:7] == [
        "python second.py --n 2", "python first.py", "python third.py", "python fourth.py --table", "python fifth.py",
        "python sixth.py --all", "python seventh.py",
    ]  # fmt: skip
    assert [item.origin for item in found][:7] == [
        "document", "document", "document", "make", "shell", "docstring", "entry",
    ]  # fmt: skip
    assert found[0].where == "README.md:4"
    assert len(set(said(found))) == len(found) == len({item.key for item in found})


def test_commands_in_details_blocks_and_in_tables_are_read(tmp_path: Path) -> None:
    readme = (
        "<details>\n<summary>Table 1</summary>\n\n```bash\npython a.py --table 1\n```\n\n</details>\n\n"
        "| result | command |\n|---|---|\n| Table 2 | `python a.py --table 2` |\n"
    )
    found = listed(tmp_path, {"README.md": readme, "a.py": RUNS})
    assert said(found)[:2] == ["python a.py --table 1", "python a.py --table 2"]
    assert "Table 2" in found[1].text


@pytest.mark.parametrize(
    "command",
    ["python a.py <path> 3", "python a.py ...", "python a.py --help", "python -m pytest a.py", "pip install a"],
)
def test_what_leaves_something_to_fill_in_or_computes_nothing_is_no_candidate(tmp_path: Path, command: str) -> None:
    found = listed(tmp_path, {"README.md": f"```bash\n{command}\n```\n", "a.py": DEFINES})
    assert said(found) in ([], ["python a.py"])


def test_programs_that_only_define_and_tests_and_set_up_are_none(tmp_path: Path) -> None:
    files = {
        "lib.py": DEFINES, "setup.py": "from setuptools import setup\nsetup()\n", "pkg/__init__.py": "print(1)\n",
        "tests/test_lib.py": "import pytest\nimport lib\nif __name__ == '__main__':\n    pytest.main()\n",
        "needs.py": "import argparse\np = argparse.ArgumentParser()\np.add_argument('data')\nprint(p.parse_args().data)\n",
        "run.py": RUNS,
    }  # fmt: skip
    assert said(listed(tmp_path, files)) == ["python run.py"]


def test_a_notebook_is_executed_as_a_whole_however_it_is_opened(tmp_path: Path) -> None:
    readme = "Then `jupyter notebook` opens it. See ```compare``` for results.\n\n```bash\njupyter notebook other.ipynb\n```\n"
    found = listed(tmp_path, {"README.md": readme, "compare.ipynb": NOTEBOOK, "other.ipynb": NOTEBOOK, "a.py": RUNS})
    assert [item.entry for item in found] == ["other.ipynb", "compare.ipynb", "a.py"]
    assert all("--execute" in item.usage.argv for item in found[:2])


def test_sub_projects_and_variables_stay_with_their_commands(tmp_path: Path) -> None:
    readme = "```bash\ncd base\nMODE=fast CUDA_VISIBLE_DEVICES=0 python run.py\n```\n"
    found = listed(tmp_path, {"README.md": readme, "base/run.py": RUNS})
    assert (said(found)[0], found[0].usage.directory) == ("env MODE=fast python run.py", "base")


def test_a_sweep_leaves_room_for_other_programs(tmp_path: Path) -> None:
    sweep = "".join(f"python sweep.py --seed {seed}\n" for seed in range(20))
    found = listed(
        tmp_path, {"README.md": f"```bash\n{sweep}python table.py\n```\n", "sweep.py": RUNS, "table.py": RUNS}
    )
    assert said(found).index("python table.py") == 6
    assert len(found) == 22  # the sweep, the table, and last the sweep's program with its defaults


def test_the_paper_prints_commands_without_their_underscores(tmp_path: Path) -> None:
    box = Box(0, 0, 1, 1)
    table = Table(
        label="Table 3", caption="Table 3. Commands", page=7, box=box, header_rows=1, confidence=1.0,
        grid=(("Figure", "Command", ""), ("2", "python3", "constant v momentum.py --n 5")),
    )  # fmt: skip
    passage = Passage(
        id="p1", section=None, kind=PassageKind.PARAGRAPH, boxes=((2, box),),
        text="Run python other.py --k 3, which takes a minute. See lib.py.",
    )  # fmt: skip
    paper = PAPER.evolve(tables=(table,), passages=(passage,))
    files = {"src/constant_v_momentum.py": RUNS, "src/other.py": RUNS, "src/lib.py": DEFINES}
    found = [item for item in listed(tmp_path, files, paper) if item.origin == "paper"]
    assert said(found) == ["python constant_v_momentum.py --n 5", "python other.py --k 3"]
    assert [(item.usage.directory, item.where) for item in found] == [("src", "page 7"), ("src", "page 2")]
