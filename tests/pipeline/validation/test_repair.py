"""Chains that stopped for want of what the repository can give (each kind was seen in published repositories)."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.locator import Chain, build_index
from pipeline.sandbox.base import Limits
from pipeline.task import SourceScript, Usage, ValidationReport, Verdict
from pipeline.validation.repair import Repair, repaired, repaired_commands
from pipeline.validation.rerun import validate
from pipeline.validation.tracebacks import last_frame, refused_path
from tests.pipeline.validation.support import IMAGE, CopySandbox, claim, make_snapshot, make_task

CLAIMS = [claim("c1", "accuracy", "0.875", method="ours"), claim("c2", "accuracy", "0.750", method="sgd")]
HITS = "hits, less = [1] * 7 + [0], [1] * 6 + [0, 0]\n"
PRINT = HITS + "print('ours: accuracy =', sum(hits) / len(hits))\nprint('sgd: accuracy =', sum(less) / len(less))\n"


class Case:
    """A small repository and one chain of it, run and repaired as the validation does."""

    def __init__(self, root: Path, files: dict[str, str], argv: list[str]) -> None:
        self.root = root
        self.snapshot = make_snapshot(root / "tree", files)
        source = SourceScript(path=next(word for word in argv if word.endswith(".py")), role="entry", score=1.0)
        self.chain = Chain(sources=(source,), usage=(Usage(argv=tuple(argv)),), confidence=1.0)
        self.out = root / "out"

    def run(self) -> ValidationReport:
        task = make_task(self.snapshot, [["python"]], [], CLAIMS)
        task = task.evolve(truth=task.truth.evolve(usage=self.chain.usage, sources=self.chain.sources))
        return validate(
            task, snapshot=self.snapshot, image=IMAGE, sandbox=CopySandbox(), repeats=1, out=self.out, owner="test",
            limits=Limits(),
        )  # fmt: skip

    def repair(self) -> Repair | None:
        found = repaired(self.chain, self.run(), self.out, snapshot=self.snapshot, index=build_index(self.snapshot))
        self.chain = found.chain if found is not None else self.chain
        return found


MAKES = (
    HITS
    + "import json, pathlib\npathlib.Path('out').mkdir(exist_ok=True)\njson.dump([sum(hits) / 8, sum(less) / 8], open('out/scores.json', 'w'))\n"
)
READS = "import json\na, b = json.load(open('out/scores.json'))\nprint('ours: accuracy =', a)\nprint('sgd: accuracy =', b)\n"


@pytest.mark.parametrize(
    ("files", "argv", "directory", "command"),
    [
        (
            {"code/run.py": "print(open('../data/x.txt').read())\n" + PRINT, "data/x.txt": "1"},
            ["python", "code/run.py"], "code", ["python", "run.py"],
        ),
        (
            {"nb/a/run.py": "print(open('data/x.txt').read())\n" + PRINT, "nb/data/x.txt": "1", "conf/a.yml": "a: 1"},
            ["python", "nb/a/run.py", "--config", "conf/a.yml", "--name=x"],
            "nb", ["python", "a/run.py", "--config", "../conf/a.yml", "--name=x"],
        ),
        (
            {"nb/run.py": "import os\nos.mkdir('../made/below')\n" + PRINT, "made/x.txt": "1"},
            ["python", "nb/run.py"], "nb", ["python", "run.py"],
        ),
        (  # the only folder that has it
            {"code/run.py": "print(open('data/x.txt').read())\n" + PRINT, "study/one/data/x.txt": "1"},
            ["python", "code/run.py"], "study/one", ["python", "../../code/run.py"],
        ),
        (  # two folders have it: that of the page that states the command
            {"code/run.py": "print(open('data/x.txt').read())\n" + PRINT, "a/data/x.txt": "1", "b/data/x.txt": "1",
             "b/README.md": "```bash\npython code/run.py\n```\n"},
            ["python", "code/run.py"], "b", ["python", "../code/run.py"],
        ),
        (  # as NumPy says it
            {"code/run.py": "import os\nif not os.path.exists('x.txt'): raise FileNotFoundError('x.txt not found.')\n" + PRINT,
             "code/x.txt": "1"},
            ["python", "code/run.py"], "code", ["python", "run.py"],
        ),
    ],
)  # fmt: skip
def test_a_path_that_fits_another_directory(
    files: dict[str, str], argv: list[str], directory: str, command: list[str], tmp_path: Path
) -> None:
    case = Case(tmp_path, files, argv)
    found = case.repair()
    assert found is not None
    assert "means nothing from ." in found.what
    (step,) = case.chain.usage
    assert (step.directory, list(step.argv)) == (directory, command)
    assert case.run().verdict is Verdict.PASS


def test_a_path_that_two_folders_have_moves_nothing(tmp_path: Path) -> None:
    files = {"code/run.py": "open('data/x.txt')\n", "a/data/x.txt": "1", "b/data/x.txt": "1"}
    assert Case(tmp_path, files, ["python", "code/run.py"]).repair() is None


@pytest.mark.parametrize(
    ("code", "folder"),
    [
        ("open('results/log.txt', 'w').write('a')\n", "results"),
        ("import pathlib\npathlib.Path('a/b/c.txt').write_text('a')\n", "a/b"),
        ("import os\nhere = os.path.dirname(os.path.abspath(__file__))\nopen(os.path.join(here, 'figures', 'a.txt'), 'w')\n", "figures"),
    ],
)  # fmt: skip
def test_a_folder_for_output_that_git_could_not_hold(code: str, folder: str, tmp_path: Path) -> None:
    case = Case(tmp_path, {"run.py": code + PRINT}, ["python", "run.py"])
    found = case.repair()
    assert found is not None
    assert found.what == f"`{folder}` is written into and not in the repository: git holds no empty folders"
    assert case.chain.usage[0].argv == ("mkdir", "-p", folder)
    assert case.run().verdict is Verdict.PASS


README = """# Reproduce

```bash
pip install -r requirements.txt
python make.py     # 1. scores
python report.py   # 2. the table
```

## Else

```bash
python other.py
```
"""


def test_the_steps_that_a_document_names_before_it(tmp_path: Path) -> None:
    files = {"README.md": README, "make.py": MAKES, "report.py": READS, "other.py": "print(1)\n"}
    case = Case(tmp_path, files, ["python", "report.py"])
    found = case.repair()
    assert found is not None
    assert found.what.startswith("make.py first, as README.md:")
    assert [step.argv for step in case.chain.usage] == [("python", "make.py"), ("python", "report.py")]
    assert case.chain.entries == ("make.py", "report.py")
    assert case.run().verdict is Verdict.PASS


def test_the_only_script_that_makes_the_file(tmp_path: Path) -> None:
    files = {"make.py": MAKES, "report.py": READS, "tests/test_it.py": MAKES, "show.py": READS}
    case = Case(tmp_path, files, ["python", "report.py"])
    found = case.repair()
    assert found is not None
    assert found.what == "make.py first: it is the only script that names `scores.json` and writes files"
    assert case.run().verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("files", "argv"),
    [
        ({"report.py": READS}, ["python", "report.py"]),  # nobody makes it
        ({"a.py": MAKES, "b.py": MAKES, "report.py": READS}, ["python", "report.py"]),  # two do
        ({"run.py": "raise ValueError('no')\n"}, ["python", "run.py"]),
        ({"run.py": "open('/etc/nowhere/x.txt', 'w')\n"}, ["python", "run.py"]),
        ({"run.py": "open('../../../x/y.txt', 'w')\n"}, ["python", "run.py"]),
        ({"run.py": PRINT}, ["python", "run.py"]),  # it did not fail
    ],
)  # fmt: skip
def test_what_the_repository_cannot_give_is_left_as_it_is(
    files: dict[str, str], argv: list[str], tmp_path: Path
) -> None:
    case = Case(tmp_path, files, argv)
    assert case.repair() is None


def test_wants_one_after_the_other(tmp_path: Path) -> None:
    makes = HITS + "import json\njson.dump([sum(hits) / 8, sum(less) / 8], open('out/scores.json', 'w'))\n"
    case = Case(tmp_path, {"make.py": makes, "report.py": READS}, ["python", "report.py"])
    assert [found.what.split()[0] for _ in range(4) if (found := case.repair())] == ["make.py", "`out`"]
    assert case.run().verdict is Verdict.PASS


def test_places_in_tracebacks(tmp_path: Path) -> None:
    snapshot = make_snapshot(tmp_path, {"src/load.py": "", "run.py": "", "utils.py": ""})
    log = (
        "Traceback (most recent call last):\n"
        '  File "/work/run.py", line 3, in <module>\n    main()\n'
        '  File "/work/src/load.py", line 9, in load\n    data = fetch(True)\n'
        '  File "/opt/venv/lib/python3.11/site-packages/pkg/utils.py", line 1, in fetch\n    urlopen(x)\n'
        "FileNotFoundError: [Errno 2] No such file or directory: '/work/data/x.csv'\n"
    )
    frame = last_frame(log, snapshot)
    assert frame is not None
    assert (frame.path, frame.line, frame.code, frame.root) == ("src/load.py", 9, "data = fetch(True)", "/work/")
    refused = refused_path(log, snapshot)
    assert refused is not None
    assert (refused.path, refused.writing, refused.rooted) == ("data/x.csv", False, True)
    pandas = (
        "Traceback (most recent call last):\n    raise OSError(rf\"Cannot save file into a non-existent directory: '{parent}'\")\n"
        "OSError: Cannot save file into a non-existent directory: 'a/b'\n"
    )
    refused = refused_path(pandas, snapshot)
    assert refused is not None
    assert (refused.path, refused.writing) == ("a/b/file", True)
    assert refused_path("ValueError: 'x'\n", snapshot) is None
    assert last_frame("no traceback", snapshot) is None


def test_cells_of_a_notebook_that_fail_are_passed_over_once_it_misses_no_module(tmp_path: Path) -> None:
    snapshot = make_snapshot(tmp_path / "tree", {"study.ipynb": '{"cells": []}'})
    index = build_index(snapshot)
    usage = (Usage(argv=("python", "-m", "nbconvert", "--execute", "study.ipynb")),)
    log = tmp_path / "0.stderr"
    log.write_text("ModuleNotFoundError: No module named 'surely_not_there'\n")
    assert repaired_commands(usage, 0, tmp_path, snapshot=snapshot, index=index) is None
    log.write_text("FileNotFoundError: [Errno 2] No such file or directory: 'prices.csv'\n")
    found = repaired_commands(usage, 0, tmp_path, snapshot=snapshot, index=index)
    assert found is not None
    assert found.usage[0].argv == (*usage[0].argv, "--allow-errors")
    assert repaired_commands(found.usage, 0, tmp_path, snapshot=snapshot, index=index) is None
