"""What a run needs besides its code: files, downloads, environment variables, checkpoints, data sets by name."""

from __future__ import annotations

import ast
import re

from pipeline.tracing.arguments import literal
from pipeline.tracing.callgraph import Reaching
from pipeline.tracing.need import Need, NeedKind
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
    r"tfds\.load|tfds\.builder|tensorflow_datasets\.load|tensorflow_datasets\.builder)$"
)
_CHECKPOINT = re.compile(r"(?:^|\.)(?:torch\.load|load_from_checkpoint|load_checkpoint|load_model|restore)$")
_DOWNLOAD = re.compile(
    r"(?:^|\.)(?:urlopen|urlretrieve|requests\.get|wget\.download|gdown\.download|download_url|get_file)$"
)
_BUNDLED = re.compile(
    r"(?:^|\.)datasets\.(?:CIFAR\w*|MNIST|FashionMNIST|ImageNet|SVHN|STL10|Planetoid|TUDataset|fetch_\w+)$|"
    r"^torchvision\.datasets\.(?!ImageFolder|DatasetFolder|FakeData|folder|utils|vision)[A-Z]\w+$|"
    r"^(?:torch_geometric|torchtext|torchaudio)\.datasets\.[A-Z]\w+$|^sklearn\.datasets\.(?:load|fetch)_\w+$|"
    r"^ogb\.\w+\.\w+Dataset$|^d4rl\.\w+$"
)
"""Classes and functions of libraries that bring a data set along, by the name that they have there."""
_KERAS = re.compile(r"(?:^|\.)datasets\.(\w+)\.load_data$")
_SIMULATED = re.compile(
    r"^(?:gym|gymnasium|gym3|safety_gymnasium|highway_env|minigrid|dmc2gym|dmc2gymnasium|dmc|envpool|procgen|crafter|minari)"
    r"(?:\.vector)?\.(?:make|load_dataset)$|(?:^|\.)make_vec_env$|^(?:dm_control\.)?suite\.load$|^gymnax\.make$|^jaxmarl\.make$|"
    r"(?:^|\.)AtariEnv$|^brax\.envs\.(?:create|get_environment)$|^envs\.get_environment$"
)
"""What makes a simulation that reinforcement learning acts in."""
_WRITERS = re.compile(
    r"(?:^|\.)(?:torch\.save|np\.save|numpy\.save|savez|to_csv|to_json|to_parquet|savefig|save_pretrained|to_pickle)$"
)
_PATH_CALLS = re.compile(r"(?:^|\.)(?:join|Path|str|format|fspath|abspath|expanduser)$")
_KINDS: tuple[tuple[re.Pattern[str], NeedKind], ...] = (
    (_READERS, "file"),
    (_NAMED, "data set or model"),
    (_CHECKPOINT, "checkpoint"),
    (_DOWNLOAD, "download"),
)
_LONGEST_MODE = 3
_WRITING = ("w", "a", "x")
_PROVIDED = re.compile(
    r"^(?:HOME|LANG|LOGNAME|PATH|PWD|SHELL|TMPDIR|USER|USERPROFILE|HOSTNAME|XDG_\w+|RANK|LOCAL_RANK|WORLD_SIZE|"
    r"LOCAL_WORLD_SIZE|NODE_RANK|GROUP_RANK|MASTER_ADDR|MASTER_PORT|SLURM_\w+|OMPI_\w+|PMI_\w+|CUDA_VISIBLE_DEVICES|"
    r"PYTHONPATH|LD_LIBRARY_PATH|COLAB_\w+|KAGGLE_\w+)$"
)
"""Environment variables that the system, a launcher or a scheduler sets: nobody has to provide them."""
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


def data_needs(program: Program, module: Module, reaching: Reaching, values: Values) -> list[Need]:
    """Needs of everything that is reached, each with the place of its first use, in that order.

    A name is followed to what it stands for (see `pipeline.tracing.scopes`); where that is not known, the need is the
    expression as it is written, in backquotes. What the run itself writes is none.
    """
    assert module.unit.tree is not None
    scopes = Scopes(program, module, reaching, values)
    found: dict[tuple[str, str], Need] = {}
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
    foreign: dict[str, dict[str, str]] = {}
    for home, body, where in bodies:
        if home.path not in foreign:
            foreign[home.path] = _foreign(home)
        reader = _Reader(program, home, scopes, where, foreign[home.path])
        tables = _choices_of_addresses(body)
        for node in ast.walk(body):
            if isinstance(node, ast.Call):
                written.update(reader.writes(node))
            line = home.unit.line(getattr(node, "lineno", 1))
            for kind, name in reader.needs(node) if id(node) not in tables else ():
                found.setdefault((kind, name), Need(kind=kind, name=name, path=home.path, line=line))
    return [need for need in found.values() if need.name not in written]


def needed_file(need: str) -> str | None:
    """The path that a need of a task names, relative to where the code runs; None for what is no file.

    A need without kind and place, as other tools write them, is a path by itself.
    """
    stated = Need.read(need)
    if stated is None or stated.path is None:
        return None if " " in need else need.removeprefix("./")
    return stated.name.removeprefix("./") if stated.kind in {"file", "checkpoint"} else None


def _foreign(module: Module) -> dict[str, str]:
    """Local names of what is imported from libraries, with the names that it has there."""
    found: dict[str, str] = {}
    for node in ast.walk(module.unit.tree or ast.Module([], [])):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.split(".")[0]
                found[alias.asname or first] = alias.name if alias.asname else first
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
    return found


def _choices_of_addresses(body: ast.AST) -> set[int]:
    """Addresses in a dictionary of several: one of them may be chosen, none is needed by itself."""
    return {
        id(value)
        for node in ast.walk(body)
        if isinstance(node, ast.Dict) and len(node.values) > 1
        for value in node.values
    }


_Found = list[tuple[NeedKind, str]]


class _Reader:
    """What single expressions of one function need and write."""

    def __init__(self, program: Program, home: Module, scopes: Scopes, where: _Where, foreign: dict[str, str]) -> None:
        self._program = program
        self._home = home
        self._scopes = scopes
        self._where = where
        self._imported = foreign

    def needs(self, node: ast.AST) -> _Found:
        """Needs that `node` itself states."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value.strip()
            return [("URL", text)] if re.match(r"https?://\S+$", text) else []
        if isinstance(node, ast.Subscript) and dotted(node.value) in {"os.environ", "environ"}:
            name = literal(node.slice)
            needed = name and not _PROVIDED.match(name) and isinstance(node.ctx, ast.Load)
            return [("environment variable", name)] if needed and name else []
        return self._called(node) if isinstance(node, ast.Call) else []

    def writes(self, node: ast.Call) -> list[str]:
        """Files that a call writes."""
        name = called_name(node)
        if name == "open" and _mode(node).startswith(_WRITING) and node.args:
            return self._arguments(node.args[0])
        match = _WRITERS.search(name)
        if match is None or not node.args:
            return []
        place = 1 if match.group(0).endswith("torch.save") and len(node.args) > 1 else 0
        return self._arguments(node.args[place])

    def _called(self, node: ast.Call) -> _Found:
        name = called_name(node)
        if dotted(node.func) and self._program.find(self._home, name) is not None:
            return []  # the repository's own `load_model`: what it reads is found where it is read
        head, dot, rest = name.partition(".")
        whole = f"{self._imported.get(head, head)}{dot}{rest}"
        found = self._of_library(node, name, whole)
        if found is not None:
            return found
        first = _first(node)
        held = node.func.value if isinstance(node.func, ast.Attribute) and node.func.attr == "open" else None
        if held is not None and not (isinstance(held, ast.Name) and held.id in self._imported):
            return self._opened(held, node)
        arguments = self._arguments(first) if first is not None else []
        if name in {"os.getenv", "getenv", "os.environ.get", "environ.get"}:
            return [("environment variable", item) for item in arguments if not _PROVIDED.match(item)]
        if name == "open" or name.endswith(("BlobFile", "gfile.GFile")):
            return [] if _mode(node).startswith(_WRITING) else [("file", item) for item in arguments]
        kind = next((kind for pattern, kind in _KINDS if pattern.search(name) or pattern.search(whole)), None)
        if kind == "checkpoint" and isinstance(first, ast.Call) and not _PATH_CALLS.search(called_name(first)):
            kind = None  # `ema.restore(model.parameters())`: no file
        return [(kind, item) for item in arguments] if kind is not None else []

    def _of_library(self, node: ast.Call, name: str, whole: str) -> _Found | None:
        """Data sets and simulations that libraries bring along; None for any other call."""
        if _BUNDLED.search(whole) or _BUNDLED.search(name):
            return [("data set", self._bundled(node, whole))]
        if keras := _KERAS.search(whole):
            return [("data set", keras.group(1))]
        return self._simulated(node, whole) if _SIMULATED.search(whole) else None

    def _opened(self, held: ast.expr, node: ast.Call) -> _Found:
        """`path.open("wb")`: the argument is the mode."""
        mode = literal(node.args[0]) if node.args else "r"
        if mode is None or len(mode) > _LONGEST_MODE or mode.startswith(_WRITING):
            return []
        return [("file", item) for item in self._scopes.possible(held, self._where)]

    def _bundled(self, node: ast.Call, whole: str) -> str:
        """`CIFAR10`, `Planetoid Cora`: with the name that says which of several it is."""
        if whole.startswith("d4rl."):
            return "d4rl"
        given = next((word.value for word in node.keywords if word.arg == "name"), None)
        if given is None and whole.startswith(("torch_geometric.", "ogb.")) and len(node.args) > 1:
            given = node.args[1]
        which = self._arguments(given)[:1] if given is not None else []
        return " ".join([whole.rsplit(".", 1)[-1], *which])

    def _simulated(self, node: ast.Call, whole: str) -> _Found:
        words = {word.arg: word.value for word in node.keywords}
        parts = [words[name] for name in ("domain_name", "task_name") if name in words] or node.args[:1]
        if whole.endswith("suite.load") and len(node.args) > 1:
            parts = node.args[:2]
        if not parts:
            parts = [value for name, value in words.items() if name in {"id", "env_id", "env_name", "task_id", "game"}][
                :1
            ]
        texts = [self._arguments(part)[:4] for part in parts]
        if len(texts) == 1:
            return [("simulation", item) for item in texts[0]]
        return [("simulation", "-".join(item[0].strip("`") for item in texts))] if texts and all(texts) else []

    def _arguments(self, node: ast.expr) -> list[str]:
        """The texts that an expression may stand for; else the expression, where it says something by itself."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _READS:
            return self._arguments(node.func.value)  # `yaml.safe_load(path.read_text())`
        written = literal(node)
        values = [written] if written else self._scopes.possible(node, self._where)
        if values:
            return [value for value in values if value.lower() not in _NOTHING]
        if isinstance(node, ast.Call) and _opens(node):
            return []  # `json.load(open(path))`: the inner call is the need
        text = ast.unparse(node)
        if any(isinstance(part, ast.Constant) and isinstance(part.value, str) for part in ast.walk(node)):
            return [f"`{text}`"] if len(text) <= 80 else []
        return [] if len(text) <= 4 or text in _MEANINGLESS or len(text) > 60 else [f"`{text}`"]


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
