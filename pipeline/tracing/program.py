"""The definitions of a repository's modules and what a call in one of them leads to, from the syntax trees alone.

Resolved: local names, imports (re-exports included), `self` methods through base classes, variables and attributes
whose class is visible where they are assigned, functions passed as arguments, and tables of functions
(`METHODS[name](...)`). Not resolved but reported: `getattr`, `importlib`, `eval`, calls through a registry that is
filled by decorators.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from pipeline.repository import Snapshot
from pipeline.tracing.modules import ModuleMap
from pipeline.tracing.source import CodeUnit, read_unit

__all__ = ["Definition", "Function", "Module", "Program", "dotted"]

Function = ast.FunctionDef | ast.AsyncFunctionDef
_FOLLOW = 6
_OVERRIDES = 3
"""Subclasses that a call of an abstract method is followed into; with more, which one runs is not known."""
# Methods that frameworks call on a subclass of theirs (torch, lightning, transformers, keras, gym, pytest-free).
_HOOKS = (
    "__init__", "forward", "__call__", "call", "training_step", "validation_step", "test_step", "predict_step",
    "configure_optimizers", "compute_loss", "setup", "__getitem__", "__iter__",
)  # fmt: skip


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
    nested: set[int] = field(default_factory=set)
    """First lines of functions that are defined inside another one."""

    def lines(self, first: int, last: int) -> str:
        """The code from line `first` to line `last`, both included."""
        return "\n".join(self.unit.code.splitlines()[first - 1 : last])


class Program:
    """Modules of a snapshot, read when they are first needed.

    Args:
        snapshot: the repository.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._known = {file.path for file in snapshot.files if not file.binary}
        self._map = ModuleMap(self._known)
        self._modules: dict[str, Module | None] = {}
        self.errors: dict[str, str] = {}
        """File -> why it could not be read or parsed."""

    def module(self, path: str) -> Module | None:
        """The module at `path`; None (and an entry in `errors`) when it cannot be read or parsed."""
        if path not in self._modules:
            self._modules[path] = self._load(path)
        return self._modules[path]

    @property
    def loaded(self) -> list[Module]:
        """Modules read so far, by path."""
        return [module for _, module in sorted(self._modules.items()) if module is not None]

    def _load(self, path: str) -> Module | None:
        if path not in self._known:
            self.errors[path] = "no such file in the snapshot"
            return None
        try:
            unit = read_unit(path, self._snapshot.text(path, 40_000_000 if path.endswith(".ipynb") else 2_000_000))
        except OSError as error:
            self.errors[path] = f"cannot be read ({error.strerror or error})"
            return None
        if unit.tree is None:
            if unit.error:
                self.errors[path] = unit.error
            return None
        module = Module(path, unit)
        around: list[tuple[int, int]] = []
        for statement in _flat(unit.tree.body):
            self._collect(module, statement)
        for node in ast.walk(unit.tree):  # imports inside functions bind there, but to the same thing
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                self._import(module, node)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                last = node.end_lineno or node.lineno
                around.append((node.lineno, last))
        module.nested.update(_inside(around))
        return module

    def _collect(self, module: Module, statement: ast.stmt) -> None:
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

    def _import(self, module: Module, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                path = self._map.resolve(module.path, alias.name, 0)
                if path:
                    module.imports.setdefault(alias.asname or alias.name, (path, None))
            return
        for alias in node.names:
            path = self._map.resolve(
                module.path, node.module or "", node.level, None if alias.name == "*" else alias.name
            )
            if path is None:
                continue
            if alias.name == "*":
                module.stars.append(path)
                continue
            is_module = path.endswith((f"/{alias.name}.py", f"/{alias.name}/__init__.py")) or path == f"{alias.name}.py"
            own = self._map.resolve(module.path, node.module or "", node.level) if node.module or node.level else None
            module.imports.setdefault(
                alias.asname or alias.name, (path, None if is_module and own != path else alias.name)
            )

    # --- lookup ------------------------------------------------------------------------------------------------------

    def find(self, module: Module, name: str, depth: int = _FOLLOW) -> tuple[Module, str] | None:
        """The module and local name that a (dotted) name of `module` leads to; None when it leaves the snapshot."""
        head, _, rest = name.partition(".")
        own = name in module.functions or name in module.classes or name in module.assigned
        if own or (rest and head in module.classes and rest in module.methods[head]):
            return module, name
        if depth == 0:
            return None
        prefix = next((item for item in _prefixes(name) if item in module.imports), None)
        if prefix is not None:
            return self._imported(module, prefix, name[len(prefix) + 1 :], depth)
        for path in module.stars:
            target = self.module(path)
            found = self.find(target, name, depth - 1) if target is not None else None
            if found:
                return found
        return None

    def _imported(self, module: Module, prefix: str, rest: str, depth: int) -> tuple[Module, str] | None:
        """What `prefix.rest` means where `prefix` is an imported name."""
        path, symbol = module.imports[prefix]
        target = self.module(path)
        if target is None:
            return None
        inner = ".".join(part for part in (symbol or "", rest) if part)
        return self.find(target, inner, depth - 1) if inner else (target, "")

    def method(self, module: Module, owner: str, name: str, depth: int = _FOLLOW) -> Definition | None:
        """A method of a class, through the base classes that the snapshot has."""
        methods = module.methods.get(owner, {})
        if name in methods:
            return Definition(module.path, f"{owner}.{name}", methods[name], owner)
        if depth:
            for base in module.classes[owner].bases if owner in module.classes else ():
                found = self.find(module, dotted(base))
                if found and found[1] in found[0].classes and (found[0].path, found[1]) != (module.path, owner):
                    definition = self.method(found[0], found[1], name, depth - 1)
                    if definition:
                        return definition
        return None

    def overriding(self, abstract: Definition) -> list[Definition]:
        """The methods of loaded subclasses that take the place of one that only says that it is to be overridden.

        Empty when the method does something of its own, or when more than three subclasses could be meant.
        """
        if abstract.owner is None or not _is_abstract(abstract.node):
            return []
        name = abstract.name.rpartition(".")[2]
        found: list[Definition] = []
        for module in self.loaded:
            for owner, methods in sorted(module.methods.items()):
                if name in methods and (module.path, owner) != (abstract.path, abstract.owner):
                    inherited = [self.find(module, dotted(base)) for base in module.classes[owner].bases]
                    if any(base and (base[0].path, base[1]) == (abstract.path, abstract.owner) for base in inherited):
                        found.append(Definition(module.path, f"{owner}.{name}", methods[name], owner))
        return found if len(found) <= _OVERRIDES else []

    def definitions(self, module: Module, name: str) -> list[Definition]:
        """The functions that calling the (dotted) `name` runs; a class gives its constructor and framework hooks."""
        found = self.find(module, name)
        if found is None:
            return []
        target, local = found
        if local in target.functions:
            return [Definition(target.path, local, target.functions[local])]
        if local in target.classes:
            hooks = [self.method(target, local, hook) for hook in _HOOKS]
            return [definition for definition in hooks if definition is not None]
        owner, _, method = local.partition(".")
        if owner in target.classes and method:
            definition = self.method(target, owner, method)
            return [definition] if definition else []
        return self._table(target, target.assigned.get(local))

    def _table(self, module: Module, value: ast.expr | None) -> list[Definition]:
        """Functions in a table (`{"ours": fit_ours}`) or behind `name = partial(f, ...)`."""
        if isinstance(value, ast.Dict):
            nodes: list[ast.expr] = list(value.values)
        elif isinstance(value, (ast.List, ast.Tuple)):
            nodes = list(value.elts)
        elif isinstance(value, ast.Call):
            nodes = list(value.args)
        else:
            return []
        found: list[Definition] = []
        for node in nodes:
            inner = list(node.elts) if isinstance(node, (ast.Tuple, ast.List)) else [node]
            for item in inner:
                name = dotted(item)
                if name and name not in module.assigned:
                    found += self.definitions(module, name)
        return found

    def class_of(self, module: Module, name: str) -> tuple[Module, str] | None:
        """The class that a (dotted) name means."""
        found = self.find(module, name)
        return found if found and found[1] in found[0].classes else None


def dotted(node: ast.expr | None) -> str:
    """`a.b.c` for a chain of attributes on a name; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])


def _is_abstract(node: Function) -> bool:
    """Is the body nothing but a docstring, `pass`, `...`, `return` or a raised `NotImplementedError`?"""
    for item in node.body:
        empty = isinstance(item, (ast.Pass, ast.Raise)) or (
            isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant)
        )
        if isinstance(item, ast.Return):
            empty = item.value is None or isinstance(item.value, ast.Constant)
        if isinstance(item, ast.Raise):
            return "NotImplemented" in ast.unparse(item)
        if not empty:
            return False
    return True


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


def _prefixes(name: str) -> Iterator[str]:
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        yield ".".join(parts[:end])


def _flat(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a module, those inside top-level `if`, `try` and `with` included."""
    for statement in body:
        yield statement
        if isinstance(statement, (ast.If, ast.Try, ast.With)):
            yield from _flat(statement.body)
            for handler in getattr(statement, "handlers", ()):
                yield from _flat(handler.body)
            yield from _flat(getattr(statement, "orelse", []))
