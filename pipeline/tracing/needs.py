"""What a run needs besides its code: files it reads, downloads, environment variables, checkpoints, data sets by name."""

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


def data_needs(program: Program, module: Module, reaching: Reaching) -> list[str]:
    """Needs of everything that is reached, each with its place, in order of first use."""
    found: dict[str, None] = {}
    bodies: list[tuple[Module, ast.AST]] = []
    assert module.unit.tree is not None
    for node in module.unit.tree.body:
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            bodies.append((module, node))
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
    if (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.match(r"https?://\S+$", node.value.strip())
    ):
        return [f"URL {node.value.strip()}"]
    if isinstance(node, ast.Subscript) and dotted(node.value) in {"os.environ", "environ"}:
        name = literal(node.slice)
        return [f"environment variable {name}"] if name and isinstance(node.ctx, ast.Load) else []
    if not isinstance(node, ast.Call):
        return []
    name = dotted(node.func) or (node.func.attr if isinstance(node.func, ast.Attribute) else "")
    argument = _argument(node)
    if name in {"os.getenv", "getenv", "os.environ.get", "environ.get"}:
        return [f"environment variable {argument}"] if argument else []
    if name == "open" or name.endswith(".open"):
        mode = (
            literal(node.args[1])
            if len(node.args) > 1
            else literal(next((w.value for w in node.keywords if w.arg == "mode"), None))
        )
        if (mode or "r").startswith(_WRITING) or not argument or name != "open":
            return []
        return [f"file {argument}"]
    for pattern, word in (
        (_READERS, "file"),
        (_NAMED, "data set or model"),
        (_CHECKPOINT, "checkpoint"),
        (_DOWNLOAD, "download"),
        (_BUNDLED, "data set"),
    ):
        if pattern.search(name):
            if word == "data set":
                return [f"data set {name.rsplit('.', 1)[-1]}"]
            return [f"{word} {argument}"] if argument else []
    return []


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
    return f"`{text}`" if len(text) <= 80 else ""
