"""Was the result computed? Rules over the sources and outputs of a run (the monitor of EXP-Bench, applied to truth).

A task whose "ground truth" prints a constant, copies a shipped file or draws a random number would reward an agent for
nothing. The rules look at the abstract syntax and at digests; they report, the caller decides: `error` means that the
outcome must not be believed, `warning` that a person should look.
"""

from __future__ import annotations

import ast
import posixpath
import statistics
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

from scipy import special

from pipeline.match.views import plain
from pipeline.repository import Snapshot
from pipeline.sandbox.base import RunResult
from pipeline.schema import Problem, Severity
from pipeline.task import NumericClaim, Verdict
from pipeline.tracing.parsed import called_function
from pipeline.tracing.source import read_unit
from pipeline.validation.binding import unbound
from pipeline.validation.numbers import find_numbers
from pipeline.validation.outcome import match_claims
from pipeline.validation.outputs import read_file

__all__ = ["WINDOWS_ONLY", "WRITTEN", "inspect_run", "shipped_and_rewritten"]

_COMPONENT: Final = "validation.monitor"
WRITTEN: Final = f"{_COMPONENT}.written"
"""Component of the problem that claimed numbers are written in the program: it may print them beside what it computes,
so that only a run in which they move tells (`responses.computed`). Seen: a text that tells the result it is put beside.
"""
_SINKS: Final = frozenset(
    {"print", "write", "writelines", "writerow", "writerows", "info", "log", "dump", "dumps", "echo", "append"}
)
_READERS: Final = frozenset({
    "open", "read_csv", "read_table", "read_json", "read_excel", "read_parquet", "read_pickle", "load", "loadtxt",
    "genfromtxt", "read_text", "loads", "safe_load", "Path", "join",
})  # fmt: skip
_RANDOM: Final = frozenset(
    {"uniform", "normal", "random", "rand", "randn", "randint", "gauss", "choice", "integers", "betavariate"}
)
_RESULT_SUFFIXES: Final = (
    ".csv",
    ".tsv",
    ".json",
    ".jsonl",
    ".yaml",
    ".yml",
    ".txt",
    ".log",
    ".npz",
    ".npy",
    ".pkl",
    ".md",
)
WINDOWS_ONLY: Final = "it shows its results in windows only: nothing was printed or written that could be compared"
_MIN_DIGITS: Final = 3
"""Two digits of a claim occur in most programs by chance (0.5, 10, 0.01)."""
_MAX_FILE: Final = 2_000_000
_MAX_NOTEBOOK: Final = 40_000_000
_CHANCE: Final = 0.001
"""A file whose numbers agree with the claims less often than this by accident states them."""


def inspect_run(
    snapshot: Snapshot, sources: Sequence[str], result: RunResult, out: Path, claims: Sequence[NumericClaim]
) -> tuple[Problem, ...]:
    """What speaks against the outcome of a run having been computed.

    Args:
        snapshot: the repository.
        sources: files of the chain.
        result: the run.
        out: its output directory.
        claims: the numbers that count as its result.

    Returns:
        Problems sorted by place; severity `error` where the outcome must not be believed.
    """
    telling = [claim for claim in claims if _digits(claim) >= _MIN_DIGITS]
    problems: list[Problem] = []
    for path in sorted(set(sources)):
        tree = _parse(snapshot, path)
        if tree is not None:
            problems += _literals(tree, path, telling)
            problems += _random_results(tree, path, claims)
            found = _shipped_results(tree, path, snapshot, result, telling or claims)
            # numbers of one or two digits may stand there by chance: a person decides
            problems += found if telling else (item.evolve(severity=Severity.WARNING) for item in found)
    problems += _copies(snapshot, result, telling)
    problems += _no_work(result, out, _shows_windows(snapshot, sources))
    return tuple(sorted(set(problems), key=lambda item: (item.where, item.message)))


def shipped_and_rewritten(
    snapshot: Snapshot, sources: Sequence[str], result: RunResult, claims: Sequence[NumericClaim]
) -> tuple[str, ...]:
    """Data files that hold claimed numbers and that a run wrote again as the repository ships them, sorted.

    A program that reads such a file and writes it again has computed nothing; a run without it tells.
    """
    telling = [claim for claim in claims if _digits(claim) >= _MIN_DIGITS] or list(claims)
    own = {file.path for file in snapshot.files if file.size <= _MAX_FILE} - set(sources)
    again = [item.path for item in result.rewritten if item.path.endswith(_RESULT_SUFFIXES) and item.path in own]
    return tuple(sorted(path for path in again if telling and _held(snapshot, path, telling)))


def _digits(claim: NumericClaim) -> int:
    return len(str(abs(round(claim.value * 10.0**claim.decimals))).strip("0"))


def _parse(snapshot: Snapshot, path: str) -> ast.Module | None:
    """The tree of a script or notebook, with the line numbers of the file as it is stored."""
    if not path.endswith((".py", ".ipynb")) or not (snapshot.root / path).is_file():
        return None
    unit = read_unit(path, snapshot.text(path, _MAX_NOTEBOOK if path.endswith(".ipynb") else _MAX_FILE))
    if unit.tree is not None and unit.lines:
        for node in ast.walk(unit.tree):
            if hasattr(node, "lineno"):
                node.lineno = unit.line(node.lineno)
    return unit.tree


def _problem(where: str, message: str, severity: Severity) -> Problem:
    return Problem(component=_COMPONENT, where=where, message=message, severity=severity)


# --- constants instead of results ------------------------------------------------------------------------------------


def _literals(tree: ast.Module, path: str, claims: Sequence[NumericClaim]) -> Iterator[Problem]:
    """Claimed numbers written into the program where results belong: printed, or collected in a container."""
    hits: dict[str, int] = {}
    for node in _result_positions(tree):
        for line, value in _numbers_in(node):
            for claim in claims:
                if _same(value, claim):
                    hits.setdefault(claim.id, line)
    if not hits:
        return
    serious = len(hits) >= max(2, (len(claims) + 1) // 2) or len(hits) == len(claims)
    lines = ", ".join(str(line) for line in sorted(set(hits.values()))[:5])
    yield Problem(
        component=WRITTEN if serious else _COMPONENT,
        where=f"{path}:{min(hits.values())}",
        message=f"{len(hits)} of {len(claims)} claimed numbers are written in the program where results are printed or "
        f"stored (line {lines})",
        severity=Severity.WARNING,
    )


def _result_positions(tree: ast.Module) -> Iterator[ast.AST]:
    """Arguments of printing and writing calls, values of dictionaries, elements of lists; not comparisons, defaults."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and called_function(node) in _SINKS:
            yield from node.args
        elif isinstance(node, ast.Dict):
            yield from node.values
        elif isinstance(node, ast.List | ast.Tuple):
            yield from node.elts
        elif isinstance(node, ast.Return) and isinstance(node.value, ast.Constant):
            yield node.value


def _numbers_in(node: ast.AST) -> Iterator[tuple[int, float]]:
    """Numbers of a literal, of a text, or of the fixed parts of a formatted text; calls inside are computed values."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    for part in parts:
        if isinstance(part, ast.Constant):
            if isinstance(part.value, int | float) and not isinstance(part.value, bool):
                yield part.lineno, float(part.value)
            elif isinstance(part.value, str):
                for number in find_numbers(part.value[:_MAX_FILE]):
                    yield part.lineno, number.value


def _same(value: float, claim: NumericClaim) -> bool:
    return any(abs(value - target) <= 1e-9 * max(1.0, abs(target)) for target in (claim.value, claim.value / 100))


# --- random numbers instead of results -------------------------------------------------------------------------------


def _random_results(tree: ast.Module, path: str, claims: Sequence[NumericClaim]) -> Iterator[Problem]:
    """A variable named like a claimed metric that is nothing but a random draw."""
    metrics = {plain(claim.metric) for claim in claims}
    for node in ast.walk(tree):
        pairs: list[tuple[str, ast.expr]] = []
        if isinstance(node, ast.Assign):
            pairs = [(target.id, node.value) for target in node.targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.Dict):
            pairs = [
                (str(key.value), value)
                for key, value in zip(node.keys, node.values, strict=True)
                if isinstance(key, ast.Constant)
            ]
        for name, value in pairs:
            if _is_draw(value) and any(_shares_letters(plain(part), metrics) for part in name.split("_")):
                yield _problem(
                    f"{path}:{value.lineno}", f"`{name}` is a random draw, not a computed result", Severity.ERROR
                )


def _shares_letters(name: str, metrics: Collection[str]) -> bool:
    """Is a name part of a metric's (`acc` of `test accuracy`), or the other way round?"""
    return len(name) > 2 and any(name in metric or metric in name for metric in metrics if len(metric) > 2)


def _is_draw(node: ast.expr) -> bool:
    """A call of a random generator with constant arguments only, possibly scaled, shifted or rounded."""
    if isinstance(node, ast.BinOp):
        sides = (node.left, node.right)
        return any(map(_is_draw, sides)) and all(_is_draw(side) or isinstance(side, ast.Constant) for side in sides)
    if not isinstance(node, ast.Call):
        return False
    if called_function(node) in {"round", "float", "abs"} and node.args:
        return _is_draw(node.args[0])
    fixed = all(isinstance(item, ast.Constant) for item in [*node.args, *(word.value for word in node.keywords)])
    owner = ast.unparse(node.func).lower()
    sized = any(word.arg in {"size", "shape"} for word in node.keywords)
    return called_function(node) in _RANDOM and ("random" in owner or "rng" in owner) and fixed and not sized


# --- shipped files instead of results --------------------------------------------------------------------------------


def _shipped_results(
    tree: ast.Module, path: str, snapshot: Snapshot, result: RunResult, claims: Sequence[NumericClaim]
) -> Iterator[Problem]:
    """A file of the repository that holds the claimed numbers and is read, not written, by the chain."""
    written = {produced.path for produced in result.written}
    shipped = {
        file.path for file in snapshot.files
        if file.path.endswith(_RESULT_SUFFIXES) and file.size <= _MAX_FILE and file.path not in written
    }  # fmt: skip
    if not claims or not shipped:
        return
    named = _named_texts(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or called_function(node) not in _READERS or _writes(node):
            continue
        for item in ast.walk(node):
            stated = item.value if isinstance(item, ast.Constant) else named.get(getattr(item, "id", ""))
            if not (isinstance(item, ast.Constant | ast.Name) and isinstance(stated, str) and stated):
                continue
            for target in _nearest(path, _matching(stated, shipped)):
                held = _held(snapshot, target, claims)
                if held >= max(1, (len(claims) + 1) // 2):
                    yield _problem(
                        f"{path}:{item.lineno}",
                        f"reads `{target}`, which the repository ships with {held} of {len(claims)} claimed numbers",
                        Severity.ERROR,
                    )


def _nearest(path: str, targets: Sequence[str]) -> list[str]:
    """Files beside the script when there are any: `open("data.json")` does not mean another directory's."""
    beside = [target for target in targets if posixpath.dirname(target) == posixpath.dirname(path)]
    return beside or list(targets)


def _named_texts(tree: ast.Module) -> dict[str, str]:
    """Names that are bound to a text somewhere (`LOCAL_FILE = "demo.json"`, then `open(LOCAL_FILE)`)."""
    return {
        target.id: node.value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _writes(call: ast.Call) -> bool:
    modes = [*call.args[1:2], *(word.value for word in call.keywords if word.arg == "mode")]
    return any(isinstance(mode, ast.Constant) and str(mode.value)[:1] in {"w", "a", "x"} for mode in modes)


def _matching(text: str, shipped: set[str]) -> list[str]:
    wanted = posixpath.normpath(text)
    if not wanted.endswith(_RESULT_SUFFIXES):
        return []
    return sorted(path for path in shipped if path == wanted or path.endswith("/" + wanted.removeprefix("../")))


def _held(snapshot: Snapshot, path: str, claims: Sequence[NumericClaim]) -> int:
    """How many claims a shipped file states: under their names, or more of their values than chance would put there.

    A data file of some thousand numbers holds any three digits somewhere, so values alone count in short files only.
    """
    observations = read_file(snapshot.root / path, path)[0]
    named = sum(match.verdict is Verdict.PASS for match in match_claims(unbound(claims), [observations]))
    if 2 * named >= len(claims):
        return named
    values = {
        number.value for line in snapshot.text(path, _MAX_FILE).splitlines() for number in find_numbers(_split(line))
    }
    held = sum(any(claim.band.holds(scaled) for value in values for scaled in (value, value * 100)) for claim in claims)
    return max(named, held if _beyond_chance(held, len(values), claims) else 0)


def _beyond_chance(held: int, values: int, claims: Sequence[NumericClaim]) -> bool:
    """Is it unlikely that so many of the claims' digits stand among so many different numbers by accident?"""
    hit = statistics.fmean(min(1.0, 2 * values / 10.0 ** _digits(claim)) for claim in claims)
    return bool(special.bdtrc(held - 1, len(claims), hit) < _CHANCE)


def _split(line: str) -> str:
    return line.replace(",", " , ")


def _copies(snapshot: Snapshot, result: RunResult, claims: Sequence[NumericClaim]) -> Iterator[Problem]:
    """A produced file that is, byte for byte, a file that the repository ships under another name."""
    shipped: dict[str, str] = {}
    for file in snapshot.files:
        if file.size > 16:
            shipped.setdefault(file.sha256, file.path)
    own = {file.path: file.sha256 for file in snapshot.files}
    for produced in result.produced:
        original = shipped.get(produced.sha256)
        if original is None or own.get(produced.path) == produced.sha256:
            continue
        held = _held(snapshot, original, claims) if original.endswith(_RESULT_SUFFIXES) else 0
        yield _problem(
            produced.path,
            f"is a copy of `{original}`, which the repository ships"
            + (f" and which holds {held} of {len(claims)} claimed numbers" if held else ""),
            Severity.ERROR if held else Severity.WARNING,
        )


def _shows_windows(snapshot: Snapshot, sources: Sequence[str]) -> bool:
    """Does a script of the chain show figures in windows? There are none in a sandbox."""
    trees = [_parse(snapshot, path) for path in sorted(set(sources))]
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in {"show", "imshow"}
        for tree in trees
        if tree is not None
        for node in ast.walk(tree)
    )


def _no_work(result: RunResult, out: Path, windows: bool) -> Iterator[Problem]:
    if result.failure is not None:
        return
    printed = sum(command.stdout_bytes + command.stderr_bytes for command in result.commands)
    if not printed and not result.written:
        if windows:
            yield _problem("run", WINDOWS_ONLY, Severity.WARNING)
        else:
            yield _problem("run", "ended well without printing or writing anything", Severity.ERROR)
    for index in range(len(result.commands)):
        path = out / f"{index}.stdout"
        if path.is_file():
            with path.open("rb") as stream:
                if stream.read(64).lstrip().lower().startswith(b"usage:"):
                    yield _problem(f"command {index + 1}", "printed its usage and did nothing else", Severity.ERROR)
