"""What a run needs besides its code: files, downloads, environment variables, checkpoints, data sets by name."""

from __future__ import annotations

import ast
import re

from pipeline.tracing.arguments import literal
from pipeline.tracing.callgraph import Reaching
from pipeline.tracing.program import Module, Program, called_name, dotted
from pipeline.tracing.scopes import Scopes
from pipeline.tracing.values import Values

__all__ = ["data_needs", "needed_file"]

_Where = tuple[str, str, int] | None

_READERS = re.compile(
    r"(?:^|\.)(?:read_csv|read_json|read_parquet|read_pickle|read_excel|loadtxt|genfromtxt|loadmat|read_table|imread|"
    r"np\.load|numpy\.load|json\.load|pickle\.load|safe_load|load_npz|h5py\.File|ImageFolder|read_h5ad|"
    r"OmegaConf\.load|BlobFile|gfile\.GFile)$"
)
_NAMED = re.compile(
    r"(?:^|\.)(?:load_dataset|from_pretrained|fetch_openml|hf_hub_download|snapshot_download|create_model|pipeline|"
    r"tfds\.load)$"
)
_CHECKPOINT = re.compile(r"(?:^|\.)(?:torch\.load|load_from_checkpoint|load_checkpoint|load_model|restore)$")
_DOWNLOAD = re.compile(
    r"(?:^|\.)(?:urlopen|urlretrieve|requests\.get|wget\.download|gdown\.download|download_url|get_file)$"
)
_BUNDLED = re.compile(
    r"(?:^|\.)datasets\.(?:CIFAR\w*|MNIST|FashionMNIST|ImageNet|SVHN|STL10|Planetoid|TUDataset|fetch_\w+)$"
)
_WRITERS = re.compile(
    r"(?:^|\.)(?:torch\.save|np\.save|numpy\.save|savez|to_csv|to_json|to_parquet|savefig|save_pretrained|to_pickle)$"
)
_STATED = re.compile(
    r"(?P<kind>file|checkpoint|download|data set or model|data set|environment variable|URL) (?P<path>.+) "
    r"\([^()]+:\d+\)"
)
_WRITING = ("w", "a", "x")
_PROVIDED = {"HOME", "LANG", "LOGNAME", "PATH", "PWD", "SHELL", "TMPDIR", "USER", "USERPROFILE"}
"""Environment variables that every system sets: nobody has to provide them."""
_READS = {"open", "read_text", "read_bytes"}
_NOTHING = {"", "none", "null", "~"}
_MEANINGLESS = {
    "path",
    "value",
    "text",
    "content",
    "file",
    "filename",
    "filepath",
    "file_path",
    "stream",
    "fname",
    "infile",
    "self.path",
    "handle",
}


def data_needs(program: Program, module: Module, reaching: Reaching, values: Values) -> list[str]:
    """Needs of everything that is reached, each with its place, in order of first use.

    A name is followed to what it stands for (see `pipeline.tracing.scopes`); where that is not known, the need is the
    expression as it is written, in backquotes. What the run itself writes is none.
    """
    assert module.unit.tree is not None
    scopes = Scopes(program, module, reaching, values)
    found: dict[str, None] = {}
    written: set[str] = set()
    bodies: list[tuple[Module, ast.AST, _Where]] = [
        (module, statement, None)
        for statement in module.unit.tree.body
        if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    ]
    for reached in reaching.functions:
        home = program.module(reached.definition.path)
        if home is not None:
            bodies.append((home, reached.definition.node, reached.definition.key))
    needs: list[tuple[str, str]] = []
    for home, body, where in bodies:
        reader = _Reader(program, home, scopes, where)
        for node in ast.walk(body):
            if isinstance(node, ast.Call):
                written.update(reader.writes(node))
            place = f"{home.path}:{home.unit.line(getattr(node, 'lineno', 1))}"
            needs += [(need, place) for need in reader.needs(node)]
    for need, place in needs:
        if need.partition(" ")[2] not in written:
            found.setdefault(f"{need} ({place})")
    return list(found)


def needed_file(need: str) -> str | None:
    """The path that a need of `data_needs` names, relative to where the code runs; None for what is no file.

    A need without kind and place, as other tools write them, is a path by itself.
    """
    stated = _STATED.fullmatch(need)
    if stated is None:
        return None if " " in need else need.removeprefix("./")
    return stated["path"].removeprefix("./") if stated["kind"] in {"file", "checkpoint"} else None


class _Reader:
    """What single expressions of one function need and write."""

    def __init__(self, program: Program, home: Module, scopes: Scopes, where: _Where) -> None:
        self._program = program
        self._home = home
        self._scopes = scopes
        self._where = where

    def needs(self, node: ast.AST) -> list[str]:
        """Needs that `node` itself states."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value.strip()
            return [f"URL {text}"] if re.match(r"https?://\S+$", text) else []
        if isinstance(node, ast.Subscript) and dotted(node.value) in {"os.environ", "environ"}:
            name = literal(node.slice)
            needed = name and name not in _PROVIDED and isinstance(node.ctx, ast.Load)
            return [f"environment variable {name}"] if needed else []
        return self._called(node) if isinstance(node, ast.Call) else []

    def writes(self, node: ast.Call) -> list[str]:
        """Files that a call writes."""
        name = called_name(node)
        if name == "open" and _mode(node).startswith(_WRITING) and node.args:
            return [self._argument(node.args[0])]
        match = _WRITERS.search(name)
        if match is None or not node.args:
            return []
        place = 1 if match.group(0).endswith("torch.save") and len(node.args) > 1 else 0
        return [self._argument(node.args[place])]

    def _called(self, node: ast.Call) -> list[str]:
        name = called_name(node)
        if dotted(node.func) and self._program.find(self._home, name) is not None:
            return []  # the repository's own `load_model`: what it reads is found where it is read
        if _BUNDLED.search(name):
            return [f"data set {name.rsplit('.', 1)[-1]}"]
        first = _first(node)
        argument = self._argument(first) if first is not None else ""
        if not argument:
            return []
        if name in {"os.getenv", "getenv", "os.environ.get", "environ.get"}:
            return [f"environment variable {argument}"] if argument not in _PROVIDED else []
        if name == "open" or name.endswith(("BlobFile", "gfile.GFile")):
            return [] if _mode(node).startswith(_WRITING) else [f"file {argument}"]
        kinds = (
            (_READERS, "file"),
            (_NAMED, "data set or model"),
            (_CHECKPOINT, "checkpoint"),
            (_DOWNLOAD, "download"),
        )
        return [f"{word} {argument}" for pattern, word in kinds if pattern.search(name)][:1]

    def _argument(self, node: ast.expr) -> str:
        """The text that an expression stands for; else the expression, where it says something by itself."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _READS:
            return self._argument(node.func.value)  # `yaml.safe_load(path.read_text())`
        value = literal(node) or self._scopes.text(node, self._where)
        if value is not None:
            return "" if value.lower() in _NOTHING else value
        if isinstance(node, ast.Call) and _opens(node):
            return ""  # `json.load(open(path))`: the inner call is the need
        text = ast.unparse(node)
        if any(isinstance(part, ast.Constant) and isinstance(part.value, str) for part in ast.walk(node)):
            return f"`{text}`" if len(text) <= 80 else ""
        return "" if len(text) <= 4 or text in _MEANINGLESS else f"`{text}`" if len(text) <= 60 else ""


def _opens(node: ast.Call) -> bool:
    """Does a call read a file itself?"""
    name = dotted(node.func)
    return name == "open" or bool(_READERS.search(name) or _CHECKPOINT.search(name))


def _mode(node: ast.Call) -> str:
    if len(node.args) > 1:
        return literal(node.args[1]) or "r"
    return literal(next((word.value for word in node.keywords if word.arg == "mode"), None)) or "r"


def _first(node: ast.Call) -> ast.expr | None:
    if node.args:
        return node.args[0]
    return next((word.value for word in node.keywords if word.arg in {"path", "name", "url", "repo_id"}), None)
