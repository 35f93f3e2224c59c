"""What agents' runs need of a sandbox: being ended from outside, removed files, mounts, an outbox, GPUs."""

from __future__ import annotations

import contextlib
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.sandbox import (
    Command,
    Gpus,
    Image,
    ReadOnlyMount,
    RunResult,
    RunSpec,
    Sandbox,
    StopHandle,
    StoppableSandbox,
)
from tests.pipeline.sandbox.conftest import SMALL, Runner


def spec_of(code: str, **changes: object) -> RunSpec:
    return RunSpec(commands=(Command(argv=("python", "-c", code)),), limits=SMALL).evolve(**changes)


@pytest.fixture
def stoppable(sandbox: Sandbox) -> StoppableSandbox:
    assert isinstance(sandbox, StoppableSandbox)
    return sandbox


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "given"
    (folder / "sub").mkdir(parents=True)
    for name in ("kept.txt", "gone.txt", "sub/gone.txt", "script.sh"):
        (folder / name).write_text(name)
    (folder / "link").symlink_to("kept.txt")
    return folder


def test_removed_files_and_changed_modes_are_told(run: Runner, tmp_path: Path) -> None:
    for name in ("kept.txt", "gone.txt", "script.sh", "cache/x.pyc"):
        path = tmp_path / "tree" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name)
    (tmp_path / "tree" / "link").symlink_to("kept.txt")
    result = run("import os; os.remove('gone.txt'); os.remove('link'); os.chmod('script.sh', 0o755); open('new', 'w')")
    assert result.removed == ("gone.txt", "link")
    assert [(item.path, item.executable) for item in result.produced] == [("new", False), ("script.sh", True)]


def test_what_is_dropped_is_neither_copied_out_nor_missed(
    stoppable: StoppableSandbox, image: Image, tree: Path, tmp_path: Path, owner: str
) -> None:
    code = "import os; os.remove('sub/gone.txt'); os.makedirs('a/__pycache__'); open('a/__pycache__/x.pyc', 'w'); open('b', 'w')"
    result = stoppable.run(
        image, tree, spec_of(code, drop=("**/__pycache__/*", "sub/*")), out=tmp_path / "out", owner=owner
    )
    assert [item.path for item in result.produced] == ["b"]
    assert result.removed == ()


def test_stopping_keeps_what_was_made(
    stoppable: StoppableSandbox, image: Image, tree: Path, tmp_path: Path, owner: str
) -> None:
    code = "import time; open('made', 'w').write('x'); print('ready', flush=True); time.sleep(600)"
    result = end_when_ready(stoppable, image, tree, spec_of(code), tmp_path / "out", owner, abort=False)
    assert isinstance(result, RunResult)
    assert result.failure is FailureKind.INTERRUPTED
    assert "the test says so" in result.message
    assert result.commands[0].exit_code is None
    assert (tmp_path / "out" / "files" / "made").read_text() == "x"
    assert (tmp_path / "out" / "0.stdout").read_text() == "ready\n"


def test_aborting_gives_the_run_up(
    stoppable: StoppableSandbox, image: Image, tree: Path, tmp_path: Path, owner: str
) -> None:
    code = "import time; print('ready', flush=True); time.sleep(600)"
    error = end_when_ready(stoppable, image, tree, spec_of(code), tmp_path / "out", owner, abort=True)
    assert isinstance(error, ExpbenchError)
    assert error.kind is FailureKind.INTERRUPTED
    assert stoppable.reap(owner) == 0


def end_when_ready(
    sandbox: StoppableSandbox, image: Image, tree: Path, spec: RunSpec, out: Path, owner: str, *, abort: bool
) -> RunResult | ExpbenchError:
    """End the run from here as soon as it has printed something, and give what it came to."""
    stop, outcome = StopHandle(), []

    def work() -> None:
        try:
            outcome.append(sandbox.run(image, tree, spec, out=out, owner=owner, stop=stop))
        except ExpbenchError as error:
            outcome.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    pause = threading.Event()
    printed = out / "0.stdout"
    while thread.is_alive() and not (printed.is_file() and printed.stat().st_size):
        pause.wait(0.02)  # the run's own wall limit ends this when it never prints
    (stop.abort if abort else stop.stop)("the test says so")
    thread.join()
    return outcome[0]


def test_a_handle_that_was_stopped_before_ends_the_run_at_once(
    stoppable: StoppableSandbox, image: Image, tree: Path, tmp_path: Path, owner: str
) -> None:
    stop = StopHandle()
    stop.stop("beforehand")
    stop.stop("too late to be the reason")
    result = stoppable.run(
        image, tree, spec_of("import time; time.sleep(600)"), out=tmp_path / "out", owner=owner, stop=stop
    )
    assert result.failure is FailureKind.INTERRUPTED
    assert "beforehand" in result.message


def test_what_needs_a_container_is_refused_without_one(
    kind: str, stoppable: StoppableSandbox, image: Image, tree: Path, tmp_path: Path, owner: str
) -> None:
    if kind == "docker":
        pytest.skip("containers have it")
    for changes, expected in (
        ({"mounts": (ReadOnlyMount(source=tmp_path, target="/x"),)}, FailureKind.SANDBOX_UNAVAILABLE),
        ({"outbox": "/outbox"}, FailureKind.SANDBOX_UNAVAILABLE),
        ({"links": (("/home/x", "."),)}, FailureKind.SANDBOX_UNAVAILABLE),
        ({"gpus": Gpus(count=1)}, FailureKind.GPU_UNAVAILABLE),
    ):
        with pytest.raises(ExpbenchError) as caught:
            stoppable.run(image, tree, spec_of("pass", **changes), out=tmp_path / "out", owner=owner)
        assert caught.value.kind is expected


@pytest.fixture
def served() -> Iterator[Path]:
    """A directory with a file and a socket that answers once."""
    with tempfile.TemporaryDirectory(prefix="mount-") as name, socket.socket(socket.AF_UNIX) as listener:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "file.txt").write_text("from outside")
        listener.bind(f"{name}/s")
        (folder / "s").chmod(0o666)
        listener.listen()

        def answer() -> None:
            connection, _ = listener.accept()
            with connection, contextlib.suppress(BrokenPipeError):  # of the one that only ends this thread
                connection.sendall(b"hello")

        thread = threading.Thread(target=answer)
        thread.start()
        yield folder
        with socket.socket(socket.AF_UNIX) as unasked:  # lets the thread end where nobody asked
            if thread.is_alive():
                unasked.connect(f"{name}/s")
        thread.join()


MOUNTED = """
import os, socket
print(open("/box/file.txt").read())
with socket.socket(socket.AF_UNIX) as s:
    s.connect("/box/s")
    print(s.recv(10).decode())
for path in ("/box/new", "/box/file.txt", "/new"):
    try:
        open(path, "w")
    except OSError as error:
        print(error.errno)
open("/outbox/log.txt", "w").write("logged")
os.symlink("/etc/passwd", "/outbox/link")
"""


def test_mounts_are_read_only_sockets_work_and_the_outbox_comes_out(
    kind: str, stoppable: StoppableSandbox, image: Image, tree: Path, tmp_path: Path, owner: str, served: Path
) -> None:
    if kind != "docker":
        pytest.skip("containers only")
    spec = spec_of(MOUNTED, mounts=(ReadOnlyMount(source=served, target="/box"),), outbox="/outbox")
    result = stoppable.run(image, tree, spec, out=tmp_path / "out", owner=owner)
    assert (tmp_path / "out" / "0.stdout").read_text().split() == ["from", "outside", "hello", "30", "30", "30"]
    assert [(item.path, item.size) for item in result.outbox] == [("log.txt", 6)]
    assert (tmp_path / "out" / "outbox" / "log.txt").read_text() == "logged"
    assert any("outbox: link" in problem.where for problem in result.problems)
    assert (result.produced, result.removed) == ((), ())
    assert sorted(path.name for path in served.iterdir()) == ["file.txt", "s"]


LINKED = """
import os
print(open("/home/somebody/study/in.txt").read())
open("/home/somebody/study/out.txt", "w").write("made")
print(open("/data/in.txt").read(), os.path.exists("/data/masked.txt"))
try:
    open("/data/new.txt", "w")
except OSError as error:
    print(error.errno)
"""


def test_what_programs_name_by_an_absolute_path_is_read_and_written_in_the_tree(
    kind: str, stoppable: StoppableSandbox, image: Image, tree: Path, tmp_path: Path, owner: str
) -> None:
    if kind != "docker":
        pytest.skip("containers only")
    (tree / "study").mkdir()
    (tree / "study" / "in.txt").write_text("of the tree")
    links = (
        ("/home/somebody/study", "study"), ("/data/in.txt", "study/in.txt"), ("/data/masked.txt", "study/masked.txt"),
    )  # fmt: skip
    result = stoppable.run(image, tree, spec_of(LINKED, links=links), out=tmp_path / "out", owner=owner)
    assert (tmp_path / "out" / "0.stdout").read_text().splitlines() == ["of the tree", "of the tree False", "13"]
    assert [item.path for item in result.produced] == ["study/out.txt"]
    assert (tmp_path / "out" / "files" / "study" / "out.txt").read_text() == "made"


def test_the_outbox_counts_as_disk(
    kind: str, stoppable: StoppableSandbox, image: Image, tree: Path, tmp_path: Path, owner: str
) -> None:
    if kind != "docker":
        pytest.skip("containers only")
    code = "for name in ('/outbox/a', 'b'): open(name, 'wb').write(bytes(40 << 20))"
    result = stoppable.run(image, tree, spec_of(code, outbox="/outbox"), out=tmp_path / "out", owner=owner)
    assert result.failure is FailureKind.RUN_DISK_FULL


@pytest.mark.parametrize("type_", [None, "A40"])
def test_gpus_that_are_not_there_are_named_as_such(
    kind: str, stoppable: StoppableSandbox, image: Image, tree: Path, tmp_path: Path, owner: str, type_: str | None
) -> None:
    if kind != "docker" or Path("/dev/nvidiactl").exists():
        pytest.skip("a Docker Engine without GPUs only")
    with pytest.raises(ExpbenchError) as caught:
        stoppable.run(image, tree, spec_of("pass", gpus=Gpus(count=1, type=type_)), out=tmp_path / "out", owner=owner)
    assert caught.value.kind is FailureKind.GPU_UNAVAILABLE
    assert stoppable.reap(owner) == 0
