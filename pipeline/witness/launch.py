"""Load the witness into every Python process of a run; permute the data files of a tree.

The witness is one module and a `.pth` file, both under a random name, mounted read-only into the directories where the
environment's Python and the base's look for packages. A submission cannot name them ahead of its run, and what it sets
(`PYTHONPATH`, `-I`, `-E`) does not leave them out; a Python that is told `-S`, or one that it brings itself, is not
watched.
"""

from __future__ import annotations

import csv
import io
import json
import secrets
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pipeline.digests import digest_of
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.sandbox.base import ReadOnlyMount, RunSpec
from pipeline.witness._inside.watch import permutation
from pipeline.witness.records import Perturbation

if TYPE_CHECKING:
    import numpy as np

__all__ = ["permute_data_files", "with_witness"]

_TREE: Final = "/work"
_FEWEST_ROWS: Final = 8


def with_witness(
    spec: RunSpec, *, perturbation: Perturbation, amount: int, python: str, scratch: Path,
    permute: Sequence[tuple[str, str]] = (),
) -> RunSpec:  # fmt: skip
    """The run, with the witness in each of its Python processes; `read_witness` reads what it tells.

    Args:
        spec: of a container, which has the mounts and the outbox that a witness needs.
        perturbation: what is moved. Data files are not: see `permute_data_files`.
        amount: of `moved`, by which seeds are moved.
        python: `major.minor` of the environment.
        scratch: directory for the two mounted files; must stay until the run has ended.
        permute: (path, qualified name) of functions of the tree whose labels are permuted when they return.

    Raises:
        ExpbenchError: `USAGE`, the run has an outbox already.
    """
    if spec.outbox is not None:
        raise ExpbenchError(
            FailureKind.USAGE,
            "run with a witness",
            f"it has the outbox {spec.outbox} already, and a run has one",
            consequence="The run was not started",
            next_step="Run it without an outbox of its own, or without a witness",
        )
    name, outbox = f"m{secrets.token_hex(8)}", f"/{secrets.token_hex(8)}"
    settings = {
        "name": name, "tree": _TREE, "outbox": outbox, "perturbation": perturbation.value, "amount": amount,
        "permute": sorted(set(permute)) if perturbation is Perturbation.PERMUTED else [],
    }  # fmt: skip
    module, start = write_witness(scratch, name, settings)
    folders = (
        f"/opt/venv/lib/python{python}/site-packages",
        "/usr/lib/python3/dist-packages",
        f"/usr/local/lib/python{python}/site-packages",
    )
    mounts = [
        ReadOnlyMount(source=source, target=f"{folder}/{source.name}")
        for folder in folders
        for source in (module, start)
    ]
    told = digest_of([spec.model_dump(mode="json"), perturbation.value, amount, settings["permute"]])
    return spec.evolve(mounts=(*spec.mounts, *mounts), outbox=outbox, witness=told)


def write_witness(scratch: Path, name: str, settings: dict[str, Any]) -> tuple[Path, Path]:
    """The module and its start-up file under `scratch`, readable by everybody: a run is another user."""
    scratch.mkdir(parents=True, exist_ok=True)
    module, start = scratch / f"{name}.py", scratch / f"{name}.pth"
    source = resources.files("pipeline.witness._inside").joinpath("watch.py").read_text(encoding="utf-8")
    module.write_text(source, encoding="utf-8")
    start.write_text(f"import {name}; {name}.begin({json.dumps(settings)!r})\n", encoding="ascii")
    for path in (module, start):
        path.chmod(0o644)
    return module, start


def permute_data_files(tree: Path, paths: Sequence[str]) -> int:
    """Take the tie between the columns out of data files, in place; how many files were changed.

    Each column of a CSV or TSV file is permuted by itself (its header stays), as are the one-dimensional arrays of
    `.npy` and `.npz` files. What is no such file, or has fewer than 8 rows, stays as it is.

    Args:
        tree: a copy that is to be run.
        paths: relative to it.
    """
    changed = 0
    for name in paths:
        path = tree / name
        if not path.is_file() or path.is_symlink() or not path.resolve().is_relative_to(tree.resolve()):
            continue
        suffix = path.suffix.lower()
        if suffix in (".csv", ".tsv"):
            changed += _permute_table(path, "\t" if suffix == ".tsv" else ",")
        elif suffix in (".npy", ".npz"):
            changed += _permute_arrays(path)
    return changed


def _permute_table(path: Path, delimiter: str) -> bool:
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return False
    ending = "\r\n" if "\r\n" in text else "\n"
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except csv.Error:
        return False
    width = len(rows[0]) if rows else 0
    head = 0 if rows and any(_is_number(cell) for cell in rows[0]) else 1
    body = rows[head:]
    if width < 2 or len(body) < _FEWEST_ROWS or any(len(row) != width for row in body):
        return False
    columns = [_permuted(list(column), index) for index, column in enumerate(zip(*body, strict=True))]
    written = io.StringIO(newline="")
    csv.writer(written, delimiter=delimiter, lineterminator=ending).writerows(
        [*rows[:head], *zip(*columns, strict=True)]
    )
    return _rewrite(path, written.getvalue().encode("utf-8"))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _permuted(column: list[str], index: int) -> list[str]:
    """Another permutation for each column: rotated, then permuted."""
    turned = column[index % len(column) :] + column[: index % len(column)]
    return [turned[place] for place in permutation(len(turned))]


def _permute_arrays(path: Path) -> bool:
    import numpy as np

    try:
        loaded = np.load(path, allow_pickle=False)
        arrays = {"": loaded} if isinstance(loaded, np.ndarray) else dict(loaded.items())
    except (ValueError, OSError, EOFError, KeyError):
        return False  # pickled objects, or no array file at all
    permuted = {name: _permuted_array(array) for name, array in arrays.items()}
    if all(permuted[name] is array for name, array in arrays.items()):
        return False
    written = io.BytesIO()
    if isinstance(loaded, np.ndarray):
        np.save(written, permuted[""])
    else:
        np.savez(written, **permuted)  # type: ignore[arg-type]
    return _rewrite(path, written.getvalue())


def _permuted_array(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if array.ndim != 1 or len(array) < _FEWEST_ROWS:
        return array
    return array[permutation(len(array))]


def _rewrite(path: Path, data: bytes) -> bool:
    changed = data != path.read_bytes()
    if changed:
        path.write_bytes(data)
    return changed
