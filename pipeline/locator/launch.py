"""From a command as people write it to one that starts with `python` or `bash` and names what it runs.

Launchers (`torchrun`, `accelerate launch`, `srun`, `uv run`, `nohup`) are taken off or replaced by the module that they
are, because a chain is re-run without a shell and without a cluster.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["HARMLESS_VARIABLES", "HELP", "Launch", "is_placeholder", "is_python", "normalise", "without_launchers"]

HARMLESS_VARIABLES: Final = frozenset(
    {
        "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "TOKENIZERS_PARALLELISM",
        "PYTHONUNBUFFERED", "PYTHONWARNINGS", "CUDA_DEVICE_ORDER", "NCCL_DEBUG", "TF_CPP_MIN_LOG_LEVEL",
        "CUDA_LAUNCH_BLOCKING", "PYTHONHASHSEED", "OPENBLAS_NUM_THREADS", "HYDRA_FULL_ERROR",
    }
)  # fmt: skip
"""Variables that choose devices, threads or logging: without them a program computes the same."""
HELP: Final = frozenset(
    {"--help", "-h", "--helpfull", "--helpshort", "--version", "--dry-run", "--dry_run", "--dryrun"}
)
"""With one of these a program tells about itself, or what it would do, and ends."""

_PYTHON = re.compile(r"^(?:.*/)?(?:python|ipython|py|pypy)[\d.]*$|^\$\{?\w*PYTHON\w*\}?$|^\{?python\}?$", re.I)
_PREFIXES: Final = {
    "sudo": 0, "nohup": 0, "time": 0, "exec": 0, "srun": 0, "stdbuf": 0, "xvfb-run": 0, "env": 0, "unbuffer": 0,
    "mpirun": 0, "mpiexec": 0, "nice": 0, "timeout": 1, "taskset": 1,
}  # fmt: skip
_RUNNERS: Final = {"uv", "poetry", "pipenv", "conda", "rye", "hatch", "pdm", "micromamba", "mamba", "pixi"}
_MODULES: Final = {
    "torchrun": ("torch.distributed.run",),
    "accelerate": ("accelerate.commands.launch",),
    "deepspeed": ("deepspeed.launcher.runner",),
    "pytest": ("pytest",),
    "jupyter": ("jupyter",),
}
_SHELLS: Final = {"bash", "sh", "zsh", "source", ".", "sbatch", "qsub", "dash"}
_LAUNCH_MODULES: Final = {
    "torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch", "deepspeed.launcher.runner",
    "jupyter", "nbconvert", "papermill", "pytest", "kernprof", "cProfile", "coverage",
}  # fmt: skip
_PLACEHOLDER = re.compile(
    r"<[^<>]+>|\{[^{}]+\}|\[[A-Za-z_][\w ]*\]|\.\.\.|\$|`|/path/to|path/to/|your[-_]|/your|^(?:XXX+|TODO)$|_HERE$|/xxx",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Launch:
    """A runnable command and what it runs."""

    argv: tuple[str, ...]
    target: str
    """The script's path as written, or the dotted name with `-m`."""
    module: bool
    arguments: tuple[str, ...]
    """What comes after the target."""


def is_placeholder(word: str) -> bool:
    """Does an argument stand for something that the reader has to fill in (`/path/to/data`, `<model>`, `$1`)?"""
    return bool(_PLACEHOLDER.search(word))


def is_python(word: str) -> bool:
    """Does a word start Python (`python3.11`, `/usr/bin/python`)?"""
    return bool(_PYTHON.match(word))


def normalise(argv: tuple[str, ...]) -> Launch | None:
    """The launch behind `argv`; None when it does not run a script or module (`pip install`, `python -c`)."""
    words = without_launchers(argv)
    if not words:
        return None
    head, rest = words[0], words[1:]
    if _PYTHON.match(head):
        return _python(rest)
    if head == "accelerate":
        return _python(["-m", *_MODULES[head], *rest[1:]]) if rest[:1] == ["launch"] else None
    if head in _MODULES:
        return _python(["-m", *_MODULES[head], *rest])
    if head.endswith(".py") and "/" in head:
        return _python(words)
    return _shell_script(words)


def without_launchers(argv: Sequence[str]) -> list[str]:
    """The words from the program on that launchers and prefixes (`srun`, `uv run`, `nohup`) start in the end."""
    words = list(argv)
    for _ in range(8):  # launchers nest (`nohup srun uv run torchrun`), never deeper
        if words and words[0] in _PREFIXES:
            words = _drop_options(words[1 + _PREFIXES[words[0]] :])
        elif words and words[0] in _RUNNERS and "run" in words[:3]:
            words = _drop_options(words[words.index("run") + 1 :])
        else:
            break
    return words


def _shell_script(words: list[str]) -> Launch | None:
    if words[0] in _SHELLS:
        words = words[1:]
        while words and words[0].startswith("-"):
            words = words[1:]
    elif "/" not in words[0]:
        return None
    if words and not words[0].startswith(("~", "/")) and re.search(r"\.(?:sh|bash|slurm|sbatch)$", words[0]):
        return Launch(("bash", *words), words[0], False, tuple(words[1:]))
    return None


def _drop_options(words: list[str]) -> list[str]:
    """Options of a prefix command (`srun --gres=gpu:1 -n 1 python ...`): everything up to the program."""
    if not words or not words[0].startswith("-"):
        return words
    for index, word in enumerate(words):
        if _PYTHON.match(word) or word in _MODULES or word in {"bash", "sh"} or re.search(r"\.(?:py|sh)$", word):
            return words[index:]
    return []


def _python(rest: list[str]) -> Launch | None:
    index = 0
    while index < len(rest):
        word = rest[index]
        if re.fullmatch(r"-[bBdEiIOqsSuvx]*m", word):  # `-um` is `-u -m`
            if index + 1 >= len(rest):
                return None
            name = rest[index + 1]
            following = rest[index + 2 :]
            if name in _LAUNCH_MODULES:
                return _launched(name, following)
            return Launch(("python", "-m", name, *following), name, True, tuple(following))
        if word in {"-c", "-V", "--version", "-"}:
            return None
        if word in {"-W", "-X"}:
            index += 2
        elif word.startswith("-"):
            index += 1
        else:
            break
    if index >= len(rest) or not re.search(r"\.(?:py|ipynb)$", rest[index]):
        return None
    return Launch(("python", *rest[index:]), rest[index], False, tuple(rest[index + 1 :]))


def _launched(name: str, words: list[str]) -> Launch | None:
    """The script behind a launcher module: the first `.py` or `.ipynb` argument, or its own `-m`."""
    for index, word in enumerate(words):
        if word == "-m" and index + 1 < len(words) and name != "pytest":
            return Launch(("python", "-m", name, *words), words[index + 1], True, tuple(words[index + 2 :]))
        if re.search(r"\.(?:py|ipynb)$", word):
            return Launch(("python", "-m", name, *words), word, False, tuple(words[index + 1 :]))
    return None
