"""A repository that attacks whoever opens, builds, runs or masks it: nothing of this machine changes, and it is said so.

One repository, one container: its script tries everything and prints what came of it; each test reads its line. Ends of
runs (bombs, floods) have runs of their own.
"""

from __future__ import annotations

import ast
import io
import json
import os
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from masking.apply import apply_mask
from masking.leaks import scan_leaks
from masking.plan import plan_mask
from pipeline.errors import FailureKind
from pipeline.progress import SilentReporter
from pipeline.repository import Snapshot, open_snapshot
from pipeline.sandbox import BuildSpec, Command, Image, Limits, RunResult, RunSpec, Sandbox, open_sandbox
from pipeline.validation import resolve_environment
from tests.masking import builders

pytestmark = pytest.mark.docker

OWNER = "hostile"
SCRIPT = """
import glob, json, os, signal, socket, subprocess, urllib.request
told = {}
def attempt(name, action):
    try:
        told[name] = repr(action())
    except BaseException as error:
        told[name] = "%s: %s" % (type(error).__name__, error)
def connect(address, family=socket.AF_INET):
    with socket.socket(family) as s:
        s.settimeout(3)
        s.connect(address)
        return "connected"
attempt("network", lambda: connect(("1.1.1.1", 53)))
attempt("host address", lambda: connect(("172.17.0.1", 22)))
attempt("name", lambda: urllib.request.urlopen("http://deb.debian.org/", timeout=3).status)
attempt("docker socket", lambda: connect("/var/run/docker.sock", socket.AF_UNIX))
attempt("host file", lambda: open(os.environ.get("HOST_FILE", "@HOST@")).read())
attempt("environment", lambda: sorted(os.environ))
attempt("symlink", lambda: os.readlink("outside") if os.path.islink("outside") else "none")
attempt("hard link", lambda: os.link("/etc/shadow", "shadow"))
attempt("shadow", lambda: open("/etc/shadow").read())
attempt("other processes", lambda: [p for p in os.listdir("/proc") if p.isdigit()])
attempt("memory of the parent", lambda: open("/proc/1/mem", "rb").read(1))
attempt("kernel setting", lambda: open("/proc/sys/kernel/core_pattern", "w").write("|/bin/sh"))
attempt("sysrq", lambda: open("/proc/sysrq-trigger", "w").write("b"))
attempt("host name", lambda: socket.sethostname("owned"))
attempt("mount", lambda: subprocess.run(["mount", "-t", "tmpfs", "x", "/mnt"], check=True, capture_output=True))
attempt("device", lambda: os.mknod("disk", 0o60666, os.makedev(8, 0)))
attempt("root file", lambda: open("/usr/bin/python3", "ab").write(b"x"))
attempt("become root", lambda: os.setuid(0))
attempt("signal to init", lambda: os.kill(1, signal.SIGKILL))
attempt("signal to parent", lambda: os.kill(os.getppid(), signal.SIGKILL))
attempt("signal to all", lambda: signal.pthread_sigmask(signal.SIG_BLOCK, []) and os.kill(-1, 0))
os.symlink("/etc/passwd", "link-out")
os.makedirs("results", exist_ok=True)
print(json.dumps(told))
"""


@dataclass(frozen=True)
class Hostile:
    """The repository, what was made of it, and the host's canary."""

    source: Path
    snapshot: Snapshot
    told: dict[str, str]
    result: RunResult
    out: Path
    marks: Path
    """Directory in which every trick on the host would leave a file."""
    secret: Path


def git(directory: Path, *arguments: str) -> None:
    person = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b",
    }
    environment = {**os.environ, **person, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *arguments], cwd=directory, check=True, capture_output=True, env=environment)


def traversal() -> bytes:
    """Archives whose members leave the directory that they are unpacked to."""
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        for name in ("../../escaped", "/tmp/escaped"):
            info = tarfile.TarInfo(name)
            info.size = 4
            archive.addfile(info, io.BytesIO(b"evil"))
        link = tarfile.TarInfo("way")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc"
        archive.addfile(link)
    outer = io.BytesIO()
    with zipfile.ZipFile(outer, "w") as archive:
        archive.writestr("../../../escaped", "evil")
        archive.writestr("inner.tar", tar.getvalue())
    return outer.getvalue()


def make_hostile(root: Path, marks: Path, secret: Path) -> None:
    builders.write_tree(root, {
        "run_experiment.py": SCRIPT.replace("@HOST@", str(secret)).encode(),
        "README.md": b"# Hostile\n",
        "setup.py": f"import os\nos.system('touch {marks}/setup')\nopen({str(secret)!r}).read()\n"
                    f"from setuptools import setup\nsetup(name='x', install_requires=['$(touch {marks}/name)'])\n".encode(),
        "archives.zip": traversal(),
        ".gitattributes": b"*.txt filter=evil diff=evil merge=evil\n",
        "data.txt": b"text\n",
        ".gitmodules": f'[submodule "s"]\n\tpath = s\n\turl = --upload-pack=touch {marks}/submodule\n'.encode(),
    })  # fmt: skip
    (root / "outside").symlink_to(secret)
    os.link(secret, root / "hard.bin")
    git(root, "init", "-q")
    git(root, "add", "-A", "--force")
    git(root, "update-index", "--add", "--cacheinfo", f"160000,{'b' * 40},s")
    git(root, "commit", "-qm", "evil")
    for name in ("post-checkout", "pre-commit", "post-index-change", "reference-transaction", "fsmonitor-watchman"):
        hook = root / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {marks}/hook-{name}\n")
        hook.chmod(0o755)
    with (root / ".git" / "config").open("a") as config:
        config.write(
            f"[core]\n\tfsmonitor = touch {marks}/fsmonitor; false\n\thooksPath = {root}/.git/hooks\n"
            f"\tsshCommand = touch {marks}/ssh\n\tpager = touch {marks}/pager\n\teditor = touch {marks}/editor\n"
            f"[filter \"evil\"]\n\tsmudge = touch {marks}/smudge\n\tclean = touch {marks}/clean\n"
            f"[diff \"evil\"]\n\tcommand = touch {marks}/diff\n\ttextconv = touch {marks}/textconv\n"
            f"[merge \"evil\"]\n\tdriver = touch {marks}/merge\n"
            f"[include]\n\tpath = {secret}\n[credential]\n\thelper = \"!touch {marks}/credential\"\n"
            f"[uploadpack]\n\tpackObjectsHook = touch {marks}/pack\n"
        )  # fmt: skip


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    opened = open_sandbox("docker")
    yield opened
    opened.reap(OWNER)


@pytest.fixture(scope="module")
def image(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Image:
    log = tmp_path_factory.mktemp("image") / "build.log"
    return sandbox.build(BuildSpec(), log=log, owner=OWNER, reporter=SilentReporter())


@pytest.fixture(scope="module")
def hostile(sandbox: Sandbox, image: Image, tmp_path_factory: pytest.TempPathFactory) -> Hostile:
    base = tmp_path_factory.mktemp("hostile")
    marks, secret = base / "marks", base / "secret"
    marks.mkdir()
    secret.write_text("host-canary-5b1f")
    make_hostile(base / "source", marks, secret)
    snapshot = open_snapshot(base / "source", into=base / "snapshot", allow_missing_submodules=True)
    resolve_environment(snapshot, sources=("run_experiment.py",))
    out = base / "out"
    spec = RunSpec(commands=(Command(argv=("python", "run_experiment.py")),), limits=Limits(wall_s=120, memory_mb=512))
    result = sandbox.run(image, snapshot.root, spec, out=out, owner=OWNER)
    assert result.failure is None, (result.message, (out / "0.stderr").read_text())
    told: dict[str, Any] = json.loads((out / "0.stdout").read_text().splitlines()[-1])
    return Hostile(base / "source", snapshot, told, result, out, marks, secret)


@pytest.mark.parametrize(
    ("trick", "answers"),
    [
        ("network", ("OSError", "Network is unreachable")),
        ("host address", ("OSError", "Network is unreachable")),
        ("name", ("URLError",)),
        ("docker socket", ("FileNotFoundError", "PermissionError")),
        ("host file", ("FileNotFoundError", "PermissionError")),
        ("hard link", ("PermissionError", "OSError")),
        ("shadow", ("PermissionError",)),
        ("memory of the parent", ("PermissionError", "OSError")),
        ("kernel setting", ("PermissionError", "OSError")),
        ("sysrq", ("PermissionError", "OSError", "FileNotFoundError")),
        ("host name", ("PermissionError",)),
        ("mount", ("CalledProcessError", "FileNotFoundError")),
        ("device", ("PermissionError",)),
        ("root file", ("PermissionError", "OSError")),
        ("become root", ("PermissionError",)),
        ("signal to init", ("PermissionError",)),
        ("signal to parent", ("PermissionError",)),
    ],
)
def test_a_script_gets_nowhere(trick: str, answers: tuple[str, ...], hostile: Hostile) -> None:
    assert any(answer in hostile.told[trick] for answer in answers), hostile.told[trick]


def test_a_script_sees_neither_the_machine_nor_its_secrets(hostile: Hostile) -> None:
    seen = " ".join(hostile.told.values())
    assert "host-canary" not in seen
    assert not {name for name in os.environ if "KEY" in name or "TOKEN" in name} & set(
        eval(hostile.told["environment"])
    )
    assert len(ast.literal_eval(hostile.told["other processes"])) < 10


def test_git_runs_nothing_that_the_repository_brings(hostile: Hostile) -> None:
    """Hooks, fsmonitor, filter, diff and merge drivers, submodule URLs with options, credential helpers, setup.py."""
    assert sorted(path.name for path in hostile.marks.iterdir()) == []


def test_links_out_of_the_tree_are_not_followed(hostile: Hostile) -> None:
    root = hostile.snapshot.root
    assert not (root / "outside").exists()
    assert any(problem.where == "outside" for problem in hostile.snapshot.problems)
    assert "link-out" not in {item.path for item in hostile.result.produced}
    assert not os.path.lexists(hostile.out / "files" / "link-out")
    # git stores the content of a hard link: changing the copy must not change the host's file
    (root / "hard.bin").write_text("changed")
    assert hostile.secret.read_text() == "host-canary-5b1f"


def test_masking_looks_into_archives_without_unpacking_them(hostile: Hostile, tmp_path: Path) -> None:
    task = builders.task()
    plan = plan_mask(task, hostile.snapshot)
    masked = apply_mask(hostile.snapshot, plan, tmp_path / "deep" / "masked")
    report = scan_leaks(masked.path, snapshot=hostile.snapshot, plan=plan, task=task)
    assert report.files
    assert not [
        path for path in (tmp_path / "escaped", tmp_path / "deep" / "escaped", Path("/tmp/escaped")) if path.exists()
    ]
    assert sorted(path.name for path in hostile.marks.iterdir()) == []
    config = (masked.path / ".git" / "config").read_text()
    assert "evil" not in config
    assert not (masked.path / ".git" / "hooks").exists()


BOMBS = {
    "forks": ("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass\n", FailureKind.RUN_PROCESS_LIMIT),
    "disk": ("f = open('x', 'wb')\nwhile True: f.write(bytes(1 << 20))\n", FailureKind.RUN_DISK_FULL),
    "memory": ("x = []\nwhile True: x.append(bytearray(1 << 24))\n", FailureKind.RUN_OUT_OF_MEMORY),
    "ten gigabytes of output": (
        "import os\nb = b'x' * (1 << 20)\nfor _ in range(10240): os.write(1, b)\n", FailureKind.RUN_OUTPUT_LIMIT),
    "a child that outlives it": (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(600)\nprint('done')\n", None),
}  # fmt: skip


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_contained_and_told(bomb: str, sandbox: Sandbox, image: Image, tmp_path: Path) -> None:
    code, failure = BOMBS[bomb]
    tree = tmp_path / "tree"
    builders.write_tree(tree, {"run.py": code.encode()})
    limits = Limits(wall_s=120, memory_mb=256, disk_mb=64, pids=64, output_mb=4)
    spec = RunSpec(commands=(Command(argv=("python", "run.py")),), limits=limits)
    result = sandbox.run(image, tree, spec, out=tmp_path / "out", owner=OWNER)
    assert result.failure == failure, result
    assert (tmp_path / "out" / "0.stdout").stat().st_size <= 5 << 20
    assert sandbox.reap(OWNER) == 0
