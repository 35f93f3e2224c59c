"""The options that a script understands, read from its code: argparse, click, absl, and signatures.

Answers "which flags may a command of this script carry, with which defaults and choices?". Signatures of functions and
dataclasses are read by `pipeline.tracing.signatures`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from pipeline.tracing.options import Option, as_number, effective, literal
from pipeline.tracing.parsed import called_function, dotted
from pipeline.tracing.signatures import signature_options

__all__ = ["Option", "as_number", "effective", "literal", "read_options"]

_ABSL: Final = re.compile(
    r"^DEFINE_(?:multi_)?(?:string|integer|float|bool|boolean|enum|enum_class|list|spaceseplist|config_file)$"
)
_REQUIRING: Final = frozenset({"mark_flags_as_required", "mark_flag_as_required"})


def read_options(tree: ast.Module) -> tuple[Option, ...]:
    """The options that a file declares, in the order of the code; the last declaration of a name wins."""
    found: dict[str, Option] = {}
    required: set[str] = set()
    nodes = list(ast.walk(tree))  # once: walking is most of the time to read options
    for node in _calls(nodes):
        if called_function(node) in _REQUIRING and node.args:
            required.update(_strings([node.args[0]]) or _choices(node.args[0]))
        option = _argparse(node) or _click(node) or _absl(node)
        if option is not None:
            found.pop(option.name, None)
            found[option.name] = option
    for option in signature_options(tree, nodes):
        found.setdefault(option.name, option)
    options = [replace(item, required=item.required or name in required) for name, item in found.items()]
    return tuple(sorted(options, key=lambda option: option.start))


def _calls(nodes: Sequence[ast.AST]) -> Iterator[ast.Call]:
    for node in nodes:
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
    if isinstance(node, ast.Constant) and isinstance(node.value, str):  # `choices="(a, b)"`, meant as a tuple
        return tuple(re.findall(r"[\w.\-]+", node.value))
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
        numeric=_is_numeric(keywords.get("type"), keywords.get("default")),
    )


def _is_numeric(kind: ast.expr | None, default: ast.expr | None) -> bool:
    """Is a number taken: by the type that is stated, else by the default?"""
    if kind is not None:
        return dotted(kind) in {"int", "float"} or (isinstance(kind, ast.Call) and called_function(kind)) in {
            "IntRange",
            "FloatRange",
        }
    return isinstance(default, ast.Constant) and type(default.value) in {int, float}


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
    kind = called_function(node)
    if not _ABSL.match(kind) or not node.args:
        return None
    name = literal(node.args[0])
    if name is None:
        return None
    keywords = {word.arg: word.value for word in node.keywords if word.arg}
    default = node.args[1] if len(node.args) > 1 else keywords.get("default")
    choices = _choices(node.args[2]) if kind.endswith("DEFINE_enum") and len(node.args) > 2 else ()
    return Option(
        flags=(f"--{name}",),
        name=name,
        default=literal(default),
        choices=choices,
        required=False,
        switch="bool" in kind,
        many="multi" in kind or kind.endswith("list"),
        help=(_strings(node.args[2:4]) or ("",))[-1],
        start=node.lineno,
        end=node.end_lineno or node.lineno,
        kind="absl",
        numeric=kind.endswith(("integer", "float")),
    )
