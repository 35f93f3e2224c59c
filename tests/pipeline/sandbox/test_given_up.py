"""What the Docker back end does when somebody gives up, and what it asks the engine for where GPUs are wanted."""

from __future__ import annotations

import threading
import time
import uuid
from pathlib import Path

import pytest

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.progress import SilentReporter
from pipeline.sandbox import BuildSpec, Command, Gpus, RunSpec, StopHandle, StoppableSandbox, open_sandbox
from pipeline.sandbox._engine import connection
from pipeline.sandbox._locks import locked
from pipeline.sandbox.docker import _settings


@pytest.mark.docker
def test_a_build_that_is_given_up_leaves_nothing(tmp_path: Path) -> None:
    """Ctrl-C during a build of minutes: its container is removed at once, and there is no image of it."""
    sandbox = open_sandbox("docker")
    assert isinstance(sandbox, StoppableSandbox)
    owner, stop = f"abort-{uuid.uuid4().hex[:8]}", StopHandle()
    spec = BuildSpec(packages=("astropy==6.1.0", "scipy==1.13.0", "sympy==1.12.1"))  # never built to its end
    wanted = {"label": f"expbench.owner={owner}"}

    def give_up() -> None:
        with connection() as client:
            deadline = time.monotonic() + 120
            while time.monotonic() < deadline and not (tmp_path / "log").exists():
                time.sleep(0.05)
            while time.monotonic() < deadline and not client.containers.list(filters=wanted):
                time.sleep(0.05)
        stop.abort("interrupted")

    watcher = threading.Thread(target=give_up)
    watcher.start()
    warned: list[str] = []
    reporter = SilentReporter()
    reporter.warn = warned.append  # type: ignore[method-assign]
    with pytest.raises(ExpbenchError, match="given up: interrupted") as caught:
        sandbox.build(spec, log=tmp_path / "log", owner=owner, reporter=reporter, stop=stop)
    watcher.join()
    assert caught.value.kind is FailureKind.INTERRUPTED
    assert warned == [], "it is not tried again"
    with connection() as client:
        assert client.containers.list(all=True, filters=wanted) == []
        assert client.images.list(filters=wanted) == []
    assert not sandbox.reap(owner)


def test_who_waits_for_another_ones_build_can_give_up(shared_cache: Path) -> None:
    def impatient() -> None:
        raise TimeoutError

    with locked("waiting"), pytest.raises(TimeoutError), locked("waiting", impatient):
        pass


@pytest.mark.docker
@pytest.mark.parametrize(
    ("wanted", "asked"),
    [
        (Gpus(count=2), {"Count": 2, "DeviceIDs": []}),
        (Gpus(count=1, type="a40"), {"Count": 0, "DeviceIDs": ["1"]}),
        (Gpus(count=2, memory_mb=40_000), {"Count": 0, "DeviceIDs": ["1", "2"]}),
    ],
)
def test_the_engine_is_asked_for_the_gpus(
    wanted: Gpus, asked: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The container as the engine made it, not started: there is no GPU to start it with."""
    driver = tmp_path / "nvidia-smi"
    driver.write_text("#!/bin/sh\nprintf '0, NVIDIA T4, 15360\\n1, NVIDIA A40, 46068\\n2, NVIDIA A100, 81920\\n'\n")
    driver.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    image = open_sandbox("docker").build(BuildSpec(), log=tmp_path / "log", owner="tests", reporter=SilentReporter())
    spec = RunSpec(commands=(Command(argv=("true",)),), gpus=wanted)
    with connection() as client:
        container = client.containers.create(**_settings(image, "/usr/bin/python3", spec, "tests", 1.0))
        try:
            [request] = client.api.inspect_container(container.id)["HostConfig"]["DeviceRequests"]
        finally:
            container.remove(force=True)
    assert request == {"Driver": "", "Capabilities": [["gpu", "compute", "utility"]], "Options": {}} | asked
