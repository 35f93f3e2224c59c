"""Options that a library makes of a signature: of functions (fire, typer, tyro) or of dataclasses (transformers).

`fire.Fire(train)` turns each parameter of `train` into a flag; `HfArgumentParser((Model, Data))` turns each field of
the two classes into one. What is no written value is no default: a run may set it anywhere.

Non-goals: nested commands of fire (methods of a class), subcommands of tyro, fields that a base class of another
package brings along.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pipeline.tracing.options import Option, literal
from pipeline.tracing.parsed import Function, called_name, dotted

__all__ = ["signature_options"]

_RUNNERS: Final = re.compile(
    r"(?:^|\.)(?:Fire|CLI|auto_cli|dispatch_command)$|^(?:typer|defopt|clize|argh)\.run$|^(?:tyro|dcargs)\.cli$|"
    r"^plac\.call$"
)
"""Calls that make a command line of the function that they are given."""
_CLASS_PARSERS: Final = re.compile(
    r"(?:^|\.)(?:\w*ArgumentParser|TrlParser|CLI|add_arguments|entrypoint)$|"
    r"^(?:tyro|dcargs)\.cli$|^(?:pyrallis|simple_parsing|draccus|datargs|argparse_dataclass|chz)\.\w+$"
)
"""Calls that make a command line of the classes that they are given."""
_COMMANDS: Final = re.compile(r"^(?!click\.)[\w.]+\.(?:command|callback)$|(?:^|\.)auto_cli$")
_WRAPPERS: Final = re.compile(r"^(?:pyrallis|draccus|simple_parsing)\.wrap$")
_FIELD: Final = re.compile(r"(?:^|\.)(?:field|Field|mutable_field|Option|Argument|HfArg|MISSING)$")
_FLAG: Final = re.compile(r"--?[A-Za-z]")
_DEEP: Final = 4


def signature_options(tree: ast.Module, nodes: Sequence[ast.AST]) -> Iterator[Option]:
    """The options that the signatures of one file make.

    Args:
        tree: the file.
        nodes: all nodes of the tree.
    """
    functions = {node.name: node for node in nodes if isinstance(node, ast.FunctionDef)}
    classes = {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}
    started = dict.fromkeys(name for name in _started(nodes) if name in functions)
    started |= dict.fromkeys(name for name, node in functions.items() if _is_command(node, tree))
    for name in started:
        yield from _of_function(functions[name])
    for name in _parsed_classes(nodes):
        if name in classes:
            yield from _of_class(classes[name], classes, "")
    yield from _of_library(nodes)


def _of_library(nodes: Sequence[ast.AST]) -> Iterator[Option]:
    """The option for a configuration file that pyrallis and draccus give every command."""
    for node in nodes:
        name = called_name(node) if isinstance(node, ast.Call) else ""
        if re.search(r"^(?:pyrallis|draccus)\.(?:wrap|parse)$", name) and isinstance(node, ast.Call):
            yield Option(
                flags=("--config_path",), name="config_path", default=None, choices=(), required=False, switch=False,
                many=False, help="a configuration file", start=node.lineno, end=node.lineno, kind="config",
            )  # fmt: skip
            return


def _parsed_classes(nodes: Iterable[ast.AST]) -> tuple[str, ...]:
    """Names of the classes that a file (its nodes) hands to a parser of dataclasses, in the order of the code."""
    found: dict[str, None] = {}
    for node in nodes:
        if isinstance(node, ast.Call):
            name = called_name(node)
            if _CLASS_PARSERS.search(name):
                found.update(dict.fromkeys(_names_in(node)))
            elif name.endswith("parse_args") and isinstance(node.func, ast.Attribute):  # Tap: `Args().parse_args()`
                made = node.func.value
                found.update({dotted(made.func): None} if isinstance(made, ast.Call) and dotted(made.func) else {})
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and _is_wrapped(node):
            kinds = [dotted(item.annotation) for item in node.args.args if item.annotation is not None]
            found.update(dict.fromkeys(kinds))
    return tuple(name.rpartition(".")[2] for name in found if name)


def _field_default(node: ast.expr | None) -> tuple[ast.expr | None, bool]:
    """(default of a field or parameter as it is written, is one given at all).

    `field(default=3)`, `field(default_factory=lambda: [1])` and `typer.Option(3)` hold it inside.
    """
    if node is None:
        return None, False
    if not isinstance(node, ast.Call) or not _FIELD.search(called_name(node)):
        return node, True
    words = {word.arg: word.value for word in node.keywords}
    factory = words.get("default_factory")
    if isinstance(factory, ast.Lambda):
        return factory.body, True
    given = words.get("default", node.args[0] if node.args else None)
    required = isinstance(given, ast.Constant) and given.value is ...
    return (None, False) if given is None or required or dotted(given).endswith("MISSING") else (given, True)


def _started(nodes: Sequence[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Call) and _RUNNERS.search(called_name(node)):
            yield from _names_in(node)


def _names_in(call: ast.Call) -> Iterator[str]:
    given = [*call.args, *(word.value for word in call.keywords)]
    for item in given:
        for part in item.elts if isinstance(item, (ast.Tuple, ast.List)) else [item]:
            if isinstance(part, (ast.Name, ast.Attribute)) and dotted(part):
                yield dotted(part)


def _is_command(node: Function, tree: ast.Module) -> bool:
    """Is it a command of typer? Those of click state their options in decorators of their own."""
    names = [dotted(item.func if isinstance(item, ast.Call) else item) for item in node.decorator_list]
    return any(_COMMANDS.search(name) for name in names) and "typer" in {
        alias.name.split(".")[0] for item in ast.walk(tree) if isinstance(item, ast.Import) for alias in item.names
    }


def _is_wrapped(node: Function) -> bool:
    names = [dotted(item.func if isinstance(item, ast.Call) else item) for item in node.decorator_list]
    return any(_WRAPPERS.search(name) for name in names)


def _of_function(node: Function) -> Iterator[Option]:
    plain = [*node.args.posonlyargs, *node.args.args]
    defaults: list[ast.expr | None] = [None] * (len(plain) - len(node.args.defaults))
    pairs = [*zip(plain, [*defaults, *node.args.defaults], strict=True)]
    pairs += [*zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)]
    for argument, default in pairs:
        if argument.arg not in {"self", "cls"}:
            given, has = _field_default(default)
            flags = _flags(default) or (f"--{argument.arg}", f"--{argument.arg.replace('_', '-')}")
            yield _option(argument.arg, tuple(dict.fromkeys(flags)), given if has else None, has, argument, default)


def _flags(default: ast.expr | None) -> tuple[str, ...]:
    if not isinstance(default, ast.Call):
        return ()
    words = [item.value for item in default.args if isinstance(item, ast.Constant) and isinstance(item.value, str)]
    return tuple(word for word in words if _FLAG.match(word))


def _of_class(node: ast.ClassDef, classes: dict[str, ast.ClassDef], prefix: str, depth: int = 0) -> Iterator[Option]:
    if depth > _DEEP:
        return
    for base in node.bases:
        if dotted(base) in classes and dotted(base) != node.name:
            yield from _of_class(classes[dotted(base)], classes, prefix, depth + 1)
    for item in node.body:
        if not isinstance(item, ast.AnnAssign) or not isinstance(item.target, ast.Name):
            continue
        name = f"{prefix}{item.target.id}"
        kind = dotted(item.annotation)
        if kind in classes and kind != node.name:  # a part of the configuration: `--optimizer.lr`
            yield from _of_class(classes[kind], classes, f"{name}.", depth + 1)
            continue
        given, has = _field_default(item.value)
        flags = (f"--{name}", f"--{name.replace('_', '-')}")
        yield _option(name, tuple(dict.fromkeys(flags)), given, has, item, item.value)


def _option(
    name: str, flags: tuple[str, ...], given: ast.expr | None, has: bool, place: ast.arg | ast.AnnAssign,
    default: ast.expr | None,
) -> Option:  # fmt: skip
    last = default if default is not None else place
    return Option(
        flags=flags,
        name=name,
        default=literal(given) if has else None,
        choices=_literals(place.annotation),
        required=not has,
        switch=False,
        many=isinstance(given, (ast.List, ast.Tuple)),
        help="",
        start=place.lineno,
        end=max(place.end_lineno or place.lineno, last.end_lineno or place.lineno),
        kind="signature",
        numeric=bool(re.search(r"\b(?:int|float)\b", ast.unparse(place.annotation))) if place.annotation else False,
    )


def _literals(annotation: ast.expr | None) -> tuple[str, ...]:
    """The values of `Literal["adam", "sgd"]`."""
    for node in ast.walk(annotation) if annotation is not None else ():
        if isinstance(node, ast.Subscript) and dotted(node.value).rpartition(".")[2] == "Literal":
            items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            return tuple(text for item in items if (text := literal(item)) is not None)
    return ()
