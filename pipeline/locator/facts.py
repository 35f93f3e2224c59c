"""What one file says about itself: words, chunks, definitions, imports, commands, references. No task is known here."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pipeline.locator.inventory import ListedFile, is_generated
from pipeline.locator.references import read_references
from pipeline.locator.shell import Invocation, parse_shell
from pipeline.locator.text import labels, tokens
from pipeline.tracing.source import CodeUnit, read_unit

__all__ = ["FileFacts", "Import", "analyse"]

_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]+(?:\(([^)]*)\)|([^\n#]*))|import[ \t]+([\w.]+[^\n#]*))", re.M
)
_MAIN = re.compile(r"^if\s+__name__\s*==\s*['\"]__main__['\"]", re.M)
# What code speaks of, as substrings of its lower-case text: a dozen of them are found ten times as fast as one regular
# expression with as many alternatives, and reading is half of the time to index a repository.
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
_READS = ("json.load(", "read_csv", "read_json", "np.load(", "pickle.load", "glob.glob", "read_pickle")
_READS_OPEN = re.compile(r"open\([^)]*results?")
_REPORTS = ("savefig", "plt.", "to_csv", "to_latex", "tabulate", "print(", "json.dump")
_TRAINS = (".backward(", "optimizer.step", ".fit(", ".train(", "lax.scan", "value_and_grad", "optax")
_TRAINS_WORDS = re.compile(r"loss\b")
_EVALUATES = ("accuracy", ".eval(", "evaluate", "metric", "roc_auc", "perplexity", "f1_score", "precision")
_EVALUATES_WORDS = re.compile(r"\b(?:no_grad|auroc\b|ppl\b|mse\b)")
_COMMAND = re.compile(r"\s*(?:\$\s*)?(?:\w+=\S+\s+)*(?:python|bash|torchrun)\d?\s|\s*--")
_CHUNK_LINES = 60


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
    """Stems of its words and how often each occurs; empty once they are in the index."""
    chunks: list[Mapping[str, int]]
    """The same of each function and of the rest; of text, of each sixty lines."""
    summary: str = ""
    """First line of the module docstring, or of the first comment or Markdown cell."""
    definitions: tuple[str, ...] = ()
    imports: tuple[Import, ...] = ()
    references: tuple[str, ...] = ()
    """File-like words in code, shell or configuration, as written."""
    patterns: tuple[str, ...] = ()
    """The same where a part is filled in when it runs (`config/{name}.yaml`), `*` in place of that part."""
    hydra: tuple[str, ...] = ()
    """Configurations that a `hydra.main` decorator names."""
    groups: tuple[str, ...] = ()
    """Directories of configurations that a `hydra.main` decorator names: what is below can be chosen on the command
    line."""
    defaults: tuple[str, ...] = ()
    """Files that a configuration composes (`defaults:`), as written, without ending."""
    commands: tuple[Invocation, ...] = ()
    """Commands of a shell script, Makefile, notebook or of the usage part of a docstring."""
    labels: tuple[str, ...] = ()
    """Tables and figures of the paper that it speaks of: `table2`, `figure1`."""
    main: bool = False
    acts: bool = False
    """Module-level code does something: a script without a main guard."""
    settings: bool = False
    """Python that only assigns or defines `get_config`: a configuration written in Python."""
    takes_config: bool = False
    """Its command line takes such a file (`DEFINE_config_file` of ml_collections)."""
    cli: bool = False
    generated: bool = False
    reads_results: bool = False
    trains: bool = False
    evaluates: bool = False
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
    chunks = _line_chunks(text)
    facts = FileFacts(file, raw.count("\n") + 1, _together(chunks), chunks)
    facts.references, facts.patterns = read_references(text)
    facts.labels = labels(f"{file.path}\n{text}") if file.kind != "config" else labels(file.path)
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
    prose = "\n".join([unit.prose, *_comments(code)])
    docstrings: list[str] = []
    definitions: list[str] = []
    if unit.tree is not None:
        chunks, words = _definition_chunks(unit.tree, code, definitions, docstrings)
    else:
        chunks = _line_chunks(code)
        words = _together(chunks)
        definitions = re.findall(r"^\s*(?:def|class)\s+(\w+)", code, re.M)
    if unit.prose:
        prose_chunks = _line_chunks(unit.prose)
        chunks += prose_chunks
        words.update(_together(prose_chunks))
    facts = FileFacts(
        file,
        code.count("\n") + 1,
        words,
        chunks,
        summary=_summary(unit),
        definitions=tuple(definitions),
        imports=tuple(_imports(code)),
        error=unit.error,
    )
    facts.references, facts.patterns = read_references(code)
    facts.hydra = _hydra(code)
    facts.groups = tuple(sorted({base for base in _HYDRA_PATH.findall(code) if base})) if facts.hydra else ()
    if unit.tree is not None:
        facts.acts, facts.settings = _acts(unit.tree), _only_assigns(unit.tree)
    facts.labels = labels("\n".join([file.path, prose, *docstrings]))
    facts.generated = is_generated(code)
    _judge(facts, code)
    facts.commands = tuple(_embedded_commands(unit))
    return facts


def _judge(facts: FileFacts, code: str) -> None:
    """What kind of program it is, by what its text holds."""
    low = code.lower()

    def speaks(parts: tuple[str, ...], words: re.Pattern[str] | None = None) -> bool:
        return any(part in low for part in parts) or (words is not None and words.search(low) is not None)

    facts.main = "__main__" in code and _MAIN.search(code) is not None
    facts.cli = speaks(_CLI, _CLI_WORDS)
    facts.takes_config = "define_config_file(" in low
    facts.reads_results = speaks(_READS, _READS_OPEN) and speaks(_REPORTS)
    facts.trains = speaks(_TRAINS, _TRAINS_WORDS)
    facts.evaluates = speaks(_EVALUATES, _EVALUATES_WORDS)


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


def _definition_chunks(
    tree: ast.Module, code: str, definitions: list[str], docstrings: list[str]
) -> tuple[list[Mapping[str, int]], Counter[str]]:
    """(one chunk for each function and method and one for the rest of the module, the words of all of them).

    Every line is taken apart once; a method's chunk has the name of its class besides.
    """
    lines = code.splitlines()
    chunks: list[Mapping[str, int]] = []
    words: Counter[str] = Counter()
    used: set[int] = set()
    module_doc = ast.get_docstring(tree)
    if module_doc:
        docstrings.append(module_doc)

    def add(node: ast.FunctionDef | ast.AsyncFunctionDef, owner: Counter[str]) -> None:
        first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
        last = node.end_lineno or node.lineno
        own = Counter(tokens("\n".join(lines[first - 1 : last])))
        words.update(own)
        chunks.append(own + owner)
        used.update(range(first, last + 1))
        definitions.append(node.name)
        doc = ast.get_docstring(node, clean=False)
        if doc:
            docstrings.append(doc)

    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            add(node, Counter())
        elif isinstance(node, ast.ClassDef):
            definitions.append(node.name)
            doc = ast.get_docstring(node, clean=False)
            if doc:
                docstrings.append(doc)
            owner = Counter(tokens(node.name))
            for part in node.body:
                if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    add(part, owner)
    rest = Counter(tokens("\n".join(line for number, line in enumerate(lines, 1) if number not in used)))
    words.update(rest)
    chunks.append(rest)
    return [chunk for chunk in chunks if chunk], words


def _line_chunks(text: str) -> list[Mapping[str, int]]:
    lines = text.splitlines()
    starts = range(0, len(lines), _CHUNK_LINES)
    found = [Counter(tokens("\n".join(lines[start : start + _CHUNK_LINES]))) for start in starts]
    return [chunk for chunk in found if chunk]


def _together(chunks: Iterable[Mapping[str, int]]) -> Counter[str]:
    words: Counter[str] = Counter()
    for chunk in chunks:
        words.update(chunk)
    return words


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
