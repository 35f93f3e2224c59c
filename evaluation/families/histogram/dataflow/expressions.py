"""What the expressions of a Python program are computed from: one half of `programs`, which reads statements.

Non-goal: deciding what a source is (`FlowRules`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from evaluation.families.histogram.dataflow.graph import (
    DRAWN,
    FlowGraph,
    Key,
    Sink,
    is_file_name,
    name_key,
    printed_key,
)
from evaluation.families.histogram.dataflow.names import (
    FlowRules,
    ProgramNames,
    argv_key,
    bases_of,
    is_self,
    outer_key,
    parameter_key,
    returned_key,
)

__all__ = ["ExpressionReader"]

_READERS: Final = re.compile(
    r"^(?:open|load|loads|loadtxt|genfromtxt|fromfile|memmap|read|read_\w+|iterate|concatenate|lazy|File|T?FileOpen|Open"
    r"|TFile|TChain|RDataFrame|Reader\w*|ReadLHE|read_lhe\w*|from_\w+|copy|copy2|copyfile|move|rename|replace|arrays)$"
)
_WRITERS: Final = frozenset({
    "dump", "dump_all", "safe_dump", "safe_dump_all", "write", "writelines", "writerow", "writerows", "save", "savez",
    "savez_compressed", "savetxt", "to_csv", "to_json", "to_parquet", "to_pickle", "to_hdf", "tofile", "write_text",
    "write_bytes", "create_dataset", "copy", "copy2", "copyfile", "move", "rename", "replace", "print", "to_numpy_file",
})  # fmt: skip
_CHANGERS: Final = frozenset({
    "append", "extend", "add", "update", "insert", "fill", "Fill", "FillN", "put", "appendleft", "setdefault",
    "push_back", "AddBinContent", "SetBinContent", "sort", "write", "writerow",
})  # fmt: skip
"""Methods that put their arguments into what they belong to."""
_INTO_FIRST: Final = frozenset({"at", "copyto", "put", "putmask", "place", "heappush", "insort"})
"""Functions that put their arguments into the first one."""
_DRAWS: Final[dict[str, int]] = {
    "choice": 1, "choices": 9, "multinomial": 2, "poisson": 1, "normal": 2, "gauss": 9, "exponential": 1,
    "expovariate": 9, "gamma": 2, "beta": 2, "lognormal": 2, "uniform": 2, "triangular": 3, "weibull": 1, "pareto": 1,
    "rvs": 9, "chisquare": 1, "rayleigh": 1, "binomial": 2, "standard_normal": 0, "random_sample": 0, "random": 0,
    "rand": 0, "randn": 0, "integers": 2, "randint": 2, "normalvariate": 9, "standard_exponential": 0,
}  # fmt: skip
"""Distribution -> position of the argument that says how many are drawn (NumPy's; 9: it has none)."""
_EXPRESSIONS: Final[dict[type[ast.AST], str]] = {
    ast.Name: "_name", ast.Constant: "_constant", ast.JoinedStr: "_text", ast.Attribute: "_attribute",
    ast.NamedExpr: "_named", ast.IfExp: "_choice", ast.BinOp: "_binary", ast.Call: "_call", ast.Yield: "_yield",
    ast.YieldFrom: "_yield", ast.ListComp: "_comprehension", ast.SetComp: "_comprehension",
    ast.GeneratorExp: "_comprehension", ast.DictComp: "_comprehension",
}  # fmt: skip
"""How each kind is read; of all others everything inside counts."""
_HOW_MANY: Final = frozenset({"size", "k", "n", "seed", "random_state"})


class ExpressionReader:
    """Reads the expressions of one program into the graph.

    Args:
        graph: gets nodes and edges.
        rules: what brings values in.
        every: the programs that may import each other.
        path: of this one.
    """

    def __init__(self, graph: FlowGraph, rules: FlowRules, every: Mapping[str, ProgramNames], path: str) -> None:
        self.graph, self.rules, self.every, self.path = graph, rules, every, path
        self.names = every[path]
        self.modules = {name.rsplit("/", 1)[-1].removesuffix(".py"): name for name in every}
        self.scope = ""
        self.locals: set[str] = set()
        self.waits: frozenset[Key] = frozenset()
        """What decides whether the statement at hand is carried out."""
        self.current: dict[str, Key] = {}
        """Names of this scope -> the value that they have here; each assignment makes a new one."""
        self.count = 0

    def bind(self, target: ast.expr, given: set[Key], views: Iterable[str] = ()) -> None:
        """A name, a part of a value, or several of them get a value.

        Args:
            target: what is assigned to.
            given: what the value is made of.
            views: names that the value is a part of: who changes the target changes them, too.
        """
        if isinstance(target, ast.Tuple | ast.List):
            for part in target.elts:
                self.bind(part, given, views)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, given, views)
        elif isinstance(target, ast.Name):
            held = [self.key(name) for name in views if not self._is_import(name)]
            key = self.renew(target.id)
            self.made(key, given)
            for whole in held:
                self.graph.link(("changed", *whole), [("changed", *key)])
                self.graph.link(whole, [("changed", *key)])
        elif isinstance(target, ast.Subscript):
            self.change(target.value, given | self.keys(target.slice))
        elif isinstance(target, ast.Attribute):
            if is_self(target.value):
                self.made(("attribute", self.path, target.attr), given)
            else:
                self.change(target.value, given)

    def change(self, node: ast.expr, given: set[Key]) -> None:
        """Something is put into what an expression names."""
        if isinstance(node, ast.Attribute) and is_self(node.value):
            self.made(("attribute", self.path, node.attr), given)
            return
        for name in bases_of(node):
            if self._is_import(name):
                continue
            key = self.key(name)
            self.made(key, given)
            self.made(("changed", *key), given)

    def made(self, key: Key, given: Iterable[Key]) -> None:
        """A node is computed from others, here and now."""
        self.graph.link(key, given)
        self.graph.decide(key, self.waits)

    # --- names

    def key(self, name: str) -> Key:
        """The node of a name as it is seen from here: its latest value, or any that another scope gave it."""
        return self.current.get(name) or outer_key(self.path, name)

    def renew(self, name: str) -> Key:
        """A name gets a new value: what it had before is not part of it."""
        if self.scope and name not in self.locals:
            return outer_key(self.path, name)
        self.count += 1
        key = self.current[name] = ("value", self.path, self.scope, name, str(self.count))
        if not self.scope:  # functions see all values of a module's name, and what they put into it is in all of them
            self.graph.link(outer_key(self.path, name), [key])
            self.graph.link(key, [("changed", *outer_key(self.path, name))])
        return key

    def _is_import(self, name: str) -> bool:
        return name in self.names.imported and name not in self.locals and name not in self.current

    def defined(self, node: ast.expr) -> tuple[str, str] | None:
        """(program, function) that a called expression names, when it is one of the agent's own."""
        if isinstance(node, ast.Name):
            if node.id in self.names.functions or node.id in self.names.classes:
                return self.path, node.id
            module, _, name = self.names.imported.get(node.id, "").rpartition(".")
            path = self.modules.get(module.rsplit(".", 1)[-1]) if name else None
            return (path, name) if path and self._has(path, name) else None
        if isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and node.value.id in self.names.imported:
                path = self.modules.get(self.names.imported[node.value.id].rsplit(".", 1)[-1])
                return (path, node.attr) if path and self._has(path, node.attr) else None
            for path in (self.path, *self._own_modules()):
                if any(node.attr == part.name for cls in self.every[path].classes.values() for part in cls.body
                       if isinstance(part, ast.FunctionDef)):  # fmt: skip
                    return path, node.attr
        return None

    def _has(self, path: str, name: str) -> bool:
        return name in self.every[path].functions or name in self.every[path].classes

    def _own_modules(self) -> Iterator[str]:
        for full in self.names.imported.values():
            for part in full.split("."):
                if part in self.modules:
                    yield self.modules[part]

    def _from_import(self, node: ast.expr) -> bool:
        """Does a called expression begin with something imported?"""
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and self._is_import(node.id)

    def full_name(self, node: ast.expr) -> str:
        """`numpy.random.normal` of `np.random.normal`; the name itself where nothing was imported under it."""
        if isinstance(node, ast.Name):
            return self.names.imported.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            owner = self.full_name(node.value)
            return f"{owner}.{node.attr}" if owner else f".{node.attr}"
        return ""

    # --- expressions

    def keys(self, node: ast.AST) -> set[Key]:
        """What an expression is computed from; what it changes on the way is put into the graph."""
        method = _EXPRESSIONS.get(type(node))
        found: set[Key] = getattr(self, method)(node) if method else self.each(ast.iter_child_nodes(node))
        return found

    def each(self, nodes: Iterable[ast.AST]) -> set[Key]:
        """What several expressions are computed from."""
        found: set[Key] = set()
        for node in nodes:
            found |= self.keys(node)
        return found

    def _name(self, node: ast.Name) -> set[Key]:
        return self._of_import(self.names.imported[node.id]) if self._is_import(node.id) else {self.key(node.id)}

    def _of_import(self, full: str) -> set[Key]:
        """A value of a module of the agent's own; of others nothing is known."""
        module, _, name = full.rpartition(".")
        path = self.modules.get(module.rsplit(".", 1)[-1])
        return {outer_key(path, name)} if path else set()

    def _constant(self, node: ast.Constant) -> set[Key]:
        named = isinstance(node.value, str) and is_file_name(node.value)
        return {name_key(str(node.value))} if named else set()

    def _text(self, node: ast.JoinedStr) -> set[Key]:
        pattern = "".join(str(part.value) if isinstance(part, ast.Constant) else "*" for part in node.values)
        found = self.each(part for part in node.values if not isinstance(part, ast.Constant))
        return found | {name_key(pattern)} if is_file_name(pattern) else found

    def _attribute(self, node: ast.Attribute) -> set[Key]:
        if self.full_name(node) in {"sys.argv", "sys.stdin"}:
            return {argv_key(self.path)}
        base = self.keys(node.value)
        if node.attr in self.rules.silent:
            return set()
        if isinstance(node.value, ast.Name) and self._is_import(node.value.id):
            return self._of_import(self.full_name(node))
        owners = [path for path in (self.path, *self._own_modules()) if node.attr in self.every[path].attributes]
        return base | {("attribute", path, node.attr) for path in owners}

    def _named(self, node: ast.NamedExpr) -> set[Key]:
        given = self.keys(node.value)
        self.bind(node.target, given)
        return given

    def _choice(self, node: ast.IfExp) -> set[Key]:
        return self.fresh(node, self.keys(node.body) | self.keys(node.orelse), self.keys(node.test))

    def _binary(self, node: ast.BinOp) -> set[Key]:
        if isinstance(node.op, ast.Mult) and (_zero(node.left) or _zero(node.right)):
            return set()
        return self.keys(node.left) | self.keys(node.right)

    def _yield(self, node: ast.Yield | ast.YieldFrom) -> set[Key]:
        given = self.keys(node.value) if node.value is not None else set()
        self.made(returned_key(self.path, self.scope), given)
        return given

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> set[Key]:
        decided: set[Key] = set()
        before = dict(self.current)
        for part in node.generators:
            given = self.keys(part.iter)
            self.bind(part.target, given)
            decided |= given | self.each(part.ifs)
        made = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        given = self.each(made)
        self.current = before
        return self.fresh(node, given, decided)

    def fresh(self, node: ast.expr, data: set[Key], decided: set[Key]) -> set[Key]:
        """A node of its own for a value without a name that was decided by others."""
        key = ("inner", self.path, str(node.lineno), str(node.col_offset), type(node).__name__)
        self.graph.link(key, data)
        self.graph.decide(key, decided)
        return {key}

    # --- calls

    def _call(self, node: ast.Call) -> set[Key]:
        full = self.full_name(node.func)
        name = full.rsplit(".", 1)[-1]
        arguments = [*node.args, *(word.value for word in node.keywords)]
        drawn = self._drawn(node, full, name)
        if drawn is not None:
            return drawn
        own = self.defined(node.func)
        if own is not None:
            return self._called(own, node)
        given = self.each(arguments)
        owner = self.keys(node.func.value) if isinstance(node.func, ast.Attribute) else self.keys(node.func)
        if isinstance(node.func, ast.Attribute) and node.func.attr in self.rules.silent:
            return set()
        if name in _CHANGERS and isinstance(node.func, ast.Attribute):
            self.change(node.func.value, given)
        if name in _INTO_FIRST and node.args:
            self.change(node.args[0], given)
        found = given | owner | self._handed_over(arguments, given)
        if name in {"parse_args", "parse_known_args"}:
            found |= {argv_key(self.path)}
        found |= self.rules.source(self.path, node, full if self._from_import(node.func) else f".{full}")
        if _READERS.match(name) and not _opened_to_write(node):
            made: Key = ("read", self.path, str(node.lineno), str(node.col_offset))
            self.graph.reads.append((made, frozenset(found)))
            self.graph.link(made, found)
            found = {made}
        if name in _WRITERS:
            self._write(node, full, found)
        return found

    def _drawn(self, node: ast.Call, full: str, name: str) -> set[Key] | None:
        """What a draw is computed from: its parameters, not how many were drawn, nor the generator's state."""
        if name not in _DRAWS or not isinstance(node.func, ast.Attribute):
            return None
        if not (
            name == "rvs" or re.search(r"(?:^|[._])(?:random|rng|rand\w*|gen|generator|rs|rnd|stats)\b", full, re.I)
        ):
            return None
        parameters = [value for at, value in enumerate(node.args) if at != _DRAWS[name]]
        parameters += [word.value for word in node.keywords if word.arg not in _HOW_MANY]
        found = self.each(parameters) | {DRAWN}
        return found | self.keys(node.func.value) if name == "rvs" else found

    def _called(self, own: tuple[str, str], node: ast.Call) -> set[Key]:
        """A function of the agent's own: arguments become its parameters, and it may change them."""
        path, name = own
        names = self.every[path]
        if name in names.classes:
            method = next((p for p in names.classes[name].body if isinstance(p, ast.FunctionDef)
                           and p.name == "__init__"), None)  # fmt: skip
            if method is None:
                return self.each([*node.args, *(word.value for word in node.keywords)])
            function: ast.FunctionDef | ast.AsyncFunctionDef = method
        else:
            function = names.functions[name]
        every = [*function.args.posonlyargs, *function.args.args]
        bound = every[1:] if every and every[0].arg in {"self", "cls"} else every
        pairs = [*zip((item.arg for item in bound), node.args, strict=False)]
        pairs += [(word.arg, word.value) for word in node.keywords if word.arg]
        for parameter, value in pairs:
            key = parameter_key(path, function.name, parameter)
            self.made(key, self.keys(value))
            for base in bases_of(value):
                if not self._is_import(base):
                    self.graph.link(self.key(base), [("changed", *key)])
        rest = node.args[len(bound) :]
        extra = self.each(rest)
        if function.args.vararg is not None:
            self.made(parameter_key(path, function.name, function.args.vararg.arg), extra)
        inner = self.keys(node.func.value) if isinstance(node.func, ast.Attribute) else set()
        return {returned_key(path, function.name)} | inner

    def _handed_over(self, arguments: list[ast.expr], given: set[Key]) -> set[Key]:
        """Functions of the agent's own that are handed to another one (`map`, a pool), which calls them."""
        found: set[Key] = set()
        for argument in arguments:
            own = self.defined(argument) if isinstance(argument, ast.Name | ast.Attribute) else None
            if own is not None and own[1] in self.every[own[0]].functions:
                function = self.every[own[0]].functions[own[1]]
                for parameter in (*function.args.posonlyargs, *function.args.args):
                    self.made(parameter_key(own[0], own[1], parameter.arg), given)
                found.add(returned_key(*own))
        return found

    def _write(self, node: ast.Call, full: str, found: set[Key]) -> None:
        printed = full == "print" or full.startswith(("sys.stdout", "sys.stderr"))
        if printed and not any(word.arg == "file" for word in node.keywords):
            self.graph.link(printed_key(self.path), found)
            self.graph.prints[self.path].append(Sink(node.lineno, frozenset(found)))
            return
        made: Key = ("written", self.path, str(node.lineno), str(node.col_offset))
        self.made(made, found)
        self.graph.writes.append((made, frozenset(found), self.path))


def _zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0 and not isinstance(node.value, bool)


def _opened_to_write(node: ast.Call) -> bool:
    words = [*node.args[:2], *(word.value for word in node.keywords if word.arg == "mode")]
    texts = [word.value for word in words if isinstance(word, ast.Constant) and isinstance(word.value, str)]
    return any(re.fullmatch(r"[wax]b?t?\+?", text) for text in texts)
