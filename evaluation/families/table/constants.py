"""What a Python expression is when it is a text that can be known without running anything.

Names of modules are hidden in sums, joins, formats, slices and encodings. This folds those over constants, and over
names that are assigned once; everything else is not known, and is said to be so.
"""

from __future__ import annotations

import ast
import base64
import binascii
import codecs
from collections.abc import Callable, Mapping
from typing import Final

__all__ = ["assigned_once", "text_of"]

_DEPTH: Final = 12
_MOST: Final = 200_000
"""Characters; a fold never grows beyond."""
_PLAIN: Final = frozenset({"lower", "upper", "strip", "lstrip", "rstrip", "title", "capitalize", "swapcase"})
_DECODERS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "b64decode": base64.b64decode, "b32decode": base64.b32decode, "b16decode": base64.b16decode,
    "b85decode": base64.b85decode, "urlsafe_b64decode": base64.urlsafe_b64decode, "a85decode": base64.a85decode,
    "unhexlify": binascii.unhexlify, "fromhex": lambda data: bytes.fromhex(data.decode("ascii")),
}  # fmt: skip

Known = str | bytes | int | list[str]


def assigned_once(tree: ast.AST) -> dict[str, ast.expr]:
    """Name -> expression, of names that a program assigns exactly once."""
    found: dict[str, list[ast.expr | None]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(node.value)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and isinstance(node.target, ast.Name):
            found.setdefault(node.target.id, []).append(node.value)
        elif isinstance(node, ast.AugAssign | ast.For) and isinstance(node.target, ast.Name):
            found.setdefault(node.target.id, []).append(None)
    return {name: values[0] for name, values in found.items() if len(values) == 1 and values[0] is not None}


def text_of(node: ast.expr, names: Mapping[str, ast.expr]) -> str | None:
    """The text of an expression; None: it is not known.

    Args:
        node: the expression.
        names: see `assigned_once`.
    """
    value = _Fold(names).of(node, 0)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else None


class _Fold:
    """Folds expressions of one program."""

    def __init__(self, names: Mapping[str, ast.expr]) -> None:
        self._names = names
        self._kinds: dict[type[ast.expr], Callable[..., Known | None]] = {
            ast.Constant: self._constant, ast.Name: self._name, ast.BinOp: self._operation, ast.JoinedStr: self._joined,
            ast.List: self._list, ast.Tuple: self._list, ast.Subscript: self._slice, ast.Call: self._call,
        }  # fmt: skip

    def of(self, node: ast.expr, depth: int) -> Known | None:
        fold = self._kinds.get(type(node))
        value = fold(node, depth + 1) if fold is not None and depth <= _DEPTH else None
        too_large = isinstance(value, str | bytes) and len(value) > _MOST
        return None if too_large else value

    def _constant(self, node: ast.Constant, depth: int) -> Known | None:
        return node.value if isinstance(node.value, str | bytes | int) else None

    def _name(self, node: ast.Name, depth: int) -> Known | None:
        return self.of(self._names[node.id], depth) if node.id in self._names else None

    def _operation(self, node: ast.BinOp, depth: int) -> Known | None:
        left, right = self.of(node.left, depth), self.of(node.right, depth)
        if isinstance(node.op, ast.Add) and isinstance(left, str) and isinstance(right, str):
            return left + right
        if isinstance(node.op, ast.Add) and isinstance(left, bytes) and isinstance(right, bytes):
            return left + right
        if isinstance(node.op, ast.Mod) and isinstance(left, str) and isinstance(right, str | list):
            return _formatted(lambda: left % (tuple(right) if isinstance(right, list) else right))
        return None

    def _joined(self, node: ast.JoinedStr, depth: int) -> Known | None:
        values = (part.value if isinstance(part, ast.FormattedValue) else part for part in node.values)
        parts = [self.of(value, depth) for value in values]
        return "".join(map(str, parts)) if all(isinstance(part, str | int) for part in parts) else None

    def _list(self, node: ast.List | ast.Tuple, depth: int) -> Known | None:
        items = [self.of(item, depth) for item in node.elts]
        texts = [item for item in items if isinstance(item, str)]
        return texts if len(texts) == len(items) else None

    def _slice(self, node: ast.Subscript, depth: int) -> Known | None:
        value = self.of(node.value, depth)
        if not isinstance(value, str | bytes | list) or not isinstance(node.slice, ast.Slice):
            return None
        parts = (node.slice.lower, node.slice.upper, node.slice.step)
        bounds = [None if part is None else _whole(part) for part in parts]
        unknown = any(part is not None and bound is None for part, bound in zip(parts, bounds, strict=True))
        return None if unknown or bounds[2] == 0 else value[slice(*bounds)]

    def _call(self, node: ast.Call, depth: int) -> Known | None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        given = [self.of(argument, depth) for argument in node.args]
        owner = self.of(node.func.value, depth) if isinstance(node.func, ast.Attribute) else None
        if ast.unparse(node.func) in {"os.environ.get", "os.getenv"} and len(given) == 2:
            return given[1]  # what it is unless somebody sets the variable
        if owner is None:
            return _of_function(name, given)
        if isinstance(owner, bytes):
            return owner.decode("utf-8", "replace") if name == "decode" else None
        return _of_method(owner, name, given) if isinstance(owner, str) else None


def _of_function(name: str, given: list[Known | None]) -> Known | None:
    """`chr`, `str`, decoders."""
    first = given[0] if given else None
    if name == "chr" and isinstance(first, int):
        return chr(first) if 0 <= first < 0x110000 else None
    if name in {"str", "reversed", "list", "tuple"} and isinstance(first, str | list):
        text = list(first)
        return first if name == "str" else text[::-1] if name == "reversed" else text
    if name == "decode" and given[1:] and isinstance(first, str):
        return codecs.decode(first, "rot13") if str(given[1]).replace("_", "").lower() == "rot13" else None
    if name in _DECODERS and isinstance(first, str | bytes):
        try:
            return _DECODERS[name](first if isinstance(first, bytes) else first.encode("ascii"))
        except ValueError:  # wrong padding, letters that are none of the alphabet
            return None
    return None


def _of_method(owner: str, name: str, given: list[Known | None]) -> Known | None:
    """Methods of a text."""
    if name in _PLAIN and not given:
        return str(getattr(owner, name)())
    if name == "encode":
        return owner.encode("utf-8", "replace")
    if name == "join" and given and isinstance(given[0], list):
        return owner.join(given[0])
    if name == "replace" and len(given) == 2 and all(isinstance(item, str) for item in given):
        return owner.replace(str(given[0]), str(given[1]))
    if name == "format" and all(isinstance(item, str | int) for item in given):
        return _formatted(lambda: owner.format(*given))
    return None


def _formatted(make: Callable[[], str]) -> str | None:
    try:
        return make()
    except (IndexError, KeyError, TypeError, ValueError, MemoryError):
        return None


def _whole(node: ast.expr) -> int | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _whole(node.operand)
        return None if inner is None else -inner
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None
