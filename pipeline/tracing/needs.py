"""What a run needs besides its code: files, downloads, environment variables, checkpoints, data sets by name."""

from __future__ import annotations

import ast
import re

from pipeline.tracing.arguments import literal
from pipeline.tracing.callgraph import Reaching
from pipeline.tracing.program import Module, Program, dotted

__all__ = ["data_needs"]

_READERS = re.compile(
    r"(?:^|\.)(?:read_csv|read_json|read_parquet|read_pickle|read_excel|loadtxt|genfromtxt|loadmat|read_table|imread|"
    r"np\.load|numpy\.load|json\.load|pickle\.load|safe_load|load_npz|h5py\.File|ImageFolder|read_h5ad|OmegaConf\.load)$"
)
_NAMED = re.compile(
    r"(?:^|\.)(?:load_dataset|from_pretrained|fetch_openml|hf_hub_download|snapshot_download|create_model|pipeline)$"
)
_CHECKPOINT = re.compile(
    r"(?:^|\.)(?:torch\.load|load_state_dict|load_from_checkpoint|load_checkpoint|load_model|restore)$"
)
_DOWNLOAD = re.compile(
    r"(?:^|\.)(?:urlopen|urlretrieve|requests\.get|wget\.download|gdown\.download|download_url|get_file)$"
)
_BUNDLED = re.compile(
    r"(?:^|\.)datasets\.(?:CIFAR\w*|MNIST|FashionMNIST|ImageNet|SVHN|STL10|Planetoid|TUDataset|fetch_\w+)$"
)
_WRITING = ("w", "a", "x")
_MEANINGLESS = {"path", "file", "filename", "filepath", "file_path", "stream", "fname", "infile", "self.path", "handle"}


def data_needs(program: Program, module: Module, reaching: Reaching) -> list[str]:
    """Needs of everything that is reached, each with its place, in order of first use."""
    found: dict[str, None] = {}
    assert module.unit.tree is not None
    bodies: list[tuple[Module, ast.AST]] = [
        (module, statement)
        for statement in module.unit.tree.body
        if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    ]
    for reached in reaching.functions:
        home = program.module(reached.definition.path)
        if home is not None:
            bodies.append((home, reached.definition.node))
    for home, body in bodies:
        for node in ast.walk(body):
            for need in _needs(node):
                found.setdefault(f"{need} ({home.path}:{home.unit.line(getattr(node, 'lineno', 1))})")
    return list(found)


def _needs(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        text = node.value.strip()
        return [f"URL {text}"] if re.match(r"https?://\S+$", text) else []
    if isinstance(node, ast.Subscript) and dotted(node.value) in {"os.environ", "environ"}:
        name = literal(node.slice)
        return [f"environment variable {name}"] if name and isinstance(node.ctx, ast.Load) else []
    return _call_needs(node) if isinstance(node, ast.Call) else []


def _call_needs(node: ast.Call) -> list[str]:
    name = dotted(node.func) or (node.func.attr if isinstance(node.func, ast.Attribute) else "")
    argument = _argument(node)
    if _BUNDLED.search(name):
        return [f"data set {name.rsplit('.', 1)[-1]}"]
    if not argument:
        return []
    if name in {"os.getenv", "getenv", "os.environ.get", "environ.get"}:
        return [f"environment variable {argument}"]
    if name == "open":
        return [] if _mode(node).startswith(_WRITING) else [f"file {argument}"]
    kinds = ((_READERS, "file"), (_NAMED, "data set or model"), (_CHECKPOINT, "checkpoint"), (_DOWNLOAD, "download"))
    return [f"{word} {argument}" for pattern, word in kinds if pattern.search(name)][:1]


def _mode(node: ast.Call) -> str:
    if len(node.args) > 1:
        return literal(node.args[1]) or "r"
    return literal(next((word.value for word in node.keywords if word.arg == "mode"), None)) or "r"


def _argument(node: ast.Call) -> str:
    """The first argument as text: a constant, or the expression that computes it."""
    first = (
        node.args[0]
        if node.args
        else next((word.value for word in node.keywords if word.arg in {"path", "name", "url", "repo_id"}), None)
    )
    if first is None:
        return ""
    value = literal(first)
    if value is not None:
        return value
    text = ast.unparse(first)
    if not any(isinstance(part, ast.Constant) and isinstance(part.value, str) for part in ast.walk(first)):
        return "" if len(text) <= 4 or text in _MEANINGLESS else f"`{text}`" if len(text) <= 60 else ""
    return f"`{text}`" if len(text) <= 80 else ""
