"""The definitions of a repository's modules and what a call in one of them leads to, from the syntax trees alone.

Resolved: local names, imports (re-exports included), `self` methods through base classes, variables and attributes
whose class is visible where they are assigned, functions passed as arguments, and tables of functions
(`METHODS[name](...)`). `getattr`, `importlib`, `eval` and registries are resolved where the settings of the run say
what they are given (`pipeline.tracing.dispatch`), and reported where they do not.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator

from pipeline.repository import Snapshot
from pipeline.tracing.branches import drop_decided
from pipeline.tracing.dispatch import settle
from pipeline.tracing.modules import ModuleMap
from pipeline.tracing.parsed import (
    Definition,
    Function,
    Module,
    called_name,
    collect,
    dotted,
    parameters_of,
    parse_module,
)
from pipeline.tracing.source import nested_deeper, read_unit
from pipeline.tracing.values import Values

__all__ = ["Definition", "Function", "Module", "Program", "called_name", "dotted", "parameters_of"]

_FOLLOW = 6
_DEEPEST = 250
"""Levels of a syntax tree: reading it takes three calls a level, and Python allows 1,000 in all."""
_CLOSURE = 400
"""Files that are searched for what is registered by decorators; what lies further in is not found, and so reported."""
_OVERRIDES = 3
"""Subclasses that a call of an abstract method is followed into; with more, which one runs is not known."""
# Methods that frameworks call on a subclass of theirs (torch, lightning, transformers, keras, gym, pytest-free).
_HOOKS = (
    "__init__", "forward", "__call__", "call", "training_step", "validation_step", "test_step", "predict_step",
    "configure_optimizers", "compute_loss", "setup", "__getitem__", "__iter__",
)  # fmt: skip


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
        self._values: Values | None = None
        self._registered: dict[str, list[tuple[str, str, str]]] | None = None
        self.chosen: dict[str, None] = {}
        """Files that the settings choose to import by name."""
        self.errors: dict[str, str] = {}
        """File -> why it could not be read or parsed."""

    def settle(self, values: Values) -> None:
        """Decide, in all modules read so far and in those to come, what `values` decide: branches, tables, names."""
        self._values = values
        for module in self.loaded:
            self._settle(module)

    def _settle(self, module: Module) -> None:
        if self._values is None or module.unit.tree is None:
            return
        drop_decided(module.unit.tree, self._values)
        settle(self, module, self._values)
        collect(module)

    def module(self, path: str) -> Module | None:
        """The module at `path`; None (and an entry in `errors`) when it cannot be read or parsed."""
        if path not in self._modules:
            module = self._modules[path] = self._load(path)
            if module is not None:
                self._settle(module)
        return self._modules[path]

    def resolve(self, importer: str, name: str, level: int = 0) -> str | None:
        """The file that importing the dotted `name` leads to; None when it is not of this repository."""
        return self._map.resolve(importer, name, level)

    def holds(self, path: str) -> bool:
        """Has the repository such a file?"""
        return posixpath.normpath(path) in self._known

    def modules_like(self, pattern: re.Pattern[str]) -> list[tuple[str, str]]:
        """(what the first group of a pattern stands for, file) of the modules whose dotted name it matches."""
        found = []
        for path in sorted(self._known):
            dotted_path = path.removesuffix(".py").replace("/", ".") if path.endswith(".py") else ""
            match = pattern.fullmatch(dotted_path)
            if match:
                found.append((match.group(1), path))
        return found

    def registered(self, key: str, registry: str) -> tuple[str, str] | None:
        """(file, name) of the class or function that a decorator registers under `key`, in what the modules import.

        Args:
            key: the registered name; where a decorator names none, that of the class.
            registry: name of the registry; one that registers there goes before others with the same key.
        """
        if self._registered is None:
            self._registered = {}
            for module in self._closure():
                for name, node in sorted({**module.functions, **module.classes}.items()):
                    for where, under in _registrations(node):
                        self._registered.setdefault(under or name, []).append((where, module.path, name))
        found = self._registered.get(key, [])
        matching = [item for item in found if item[0] == registry] or found
        return matching[0][1:] if len({item[1:] for item in matching}) == 1 else None

    def _closure(self) -> list[Module]:
        """The modules read so far and what they import, package files included."""
        waiting = [module.path for module in self.loaded]
        seen = dict.fromkeys(waiting)
        while waiting and len(seen) < _CLOSURE:
            module = self.module(waiting.pop(0))
            if module is None:
                continue
            targets = [*(path for path, _ in module.imports.values()), *module.stars, *self._map.packages(module.path)]
            for path in sorted(set(targets) - seen.keys()):
                seen[path] = None
                waiting.append(path)
        return [module for path in seen if (module := self.module(path)) is not None]

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
        if nested_deeper(unit.tree, _DEEPEST):
            self.errors[path] = f"nested more than {_DEEPEST} levels deep, as only generated code is"
            return None
        return parse_module(path, unit, self._map)

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
        if not inner:
            return target, ""
        found = self.find(target, inner, depth - 1)
        if found is None and path.endswith("/__init__.py"):  # `import models` makes `models.mlp` one of its names
            name, _, rest = inner.partition(".")
            below = path.removesuffix("__init__.py") + name
            part = next((item for item in (f"{below}.py", f"{below}/__init__.py") if item in self._known), None)
            submodule = self.module(part) if part is not None else None
            if submodule is not None:
                return self.find(submodule, rest, depth - 1) if rest else (submodule, "")
        return found

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

    def chosen_from(self, module: Module, table: str, attribute: str = "") -> list[Definition]:
        """What any entry of a dictionary of names may run, or an attribute of it (`MODELS[name].Model(...)`)."""
        found = self.find(module, table)
        home = found[0] if found else module
        names = home.tables.get(found[1] if found else table, [])
        return [item for name in names for item in self.definitions(home, f"{name}.{attribute}".rstrip("."))]

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


def _registrations(node: Function | ast.ClassDef) -> Iterator[tuple[str, str]]:
    """(registry, key) of the decorators that register a definition; the key is empty where they name none."""
    for decorator in node.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        name = dotted(call.func if call is not None else decorator)
        if "regist" not in name.lower():
            continue
        given = [*call.args, *(word.value for word in call.keywords)] if call is not None else []
        keys = [item.value for item in given if isinstance(item, ast.Constant) and isinstance(item.value, str)]
        yield name.split(".")[-2] if "." in name else "", keys[0] if keys else ""


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


def _prefixes(name: str) -> Iterator[str]:
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        yield ".".join(parts[:end])
