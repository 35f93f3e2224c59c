"""Where a submission uses a library that its task bans: imports, dynamic ones too, installations, copies.

Python is read as a tree: `import`, `__import__`, `importlib.import_module`, `runpy`, `exec` and `eval` of texts, and
the commands of `subprocess` and `os.system`; shell scripts, notebooks, requirement files and the trajectory's commands
are read as what they are. A module's name that is put together only when the program runs is a suspicion. Non-goals:
native code, and what a library that is allowed does by itself.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from evaluation.families.table.banned_list import BannedLibrary
from evaluation.families.table.constants import assigned_once, text_of
from evaluation.integrity.material import Material
from evaluation.integrity.shell import read_commands
from evaluation.verdicts import Finding, ViolationKind
from pipeline.task import Verdict
from pipeline.text import shorten
from pipeline.tracing.source import notebook_cells, read_unit

__all__ = ["Use", "banned_findings", "uses_in_file", "uses_in_shell"]

_IMPORTERS: Final = frozenset({"__import__", "import_module", "find_spec", "find_module", "load_module", "run_module",
                               "get_loader", "find_loader", "resolve_name", "importorskip", "lazy_import"})  # fmt: skip
_EXECUTES: Final = frozenset({"exec", "eval", "compile", "run_cell", "runcode", "runsource"})
_SHELLS: Final = frozenset({"system", "popen", "Popen", "run", "call", "check_call", "check_output", "getoutput",
                            "getstatusoutput", "spawn", "execvp", "execv", "run_line_magic"})  # fmt: skip
_INSTALLERS: Final = frozenset(
    {"pip", "pip3", "conda", "mamba", "uv", "poetry", "easy_install", "pipenv", "pipx", "pdm"}
)
_INSTALL_WORDS: Final = frozenset({"install", "add", "download"})
_DEPTH: Final = 4
_REQUIREMENTS: Final = re.compile(
    r"(?:requirements|constraints)[\w.-]*\.(?:txt|in)$|environment\.ya?ml$|setup\.(?:py|cfg)$|pyproject\.toml$|pipfile$"
)
_JULIA: Final = re.compile(r"^\s*(?:using|import)\s+([\w., :]+)", re.MULTILINE)


class Use(NamedTuple):
    """One place that uses a library, or a module that is not known."""

    module: str
    """Top-level name in lower case; empty: not known before it runs."""
    line: int
    how: str


def banned_findings(material: Material, banned: Sequence[BannedLibrary]) -> list[Finding]:
    """Violations and suspicions of a whole submission, by file and line, then by event.

    Args:
        material: patch, files and trajectory.
        banned: what the task bans; nothing is found where it bans nothing.
    """
    if not banned:
        return []
    known = {module: library for library in banned for module in library.modules}
    found: dict[tuple[str, str, str], Finding] = {}

    def add(finding: Finding) -> None:
        found.setdefault((finding.where.rsplit(":", 1)[0], finding.reason, finding.verdict.value), finding)

    for path, text in sorted(material.final_texts.items()):
        for use in uses_in_file(path, text):
            for finding in _findings(use, known, f"{path}:{use.line}", _line(text, use.line)):
                add(finding)
        for finding in _copies(path, known):
            add(finding)
    for written in material.written:  # a program that was run and removed again
        if written.path not in material.final_texts:
            for use in uses_in_file(written.path, written.text):
                for finding in _findings(
                    use, known, f"event {written.seq}: {written.path}", _line(written.text, use.line)
                ):
                    add(finding.evolve(events=(written.seq,)))
    for event, _ in material.commands:
        for use in uses_in_shell(event.command):
            for finding in _findings(use, known, f"event {event.seq}", event.command):
                add(finding.evolve(events=(event.seq,)))
    return list(found.values())


def _findings(use: Use, known: Mapping[str, BannedLibrary], where: str, quote: str) -> Iterator[Finding]:
    library = known.get(use.module)
    if library is not None:
        verdict = Verdict.UNKNOWN if library.conditional else Verdict.FAIL
        condition = ", which is banned for some uses" if library.conditional else ", which the task bans"
        reason = f"{use.how} {library.name}{condition}"
    elif use.module == "":
        verdict, reason = Verdict.UNKNOWN, f"{use.how} a module whose name is not known before it runs"
    else:
        return
    yield Finding(
        kind=ViolationKind.BANNED_LIBRARY, verdict=verdict, where=where, quote=shorten(quote, 200), reason=reason
    )


def _copies(path: str, known: Mapping[str, BannedLibrary]) -> Iterator[Finding]:
    """The library itself among the files that were handed in."""
    parts = PurePosixPath(path).parts
    folder = next((part for part in parts[:-1] if part.lower() in known), None)
    if folder is not None and path.endswith((".py", ".so", ".pyd", ".c", ".cpp")):
        library = known[folder.lower()]
        yield Finding(
            kind=ViolationKind.BANNED_LIBRARY,
            verdict=Verdict.UNKNOWN if library.conditional else Verdict.FAIL,
            where=str(PurePosixPath(*parts[: parts.index(folder) + 1])),
            quote=path,
            reason=f"brings a copy of {library.name} along, which the task bans",
        )


def _line(text: str, number: int) -> str:
    lines = text.splitlines()
    return lines[number - 1].strip() if 0 < number <= len(lines) else ""


# --- files -----------------------------------------------------------------------------------------------------------


def uses_in_file(path: str, text: str) -> list[Use]:
    """What a file imports, runs or installs; nothing for files that are no programs."""
    lowered = path.lower()
    if lowered.endswith((".py", ".pyw", ".ipynb")):
        return list(_of_python(path, text))
    if lowered.endswith((".sh", ".bash")):
        return uses_in_shell(text)
    if _REQUIREMENTS.search(lowered):
        return [
            Use(_top(match[0]), number, "declares")
            for number, line in enumerate(text.splitlines(), 1)
            if (match := re.match(r"[A-Za-z][\w.-]*", line.strip().lstrip("-\"' ")))
        ]
    if lowered.endswith(".jl"):
        return [
            Use(_top(name.strip().removesuffix("s")), text.count("\n", 0, match.start()) + 1, "imports")
            for match in _JULIA.finditer(text)
            for name in re.split(r"[,:]", match[1])
            if name.strip()
        ] + [
            Use(_top(name.strip()), text.count("\n", 0, match.start()) + 1, "imports")
            for match in _JULIA.finditer(text)
            for name in re.split(r"[,:]", match[1])
            if name.strip()
        ]
    return []


def _of_python(path: str, text: str, depth: int = 0) -> Iterator[Use]:
    if path.lower().endswith(".ipynb"):
        yield from _of_magics(text)
    unit = read_unit(path, text)
    if unit.tree is None:
        yield from _of_broken(text)
        return
    names = assigned_once(unit.tree)
    aliases = _aliases(unit.tree)
    for node in ast.walk(unit.tree):
        if isinstance(node, ast.Import):
            yield from (Use(_top(item.name), unit.line(node.lineno), "imports") for item in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield Use(_top(node.module), unit.line(node.lineno), "imports")
        elif isinstance(node, ast.Call):
            yield from _of_call(node, unit.line(node.lineno), names, aliases, depth)


def _of_magics(text: str) -> Iterator[Use]:
    """The commands of a notebook (`!pip install x`, `%pip install x`)."""
    try:
        cells = notebook_cells(text)
    except ValueError:
        return
    for cell in cells:
        for line in cell.lines:
            if line.lstrip().startswith(("!", "%")):
                yield from uses_in_shell(line.strip().lstrip("!%"))


def _aliases(tree: ast.AST) -> dict[str, str]:
    """Other names of the functions that import or execute (`from importlib import import_module as load`)."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            found.update({item.asname: item.name for item in node.names if item.asname})
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Name | ast.Attribute):
            called = node.value.attr if isinstance(node.value, ast.Attribute) else node.value.id
            if called in _IMPORTERS | _EXECUTES | _SHELLS:
                found.update({target.id: called for target in node.targets if isinstance(target, ast.Name)})
    return found


def _of_call(
    node: ast.Call, line: int, names: Mapping[str, ast.expr], aliases: Mapping[str, str], depth: int
) -> Iterator[Use]:
    called = _called(node, names)
    called = aliases.get(called, called)
    first = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg in {"name", "mod_name"}), None)
    if first is None:
        return
    if called in _IMPORTERS:
        module = text_of(first, names)
        yield Use("" if module is None else _top(module), line, "imports dynamically")
    elif called in _EXECUTES and depth < _DEPTH:
        code = text_of(first, names)
        if code is not None and _is_bare(node):
            yield from (use._replace(line=line, how=f"executes a text that {use.how}")
                        for use in _of_python("text.py", code, depth + 1))  # fmt: skip
    elif called in _SHELLS:
        yield from (use._replace(line=line) for use in _of_command(first, names))


def _is_bare(node: ast.Call) -> bool:
    """`exec(...)` and `builtins.exec(...)`, not `cursor.exec(...)` of an SQL text (which parses as nothing anyway)."""
    return isinstance(node.func, ast.Name | ast.Attribute | ast.Call)


def _called(node: ast.Call, names: Mapping[str, ast.expr]) -> str:
    """Name of the called function; `getattr(module, "import_" + "module")(...)` is looked through."""
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    if isinstance(function, ast.Name):
        return function.id
    if isinstance(function, ast.Call) and getattr(function.func, "id", "") == "getattr" and len(function.args) >= 2:
        return text_of(function.args[1], names) or ""
    if isinstance(function, ast.Subscript):  # __builtins__["__import__"](...)
        return text_of(function.slice, names) or ""
    return ""


def _of_command(node: ast.expr, names: Mapping[str, ast.expr]) -> Iterator[Use]:
    """The command of a `subprocess` or `os.system` call."""
    if isinstance(node, ast.List | ast.Tuple):
        words = [text_of(item, names) or "python" for item in node.elts]  # sys.executable is the usual unknown
        yield from _of_words(words)
        return
    text = text_of(node, names)
    if text is not None:
        yield from uses_in_shell(text)


def _of_broken(text: str) -> Iterator[Use]:
    """A Python text that cannot be parsed: its lines that begin as imports do."""
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r"\s*(?:import|from)\s+([A-Za-z_][\w.]*)", line)
        if match:
            yield Use(_top(match[1]), number, "imports")


# --- shell -----------------------------------------------------------------------------------------------------------


def uses_in_shell(text: str) -> list[Use]:
    """What commands install, and what `python -c` and `python -m` of them import."""
    return [use for command in read_commands(text) for use in _of_words(command.argv)]


def _of_words(words: Sequence[str]) -> Iterator[Use]:
    if not words:
        return
    name = PurePosixPath(words[0]).name
    rest = list(words[1:])
    if re.fullmatch(r"(?:python|pypy)[\d.]*|ipython", name):
        if "-c" in rest[:-1]:
            yield from _of_python("command.py", rest[rest.index("-c") + 1], 1)
        if "-m" in rest[:-1]:
            module = rest[rest.index("-m") + 1]
            if module in _INSTALLERS:
                name, rest = module, rest[rest.index("-m") + 2 :]
            else:
                yield Use(_top(module), 1, "runs")
    if name in _INSTALLERS or re.fullmatch(r"pip[\d.]*", name):
        yield from _installed(rest)


def _installed(words: Sequence[str]) -> Iterable[Use]:
    verb = next((at for at, word in enumerate(words) if word in _INSTALL_WORDS), None)
    if verb is None:
        return []
    found = []
    for word in words[verb + 1 :]:
        if word in {"&&", "||", ";", "|"}:
            break
        match = re.match(r"(?:git\+\S*/)?([A-Za-z][\w.-]*)", word)
        if match and not word.startswith("-"):
            found.append(Use(_top(match[1].removesuffix(".git")), 1, "installs"))
    return found


def _top(module: str) -> str:
    """Top-level name, as it is compared."""
    return module.strip().split(".", 1)[0].lower().replace("-", "_")
