"""Requirements of a recorded run: what ran, in the words of the code, and nothing that only shows or keeps."""

from __future__ import annotations

import json
from pathlib import Path

from pipeline.repository import Snapshot, open_snapshot
from pipeline.requirements import requirements_of_run
from pipeline.witness.records import FunctionRun
from tests.pipeline.repositories import make

SCRIPT = """import numpy as np
from model import fit, unused


# draw the data of each condition
rng = np.random.default_rng(0)
data = rng.normal(size=100)

score = fit(data, alpha=0.5)

print(score)
"""
MODEL = '''def fit(data, alpha):
    """Fit the ridge estimator. It is closed form."""
    total = 0.0
    for value in data:
        total += value
    return total / (len(data) + alpha)


def show(score):
    """Print a table of the scores."""
    line = "-" * 10
    print(line)
    print(score)
    print(line)


def unused(x):
    """Never called."""
    y = x + 1
    z = y * 2
    y = z
    return y
'''


def snapshot_of(root: Path, files: dict[str, str]) -> Snapshot:
    return open_snapshot(str(make(root / "repository", files)), into=root / "snapshot")


def ran(name: str, line: int, **arguments: tuple[str, ...]) -> FunctionRun:
    return FunctionRun(
        path="model.py", name=name, line=line, calls=1, arguments=tuple(arguments.items()), callers=("run.py:9",)
    )


def texts(tmp_path: Path, *functions: FunctionRun) -> list[str]:
    snapshot = snapshot_of(tmp_path, {"run.py": SCRIPT, "model.py": MODEL})
    return [item.text for item in requirements_of_run(functions, snapshot=snapshot, entries=("run.py",))]


def test_steps_are_what_ran_in_the_words_of_the_code(tmp_path: Path) -> None:
    assert texts(tmp_path, ran("fit", 1, alpha=("0.5",)), ran("show", 9)) == [
        "draw the data of each condition",
        "carry out `score = fit(data, alpha=0.5)`",
        "Fit the ridge estimator (with alpha = 0.5)",
    ]


def test_what_did_not_run_prints_or_is_imported_is_no_step(tmp_path: Path) -> None:
    told = " ".join(texts(tmp_path, ran("fit", 1), ran("show", 9)))
    assert "Never called" not in told
    assert "Print a table" not in told
    assert "import" not in told


def test_an_argument_with_several_values_is_no_setting(tmp_path: Path) -> None:
    assert texts(tmp_path, ran("fit", 1, alpha=("0.5", "1.0")))[-1] == "Fit the ridge estimator"


def test_there_are_at_most_twelve_and_those_of_this_task_alone_are_kept(tmp_path: Path) -> None:
    body = "    x = 1\n    y = x + 1\n    z = y + x\n    return z\n"
    functions = "\n\n".join(f'def f{n}(a):\n    """Step {n}."""\n{body}' for n in range(20))
    snapshot = snapshot_of(tmp_path, {"steps.py": functions})
    lines = functions.splitlines()
    runs = [
        FunctionRun(path="steps.py", name=f"f{n}", line=lines.index(f"def f{n}(a):") + 1, calls=1) for n in range(20)
    ]
    elsewhere = {("steps.py", f"f{n}") for n in range(10)}
    found = requirements_of_run(runs, snapshot=snapshot, entries=(), elsewhere=elsewhere)
    assert len(found) == 12
    assert {f"Step {n}" for n in range(10, 20)} <= {item.text.rstrip(".") for item in found}
    for item in found:
        span = item.spans[0]
        assert lines[span.start - 1].startswith("def ")
        assert lines[span.end - 1].strip() == "return z"


def test_the_cells_of_a_notebook_are_steps_with_the_lines_of_the_file(tmp_path: Path) -> None:
    cells = [["# fit the model\n", "score = sum([1, 2])\n"], ["%matplotlib inline\n", "print(score)\n"]]
    made = [{"cell_type": "code", "source": lines, "outputs": [], "metadata": {}} for lines in cells]
    raw = json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)
    snapshot = snapshot_of(tmp_path, {"study.ipynb": raw})
    (step,) = requirements_of_run((), snapshot=snapshot, entries=("study.ipynb",))
    assert step.text == "fit the model"
    (span,) = step.spans
    assert [line.strip() for line in raw.splitlines()[span.start - 1 : span.end]] == ['"score = sum([1, 2])\\n"']


DRAWN = """import numpy as np
import matplotlib.pyplot as plt

rng = np.random.default_rng(0)
data = rng.normal(size=100)

scores = {}
for level in (1, 2):
    scores[level] = float(np.mean(data) / level)

# what nobody puts out
spread = np.std(data)
fig, axes = plt.subplots()
axes.plot(data, spread * data)
fig.savefig("out.png")

best = max(scores, key=scores.get)
print(f"best {best}: {scores[best]}")

# a last figure
share = np.array([scores[level] for level in scores])
plt.bar([1, 2], share)
plt.savefig("share.png")
print("saved")
"""


def test_what_is_only_drawn_is_no_step(tmp_path: Path) -> None:
    found = requirements_of_run((), snapshot=snapshot_of(tmp_path, {"run.py": DRAWN}), entries=["run.py"])
    assert [item.spans[0].start for item in found] == [4, 7, 17]
    only = DRAWN.replace("print(", "str(")  # nothing is put out: all of it is asked
    found = requirements_of_run((), snapshot=snapshot_of(tmp_path / "only", {"run.py": only}), entries=["run.py"])
    assert [item.spans[0].start for item in found] == [4, 7, 12, 17, 21]
