"""Runs to report on, made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluation.report.results import Results, load_results
from evaluation.report.summary import Summary, summarise
from tests.evaluation.report.synthetic import write_run

SECRET = "CANARY-TRUTH-5e1f"
HOSTILE = (
    "</pre></script><script>window.hacked=1</script><img src=x onerror=window.hacked=2>{{ 7*7 }}{% raw %}",
    '"><svg onload=window.hacked=3>',
    "\u202etxt.exe\u200b\x1b[31mred\x00",
    "=HYPERLINK(1)|[a](javascript:b)",
)


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    root = tmp_path_factory.mktemp("runs")
    first = write_run(root / "first", tasks=10, repeats=2, papers=4, secret=SECRET, texts=HOSTILE, seed=3)
    second = write_run(root / "second", model="model-b", tasks=10, repeats=2, papers=4, skill=0.9, seed=4, cost=3.0)
    return [first, second]


@pytest.fixture(scope="session")
def results(runs: list[Path]) -> Results:
    return load_results(runs)


@pytest.fixture(scope="session")
def summary(results: Results) -> Summary:
    return summarise(results, resamples=200)
