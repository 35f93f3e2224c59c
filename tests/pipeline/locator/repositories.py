"""Tiny repositories for tests of the locator and the tracer."""

import hashlib
from pathlib import Path

from pipeline.repository import RepositoryFile, RepositoryRef, Snapshot


def snapshot_of(root: Path) -> Snapshot:
    files = []
    for path in sorted(item for item in root.rglob("*") if item.is_file() and not item.is_symlink()):
        data = path.read_bytes()
        files.append(
            RepositoryFile(
                path=path.relative_to(root).as_posix(),
                size=len(data),
                sha256=hashlib.sha256(data).hexdigest(),
                binary=b"\0" in data,
            )
        )
    ref = RepositoryRef(url="tiny", commit="0" * 40)
    return Snapshot(ref=ref, root=root, files=tuple(sorted(files, key=lambda file: file.path)))


def make(root: Path, files: dict[str, str | bytes]) -> Snapshot:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return snapshot_of(root)


TRAIN = '''"""Train the spiral classifier."""
import argparse

from lib.data import load_spirals
from lib.fit import fit_logistic

METHODS = {"ours": fit_logistic}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dataset", choices=["moons", "spirals"], default="moons")
    parser.add_argument("--lr", type=float, default=0.1, help="learning rate")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--data-path", default=None)
    parser.add_argument("--figures-only", action="store_true")
    args = parser.parse_args()

    if args.figures_only:
        draw_figures()
        return

    # Load the data set
    points, labels = load_spirals(args.dataset)

    for seed in range(args.seeds):
        weights = METHODS["ours"](points, labels, args.lr)
        print("accuracy", evaluate(weights, points, labels))


def evaluate(weights, points, labels):
    """Compute the test accuracy of the classifier."""
    hits = 0
    for point, label in zip(points, labels):
        hits += (point * weights > 0) == label
    return hits / len(labels)


def draw_figures():
    """Draw all figures from stored results."""
    import matplotlib.pyplot as plt

    plt.plot([1, 2])
    plt.savefig("figure.png")


if __name__ == "__main__":
    main()
'''

PROJECT: dict[str, str | bytes] = {
    "README.md": """# Spirals

## Reproducing the results

Classification accuracy on spirals (Table 1):

```bash
# the main experiment
CUDA_VISIBLE_DEVICES=0 python train.py --dataset spirals --lr 0.3
```

Timing of the sorting routine (Table 2): `bash scripts/timing.sh`

## Tests

`python -m pytest tests`
""",
    "train.py": TRAIN,
    "lib/__init__.py": "",
    "lib/data.py": '''import numpy as np


def load_spirals(name):
    """Load the points and labels of a data set from its file."""
    raw = np.load("data/spirals.npy")
    points = raw[:, 0]
    labels = raw[:, 1]
    return points, labels
''',
    "lib/fit.py": '''def fit_logistic(points, labels, lr, n_steps=200):
    """Fit the estimator by gradient descent for n_steps iterations."""
    weights = 0.0
    for step in range(n_steps):
        gradient = sum(p - l for p, l in zip(points, labels))
        weights -= lr * gradient
    return weights
''',
    "experiments/timing.py": '''"""Measure how long sorting takes for growing arrays."""
import argparse
import time


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=10)
    args = parser.parse_args()
    start = time.perf_counter()
    sorted(range(args.size))
    print("sorting seconds", time.perf_counter() - start)


if __name__ == "__main__":
    main()
''',
    "scripts/timing.sh": 'set -e\nfor size in 100 1000; do\n  python experiments/timing.py --size $size "$@"\ndone\n',
    "tests/test_fit.py": "from lib.fit import fit_logistic\n\n\ndef test_spirals_accuracy():\n    assert fit_logistic([], [], 1) == 0\n",
}
