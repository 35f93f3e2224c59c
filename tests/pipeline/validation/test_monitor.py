from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from pipeline.sandbox.base import CommandResult, ProducedFile, RunResult
from pipeline.schema import Severity
from pipeline.validation.monitor import WRITTEN, inspect_run
from tests.pipeline.validation.support import claim, make_snapshot

CLAIMS = [claim("c1", "accuracy", "0.873"), claim("c2", "accuracy", "0.911"), claim("c3", "f1", "0.664")]
TABLE = "method,accuracy\nours,0.873\nsgd,0.911\nadam,0.664\n"


def inspect(
    tmp_path: Path,
    source: str,
    files: dict[str, str] | None = None,
    produced: dict[str, str] | None = None,
    script: str = "run.py",
    claims=CLAIMS,
):
    snapshot = make_snapshot(tmp_path, {script: source, **(files or {})})
    result = RunResult(
        commands=(CommandResult(exit_code=0, stdout_bytes=10),),
        produced=tuple(
            ProducedFile(path=path, size=len(text), sha256=hashlib.sha256(text.encode()).hexdigest())
            for path, text in (produced or {}).items()
        ),
    )
    return inspect_run(snapshot, [script], result, tmp_path / "out", claims)


@pytest.mark.parametrize(
    "source",
    [
        "print('accuracy', 0.873)\nprint(f'sgd {0.911} f1 0.664')\n",
        "R = {'ours': 0.873, 'sgd': 0.911, 'f1': 0.664}\n",
        "print('accuracy: 87.3')\nprint('accuracy: 0.911')\n".replace("87.3", "0.873"),
    ],
)
def test_written_results_are_told_apart(tmp_path: Path, source: str) -> None:
    (problem,) = inspect(tmp_path, source)
    assert (problem.component, problem.severity) == (WRITTEN, Severity.WARNING)
    assert problem.where.startswith("run.py:")


def test_settings_and_checks_are_not(tmp_path: Path) -> None:
    source = "def f(x, lr=0.873):\n    assert x > 0.911\n    return x * 0.664\nprint(f(3))\n"
    assert inspect(tmp_path, source) == ()


def test_one_number_among_many_is_a_warning(tmp_path: Path) -> None:
    (problem,) = inspect(tmp_path, "print('the paper says 0.873')\n")
    assert problem.severity is Severity.WARNING


def test_reading_shipped_results_is_an_error(tmp_path: Path) -> None:
    source = "import pandas as pd\nprint(pd.read_csv('results/table.csv'))\n"
    (problem,) = inspect(tmp_path / "a", source, {"results/table.csv": TABLE})
    assert problem.severity is Severity.ERROR
    assert "results/table.csv" in problem.message
    # written by the run, or holding other numbers: a computation
    written = "open('results/table.csv', 'w').write(str(1 / 3))\n"
    assert inspect(tmp_path / "b", written, {"results/table.csv": TABLE}) == ()
    assert inspect(tmp_path / "c", source, {"results/table.csv": "x,y\n1,2\n3,4.55\n"}) == ()


def test_random_results_are_errors(tmp_path: Path) -> None:
    source = "import random\naccuracy = round(random.uniform(0.8, 0.9), 3)\nprint(accuracy)\n"
    (problem,) = inspect(tmp_path / "a", source)
    assert "random draw" in problem.message
    for name in ("test_acc", "testAccuracy"):
        assert inspect(tmp_path / name, source.replace("accuracy", name))
    assert inspect(tmp_path / "start", source.replace("accuracy", "start")) == ()
    fine = "import numpy as np\nrng = np.random.default_rng(0)\naccuracy = (rng.uniform(size=100) > 0.5).mean()\n"
    assert inspect(tmp_path / "b", fine) == ()


def test_copies_of_shipped_files(tmp_path: Path) -> None:
    (problem,) = inspect(tmp_path, "pass\n", {"assets/final.csv": TABLE}, {"results/out.csv": TABLE})
    assert problem.severity is Severity.ERROR
    assert problem.where == "results/out.csv"


def test_a_usage_message_is_no_result(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "0.stdout").write_text("usage: run.py [-h]\n")
    assert any("usage" in problem.message for problem in inspect(tmp_path, "pass\n"))


def test_a_notebook_that_reads_shipped_results_is_an_error(tmp_path: Path) -> None:
    """Seen: a demo notebook that recomputes nothing, `LOCAL = "demo_data.json"` and results under `method_accuracies`."""
    cells = [
        {"cell_type": "markdown", "source": ["Results"]},
        {
            "cell_type": "code",
            "source": ["%matplotlib inline\n", "LOCAL = 'demo.json'\n", "raw = json.load(open(LOCAL))"],
        },
    ]
    notebook = json.dumps({"cells": cells}, indent=1)
    named = [claim("c1", "accuracy", "0.873", method="ours"), claim("c2", "accuracy", "0.911", method="sgd")]
    data = [{"id": number, "x": number / 1000} for number in range(1000)]
    shipped = json.dumps({"data": data, "method_accuracies": {"ours": 0.873, "sgd": 0.911}})
    files = {"nb/demo.json": shipped, "demo.json": "{}"}
    (problem,) = inspect(tmp_path, notebook, files, script="nb/demo.ipynb", claims=named)
    assert problem.severity is Severity.ERROR
    assert "`nb/demo.json`" in problem.message
    line = int(problem.where.partition(":")[2])
    assert "open(LOCAL)" in notebook.splitlines()[line - 1]


def test_data_of_many_numbers_holds_the_claims_digits_by_chance(tmp_path: Path) -> None:
    values = "x\n" + "\n".join(f"{number / 1000:.3f}" for number in range(1000))
    assert inspect(tmp_path, "print(open('data.csv').read())\n", {"data.csv": values}) == ()
