"""Masking single functions and classes: the body goes, the place where it has to be written again stays.

libcst finds the spans, and the mask is a list of byte edits like any other: nothing of a file is formatted anew, and a
recipe can repeat it. A masked function keeps its decorators and name; whether its parameters and docstring stay is the
policy's choice. A class is masked method by method, so that what its users see of it stays. Comments inside go with the
bodies.

Non-goals: languages other than Python 3 (a file that libcst cannot parse is an error that says so, and the caller masks
the whole file), statements at the top of a module.
"""

from __future__ import annotations

import ast
import hashlib
import io
import textwrap
import tokenize
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from masking.records import TextEdit
from pipeline.schema import Record
from pipeline.task import Requirement

if TYPE_CHECKING:
    import libcst as cst

__all__ = [
    "MASKED_BODY",
    "MASKED_PARAMETERS",
    "FunctionPolicy",
    "function_names",
    "function_sources",
    "mask_functions",
    "names_at",
    "spans_in",
]

MASKED_BODY: Final = 'raise NotImplementedError("[masked]")'
"""What stands where a body was: calling it says why the run failed."""
MASKED_PARAMETERS: Final = "*_masked_args, **_masked_kwargs"
_MASKED: Final = "[masked]"


class FunctionPolicy(Record):
    """What stays of a masked function."""

    docstrings: Literal["keep", "remove"] = "keep"
    signatures: Literal["keep", "remove"] = "keep"
    """`remove`: the parameters are hidden too; decorators, the name and the return annotation stay."""


class _Function(NamedTuple):
    """Byte spans of one function; ends are exclusive."""

    name: str
    """Dotted, from the top of the module."""
    start: int
    end: int
    parameters: tuple[int, int]
    docstring: tuple[int, int] | None
    """The text between the quotes."""
    body: tuple[int, int] | None
    """Statements after the docstring; None where there are none but `...` and `pass`."""


def function_names(data: bytes) -> tuple[str, ...]:
    """Dotted names of all functions and methods of a module, in order.

    Raises:
        ValueError: not Python 3.
    """
    return tuple(function.name for function in _functions(data))


def names_at(data: bytes, lines: Iterable[tuple[int, int]]) -> tuple[str, ...]:
    """The outermost functions and methods that hold any of the lines (both ends included, numbered from 1).

    Raises:
        ValueError: not Python 3.
    """
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    last = len(starts) - 1
    spans = [(starts[a - 1], starts[min(b, last)]) for a, b in lines if 1 <= a <= min(b, last)]
    found = [f for f in _functions(data) if any(f.start < end and start < f.end for start, end in spans)]
    return tuple(_outermost([function.name for function in found]))


def _outermost(names: Sequence[str]) -> list[str]:
    return [name for name in names if not any(name.startswith(f"{other}.") for other in names)]


def mask_functions(
    path: str, data: bytes, names: Sequence[str], policy: FunctionPolicy | None = None
) -> tuple[TextEdit, ...]:
    """The edits that take the bodies of functions out of a Python file.

    Args:
        path: for the edits.
        data: the file.
        names: functions, methods (`Class.method`) and classes (all of their methods).
        policy: what stays beside the name.

    Returns:
        Edits sorted by place; what they leave parses, which is checked.

    Raises:
        ValueError: not Python 3 (Python 2, a template, broken), or it has no such function, or nothing to mask in it.
    """
    policy = policy or FunctionPolicy()
    functions = _functions(data)
    known = {function.name for function in functions}
    unknown = [name for name in names if name not in known and not any(k.startswith(f"{name}.") for k in known)]
    if unknown:
        raise ValueError(f"it has no function or class {', '.join(unknown)}")
    wanted = [f for f in functions if any(f.name == name or f.name.startswith(f"{name}.") for name in names)]
    bodies = {f.name for f in wanted if f.body is not None}
    wanted = [f for f in wanted if not any(f.name.startswith(f"{other}.") and other in bodies for other in known)]
    if not any(function.body for function in wanted):
        raise ValueError(f"{', '.join(names)}: there is no body to mask")
    digest = hashlib.sha256(data).hexdigest()
    edits: list[TextEdit] = []
    for function in wanted:
        for start, end, text in _changes(data, function, policy):
            edits.append(TextEdit(path=path, start=start, end=end, sha256=digest, replacement=text))
    edits.sort(key=lambda edit: edit.start)
    _check(data, edits)
    return tuple(edits)


def _changes(data: bytes, function: _Function, policy: FunctionPolicy) -> list[tuple[int, int, str]]:
    changes: list[tuple[int, int, str]] = []
    if function.body is not None:
        changes.append((*function.body, MASKED_BODY))
    if (
        policy.docstrings == "remove"
        and function.docstring is not None
        and function.docstring[0] < function.docstring[1]
    ):
        changes.append((*function.docstring, _MASKED))
    if policy.signatures == "remove" and function.parameters[0] < function.parameters[1]:
        changes.append((*function.parameters, MASKED_PARAMETERS))
    taken = [(start, end) for start, end, _ in changes]
    for start, end in _comments(data):
        inside = function.start <= start < function.end
        if inside and end > start + 1 and not any(a <= start < b for a, b in taken):
            changes.append((start + 1, end, _MASKED))
    return changes


def _comments(data: bytes) -> list[tuple[int, int]]:
    """Byte spans of comments, `#` included."""
    lines = data.splitlines(keepends=True)
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line))
    found: list[tuple[int, int]] = []
    for token in tokenize.tokenize(io.BytesIO(data).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            start = offsets[row - 1] + len(token.line[:column].encode("utf-8"))
            found.append((start, start + len(token.string.encode("utf-8"))))
    return found


def _check(data: bytes, edits: Sequence[TextEdit]) -> None:
    masked = data
    for edit in reversed(edits):
        masked = masked[: edit.start] + edit.replacement.encode() + masked[edit.end :]
    try:
        _parse(masked)
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"masking its functions would break it ({error})") from error


def _parse(data: bytes) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        ast.parse(data)


# --- what libcst says ------------------------------------------------------------------------------------------------


def _functions(data: bytes) -> list[_Function]:
    """All functions and methods, in order.

    Raises:
        ValueError: not Python 3, or not in UTF-8.
    """
    import libcst as cst
    from libcst.metadata import ByteSpanPositionProvider, CodeSpan, MetadataWrapper

    try:
        data.decode("utf-8")
        _parse(data)  # libcst also takes what this Python does not run
        module = cst.parse_module(data)
    except (cst.ParserSyntaxError, SyntaxError, ValueError, RecursionError) as error:
        raise ValueError(f"it is not Python 3 in UTF-8 ({str(error).splitlines()[0]})") from error
    if data.startswith(b"\xef\xbb\xbf") or module.encoding.lower().replace("-", "") not in {"utf8", "ascii"}:
        raise ValueError(f"its encoding ({module.encoding}, or a byte-order mark) is not plain UTF-8")
    wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
    spans = wrapper.resolve(ByteSpanPositionProvider)
    found: list[_Function] = []

    def span(node: cst.CSTNode) -> tuple[int, int]:
        place = spans[node]
        assert isinstance(place, CodeSpan)
        return place.start, place.start + place.length

    def walk(node: cst.CSTNode, prefix: str) -> None:
        for child in node.children:
            inner = prefix
            if isinstance(child, cst.FunctionDef | cst.ClassDef):
                inner = f"{prefix}{child.name.value}."
            if isinstance(child, cst.FunctionDef):
                found.append(_function(child, inner[:-1], span, data))
            walk(child, inner)

    walk(module, "")
    return found


def _function(
    node: cst.FunctionDef, name: str, span: Callable[[cst.CSTNode], tuple[int, int]], data: bytes
) -> _Function:
    import libcst as cst

    start, end = span(node)
    end = _through_line(data, end)
    parameters = span(node.params)
    if isinstance(node.body, cst.SimpleStatementSuite):
        inner = span(node.body)
        trivial = all(_trivial(statement) for statement in node.body.body)
        return _Function(name, start, end, parameters, None, None if trivial else inner)
    assert isinstance(node.body, cst.IndentedBlock)
    statements = list(node.body.body)
    docstring = _docstring(statements[0], span, data) if statements else None
    rest = statements[1:] if docstring is not None else statements
    real = [s for s in rest if not (isinstance(s, cst.SimpleStatementLine) and all(map(_trivial, s.body)))]
    body = None
    if real:
        body = (span(rest[0])[0], _through_line(data, span(rest[-1])[1]))
        end = max(end, body[1])
    return _Function(name, start, end, parameters, docstring, body)


def _through_line(data: bytes, end: int) -> int:
    """The end of the line without trailing space: a comment behind the last statement belongs to the function."""
    newline = data.find(b"\n", end)
    return end + len(data[end : len(data) if newline < 0 else newline].rstrip())


def _trivial(statement: cst.BaseSmallStatement) -> bool:
    """`pass`, `...` or a text: nothing that computes."""
    import libcst as cst

    if isinstance(statement, cst.Expr):
        return isinstance(statement.value, cst.Ellipsis | cst.SimpleString | cst.ConcatenatedString)
    return isinstance(statement, cst.Pass)


def _docstring(
    statement: cst.BaseStatement, span: Callable[[cst.CSTNode], tuple[int, int]], data: bytes
) -> tuple[int, int] | None:
    """The text of a docstring between its quotes; None when the statement is none."""
    import libcst as cst

    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return None  # `"""text"""; more()` is masked as a whole
    first = statement.body[0]
    if not isinstance(first, cst.Expr) or not isinstance(first.value, cst.SimpleString):
        return None
    start, end = span(first.value)
    quotes = len(first.value.quote)
    return start + len(first.value.prefix) + quotes, end - quotes


# --- what was masked -------------------------------------------------------------------------------------------------


def function_sources(data: bytes, edits: Iterable[TextEdit]) -> bytes:
    """The functions whose bodies the edits take out, as one module of its own: what must not be found elsewhere.

    Args:
        data: the file before the edits.
        edits: all edits of that file; those that do not take a body out are passed over.
    """
    bodies = [(edit.start, edit.end) for edit in edits if edit.replacement == MASKED_BODY]
    pieces: list[str] = []
    for function in _functions(data) if bodies else []:
        if function.body in bodies:
            line = data.rfind(b"\n", 0, function.start) + 1
            pieces.append(textwrap.dedent(data[line : function.end].decode("utf-8")))
    return "\n\n".join(pieces).encode("utf-8")


def spans_in(requirements: Iterable[Requirement], path: str) -> list[tuple[int, int]]:
    """The lines of a file that requirements name."""
    return [(span.start, span.end) for item in requirements for span in item.spans if span.path == path]
