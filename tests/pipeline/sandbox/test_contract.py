"""What every sandbox must do, run against each of them (the Docker ones with `-m docker`)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.progress import SilentReporter
from pipeline.sandbox import BuildSpec, Command, Image, RunSpec, Sandbox
from tests.pipeline.sandbox.conftest import SMALL, Runner


def stdout(tmp_path: Path, index: int = 0) -> str:
    return (tmp_path / "out" / f"{index}.stdout").read_text(encoding="utf-8")


def test_success_keeps_output_and_says_how_long(run: Runner, tmp_path: Path) -> None:
    result = run("import sys; print('one'); print('two', file=sys.stderr)")
    assert result.failure is None
    assert result.commands[0].exit_code == 0
    assert stdout(tmp_path) == "one\n"
    assert (tmp_path / "out/0.stderr").read_text() == "two\n"
    assert (result.commands[0].stdout_bytes, result.commands[0].stderr_bytes) == (4, 4)
    assert 0 < result.commands[0].duration_s <= result.duration_s
    assert result.peak_memory_mb is not None
    assert result.peak_memory_mb > 1
    assert result.cpu_s is not None
    assert result.cpu_s > 0


def test_commands_share_the_tree_and_stop_at_the_first_failure(run: Runner, tmp_path: Path) -> None:
    result = run("open('a', 'w').write('x')", "print(open('a').read()); raise SystemExit(3)", "print('never')")
    assert [command.exit_code for command in result.commands] == [0, 3]
    assert result.failure is FailureKind.RUN_FAILED
    assert "command 2 of 3" in result.message
    assert "exited with 3" in result.message
    assert stdout(tmp_path, 1) == "x\n"
    assert not (tmp_path / "out/2.stdout").exists()


def test_last_line_of_an_exception_is_in_the_message(run: Runner) -> None:
    assert "ZeroDivisionError" in run("1 / 0").message


def test_program_that_does_not_exist(sandbox: Sandbox, image: Image, tmp_path: Path, owner: str) -> None:
    (tmp_path / "tree").mkdir()
    spec = RunSpec(commands=(Command(argv=("no-such-program",)),), limits=SMALL)
    result = sandbox.run(image, tmp_path / "tree", spec, out=tmp_path / "out", owner=owner)
    assert result.failure is FailureKind.RUN_FAILED
    assert result.commands[0].exit_code is None
    assert "cannot be started" in result.message


def test_death_by_signal_is_told_as_shells_tell_it(run: Runner) -> None:
    result = run("import os; os.kill(os.getpid(), 11)")
    assert result.commands[0].exit_code == 128 + signal.SIGSEGV
    assert result.failure is FailureKind.RUN_FAILED


def test_wall_limit(run: Runner, tmp_path: Path) -> None:
    result = run(
        "open('before', 'w').close(); print('up')\nimport time\nwhile True: time.sleep(1)",
        limits=SMALL.evolve(wall_s=1.5),
    )
    assert result.failure is FailureKind.RUN_TIMEOUT
    assert result.commands[0].exit_code is None
    assert result.commands[0].duration_s < 15
    assert stdout(tmp_path) == "up\n"
    assert [produced.path for produced in result.produced] == ["before"]


@pytest.mark.parametrize("where", [".", "/tmp", "/dev/shm"])
def test_disk_bomb(run: Runner, isolated: None, where: str) -> None:
    result = run(
        f"block = b'x' * (1 << 20)\nwith open({where!r} + '/bomb', 'wb') as s:\n    while True: s.write(block)",
        limits=SMALL.evolve(disk_mb=16),
    )
    assert result.failure is FailureKind.RUN_DISK_FULL
    assert sum(produced.size for produced in result.produced) <= 16 << 20


def test_disk_limit_holds_for_all_places_together(run: Runner, isolated: None) -> None:
    script = """
    import os
    for place in ('.', '/tmp', '/dev/shm'):
        with open(place + '/third', 'wb') as stream:
            stream.write(bytes(8 << 20))
    import time; time.sleep(600)
    """
    assert run(textwrap.dedent(script), limits=SMALL.evolve(disk_mb=16)).failure is FailureKind.RUN_DISK_FULL


def test_disk_full_that_the_program_reports_itself(run: Runner) -> None:
    """`posix_fallocate` fails at once and leaves the disk as empty as it was."""
    result = run("import os\nos.posix_fallocate(os.open('f', os.O_CREAT | os.O_RDWR), 0, 1 << 40)")
    assert result.failure in {FailureKind.RUN_DISK_FULL, FailureKind.RUN_FAILED}
    assert result.commands[0].exit_code == 1
    assert "Errno" in result.message or "disk" in result.message


def test_tree_that_does_not_fit(run: Runner, tmp_path: Path, isolated: None) -> None:
    (tmp_path / "tree/big").write_bytes(bytes(9 << 20))
    result = run("print('never')", limits=SMALL.evolve(disk_mb=8))
    assert result.failure is FailureKind.RUN_DISK_FULL
    assert result.commands == ()
    assert "does not fit" in result.message


def test_output_flood(run: Runner, tmp_path: Path) -> None:
    result = run("while True: print('x' * 1000)", limits=SMALL.evolve(output_mb=1))
    assert result.failure is FailureKind.RUN_OUTPUT_LIMIT
    assert result.commands[0].truncated
    assert (tmp_path / "out/0.stdout").stat().st_size == result.commands[0].stdout_bytes == 1 << 20


@pytest.mark.parametrize("step", [1 << 20, 1 << 32])
def test_memory_bomb(run: Runner, step: int) -> None:
    """In small steps, and in one piece (on which the cgroup's own limit acts before anybody can look)."""
    if step > 1 << 30:
        script = "import mmap\nm = mmap.mmap(-1, 1 << 29, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n"
        script += "for i in range(0, 1 << 29, 4096): m[i] = 1\nimport time; time.sleep(600)"
    else:
        script = f"x = []\nwhile True: x.append(bytearray(b'x') * {step})"
    result = run(script, limits=SMALL.evolve(memory_mb=128))
    assert result.failure is FailureKind.RUN_OUT_OF_MEMORY
    assert result.peak_memory_mb is None or 100 < result.peak_memory_mb < 600


def test_shared_memory_is_memory(run: Runner) -> None:
    script = "import mmap\nm = mmap.mmap(-1, 1 << 30)\nfor i in range(0, 1 << 30, 4096): m[i] = 1\n"
    result = run(script + "import time; time.sleep(600)", limits=SMALL.evolve(memory_mb=128))
    assert result.failure is FailureKind.RUN_OUT_OF_MEMORY


def test_files_are_disk_not_memory(run: Runner) -> None:
    result = run("open('f', 'wb').write(bytes(48 << 20))", limits=SMALL.evolve(memory_mb=80))
    assert result.failure is None
    assert [produced.size for produced in result.produced] == [48 << 20]


def test_no_network(run: Runner, tmp_path: Path, isolated: None) -> None:
    script = """
    import socket
    for address in (('1.1.1.1', 53), ('10.0.0.1', 80), ('172.17.0.1', 22)):
        try:
            socket.create_connection(address, timeout=3)
            print('connected', address)
        except OSError as error:
            print('refused')
    try:
        socket.getaddrinfo('example.org', 80)
    except OSError:
        print('refused')
    """
    assert run(textwrap.dedent(script)).failure is None
    assert stdout(tmp_path) == "refused\n" * 4


def test_writes_outside_fail(run: Runner, tmp_path: Path, isolated: None) -> None:
    script = """
    import os, sys
    for place in ('/etc', '/usr/bin', '/root', '/home', '/var', '/opt', '/', os.path.dirname(sys.executable)):
        try:
            open(place + '/written', 'w')
            print('wrote', place)
        except OSError:
            pass
    print('done')
    """
    run(textwrap.dedent(script))
    assert stdout(tmp_path) == "done\n"


def test_runs_unprivileged(run: Runner, tmp_path: Path, isolated: None) -> None:
    run("import os\nprint(os.getuid())\nprint([l for l in open('/proc/self/status') if l[:6] in ('CapEff', 'NoNewP')])")
    uid, status = stdout(tmp_path).splitlines()
    assert int(uid) != 0
    assert status == str(["CapEff:\t0000000000000000\n", "NoNewPrivs:\t1\n"])


def test_engine_socket_is_not_there(run: Runner, tmp_path: Path, isolated: None) -> None:
    run("import os; print(os.path.exists('/var/run/docker.sock'), os.path.exists('/run/docker.sock'))")
    assert stdout(tmp_path) == "False False\n"


def test_child_that_leaves_its_session_ends_with_the_run(run: Runner, tmp_path: Path, owner: str) -> None:
    script = f"""
    import subprocess
    subprocess.Popen(['setsid', 'nohup', 'sh', '-c', 'sleep 3600; echo {owner}'])
    subprocess.Popen(['sh', '-c', '(trap "" TERM HUP INT; sleep 3600; echo {owner}) &'])
    print('left')
    """
    result = run(textwrap.dedent(script))
    assert result.failure is None
    assert result.duration_s < 30
    assert stdout(tmp_path) == "left\n"
    assert processes_with(owner) == []


def test_output_of_a_child_that_is_left_behind_does_not_block(run: Runner, tmp_path: Path) -> None:
    run("import subprocess; subprocess.Popen(['sh', '-c', 'while sleep 0.01; do echo on; done'])", "print('second')")
    assert stdout(tmp_path, 1) == "second\n"


def test_signals_do_not_reach_the_supervisor(run: Runner, tmp_path: Path, isolated: None) -> None:
    script = """
    import os, signal
    for pid in (os.getppid(), 1):
        for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM):
            try:
                os.kill(pid, number)
            except OSError:
                pass
    print('alive')
    """
    result = run(textwrap.dedent(script))
    assert result.failure is None
    assert stdout(tmp_path) == "alive\n"


def test_result_cannot_be_forged(run: Runner, isolated: None) -> None:
    script = """
    import glob, os
    for path in glob.glob('/proc/[0-9]*/fd/[012]'):
        if not path.startswith(f'/proc/{os.getpid()}/'):
            try:
                with open(path, 'wb', buffering=0) as stream:
                    stream.write(b'z' + bytes(4))
            except OSError:
                pass
    raise SystemExit(7)
    """
    result = run(textwrap.dedent(script))
    assert result.commands[0].exit_code == 7
    assert result.failure is FailureKind.RUN_FAILED


def test_environment_is_only_what_was_given(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, isolated: None
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret-of-the-host")
    script = """
    import json, os, pathlib
    environments = [p.read_bytes() for p in pathlib.Path('/proc').glob('[0-9]*/environ') if os.access(p, os.R_OK)]
    print(json.dumps([dict(os.environ), [e.decode() for e in environments]]))
    """
    run(textwrap.dedent(script), SEED="7")
    environment, everybody = json.loads(stdout(tmp_path))
    assert "secret-of-the-host" not in stdout(tmp_path)
    assert len(everybody) >= 1
    assert environment["SEED"] == "7"
    assert environment["PYTHONHASHSEED"] == "0"
    assert environment["OMP_NUM_THREADS"] == "1"
    assert environment["HOME"] != str(Path.home())
    allowed = {
        "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "MPLBACKEND", "PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "PYTHONUNBUFFERED",
        "SEED", "TMPDIR", "TZ", "USER", "VIRTUAL_ENV",
    }  # fmt: skip
    assert {name for name in environment if not name.endswith("_NUM_THREADS")} <= allowed


def test_home_and_temporary_directory_can_be_written_and_leave_nothing(run: Runner, tmp_path: Path) -> None:
    result = run(
        "import pathlib, tempfile\n(pathlib.Path.home() / 'x').write_text('x')\n"
        "print(tempfile.NamedTemporaryFile(delete=False).name)"
    )
    assert result.failure is None
    assert result.produced == ()
    assert not Path(stdout(tmp_path).strip()).exists()


def test_same_run_gives_same_bytes(run: Runner, tmp_path: Path) -> None:
    script = "import os; print(hash('x'), sorted(os.environ.items()), os.getcwd()); open('r', 'w').write(str({'b', 'a', 'c'}))"
    first, text = run(script), None
    text = stdout(tmp_path)
    second = run(script)
    assert [p.sha256 for p in first.produced] == [p.sha256 for p in second.produced]
    if not [problem for problem in first.problems if "not isolated" in problem.message]:
        assert stdout(tmp_path) == text


def test_directory_outside_is_refused(sandbox: Sandbox, image: Image, tmp_path: Path, owner: str) -> None:
    (tmp_path / "tree").mkdir()
    spec = RunSpec(commands=(Command(argv=("true",), directory="../.."),))
    with pytest.raises(ExpbenchError) as caught:
        sandbox.run(image, tmp_path / "tree", spec, out=tmp_path / "out", owner=owner)
    assert caught.value.kind is FailureKind.USAGE


def test_command_in_a_subdirectory(sandbox: Sandbox, image: Image, tmp_path: Path, owner: str) -> None:
    (tmp_path / "tree/sub dir").mkdir(parents=True)
    spec = RunSpec(commands=(Command(argv=("python", "-c", "open('x', 'w')"), directory="sub dir"),), limits=SMALL)
    result = sandbox.run(image, tmp_path / "tree", spec, out=tmp_path / "out", owner=owner)
    assert [produced.path for produced in result.produced] == ["sub dir/x"]


def test_image_that_is_gone(sandbox: Sandbox, tmp_path: Path, owner: str) -> None:
    (tmp_path / "tree").mkdir()
    gone = Image(reference="process:0000", digest="sha256:" + "0" * 64, spec_digest="0")
    with pytest.raises(ExpbenchError) as caught:
        sandbox.run(
            gone, tmp_path / "tree", RunSpec(commands=(Command(argv=("true",)),)), out=tmp_path / "o", owner=owner
        )
    assert caught.value.kind is FailureKind.SANDBOX_BROKEN


def test_concurrent_builds_of_one_spec_give_one_image(sandbox: Sandbox, tmp_path: Path, owner: str) -> None:
    def build(index: int) -> tuple[Image, bool]:
        log = tmp_path / f"{index}.log"
        image = sandbox.build(BuildSpec(), log=log, owner=owner, reporter=SilentReporter())
        return image, log.exists()

    with ThreadPoolExecutor(3) as pool:
        built = list(pool.map(build, range(3)))
    assert len({image.digest for image, _ in built}) == 1
    assert sum(logged for _, logged in built) <= 1


def test_two_runs_at_once_do_not_meet(sandbox: Sandbox, image: Image, tmp_path: Path, owner: str) -> None:
    def one(index: int) -> str:
        tree = tmp_path / f"tree{index}"
        tree.mkdir()
        (tree / "own").write_text(str(index))
        code = "import os; print(open('own').read(), sorted(os.listdir('.')), sorted(os.listdir(os.environ['TMPDIR'])))"
        spec = RunSpec(commands=(Command(argv=("python", "-c", code)),), limits=SMALL)
        result = sandbox.run(image, tree, spec, out=tmp_path / f"out{index}", owner=owner)
        assert result.failure is None, result.message
        return (tmp_path / f"out{index}/0.stdout").read_text()

    with ThreadPoolExecutor(2) as pool:
        texts = list(pool.map(one, range(2)))
    assert [text.replace(str(index), "N", 1) for index, text in enumerate(texts)] == [texts[0].replace("0", "N", 1)] * 2


CLIENT = """
import sys
from pathlib import Path
from pipeline.progress import SilentReporter
from pipeline.sandbox import BuildSpec, Command, Limits, RunSpec
from tests.pipeline.sandbox.conftest import opened
kind, tree, out, owner = sys.argv[1:]
sandbox = opened(kind)
image = sandbox.build(BuildSpec(), log=Path(out) / "b.log", owner=owner, reporter=SilentReporter())
code = "import subprocess, time; subprocess.Popen(['setsid', 'sleep', '3601']); print('up', flush=True); time.sleep(3600)"
spec = RunSpec(commands=(Command(argv=("python", "-c", code + " # " + owner)),), limits=Limits(memory_mb=128, disk_mb=16))
sandbox.run(image, Path(tree), spec, out=Path(out), owner=owner)
"""


def test_killed_client_leaves_nothing(kind: str, sandbox: Sandbox, image: Image, tmp_path: Path, owner: str) -> None:
    tree, out = tmp_path / "tree", tmp_path / "out"
    tree.mkdir()
    out.mkdir()
    argv = [sys.executable, "-c", CLIENT, kind, str(tree), str(out), owner]
    with subprocess.Popen(argv, cwd=Path(__file__).parents[3]) as client:
        try:
            wait_until(lambda: (out / "0.stdout").exists() and (out / "0.stdout").read_text() == "up\n")
            assert len(processes_with(owner)) >= 2
        finally:
            client.kill()
    wait_until(lambda: not processes_with(owner))
    if sandbox.name == "docker":
        wait_until(lambda: containers_of(owner) == [])
    sandbox.reap(owner)
    assert sandbox.reap(owner) == 0


def wait_until(condition, seconds: float = 60.0) -> None:
    """Fail when it does not become true; the time is far above what was ever seen (1 s)."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not happen"
        time.sleep(0.05)


def processes_with(text: str) -> list[int]:
    """Living processes of this machine whose command line holds the text, this one's apart."""
    found = []
    for process in Path("/proc").iterdir():  # no glob: it fails with ESRCH on a process that ends meanwhile
        if not process.name.isdecimal():
            continue
        try:
            if text.encode() in (process / "cmdline").read_bytes() and int(process.name) != os.getpid():
                found.append(int(process.name))
        except OSError:
            continue
    return found


def containers_of(owner: str) -> list[str]:
    argv = ["docker", "ps", "--all", "--quiet", "--filter", f"label=expbench.owner={owner}"]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()
