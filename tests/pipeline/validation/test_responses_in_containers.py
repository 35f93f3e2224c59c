"""What is learnt of a chain that really runs: its bands from other random streams, and how its numbers answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.digests import file_digest
from pipeline.progress import SilentReporter
from pipeline.repository import RepositoryFile, RepositoryRef, Snapshot
from pipeline.sandbox import BuildSpec, Limits
from pipeline.sandbox.docker import DockerSandbox
from pipeline.task import Band, Expected, NumericClaim, SourceScript, Usage
from pipeline.validation.responses import learn_responses
from pipeline.witness.records import Perturbation
from tests.pipeline.validation.test_responses import _task

pytestmark = pytest.mark.docker

PROGRAM = """\
import random

SEED = 7


def sample(n):
    return [random.gauss(5.0, 1.0) for _ in range(n)]


random.seed(SEED)
values = sample(400)
print(f"mean error = {sum(abs(value - 5.0) for value in values) / len(values):.4f}")
"""


def test_bands_and_responses_of_a_chain(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "run.py").write_text(PROGRAM, encoding="utf-8")
    file = RepositoryFile(path="run.py", size=len(PROGRAM), sha256=file_digest(tree / "run.py"))
    snapshot = Snapshot(ref=RepositoryRef(url="u", commit="0" * 40), root=tree, files=(file,))
    claim = NumericClaim(
        id="c1", metric="mean error", value=0.8, text="0.80", decimals=2,
        band=Band(low=0.7, high=0.9, source="printed precision"),
    )  # fmt: skip
    task = _task(claim)
    truth = task.truth.evolve(
        sources=(SourceScript(path="run.py", role="entry", score=1.0),), usage=(Usage(argv=("python", "run.py")),),
        expected=Expected(text="-", claims=(claim,)),
    )  # fmt: skip
    sandbox = DockerSandbox()
    image = sandbox.build(BuildSpec(), log=tmp_path / "log", owner="tests-responses", reporter=SilentReporter())
    found = learn_responses(
        task.evolve(truth=truth), snapshot=snapshot, image=image, sandbox=sandbox, seeds=3, out=tmp_path / "out",
        owner="tests-responses", limits=Limits(wall_s=60, cpus=1, memory_mb=512, disk_mb=64), reporter=SilentReporter(),
    )  # fmt: skip
    band = found.truth.expected.claims[0].band
    assert band.source == "seeds (n=4)"
    assert len(set(band.observed)) == 4
    assert band.deviation is not None
    assert 0.001 < band.deviation < 0.1
    assert {(item.path, item.name) for item in found.truth.ran} == {("run.py", "<module>"), ("run.py", "sample")}
    assert found.truth.seeds == ("7",)
    answers = {response.perturbation: dict(response.values) for response in found.truth.responses}
    assert answers[Perturbation.MUTED]["c1"] == 0.0
    assert answers[Perturbation.MOVED]["c1"] != band.observed[0]
    assert Perturbation.PERMUTED not in answers  # it has neither labels nor data files
