"""Both back ends behind one fixture; the environment is the empty one, so that nothing is downloaded."""

from __future__ import annotations

import contextlib
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipeline.progress import SilentReporter
from pipeline.sandbox import BuildSpec, Command, Image, Limits, RunResult, RunSpec, Sandbox, open_sandbox
from pipeline.sandbox._isolation import Isolation
from pipeline.sandbox._users import FIRST_UID, SLOTS
from pipeline.sandbox.process import ProcessSandbox

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


BARE = Isolation(False, "not permitted (a test says so)")
"""A machine that permits no namespaces, as an ordinary container is one."""


def opened(kind: str) -> Sandbox:
    """`process`, `process-bare` (without namespaces) or `docker`."""
    if kind == "process-bare":
        return ProcessSandbox(BARE)
    return open_sandbox("docker" if kind == "docker" else "process")


@pytest.fixture(scope="session", params=["process", "process-bare", pytest.param("docker", marks=pytest.mark.docker)])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def sandbox(kind: str, shared_cache: Path) -> Sandbox:
    return opened(kind)


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
    if isinstance(sandbox, ProcessSandbox) and not sandbox.held.namespaces:
        pytest.skip(f"no namespaces here: {sandbox.held.reason}")


class Most:
    """The highest number that was seen."""

    most = 0


SLACK = 8


@contextlib.contextmanager
def most_tasks(of: Callable[[int], bool] = lambda uid: FIRST_UID <= uid < FIRST_UID + SLOTS) -> Iterator[Most]:
    """How many tasks one of some uids had at once at most, sampled all the while on this machine's /proc.

    By default of the process sandbox's own users, each counted by itself: other runs at the same time do not disturb.
    A sample may miss the peak. It may also see a few too many (`SLACK`): /proc is read one entry after another, and a
    task that was counted can end and make room for one that is counted too (49 of 48 were seen three times).
    """
    seen, stop = Most(), threading.Event()

    def sample() -> None:
        while not stop.is_set():
            per_uid: dict[int, int] = {}
            for process in Path("/proc").iterdir():  # no glob: it fails with ESRCH on a process that ends meanwhile
                with contextlib.suppress(OSError, ValueError, KeyError):
                    status = (process / "status").read_text(errors="replace") if process.name.isdecimal() else ""
                    fields = dict(line.split(":", 1) for line in status.splitlines())
                    uid = int(fields["Uid"].split()[0])
                    if of(uid):
                        per_uid[uid] = per_uid.get(uid, 0) + int(fields["Threads"])
            seen.most = max([seen.most, *per_uid.values()])
            stop.wait(0.02)

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        yield seen
    finally:
        stop.set()
        sampler.join()
