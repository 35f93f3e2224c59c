"""Programs under a witness on this machine's Python: a virtual environment of links, loaded as in a container."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from pipeline.witness.launch import write_witness
from pipeline.witness.read import read_witness
from pipeline.witness.records import FunctionRun, Perturbation, ProcessRun, WitnessReport

PACKAGES = sysconfig.get_path("purelib")


class Ran(NamedTuple):
    """A finished program."""

    code: int
    stdout: bytes
    stderr: bytes
    report: WitnessReport

    @property
    def text(self) -> str:
        return self.stdout.decode()

    @property
    def process(self) -> ProcessRun:
        """The only one."""
        (process,) = self.report.processes
        return process

    def function(self, name: str) -> FunctionRun:
        (found,) = [item for item in self.report.functions if item.name == name]
        return found


Program = Callable[..., Ran]


def environment(root: Path) -> Path:
    """A virtual environment that sees the packages of this one; its Python."""
    site = root / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    site.mkdir(parents=True)
    (root / "bin").mkdir()
    base = Path(sys._base_executable).resolve()  # type: ignore[attr-defined]
    (root / "pyvenv.cfg").write_text(f"home = {base.parent}\ninclude-system-site-packages = false\n")
    (root / "bin" / "python").symlink_to(base)
    (site / "host.pth").write_text(PACKAGES + "\n")
    return root / "bin" / "python"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "tree").mkdir()
    return tmp_path / "tree"


@pytest.fixture
def program(tmp_path: Path, tree: Path) -> Program:
    """Run `python ARGUMENTS` in the tree; with `perturbation=None` without a witness, `packages` are installed."""
    number = 0

    def run(
        *arguments: str, perturbation: Perturbation | None = Perturbation.NONE, amount: int = 0,
        permute: Sequence[tuple[str, str]] = (), packages: Mapping[str, str] | None = None, **variables: str,
    ) -> Ran:  # fmt: skip
        nonlocal number
        number += 1
        root = tmp_path / f"run{number}"
        python = environment(root / "venv")
        outbox = root / "outbox"
        outbox.mkdir()
        site = next((root / "venv" / "lib").glob("*/site-packages"))
        for path, text in (packages or {}).items():
            (site / path).parent.mkdir(exist_ok=True)
            (site / path).write_text(text)
        if perturbation is not None:
            name = f"w{os.urandom(4).hex()}"
            settings = {"name": name, "tree": str(tree), "outbox": str(outbox), "perturbation": perturbation.value,
                        "amount": amount, "permute": list(permute), "libraries": [PACKAGES]}  # fmt: skip
            write_witness(site, name, settings)
        env = {"PATH": f"{python.parent}:/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0",
               "HOME": str(root), "OPENBLAS_NUM_THREADS": "1", "LC_ALL": "C.UTF-8", **variables}  # fmt: skip
        done = subprocess.run(
            [str(python), *arguments], cwd=tree, env=env, capture_output=True, timeout=120, check=False
        )
        report = read_witness(root, perturbation=perturbation or Perturbation.NONE, amount=amount)
        return Ran(done.returncode, done.stdout, done.stderr, report)

    return run
