"""Both back ends behind one fixture; the environment is the empty one, so that nothing is downloaded."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipeline.progress import SilentReporter
from pipeline.sandbox import BuildSpec, Command, Image, Limits, RunResult, RunSpec, Sandbox, open_sandbox
from pipeline.sandbox._isolation import isolation

SMALL = Limits(wall_s=60, cpus=1, memory_mb=256, pids=64, disk_mb=64, output_mb=1)


@pytest.fixture(scope="session")
def shared_cache() -> Iterator[Path]:
    """A cache of this test session; the user's stays as it is.

    Not below pytest's own directory: root's commands become another user, who must be able to walk to the environment,
    and every pytest that starts closes that directory again.
    """
    with tempfile.TemporaryDirectory(prefix="expbench-tests-") as name, pytest.MonkeyPatch.context() as patch:
        Path(name).chmod(0o755)
        patch.setenv("XDG_CACHE_HOME", name)
        yield Path(name)


@pytest.fixture(scope="session", params=["process", pytest.param("docker", marks=pytest.mark.docker)])
def sandbox(request: pytest.FixtureRequest, shared_cache: Path) -> Sandbox:
    return open_sandbox(request.param)


@pytest.fixture(scope="session")
def image(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Image:
    log = tmp_path_factory.mktemp("build") / "build.log"
    return sandbox.build(BuildSpec(), log=log, owner="tests", reporter=SilentReporter())


@pytest.fixture
def owner() -> str:
    return f"test-{uuid.uuid4().hex[:12]}"


Runner = Callable[..., RunResult]


@pytest.fixture
def run(sandbox: Sandbox, image: Image, tmp_path: Path, owner: str) -> Runner:
    """Run Python texts one after another in an otherwise empty tree (or one that the test filled)."""
    tree, out = tmp_path / "tree", tmp_path / "out"
    tree.mkdir()

    def go(*scripts: str, limits: Limits = SMALL, keep: tuple[str, ...] = (), **env: str) -> RunResult:
        commands = []
        for index, script in enumerate(scripts):
            (tree / f"script{index}.py").write_text(script, encoding="utf-8")
            commands.append(Command(argv=("python", f"script{index}.py")))
        spec = RunSpec(commands=tuple(commands), limits=limits, keep=keep, env=env)
        return sandbox.run(image, tree, spec, out=out, owner=owner)

    return go


@pytest.fixture
def isolated(sandbox: Sandbox) -> None:
    """Only where the back end can keep a run away from the machine."""
    if sandbox.name == "process" and not isolation().namespaces:
        pytest.skip(f"no namespaces here: {isolation().reason}")
