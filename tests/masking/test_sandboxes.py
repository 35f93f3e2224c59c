"""The round trip in the real Docker sandbox."""

from __future__ import annotations

from pathlib import Path

import pytest

from masking.apply import apply_mask
from masking.plan import plan_mask
from masking.roundtrip import round_trip
from pipeline.progress import SilentReporter
from pipeline.sandbox.base import BuildSpec, Command, RunSpec
from pipeline.sandbox.docker import DockerSandbox
from pipeline.task import Verdict
from tests.masking import builders
from tests.masking.test_roundtrip import judge, validated


@pytest.mark.docker
def test_round_trip_in_a_container(tmp_path: Path) -> None:
    sandbox = DockerSandbox()
    status = sandbox.status()
    if not status.available:
        pytest.skip(status.detail)
    owner = "test-masking-round-trip"
    image = sandbox.build(BuildSpec(), log=tmp_path / "build.log", owner=owner, reporter=SilentReporter())
    snapshot = builders.make(tmp_path / "original", {"all.sh": b"set -e\npython run_experiment.py\n"})
    task = validated(builders.task())
    plan = plan_mask(task, snapshot)
    masked = apply_mask(snapshot, plan, tmp_path / "masked")
    for argv in (builders.COMMAND, ("sh", "all.sh")):
        result = round_trip(
            task, masked=masked.path, snapshot=snapshot, plan=plan, image=image, sandbox=sandbox,
            spec=RunSpec(commands=(Command(argv=argv),)), judge=judge, out=tmp_path / argv[0], owner=owner,
        )  # fmt: skip
        assert result.verdict is Verdict.PASS, result
        assert result.masked_failure.startswith("run_experiment.py: no such file (masked)")
    assert sandbox.reap(owner) == 0
