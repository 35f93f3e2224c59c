"""What may run side by side (`pytest -n 2 --dist loadfile`): the tests of a file, or of a folder that shares set-up.

pytest-xdist's own `--dist loadgroup` does not group under pytest 9 (it looks for a suffix of the test's name that is no
longer there), so that the scheduler is asked directly.
"""

import os
from pathlib import PurePosixPath
from typing import Any

import pytest

# Eight more runs of each task that a test curates would double the time of all; `test_responses_in_containers.py` makes them
os.environ.setdefault("EXPBENCH_SEEDS", "0")
# Running a repository's commands before drafting takes minutes, too; `tests/flows/test_run_first.py` does it
os.environ.setdefault("EXPBENCH_REHEARSAL_S", "0")

SHARED = (
    "tests/flows/orchestration", "tests/pipeline/sandbox", "tests/evaluation/families", "tests/evaluation/integrity",
    "tests/evaluation/judges", "tests/evaluation/report",
)  # fmt: skip
LONGEST_FIRST = (
    "tests/flows/orchestration",
    "tests/flows/test_curate.py",
    "tests/flows/test_leak_independent.py",
    "tests/pipeline/sandbox",
)
"""Minutes each: what starts last must not be what takes longest."""


def group_of(node_id: str) -> str:
    """The tests that stay together, in one process and one after another: a folder or a file."""
    file = node_id.split("::", 1)[0]
    return next((folder for folder in SHARED if PurePosixPath(file).is_relative_to(folder)), file)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    rank = {group: number for number, group in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: rank.get(group_of(item.nodeid), len(rank)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    return ByGroup(config, log)
