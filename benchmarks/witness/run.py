"""What a witness costs: processor time of programs with it over without, alternating, the median of some rounds.

`python -m benchmarks.witness.run [--python PATH ...] [--rounds 5]`; each interpreter needs NumPy.
"""

# ruff: noqa: E501

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from pipeline.witness.launch import write_witness

PROGRAMS = {
    "loops": "def go(n):\n    s = 0\n    for i in range(n):\n        s = (s * i + 7) % 1000003\n        if s & 1: s += 3\n"
    "    return s\nprint(go(4000000))\n",
    "calls": "def f(s, i): return (s * i + 7) % 1000003\ndef go(n):\n    s = 0\n    for i in range(n): s = f(s, i)\n"
    "    return s\nprint(go(3000000))\n",
    "mixed": "import math, random\nr = random.Random(0)\nxs = [[r.gauss(0, 1) for _ in range(10)] for _ in range(500)]\n"
    "def distance(a, b):\n    d = 0.0\n    for p, q in zip(a, b): d += (p - q) ** 2\n    return math.sqrt(d)\n"
    "print(sum(sorted(distance(a, b) for b in xs)[5] for a in xs))\n",
    "arrays": "import numpy as np\nr = np.random.default_rng(0)\nx = r.normal(size=(2000, 200))\ny = np.sign(x[:, 0])\n"
    "def fit(x, y, ridge): return np.linalg.solve(x.T @ x + ridge * np.eye(x.shape[1]), x.T @ y)\n"
    "for k in range(60):\n    i = r.permutation(2000)\n    w = fit(x[i[:1500]], y[i[:1500]], 0.1 * k)\n"
    "    print(np.mean(np.sign(x[i[1500:]] @ w) == y[i[1500:]]))\n",
}


def seconds(python: Path, program: Path, folder: Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([str(python), str(program)], cwd=folder, env=env, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def environment(root: Path, python: Path) -> tuple[Path, Path]:
    """A virtual environment of links that sees the packages of `python`; its Python and its packages."""
    code = "import sys, sysconfig; print(sys._base_executable if hasattr(sys, '_base_executable') else sys.executable);" \
        "print('%d.%d' % sys.version_info[:2]); print(sysconfig.get_path('purelib'))"  # fmt: skip
    base, version, packages = subprocess.check_output([str(python), "-c", code], text=True).split()
    site = root / "lib" / f"python{version}" / "site-packages"
    site.mkdir(parents=True)
    (root / "bin").mkdir()
    (root / "bin" / "python").symlink_to(Path(base).resolve())
    (root / "pyvenv.cfg").write_text(f"home = {Path(base).resolve().parent}\n")
    (site / "host.pth").write_text(packages + "\n")
    return root / "bin" / "python", site


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", type=Path, nargs="+", default=[Path(sys.executable)])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    for python in options.python:
        with tempfile.TemporaryDirectory() as name:
            root = Path(name)
            (root / "outbox").mkdir()
            tree = root / "tree"
            tree.mkdir()
            plain, _ = environment(root / "plain", python)
            watched, site = environment(root / "watched", python)
            libraries = list((site / "host.pth").read_text().split())
            settings = {"name": "benchmarked", "tree": str(tree), "outbox": str(root / "outbox"),
                        "perturbation": "none", "amount": 0, "permute": [], "libraries": libraries}  # fmt: skip
            write_witness(site, "benchmarked", settings)
            for label, text in PROGRAMS.items():
                program = tree / f"{label}.py"
                program.write_text(text)
                rounds = [
                    (seconds(plain, program, tree), seconds(watched, program, tree)) for _ in range(options.rounds)
                ]
                without, with_it = (statistics.median(column) for column in zip(*rounds, strict=True))
                told = json.loads(
                    max((root / "outbox").glob("*.json"), key=lambda path: path.stat().st_mtime_ns).read_text()
                )
                assert told["complete"]
                print(f"{python} {label}: {without:.2f} s, with the witness {with_it:.2f} s, x {with_it / without:.2f}")


if __name__ == "__main__":
    main()
