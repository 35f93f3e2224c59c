"""The small project on which scripted agents work: written for this benchmark, pure Python, a run takes 0.2 s.

A study compares location estimators (mean, median, trimmed mean) on contaminated normal samples. The study's script and
its settings are masked; the estimators and the data generator are left. Agents are given the repository with one commit.
"""

from __future__ import annotations

from typing import Final

from evaluation.task import EvaluationTask
from pipeline.paper import Paper
from pipeline.repository import RepositoryRef
from pipeline.task import (
    Band,
    CodeEvidence,
    Condition,
    DesignVariable,
    Expected,
    ExperimentTruth,
    Family,
    MaskedPath,
    NumericClaim,
    Provenance,
    PublicTask,
    Requirement,
    SourceScript,
    Status,
    Usage,
)

__all__ = ["KEPT", "MASKED", "PAPER", "QUESTION", "task"]

ESTIMATORS: Final = '''"""Location estimators."""


def mean(sample):
    return sum(sample) / len(sample)


def median(sample):
    ordered = sorted(sample)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def trimmed_mean(sample, share=0.1):
    """Mean without the `share` smallest and largest values."""
    ordered = sorted(sample)
    cut = int(share * len(ordered))
    return mean(ordered[cut : len(ordered) - cut])
'''
DATA: Final = '''"""Contaminated normal samples."""

import random


def draw(n, rate, seed, outlier=8.0):
    """`n` standard normal values of which each is shifted by `outlier` with probability `rate`."""
    rng = random.Random(seed)
    return [rng.gauss(0.0, 1.0) + (outlier if rng.random() < rate else 0.0) for _ in range(n)]
'''
STUDY: Final = '''"""Mean squared error of each estimator at each contamination rate."""

import json
import sys

from robust.data import draw
from robust.estimators import mean, median, trimmed_mean

ESTIMATORS = {"mean": mean, "median": median, "trimmed": trimmed_mean}


def squared_errors(estimator, settings, rate):
    """Squared error of one estimator on every repetition; the true location is zero."""
    errors = []
    for repetition in range(settings["repetitions"]):
        sample = draw(settings["n"], rate, seed=1000 + repetition)
        errors.append(estimator(sample) ** 2)
    return errors


def main():
    with open("configs/study.json") as stream:
        settings = json.load(stream)
    rows = []
    for rate in settings["rates"]:
        for name, estimator in ESTIMATORS.items():
            errors = squared_errors(estimator, settings, rate)
            mse = sum(errors) / len(errors)
            rows.append((name, rate, mse))
            print(f"estimator={name} rate={rate} mse={mse:.4f}")
    with open("results.csv", "w") as stream:
        stream.write("estimator,rate,mse\\n")
        for name, rate, mse in rows:
            stream.write(f"{name},{rate},{mse:.4f}\\n")


if __name__ == "__main__":
    sys.exit(main())
'''
SETTINGS: Final = '{"n": 60, "repetitions": 80, "rates": [0.0, 0.1, 0.2]}\n'
README: Final = """# robust

Location estimators and contaminated samples. See `robust/estimators.py` and `robust/data.py`.
"""
PAPER: Final = """Robust Location Estimation under Asymmetric Contamination: A Small Study. We study how three classical estimators of
location behave when a fraction of the observations is shifted far to one side. The arithmetic mean is efficient for clean
normal samples but its bias grows linearly with the fraction of shifted observations, whereas the median moves by a bounded
amount only. The trimmed mean discards a fixed share of the smallest and largest values before averaging, which protects it
as long as the contamination stays below the trimming share on the affected side. In our experiments with sixty
observations and eighty repetitions the median attains the lowest mean squared error as soon as a tenth of the observations
is shifted, followed by the trimmed mean, while the arithmetic mean deteriorates rapidly. For clean samples the order is
reversed and the arithmetic mean is the most accurate of the three estimators, in agreement with asymptotic theory. We
conclude that practitioners who expect one-sided contamination should prefer the median over trimming with a small share."""
QUESTION: Final = "How do mean, median and trimmed mean compare in mean squared error as the contamination rate grows?"
METHOD: Final = (
    "Draw n = 60 observations for each of 80 repetitions from the contaminated normal of robust/data.py with outlier 8.0, "
    "apply each estimator, and average the squared errors over the repetitions. Vary the rate over 0.0, 0.1 and 0.2."
)

KEPT: Final = {
    "README.md": README,
    "robust/__init__.py": "",
    "robust/estimators.py": ESTIMATORS,
    "robust/data.py": DATA,
    "tests/test_estimators.py": "from robust.estimators import mean\n\n\ndef test_mean():\n    assert mean([1, 3]) == 2\n",
}
MASKED: Final = {"run_study.py": STUDY, "configs/study.json": SETTINGS}

_RATES: Final = ("0.0", "0.1", "0.2")
_VALUES: Final = {
    "mean": (0.0174, 0.7066, 2.6931), "median": (0.0277, 0.0525, 0.1417), "trimmed": (0.0184, 0.1369, 1.4508),
}  # fmt: skip
"""Measured by running the original (`generate.py` checks it)."""


def _claims() -> tuple[NumericClaim, ...]:
    found = []
    for name, values in _VALUES.items():
        for rate, value in zip(_RATES, values, strict=True):
            found.append(
                NumericClaim(
                    id=f"c{len(found) + 1}",
                    metric="mean squared error",
                    value=value,
                    text=f"{value}",
                    decimals=4,
                    conditions=(Condition(name="estimator", value=name), Condition(name="rate", value=rate)),
                    band=Band(low=value * 0.98, high=value * 1.02, source="printed precision"),
                )
            )
    return tuple(found)


def _span(path: str, start: int, end: int) -> CodeEvidence:
    return CodeEvidence(path=path, start=start, end=end)


def task() -> EvaluationTask:
    """The task, without any directories (the caller knows where it put them)."""
    public = PublicTask(
        id="robust-location-mse",
        family=Family.EXPERIMENT,
        status=Status.MASKED,
        paper=Paper(
            id="robust-location", title="Robust Location Estimation under Asymmetric Contamination: A Small Study"
        ),
        repository=RepositoryRef(url="https://github.com/example/robust-location", commit="0" * 40),
        question=QUESTION,
        method=METHOD,
        agent_instructions="Implement and run the study, then report the mean squared error of each estimator and rate.",
        provenance=Provenance(engine="keyless"),
    )
    truth = ExperimentTruth(
        constant=(
            DesignVariable(name="n", values=("60",)),
            DesignVariable(name="repetitions", values=("80",)),
            DesignVariable(name="outlier", values=("8.0",)),
        ),
        independent=(
            DesignVariable(name="estimator", values=("mean", "median", "trimmed")),
            DesignVariable(name="rate", values=_RATES),
        ),
        dependent=(DesignVariable(name="mean squared error"),),
        sources=(SourceScript(path="run_study.py", role="entry", score=1.0),),
        requirements=(
            Requirement(text="Squared error of one estimator on every repetition", spans=(_span("run_study.py", 12, 18),)),
            Requirement(text="Load the settings of the study", spans=(_span("run_study.py", 22, 23),)),
            Requirement(text="Mean squared error for each rate and estimator", spans=(_span("run_study.py", 24, 30),)),
            Requirement(text="Write the table of results", spans=(_span("run_study.py", 31, 34),)),
            Requirement(text="Draw contaminated samples (draw)", spans=(_span("robust/data.py", 6, 9),)),
            Requirement(text="Median (median)", spans=(_span("robust/estimators.py", 8, 13),)),
            Requirement(text="Trimmed mean (trimmed_mean)", spans=(_span("robust/estimators.py", 16, 20),)),
        ),
        usage=(Usage(argv=("python", "run_study.py")),),
        expected=Expected(
            text="The mean squared error of mean rises most with the rate; median is best at rates 0.1 and 0.2, mean is best "
            "at rate 0.0.",
            claims=_claims(),
            comparisons=(("c5", "<", "c2"), ("c6", "<", "c3"), ("c5", "<", "c8"), ("c1", "<", "c4")),
        ),
    )  # fmt: skip
    masked = tuple(MaskedPath(path=path, action="removed", reason="source script") for path in sorted(MASKED))
    return EvaluationTask(public=public, truth=truth, masked_paths=masked, paper_texts=(PAPER,))
