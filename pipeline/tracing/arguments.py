"""The options that a script understands, read from its code: argparse, click and typer-free decorators, absl, sys.argv.

Also Hugging Face style dataclasses are left to the hyper-parameter reader; this module answers "which flags may a
command of this script carry, with which defaults and choices?".
"""

from __future__ import annotations

import ast
import operator
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pipeline.tracing.parsed import called_function

__all__ = ["Option", "as_number", "effective", "literal", "read_options"]

_ABSL = {
    "DEFINE_string",
    "DEFINE_integer",
    "DEFINE_float",
    "DEFINE_bool",
    "DEFINE_boolean",
    "DEFINE_enum",
    "DEFINE_list",
}
_OPERATIONS: Final[dict[type[ast.operator], Callable[[float, float], float]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
}
_DEEP: Final = 8
_LARGEST: Final = 1e15
"""Beyond it a number is no setting, and calculating with it may not end."""
_POWERS: Final = 64


@dataclass(frozen=True, slots=True)
class Option:
    """One option or positional argument."""

    flags: tuple[str, ...]
    """As written on the command line (`--lr`, `-l`); a positional argument has its bare name."""
    name: str
    """The attribute that holds the value."""
    default: str | None
    """As text; None when there is none or it is computed."""
    choices: tuple[str, ...]
    required: bool
    switch: bool
    """Takes no value (`store_true`)."""
    many: bool
    help: str
    start: int
    end: int
    """Lines of the parsed code."""
    kind: str = "argparse"
    negated: bool = False
    """A switch that sets False (`store_false`)."""
    unset: bool = False
    """Is its value None unless a command sets it?"""

    @property
    def positional(self) -> bool:
        """Has it no flag?"""
        return not any(flag.startswith("-") for flag in self.flags)


def literal(node: ast.expr | None) -> str | None:
    """The text of a constant expression as a person would type it; None for anything computed.

    Numbers made of written numbers are constants (`int(1e6)`, `8 * 1024`): no run changes them.
    """
    if node is None:
        return None
    number = _number(node)
    if number is not None:
        return str(number)
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    if value is None:
        return None
    if isinstance(value, (list, tuple)):
        return " ".join(str(item) for item in value)
    return str(value)


def _number(node: ast.expr, depth: int = 0) -> float | None:
    """What a calculation with written numbers alone gives; None for anything else, and for a number by itself."""
    found: float | None = None
    if depth and isinstance(node, ast.Constant) and type(node.value) in {int, float}:
        found = node.value  # type: ignore[assignment]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"int", "float"}:
        given = _number(node.args[0], depth + 1) if len(node.args) == 1 and not node.keywords else None
        found = given if given is None or node.func.id == "float" else int(given)
    elif isinstance(node, ast.BinOp) and depth <= _DEEP:
        left, right = _number(node.left, depth + 1), _number(node.right, depth + 1)
        if left is not None and right is not None:
            found = _calculated(node.op, left, right)
    return found if found is not None and abs(found) <= _LARGEST else None


def _calculated(operation: ast.operator, left: float, right: float) -> float | None:
    """The result of one step; None where there is none, or where it may take without end."""
    if isinstance(operation, ast.Pow) and not (left > 0 and abs(right) <= _POWERS):
        return None
    if isinstance(operation, ast.Div | ast.FloorDiv) and right == 0:
        return None
    calculate = _OPERATIONS.get(type(operation))
    return calculate(left, right) if calculate is not None else None


def read_options(tree: ast.Module) -> tuple[Option, ...]:
    """The options that `tree` declares, in the order of the code; the last declaration of a name wins."""
    found: dict[str, Option] = {}
    for node in _calls(tree):
        option = _argparse(node) or _click(node) or _absl(node)
        if option is not None:
            found.pop(option.name, None)
            found[option.name] = option
    return tuple(sorted(found.values(), key=lambda option: option.start))


def _calls(tree: ast.Module) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Attribute, ast.Name)):
            yield node


def _strings(nodes: Sequence[ast.expr]) -> tuple[str, ...]:
    return tuple(node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))


def _choices(node: ast.expr | None) -> tuple[str, ...]:
    if isinstance(node, ast.Dict):
        return _strings([key for key in node.keys if key is not None])
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return tuple(text for item in node.elts if (text := literal(item)) is not None)
    if isinstance(node, ast.Call) and called_function(node) == "Choice" and node.args:
        return _choices(node.args[0])
    return ()


def _make(node: ast.Call, flags: tuple[str, ...], keywords: dict[str, ast.expr], kind: str) -> Option:
    long = next((flag for flag in flags if flag.startswith("--")), flags[0])
    explicit = _strings([keywords["dest"]]) if "dest" in keywords else ()
    action = (_strings([keywords["action"]]) if "action" in keywords else ("",)) or ("BooleanOptionalAction",)
    required = keywords.get("required")
    positional = not flags[0].startswith("-")
    nargs = literal(keywords.get("nargs")) or ""
    switch = action[0].startswith(("store_true", "store_false", "store_const", "count", "Boolean"))
    is_flag = keywords.get("is_flag")
    switch = switch or (isinstance(is_flag, ast.Constant) and is_flag.value is True)
    return Option(
        flags=flags,
        name=explicit[0] if explicit else long.lstrip("-").split("/")[0].replace("-", "_"),
        default=literal(keywords.get("default")),
        choices=_choices(keywords.get("choices") or keywords.get("type")),
        required=(isinstance(required, ast.Constant) and required.value is True)
        or (positional and "default" not in keywords and nargs not in {"?", "*"}),
        switch=switch,
        many=nargs in {"+", "*"} or nargs.isdigit(),
        help=" ".join(_strings([keywords["help"]])) if "help" in keywords else "",
        start=node.lineno,
        end=node.end_lineno or node.lineno,
        kind=kind,
        negated=action[0] == "store_false",
        unset=not positional and not switch and action[0] in {"", "store"} and _is_none(keywords.get("default")),
    )


def _is_none(node: ast.expr | None) -> bool:
    return node is None or (isinstance(node, ast.Constant) and node.value is None)


def _argparse(node: ast.Call) -> Option | None:
    if called_function(node) not in {"add_argument", "add_arg"}:
        return None
    flags = _strings(node.args)
    if not flags or not isinstance(node.func, ast.Attribute):
        return None
    return _make(node, flags, {word.arg: word.value for word in node.keywords if word.arg}, "argparse")


def _click(node: ast.Call) -> Option | None:
    if called_function(node) not in {"option", "argument"} or not isinstance(node.func, ast.Attribute):
        return None
    if not isinstance(node.func.value, ast.Name) or node.func.value.id not in {"click", "rich_click"}:
        return None
    flags = _strings(node.args)
    if not flags:
        return None
    named = [flag for flag in flags if flag.startswith("-")] or list(flags)
    return _make(node, tuple(named), {word.arg: word.value for word in node.keywords if word.arg}, "click")


def _absl(node: ast.Call) -> Option | None:
    if called_function(node) not in _ABSL or not node.args:
        return None
    name = literal(node.args[0])
    if name is None:
        return None
    keywords = {word.arg: word.value for word in node.keywords if word.arg}
    default = node.args[1] if len(node.args) > 1 else keywords.get("default")
    choices = _choices(node.args[2]) if called_function(node) == "DEFINE_enum" and len(node.args) > 2 else ()
    return Option(
        flags=(f"--{name}",),
        name=name,
        default=literal(default),
        choices=choices,
        required=False,
        switch="bool" in called_function(node),
        many=False,
        help=(_strings(node.args[2:4]) or ("",))[-1],
        start=node.lineno,
        end=node.end_lineno or node.lineno,
        kind="absl",
        unset=_is_none(default),
    )


def effective(options: Sequence[Option], arguments: Sequence[str]) -> dict[str, str]:
    """The values that a command line sets, by option name; hydra-style `key=value` words count too."""
    by_flag = {flag: option for option in options for flag in option.flags if flag.startswith("-")}
    positional = [option for option in options if option.positional]
    values: dict[str, str] = {}
    index = 0
    while index < len(arguments):
        word = arguments[index]
        flag, equals, attached = word.partition("=")
        index += 1
        option = by_flag.get(flag) or _abbreviated(flag, by_flag)
        if option is not None and option.switch and not equals:
            off = option.negated or flag.startswith("--no-")
            values[option.name] = "False" if off else "True"
        elif word.startswith("-") and as_number(word) is None:
            taken = [attached] if equals else []
            while (
                not equals
                and index < len(arguments)
                and (not arguments[index].startswith("-") or as_number(arguments[index]) is not None)
            ):
                taken.append(arguments[index])
                index += 1
                if option is None or not option.many:
                    break
            name = option.name if option is not None else flag.lstrip("-").replace("-", "_")
            values[name] = " ".join(taken) if taken else "True"
        elif equals and not positional:
            values[flag.lstrip("+")] = attached
        elif positional:
            option = positional[0] if positional[0].many else positional.pop(0)
            values[option.name] = f"{values[option.name]} {word}" if option.name in values else word
    return values


def _abbreviated(flag: str, by_flag: dict[str, Option]) -> Option | None:
    """Argparse accepts any unambiguous beginning of a long flag."""
    if not flag.startswith("--") or len(flag) < 4:
        return None
    matches = {option.name: option for name, option in by_flag.items() if name.startswith(flag)}
    return next(iter(matches.values())) if len(matches) == 1 else None


def as_number(text: str) -> float | None:
    """The number that a text is, as Python reads it; None when it is none."""
    try:
        return float(text)
    except ValueError:
        return None


def spelled(argv: Sequence[str]) -> str:
    """A command as a person would type it."""
    return shlex.join(argv)
