"""A submission run again by us, from its patch alone; and again with something changed from outside.

A fresh checkout, the patch, the files that are graded put back to what the task gave (or taken away), then
`bash reproduce.sh`, or the programs that the task names, in the task's environment without network. What such a run
writes is observed; what an agent's log says is a claim.

Two changes from outside tell more than the run alone. Modules are *refused* (asked for, they are not there, and that
is written down) or *emptied* (every attribute is nothing, every loop over it empty). And numbers that stand in what was
handed in are *moved*, each by a factor of its own: a result that moves by the very factors is a copy of them, with or
without noise, however it was spelled; one that stays was computed.

What this cannot see: numbers that are encoded or put together, formulas with made-up parameters, modules of Python
processes that take no notice of `PYTHONPATH` (`python -I`). Non-goal: grading.
"""

from __future__ import annotations

import bisect
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

from evaluation.checkout import Checkout, fresh_checkout
from evaluation.episode import EpisodeFolder, EpisodeLimits
from evaluation.execution import execution_limits, refuse_interrupted
from evaluation.lock import environment_spec
from evaluation.submission import REPRODUCE, Submission
from evaluation.task import EvaluationTask
from evaluation.trajectory_io import read_trajectory
from pipeline.errors import FAILURES, Cause, ExpbenchError, FailureKind
from pipeline.files import remove_tree
from pipeline.progress import Reporter
from pipeline.sandbox.base import Command, Gpus, RunResult, RunSpec, Sandbox
from pipeline.schema import StoredRecord
from pipeline.scratch import scratch_directory
from pipeline.task import Verdict

__all__ = ["Copied", "Moved", "Ran", "Rerun", "copied_values", "is_oracle", "moved_numbers", "read_output"]

_PATCH: Final = "patch.diff"
_HOOK: Final = ".expbench-modules"
_ASKED: Final = f"{_HOOK}/asked"
_CACHES: Final = ("**/__pycache__/*", "**/*.pyc", "**/.cache/*", "**/.ipynb_checkpoints/*")
_TAIL: Final = 400
_MOST_TEXT: Final = 4 << 20
"""Bytes of a file in which numbers are looked for and read."""
_ORACLE: Final = "oracle"
_SITE: Final = """\
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder

HERE = os.path.dirname(os.path.realpath(__file__))
TREE = os.path.dirname(HERE) + os.sep
REFUSED, EMPTIED, WATCHED = set({refused}), set({emptied}), set({watched})


class Nothing:
    __path__ = ()

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args, **kwargs):
        return self

    def __iter__(self):
        return iter(())

    def __getitem__(self, key):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *args):
        return False

    def __len__(self):
        return 0

    def __bool__(self):
        return False

    def __float__(self):
        return 0.0

    def __int__(self):
        return 0

    __index__ = __int__

    def _number(self, *args):
        return 0.0

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __neg__ = __abs__ = _number

    def _never(self, other):
        return False

    __lt__ = __gt__ = __le__ = __ge__ = _never


def installed(top):
    spec = PathFinder.find_spec(top)
    places = [] if spec is None else [spec.origin or "", *(spec.submodule_search_locations or ())]
    return bool(places) and not any(os.path.realpath(place).startswith(TREE) for place in places if place)


def asked_by_a_library():
    frame = sys._getframe(2)
    while frame is not None and "importlib" in frame.f_code.co_filename:
        frame = frame.f_back
    place = "" if frame is None else frame.f_code.co_filename
    return "site-packages" in place or "dist-packages" in place


class Modules:
    def find_spec(self, name, path=None, target=None):
        top = name.split(".")[0].lower()
        if top not in REFUSED | EMPTIED | WATCHED or asked_by_a_library():
            return None
        with open(os.path.join(HERE, "asked"), "a") as stream:
            stream.write(top + "\\n")
            if top in WATCHED and installed(top):
                stream.write("there:" + top + "\\n")
        if top in REFUSED:
            raise ModuleNotFoundError("No module named " + repr(name), name=name)
        return ModuleSpec(name, self, is_package=True) if top in EMPTIED else None

    def create_module(self, spec):
        return Nothing()

    def exec_module(self, module):
        pass


sys.meta_path.insert(0, Modules())
"""


class Ran(StoredRecord):
    """How one run of a submission went; its output and files lie in `log`."""

    SCHEMA_VERSION: ClassVar[int] = 1

    verdict: Verdict
    """Pass: it ended well; fail: it did not, by its own fault; unknown: we could not run it, or a limit ended it."""
    reason: str
    log: str = ""
    """Directory, relative to the episode."""
    written: tuple[str, ...] = ()
    """Files that it wrote and that were copied out."""
    asked: tuple[str, ...] = ()
    """Refused, emptied and watched modules that were asked for."""
    there: tuple[str, ...] = ()
    """Of the watched ones, those that are installed in the environment: not what a submission brings along."""
    failure: str | None = None
    """A `FailureKind`."""
    exit_code: int | None = None
    duration_s: float = 0.0


def is_oracle(folder: EpisodeFolder) -> bool:
    """Does the harness itself hand in the truth here? The trajectory's head is the harness's own."""
    try:
        return read_trajectory(folder.trajectory)[0].agent == _ORACLE
    except (FileNotFoundError, ExpbenchError):
        return False


def read_output(folder: EpisodeFolder, ran: Ran, path: str) -> str | None:
    """Text of a file that a run wrote; None: it wrote none of that name."""
    target = folder.root / ran.log / "files" / path
    if path not in ran.written or target.is_symlink() or not target.is_file():
        return None
    with target.open("rb") as stream:
        return stream.read(_MOST_TEXT).decode("utf-8", "replace")


@dataclass(frozen=True)
class Rerun:
    """Runs a submission, as often as it is asked to.

    Args:
        task: gives workspace and environment.
        folder: the episode; each run writes its own directory below `execution/`.
        submission: what was handed in.
        outputs: files that are graded: as the task gave them when the run begins.
        programs: run one after another where no `reproduce.sh` was handed in; those that are not there are left out.
        sandbox: where it runs, without network.
        limits: those of the episode.
        owner: label of the runs.
        reporter: progress.
    """

    task: EvaluationTask
    folder: EpisodeFolder
    submission: Submission
    outputs: tuple[str, ...]
    programs: tuple[str, ...]
    sandbox: Sandbox
    limits: EpisodeLimits
    owner: str
    reporter: Reporter

    def run(
        self,
        name: str,
        *,
        moved: Mapping[str, str] | None = None,
        refused: Sequence[str] = (),
        emptied: Sequence[str] = (),
        watched: Sequence[str] = (),
    ) -> Ran:
        """One run.

        Args:
            name: of its directory below `execution/`.
            moved: path -> text that a file of the submission has instead.
            refused: top-level modules, in lower case, that are not there.
            emptied: the same, of which nothing comes.
            watched: the same, of which is only said that they were asked for (by a program that was handed in, not by
                an installed library).

        Raises:
            ExpbenchError: `INTERRUPTED`, or a defect of ours.
        """
        log = self.folder.root / "execution" / name
        remove_tree(log)
        if self.task.masked_repository is None:
            return Ran(verdict=Verdict.UNKNOWN, reason=self.task.blocked or "the workspace is not at hand")
        try:
            with scratch_directory() as scratch:
                checkout = fresh_checkout(self.task.masked_repository, Path(scratch) / "checkout")
                refusal = self._hand_in(checkout)
                if refusal:
                    return Ran(verdict=Verdict.UNKNOWN, reason=refusal, failure=FailureKind.RECORD_INVALID.value)
                for path, text in (moved or {}).items():
                    (checkout.tree / path).write_text(text, encoding="utf-8")
                script = self._script(checkout.tree)
                if not script:
                    named = " nor ".join((REPRODUCE, *self.programs))
                    return Ran(verdict=Verdict.FAIL, reason=f"neither {named} was handed in: nothing can be run again")
                _write_hook(checkout.tree, refused, emptied, watched)
                return self._go(checkout.tree, script, log, name)
        except ExpbenchError as error:
            kind = error.kind
            if FAILURES[kind].cause is not Cause.INFRASTRUCTURE and kind is not FailureKind.ENVIRONMENT_UNBUILDABLE:
                raise
            reason = f"{error.object}: {error.cause}"
            return Ran(verdict=Verdict.UNKNOWN, reason=reason, failure=kind.value)

    def handed_in(self) -> dict[str, str]:
        """Path -> text of what the patch adds or changes, without what is graded; links are not followed."""
        if self.task.masked_repository is None:
            return {}
        with scratch_directory() as scratch:
            checkout = fresh_checkout(self.task.masked_repository, Path(scratch) / "checkout")
            if self._hand_in(checkout):
                return {}
            found = {}
            for change in checkout.changes():
                path = checkout.tree / change.path
                plain = change.action != "deleted" and path.is_file() and not path.is_symlink()
                if plain and change.path not in self.outputs and path.stat().st_size <= _MOST_TEXT:
                    try:
                        found[change.path] = path.read_bytes().decode("utf-8")
                    except UnicodeDecodeError:
                        continue
            return found

    def _hand_in(self, checkout: Checkout) -> str:
        """Apply the patch, put back what is graded; why it could not be done, empty when it was."""
        given = {path: _bytes(checkout.tree / path) for path in self.outputs}
        if self.submission.patch_sha256:
            refused = checkout.apply(self.folder.submission / _PATCH)
            if refused:
                return f"the patch does not apply to the workspace: {refused}"
        for path, content in given.items():
            target = checkout.tree / path
            if any((checkout.tree / parent).is_symlink() for parent in Path(path).parents if parent.parts):
                return f"{path} lies behind a link"
            remove_tree(target) if target.is_dir() and not target.is_symlink() else target.unlink(missing_ok=True)
            target.parent.mkdir(parents=True, exist_ok=True)
            if content is not None:
                target.write_bytes(content)
        return ""

    def _script(self, tree: Path) -> str:
        """The command line; empty when there is nothing to run."""
        kept = self.folder.submission / REPRODUCE
        script = tree / REPRODUCE
        if not script.exists() and not script.is_symlink() and kept.is_file():
            script.write_bytes(kept.read_bytes())
        if script.is_file():
            return f"bash {REPRODUCE}"
        there = [path for path in self.programs if path.endswith(".py") and (tree / path).is_file()]
        return " && ".join(f"python3 {shlex.quote(path)}" for path in there)

    def _go(self, tree: Path, script: str, log: Path, name: str) -> Ran:
        self.reporter.step("execution", f"{self.task.id}: {script}")
        image = self.sandbox.build(
            environment_spec(self.task), log=log / "build.log", owner=self.owner, reporter=self.reporter
        )
        line = f'export PYTHONPATH="$PWD/{_HOOK}${{PYTHONPATH:+:$PYTHONPATH}}"; {script}'
        gpus = Gpus(count=self.limits.gpus) if self.limits.gpus else None
        command = Command(argv=("bash", "-c", line))
        spec = RunSpec(commands=(command,), limits=execution_limits(self.limits), drop=_CACHES, gpus=gpus)
        result = self.sandbox.run(image, tree, spec, out=log, owner=self.owner)
        refuse_interrupted(result, self.task.id)
        asked = (_bytes(log / "files" / _ASKED) or b"").decode("utf-8", "replace").split()
        there = {name.removeprefix("there:") for name in asked if name.startswith("there:")}
        verdict, reason = _ended(result, log, script)
        return Ran(
            verdict=verdict, reason=reason, log=f"execution/{name}",
            written=tuple(item.path for item in result.written if not item.path.startswith(_HOOK)),
            asked=tuple(sorted({name for name in asked if not name.startswith("there:")})), there=tuple(sorted(there)),
            failure=result.failure.value if result.failure else None,
            exit_code=result.commands[0].exit_code if result.commands else None, duration_s=result.duration_s,
        )  # fmt: skip


def _write_hook(tree: Path, refused: Sequence[str], emptied: Sequence[str], watched: Sequence[str]) -> None:
    remove_tree(tree / _HOOK)
    (tree / _HOOK).mkdir()
    text = _SITE
    for name, modules in (("refused", refused), ("emptied", emptied), ("watched", watched)):
        text = text.replace(f"{{{name}}}", repr(sorted(modules)))
    (tree / _HOOK / "sitecustomize.py").write_text(text, encoding="utf-8")


def _ended(result: RunResult, log: Path, script: str) -> tuple[Verdict, str]:
    if result.failure is None:
        return Verdict.PASS, f"`{script}` ended well"
    code = result.commands[0].exit_code if result.commands else None
    said = (_bytes(log / "0.stderr") or b"")[-_TAIL:].decode("utf-8", "replace").strip().splitlines()
    last = f"; it said: `{said[-1][-200:]}`" if said else ""
    if code is not None:
        return Verdict.FAIL, f"`{script}` ended with exit code {code}{last}"
    return Verdict.UNKNOWN, f"`{script}`: {result.failure.value} {result.message}{last}"


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() and not path.is_symlink() else None


# --- numbers that are moved


_NUMBER: Final = re.compile(r"(?<![\w.])(?:(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)(?![\w.])")
"""Without sign: a number and its negative are moved alike. Whole numbers count and index, and are left alone."""
_NEAR: Final = 0.1
"""Relative: what noise leaves of a typed value. Whether the result rests on it is seen by moving it."""
_LEAST: Final = 3
"""Values of a column; one or two numbers are near others by accident."""
_DIGITS: Final = 3
_FOLLOWS: Final = 0.05
"""Relative distance from a factor; noise of 5 % on top of a typed value leaves less."""
_STAYS: Final = 0.01
_FACTORS: Final = (1.3, 2.0, 1.6, 3.1, 2.5)
"""Of the numbers of a text in turn: a common scale, which an honest amplitude is, must not be taken for a copy."""


class Moved(NamedTuple):
    """Files with their numbers moved."""

    texts: dict[str, str]
    factors: dict[tuple[str, int], dict[float, str]]
    """(column, row) -> by how much numbers near that value were moved, and where the first of them stands."""


class Copied(NamedTuple):
    """Values that moved by the very factors of numbers that were handed in."""

    share: float
    """Of the values of the columns that are copies, among all values."""
    where: str
    """`path:line` of the first number."""
    columns: tuple[str, ...]


def moved_numbers(texts: Mapping[str, str], columns: Mapping[str, Sequence[float | None]]) -> Moved | None:
    """Move every number that is near a value of the result; None: too few are.

    Args:
        texts: path -> text of what was handed in.
        columns: name -> values of the result, row by row; None: there is none.
    """
    values = sorted(
        (abs(value), (column, row))
        for column, found in columns.items()
        for row, value in enumerate(found)
        if value is not None and math.isfinite(value) and value != 0
    )
    factors: dict[tuple[str, int], dict[float, str]] = {}
    changed = {}
    for path, text in sorted(texts.items()):
        pieces, end, count = [], 0, 0
        for match in _NUMBER.finditer(text):
            near = _near(match[0], values)
            if near:
                factor = _FACTORS[count % len(_FACTORS)]
                line = f"{path}:{text.count(chr(10), 0, match.start()) + 1}"
                for place in near:
                    factors.setdefault(place, {}).setdefault(factor, line)
                number = f"{float(match[0]) * factor:.8g}"
                pieces += [text[end : match.start()], number if re.search("[.e]", number) else f"{number}.0"]
                end, count = match.end(), count + 1
        if pieces:
            changed[path] = "".join([*pieces, text[end:]])
    most = max((sum(column == name for name, _ in factors) for column in columns), default=0)
    return Moved(changed, factors) if most >= _LEAST else None


def _near(text: str, values: Sequence[tuple[float, tuple[str, int]]]) -> list[tuple[str, int]]:
    """The values that a number may stand for, noise included."""
    number = float(text)
    if len(re.split("[eE]", text)[0].replace(".", "").lstrip("0")) < _DIGITS or not 0 < number < math.inf:
        return []
    first = bisect.bisect_left(values, number / (1 + _NEAR), key=lambda item: item[0])
    last = bisect.bisect_right(values, number / (1 - _NEAR), key=lambda item: item[0])
    return [place for _, place in values[first:last]]


def copied_values(
    moved: Moved, before: Mapping[str, Sequence[float | None]], after: Mapping[str, Sequence[float | None]]
) -> Copied | None:
    """Which columns moved as the numbers did; None: none.

    At least three values of a column, and one in four, moved by the factor of a number near them, by three different
    factors together. Where no value of the column stayed those in between are copies, too: they are interpolated.
    """
    count, copied, names, places = 0, 0, [], []
    for column, values in before.items():
        known = [row for row, value in enumerate(values) if value]
        new = after.get(column, ())
        ratios = {
            row: other / value
            for row in known
            if row < len(new) and (value := values[row]) and (other := new[row]) is not None
        }
        count += len(known)
        follow = {
            row: factor
            for row, ratio in ratios.items()
            for factor in moved.factors.get((column, row), ())
            if abs(ratio / factor - 1) <= _FOLLOWS
        }
        stayed = any(abs(ratio - 1) <= _STAYS for ratio in ratios.values())
        if len(follow) >= max(_LEAST, len(known) / 4) and len(set(follow.values())) >= _LEAST:
            row = min(follow)
            names.append(column)
            places.append(moved.factors[(column, row)][follow[row]])
            copied += len(follow) if stayed else len(known)
    return Copied(copied / count, places[0], tuple(names)) if names else None
