"""What code that builds a configuration builds, with the line that each value comes from. Nothing is run.

Dictionaries, `ml_collections.ConfigDict` and their like are followed statement by statement: entries, attributes,
`update`, aliases (`config.model = model = ConfigDict()`), functions that return one, `**` and `|`. A branch that the
parameters decide is taken; one that they do not leaves both values, joined by `SEVERAL`. What is computed is not known
and hides what stood there before.

Non-goals: loops (except over the items of a dictionary), classes, numbers that need more than plain arithmetic.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Final

from pipeline.tracing.built import Built, Entry, Value, calculated, truth
from pipeline.tracing.options import literal
from pipeline.tracing.parsed import Function, Module, called_function, dotted, parameters_of
from pipeline.tracing.program import Program
from pipeline.tracing.values import SEVERAL

__all__ = ["build_function", "build_module", "built_by"]

_MAKERS: Final = frozenset(
    {
        "dict", "ConfigDict", "EasyDict", "edict", "AttrDict", "AttributeDict", "Namespace", "SimpleNamespace", "Box",
        "Munch", "DotMap", "OrderedDict", "CfgNode", "CN", "Config", "LazyConfig", "FrozenDict", "create",
        "defaultdict", "FrozenConfigDict", "Dict",
    }
)  # fmt: skip
"""What makes a mapping of the keywords, or of the mapping, that it is given."""
_COPIES: Final = frozenset({"copy", "deepcopy", "copy_and_resolve_references", "clone", "to_dict", "vars", "asdict"})
_SELF: Final = frozenset({"lock", "unlock", "freeze", "defrost", "unlocked"})
"""Methods that give the mapping itself."""
_DEEP: Final = 8
_MOST: Final = 2_000
"""Values of one configuration; what has more is data."""


def build_module(program: Program, module: Module) -> Built:
    """The names that the module-level code of a file sets, mappings taken apart."""
    frame = _Frame(program, module)
    frame.run(module.unit.tree.body if module.unit.tree is not None else [])
    return Built({name: value for name, value in frame.names.items() if value is not None})


def build_function(
    program: Program, module: Module, node: Function, arguments: Mapping[str, str] | None = None
) -> Built | None:
    """The mapping that a function returns.

    Args:
        program: the repository.
        module: the file of the function.
        node: the function.
        arguments: values of its parameters, as text.

    Returns:
        None where it returns none.
    """
    given = _defaults(_Frame(program, module), node)
    given |= {name: Entry(text, module.path, node.lineno) for name, text in (arguments or {}).items()}
    found = _call(program, module, node, given, 0)
    return found if isinstance(found, Built) else None


def built_by(program: Program, module: Module, node: ast.expr, inside: Function | None = None) -> Built | None:
    """The mapping that an expression is, inside a function or at module level, after the statements before its line."""
    frame = _Frame(program, module)
    if inside is not None:
        body = [item for item in inside.body if item.lineno < node.lineno]
        frame.run(body)
    found = frame.value(node)
    return found if isinstance(found, Built) else None


def _call(program: Program, module: Module, node: Function, given: dict[str, Value], depth: int) -> Value:
    frame = _Frame(program, module, depth + 1)
    frame.names.update(given)
    frame.run(node.body)
    return frame.returned


def _defaults(frame: _Frame, node: Function) -> dict[str, Value]:
    """What the parameters of a function are where a call says nothing."""
    plain = [*node.args.posonlyargs, *node.args.args]
    pairs = [*zip(reversed(plain), reversed(node.args.defaults), strict=False)]
    pairs += [(item, value) for item, value in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if value]
    return {item.arg: frame.value(value) for item, value in pairs}


class _Frame:
    """One function or module while it is followed."""

    def __init__(self, program: Program, module: Module, depth: int = 0) -> None:
        self._program = program
        self._module = module
        self._depth = depth
        self._unsure = 0
        """Branches around the statement that may not be taken."""
        self._size = 0
        self.names: dict[str, Value] = {}
        self._functions: dict[str, str] = {}
        """Names that stand for functions of other files."""
        self.returned: Value = None
        self._ended = False

    def run(self, body: list[ast.stmt]) -> None:
        """Follow statements in order."""
        for node in body:
            if self._ended or self._size > _MOST:
                return
            self._statement(node)

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign):
            if self._unpacked(node) or self._referred(node):
                return
            value = self.value(node.value)
            for target in reversed(node.targets):  # `config.model = model = ConfigDict()`: one mapping, two names
                self._set(target, value, node)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self._set(node.target, self.value(node.value), node)
        elif isinstance(node, ast.AugAssign):
            self._augmented(node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            self._changed(node.value)
        elif isinstance(node, (ast.With, ast.Try)):
            self.run(node.body)
        elif isinstance(node, ast.If):
            self._branch(node)
        elif isinstance(node, (ast.For, ast.While)):
            self._unsure += 1
            self._forget(node)
            self._unsure -= 1
        elif isinstance(node, ast.Return):
            value = self.value(node.value) if node.value is not None else None
            if self.returned is None or not self._unsure:
                self.returned = value
            self._ended = not self._unsure

    def _unpacked(self, node: ast.Assign) -> bool:
        """`model, dataset = argument.split(",")`."""
        target = node.targets[0]
        if len(node.targets) > 1 or not isinstance(target, ast.Tuple):
            return False
        values: list[Value] = [None] * len(target.elts)
        call = node.value
        if isinstance(call, ast.Tuple) and len(call.elts) == len(target.elts):
            values = [self.value(item) for item in call.elts]
        elif isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "split":
            whole = self.value(call.func.value)
            by = literal(call.args[0]) if call.args else None
            if isinstance(whole, Entry) and whole.text is not None:
                parts = whole.text.split(by or None)
                values = (
                    [Entry(part, whole.path, whole.line) for part in parts] if len(parts) == len(values) else values
                )
        for item, value in zip(target.elts, values, strict=True):
            self._set(item, value, node)
        return True

    def _referred(self, node: ast.Assign) -> bool:
        """`make = getattr(models, f"get_{name}")`, `make = models.get_small`: a name for a function."""
        target, value = node.targets[0], node.value
        if not isinstance(target, ast.Name):
            return False
        name = dotted(value)
        if isinstance(value, ast.Call) and dotted(value.func) == "getattr" and len(value.args) >= 2:
            key = self.value(value.args[1])
            name = f"{dotted(value.args[0])}.{key.text}" if isinstance(key, Entry) and key.text else ""
        found = self._program.find(self._module, name) if "." in name else None
        if found is None or found[1] not in found[0].functions:
            return False
        self._functions[target.id] = name
        return True

    def _branch(self, node: ast.If) -> None:
        outcome = truth(node.test, self.value)
        if outcome is not None:
            self.run(node.body if outcome else node.orelse)
            return
        self._unsure += 1
        self.run(node.body)
        self.run(node.orelse)
        self._unsure -= 1

    def _forget(self, node: ast.stmt) -> None:
        """What a loop sets is not known."""
        for item in ast.walk(node):
            for target in item.targets if isinstance(item, ast.Assign) else ():
                if isinstance(target, ast.Name):
                    self.names[target.id] = None
                elif isinstance(target, (ast.Attribute, ast.Subscript)):
                    self._set(target, None, item)
            if isinstance(item, ast.AugAssign):
                self._set(item.target, None, item)

    def _set(self, target: ast.expr, value: Value, node: ast.AST) -> None:
        self._size += 1
        if isinstance(target, ast.Name):
            self.names[target.id] = self._joined(self.names.get(target.id), value, node)
            return
        holder, key = self._place(target)
        if holder is not None and key is not None:
            if "." in key:
                return
            holder.items[key] = self._joined(holder.items.get(key), value, node) or self._unknown(node)

    def _unknown(self, node: ast.AST) -> Entry:
        return Entry(None, self._module.path, self._module.unit.line(getattr(node, "lineno", 1)))

    def _joined(self, before: Value, value: Value, node: ast.AST) -> Value:
        """A value set in a branch that may not be taken stands beside the one before."""
        if not self._unsure or before is None:
            return value
        if (
            isinstance(before, Entry)
            and isinstance(value, Entry)
            and before.text is not None
            and value.text is not None
        ):
            texts = dict.fromkeys([*before.text.split(SEVERAL), *value.text.split(SEVERAL)])
            return Entry(SEVERAL.join(texts), before.path, before.line)
        return before if isinstance(before, Built) and isinstance(value, Built) else self._unknown(node)

    def _place(self, target: ast.expr) -> tuple[Built | None, str | None]:
        if isinstance(target, ast.Attribute):
            return self._mapping(target.value), target.attr
        if isinstance(target, ast.Subscript):
            index = self.value(target.slice)
            return self._mapping(target.value), index.text if isinstance(index, Entry) else None
        return None, None

    def _mapping(self, node: ast.expr) -> Built | None:
        found = self.value(node)
        return found if isinstance(found, Built) else None

    def _augmented(self, node: ast.AugAssign) -> None:
        before = self.value(node.target)
        added = self.value(node.value)
        if isinstance(before, Built) and isinstance(added, Built):
            before.items.update(added.items)
        else:
            self._set(node.target, self._arithmetic(node.op, before, added, node), node)

    def _changed(self, call: ast.Call) -> None:
        """`config.update(...)`, `config.setdefault("lr", 1)`."""
        function = call.func
        if not isinstance(function, ast.Attribute) or function.attr not in {"update", "setdefault", "merge_with"}:
            return
        holder = self.value(function.value)
        if not isinstance(holder, Built):
            return
        if function.attr == "setdefault" and len(call.args) == 2:
            key, value = self.value(call.args[0]), self.value(call.args[1])
            if isinstance(key, Entry) and key.text is not None and value is not None:
                holder.items.setdefault(key.text, value)
            return
        for name, value in self._given(call).items.items():
            before = holder.items.get(name)
            if isinstance(before, Built) and isinstance(value, Built) and function.attr == "merge_with":
                before.items.update(value.items)
            else:
                holder.items[name] = self._joined(before, value, call) or self._unknown(call)

    def _given(self, call: ast.Call) -> Built:
        """The mapping that the arguments of a call make together."""
        made = Built()
        for item in call.args:
            found = self.value(item)
            if isinstance(found, Built):
                made.items.update(found.copied().items)
        for word in call.keywords:
            found = self.value(word.value)
            if word.arg is not None:
                made.items[word.arg] = found or self._unknown(word.value)
            elif isinstance(found, Built):
                made.items.update(found.copied().items)
        return made

    # --- values ------------------------------------------------------------------------------------------------------

    def value(self, node: ast.expr) -> Value:
        """What an expression is; None where it is not known."""
        text = literal(node) if not isinstance(node, ast.Dict) else None
        if text is not None or (isinstance(node, ast.Constant) and node.value is None):
            return Entry(text if text is not None else "None", self._module.path, self._module.unit.line(node.lineno))
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            holder, key = self._place(node)
            return holder.items.get(key) if holder is not None and key is not None else None
        if isinstance(node, ast.BinOp):
            return self._sum(node)
        found: Value = None
        if isinstance(node, ast.Dict):
            found = self._dict(node)
        elif isinstance(node, ast.Name):
            found = self._name(node.id)
        elif isinstance(node, ast.Call):
            found = self._called(node)
        elif isinstance(node, ast.IfExp):
            found = self._either(node)
        elif isinstance(node, ast.JoinedStr):
            found = self._formatted(node)
        return found

    def _sum(self, node: ast.BinOp) -> Value:
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(left, Built) and isinstance(right, Built) and isinstance(node.op, ast.BitOr):
            return Built({**left.copied().items, **right.copied().items})
        return self._arithmetic(node.op, left, right, node)

    def _dict(self, node: ast.Dict) -> Built:
        made = Built()
        for key, item in zip(node.keys, node.values, strict=True):
            found = self.value(item)
            if key is None:
                made.items.update(found.copied().items if isinstance(found, Built) else {})
            elif (name := self.value(key)) is not None and isinstance(name, Entry) and name.text is not None:
                made.items[name.text] = found or self._unknown(item)
        return made

    def _name(self, name: str) -> Value:
        if name in self.names:
            return self.names[name]
        found = self._program.find(self._module, name)
        if found is None or self._depth > _DEEP:
            return None
        module, local = found
        assigned = module.assigned.get(local)
        return _Frame(self._program, module, self._depth + 1).value(assigned) if assigned is not None else None

    def _called(self, node: ast.Call) -> Value:
        name = called_function(node)
        holder = node.func.value if isinstance(node.func, ast.Attribute) else None
        if name in _COPIES:
            given = node.args[0] if node.args else holder
            found = self.value(given) if given is not None else None
            return found.copied() if isinstance(found, Built) else None
        if name in _SELF and holder is not None:
            return self.value(holder)
        if name == "get" and holder is not None and node.args:
            mapping, key = self.value(holder), self.value(node.args[0])
            known = isinstance(mapping, Built) and isinstance(key, Entry) and key.text is not None
            return mapping.items.get(key.text) if known else None  # type: ignore[union-attr, arg-type]
        own = self._function(node)
        return self._given(node) if own is None and name in _MAKERS else own

    def _function(self, node: ast.Call) -> Value:
        """What a function of the repository returns."""
        name = self._functions.get(dotted(node.func), dotted(node.func))
        found = self._program.find(self._module, name) if name and self._depth <= _DEEP else None
        if found is None or found[1] not in found[0].functions:
            return None
        module, local = found
        function = module.functions[local]
        names = parameters_of(function)
        given = _defaults(_Frame(self._program, module, self._depth + 1), function)
        given.update({name: self.value(item) for name, item in zip(names, node.args, strict=False)})
        given.update({word.arg: self.value(word.value) for word in node.keywords if word.arg in names and word.arg})
        return _call(self._program, module, function, given, self._depth)

    def _either(self, node: ast.IfExp) -> Value:
        outcome = truth(node.test, self.value)
        if outcome is not None:
            return self.value(node.body if outcome else node.orelse)
        left, right = self.value(node.body), self.value(node.orelse)
        if isinstance(left, Entry) and isinstance(right, Entry) and left.text is not None and right.text is not None:
            return Entry(SEVERAL.join(dict.fromkeys([left.text, right.text])), left.path, left.line)
        return None

    def _arithmetic(self, op: ast.operator, left: Value, right: Value, node: ast.AST) -> Entry | None:
        """Sums of known numbers and texts."""
        return calculated(op, left, right, self._module.path, self._module.unit.line(getattr(node, "lineno", 1)))

    def _formatted(self, node: ast.JoinedStr) -> Entry | None:
        parts: list[str] = []
        for item in node.values:
            found = self.value(item.value if isinstance(item, ast.FormattedValue) else item)
            if not isinstance(found, Entry) or found.text is None:
                return None
            parts.append(found.text)
        return Entry("".join(parts), self._module.path, self._module.unit.line(node.lineno))
