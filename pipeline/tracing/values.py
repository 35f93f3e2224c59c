"""What an expression is for this task: options, configuration values, constants and paths made of them, as text.

A run is started with values: of the command, of its configuration, of the defaults. An expression that only combines
such values (`args.model`, `cfg["data"]["root"]`, `os.path.join(args.root, "train.csv")`, f-strings) is known before
anything runs. What code assigns to its own options while it runs is not known, and neither is a value that differs
between the commands.

Non-goals: numbers that are computed, loops, anything that needs running.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Callable, Collection, Iterable
from typing import Final

from pipeline.task import Hyperparameter
from pipeline.tracing.arguments import as_number, literal

__all__ = ["SEVERAL", "Names", "Values", "assigned_options", "found_holders", "holder_path"]

SEVERAL: Final = " | "
"""Between the values of a setting that the commands of a task set differently."""
Names = Callable[[str], str | None]
"""What a plain name or a `self` attribute is, as text; None: not known."""
# What programs call the object that holds their options. A wrong one costs nothing: a setting must have the name, too.
_HOLDERS: Final = frozenset(
    {
        "arg", "args", "cfg", "cfgs", "conf", "config", "configs", "configuration", "flags", "FLAGS", "hparams", "hps",
        "opt", "option", "options", "opts", "param", "params", "parsed", "parsed_args", "settings", "variant",
    }
)  # fmt: skip
_PATHS: Final = frozenset(
    {
        "str", "Path", "pathlib.Path", "os.path.expanduser", "os.path.abspath", "os.path.realpath", "os.fspath",
        "osp.abspath", "osp.realpath",
    }
)  # fmt: skip
_JOINS: Final = frozenset({"os.path.join", "osp.join", "path.join", "join"})
_HERE: Final = frozenset(
    {"os.getcwd", "Path.cwd", "Path().cwd", "pathlib.Path.cwd", "Path", "hydra.utils.get_original_cwd"}
)
"""Where the program was started."""
_CHANGES: Final[dict[str, Callable[[str], str]]] = {
    "lower": str.lower,
    "upper": str.upper,
    "resolve": str,
    "absolute": str,
    "expanduser": str,
}
"""Methods without arguments, and what they make of a text; a path stays one, absolute or not."""
_MAKES_HOLDER: Final = re.compile(
    r"(?:^|\.)(?:parse_args|parse_known_args|parse_args_into_dataclasses)$|^OmegaConf\.\w+$|"
    r"^yaml\.(?:safe_|full_)?load$|^tyro\.cli$|^pyrallis\.parse$"
)
_DEEP: Final = 12
_LONGEST: Final = 300


def holder_path(node: ast.expr, holders: Collection[str] = ()) -> str | None:
    """`model.type` for `self.args.model.type`, `config["model"]["type"]` and `cfg.model.get("type")`; else None.

    Args:
        node: the expression.
        holders: names that hold options in this program, beside those that such names usually are.
    """
    parts: list[str] = []
    while True:
        if isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            parts.append(str(node.slice.value))
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
            if not node.args or not isinstance(node.args[0], ast.Constant):
                return None
            parts.append(str(node.args[0].value))
            node = node.func.value
        else:
            break
    if not isinstance(node, ast.Name):
        return None
    parts.append(node.id)
    parts.reverse()
    last = next((number for number in range(len(parts) - 2, -1, -1) if _holds(parts[number], holders)), None)
    return ".".join(parts[last + 1 :]) if last is not None else None


def _holds(name: str, holders: Collection[str]) -> bool:
    """Does a name hold options: is it one of the usual ones, or one with their ending (`model_args`)?"""
    return name in _HOLDERS or name in holders or name.rpartition("_")[2] in {"args", "cfg", "config", "opts", "flags"}


def found_holders(trees: Iterable[ast.AST]) -> set[str]:
    """Names that are assigned what a parser of options or a reader of configurations returns."""
    found: set[str] = set()
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                if not _MAKES_HOLDER.search(ast.unparse(node.value.func)):
                    continue
                for target in node.targets:
                    first = target.elts[0] if isinstance(target, ast.Tuple) and target.elts else target
                    found.update({first.id} if isinstance(first, ast.Name) else ())
    return found


def assigned_options(trees: Iterable[ast.AST]) -> set[str]:
    """Names of options that code sets itself (`args.use_gpu = torch.cuda.is_available()`)."""
    found: set[str] = set()
    for tree in trees:
        for node in ast.walk(tree):
            targets = node.targets if isinstance(node, ast.Assign) else []
            if isinstance(node, ast.AnnAssign | ast.AugAssign):
                targets = [node.target]
            found.update(path for target in targets if (path := holder_path(target)) is not None)
    return found


class Values:
    """The settings of a run that have one value.

    Args:
        settings: all settings, from `settings_of`.
        unknown: names that the code sets itself.
        unset: options that nothing sets: they are None.
        holders: names that hold options, from `found_holders`.
    """

    def __init__(
        self,
        settings: Iterable[Hyperparameter],
        unknown: Collection[str] = (),
        unset: Collection[str] = (),
        holders: Collection[str] = (),
    ) -> None:
        self._holders = holders
        self.known: dict[str, str] = {
            **{name: "None" for name in sorted(unset) if name not in unknown},
            **{item.name: item.value for item in settings if SEVERAL not in item.value and item.name not in unknown},
        }

    def of(self, node: ast.expr) -> str | None:
        """The value of an expression that reads one option; None when it does not, or when it is not known."""
        path = holder_path(node, self._holders)
        if path is None:
            return None
        found = self.known.get(path)
        return found if found is not None else self._otherwise(node)

    def section(self, node: ast.expr) -> str | None:
        """The part of the configuration that an expression is (`model` of `cfg.model`); None when it is none."""
        path = holder_path(node, self._holders)
        return path if path is not None and any(name.startswith(f"{path}.") for name in self.known) else None

    def _otherwise(self, node: ast.expr) -> str | None:
        """`cli.get("modality", base.modality)`: what stands for an option that nothing sets."""
        given = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get"
        return self.of(node.args[1]) if given and len(node.args) == 2 else None  # type: ignore[attr-defined]

    def _below(self, node: ast.expr) -> str | None:
        """The same where the holder is a part of the configuration (`config.path` is `model.path`), if one has it."""
        path = holder_path(node, self._holders)
        found = [name for name in self.known if name.endswith(f".{path}")] if path else []
        return self.known[found[0]] if len(found) == 1 else None

    def text(self, node: ast.expr | None, names: Names = lambda _: None, depth: int = 0) -> str | None:
        """The text of an expression that only combines known values; None when a part is not known.

        Args:
            node: the expression.
            names: what names stand for where it is evaluated.
            depth: of the recursion.
        """
        if node is None or depth > _DEEP:
            return None
        found = self._plain(node, names)
        if found is None:
            found = self._combined(node, names, depth + 1)
        return found if found is not None and len(found) <= _LONGEST else None

    def _plain(self, node: ast.expr, names: Names) -> str | None:
        if isinstance(node, ast.Constant):
            return literal(node)
        if isinstance(node, ast.Name):
            return names(node.id)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            found = names(f"self.{node.attr}")
            if found is not None:
                return found
        return self.of(node) or self._below(node)

    def _combined(self, node: ast.expr, names: Names, depth: int) -> str | None:
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.FormattedValue) else part for part in node.values]
            return _joined("", [self.text(part, names, depth) for part in parts])
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Div):
            separator = "" if isinstance(node.op, ast.Add) else "/"
            sides = [self.text(node.left, names, depth), self.text(node.right, names, depth)]
            if separator == "" and all(side is not None and as_number(side) is not None for side in sides):
                return None  # a sum, not a text
            return _path(sides) if separator else _joined("", sides)
        if isinstance(node, ast.Call):
            return self._called(node, names, depth)
        if isinstance(node, ast.Subscript) and (part := self._part(node, names, depth)) is not None:
            return part
        return self._above(node, names, depth)

    def _part(self, node: ast.Subscript, names: Names, depth: int) -> str | None:
        """`args.task.split("-", 1)[0]`."""
        call, index = node.value, literal(node.slice) or ""
        if index == "0" and ast.unparse(call) == "sys.argv":
            return names("sys.argv")
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "split":
            return None
        given = [literal(item) or "" for item in call.args]
        whole = self.text(call.func.value, names, depth)
        counted = len(given) < 2 or given[1].isdigit()
        if whole is None or not index.lstrip("-").isdigit() or not counted or given[:1] == [""]:
            return None
        parts = whole.split(given[0] if given else None, int(given[1]) if len(given) > 1 else -1)
        return parts[int(index)] if -len(parts) <= int(index) < len(parts) else None

    def _above(self, node: ast.expr, names: Names, depth: int) -> str | None:
        """`path.parent` and `path.parents[1]`."""
        levels, path = 0, None
        if isinstance(node, ast.Attribute) and node.attr == "parent":
            levels, path = 1, node.value
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "parents":
            index = literal(node.slice) or ""
            levels, path = int(index) + 1 if index.isdigit() else 0, node.value.value
        found = self.text(path, names, depth) if levels else None
        for _ in range(levels):
            found = _parent(found)
        return found

    def _called(self, node: ast.Call, names: Names, depth: int) -> str | None:
        called = ast.unparse(node.func)
        if called in _HERE and not node.args:
            return "."
        if called in _JOINS or (called in _PATHS and node.args):
            return _path([self.text(item, names, depth) for item in node.args])
        if called in {"os.path.dirname", "osp.dirname", "dirname"} and node.args:
            return _parent(self.text(node.args[0], names, depth))
        return self._method(node.func, node.args, names, depth) if isinstance(node.func, ast.Attribute) else None

    def _method(self, called: ast.Attribute, arguments: list[ast.expr], names: Names, depth: int) -> str | None:
        """Methods of texts: `name.lower()`, `name.replace("_", "-")`."""
        given = [literal(item) for item in arguments]
        replaces = called.attr == "replace" and len(given) == 2 and None not in given and given[0] != ""
        if not replaces and (given or called.attr not in _CHANGES):
            return None
        inner = self.text(called.value, names, depth)
        if inner is None:
            return None
        return inner.replace(given[0] or "", given[1] or "") if replaces else _CHANGES[called.attr](inner)


def _parent(path: str | None) -> str | None:
    """The directory of a path; that of a file at the top of the repository is `.`."""
    return (posixpath.dirname(path) or ".") if path is not None else None


def _joined(separator: str, parts: list[str | None]) -> str | None:
    known = [part for part in parts if part is not None]
    return separator.join(known) if len(known) == len(parts) else None


def _path(parts: list[str | None]) -> str | None:
    known = [part for part in parts if part is not None]
    if not known or len(known) != len(parts) or set(known) & {"None", "False", "True"}:
        return None
    found = posixpath.join(*known)
    return posixpath.normpath(found) if known[0] == "." or ".." in known else found
