"""Run-time choices that the settings of a run decide: tables, `getattr`, `import_module`, `eval`, class registries.

`MODELS[args.model](args)` runs one of the models. With `--model CycleNet` it is known which: the syntax tree is
rewritten as if that name stood there, and the call graph follows it like any other. What is not decided stays as it is
and is reported by the call graph.

Non-goals: tables that are filled while the program runs, except by decorators (`@MODELS.register("resnet")`).
"""

from __future__ import annotations

import ast
import re
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pipeline.tracing.values import Values

if TYPE_CHECKING:  # only the names: `program` calls this module
    from pipeline.tracing.program import Module, Program

__all__ = ["settle"]

_NAME: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*$")
_IMPORTERS: Final = frozenset({"import_module", "importlib.import_module", "__import__"})
_REGISTRY: Final = re.compile(r"regist|factory|\bREG\b", re.IGNORECASE)
_LOOKUPS: Final = frozenset({"get", "build", "create", "make", "get_class", "lookup"})


def settle(program: Program, module: Module, values: Values) -> None:
    """Put the names that are chosen under `values` in the place of the choices, in the tree of `module`."""
    tree = module.unit.tree
    if tree is not None and values.known:
        _Settler(program, module, values).visit(tree)


@dataclass(slots=True)
class _Scope:
    """Dictionaries that a body assigns to names or to attributes of `self`, and its plain texts."""

    tables: dict[str, ast.Dict] = field(default_factory=dict)
    texts: dict[str, ast.expr] = field(default_factory=dict)

    @classmethod
    def of(cls, body: ast.AST) -> _Scope:
        scope = cls()
        for node in ast.walk(body):
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                name = _plain(node.targets[0])
                if name and isinstance(node.value, ast.Dict):
                    scope.tables.setdefault(name, node.value)
                elif name and name not in scope.texts:
                    scope.texts[name] = node.value
        return scope


class _Settler(ast.NodeTransformer):
    def __init__(self, program: Program, module: Module, values: Values) -> None:
        assert module.unit.tree is not None
        self._program = program
        self._module = module
        self._values = values
        self._scope = _Scope.of(module.unit.tree)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """`TABLE[args.name]`."""
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load) or isinstance(node.slice, ast.Constant):
            return node
        key = self._text(node.slice)
        if key is None:
            return node
        if isinstance(node.value, ast.Call) and _called(node.value) in {"globals", "locals"}:
            return _name(key, node) or node
        return self._from_table(node.value, key, node) or self._registered(node.value, key, node) or node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """`getattr(module, args.name)`, `TABLE.get(args.name)`, `import_module(f"models.{args.name}")`."""
        self.generic_visit(node)
        name = _called(node)
        if name.rpartition(".")[2] == "instantiate" and node.args:
            return self._instantiated(node) or node
        if name == "getattr" and len(node.args) >= 2:
            key = self._text(node.args[1])
            if key is not None and key.isidentifier():
                return ast.copy_location(ast.Attribute(node.args[0], key, ast.Load()), node)
        elif name in _IMPORTERS and node.args:
            path = self._text(node.args[0])
            if path is None:
                path = self._guessed(node.args[0])
            return (self._imported(path, node) if path is not None else None) or node
        elif name == "eval" and node.args:
            key = self._text(node.args[0]) if not isinstance(node.args[0], ast.Constant) else None
            return (_name(key, node) if key is not None else None) or node
        elif isinstance(node.func, ast.Attribute) and node.func.attr in _LOOKUPS and node.args:
            return self._looked_up(node, node.func) or node
        return node

    def _looked_up(self, node: ast.Call, function: ast.Attribute) -> ast.AST | None:
        key = self._text(node.args[0])
        if key is None:
            return None
        if function.attr == "get":
            return self._from_table(function.value, key, node) or self._registered(function.value, key, node)
        found = self._registered(function.value, key, node)
        if found is None:
            return None
        made = ast.Call(found, [*node.args[1:]], node.keywords)  # `MODELS.build(name, width)` makes one
        return ast.copy_location(made, node)

    def _instantiated(self, node: ast.Call) -> ast.expr | None:
        """`instantiate(cfg.agent)`: the class that `agent._target_` names; before Hydra 1.0, `agent.class`."""
        section = self._values.section(node.args[0])
        named = [self._values.known.get(f"{section}.{key}") for key in ("_target_", "class", "cls")] if section else []
        target = next((item for item in named if item and _NAME.match(item) and "." in item), None)
        path, _, last = (target or "").rpartition(".")
        home = self._program.resolve(self._module.path, path) if path else None
        if home is None:
            return None
        self._program.chosen[home] = None
        made = ast.Call(self._from_there(home, last, node) or node.func, [*node.args[1:]], node.keywords)
        return ast.copy_location(made, node)

    def _text(self, node: ast.expr) -> str | None:
        return self._values.text(node, self._named)

    def _named(self, name: str) -> str | None:
        value = self._scope.texts.get(name)
        return self._values.of(value) if value is not None else None

    def _guessed(self, node: ast.expr) -> str | None:
        """`"models." + name + "_model"` where `name` is a parameter: the one such module that a setting names."""
        written = self._scope.texts.get(node.id) if isinstance(node, ast.Name) else node
        pattern = _pattern(written) if written is not None else None
        if pattern is None:
            return None
        settings = set(self._values.known.values())
        found = [path for hole, path in self._program.modules_like(pattern) if hole in settings]
        return found[0].removesuffix(".py").replace("/", ".") if len(found) == 1 else None

    def _from_table(self, table: ast.expr, key: str, place: ast.expr) -> ast.expr | None:
        """The value that a dictionary written in this file, or imported into it, has for `key`."""
        name = _plain(table)
        own = table if isinstance(table, ast.Dict) else self._scope.tables.get(name)
        chosen = _entries(own).get(key)
        if chosen is not None:
            return _name(ast.unparse(chosen), place)
        found = self._program.find(self._module, name) if own is None and name else None
        if found is None or found[0] is self._module:
            return None
        target, local = found
        there = target.assigned.get(local)
        chosen = _entries(there).get(key) if isinstance(there, ast.Dict) else None
        return self._from_there(target.path, ast.unparse(chosen), place) if chosen is not None else None

    def _from_there(self, path: str, name: str, place: ast.expr) -> ast.expr | None:
        """A name of another file, under a name of its own in this one."""
        local = f"{name.replace('.', '_')}__{zlib.crc32(path.encode())}"
        self._module.imports.setdefault(local, (path, name))
        return _name(local, place)

    def _imported(self, path: str, place: ast.Call) -> ast.expr | None:
        level = len(path) - len(path.lstrip("."))
        target = self._program.resolve(self._module.path, path.lstrip("."), level)
        if target is None:
            return None
        dotted = path.lstrip(".")
        self._program.chosen[target] = None
        self._module.imports.setdefault(dotted, (target, None))
        return _name(dotted, place)

    def _registered(self, registry: ast.expr, key: str, place: ast.expr) -> ast.expr | None:
        """The class or function that a decorator put into a registry under `key`."""
        if not _REGISTRY.search(ast.unparse(registry)) and not self._is_registry(registry):
            return None
        found = self._program.registered(key, _last(registry))
        if found is None:
            return None
        return self._from_there(*found, place)

    def _is_registry(self, node: ast.expr) -> bool:
        """Is it a name that is made by something called a registry?"""
        found = self._program.find(self._module, _plain(node)) if _plain(node) else None
        made = found[0].assigned.get(found[1]) if found else None
        return isinstance(made, ast.Call) and bool(_REGISTRY.search(ast.unparse(made.func)))


def _pattern(node: ast.expr) -> re.Pattern[str] | None:
    """A dotted name with one part that is not known, as a pattern; None for anything else."""
    if isinstance(node, ast.JoinedStr):
        parts: list[ast.expr] = list(node.values)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = _summed(node)
    else:
        return None
    texts = [
        re.escape(item.value) if isinstance(item, ast.Constant) and isinstance(item.value, str) else r"(\w+)"
        for item in parts
    ]
    one = texts.count(r"(\w+)") == 1 and any(len(text) > 2 for text in texts if text != r"(\w+)")
    return re.compile(rf"(?:[\w.]+\.)?{''.join(texts)}") if one else None


def _summed(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [*_summed(node.left), *_summed(node.right)]
    return [node]


def _entries(table: ast.Dict | None) -> dict[str, ast.expr]:
    if table is None:
        return {}
    pairs = zip(table.keys, table.values, strict=True)
    return {str(key.value): value for key, value in pairs if isinstance(key, ast.Constant)}


def _plain(node: ast.expr) -> str:
    """`name` or `self.name`; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return f"self.{node.attr}"
    return ""


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _called(node: ast.Call) -> str:
    return ast.unparse(node.func) if isinstance(node.func, ast.Name | ast.Attribute) else ""


def _name(dotted: str, place: ast.expr) -> ast.expr | None:
    """A (dotted) name as an expression at the place of another one; None for what is no name."""
    if not _NAME.match(dotted):
        return None
    head, *rest = dotted.split(".")
    node: ast.expr = ast.copy_location(ast.Name(head, ast.Load()), place)
    for part in rest:
        node = ast.copy_location(ast.Attribute(node, part, ast.Load()), place)
    return node
