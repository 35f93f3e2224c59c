"""The release gate: the original passes, the masked repository fails for the right reason, the restored one passes.

That the masked run fails shows that the answer has to be worked out; that it fails *because of the mask* shows that
nothing else is broken; that the restored tree passes shows that the mask is the only difference.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from masking.records import MaskPlan
from masking.tree import Entry, copy_entry, entries
from pipeline.errors import FailureKind
from pipeline.repository import Snapshot
from pipeline.sandbox.base import Image, RunResult, RunSpec, Sandbox
from pipeline.task import RoundTrip, Task, Verdict

__all__ = ["Judge", "restore", "round_trip", "tree_difference"]

Judge = Callable[[RunResult, Path], Verdict]
"""Compares the outputs of a run (result, its output directory) with the claims."""

_TAIL: Final = 64 << 10
"""Bytes of each output stream in which the cause of a failure is looked for."""
_MISSING_MODULE: Final = re.compile(r"No module named '?([\w.]+)'?|cannot import name '(\w+)' from '([\w.]+)'")
_NOT_WRITTEN: Final = "NotImplementedError: [masked]"
_MISSING_FILE: Final = re.compile(
    r"can't open file|no such file|not found|cannot open|does not exist|FileNotFoundError", re.IGNORECASE
)


class _Masked(NamedTuple):
    verdict: Verdict
    """PASS: the answer can still be computed; FAIL: it cannot, because of the mask; UNKNOWN: something else broke."""
    how: str


def round_trip(
    task: Task, *, masked: Path, snapshot: Snapshot, plan: MaskPlan, image: Image, sandbox: Sandbox, spec: RunSpec,
    judge: Judge, out: Path, owner: str, repeats: int = 1,
) -> RoundTrip:  # fmt: skip
    """Run the chain on the masked and on the restored repository (EXP-Bench 3.2, stage 3; release gate of the design).

    Every repeat has to agree: one masked run that gives the answer is a leak, one restored run that does not is a mask
    that breaks something. The first repeat that is not as it should be ends its series.

    Args:
        task: with the validation of the original.
        masked: the masked repository.
        snapshot: the original files.
        plan: the mask.
        image: environment of the validation.
        sandbox: where to run.
        spec: the commands of the validation.
        judge: compares a run with the claims.
        out: directory for logs: `masked/run-<n>` and `restored/run-<n>` below it.
        owner: label of the run.
        repeats: how often each of the two is run, at least 1.

    Raises:
        ExpbenchError: the sandbox failed; nothing is known about the task.
    """
    original = task.validation.verdict if task.validation is not None else Verdict.UNKNOWN
    numbers = range(1, max(1, repeats) + 1)
    for number in numbers:
        first = _masked_run(masked, plan, image, sandbox, spec, judge, out / "masked" / f"run-{number}", owner)
        if first.verdict is not Verdict.FAIL:
            break
    tree = out / "restored-tree"
    shutil.rmtree(tree, ignore_errors=True)
    try:
        restore(masked, snapshot, plan, tree)
        difference = tree_difference(snapshot.root, tree, ignore=plan.with_action("outputs_cleared"))
        for number in numbers:
            logs = out / "restored" / f"run-{number}"
            logs.mkdir(parents=True, exist_ok=True)
            result = sandbox.run(image, tree, spec, out=logs, owner=owner)
            restored = judge(result, logs) if result.failure is None else _failed(result)
            if restored is not Verdict.PASS:
                break
    finally:
        shutil.rmtree(tree, ignore_errors=True)
    return _decide(original, first, restored, difference).evolve(repeats=len(numbers))


def _failed(result: RunResult) -> Verdict:
    """A run that the machine or a limit ended says nothing about the restored code."""
    return Verdict.FAIL if result.failure is FailureKind.RUN_FAILED else Verdict.UNKNOWN


def _decide(original: Verdict, masked: _Masked, restored: Verdict, difference: list[str]) -> RoundTrip:
    reasons: list[str] = []
    if original is not Verdict.PASS:
        reasons.append(f"the original's verdict is {original.value}")
    if masked.verdict is Verdict.PASS:
        reasons.append(f"the masked repository still gives the answer ({masked.how})")
    elif masked.verdict is Verdict.UNKNOWN:
        reasons.append(f"the masked run did not fail because of the mask ({masked.how})")
    if restored is not Verdict.PASS:
        reasons.append(f"the restored repository's verdict is {restored.value}")
    if difference:
        reasons.append("the restored tree differs from the original: " + ", ".join(difference[:5]))
    wrong = original is Verdict.FAIL or masked.verdict is Verdict.PASS or restored is Verdict.FAIL or bool(difference)
    verdict = Verdict.FAIL if wrong else Verdict.UNKNOWN if reasons else Verdict.PASS
    return RoundTrip(
        verdict=verdict,
        reason="; ".join(reasons) or "original passes, masked fails because of the mask, restored passes",
        original=original,
        masked=masked.verdict,
        restored=restored,
        masked_failure=masked.how if masked.verdict is not Verdict.PASS else "",
    )


# --- the masked run --------------------------------------------------------------------------------------------------


def _masked_run(
    masked: Path, plan: MaskPlan, image: Image, sandbox: Sandbox, spec: RunSpec, judge: Judge, out: Path, owner: str
) -> _Masked:
    out.mkdir(parents=True, exist_ok=True)
    result = sandbox.run(image, masked, spec, out=out, owner=owner)
    answer = judge(result, out)
    if answer is Verdict.PASS:
        return _Masked(Verdict.PASS, "its run reproduces the claims")
    if result.failure is None:
        if not result.produced and all(command.stdout_bytes == 0 for command in result.commands):
            return _Masked(Verdict.FAIL, "every command ended well but nothing was printed or written")
        if answer is Verdict.FAIL:
            return _Masked(Verdict.FAIL, "every command ended well but the claims are not reproduced")
        return _Masked(Verdict.UNKNOWN, "every command ended well; whether the claims are reproduced is unknown")
    if result.failure is not FailureKind.RUN_FAILED:
        return _Masked(Verdict.UNKNOWN, f"{result.failure.value}: {result.message or 'no message'}")
    return _why(result, plan, spec, out)


def _why(result: RunResult, plan: MaskPlan, spec: RunSpec, out: Path) -> _Masked:
    """Is a masked file what the failing command missed?"""
    removed = plan.with_action("removed")
    index = next(
        (number for number, command in enumerate(result.commands) if command.exit_code != 0 or command.failure),
        len(result.commands) - 1,
    )
    command = spec.commands[index]
    for argument in command.argv:
        path = str(PurePosixPath(command.directory, argument.removeprefix("./"))).removeprefix("./")
        if path in removed:
            return _Masked(Verdict.FAIL, f"{path}: no such file (masked)")
    text = _output(out, index)
    if plan.masks_functions and _NOT_WRITTEN in text:
        return _Masked(Verdict.FAIL, "a masked function was called: it is not implemented (masked)")
    missing = _missing_module(text, removed)
    if missing is not None:
        return missing
    lines = text.splitlines()
    for path in sorted(removed, key=lambda path: (-len(path), path)):
        name = PurePosixPath(path).name
        for line in lines:
            if name in line and _MISSING_FILE.search(line):
                return _Masked(Verdict.FAIL, f"{path}: no such file (masked); {line.strip()[:200]}")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "no output")
    return _Masked(
        Verdict.UNKNOWN, f"exit code {result.commands[index].exit_code}, not about a masked file: {last[:200]}"
    )


def _output(out: Path, index: int) -> str:
    parts: list[str] = []
    for name in (f"{index}.stdout", f"{index}.stderr"):
        path = out / name
        if path.is_file():
            with path.open("rb") as stream:
                stream.seek(max(path.stat().st_size - _TAIL, 0))
                parts.append(stream.read().decode("utf-8", "replace"))
    return "\n".join(parts)


def _missing_module(text: str, removed: frozenset[str]) -> _Masked | None:
    """A failed import: of a masked file (right), of something else (a broken environment), or none."""
    found = None
    for found in _MISSING_MODULE.finditer(text):
        names = [name for name in (found[1], f"{found[3]}.{found[2]}" if found[3] else None, found[3]) if name]
        for name in names:
            tail = name.replace(".", "/")
            for path in sorted(removed):
                if f"/{path}".endswith((f"/{tail}.py", f"/{tail}/__init__.py")):
                    return _Masked(Verdict.FAIL, f"{path}: no such module (masked)")
    return None if found is None else _Masked(Verdict.UNKNOWN, f"an import failed that was not masked: {found[0]}")


# --- the restored tree -----------------------------------------------------------------------------------------------


def restore(masked: Path, snapshot: Snapshot, plan: MaskPlan, into: Path) -> None:
    """Write the masked work tree with its removed and edited files put back; cleared notebooks stay cleared.

    Args:
        masked: the masked repository (its `.git` is left out).
        snapshot: where the masked files come from.
        plan: which files those are.
        into: a directory that does not exist.
    """
    into.mkdir(parents=True)
    back = plan.with_action("removed") | plan.with_action("edited")
    for entry in entries(masked):
        if entry.path not in back:
            copy_entry(entry, into)
    for entry in entries(snapshot.root):
        if entry.path in back:
            copy_entry(entry, into)


def _state(entry: Entry) -> tuple[bool, bool, str]:
    return entry.link, entry.executable and not entry.link, hashlib.sha256(entry.read()).hexdigest()


def tree_difference(first: Path, second: Path, *, ignore: frozenset[str] = frozenset()) -> list[str]:
    """Paths whose file (content, executable bit, link target) is not the same in both trees, sorted."""
    left = {entry.raw: entry for entry in entries(first) if entry.path not in ignore}
    right = {entry.raw: entry for entry in entries(second) if entry.path not in ignore}
    different = [
        entry.path
        for raw, entry in {**right, **left}.items()
        if raw not in left or raw not in right or _state(left[raw]) != _state(right[raw])
    ]
    return sorted(different)
