"""One file taken apart: its top-level names, what they are bound to, and what its imports lead to.

Non-goals: other files, and what a name means there (see `pipeline.tracing.program`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from pipeline.tracing.modules import ModuleMap
from pipeline.tracing.source import CodeUnit

__all__ = [
    "Definition",
    "Function",
    "Module",
    "called_function",
    "called_name",
    "collect",
    "dotted",
    "own_nodes",
    "parameters_of",
    "parse_module",
]

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Definition:
    """A function or method of the repository."""

    path: str
    name: str
    """Qualified within its module: `Trainer.fit`."""
    node: Function
    owner: str | None = None

    @property
    def key(self) -> tuple[str, str, int]:
        """Identity."""
        return (self.path, self.name, self.node.lineno)


@dataclass(slots=True)
class Module:
    """The top-level names of one file."""

    path: str
    unit: CodeUnit
    functions: dict[str, Function] = field(default_factory=dict)
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    methods: dict[str, dict[str, Function]] = field(default_factory=dict)
    imports: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    """Local name -> (file, name in it); the name is None for a module itself."""
    stars: list[str] = field(default_factory=list)
    assigned: dict[str, ast.expr] = field(default_factory=dict)
    """Module-level names and what they are set to."""
    attributes: dict[tuple[str, str], str] = field(default_factory=dict)
    """(class, attribute) -> name of the class that is assigned to it."""
    tables: dict[str, list[str]] = field(default_factory=dict)
    """Dictionaries of names that a body assigns (`self.models = {"mlp": mlp}`), to be chosen from."""
    nested: set[int] = field(default_factory=set)
    """First lines of functions that are defined inside another one."""

    def lines(self, first: int, last: int) -> str:
        """The code from line `first` to line `last`, both included."""
        return "\n".join(self.unit.code.splitlines()[first - 1 : last])


def parse_module(path: str, unit: CodeUnit, files: ModuleMap) -> Module:
    """The names of a file.

    Args:
        path: where it lies.
        unit: its code, parsed.
        files: the Python files of the repository.
    """
    assert unit.tree is not None
    module = Module(path, unit)
    collect(module)
    around: list[tuple[int, int]] = []
    for node in ast.walk(unit.tree):  # imports inside functions bind there, but to the same thing
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            _import(module, node, files)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            last = node.end_lineno or node.lineno
            around.append((node.lineno, last))
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
            names = [dotted(value) for value in node.value.values]
            if names and all(names):
                module.tables.update({dotted(target): names for target in node.targets if dotted(target)})
    module.nested.update(_inside(around))
    return module


def collect(module: Module) -> None:
    """Note the definitions and assignments of a file, anew when its tree was changed."""
    module.assigned.clear()
    module.attributes.clear()
    for statement in _flat(module.unit.tree.body if module.unit.tree is not None else []):
        _collect(module, statement)


def _collect(module: Module, statement: ast.stmt) -> None:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
        module.functions[statement.name] = statement
    elif isinstance(statement, ast.ClassDef):
        module.classes[statement.name] = statement
        methods = {
            node.name: node for node in statement.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        }
        module.methods[statement.name] = methods
        for method in methods.values():
            for node in ast.walk(method):
                if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                    for target in node.targets:
                        if dotted(target).startswith("self.") and (name := dotted(node.value.func)):
                            module.attributes.setdefault((statement.name, dotted(target)[5:]), name)
    elif isinstance(statement, ast.Assign):
        for target in statement.targets:
            if isinstance(target, ast.Name):
                module.assigned[target.id] = statement.value
    elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value:
        module.assigned[statement.target.id] = statement.value


def _import(module: Module, node: ast.Import | ast.ImportFrom, files: ModuleMap) -> None:
    if isinstance(node, ast.Import):
        for alias in node.names:
            path = files.resolve(module.path, alias.name, 0)
            if path:
                module.imports.setdefault(alias.asname or alias.name, (path, None))
        return
    for alias in node.names:
        path = files.resolve(module.path, node.module or "", node.level, None if alias.name == "*" else alias.name)
        if path is None:
            continue
        if alias.name == "*":
            module.stars.append(path)
            continue
        is_module = path.endswith((f"/{alias.name}.py", f"/{alias.name}/__init__.py")) or path == f"{alias.name}.py"
        own = files.resolve(module.path, node.module or "", node.level) if node.module or node.level else None
        module.imports.setdefault(alias.asname or alias.name, (path, None if is_module and own != path else alias.name))


def dotted(node: ast.expr | None) -> str:
    """`a.b.c` for a chain of attributes on a name; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])


def called_name(call: ast.Call) -> str:
    """The dotted name of what is called, the method of anything else (`make().fit()`); empty where it has none."""
    return dotted(call.func) or (call.func.attr if isinstance(call.func, ast.Attribute) else "")


def called_function(call: ast.Call) -> str:
    """The last name of what is called (`np.random.rand` is `rand`, `make().fit` is `fit`); empty where it has none."""
    return called_name(call).rpartition(".")[2]


def parameters_of(node: Function) -> list[str]:
    """Names of a function's parameters in order, those that only keywords reach last."""
    return [item.arg for item in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]]


def _inside(spans: list[tuple[int, int]]) -> set[int]:
    """First lines of the spans that lie inside another one."""
    found: set[int] = set()
    end = 0
    for first, last in sorted(spans):
        if first <= end:
            found.add(first)
        else:
            end = last
    return found


def _flat(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a module, those inside top-level `if`, `try` and `with` included."""
    for statement in body:
        yield statement
        if isinstance(statement, (ast.If, ast.Try, ast.With)):
            yield from _flat(statement.body)
            for handler in getattr(statement, "handlers", ()):
                yield from _flat(handler.body)
            yield from _flat(getattr(statement, "orelse", []))


def own_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Nodes of a body, without those of the definitions inside it."""
    for child in ast.iter_child_nodes(tree):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield child
            yield from own_nodes(child)
