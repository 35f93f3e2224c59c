"""What only the Docker back end does: images, labels, what is left in layers, engines that are missing."""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.progress import SilentReporter
from pipeline.sandbox import BuildSpec, Command, Image, Limits, RunSpec, open_sandbox
from pipeline.sandbox.docker import DockerSandbox
from pipeline.sandbox.images import BaseRecipe, base_image


def docker(*argv: str) -> str:
    return subprocess.run(["docker", *argv], capture_output=True, text=True, check=True).stdout.strip()


def build(spec: BuildSpec, tmp_path: Path, owner: str = "tests") -> Image:
    return DockerSandbox().build(spec, log=tmp_path / "build.log", owner=owner, reporter=SilentReporter())


def test_missing_engine_is_told_with_the_next_step(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
    status = DockerSandbox().status()
    assert not status.available
    with pytest.raises(ExpbenchError) as caught:
        open_sandbox("docker")
    assert caught.value.kind is FailureKind.SANDBOX_UNAVAILABLE
    assert "--sandbox process" in caught.value.next_step
    assert "docker.io" in caught.value.next_step
    assert open_sandbox(None).name == "process"


def test_recipe_names_its_image_by_content() -> None:
    assert BaseRecipe().reference == BaseRecipe().reference
    assert BaseRecipe().reference != BaseRecipe(suite="trixie").reference
    assert ":latest" not in BaseRecipe().reference


@pytest.mark.docker
def test_base_is_found_again_and_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    first = base_image()
    assert base_image().origin == "present"
    assert base_image().digest == first.digest
    monkeypatch.setenv("EXPBENCH_BASE_IMAGE", first.digest)
    assert (base_image().origin, base_image().digest) == ("configured", first.digest)
    monkeypatch.setenv("EXPBENCH_BASE_IMAGE", "expbench/none:at-all")
    with pytest.raises(ExpbenchError, match="EXPBENCH_BASE_IMAGE"):
        base_image()


@pytest.fixture
def odd_spec() -> Iterator[BuildSpec]:
    """A spec that nobody has built before; its image goes away again."""
    yield (spec := BuildSpec(system_packages=(), packages=("six==1.16.0", f"six=={'1.16.0'}")))
    for name in docker("image", "ls", "--quiet", "--filter", f"label=expbench.spec={spec.digest}").split():
        docker("image", "rm", "--force", name)


def _build_in_process(spec: str, folder: str, name: str) -> str:
    image = DockerSandbox().build(
        BuildSpec.model_validate_json(spec), log=Path(folder) / name, owner="tests", reporter=SilentReporter()
    )
    return image.digest


@pytest.mark.docker
def test_environment_holds_packages_and_no_secrets_and_is_built_once(
    odd_spec: BuildSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Volumes of the build once came back in every run as writable places on the engine's disk."""
    monkeypatch.setenv("OPENAI_API_KEY", "secret-of-the-host")
    arguments = [(odd_spec.model_dump_json(), str(tmp_path), f"{n}.log") for n in range(2)]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        digests = pool.starmap(_build_in_process, arguments)
        pool.close()
        pool.join()
    assert len(set(digests)) == 1
    assert len(list(tmp_path.glob("*.log"))) == 1
    configuration = json.loads(docker("image", "inspect", digests[0]))[0]["Config"]
    assert configuration["User"] == "1000:1000"
    assert not configuration["Volumes"]
    assert {entry.partition("=")[0] for entry in configuration["Env"]} == {"PATH", "VIRTUAL_ENV"}
    assert configuration["Labels"]["expbench"] == "1"
    (tmp_path / "tree").mkdir()
    code = (
        "import six, os; print(six.__version__); print(os.listdir('/run/expbench'), os.access(six.__file__, os.W_OK))"
    )
    image = Image(reference="x", digest=digests[0], spec_digest=odd_spec.digest)
    spec = RunSpec(commands=(Command(argv=("python", "-c", code)),), limits=Limits(memory_mb=128, disk_mb=16))
    result = DockerSandbox().run(image, tmp_path / "tree", spec, out=tmp_path / "out", owner="tests")
    assert result.failure is None, result.message
    assert (tmp_path / "out/0.stdout").read_text() == "1.16.0\n[] False\n"


@pytest.mark.docker
def test_package_that_does_not_exist_is_named(tmp_path: Path) -> None:
    owner = f"test-{uuid.uuid4().hex[:8]}"
    with pytest.raises(ExpbenchError) as caught:
        build(BuildSpec(packages=("six==99.99",)), tmp_path, owner)
    assert caught.value.kind is FailureKind.ENVIRONMENT_UNBUILDABLE
    assert "six==99.99" in caught.value.cause
    assert str(tmp_path / "build.log") in caught.value.next_step
    assert docker("ps", "--all", "--quiet", "--filter", f"label=expbench.owner={owner}") == ""


@pytest.mark.docker
def test_index_that_cannot_be_reached_is_a_network_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.sandbox.images._PAUSE_S", 0.0)
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    with pytest.raises(ExpbenchError) as caught:
        build(BuildSpec(packages=("six==99.98",)), tmp_path)
    assert caught.value.kind is FailureKind.NETWORK


@pytest.mark.docker
def test_system_package_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(ExpbenchError) as caught:
        build(BuildSpec(system_packages=("no-such-package-at-all",)), tmp_path)
    assert caught.value.kind is FailureKind.ENVIRONMENT_UNBUILDABLE
    assert "no-such-package-at-all" in caught.value.cause


@pytest.mark.docker
def test_reap_takes_only_what_is_of_this_owner() -> None:
    owner, other = (f"test-{uuid.uuid4().hex[:12]}" for _ in range(2))
    base = base_image().digest
    carried = {
        "ours": {"expbench": "1", "expbench.owner": owner, "expbench.kind": "container"},
        "of another owner": {"expbench": "1", "expbench.owner": other, "expbench.kind": "container"},
        "without our label": {"expbench": "0", "expbench.owner": owner},
        "started by hand from our image": {"expbench": "1", "expbench.owner": owner, "expbench.kind": "image"},
    }
    made = {
        name: docker("create", *(f"--label={key}={value}" for key, value in labels.items()), base, "true")
        for name, labels in carried.items()
    }
    try:
        assert DockerSandbox().reap(owner) == 1
        left = docker("ps", "--all", "--quiet", "--no-trunc").split()
        assert [name for name, found in made.items() if found in left] == list(carried)[1:]
        assert DockerSandbox().reap(owner) == 0
    finally:
        for found in made.values():
            subprocess.run(["docker", "rm", "--force", found], capture_output=True, check=False)


@pytest.mark.docker
def test_container_is_shut_in(tmp_path: Path) -> None:
    """Seen from outside, while it runs."""
    owner = f"test-{uuid.uuid4().hex[:12]}"
    image = build(BuildSpec(), tmp_path)
    (tmp_path / "tree").mkdir()
    code = """
import subprocess, sys
print(subprocess.run(["ls", "/"], capture_output=True, text=True).stdout, flush=True)
sys.stdin.read()
import time; time.sleep(3600)
"""
    client = f"""
from pathlib import Path
from pipeline.sandbox import Command, Image, Limits, RunSpec
from pipeline.sandbox.docker import DockerSandbox
spec = RunSpec(commands=(Command(argv=("python", "-c", {code!r})),), limits=Limits(memory_mb=128, disk_mb=16, pids=32))
image = Image.model_validate_json({image.model_dump_json()!r})
DockerSandbox().run(image, Path({str(tmp_path / "tree")!r}), spec, out=Path({str(tmp_path / "out")!r}), owner={owner!r})
"""
    from tests.pipeline.sandbox.test_contract import wait_until

    with subprocess.Popen([sys.executable, "-c", client], cwd=Path(__file__).parents[3]) as process:
        try:
            wait_until((tmp_path / "out/0.stdout").exists)
            container = docker("ps", "--quiet", "--filter", f"label=expbench.owner={owner}")
            found = json.loads(docker("inspect", container))[0]
        finally:
            process.kill()
    host = found["HostConfig"]
    assert host["NetworkMode"] == "none"
    assert host["ReadonlyRootfs"] is True
    assert host["Privileged"] is False
    assert host["CapDrop"] == ["ALL"]
    assert {name.removeprefix("CAP_") for name in host["CapAdd"]} == {"KILL", "SETGID", "SETUID"}
    assert host["SecurityOpt"] == ["no-new-privileges"]
    assert host["PidsLimit"] <= 40
    assert host["Memory"] == host["MemorySwap"] <= 300 << 20
    assert host["NanoCpus"] > 0
    assert not host["Binds"]
    assert found["Mounts"] == []
