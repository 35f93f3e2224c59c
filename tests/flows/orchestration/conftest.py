from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """One server and one worker for all tests of the session: a server takes 20 to 33 s to start."""
    from tests.flows.orchestration.machine import started

    with started(tmp_path_factory.mktemp("machine")) as running:
        yield running
