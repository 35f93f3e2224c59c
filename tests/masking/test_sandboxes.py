"""The round trip, and looking into an environment, in the real Docker sandbox."""

from __future__ import annotations

from pathlib import Path

import pytest

from masking.apply import apply_mask
from masking.environments import EnvironmentFindings, scan_environment
from masking.numbers import BLOCKING
from masking.plan import plan_mask
from masking.roundtrip import round_trip
from pipeline.progress import SilentReporter
from pipeline.sandbox.base import BuildSpec, Command, Image, RunSpec
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


@pytest.mark.docker
def test_what_is_planted_in_an_image_is_found(tmp_path: Path) -> None:
    """Another distribution brings the masked script, and a variable states the answer."""
    import docker

    sandbox = DockerSandbox()
    owner = "test-masking-environment"
    clean = sandbox.build(BuildSpec(), log=tmp_path / "build.log", owner=owner, reporter=SilentReporter())
    snapshot = builders.make(tmp_path / "original")
    task = builders.task()
    plan = plan_mask(task, snapshot)

    def look(image: Image, name: str) -> EnvironmentFindings:
        return scan_environment(
            task, snapshot=snapshot, plan=plan, image=image, sandbox=sandbox, out=tmp_path / name, owner=owner
        )

    assert [hit for hit in look(clean, "clean").hits if hit.score >= BLOCKING] == []
    client = docker.from_env()
    stated = f"EXPECTED_MSE_SHRUNK={builders.claims()[1].text}"
    code = "import sysconfig, pathlib; p = pathlib.Path(sysconfig.get_path('purelib'), 'other'); p.mkdir(); "
    code += f"(p / 'run_experiment.py').write_text({builders.RUN!r})"
    labels = {"expbench": "1", "expbench.owner": owner}
    container = client.containers.create(
        clean.digest, ["python", "-c", code], labels=labels, network_mode="none", user="0:0"
    )
    try:
        container.start()
        assert container.wait()["StatusCode"] == 0, container.logs()
        made = container.commit(repository="expbench/test", tag="planted", changes=f"ENV {stated}")
    finally:
        container.remove(force=True)
    try:
        found = look(Image(reference="planted", digest=str(made.id), spec_digest=clean.spec_digest), "planted")
        places = {hit.where.partition(":")[0] for hit in found.hits if hit.score >= BLOCKING}
        assert places == {"environment", "image"}, found.hits
        assert found.checks == ["installed_files", "image_configuration"]
    finally:
        client.images.remove(str(made.id), force=True)
        client.close()
