"""What a program or a command line imports, loads, executes, installs or fetches: names of modules, whoever bans them.

Python is read as a tree: `import`, `__import__`, `importlib`, `runpy`, loaders that take a file, native libraries
(`ctypes`, `cffi`), `sys.path` and `sys.modules`, `exec` and `eval` of texts and of files, and the commands of
`subprocess` and `os.system`; shell scripts, notebooks, requirement files and commands are read as what they are. A
name that is put together only when the program runs is not known, and said to be so. Nothing is executed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from evaluation.families.table.constants import assigned_once, text_of
from evaluation.integrity.shell import here_documents, read_commands
from pipeline.tracing.source import notebook_cells, read_unit

__all__ = ["Use", "is_requirements", "uses_in_file", "uses_in_requirements", "uses_in_shell"]

Texts = Callable[[str], str | None]
"""Text of a file that a program names; None: it is not at hand."""
_IMPORTERS: Final = frozenset({"__import__", "import_module", "find_spec", "find_module", "load_module", "run_module",
                               "get_loader", "find_loader", "resolve_name", "importorskip", "lazy_import"})  # fmt: skip
_FROM_FILE: Final = frozenset({"spec_from_file_location", "SourceFileLoader", "SourcelessFileLoader",
                               "ExtensionFileLoader", "load_source", "load_dynamic", "zipimporter"})  # fmt: skip
"""Loaders that take the path of a module, some behind its name."""
_NATIVE: Final = frozenset({"CDLL", "PyDLL", "LoadLibrary", "dlopen", "load_library", "find_library"})
_PATHS: Final = frozenset({"sys.path.append", "sys.path.insert", "sys.path.extend", "site.addsitedir"})
_EXECUTES: Final = frozenset({"exec", "eval", "compile", "run_cell", "runcode", "runsource"})
_SHELLS: Final = frozenset({"system", "popen", "Popen", "run", "call", "check_call", "check_output", "getoutput",
                            "getstatusoutput", "spawn", "execvp", "execv", "run_line_magic"})  # fmt: skip
_INSTALLERS: Final = frozenset(
    {"pip", "pip3", "conda", "mamba", "uv", "poetry", "easy_install", "pipenv", "pipx", "pdm", "apt", "apt-get", "dnf",
     "apk", "yum"}
)  # fmt: skip
_FETCHERS: Final = frozenset({"git", "curl", "wget", "aria2c"})
_INSTALL_WORDS: Final = frozenset({"install", "add", "download"})
_FED: Final = re.compile(r"\b(?:python|pypy)[\d.]*\b[^|>]*<<")
_PIPED: Final = re.compile(
    r"\b(?:echo|printf)\s+(?:-\w+\s+)?(?P<quote>['\"])(?P<code>.*?)(?P=quote)\s*\|\s*(?:\S*/)?(?:python|pypy)[\d.]*\b",
    re.S,
)
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


def uses_in_file(path: str, text: str, texts: Texts = lambda _: None) -> list[Use]:
    """What a file imports, runs or installs; nothing for files that are no programs.

    Args:
        path: decides what it is read as.
        text: of the file.
        texts: gives the text of another file, which a program may execute.
    """
    lowered = path.lower()
    if lowered.endswith((".py", ".pyw", ".ipynb")):
        return list(_of_python(path, text, texts))
    if lowered.endswith((".sh", ".bash")):
        return uses_in_shell(text, texts)
    if is_requirements(lowered):
        return uses_in_requirements(text)
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


def is_requirements(path: str) -> bool:
    """Does a file of this name say which packages are to be installed?"""
    return bool(_REQUIREMENTS.search(path.lower()))


def uses_in_requirements(text: str) -> list[Use]:
    """The packages that a list of requirements names."""
    return [
        Use(_top(match[0]), number, "declares")
        for number, line in enumerate(text.splitlines(), 1)
        if (match := re.match(r"[A-Za-z][\w.-]*", line.strip().lstrip("-\"' ")))
    ]


def _of_python(path: str, text: str, texts: Texts, depth: int = 0) -> Iterator[Use]:
    if path.lower().endswith(".ipynb"):
        yield from _of_magics(text)
    unit = read_unit(path, text)
    if unit.tree is None:
        yield from _of_broken(text)
        return
    scope = _Scope(assigned_once(unit.tree), _aliases(unit.tree), texts)
    for node in ast.walk(unit.tree):
        if isinstance(node, ast.Import):
            yield from (Use(_top(item.name), unit.line(node.lineno), "imports") for item in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield Use(_top(node.module), unit.line(node.lineno), "imports")
        elif isinstance(node, ast.Call):
            yield from _of_call(node, unit.line(node.lineno), scope, depth)
        elif isinstance(node, ast.Subscript) and ast.unparse(node.value) == "sys.modules":
            name = text_of(node.slice, scope.names)
            if name is not None and isinstance(node.ctx, ast.Load):
                yield Use(_top(name), unit.line(node.lineno), "takes from sys.modules")


class _Scope(NamedTuple):
    """What is known where a call stands."""

    names: Mapping[str, ast.expr]
    aliases: Mapping[str, str]
    texts: Texts


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


def _of_call(node: ast.Call, line: int, scope: _Scope, depth: int) -> Iterator[Use]:
    names = scope.names
    called = _called(node, names)
    called = scope.aliases.get(called, called)
    named = (k.value for k in node.keywords if k.arg in {"name", "mod_name", "fullname"})
    first = node.args[0] if node.args else next(named, None)
    if first is None:
        return
    full = ast.unparse(node.func)
    if called in _IMPORTERS:
        module = text_of(first, names)
        yield Use("" if module is None else _top(module), line, "imports dynamically")
    elif called in _FROM_FILE or called in _NATIVE:
        how = "loads the native library" if called in _NATIVE else "imports from a file"
        yield from _of_paths([*node.args, *(word.value for word in node.keywords)], line, how, names)
    elif full in _PATHS:
        yield from _of_paths(node.args, line, "puts on the path", names, known=True)
    elif full == "sys.modules.get":
        yield Use(_top(text_of(first, names) or "sys"), line, "takes from sys.modules")
    elif called in _EXECUTES and depth < _DEPTH:
        yield from _of_text(node, first, line, scope, depth)
    elif called in _SHELLS:
        yield from (use._replace(line=line) for use in _of_command(first, scope))


def _of_text(node: ast.Call, first: ast.expr, line: int, scope: _Scope, depth: int) -> Iterator[Use]:
    """`exec`, `eval` and `compile` of a text, or of a file that is at hand."""
    code = text_of(first, scope.names)
    if code is None:
        code = _text_of_file(first, scope)
    if code is not None and _is_bare(node):
        yield from (use._replace(line=line, how=f"executes a text that {use.how}")
                    for use in _of_python("text.py", code, scope.texts, depth + 1))  # fmt: skip
    elif isinstance(node.func, ast.Name) and node.func.id in {"exec", "compile"}:
        if isinstance(first, ast.Call) and _called(first, scope.names) == "compile":
            return  # its own argument is looked at where it stands
        yield Use("", line, "executes a text, and with it")


def _text_of_file(node: ast.expr, scope: _Scope) -> str | None:
    """The text of a file that an expression reads (`open("x").read()`, `Path("x").read_text()`)."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call) and inner.args and _called(inner, scope.names) in {"open", "Path", "run_path"}:
            name = text_of(inner.args[0], scope.names)
            if name is not None and (text := scope.texts(name)) is not None:
                return text
    return None


def _of_paths(
    nodes: Iterable[ast.expr], line: int, how: str, names: Mapping[str, ast.expr], *, known: bool = False
) -> Iterator[Use]:
    """Each part of the paths, without the extension and the `lib` in front of a native library's name.

    Args:
        nodes: arguments, paths and names of modules.
        line: where.
        how: for the finding.
        names: see `assigned_once`.
        known: say nothing of paths that are not known before the program runs.
    """
    texts = [text for node in nodes if (text := text_of(node, names)) is not None]
    if not texts and not known:
        yield Use("", line, how)
    for text in texts:
        for part in PurePosixPath(text).parts:
            stem = re.split(r"[.\d-]", part.removeprefix("lib"), maxsplit=1)[0] if "." in part else part
            yield from (Use(name, line, how) for name in dict.fromkeys((_top(stem), _top(stem.split("_")[0]))) if name)


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


def _of_command(node: ast.expr, scope: _Scope) -> Iterator[Use]:
    """The command of a `subprocess` or `os.system` call."""
    if isinstance(node, ast.List | ast.Tuple):
        words = [text_of(item, scope.names) or "python" for item in node.elts]  # sys.executable is the usual unknown
        yield from _of_words(words, scope.texts)
        return
    text = text_of(node, scope.names)
    if text is not None:
        yield from uses_in_shell(text, scope.texts)


def _of_broken(text: str) -> Iterator[Use]:
    """A Python text that cannot be parsed: its lines that begin as imports do."""
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r"\s*(?:import|from)\s+([A-Za-z_][\w.]*)", line)
        if match:
            yield Use(_top(match[1]), number, "imports")


# --- shell -----------------------------------------------------------------------------------------------------------


def uses_in_shell(text: str, texts: Texts = lambda _: None) -> list[Use]:
    """What commands install and fetch, and what Python programs in them import: `-c`, `-m`, here-documents, pipes."""
    commands = read_commands(text)
    here = {
        PurePosixPath(target).name: " ".join(command.argv[1:]).replace("\\n", "\n")
        for command in commands
        if command.name in {"echo", "printf"}
        for target in command.writes
    }

    def known(path: str) -> str | None:
        return here.get(PurePosixPath(path).name) or texts(path)

    found = [use for command in commands for use in _of_words(command.argv, known)]
    programs = [body for opening, body in here_documents(text)[1] if _FED.search(opening)]
    programs += [match["code"].replace("\\n", "\n") for match in _PIPED.finditer(text)]
    return found + [use for code in programs for use in _of_python("command.py", code, texts, 1)]


def _of_words(words: Sequence[str], texts: Texts) -> Iterator[Use]:
    if not words:
        return
    name = PurePosixPath(words[0]).name
    rest = list(words[1:])
    if re.fullmatch(r"(?:python|pypy)[\d.]*|ipython", name):
        if "-c" in rest[:-1]:
            yield from _of_python("command.py", rest[rest.index("-c") + 1], texts, 1)
        if "-m" in rest[:-1]:
            module = rest[rest.index("-m") + 1]
            if module in _INSTALLERS:
                name, rest = module, rest[rest.index("-m") + 2 :]
            else:
                yield Use(_top(module), 1, "runs")
    if name in _INSTALLERS or re.fullmatch(r"pip[\d.]*", name):
        yield from _installed(rest, texts)
    elif name in _FETCHERS and not (name == "git" and "clone" not in rest):
        yield from (use for word in rest if "://" in word or word.startswith("git@") for use in _fetched(word))


def _fetched(url: str) -> Iterator[Use]:
    """What the last part of an address is called: a repository, an archive, a wheel."""
    last = url.rstrip("/").rsplit("/", 1)[-1].removesuffix(".git")
    yield Use(_top(re.split(r"[-.]\d|\.(?:zip|tar|tgz|whl|py)\b", last, maxsplit=1)[0]), 1, "fetches")


def _installed(words: Sequence[str], texts: Texts) -> Iterable[Use]:
    verb = next((at for at, word in enumerate(words) if word in _INSTALL_WORDS), None)
    if verb is None:
        return []
    found: list[Use] = []
    before = ""
    for word in words[verb + 1 :]:
        if word in {"&&", "||", ";", "|"}:
            break
        if before in {"-r", "--requirement", "-c", "--constraint"}:
            found += [use._replace(line=1, how="installs") for use in uses_in_requirements(texts(word) or "")]
        else:
            match = re.match(r"(?:git\+\S*/)?(?:python3?-)?([A-Za-z][\w.-]*)", word)
            if match and not word.startswith("-"):
                found.append(Use(_top(match[1].removesuffix(".git")), 1, "installs"))
        before = word
    return found


def _top(module: str) -> str:
    """Top-level name, as it is compared."""
    return module.strip().split(".", 1)[0].lower().replace("-", "_")
