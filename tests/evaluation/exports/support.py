"""A workspace whose one experiment takes milliseconds, for exports that are really run."""

from __future__ import annotations

from pathlib import Path

from evaluation.recipes import as_repository
from pipeline.repository import RepositoryRef
from pipeline.store import Workspace
from pipeline.task import (
    Band,
    Condition,
    Environment,
    Expected,
    MaskedPath,
    NumericClaim,
    SourceScript,
    Status,
    Task,
    Usage,
)
from tests.evaluation.execution_support import COMMIT, public_task, truth
from tests.flows.support import empty_workspace

RUN = "for rule, score in (('A', 0.75), ('B', 0.5)):\n    print('rule', rule, 'score', score)\n"
HIDDEN = "CANARY-TRUTH"


def _claim(number: int, rule: str, value: float) -> NumericClaim:
    return NumericClaim(
        id=f"c{number}", metric="score", value=value, text=str(value), decimals=2,
        conditions=(Condition(name="rule", value=rule),),
        band=Band(low=value - 0.005, high=value + 0.005, source="printed"),
    )  # fmt: skip


def small_workspace(root: Path) -> Workspace:
    """One task that can be carried out, and one whose expected outcome states no number."""
    workspace = empty_workspace(root)
    original = workspace.root / "repository"
    original.mkdir()
    (original / "library.py").write_text("# what is left\n")
    (original / "run.py").write_text(RUN)
    found = truth().evolve(
        expected=Expected(text=f"{HIDDEN}: rule A wins", claims=(_claim(1, "A", 0.75), _claim(2, "B", 0.5))),
        sources=(SourceScript(path="run.py", role="entry", score=1.0),),
        usage=(Usage(argv=("python3", "run.py")),),
    )
    masked = (MaskedPath(path="run.py", action="removed", reason="source script"),)
    for name, its in (("paper-sound", found), ("paper-words", found.evolve(expected=Expected(text="A wins.")))):
        public = public_task(
            id=name,
            repository=RepositoryRef(url="repository", commit=COMMIT, license="MIT"),
            status=Status.MASKED,
            environment=Environment(python="3.11", packages=("numpy==1.26.4",), system_packages=("libgomp1",)),
        )
        values = {field: getattr(public, field) for field in type(public).model_fields}
        workspace.save_task(Task.model_validate(values | {"truth": its, "masked": masked}))
        plain = root.parent / f"{name}-plain"
        plain.mkdir()
        (plain / "library.py").write_text("# what is left\n")
        as_repository(plain, public.repository, workspace.masked_repository(name))
    return workspace
