from __future__ import annotations

import pytest

from evaluation.task import EvaluationTask
from tests.evaluation.integrity.episodes import make_task


@pytest.fixture(scope="session")
def task(tmp_path_factory: pytest.TempPathFactory) -> EvaluationTask:
    return make_task(tmp_path_factory.mktemp("world"))
