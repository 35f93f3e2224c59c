"""Run first, through the whole command in Docker: what a run gives back is drafted, and nothing that is only copied."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from flows.curate import CurateOptions, curate
from pipeline.progress import SilentReporter
from pipeline.sandbox import Limits
from pipeline.settings import Settings
from pipeline.store import Workspace
from pipeline.task import Status
from tests.extractors.paper_builder import BOLD, PaperBuilder
from tests.pipeline.repositories import make

pytestmark = pytest.mark.docker

STUDY = '''"""Mean squared error of estimators of the centre of a sample with outliers."""
import csv
import random
import statistics

SIZES = (20, 80, 320)


def draw_sample(rng, n):
    """Draw a normal sample in which every tenth value is an outlier."""
    return [rng.gauss(0, 1) + (rng.gauss(0, 9) if rng.random() < 0.1 else 0) for _ in range(n)]


def trim(sample, share=0.2):
    """Average the sample without its smallest and largest values."""
    ordered = sorted(sample)
    cut = int(share * len(ordered))
    inner = ordered[cut : len(ordered) - cut]
    return statistics.fmean(inner)


ESTIMATORS = {"mean": statistics.fmean, "median": statistics.median, "trimmed": trim}


def measure(estimate, n, runs=300):
    """Average the squared error of an estimator over repeated samples."""
    rng = random.Random(7)
    errors = [estimate(draw_sample(rng, n)) ** 2 for _ in range(runs)]
    return statistics.fmean(errors)


if __name__ == "__main__":
    with open("results.csv", "w", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(["estimator", "n", "squared_error"])
        for name, estimate in ESTIMATORS.items():
            for n in SIZES:
                error = measure(estimate, n)
                table.writerow([name, n, repr(error)])
                print(f"{name:8s} n={n:4d} error={error:.6f}")
'''
COPY = '''"""Show the results as the paper prints them."""
import csv

for row in csv.DictReader(open("results.csv")):
    print(row["estimator"], row["n"], "error", row["squared_error"])
'''


def paper_of(numbers: dict[str, list[float]], path: Path) -> Path:
    """A page with one table of these numbers, in which one was changed after it was computed."""
    paper = PaperBuilder()
    paper.text("Estimators of a Centre under Outliers", size=15, font=BOLD)
    paper.y += 10
    paper.text("1 Experiment", size=12, font=BOLD)
    paper.paragraph(
        "We draw a normal sample in which every tenth value is an outlier and average the",
        "squared error of each estimator over repeated samples with 300 runs of every size.",
    )
    paper.y += 8
    paper.text("Table 1: Mean squared error of the estimators by sample size.", size=9)
    rows = [["Estimator", "n = 20", "n = 80", "n = 320"]]
    for name, errors in numbers.items():
        rows.append([name.capitalize(), *(f"{error:.4f}" for error in errors)])
    rows[2][3] = "0.0999"
    paper.table(rows, [74, 160, 230, 300], 360)
    return paper.save(path)


def make_study(root: Path) -> tuple[Path, Path]:
    """The study's paper and its repository, in an empty folder."""
    (root / "study.py").write_text(STUDY)
    printed = subprocess.run(
        [sys.executable, "study.py"], cwd=root, capture_output=True, text=True, check=True
    ).stdout  # fmt: skip
    numbers: dict[str, list[float]] = {}
    for line in printed.splitlines():
        numbers.setdefault(line.split()[0], []).append(float(line.rpartition("=")[2]))
    repository = make(
        root / "repository",
        {
            "study.py": STUDY,
            "show.py": COPY,
            "results.csv": (root / "results.csv").read_text(),
            "README.md": "# Estimators\n\nRun the study:\n\n```\npython study.py\n```\n\nShow it:\n\n```\npython show.py\n```\n",
        },
    )
    return paper_of(numbers, root / "paper.pdf"), repository


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    root = tmp_path_factory.mktemp("run-first")
    paper, repository = make_study(root)
    out = Workspace(root / "work")
    settings = Settings(cache_dir=root / "cache", rehearsal_s=300, limits=Limits(wall_s=120), data="offline")
    options = CurateOptions(pdf=paper, repository=str(repository), out=out.root, sandbox="docker", repeats=1)
    curate(options, SilentReporter(), settings)
    return out


def test_a_table_that_came_out_becomes_a_release_candidate(workspace: Workspace) -> None:
    (task,) = workspace.tasks()
    assert task.status is Status.MASKED, task.status_reason
    assert [source.path for source in task.truth.sources] == ["study.py"]
    assert not (workspace.masked_repository(task.id) / "study.py").exists()


def test_claims_are_the_numbers_that_came_out_each_at_its_place(workspace: Workspace) -> None:
    (task,) = workspace.tasks()
    claims = task.truth.expected.claims
    assert len(claims) == 8
    assert all(claim.place for claim in claims)
    assert "0.0999" not in {claim.text for claim in claims}
    assert {claim.metric for claim in claims} == {"squared error"}, "the name that the program gives them"
    report = task.validation
    assert report is not None
    assert {match.verdict.value for match in report.matches} == {"pass"}


def test_the_words_are_the_papers_and_the_codes_own(workspace: Workspace) -> None:
    (task,) = workspace.tasks()
    assert "Mean, Median and Trimmed" in task.question
    assert "every tenth value is an outlier" in task.method
    steps = " ".join(item.text for item in task.truth.requirements)
    assert "Average the squared error" in steps
    assert "error = measure(estimate, n)" in steps
    assert 1 <= len(task.truth.requirements) <= 12


def test_what_was_tried_is_kept_and_what_is_left_out_is_said(workspace: Workspace) -> None:
    runs = json.loads((workspace.root / "rehearsal.json").read_text())["runs"]
    assert {run["candidate"]["entry"] for run in runs} == {"study.py", "show.py"}
    assert all(run["failure"] is None for run in runs)
    drafts = json.loads(next(workspace.root.glob("papers/*/drafts.json")).read_text())
    said = " ".join(problem["message"] for problem in drafts["problems"])
    assert "results.csv" in said or "0.0999" in said
