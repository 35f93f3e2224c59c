"""What only the process sandbox does: announce what does not hold, keep environments, work without namespaces."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path

import pytest

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.progress import SilentReporter
from pipeline.sandbox import BuildSpec, Command, Image, Limits, RunResult, RunSpec, _hostpython
from pipeline.sandbox._isolation import _can_hide, _outermost
from pipeline.sandbox._locks import cache_directory
from pipeline.sandbox.process import ProcessSandbox
from pipeline.schema import Severity
from tests.pipeline.sandbox.conftest import BARE
from tests.pipeline.sandbox.test_contract import processes_with

LIMITS = Limits(wall_s=60, cpus=1, memory_mb=256, pids=48, disk_mb=32, output_mb=1)


@pytest.fixture
def bare(shared_cache: Path) -> ProcessSandbox:
    """A machine that permits no namespaces."""
    return ProcessSandbox(BARE)


def build(tmp_path: Path, spec: BuildSpec | None = None) -> Image:
    return ProcessSandbox().build(
        spec or BuildSpec(), log=tmp_path / "build.log", owner="tests", reporter=SilentReporter()
    )


def run(sandbox: ProcessSandbox, tmp_path: Path, script: str, limits: Limits = LIMITS, owner: str = "t") -> RunResult:
    tree = tmp_path / "tree"
    tree.mkdir(exist_ok=True)
    argv = ("python", "-c", textwrap.dedent(script))
    return sandbox.run(
        build(tmp_path), tree, RunSpec(commands=(Command(argv=argv),), limits=limits), out=tmp_path / "out", owner=owner
    )


def test_says_in_each_result_what_it_does_not_hold(bare: ProcessSandbox, tmp_path: Path) -> None:
    result = run(bare, tmp_path, "print('ran'); open('made', 'w').write('x')")
    assert result.failure is None, result.message
    assert [produced.path for produced in result.produced] == ["made"]
    told = [problem for problem in result.problems if problem.severity is Severity.ERROR]
    assert any("network not isolated" in problem.message for problem in told)
    assert any("files of this machine" in problem.message for problem in told)
    assert "NOT isolated" in bare.status().detail


def test_strays_end_without_namespaces(bare: ProcessSandbox, tmp_path: Path) -> None:
    mark = f"stray-{os.getpid()}"
    script = f"""
    import subprocess
    subprocess.Popen(['setsid', 'sh', '-c', '(trap "" TERM HUP; sleep 3600; echo {mark}) &'])
    """
    assert run(bare, tmp_path, script).failure is None
    assert processes_with(mark) == []
    assert not list((cache_directory() / "runs").iterdir())


def test_reap_removes_directories_of_this_owner_only(bare: ProcessSandbox) -> None:
    runs = cache_directory() / "runs"
    for owner in ("mine", "yours"):
        (runs / owner).mkdir(parents=True)
        (runs / owner / "expbench-run.json").write_text(f'{{"owner": "{owner}"}}')
    assert bare.reap("mine") == 1
    assert [path.name for path in runs.iterdir()] == ["yours"]
    assert bare.reap("yours") == 1


def test_environment_is_kept_and_has_no_traces_of_its_building(shared_cache: Path, tmp_path: Path) -> None:
    image = build(tmp_path)
    folder = _hostpython.environment_directory(image)
    stamp = folder.stat().st_mtime_ns
    assert build(tmp_path) == image
    assert folder.stat().st_mtime_ns == stamp
    assert not [path for path in folder.parent.iterdir() if path.name.startswith(".")]
    if os.geteuid() == 0:
        assert {path.lstat().st_uid for path in folder.rglob("*")} == {0}


def test_missing_interpreter_and_missing_system_package_are_told(
    shared_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ExpbenchError) as caught:
        build(tmp_path, BuildSpec(system_packages=("no-such-package-at-all",)))
    assert caught.value.kind is FailureKind.ENVIRONMENT_UNBUILDABLE
    assert "apt install no-such-package-at-all" in caught.value.next_step
    monkeypatch.setattr(_hostpython, "_PAUSE_S", 0.0)
    monkeypatch.setenv("UV_OFFLINE", "1")
    with pytest.raises(ExpbenchError) as caught:
        build(tmp_path, BuildSpec(python="3.99"))
    assert caught.value.kind in {FailureKind.ENVIRONMENT_UNBUILDABLE, FailureKind.NETWORK}
    assert "3.99" in str(caught.value)


def test_index_that_cannot_be_reached(shared_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_hostpython, "_PAUSE_S", 0.0)
    for name in ("PIP_FIND_LINKS", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    with pytest.raises(ExpbenchError) as caught:
        build(tmp_path, BuildSpec(packages=("expbench-no-such-package==1.0",)))
    assert caught.value.kind is FailureKind.NETWORK
    assert str(tmp_path / "build.log") in caught.value.next_step


@pytest.mark.parametrize(
    ("path", "hidden"), [("/", False), ("/usr", False), ("/var", False), ("/home/someone", True), ("/srv/data", True)]
)
def test_nothing_that_the_system_needs_is_hidden(path: str, hidden: bool) -> None:
    assert _can_hide(Path(path)) is hidden


def test_what_is_below_something_hidden_is_not_hidden_again() -> None:
    """`/tmp` itself was once among the directories to hide, and became read-only."""
    assert _outermost(["/home", "/home/a", "/tmp", "/tmp/x", "/data"]) == ["/data", "/home"]
