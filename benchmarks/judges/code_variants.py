"""Submissions with known labels, made from a right one by mechanical changes of its code.

A change that keeps what is computed (other names, another layout, loops for comprehensions, constants by name,
functions in another file) leaves every requirement met. A change that takes one requirement's lines out of what runs
(deleted, put into comments, replaced by a comment that claims them, moved into code that nothing calls) leaves that one
not met and the others met. The labels follow from the change; no person set them, and nothing is executed.
"""

from __future__ import annotations

import ast
import posixpath
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from pipeline.task import Requirement

__all__ = ["CodeVariant", "code_variants", "lines_of", "patch_of"]

Files = dict[str, str]
Place = tuple[str, int]


class CodeVariant(NamedTuple):
    """A changed submission."""

    kind: str
    files: Files
    gone: int | None
    """Position of the requirement that is not met any more; None: all are met."""


def lines_of(requirement: Requirement) -> set[Place]:
    """(file, line) of everything that implements a requirement."""
    return {(span.path, number) for span in requirement.spans for number in range(span.start, span.end + 1)}


def code_variants(files: Mapping[str, str], requirements: Sequence[Requirement]) -> Iterator[CodeVariant]:
    """The changed submissions; a change that changes nothing, or whose result does not parse, gives none.

    Args:
        files: path -> text of what the right submission adds.
        requirements: with the lines of those files that implement them.
    """
    for kind, change in _KEEPING.items():
        changed = change(dict(files))
        if changed != dict(files):
            yield CodeVariant(kind, changed, None)
    for position, requirement in enumerate(requirements):
        own = {place for place in lines_of(requirement) if place[0] in files}
        if own and any(files[path].split("\n")[line - 1].strip() for path, line in own):
            for kind, remove in _REMOVING.items():
                yield CodeVariant(kind, remove(dict(files), own, requirement.text), position)


def patch_of(files: Mapping[str, str]) -> str:
    """A patch that adds the files."""
    text = []
    for path, content in sorted(files.items()):
        lines = content.rstrip("\n").split("\n")
        text += [f"diff --git a/{path} b/{path}", "new file mode 100644", "--- /dev/null", f"+++ b/{path}"]
        text += [f"@@ -0,0 +1,{len(lines)} @@", *(f"+{line}" for line in lines)]
    return "\n".join(text) + "\n"


# --- what is computed stays ------------------------------------------------------------------------------------------


def _each(change: Callable[[ast.Module], ast.AST]) -> Callable[[Files], Files]:
    def changed(files: Files) -> Files:
        return {
            path: ast.unparse(ast.fix_missing_locations(change(ast.parse(text)))) + "\n"
            if path.endswith(".py")
            else text
            for path, text in files.items()
        }

    return changed


def _renamed(files: Files) -> Files:
    found = {}
    for path, text in files.items():
        elsewhere = {w for other, said in files.items() if other != path for w in re.findall(r"[A-Za-z_]\w*", said)}
        tree = ast.parse(text) if path.endswith(".py") else None
        found[path] = text if tree is None else ast.unparse(_Renamed(tree, elsewhere).visit(tree)) + "\n"
    return found


class _Renamed(ast.NodeTransformer):
    """Local variables, parameters that are passed by position, and functions of the file under other names.

    What another file names keeps its name.
    """

    def __init__(self, tree: ast.Module, elsewhere: set[str]) -> None:
        keywords = {word.arg for node in ast.walk(tree) if isinstance(node, ast.Call) for word in node.keywords}
        fields = {
            target.id
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef)
            for item in node.body
            if isinstance(item, ast.AnnAssign) and isinstance(target := item.target, ast.Name)
        }
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name != "main"}
        local = {
            node.id
            for function in ast.walk(tree)
            if isinstance(function, ast.FunctionDef)
            for node in ast.walk(function)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        parameters = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
        imported = {
            (alias.asname or alias.name).split(".")[0]
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        names = sorted((functions | local | parameters) - elsewhere - keywords - fields - imported - {"self", "cls"})
        self.names = {name: f"{'step' if name in functions else 'v'}_{index}" for index, name in enumerate(names)}

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self.names.get(node.id, node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg = self.names.get(node.arg, node.arg)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = self.names.get(node.name, node.name)
        return self.generic_visit(node)


class _Loops(ast.NodeTransformer):
    """`x = [f(y) for y in z]` as a loop that appends, `a += b` as `a = a + b`."""

    def visit_Assign(self, node: ast.Assign) -> ast.AST | list[ast.stmt]:
        made = node.value
        if not (
            isinstance(made, ast.ListComp)
            and len(made.generators) == 1
            and len(node.targets) == 1
            and isinstance(node.targets[0], ast.Name)
        ):
            return node
        one, name = made.generators[0], node.targets[0].id
        if any(isinstance(inner, ast.Name) and inner.id == name for inner in ast.walk(made)):
            return node
        body: list[ast.stmt] = [ast.Expr(ast.parse(f"{name}.append({ast.unparse(made.elt)})", mode="eval").body)]
        for condition in reversed(one.ifs):
            body = [ast.If(test=condition, body=body, orelse=[])]
        start = ast.parse(f"{name} = []").body[0]
        return [start, ast.For(target=one.target, iter=one.iter, body=body, orelse=[], lineno=node.lineno)]

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        read = ast.parse(ast.unparse(node.target), mode="eval").body
        return ast.Assign(
            targets=[node.target], value=ast.BinOp(left=read, op=node.op, right=node.value), lineno=node.lineno
        )


class _Hoisted(ast.NodeTransformer):
    """Numbers inside functions as named constants of the module."""

    def __init__(self) -> None:
        self.values: dict[str, float] = {}

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.body = [self.generic_visit(_Numbers(self.values).visit(item)) for item in node.body]  # type: ignore[misc]
        return node


class _Numbers(ast.NodeTransformer):
    def __init__(self, values: dict[str, float]) -> None:
        self.values = values

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, bool) or not isinstance(node.value, int | float) or abs(node.value) <= 2:
            return node
        name = next((name for name, value in self.values.items() if value == node.value), f"SETTING_{len(self.values)}")
        self.values[name] = node.value
        return ast.Name(id=name, ctx=ast.Load())

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return node


def _hoisted(tree: ast.Module) -> ast.Module:
    change = _Hoisted()
    tree = change.visit(tree)
    constants = [ast.parse(f"{name} = {value!r}").body[0] for name, value in change.values.items()]
    last = max((i for i, node in enumerate(tree.body) if isinstance(node, ast.Import | ast.ImportFrom)), default=-1)
    tree.body[last + 1 : last + 1] = constants
    return tree


def _elsewhere(files: Files) -> Files:
    """Functions and classes of each program in a module beside it, which the program imports."""
    found = dict(files)
    for path, text in files.items():
        tree = ast.parse(text) if path.endswith(".py") else None
        defined = [n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)] if tree else []
        guard = [n for n in tree.body if isinstance(n, ast.If) and "__name__" in ast.unparse(n.test)] if tree else []
        if tree is None or not defined or len(guard) != 1:
            continue
        stem = f"{posixpath.basename(path).removesuffix('.py')}_parts"
        whole = [node for node in tree.body if node not in guard]
        found[posixpath.join(posixpath.dirname(path), f"{stem}.py")] = (
            ast.unparse(ast.Module(body=whole, type_ignores=[])) + "\n"
        )
        found[path] = f"from {stem} import {', '.join(defined)}\n\n{ast.unparse(guard[0])}\n"
    return found


_KEEPING: Final[dict[str, Callable[[Files], Files]]] = {
    "as it is, other layout": _each(lambda tree: tree),
    "other names": _renamed,
    "loops for comprehensions": _each(lambda tree: _Loops().visit(tree)),
    "constants by name": _each(_hoisted),
    "other names and loops": lambda files: _each(lambda tree: _Loops().visit(tree))(_renamed(files)),
    "in another file": _elsewhere,
}

# --- one requirement is not met any more -----------------------------------------------------------------------------


def _replaced(files: Files, own: set[Place], line: Callable[[str, bool], list[str]]) -> Files:
    """Each of the lines replaced by what `line` makes of it and of whether it is the first of its file."""
    found = {}
    for path, text in files.items():
        kept: list[str] = []
        first = True
        for number, content in enumerate(text.split("\n"), 1):
            if (path, number) in own:
                kept += line(content, first)
                first = False
            else:
                kept.append(content)
        found[path] = "\n".join(kept)
    return found


def _indent(content: str) -> str:
    return content[: len(content) - len(content.lstrip())]


def _unused(files: Files, own: set[Place], text: str) -> Files:
    """The lines in a function that nothing calls, in a file that nothing imports."""
    taken = [
        textwrap.dedent("\n".join(files[path].split("\n")[line - 1] for path_, line in sorted(own) if path_ == path))
        for path in sorted({path for path, _ in own})
        if path.endswith(".py")
    ]
    left = _replaced(files, own, lambda *_: [])
    body = textwrap.indent("\n".join(taken), "    ") or "    pass"
    return {**left, "extra_notes.py": f"def kept_for_later():\n{body}\n"}


_REMOVING: Final[dict[str, Callable[[Files, set[Place], str], Files]]] = {
    "lines taken out": lambda files, own, _: _replaced(files, own, lambda *_: []),
    "lines in comments": lambda files, own, _: _replaced(
        files, own, lambda content, _: [f"{_indent(content)}# {content.strip()}"]
    ),
    "a comment claims it": lambda files, own, text: _replaced(
        files, own, lambda content, first: [f"{_indent(content)}# {' '.join(text.split())}"] if first else []
    ),
    "lines in an unused function": _unused,
}
