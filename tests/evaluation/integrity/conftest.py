from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from evaluation.integrity.monitor import check_integrity
from evaluation.task import EvaluationTask
from evaluation.verdicts import IntegrityReport
from pipeline.progress import SilentReporter
from tests.evaluation.integrity.episodes import Made, make_task


@pytest.fixture(scope="session")
def task(tmp_path_factory: pytest.TempPathFactory) -> EvaluationTask:
    return make_task(tmp_path_factory.mktemp("world"))


@pytest.fixture
def check(task: EvaluationTask, tmp_path: Path) -> Callable[[Made], IntegrityReport]:
    """`check(made)`: the keyless monitor's report."""
    count = iter(range(1000))

    def run(made: Made) -> IntegrityReport:
        folder, submission = made.write(tmp_path / f"episode{next(count)}")
        return check_integrity(task, folder, submission, client=None, reporter=SilentReporter())

    return run
