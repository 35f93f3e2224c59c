"""What place and shape of a file say before any task is known: is it run, a test, set-up, other people's work.

Non-goal: which of those that can be run is meant (see `ranking`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pipeline.locator.facts import FileFacts

__all__ = ["Place", "acts", "find_places"]

_TESTS = re.compile(r"(?:^|/)(?:tests?|testing|unit_tests|functional_tests)/|(?:^|/)conftest\.py$")
_TEST_NAME = re.compile(r"(?:^|/)test_[^/]*\.py$|_test\.py$")
_TEST_TOOLS = frozenset({"pytest", "unittest", "absltest", "testing", "nose"})
_SETUP = re.compile(
    r"(?:^|/)(?:setup|conf|versioneer|_?version|noxfile|fabfile|manage|hubconf)\.py$|(?:^|/)docs?/(?:source|build)/|"
    r"(?:^|/)(?:install|build|setup)[\w-]*\.sh$|(?:^|/)(?:download|fetch|get_data|wget)[\w-]*\.(?:py|sh)$",
    re.I,
)


class Place(NamedTuple):
    """One file."""

    runs: bool
    """Running it does something, and it is there to be run: other files do not only import it."""
    test: bool
    setup: bool
    package_file: bool
    """A package's `__init__`."""
    vendored: bool
    """Brought along from elsewhere, or written by a program."""

    @property
    def aside(self) -> bool:
        """Is it beside the paper's own experiments?"""
        return self.test or self.setup or self.package_file or self.vendored


def find_places(facts: Sequence[FileFacts], imports: Mapping[str, set[str]]) -> list[Place]:
    """The place of each file.

    Args:
        facts: the files.
        imports: path -> paths that it imports.
    """
    imported = Counter(path for targets in imports.values() for path in targets)
    return [
        Place(
            runs=_is_run(item, imported[item.path] > 0),
            test=_is_test(item),
            setup=bool(_SETUP.search(item.path)) or item.file.tooling,
            package_file=item.path.endswith("__init__.py"),
            vendored=item.file.vendored or item.generated,
        )
        for item in facts
    ]


def acts(item: FileFacts) -> bool:
    """Does running the file do anything? A module that only defines things, or assigns settings, does not."""
    if item.file.kind in {"shell", "notebook", "make"}:
        return True
    return item.main or bool(item.hydra) or ((item.acts or item.cli) and not item.settings)


def _is_run(item: FileFacts, imported: bool) -> bool:
    return item.file.kind != "make" and acts(item) and (not imported or item.main or bool(item.hydra))


def _is_test(item: FileFacts) -> bool:
    """Does it test code? A name alone does not say so: `add_test.py` may evaluate a model on the adding problem."""
    if _TESTS.search(item.path):
        return True
    if not _TEST_NAME.search(item.path):
        return False
    if any(_TEST_TOOLS & {*statement.module.split("."), *statement.names} for statement in item.imports):
        return True
    return not item.cli and any(name.startswith(("test", "Test")) for name in item.definitions)
