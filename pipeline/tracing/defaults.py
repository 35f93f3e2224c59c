"""What code is set to where neither a command nor a configuration says anything, each value with its place.

Defaults of options, however they are declared: one by one, from a dictionary (`for k, v in defaults.items():
parser.add_argument(f"--{k}", default=v)`), by `set_defaults`, by `if lr is None: lr = 0.1`. Beside them fields of
configuration classes, constants, and the row of a table that a setting chooses (`SPECS[args.cfg]`).

Non-goals: what a command or a configuration sets (see `pipeline.tracing.settings`), constants of libraries.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from pipeline.task import CodeEvidence, Hyperparameter
from pipeline.tracing.building import built_by
from pipeline.tracing.built import Built, Entry, entries
from pipeline.tracing.options import Option, literal
from pipeline.tracing.parsed import Function, Module, called_function, dotted, own_nodes, parameters_of
from pipeline.tracing.program import Program
from pipeline.tracing.signatures import field_default, is_dataclass
from pipeline.tracing.values import SEVERAL, holder_path

__all__ = ["class_fields", "constants", "dictionary_options", "fallbacks", "option_defaults", "preset", "rows"]

_CAPITALS: Final = re.compile(r"^[A-Z][A-Z0-9_]+$")
_PRIVATE: Final = re.compile(r"^_")
_SETTINGS: Final = re.compile(
    r"(?:^|_)(?:config|cfg|conf|params?|hparams|hyper\w*|settings|defaults|opts?|options)$", re.I
)
"""Names of dictionaries that hold settings."""
_STARTED: Final = frozenset({"main", "run", "train", "cli", "app", "entry", "experiment"})
_LONGEST: Final = 80
_EMPTY: Final = frozenset({"", "{}", "[]", "()"})
_MOST_PLACES: Final = 4
_MOST_ENTRIES: Final = 60
"""Entries of one dictionary: with more it is a table of data."""


def option_defaults(module: Module, options: Sequence[Option]) -> Iterator[Hyperparameter]:
    """Options with a default."""
    for option in options:
        if option.default is None and not option.switch:
            continue
        value = option.default if option.default is not None else str(option.negated)
        yield _setting(module, option.name, value, option.start, option.end)


def dictionary_options(program: Program, modules: Sequence[Module]) -> Iterator[Hyperparameter]:
    """Options that a loop makes of a dictionary, in a function that is given it or in place."""
    for module in modules:
        for inside, loop in _loops(module):
            called = loop.iter.func if isinstance(loop.iter, ast.Call) else None
            if not isinstance(called, ast.Attribute):
                continue
            source = called.value
            if inside is not None and isinstance(source, ast.Name) and source.id in parameters_of(inside):
                place = parameters_of(inside).index(source.id)
                for home, where, call in _calls_of(program, modules, module, inside):
                    given = next((word.value for word in call.keywords if word.arg == source.id), None)
                    given = call.args[place] if given is None and place < len(call.args) else given
                    yield from _of_mapping(built_by(program, home, given, where) if given is not None else None)
            else:
                yield from _of_mapping(built_by(program, module, source, inside))


def preset(program: Program, modules: Sequence[Module], declared: Mapping[str, str]) -> Iterator[Hyperparameter]:
    """What `parser.set_defaults(...)` sets, and `FLAGS.set_default(...)` of absl; the last call stands over the others.

    A call in a branch that is not decided may happen or not: its value stands beside the one before.

    Args:
        program: the repository.
        modules: what may run.
        declared: defaults of the options themselves.
    """
    found: dict[str, Hyperparameter] = {}
    for module in modules:
        calls = [*_calls(module, "set_defaults"), *_calls(module, "set_default")]
        open_branches = _in_branches(module) if calls else set()
        for inside, call in calls:
            for item in _given(program, module, inside, call):
                earlier = found.get(item.name)
                before = earlier.value if earlier is not None else declared.get(item.name)
                if id(call) not in open_branches or before is None:
                    found[item.name] = item
                    continue
                texts = dict.fromkeys([*before.split(SEVERAL), item.value])
                places = earlier.evidence if earlier is not None else ()
                found[item.name] = item.evolve(value=SEVERAL.join(texts), evidence=(*places, *item.evidence))
    yield from found.values()


def _given(program: Program, module: Module, inside: Function | None, call: ast.Call) -> Iterator[Hyperparameter]:
    """What a call sets: its keywords, those of `**defaults` included; absl has `FLAGS.set_default("lr", 0.1)`."""
    if called_function(call) == "set_default" and len(call.args) == 2:
        named = call.args[0]
        name = literal(named) or (named.attr if isinstance(named, ast.Attribute) else None)
        text = literal(call.args[1])
        if name is not None and text is not None:
            yield _setting(module, name, text, call.lineno)
        return
    for word in call.keywords:
        text = literal(word.value)
        if word.arg is None:
            yield from _of_mapping(built_by(program, module, word.value, inside))
        elif text is not None:
            yield _setting(module, word.arg, text, word.value.lineno)


def _in_branches(module: Module) -> set[int]:
    """Nodes that lie in a branch."""
    branches = [node for node in ast.walk(module.unit.tree or ast.Module([], [])) if isinstance(node, ast.If)]
    return {
        id(inner)
        for node in branches
        if "__name__" not in ast.unparse(node.test)
        for part in (*node.body, *node.orelse)
        for inner in ast.walk(part)
    }


def fallbacks(modules: Sequence[Module], unset: Collection[str]) -> Iterator[Hyperparameter]:
    """Options without a default for which code puts a value: `if lr is None: lr = 0.1`, `args.n = args.n or 5`.

    Where it replaces one by different values in different places, all are given.
    """
    found: dict[str, list[tuple[str, Module, int]]] = {}
    for module in modules:
        for name, value in _replaced(module) if unset else ():
            text = literal(value)
            if name in unset and text is not None:
                found.setdefault(name, []).append((text, module, value.lineno))
    for name, values in sorted(found.items()):
        joined = SEVERAL.join(dict.fromkeys(text for text, _, _ in values))
        _, module, line = values[0]
        yield _setting(module, name, joined, line)


def rows(program: Program, modules: Sequence[Module], known: Mapping[str, str]) -> Iterator[Hyperparameter]:
    """The row of a written table that a setting chooses: of `SPECS = {"small": {...}}`, `SPECS[args.size]`.

    Args:
        program: the repository.
        modules: what may run.
        known: settings with one value.
    """
    for module in modules:
        chosen = {
            id(node): key for node in ast.walk(module.unit.tree or ast.Module([], [])) if (key := _chosen(node, known))
        }
        for inside, node in _within(module) if chosen else ():
            key = chosen.get(id(node))
            if key is None or not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
                continue
            table = built_by(program, module, node.value, inside)
            row = table.items.get(key) if table is not None else None
            if isinstance(row, Built) and "." not in key:
                yield from _of_mapping(Built({node.value.id: Built({key: row})}))


def class_fields(module: Module, options: Collection[str]) -> Iterator[Hyperparameter]:
    """Fields of configuration classes that are no options themselves: `Config.width`."""
    for node in module.classes.values():
        for field in node.body if is_dataclass(node) else ():
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and field.target.id not in options
            ):
                value = literal(field_default(field.value)[0])
                if value is not None:
                    end = field.end_lineno or field.lineno
                    yield _setting(module, f"{node.name}.{field.target.id}", value, field.lineno, end)


def constants(program: Program, module: Module, *, entry: bool) -> Iterator[Hyperparameter]:
    """Constants in capitals; of an entry point without options, all names that only ever hold written values.

    Args:
        program: the repository.
        module: the file.
        entry: is it started, and does it declare no options? Then its constants are its configuration.
    """
    body = module.unit.tree.body if module.unit.tree is not None else []
    scopes: list[tuple[list[ast.stmt], Function | None]] = [(body, None)]
    if entry:
        scopes += [(node.body, node) for name, node in module.functions.items() if name in _STARTED]
    for statements, inside in scopes:
        bound = _bound(statements, module, inside)
        for name, places in bound.items():
            if _PRIVATE.match(name) or not (entry or _CAPITALS.match(name) or _SETTINGS.search(name)):
                continue
            texts = [literal(node) for node in places]
            if all(text is not None and len(text) <= _LONGEST and text.isprintable() for text in texts):
                if set(texts) & _EMPTY:
                    continue  # what a program starts to collect in
                if entry or _CAPITALS.match(name):
                    value = SEVERAL.join(dict.fromkeys(text for text in texts if text is not None))
                    evidence = tuple(_place(module, node.lineno) for node in places[:_MOST_PLACES])
                    yield Hyperparameter(name=name, value=value, source="default", evidence=evidence)
            else:
                yield from _several(program, module, name, places, inside)


def _several(
    program: Program, module: Module, name: str, places: Sequence[ast.expr], inside: Function | None
) -> Iterator[Hyperparameter]:
    """The entries of a dictionary that is bound once; of one that is bound again, those that do not change."""
    found: dict[str, list[Hyperparameter]] = {}
    for place in places:
        built = built_by(program, module, place, inside)
        for item in _of_mapping(Built({name: built}) if built is not None else None):
            found.setdefault(item.name, []).append(item)
    for items in found.values():
        yield items[0].evolve(value=SEVERAL.join(dict.fromkeys(item.value for item in items)))


# --- finding ---------------------------------------------------------------------------------------------------------


def _bound(statements: list[ast.stmt], module: Module, inside: Function | None) -> dict[str, list[ast.expr]]:
    """Names that a body binds by plain assignments alone, with what it binds them to."""
    found: dict[str, list[ast.expr]] = {}
    whole: ast.AST = inside if inside is not None else module.unit.tree or ast.Module([], [])
    walked = ast.walk(whole) if "global" in module.unit.code or "nonlocal" in module.unit.code else ()
    changed = {name for node in walked if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names}
    plain = {id(node) for node in _assignments(statements)}
    for node in own_nodes(ast.Module(list(statements), [])):
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            changed.add(node.target.id)
        elif isinstance(node, (ast.For, ast.comprehension)):
            changed.update(_stored(node.target))
        for target, value in _targets(node):
            if id(node) in plain and isinstance(target, ast.Name):
                found.setdefault(target.id, []).append(value)
            elif not isinstance(target, (ast.Attribute, ast.Subscript)):
                changed.update(_stored(target))
    return {name: values for name, values in found.items() if name not in changed}


def _stored(target: ast.expr) -> set[str]:
    return {item.id for item in ast.walk(target) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store)}


def _assignments(statements: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Assignments that run once: not those in loops, functions and undecided branches."""
    for node in statements:
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            yield node
        elif isinstance(node, (ast.With, ast.Try, ast.If)):
            if isinstance(node, ast.If) and "__name__" not in ast.unparse(node.test):
                continue
            yield from _assignments(node.body)


def _targets(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(node, ast.Assign):
        yield from ((target, node.value) for target in node.targets)
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        yield node.target, node.value


def _within(module: Module) -> Iterator[tuple[Function | None, ast.AST]]:
    """All nodes of a file with the function around them."""
    if module.unit.tree is None:
        return
    inner: set[int] = set()
    for function in [node for node in ast.walk(module.unit.tree) if isinstance(node, ast.FunctionDef)]:
        for node in ast.walk(function):
            if id(node) not in inner and node is not function:
                inner.add(id(node))
                yield function, node
    yield from ((None, node) for node in ast.walk(module.unit.tree) if id(node) not in inner)


def _loops(module: Module) -> Iterator[tuple[Function | None, ast.For]]:
    """Loops over the items of a mapping that declare an option for each."""
    if ".items()" not in module.unit.code or "add_argument" not in module.unit.code:
        return
    for inside, node in _within(module):
        if isinstance(node, ast.For) and isinstance(node.iter, ast.Call) and called_function(node.iter) == "items":
            for item in ast.walk(node):
                named = isinstance(item, ast.Call) and called_function(item) == "add_argument" and item.args
                if named and not isinstance(item.args[0], ast.Constant):  # type: ignore[attr-defined]
                    yield inside, node
                    break


def _calls(module: Module, name: str) -> Iterator[tuple[Function | None, ast.Call]]:
    if name not in module.unit.code:
        return
    found = [
        (inside, node)
        for inside, node in _within(module)
        if isinstance(node, ast.Call) and called_function(node) == name
    ]
    yield from sorted(found, key=lambda item: item[1].lineno)


def _calls_of(
    program: Program, modules: Sequence[Module], home: Module, function: Function
) -> Iterator[tuple[Module, Function | None, ast.Call]]:
    for module in modules:
        for inside, call in _calls(module, function.name):
            found = program.find(module, dotted(call.func)) if dotted(call.func) else None
            if found is not None and found == (home, function.name):
                yield module, inside, call


def _chosen(node: ast.AST, known: Mapping[str, str]) -> str | None:
    """The value of the setting by which a table is looked up."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
        return None
    if isinstance(node.slice, ast.Name):
        return known.get(node.slice.id)
    return known.get(holder_path(node.slice) or "") if isinstance(node.slice, ast.Attribute | ast.Subscript) else None


def _replaced(module: Module) -> Iterator[tuple[str, ast.expr]]:
    """(name of an option, what takes its place where nothing sets it)."""
    for node in ast.walk(module.unit.tree or ast.Module([], [])):
        if isinstance(node, ast.If) and len(node.body) == 1 and isinstance(node.body[0], ast.Assign):
            name = _tested(node.test)
            assigned = node.body[0]
            if name and any(_named(target) == name for target in assigned.targets):
                yield name, assigned.value
        elif isinstance(node, ast.Assign):
            value = node.value
            if isinstance(value, ast.IfExp) and _tested(value.test) and _named(value.orelse) == _tested(value.test):
                yield _tested(value.test), value.body
            elif isinstance(value, ast.BoolOp) and isinstance(value.op, ast.Or) and len(value.values) == 2:
                name = _named(value.values[0])
                if name:
                    yield name, value.values[1]


def _tested(node: ast.expr) -> str:
    """The name that a test finds to be None or empty."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return _named(node.operand)
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Is, ast.Eq)):
        other = node.comparators[0]
        return _named(node.left) if isinstance(other, ast.Constant) and other.value is None else ""
    return ""


def _named(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else holder_path(node) or ""


# --- settings --------------------------------------------------------------------------------------------------------


def _of_mapping(built: Built | None) -> Iterator[Hyperparameter]:
    if built is None:
        return
    for name, entry in list(entries(built))[:_MOST_ENTRIES]:
        if entry.text is not None and len(entry.text) <= _LONGEST and entry.text.isprintable():
            yield Hyperparameter(name=name, value=entry.text, source="default", evidence=(_at(entry),))


def _at(entry: Entry) -> CodeEvidence:
    return CodeEvidence(path=entry.path, start=entry.line, end=entry.line)


def _place(module: Module, line: int, end: int = 0) -> CodeEvidence:
    first = module.unit.line(line)
    return CodeEvidence(path=module.path, start=first, end=max(first, module.unit.line(end) if end else first))


def _setting(module: Module, name: str, value: str, line: int, end: int = 0) -> Hyperparameter:
    return Hyperparameter(name=name, value=value, source="default", evidence=(_place(module, line, end),))
