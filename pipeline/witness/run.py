"""One run with a witness, as it is or under a perturbation."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from pipeline.files import remove_tree
from pipeline.sandbox.base import Image, RunResult, RunSpec, Sandbox
from pipeline.witness.launch import permute_data_files, with_witness
from pipeline.witness.read import read_witness
from pipeline.witness.records import Perturbation, WitnessReport

__all__ = ["run_witnessed"]


def run_witnessed(
    spec: RunSpec, image: Image, tree: Path, *, perturbation: Perturbation, amount: int, python: str,
    permute: Sequence[tuple[str, str]], data: Sequence[str], sandbox: Sandbox, scratch: Path, out: Path, owner: str,
) -> tuple[RunResult, WitnessReport]:  # fmt: skip
    """Make a run, and read what its witness tells.

    Args:
        spec: without a witness.
        image: of the environment.
        tree: stays as it is: with permuted labels a copy is run, whose data files lost the tie between columns.
        perturbation: what is moved.
        amount: of `moved`, by which seeds are moved.
        python: `major.minor` of the environment.
        permute: functions whose labels are permuted (see `with_witness`).
        data: files of the tree that are permuted (see `permute_data_files`).
        sandbox: whose runs are containers.
        scratch: directory of the caller's for the copy and the witness.
        out: directory for what the run leaves behind.
        owner: label of the run.

    Raises:
        ExpbenchError: the sandbox broke.
    """
    changed = 0
    if perturbation is Perturbation.PERMUTED:
        copy = scratch / "permuted"
        remove_tree(copy)
        shutil.copytree(tree, copy, symlinks=True)
        tree, changed = copy, permute_data_files(copy, data)
    spec = with_witness(
        spec, perturbation=perturbation, amount=amount, python=python, scratch=scratch / "witness", permute=permute
    )
    result = sandbox.run(image, tree, spec, out=out, owner=owner)
    witness = read_witness(out, perturbation=perturbation, amount=amount)
    return result, witness.evolve(files_permuted=changed)
