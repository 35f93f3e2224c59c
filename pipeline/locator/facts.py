"""What one file says about itself: words, definitions, imports, commands, references. No task is known here."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from pipeline.locator.inventory import ListedFile, is_generated
from pipeline.locator.shell import Invocation, parse_shell
from pipeline.locator.text import labels, tokens
from pipeline.tracing.source import CodeUnit, read_unit

__all__ = ["FileFacts", "Import", "analyse"]

_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]+(?:\(([^)]*)\)|([^\n#]*))|import[ \t]+([\w.]+[^\n#]*))", re.M
)
_MAIN = re.compile(r"^if\s+__name__\s*==\s*['\"]__main__['\"]", re.M)
_CLI = (
    "argparse",
    "argumentparser",
    "hydra.main",
    "fire.fire",
    "tyro.cli",
    "typer.",
    "parse_args",
    "sys.argv",
    "docopt",
    "pyrallis",
    "simple_parsing",
)
_CLI_WORDS = re.compile(r"\bclick\.|absl import (?:app|flags)")
_HYDRA = re.compile(r"config_name\s*=\s*['\"]([\w/.\-]+)['\"]")
_HYDRA_PATH = re.compile(r"config_path\s*=\s*['\"]([\w/.\-]*)['\"]")
_DEFAULTS = re.compile(r"^defaults:[ \t]*\n((?:[ \t]*(?:-.*|#.*)?\n)+)", re.M)
_DEFINES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_DEFINED = re.compile(r"^\s*(?:def|class)\s+(\w+)", re.M)
_COMMAND = re.compile(r"\s*(?:\$\s*)?(?:\w+=\S+\s+)*(?:python|bash|torchrun)\d?\s|\s*--")
_ENDING = re.compile(r"(?<=[\w\]})])\.(?:py|sh|ipynb|ya?ml|json|toml|gin|cfg|ini)\b")
_NOT_OF_PATH = re.compile(r"[^\w./\-]")
_LONGEST_PATH = 300


@dataclass(frozen=True, slots=True)
class Import:
    """An import statement: `level` leading dots, module, imported names (empty for `import module`)."""

    level: int
    module: str
    names: tuple[str, ...]


@dataclass(slots=True)
class FileFacts:
    """The facts of one file."""

    file: ListedFile
    lines: int
    words: Mapping[str, int]
    """Stems of its words and how often each occurs, tables and figures (`table2`) among them; empty once they are in
    the index."""
    summary: str = ""
    """First line of the module docstring, or of the first comment or Markdown cell."""
    definitions: tuple[str, ...] = ()
    imports: tuple[Import, ...] = ()
    references: tuple[str, ...] = ()
    """File-like words in code, shell or configuration, as written."""
    hydra: tuple[str, ...] = ()
    """Configurations that a `hydra.main` decorator names."""
    groups: tuple[str, ...] = ()
    """Directories of configurations that a `hydra.main` decorator names: what is below can be chosen on the command
    line."""
    defaults: tuple[str, ...] = ()
    """Files that a configuration composes (`defaults:`), as written, without ending."""
    commands: tuple[Invocation, ...] = ()
    """Commands of a shell script, Makefile, notebook or of the usage part of a docstring."""
    main: bool = False
    acts: bool = False
    """Module-level code does something: a script without a main guard."""
    settings: bool = False
    """Python that only assigns or defines `get_config`: a configuration written in Python."""
    takes_config: bool = False
    """Its command line takes such a file (`DEFINE_config_file` of ml_collections)."""
    cli: bool = False
    generated: bool = False
    error: str | None = None
    targets: dict[str, tuple[Invocation, ...]] = field(default_factory=dict)
    """Commands of each Makefile target."""

    @property
    def path(self) -> str:
        """Path of the file."""
        return self.file.path


def analyse(file: ListedFile, raw: str) -> FileFacts:
    """Read one file. Never raises on its content: what could not be parsed is in `error`."""
    if file.kind in {"python", "notebook"}:
        return _code(file, raw)
    text = raw if len(raw) < 200_000 else raw[:200_000]
    words = Counter([*tokens(text), *labels(file.path if file.kind == "config" else f"{file.path}\n{text}")])
    facts = FileFacts(file, raw.count("\n") + 1, words, references=_references(text))
    comments = [line.strip() for line in _comments(text) if line.strip() and not line.startswith("!")]
    facts.summary = comments[0] if comments else ""
    if file.kind == "config":
        facts.defaults = tuple(_composed(text))
    if file.kind == "shell":
        facts.commands = parse_shell(text)
    elif file.kind == "make":
        facts.targets = _makefile(text)
        facts.commands = tuple(item for name in facts.targets for item in facts.targets[name])
    return facts


def _code(file: ListedFile, raw: str) -> FileFacts:
    unit = read_unit(file.path, raw)
    code = unit.code
    defined = _defined(unit.tree) if unit.tree is not None else []
    nodes = [unit.tree, *defined] if unit.tree is not None else []
    documented = [ast.get_docstring(node, clean=False) or "" for node in nodes]
    prose = "\n".join([file.path, unit.prose, *_comments(code), *documented])
    facts = FileFacts(
        file,
        code.count("\n") + 1,
        Counter([*tokens(code), *tokens(unit.prose), *labels(prose)]),
        summary=_summary(unit),
        definitions=tuple(node.name for node in defined) if defined else tuple(_DEFINED.findall(code)),
        imports=tuple(_imports(code)),
        references=_references(code),
        error=unit.error,
    )
    facts.hydra = _hydra(code)
    facts.groups = tuple(sorted({base for base in _HYDRA_PATH.findall(code) if base})) if facts.hydra else ()
    if unit.tree is not None:
        facts.acts, facts.settings = _acts(unit.tree), _only_assigns(unit.tree)
    facts.generated = is_generated(code)
    low = code.lower()
    facts.main = "__main__" in code and _MAIN.search(code) is not None
    facts.cli = any(part in low for part in _CLI) or _CLI_WORDS.search(low) is not None
    facts.takes_config = "define_config_file(" in low
    facts.commands = tuple(_embedded_commands(unit))
    return facts


def _references(text: str) -> tuple[str, ...]:
    """File-like words, read from their ending leftwards: endings are rare, words are not."""
    found: set[str] = set()
    for match in _ENDING.finditer(text):
        end = match.start() - 1  # the letter before the ending belongs to the word whatever it is
        before = text[max(0, end - _LONGEST_PATH) : end][::-1]
        stop = _NOT_OF_PATH.search(before)
        found.add(text[end - (stop.start() if stop else len(before)) : match.end()])
    return tuple(sorted(found))


def _defined(tree: ast.Module) -> list[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """Functions, classes and methods in the order of the file."""
    found: list[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef] = []
    for node in tree.body:
        if isinstance(node, _DEFINES):
            found.append(node)
            if isinstance(node, ast.ClassDef):
                found += [part for part in node.body if isinstance(part, _DEFINES)]
    return found


def _comments(text: str) -> list[str]:
    """What follows a `#` that neither a quote nor a word precedes."""
    found: list[str] = []
    place = text.find("#")
    while place >= 0:
        before = text[place - 1] if place else " "
        if before in "\"'_" or before.isalnum():
            place = text.find("#", place + 1)
            continue
        end = text.find("\n", place)
        end = len(text) if end < 0 else end
        comment = text[place + 1 : end]
        found.append(comment[1:] if comment[:1].isspace() else comment)
        place = text.find("#", end)
    return found


def _hydra(code: str) -> tuple[str, ...]:
    if "hydra" not in code:
        return ()
    base = next(iter(_HYDRA_PATH.findall(code)), "")
    found = []
    for name in _HYDRA.findall(code):
        full = f"{base}/{name}" if base else name
        found.append(full if full.endswith((".yaml", ".yml")) else f"{full}.yaml")
    return tuple(found)


def _composed(text: str) -> list[str]:
    """The items of a `defaults:` list, `group: name` as `group/name` (Hydra's composition)."""
    found = []
    match = _DEFAULTS.search(text)
    for line in match.group(1).splitlines() if match else ():
        item = re.sub(r"^\s*-\s*|\s*#.*$|\boverride\s+|\boptional\s+|@[\w.]+", "", line).strip().strip("'\"")
        group, _, name = (part.strip().strip("'\"") for part in item.partition(":"))
        if group and group != "_self_" and name not in {"null", "None", "???"}:
            found.append(f"{group.lstrip('/')}/{name}" if name else group.lstrip("/"))
    return [item for item in found if "$" not in item]


def _acts(tree: ast.Module) -> bool:
    """Does importing the file do more than define things?"""
    for node in tree.body:
        if isinstance(node, (ast.For, ast.While, ast.With)):
            return True
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            name = ast.unparse(node.value.func)
            if not name.startswith(("sys.path", "warnings.", "logging.", "os.environ", "matplotlib.use", "register")):
                return True
    return False


def _only_assigns(tree: ast.Module) -> bool:
    body = [node for node in tree.body if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))]
    plain = [node for node in body if not isinstance(node, (ast.Import, ast.ImportFrom))]
    return (
        bool(plain)
        and len(body) - len(plain) <= 3
        and all(isinstance(n, (ast.Assign, ast.AnnAssign, ast.AugAssign)) or _makes_config(n) for n in plain)
    )


def _makes_config(node: ast.stmt) -> bool:
    """By the convention of ml_collections a file with `get_config` is what is given to `--config`."""
    return isinstance(node, ast.FunctionDef) and node.name == "get_config"


def _embedded_commands(unit: CodeUnit) -> list[Invocation]:
    """`!python ...` lines of a notebook, and commands in the module docstring's usage part."""
    found = []
    for line, command in unit.shell:
        found += [Invocation(item.argv, line, item.directory, item.environment) for item in parse_shell(command)]
    docstring = (
        ast.get_docstring(unit.tree, clean=False) if unit.tree is not None and unit.path.endswith(".py") else None
    )
    if docstring and re.search(r"\b(?:python|bash|torchrun)\d?\s", docstring):
        body = docstring.splitlines()
        first = next((number for number, text in enumerate(unit.code.splitlines(), 1) if body[0][:40] in text), 1)
        keep = [
            line if _COMMAND.match(line) or (number and body[number - 1].rstrip().endswith("\\")) else ""
            for number, line in enumerate(body)
        ]
        for item in parse_shell("\n".join(keep)):
            found.append(Invocation(item.argv, first + item.line - 1, item.directory, item.environment))
    return found


def _summary(unit: CodeUnit) -> str:
    if unit.tree is not None:
        docstring = ast.get_docstring(unit.tree)
        if docstring:
            return docstring.strip().splitlines()[0].strip()
    for line in unit.prose.splitlines():
        if line.strip():
            return line.strip("# ").strip()
    return ""


def _imports(code: str) -> list[Import]:
    found = []
    for match in _IMPORT.finditer(code):
        dots, module, grouped, plain, modules = match.groups()
        if modules is not None:
            found += [Import(0, part.split()[0], ()) for part in modules.split(",") if part.split()]
        else:
            listed = grouped if grouped is not None else plain or ""
            names = tuple(
                part.split()[0] for part in re.sub(r"#[^\n]*", "", listed).replace("\\", " ").split(",") if part.split()
            )
            found.append(Import(len(dots), module, names))
    return found


def _makefile(text: str) -> dict[str, tuple[Invocation, ...]]:
    """Commands of each target; `$(X)` becomes `${X}` so that the variables of the Makefile are filled in."""
    assignments = "\n".join(
        f"{name}={value.strip()!r}" if " " in value.strip() else f"{name}={value.strip()}"
        for name, value in re.findall(r"^(\w+)\s*[:?]?=\s*(.*)$", text, re.M)
        if "$(shell" not in value
    )
    prefix = assignments.count("\n") + 1 if assignments else 0
    targets: dict[str, list[tuple[int, str]]] = {}
    names: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        head = re.match(r"^([\w.\-/ ]+)\s*:(?!=)", line)
        if head:
            names = head.group(1).split()
        elif line.startswith(("\t", "    ")) and names:
            for name in names:
                targets.setdefault(name, []).append((number, re.sub(r"^\s*[@\-+]*", "", line)))
    found: dict[str, tuple[Invocation, ...]] = {}
    for name, recipe in targets.items():
        body = re.sub(r"\$\((\w+)\)", r"${\1}", "\n".join(line for _, line in recipe)).replace("$$", "$")
        items = parse_shell(f"{assignments}\n{body}" if prefix else body)
        found[name] = tuple(
            Invocation(
                item.argv, recipe[min(max(item.line - prefix, 1), len(recipe)) - 1][0], item.directory, item.environment
            )
            for item in items
        )
    return found
