"""From a command as people write it to one that starts with `python` or `bash` and names what it runs.

Launchers (`torchrun`, `accelerate launch`, `srun`, `uv run`, `nohup`) are taken off or replaced by the module that they
are, because a chain is re-run without a shell and without a cluster.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

__all__ = ["HARMLESS_VARIABLES", "Launch", "is_placeholder", "normalise"]

HARMLESS_VARIABLES: Final = frozenset(
    {
        "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "TOKENIZERS_PARALLELISM",
        "PYTHONUNBUFFERED", "PYTHONWARNINGS", "CUDA_DEVICE_ORDER", "NCCL_DEBUG", "TF_CPP_MIN_LOG_LEVEL",
        "CUDA_LAUNCH_BLOCKING", "PYTHONHASHSEED", "OPENBLAS_NUM_THREADS", "HYDRA_FULL_ERROR",
    }
)  # fmt: skip
"""Variables that choose devices, threads or logging: without them a program computes the same."""

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
_LAUNCH_MODULES: Final = {
    "torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch", "deepspeed.launcher.runner",
    "jupyter", "nbconvert", "papermill", "pytest", "kernprof", "cProfile", "coverage",
}  # fmt: skip
_PLACEHOLDER = re.compile(
    r"<[^<>]+>|\{[^{}]+\}|\[[A-Za-z_ ]+\]|\.\.\.|\$|`|/path/to|path/to/|your[-_]|/your|^(?:XXX+|TODO)$|_HERE$|/xxx",
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


def normalise(argv: tuple[str, ...]) -> Launch | None:
    """The launch behind `argv`; None when it does not run a script or module (`pip install`, `python -c`)."""
    words = list(argv)
    for _ in range(8):  # launchers nest (`nohup srun uv run torchrun`), never deeper
        if not words:
            return None
        head = words[0]
        if head in _PREFIXES:
            words = words[1 + _PREFIXES[head] :]
            words = _drop_options(words)
        elif head in _RUNNERS and "run" in words[:3]:
            words = _drop_options(words[words.index("run") + 1 :])
        else:
            break
    if not words:
        return None
    head, rest = words[0], words[1:]
    if _PYTHON.match(head):
        return _python(rest)
    if head in _MODULES:
        if head == "accelerate":
            if rest[:1] != ["launch"]:
                return None
            rest = rest[1:]
        return _python(["-m", *_MODULES[head], *rest])
    if head in {"bash", "sh", "zsh", "source", ".", "sbatch", "qsub", "dash"}:
        while rest and rest[0].startswith("-"):
            rest = rest[1:]
        if rest and not rest[0].startswith(("~", "/")) and re.search(r"\.(?:sh|bash|slurm|sbatch)$", rest[0]):
            return Launch(("bash", *rest), rest[0], False, tuple(rest[1:]))
        return None
    if head.endswith(".py") and "/" in head:
        return _python([head, *rest])
    if head.endswith((".sh", ".bash")) and "/" in head:
        return Launch(("bash", *words), head, False, tuple(rest))
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
        if word == "-m":
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
