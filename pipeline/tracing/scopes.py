"""What names stand for where code runs: arguments of the call that leads there, assignments, constants, `self`.

`pd.read_csv(path)` in a helper reads what its caller passes, and the caller passes `args.edge_path`. Followed backwards
through the calls that the call graph took, most such names end at an option, a configuration value or a constant.

Non-goals: names that are assigned twice, loops, values of calls. They are not known, and so stay as they are written.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from pipeline.tracing.arguments import literal
from pipeline.tracing.callgraph import Reached, Reaching
from pipeline.tracing.parsed import own_nodes
from pipeline.tracing.program import Definition, Function, Module, Program, called_name, dotted, parameters_of
from pipeline.tracing.values import Names, Values

__all__ = ["Scopes", "short_name"]

_Key = tuple[str, str, int]
_Where = _Key | None
_MOST_CALLS = 12
"""Calls of one function whose arguments are told apart."""


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
        self._again: dict[_Where, dict[str, list[ast.expr]]] = {}
        self._calls: dict[str, list[tuple[ast.Call, _Where]]] | None = None
        self._found: dict[tuple[_Where, str], str | None] = {}

    def text(self, node: ast.expr, where: _Where) -> str | None:
        """The text of an expression in the function `where` (None: module-level code of the entry point)."""
        return self._values.text(node, self.names(where))

    def possible(self, node: ast.expr, where: _Where) -> list[str]:
        """The texts that an expression may have: for each call that leads here, for each value a name is given.

        Of a name that is given another value where there is no such file (`if not exists(path): path = other`), the
        first file that the repository has.
        """
        plain = self.text(node, where)
        if plain is not None:
            return [plain]
        reached = self._reached.get(where) if where is not None else None
        used = self._used(node, where)
        found: list[str | None] = []
        if reached is not None and used & set(parameters_of(reached.definition.node)):
            for call, caller in self.calls_of(reached)[:_MOST_CALLS]:
                found.append(self._values.text(node, self._within(reached, call, caller)))
        changed = self._twice(where) | self._changed(where)
        again = sorted(used & changed.keys())
        if len(again) == 1:
            own = self.names(where)
            filled = [
                self._values.text(node, _instead(own, again[0], self.text(value, where))) for value in changed[again[0]]
            ]
            existing = [text for text in filled if text is not None and self._program.holds(text)]
            found += existing[:1] or filled
        return list(dict.fromkeys(text for text in found if text is not None))

    def _within(self, reached: Reached, call: ast.Call, caller: _Where) -> Names:
        """Names in a function as one of its calls leaves them."""
        where = reached.definition.key
        parameters, assigned = parameters_of(reached.definition.node), self._assignments(where)
        own = self.names(where)
        busy: set[str] = set()

        def name(wanted: str) -> str | None:
            if wanted in parameters:
                return self.passed(reached.definition, call, caller, wanted) if wanted not in assigned else None
            if wanted not in assigned or wanted in busy:
                return own(wanted)
            busy.add(wanted)
            found = self._values.text(assigned[wanted], name)
            busy.discard(wanted)
            return found

        return name

    def _used(self, node: ast.expr, where: _Where) -> set[str]:
        """Names that an expression is made of, through what the body assigns to them."""
        assigned = self._assignments(where)
        waiting = [node]
        found: set[str] = set()
        while waiting:
            names = {item.id for item in ast.walk(waiting.pop()) if isinstance(item, ast.Name)} - found
            found |= names
            waiting += [assigned[name] for name in sorted(names) if name in assigned]
        return found

    def calls_of(self, reached: Reached) -> list[tuple[ast.Call, _Where]]:
        """Calls that run, of a function, each with the function that makes it."""
        if self._calls is None:
            self._calls = _calls(self._entry, self._reached.values())
        called = self._calls.get(short_name(reached), [])
        return (
            called if reached.definition.owner is not None else [item for item in called if self._is_of(reached, *item)]
        )

    def _is_of(self, reached: Reached, call: ast.Call, where: _Where) -> bool:
        """Does a call mean a function, and not a method of its name?"""
        name = dotted(call.func)
        module = self._program.module(where[0]) if where is not None else self._entry
        if "." not in name or module is None:
            return bool(name)
        found = self._program.find(module, name)
        return found is not None and found[0].path == reached.definition.path

    def _twice(self, where: _Where) -> dict[str, list[ast.expr]]:
        """Names that a body assigns more than once."""
        self._assignments(where)
        return self._again.get(where, {})

    def _changed(self, where: _Where) -> dict[str, list[ast.expr]]:
        """Parameters that a body assigns."""
        reached = self._reached.get(where) if where is not None else None
        own = parameters_of(reached.definition.node) if reached is not None else []
        assigned = self._assignments(where)
        return {name: [assigned[name]] for name in own if name in assigned}

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
        if name in {"sys.argv", "__file__"}:
            return where[0] if where is not None and name == "__file__" else self._entry.path
        assigned = self._assignments(where)
        if where is None and name in self._values.known and literal(assigned.get(name)) is not None:
            return self._values.known[name]  # a constant of the script that its configuration or command changes
        reached = self._reached.get(where) if where is not None else None
        own = parameters_of(reached.definition.node) if reached is not None else []
        if name in assigned:  # of a parameter it is not known whether what is passed still stands
            return self.text(assigned[name], where) if name not in own else None
        if reached is not None and name in own:
            return self._argument(reached, name)
        return self._elsewhere(reached, name)

    def _elsewhere(self, reached: Reached | None, name: str) -> str | None:
        """A name of module-level code."""
        module = self._program.module(reached.definition.path) if reached is not None else self._entry
        found = self._program.find(module, name) if module is not None else None
        value = found[0].assigned.get(found[1]) if found else None
        return self._values.text(value, _constants(found[0])) if found and value is not None else None

    def _assignments(self, where: _Where) -> dict[str, ast.expr]:
        """Names that a body assigns once."""
        if where not in self._local:
            reached = self._reached.get(where) if where is not None else None
            tree: ast.AST | None = reached.definition.node if reached is not None else self._entry.unit.tree
            seen: dict[str, list[ast.expr]] = {}
            for node in own_nodes(tree) if tree is not None else ():
                for name, value in _bound(node):
                    seen.setdefault(name, []).append(value)
            self._local[where] = {name: values[0] for name, values in seen.items() if len(values) == 1}
            self._again[where] = {name: values for name, values in seen.items() if len(values) > 1}
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
        short = short_name(reached)
        bound = {value for known, value in self._values.known.items() if f".{known}".endswith(f".{short}.{name}")}
        if len(bound) == 1:  # gin sets parameters of functions by their names
            return bound.pop()
        calls = self.calls_of(reached)
        if len(calls) > 1:
            texts = {self.passed(reached.definition, call, where, name) for call, where in calls[:_MOST_CALLS]}
            return texts.pop() if len(texts) == 1 and len(calls) <= _MOST_CALLS else None
        if not calls and reached.definition.path == self._entry.path:
            found = self._values.known.get(name)  # started by a library that fills in the options: fire, typer, click
            if found is not None:
                return found
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
        if name not in parameters:
            return None
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


def _instead(names: Names, changed: str, text: str | None) -> Names:
    """The same names, one of them with another text."""
    return lambda name: text if name == changed else names(name)


def short_name(reached: Reached) -> str:
    """The name by which a function is called: that of the class for its constructor."""
    name = reached.definition.name.rpartition(".")[2]
    return reached.definition.owner or name if name == "__init__" else name


def _calls(entry: Module, functions: Iterable[Reached]) -> dict[str, list[tuple[ast.Call, _Where]]]:
    """Calls that run, each with the function that makes it, by the last part of the name that is called."""
    bodies: list[tuple[ast.AST, _Where]] = []
    if entry.unit.tree is not None:
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        bodies += [(node, None) for node in entry.unit.tree.body if not isinstance(node, kinds)]
    # inner functions first: their calls are theirs, not those of the function around them
    inner = sorted(functions, key=lambda item: -item.definition.name.count("."))
    bodies += [(item.definition.node, item.definition.key) for item in inner]
    seen: set[int] = set()
    found: dict[str, list[tuple[ast.Call, _Where]]] = {}
    for body, where in bodies:
        for node in ast.walk(body):
            if isinstance(node, ast.Call) and id(node) not in seen:
                seen.add(id(node))
                found.setdefault(called_name(node).rpartition(".")[2], []).append((node, where))
    return found


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


def _bound(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """(name or self attribute, value) of an assignment; what loops and `with` bind has no value that is known."""
    unknown = ast.Name("?", ast.Load())
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name | ast.Attribute):
                yield dotted(target), node.value
            elif isinstance(target, ast.Tuple) and not any(isinstance(item, ast.Starred) for item in target.elts):
                values = node.value.elts if isinstance(node.value, ast.Tuple) else []
                parts = [ast.Subscript(node.value, ast.Constant(place)) for place in range(len(target.elts))]
                known = values if len(values) == len(target.elts) else parts
                yield from ((dotted(item), value) for item, value in zip(target.elts, known, strict=True))
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        yield dotted(node.target), node.value
    elif isinstance(node, ast.AugAssign):
        yield dotted(node.target), unknown
    elif isinstance(node, ast.For | ast.AsyncFor):
        yield from ((item.id, unknown) for item in ast.walk(node.target) if isinstance(item, ast.Name))
    elif isinstance(node, ast.withitem) and isinstance(node.optional_vars, ast.Name):
        yield node.optional_vars.id, unknown
