"""What names stand for where code runs: arguments of the call that leads there, assignments, constants, `self`.

`pd.read_csv(path)` in a helper reads what its caller passes, and the caller passes `args.edge_path`. Followed backwards
through the calls that the call graph took, most such names end at an option, a configuration value or a constant.

Non-goals: names that are assigned twice, loops, values of calls. They are not known, and so stay as they are written.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pipeline.tracing.callgraph import Reached, Reaching
from pipeline.tracing.program import Definition, Function, Module, Program, called_name, dotted, parameters_of
from pipeline.tracing.values import Names, Values

__all__ = ["Scopes"]

_Key = tuple[str, str, int]
_Where = _Key | None


class Scopes:
    """Names in the functions that an entry point reaches.

    Args:
        program: the repository.
        entry: the entry point.
        reaching: what it reaches.
        values: the settings of the run.
    """

    def __init__(self, program: Program, entry: Module, reaching: Reaching, values: Values) -> None:
        self._program = program
        self._entry = entry
        self._values = values
        self._reached = {item.definition.key: item for item in reaching.functions}
        self._local: dict[_Where, dict[str, ast.expr]] = {}
        self._found: dict[tuple[_Where, str], str | None] = {}

    def text(self, node: ast.expr, where: _Where) -> str | None:
        """The text of an expression in the function `where` (None: module-level code of the entry point)."""
        return self._values.text(node, self.names(where))

    def names(self, where: _Where) -> Names:
        """What names stand for in the function `where`."""
        return lambda name: self._name(where, name)

    def _name(self, where: _Where, name: str) -> str | None:
        known = (where, name)
        if known not in self._found:
            self._found[known] = None  # a name that leads to itself is not known
            self._found[known] = self._resolve(where, name)
        return self._found[known]

    def _resolve(self, where: _Where, name: str) -> str | None:
        if name.startswith("self."):
            return self._attribute(where, name)
        if name == "__file__":
            return where[0] if where is not None else self._entry.path
        assigned = self._assignments(where)
        if name in assigned:
            return self.text(assigned[name], where)
        reached = self._reached.get(where) if where is not None else None
        if reached is not None and name in parameters_of(reached.definition.node):
            return self._argument(reached, name)
        module = self._program.module(reached.definition.path) if reached is not None else self._entry
        found = self._program.find(module, name) if module is not None else None
        value = found[0].assigned.get(found[1]) if found else None
        return self._values.text(value, _constants(found[0])) if found and value is not None else None

    def _assignments(self, where: _Where) -> dict[str, ast.expr]:
        """Names that a body assigns once."""
        if where not in self._local:
            reached = self._reached.get(where) if where is not None else None
            tree: ast.AST | None = reached.definition.node if reached is not None else self._entry.unit.tree
            seen: dict[str, ast.expr] = {}
            twice: set[str] = set()
            for node in _own_nodes(tree) if tree is not None else ():
                for name, value in _bound(node):
                    twice.update({name} & seen.keys())
                    seen[name] = value
            self._local[where] = {name: value for name, value in seen.items() if name not in twice}
        return self._local[where]

    def _attribute(self, where: _Where, name: str) -> str | None:
        """`self.root`, from the constructor of the class."""
        reached = self._reached.get(where) if where is not None else None
        if reached is None or reached.definition.owner is None:
            return None
        start = next(
            (
                key
                for key, item in self._reached.items()
                if key[0] == reached.definition.path and item.definition.name == f"{reached.definition.owner}.__init__"
            ),
            None,
        )
        value = self._assignments(start).get(name) if start is not None else None
        return self.text(value, start) if value is not None else None

    def _argument(self, reached: Reached, name: str) -> str | None:
        """What the call that leads here passes, else the default."""
        call = self._call(reached)
        return self.passed(reached.definition, call, reached.caller, name) if call is not None else None

    def passed(self, definition: Definition, call: ast.Call, where: _Where, name: str) -> str | None:
        """What a call in the function `where` passes as the parameter `name`, else the default."""
        keyword = next((word.value for word in call.keywords if word.arg == name), None)
        if keyword is not None:
            return self.text(keyword, where)
        if any(word.arg is None for word in call.keywords) or any(isinstance(i, ast.Starred) for i in call.args):
            return None  # `make(**options)`
        parameters = parameters_of(definition.node)
        skipped = 1 if definition.owner is not None and parameters[:1] in (["self"], ["cls"]) else 0
        place = parameters.index(name) - skipped
        if 0 <= place < len(call.args):
            return self.text(call.args[place], where)
        default = _defaults(definition.node).get(name)
        return self._values.text(default) if default is not None else None

    def _call(self, reached: Reached) -> ast.Call | None:
        """The call on the line that leads to a function; None when it cannot be told from others there."""
        above = self._reached.get(reached.caller) if reached.caller is not None else None
        tree: ast.AST | None = above.definition.node if above is not None else self._entry.unit.tree
        if tree is None:
            return None
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.lineno == reached.line]
        short = reached.definition.name.rpartition(".")[2]
        wanted = {reached.definition.owner, short} if short == "__init__" else {short}
        named = [node for node in calls if called_name(node).rpartition(".")[2] in wanted]
        found = named or calls
        return found[0] if len(found) == 1 else None


def _constants(module: Module, depth: int = 4) -> Names:
    """What names stand for in module-level code that is imported: its own path, and constants made of constants."""

    def name(wanted: str) -> str | None:
        if wanted == "__file__":
            return module.path
        value = module.assigned.get(wanted)
        return Values(()).text(value, _constants(module, depth - 1)) if value is not None and depth else None

    return name


def _defaults(node: Function) -> dict[str, ast.expr]:
    plain = [*node.args.posonlyargs, *node.args.args]
    given = dict(zip([item.arg for item in reversed(plain)], reversed(node.args.defaults), strict=False))
    words = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
    return given | {item.arg: value for item, value in words if value is not None}


def _own_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Nodes of a body, without those of the definitions inside it."""
    for child in ast.iter_child_nodes(tree):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield child
            yield from _own_nodes(child)


def _bound(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """(name or self attribute, value) of an assignment; what loops and `with` bind has no value that is known."""
    unknown = ast.Name("?", ast.Load())
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name | ast.Attribute):
                yield dotted(target), node.value
            elif isinstance(target, ast.Tuple) and not any(isinstance(item, ast.Starred) for item in target.elts):
                values = node.value.elts if isinstance(node.value, ast.Tuple) else []
                known = values if len(values) == len(target.elts) else [unknown] * len(target.elts)
                yield from ((dotted(item), value) for item, value in zip(target.elts, known, strict=True))
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        yield dotted(node.target), node.value
    elif isinstance(node, ast.AugAssign):
        yield dotted(node.target), unknown
    elif isinstance(node, ast.For | ast.AsyncFor):
        yield from ((item.id, unknown) for item in ast.walk(node.target) if isinstance(item, ast.Name))
    elif isinstance(node, ast.withitem) and isinstance(node.optional_vars, ast.Name):
        yield node.optional_vars.id, unknown
