"""Requirements from a recorded run: at most a dozen steps that this task's commands carried out (EXP-Bench 3.1).

A step is a function of the repository that ran, or a stretch of a program's own body that computes something. What ran
decides, and in what order; the words are the code's own: docstring, comment above, else the name with the settings that
it ran with. Statements that only show or keep what was computed are no step, nor are imports and definitions.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from pipeline.repository import Snapshot
from pipeline.task import CodeEvidence, Requirement
from pipeline.tracing.parsed import called_function
from pipeline.tracing.source import CodeUnit, read_unit
from pipeline.witness.records import FunctionRun

__all__ = ["requirements_of_run"]

_MOST: Final = 12
_SMALL: Final = 4
"""Lines up to which a function is part of the step that calls it."""
_LONG: Final = 60
"""Lines from which a function is no step that can be checked at a glance: its body is cut as a program's is."""
_QUOTED: Final = 120
_SHOWN: Final = 4
_MAX_BYTES: Final = 2_000_000
_MAX_NOTEBOOK: Final = 40_000_000
"""With its outputs, which are left out."""


class _Step(NamedTuple):
    order: int
    text: str
    span: CodeEvidence
    shared: bool
    """Runs for other tasks of the same repository as well."""


def requirements_of_run(
    ran: Sequence[FunctionRun],
    *,
    snapshot: Snapshot,
    entries: Sequence[str],
    elsewhere: Collection[tuple[str, str]] = (),
) -> tuple[Requirement, ...]:
    """The steps of a run in the order in which they began; where there are many, those that only this task needs.

    Args:
        ran: functions that ran, in the order of their first call.
        snapshot: the repository.
        entries: files that the commands start; of a notebook all cells ran, its command ends well no other way.
        elsewhere: (path, qualified name) of what ran for other tasks of the repository too.
    """
    steps: list[_Step] = []
    files = {path: _read(snapshot, path) for path in dict.fromkeys([*entries, *(item.path for item in ran)])}
    called = _called_from(ran)
    for number, path in enumerate(entries):
        unit = files[path]
        if unit is not None and unit.tree is not None:
            steps += _of_body(unit, unit.tree.body, called, number - len(entries))
    for number, item in enumerate(ran):
        unit = files[item.path]
        node = _definition(unit, item)
        if unit is None or node is None or _lines(node) <= _SMALL:
            continue
        body = _lines(node) > _LONG
        if body and (cut := list(_of_body(unit, node.body, called, number))):
            steps += cut
        elif _computes(node):
            span = _span(snapshot, item.path, node)
            steps.append(_Step(number, _text_of(node, item), span, (item.path, item.name) in elsewhere))
    first = sorted(steps, key=lambda step: (step.shared, -(step.span.end - step.span.start), step.order))[:_MOST]
    return tuple(
        Requirement(text=step.text, spans=(step.span,)) for step in sorted(first, key=lambda s: (s.order, s.span.start))
    )


def _read(snapshot: Snapshot, path: str) -> CodeUnit | None:
    file = next((item for item in snapshot.files if item.path == path), None)
    limit = _MAX_NOTEBOOK if path.endswith(".ipynb") else _MAX_BYTES
    if file is None or not path.endswith((".py", ".ipynb")) or file.size > limit:
        return None
    return read_unit(path, snapshot.text(path, limit))


def _called_from(ran: Sequence[FunctionRun]) -> dict[str, set[int]]:
    """Path -> lines from which functions of the repository were called."""
    lines: dict[str, set[int]] = {}
    for caller in (caller for item in ran for caller in item.callers):
        path, _, line = caller.rpartition(":")
        if line.isdigit():
            lines.setdefault(path, set()).add(int(line))
    return lines


_Function = ast.FunctionDef | ast.AsyncFunctionDef


def _definition(unit: CodeUnit | None, item: FunctionRun) -> _Function | None:
    if unit is None or unit.tree is None or item.name.endswith((">", "__init__", "__repr__", "__str__")):
        return None
    name = item.name.rpartition(".")[2]
    for node in ast.walk(unit.tree):
        if isinstance(node, _Function) and node.name == name and _begin(node) <= item.line <= node.lineno:
            return node
    return None


def _begin(node: _Function) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _lines(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _computes(node: _Function) -> bool:
    """Does it give something back, or change what it was given? What does neither shows or keeps results."""
    return any(
        (isinstance(part, ast.Return) and part.value is not None)
        or isinstance(part, ast.Yield | ast.YieldFrom)
        or (isinstance(part, ast.Attribute | ast.Subscript) and isinstance(part.ctx, ast.Store))
        for part in ast.walk(node)
    )


# --- stretches of a body ---------------------------------------------------------------------------------------------


def _of_body(unit: CodeUnit, body: Sequence[ast.stmt], called: Mapping[str, set[int]], order: int) -> Iterator[_Step]:
    lines = unit.code.splitlines()
    for block in _leading_to_output(list(_stretches(_opened(body))), body):
        start, end = block[0].lineno, block[-1].end_lineno or block[-1].lineno
        # where it calls the repository's own code it says most, else where it first computes something
        telling = [line for line in called.get(unit.path, ()) if start <= line <= end]
        telling = telling or [line for node in block for line in _computing(node)]
        if not telling:
            continue
        text = _comment_above(lines, start) or _QUOTE.format(lines[min(telling) - 1].strip()[:_QUOTED])
        quote = "\n".join(lines[start - 1 : start + 2])[:_QUOTED]
        span = CodeEvidence(path=unit.path, start=unit.line(start), end=unit.line(end), quote=quote)
        yield _Step(order, text, span, shared=False)


_QUOTE: Final = "carry out `{}`"


def _opened(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements that do something: no imports, definitions, docstrings; a main guard is opened."""
    found: list[ast.stmt] = []
    for node in body:
        if isinstance(node, ast.If) and _names(node.test, "__name__"):
            found += _opened(node.body)
        elif not isinstance(node, _NO_STEP) and not (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        ):
            found.append(node)
    return found


_NO_STEP: Final = (
    ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Pass, ast.Return,
)  # fmt: skip


def _names(node: ast.AST, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))


_OUTPUT: Final = frozenset({
    "print", "write", "writelines", "writerow", "writerows", "write_text", "dump", "dumps", "info", "echo", "log",
    "to_csv", "to_json", "to_excel", "to_latex", "to_parquet", "to_pickle", "save", "savez", "savetxt",
})  # fmt: skip
"""Calls that put numbers out; what is only drawn is looked at by people."""


def _leading_to_output(blocks: list[list[ast.stmt]], body: Sequence[ast.stmt]) -> list[list[ast.stmt]]:
    """Those whose values reach what is printed, written or returned, here or through a later one.

    Seen: a program that trains four models, prints their scores, and draws seven figures of them afterwards; eight of
    its twelve steps drew. Where nothing is put out by these calls, all are kept.
    """
    returned = [node for part in body for node in ast.walk(part) if isinstance(node, ast.Return | ast.Yield)]
    modules = {
        (name.asname or name.name).split(".")[0]
        for part in body
        for node in ast.walk(part)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    }
    live = {name for node in returned for name in _loaded(node)}
    kept: list[list[ast.stmt]] = []
    for block in reversed(blocks):
        put_out = any(
            isinstance(node, ast.Call) and called_function(node) in _OUTPUT and any(map(_loaded, _passed(node)))
            for part in block
            for node in ast.walk(part)
        )
        if put_out or {name for part in block for name in _changed(part)} & (live - modules):
            live |= {name for part in block for name in _loaded(part)}
            kept.insert(0, block)
    return kept or blocks


def _passed(call: ast.Call) -> list[ast.expr]:
    owner = [call.func.value] if isinstance(call.func, ast.Attribute) else []  # `table.to_csv(...)`
    return [*owner, *call.args, *(word.value for word in call.keywords)]


def _loaded(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)}


def _changed(node: ast.AST) -> Iterator[str]:
    """Names that are bound, whose parts are assigned, or that are given to somebody who may change them."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            yield part.id
        elif isinstance(part, ast.Attribute | ast.Subscript) and isinstance(part.ctx, ast.Store):
            yield from _loaded(part.value)
        elif isinstance(part, ast.Expr) and isinstance(part.value, ast.Call):  # its result is not kept
            for passed in _passed(part.value):
                if isinstance(passed, ast.Name | ast.Attribute | ast.Subscript):
                    yield from _loaded(passed)


def _stretches(body: Sequence[ast.stmt]) -> Iterator[list[ast.stmt]]:
    """Statements that stand together, without an empty line or a comment between them."""
    block: list[ast.stmt] = []
    for node in body:
        if block and node.lineno > (block[-1].end_lineno or 0) + 1:
            yield block
            block = []
        block.append(node)
    if block:
        yield block


def _computing(node: ast.stmt) -> list[int]:
    """Lines of a statement that compute: they assign something called or calculated."""
    return [
        part.lineno
        for part in ast.walk(node)
        if isinstance(part, ast.Assign | ast.AugAssign | ast.AnnAssign)
        and part.value is not None
        and any(isinstance(inner, ast.Call | ast.BinOp) for inner in ast.walk(part.value))
    ]


# --- words -----------------------------------------------------------------------------------------------------------


def _comment_above(lines: Sequence[str], start: int) -> str:
    found: list[str] = []
    for line in reversed(lines[: start - 1]):
        if not line.strip().startswith("#"):
            break
        found.insert(0, line.strip().strip("#=-* "))
    return " ".join(" ".join(found).split())[:300]


def _text_of(node: _Function, item: FunctionRun) -> str:
    """The first sentence of its docstring, else its name in words; with the settings that it ran with throughout."""
    docstring = ast.get_docstring(node) or ""
    first = re.split(r"(?<=[.!?])\s|\n\s*\n", " ".join(docstring.split("\n\n")[0].split()))[0].strip()
    text = first.rstrip(".") or f"carry out `{item.name}`"
    settings = [f"{name} = {values[0]}" for name, values in item.arguments if len(values) == 1 and name != "self"]
    return f"{text} (with {', '.join(settings[:_SHOWN])})" if settings else text


def _span(snapshot: Snapshot, path: str, node: _Function) -> CodeEvidence:
    start, end = _begin(node), node.end_lineno or node.lineno
    lines = snapshot.text(path, _MAX_BYTES).splitlines()
    return CodeEvidence(path=path, start=start, end=end, quote="\n".join(lines[start - 1 : start + 1])[:_QUOTED])
