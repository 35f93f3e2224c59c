"""What may run side by side (`pytest -n 2 --dist loadgroup`): tests of a file, or of a folder that shares costly set-up."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parent
SHARED = (
    "flows/orchestration", "pipeline/sandbox", "evaluation/families", "evaluation/integrity", "evaluation/judges",
    "evaluation/report",
)  # fmt: skip
LONGEST_FIRST = ("flows/orchestration", "flows/test_curate.py", "flows/test_leak_independent.py", "pipeline/sandbox")
"""Minutes each: what starts last must not be what takes longest."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    groups = {item: group_of(item.path.relative_to(ROOT).as_posix()) for item in items}
    for item, group in groups.items():
        item.add_marker(pytest.mark.xdist_group(group))
    rank = {group: number for number, group in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: rank.get(groups[item], len(rank)))


def group_of(path: str) -> str:
    return next((folder for folder in SHARED if path.startswith(f"{folder}/")), path)
