"""A pytest plugin of the covering run: tells coverage which test runs, set-up included, and notes how long each took.

Also which test files share a fixture among tests: its lines count for the test that was first.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import coverage
import pytest

SECONDS: dict[str, float] = defaultdict(float)
SHARING: set[str] = set()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    running = coverage.Coverage.current()
    assert running is not None, "run me under coverage"
    running.switch_context(item.nodeid)
    result = yield
    running.switch_context("")
    return result  # what a hook wrapper returns


def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> None:
    # pytest's own (tmp_path_factory) run nothing of ours
    if fixturedef.scope != "function" and fixturedef.func.__module__.startswith("tests."):
        SHARING.add(request.node.nodeid.split("::", 1)[0])


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    SECONDS[report.nodeid] += report.duration


def pytest_sessionfinish() -> None:
    seen = {"seconds": SECONDS, "sharing": sorted(SHARING)}
    Path(os.environ["EXPBENCH_TESTS_SEEN"]).write_text(json.dumps(seen), encoding="utf-8")
