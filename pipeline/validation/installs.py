"""Packages that a program installs for itself: `!pip install x` in a notebook, `subprocess` or a helper around pip.

Such lines are declarations in disguise. A run has no network, so they only succeed when the environment holds just what
they ask for; then pip says that the requirement is satisfied and the program goes on.

Non-goals: commands that are put together at run time, other package managers.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Collection, Iterator

from packaging.requirements import InvalidRequirement, Requirement

from pipeline.tracing.source import notebook_cells, parse_python

__all__ = ["installs_of", "operands"]

_SHELL = re.compile(r"(?:^|[;&|\s!%/])pip3?\s+install\s+(?P<rest>.+)$")
_RUNS = frozenset(
    {"system", "popen", "Popen", "run", "call", "check_call", "check_output", "getoutput", "run_line_magic"}
)
_TAKES_VALUE = frozenset(
    {"-r", "-c", "-i", "-f", "-t", "--index-url", "--extra-index-url", "--find-links", "--target", "--requirement"}
)


def installs_of(path: str, raw: str) -> tuple[str, ...]:
    """The requirements that a script or notebook installs while it runs, in order of first mention.

    Args:
        path: its path; `.py` and `.ipynb` are read.
        raw: its text.
    """
    if not path.endswith(".ipynb"):
        return tuple(dict.fromkeys(_of_code(raw)))
    try:
        cells = [cell for cell in notebook_cells(raw) if cell.kind == "code"]
    except ValueError:
        return ()
    found: dict[str, None] = {}
    # cell by cell, since one that is not Python says nothing about the others; a helper is defined in one of them
    helpers = [line for cell in cells for line in cell.lines if re.match(r"def \w+\(.*\bpip\b.*\binstall\b", line)]
    for cell in cells:
        for line in cell.lines:
            if line.lstrip().startswith(("!", "%")):
                found.update(dict.fromkeys(_of_command(line)))
        code = "\n".join(line for line in cell.lines if not line.lstrip().startswith(("!", "%")))
        found.update(dict.fromkeys(_of_code("\n".join([*helpers, code]))))
    return tuple(found)


def _of_command(command: str) -> Iterator[str]:
    match = _SHELL.search(command)
    if not match:
        return
    try:
        arguments = shlex.split(match["rest"], comments=True)
    except ValueError:
        return
    yield from _arguments(arguments)


def _arguments(arguments: list[str]) -> Iterator[str]:
    """The requirements among the arguments of `pip install`."""
    for argument in operands(arguments, _TAKES_VALUE):
        yield from _requirement(argument)


def operands(arguments: list[str], taking_value: Collection[str]) -> Iterator[str]:
    """The arguments of one command that are no options, nor values of these options."""
    skip = False
    for argument in arguments:
        if argument in {"&&", "||", ";", "|", ">", "2>&1"}:
            return
        if skip or argument.startswith("-"):
            skip = not skip and argument in taking_value
            continue
        yield argument


def _of_code(code: str) -> Iterator[str]:
    tree, _ = parse_python(code)
    if tree is None:
        return
    wrappers = {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _says_install(_texts(node))
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        texts = _texts(node)
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in _RUNS and len(texts) == 1 and (match := _SHELL.search(texts[0])):  # os.system("pip install x")
            yield from _of_command(match[0])
        elif _says_install(texts):
            yield from _arguments(texts[texts.index("install") + 1 :])
        elif isinstance(node.func, ast.Name) and node.func.id in wrappers:
            for text in texts:
                yield from _requirement(text)


def _texts(node: ast.AST) -> list[str]:
    """Text constants below a node, in source order."""
    found = [
        item
        for item in ast.walk(node)
        if isinstance(item, ast.Constant) and isinstance(item.value, str) and "\n" not in item.value
    ]
    return [str(item.value) for item in sorted(found, key=lambda item: (item.lineno, item.col_offset))]


def _says_install(texts: list[str]) -> bool:
    return "install" in texts and any(text in {"pip", "pip3"} for text in texts[: texts.index("install")])


def _requirement(text: str) -> Iterator[str]:
    if text.startswith(("-", ".", "/")) or text in {"pip", "setuptools", "wheel", "install"}:
        return
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return
    if not requirement.url:
        yield text
