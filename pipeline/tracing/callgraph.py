"""What runs, in which order, when an entry point is started: the call graph from its module-level code."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pipeline.tracing.program import Definition, Module, Program, dotted

__all__ = ["Reached", "Reaching", "calls_in", "reach"]

# The deepest published requirement lies five calls below its entry point; recursion and frameworks end here.
_MAX_DEPTH = 10
_MAX_FUNCTIONS = 600
# Method names that objects of every library have: without a known class they lead to the wrong file.
_COMMON_METHODS = frozenset(
    {
        "add", "append", "apply", "build", "clear", "close", "compile", "copy", "count", "cpu", "cuda", "detach",
        "dump", "eval", "extend", "fit", "format", "forward", "get", "init", "insert", "items", "join", "keys", "load",
        "log", "lower", "mean", "open", "plot", "pop", "predict", "print", "read", "remove", "render", "replace",
        "reset", "run", "sample", "save", "set", "show", "size", "sort", "split", "step", "strip", "sum", "to", "train",
        "transform", "update", "upper", "values", "write",
    }
)  # fmt: skip
_BUILTIN = frozenset({"eval", "exec", "__import__", "globals", "locals"})
"""Dynamic under these bare names only: `model.eval()` evaluates nothing."""
_DYNAMIC = frozenset({"import_module", "instantiate"})


@dataclass(slots=True)
class Reached:
    """A function that the run may enter."""

    definition: Definition
    depth: int
    caller: tuple[str, str, int] | None
    """Key of the definition that calls it first; None for the module-level code of the entry point."""
    line: int
    """Line of that call in its caller's file."""


@dataclass(slots=True)
class Reaching:
    """Everything that an entry point reaches."""

    functions: list[Reached] = field(default_factory=list)
    """In order of first entry."""
    files: list[str] = field(default_factory=list)
    dynamic: list[tuple[str, int, str]] = field(default_factory=list)
    """(file, line, name) of calls whose target is chosen at run time."""


def calls_in(node: ast.AST) -> Iterator[ast.Call]:
    """Calls in the order in which they are evaluated (arguments before the call), nested definitions left out."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield from calls_in(child)
    if isinstance(node, ast.Call):
        yield node


def _is_chosen_attribute(call: ast.Call) -> bool:
    """`getattr(thing, name)` with a computed name; a written one, with or without a default, chooses nothing."""
    return dotted(call.func) == "getattr" and len(call.args) > 1 and not isinstance(call.args[1], ast.Constant)


def _given(arguments: ast.arguments) -> dict[str, str]:
    """Parameters that are a function unless a caller gives another one (`make=create_environment`)."""
    plain = [*arguments.posonlyargs, *arguments.args]
    pairs = [*zip(reversed(plain), reversed(arguments.defaults), strict=False)]
    pairs += [(item, value) for item, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if value]
    return {item.arg: dotted(value) for item, value in pairs if dotted(value)}


def _made(value: ast.expr, aliases: dict[str, str]) -> str:
    """The name of the class or function that a value is made by, is, or is taken from a table of; empty: unknown."""
    if isinstance(value, ast.Call):
        name = dotted(value.func)
    elif isinstance(value, ast.Subscript):
        name = dotted(value.value)
    elif isinstance(value, (ast.Name, ast.Attribute)):
        name = dotted(value)
    else:
        return ""
    return aliases.get(name, name)


def reach(program: Program, module: Module) -> Reaching:
    """Follow the calls from the module-level code of `module`."""
    walker = _Walker(program)
    walker.result.files.append(module.path)
    assert module.unit.tree is not None
    statements = [node for node in module.unit.tree.body if not isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    walker.follow(module, statements, None, None, 0, {})
    return walker.result


class _Walker:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.result = Reaching()
        self._seen: set[tuple[str, str, int]] = set()

    def enter(self, definition: Definition, caller: tuple[str, str, int] | None, line: int, depth: int) -> None:
        """Note a function and follow its body."""
        if definition.key in self._seen or depth > _MAX_DEPTH or len(self._seen) >= _MAX_FUNCTIONS:
            return
        self._seen.add(definition.key)
        self.result.functions.append(Reached(definition, depth, caller, line))
        if definition.path not in self.result.files:
            self.result.files.append(definition.path)
        module = self.program.module(definition.path)
        if module is None:
            return
        types: dict[str, str] = {}
        arguments = definition.node.args
        for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
            name = dotted(argument.annotation) if argument.annotation is not None else ""
            if name:
                types[argument.arg] = name
        nested = {node.name: node for node in definition.node.body if isinstance(node, ast.FunctionDef)}
        self.follow(module, definition.node.body, definition, definition.owner, depth, types, nested, _given(arguments))

    def follow(
        self,
        module: Module,
        body: Sequence[ast.stmt],
        definition: Definition | None,
        owner: str | None,
        depth: int,
        types: dict[str, str],
        nested: dict[str, ast.FunctionDef] | None = None,
        aliases: dict[str, str] | None = None,
    ) -> None:
        """Enter everything that `body` calls, in order."""
        key = definition.key if definition else None
        aliases = dict(aliases or {})
        for statement in body:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                continue
            for node in ast.walk(statement):
                if isinstance(node, ast.Assign) and (made := _made(node.value, aliases)):
                    for target in node.targets:
                        if isinstance(target, ast.Name):
                            (types if isinstance(node.value, ast.Call) else aliases).setdefault(target.id, made)
                elif (
                    isinstance(node, ast.withitem)
                    and isinstance(node.context_expr, ast.Call)
                    and isinstance(node.optional_vars, ast.Name)
                ):
                    types.setdefault(node.optional_vars.id, dotted(node.context_expr.func))
            for call in calls_in(statement):
                line = call.lineno
                for found in self._targets(module, call, owner, types, nested or {}, definition, aliases):
                    self.enter(found, key, line, depth + 1)
            if isinstance(statement, ast.Return) and isinstance(statement.value, ast.Name) and definition is not None:
                name = statement.value.id  # a factory: what it makes is made to be called
                if nested and name in nested:
                    inner = Definition(module.path, f"{definition.name}.{name}", nested[name], owner)
                    self.enter(inner, key, statement.lineno, depth + 1)

    def _targets(
        self,
        module: Module,
        call: ast.Call,
        owner: str | None,
        types: dict[str, str],
        nested: dict[str, ast.FunctionDef],
        definition: Definition | None,
        aliases: dict[str, str],
    ) -> list[Definition]:
        found: list[Definition] = []
        for argument in [*call.args, *(word.value for word in call.keywords)]:
            name = dotted(argument)
            if name in nested:
                found.append(
                    Definition(module.path, f"{definition.name if definition else ''}.{name}", nested[name], owner)
                )
            elif name and "." not in name and name not in types:
                where = self.program.find(module, name)
                if where and where[1] in where[0].functions:
                    found += self.program.definitions(module, name)
        function = call.func
        if isinstance(function, ast.Subscript):  # METHODS[name](...)
            table = dotted(function.value)
            chosen = self.program.definitions(module, table) if table else []
            return found + (chosen or self.program.chosen_from(module, table))
        name = dotted(function)
        tail = function.attr if isinstance(function, ast.Attribute) else name
        if tail in _DYNAMIC or name in _BUILTIN or _is_chosen_attribute(call):
            self.result.dynamic.append((module.path, module.unit.line(call.lineno), tail))
        if not name:
            if isinstance(function, ast.Attribute):
                found += self._chained(module, function, owner, types)
            elif isinstance(function, ast.Call) and dotted(function.func) == "getattr" and len(function.args) > 1:
                found += self._attribute(module, function)
            return found
        if name in nested:
            found.append(
                Definition(module.path, f"{definition.name if definition else ''}.{name}", nested[name], owner)
            )
            return found
        if name in aliases and name not in module.functions:  # Model = Exp_Main; Data = DATASETS[name]
            return found + self.program.definitions(module, aliases[name])
        head, _, rest = name.partition(".")
        if rest and head in aliases and head not in module.imports:  # module = models.transformer; module.Model(...)
            name = f"{aliases[head]}.{rest}"
        return found + self._named(module, name, owner, types)

    def _attribute(self, module: Module, chosen: ast.Call) -> list[Definition]:
        """`getattr(thing, "run")()`: what is written is followed, where it leads nowhere it is reported."""
        holder, name = chosen.args[0], chosen.args[1]
        found: list[Definition] = []
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            found = self.program.definitions(module, f"{dotted(holder)}.{name.value}") if dotted(holder) else []
            if not found:
                self.result.dynamic.append((module.path, module.unit.line(chosen.lineno), "getattr"))
        return found

    def _named(self, module: Module, name: str, owner: str | None, types: dict[str, str]) -> list[Definition]:
        head, _, rest = name.partition(".")
        if head in {"self", "cls"} and owner:
            return self._of_self(module, owner, rest)
        if not rest and name in types and name not in module.functions:
            return self._called_object(module, types[name])
        direct = self.program.definitions(module, name)
        if direct or not rest:
            return direct
        if "." in rest:
            return self._only_one(rest.rsplit(".", 1)[-1])
        made = types.get(head)
        if made is None and isinstance(value := module.assigned.get(head), ast.Call):
            made = dotted(value.func)
        cls = self.program.class_of(module, made) if made else None
        if cls:
            method = self.program.method(cls[0], cls[1], rest)
            return [method] if method else []
        unknown = self.program.find(module, head) is None and head not in module.imports
        return self._only_one(rest) if unknown else []

    def _called_object(self, module: Module, made: str | None) -> list[Definition]:
        """`model(x)` where `model` is an object of the class `made`."""
        cls = self.program.class_of(module, made) if made else None
        hooks = [self.program.method(cls[0], cls[1], hook) for hook in ("__call__", "forward")] if cls else []
        return [hook for hook in hooks if hook]

    def _of_self(self, module: Module, owner: str, rest: str) -> list[Definition]:
        first, _, method = rest.partition(".")
        if not method:
            own = self.program.method(module, owner, first)
            if own:
                return self.program.overriding(own) or [own]
            return self._called_object(module, module.attributes.get((owner, first)))
        made = module.attributes.get((owner, first))
        cls = self.program.class_of(module, made) if made else None
        if cls:
            found = self.program.method(cls[0], cls[1], method)
            return [found] if found else []
        return self._only_one(method.rsplit(".", 1)[-1])

    def _chained(
        self, module: Module, function: ast.Attribute, owner: str | None, types: dict[str, str]
    ) -> list[Definition]:
        """`Cls(...).run()` and `super().__init__()`."""
        if isinstance(function.value, ast.Call):
            made = dotted(function.value.func)
            if made == "super" and owner and owner in module.classes:
                for base in module.classes[owner].bases:
                    cls = self.program.class_of(module, dotted(base))
                    found = self.program.method(cls[0], cls[1], function.attr) if cls else None
                    if found:
                        return [found]
                return []
            cls = self.program.class_of(module, made) if made else None
            if cls:
                found = self.program.method(cls[0], cls[1], function.attr)
                return [found] if found else []
        if isinstance(function.value, ast.Subscript) and (table := dotted(function.value.value)):
            chosen = self.program.chosen_from(module, table, function.attr)  # MODELS[name].Model(...)
            if chosen:
                return chosen
        return self._only_one(function.attr)

    def _only_one(self, name: str) -> list[Definition]:
        """A method of an object of unknown class, where the files read so far define that name exactly once."""
        if name in _COMMON_METHODS or name.startswith("__"):
            return []
        found = [
            Definition(module.path, f"{owner}.{name}", methods[name], owner)
            for module in self.program.loaded
            for owner, methods in sorted(module.methods.items())
            if name in methods
        ]
        return found if len(found) == 1 else []
