"""Small real repositories, snapshots and tasks for the masking tests."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from masking.tree import entries
from pipeline.paper import Box, Document, Page, Paper, Passage, PassageKind
from pipeline.repository import RepositoryFile, RepositoryRef, Snapshot
from pipeline.task import (
    Band,
    Condition,
    Expected,
    ExperimentTruth,
    Family,
    NumericClaim,
    Provenance,
    SourceScript,
    Status,
    Task,
)

RUN = '''\
"""Compare the shrinkage estimator with the plain mean on contaminated samples."""

import argparse
import json
import random
from pathlib import Path

from estimators import plain_mean, trimmed_mean


def contaminated_sample(size, share, shift, generator):
    """Draw values of which a share is shifted."""
    values = []
    for _ in range(size):
        value = generator.gauss(0.0, 1.0)
        if generator.random() < share:
            value = value + shift
        values.append(value)
    return values


def shrinkage_weight(values, strength):
    # James-Stein style weight on the centred second moment
    centre = sum(values) / len(values)
    spread = sum((value - centre) ** 2 for value in values) / (len(values) - 1)
    return max(0.0, 1.0 - strength * spread / (len(values) * centre * centre + 1e-12))


def squared_errors(repeats, size, share, shift, strength, seed):
    generator = random.Random(seed)
    errors = {"plain": [], "trimmed": [], "shrunk": []}
    for _ in range(repeats):
        values = contaminated_sample(size, share, shift, generator)
        weight = shrinkage_weight(values, strength)
        errors["plain"].append(plain_mean(values) ** 2)
        errors["trimmed"].append(trimmed_mean(values, 0.1) ** 2)
        errors["shrunk"].append((weight * trimmed_mean(values, 0.1)) ** 2)
    return {name: sum(row) / len(row) for name, row in errors.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--size", type=int, default=50)
    parser.add_argument("--share", type=float, default=0.1)
    parser.add_argument("--shift", type=float, default=4.0)
    parser.add_argument("--strength", type=float, default=2.5)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--out", type=Path, default=Path("results/summary.json"))
    options = parser.parse_args()
    table = squared_errors(
        options.repeats, options.size, options.share, options.shift, options.strength, options.seed
    )
    for name, error in sorted(table.items()):
        print(f"{name} mse {error:.5f}")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({"mse": table}, indent=1))


if __name__ == "__main__":
    main()
'''

ESTIMATORS = '''\
"""Location estimators."""


def plain_mean(values):
    return sum(values) / len(values)


def trimmed_mean(values, share):
    ordered = sorted(values)
    cut = int(len(ordered) * share)
    kept = ordered[cut : len(ordered) - cut]
    return sum(kept) / len(kept)
'''

RENAMED = {
    "contaminated_sample": "draw", "shrinkage_weight": "damp", "squared_errors": "losses", "generator": "rng",
    "values": "xs", "value": "x", "errors": "acc", "weight": "w", "spread": "v", "centre": "m", "strength": "lam",
    "share": "eps", "shift": "delta", "repeats": "reps", "size": "n", "table": "t", "options": "cfg",
    "parser": "cli", "ordered": "s", "error": "e", "name": "key", "row": "r",
}  # fmt: skip

PAPER_TEXT = (
    "Shrinking a trimmed mean towards the origin lowers its risk under contamination. We study samples in which a "
    "fixed share of the observations is shifted by a constant, a model that Huber introduced for the study of "
    "robustness. The estimator multiplies a symmetric trimmed mean with a data dependent weight that follows the "
    "argument of James and Stein. In the first experiment every sample holds fifty observations, one tenth of which "
    "are shifted by four standard deviations, and the squared error is averaged over two hundred repetitions. The "
    "plain mean suffers most because each shifted observation enters with full weight. Trimming removes the larger "
    "part of the damage, and shrinkage removes a further part whenever the true location is close to the origin. "
    "We conclude that the combination is preferable when contamination is asymmetric and the prior is credible."
)

COMMAND = ("python", "run_experiment.py", "--repeats", "200")


def expected_values() -> dict[str, float]:
    """What the script really computes, by running its functions (they are part of this test suite)."""
    scope: dict[str, Any] = {"__name__": "experiment"}
    exec(compile(ESTIMATORS, "estimators.py", "exec"), scope)
    code = RUN.replace("from estimators import plain_mean, trimmed_mean\n", "")
    exec(compile(code, "run_experiment.py", "exec"), scope)
    values: dict[str, float] = scope["squared_errors"](200, 50, 0.1, 4.0, 2.5, 7)
    return values


def claims() -> tuple[NumericClaim, ...]:
    result = []
    for number, (name, value) in enumerate(sorted(expected_values().items()), start=1):
        result.append(
            NumericClaim(
                id=f"c{number}",
                metric="MSE",
                value=round(value, 4),
                text=f"{value:.4f}",
                decimals=4,
                conditions=(Condition(name="estimator", value=name),),
                band=Band(low=round(value, 4) - 5e-5, high=round(value, 4) + 5e-5, source="printed precision"),
            )
        )
    return tuple(result)


def task(sources: Sequence[tuple[str, str]] = (("run_experiment.py", "entry"),), **changes: Any) -> Task:
    base = Task(
        id="shrinkage-mse",
        family=Family.EXPERIMENT,
        status=Status.VALIDATED,
        paper=Paper(id="shrinkage", title="Shrinking trimmed means"),
        repository=RepositoryRef(url="shrinkage", commit="a" * 40),
        question="Which estimator has the lowest mean squared error under asymmetric contamination?",
        method="Draw contaminated samples, estimate the location in three ways and average the squared errors.",
        provenance=Provenance(engine="keyless"),
        truth=ExperimentTruth(
            sources=tuple(SourceScript(path=path, role=role, score=1.0) for path, role in sources),
            expected=Expected(text="The shrunk estimator has the lowest error.", claims=claims()),
        ),
    )
    return base.evolve(**changes)


def document(text: str = PAPER_TEXT) -> Document:
    box = Box(0, 0, 100, 100)
    return Document(
        sha256="d" * 64,
        title="Shrinking trimmed means",
        pages=(Page(number=1, width=612, height=792, columns=1, text_quality=1.0),),
        passages=(Passage(id="p1", section=None, kind=PassageKind.PARAGRAPH, text=text, boxes=((1, box),)),),
        extractor="test",
    )


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


FILES: dict[str, bytes] = {
    "run_experiment.py": RUN.encode(),
    "estimators.py": ESTIMATORS.encode(),
    "README.md": b"# Shrinkage\n\nRun `python run_experiment.py` to reproduce the table.\n",
    "LICENSE": b"Permission is hereby granted, free of charge, to any person obtaining a copy.\n",
    "tests/test_estimators.py": b"from estimators import plain_mean\n\n\ndef test_mean():\n    assert plain_mean([1, 3]) == 2\n",
}


def write_tree(root: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        path = root / name  # surrogates in a name become the bytes that they stand for
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def snapshot(root: Path) -> Snapshot:
    """A snapshot of a plain directory, as `pipeline.repository` would export it."""
    files = []
    for entry in entries(root):
        if entry.link:
            continue
        data = entry.read()
        files.append(
            RepositoryFile(
                path=entry.path,
                size=len(data),
                sha256=hashlib.sha256(data).hexdigest(),
                executable=entry.executable,
                binary=b"\0" in data[:8000],
            )
        )
    files.sort(key=lambda file: file.path)
    return Snapshot(ref=RepositoryRef(url="shrinkage", commit="a" * 40), root=root, files=tuple(files))


def make(root: Path, extra: Mapping[str, bytes] | None = None) -> Snapshot:
    """The standard repository with more files."""
    root.mkdir(parents=True, exist_ok=True)
    write_tree(root, {**FILES, **(extra or {})})
    return snapshot(root)
