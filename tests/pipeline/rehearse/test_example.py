"""Commands rehearsed in containers: with the witness, files where their author had them, and what they download."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.data.phase import DataPhase
from pipeline.locator import RepositoryIndex, build_index
from pipeline.progress import SilentReporter
from pipeline.rehearse import Rehearsal, read_rehearsal, rehearse
from pipeline.sandbox.base import Limits
from pipeline.sandbox.docker import DockerSandbox
from pipeline.settings import Settings
from pipeline.store import Workspace
from pipeline.survey import list_candidates
from pipeline.validation.environments import Environments
from tests.pipeline.data.data_host import Page, serve_data_host
from tests.pipeline.survey.test_commands import PAPER
from tests.pipeline.validation.support import make_snapshot

pytestmark = pytest.mark.docker


LIMITS = Limits(memory_mb=1024, disk_mb=256)
DOWNLOADS = """import urllib.request
text = urllib.request.urlopen('http://download.pytorch.org/models/score.txt').read().decode()
print('score =', float(text))
"""
ELSEWHERE = """
mean = float(open('/home/somebody/project/data/mean.txt').read())
print('mean =', mean)
open('/home/somebody/project/twice.txt', 'w').write(f'twice = {2 * mean}')
"""


def rehearsed(
    root: Path, index: RepositoryIndex, first: int = 9, data: DataPhase | None = None
) -> tuple[Rehearsal, ...]:
    """The first candidates of a repository, run with what is kept below `root`."""
    sandbox = DockerSandbox()
    environments = Environments(Workspace(root / "ws"), Settings(), sandbox, index.snapshot, SilentReporter())
    return rehearse(
        list_candidates(index, PAPER)[:first], index=index, environments=environments, sandbox=sandbox, limits=LIMITS,
        out=root / "out", cache=root / "cache", owner="tests-rehearse", data=data,
    )  # fmt: skip


def test_a_file_is_found_where_its_author_had_it_and_a_download_is_answered_offline(tmp_path: Path) -> None:
    files = {"elsewhere.py": ELSEWHERE, "scores.py": DOWNLOADS, "data/mean.txt": "0.625"}
    index = build_index(make_snapshot(tmp_path / "tree", files))
    with serve_data_host("download.pytorch.org") as host:
        host.pages["download.pytorch.org/models/score.txt"] = Page(b"0.375", "text/plain")
        found = rehearsed(tmp_path, index, data=DataPhase(tmp_path / "cache", upstream=host.upstream))
    by_entry = {item.candidate.entry: item for item in found}
    assert [item.failure for item in found] == [None, None]
    assert by_entry["elsewhere.py"].mapped == (("/home/somebody/project", "."),)
    assert by_entry["elsewhere.py"].writes == ("twice.txt",)
    assert [item.value for item in read_rehearsal(by_entry["elsewhere.py"])] == [0.625, 1.25]
    downloaded = by_entry["scores.py"].data
    assert downloaded is not None
    assert [file.size for file in downloaded.files] == [5]
    assert [item.value for item in read_rehearsal(by_entry["scores.py"])] == [0.375]
    assert rehearsed(tmp_path, index) == found  # without a network, from what is kept
