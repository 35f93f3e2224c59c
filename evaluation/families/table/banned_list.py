"""Which libraries a task bans, read from its texts (PRBench A, B.4: the instruction's and the graders' lists).

Three forms occur: a table with a column "Banned", bullet points below a heading that says so, and sentences ("do not
use `X`"). Text beside the names in a table's cell makes a ban conditional ("`SymPy` for numerical computation"): using
such a library is a suspicion for a person, not a violation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from evaluation.families.table.records import TableTask
from pipeline.schema import Record

__all__ = ["BannedLibrary", "banned_in_text", "banned_libraries"]

_BAN: Final = re.compile(
    r"\b(?:banned|forbidden|prohibited|disallowed|not\s+allowed|do\s+not\s+use)\b|禁止", re.IGNORECASE
)
_SENTENCE: Final = re.compile(
    r"\b(?:do\s+not|don't|must\s+not|may\s+not|never|without|cannot)\s+(?:\w+\s+){0,2}?(?:use|using|import|importing|call)\b"
    r"(?P<rest>(?:[^.\n|]|\.(?=\w))*)|\b(?:banned|forbidden|prohibited|disallowed)\b(?P<after>(?:[^.\n|]|\.(?=\w))*)",
    re.IGNORECASE,
)
_ALLOWED: Final = re.compile(
    r"[;,(]\s*(?:but\s+|please\s+)?(?:use|prefer|try)\b|\b(?:instead|allowed|use only|except|other than|rather)\b|→|->"
)
_CODE: Final = re.compile(r"`([A-Za-z][\w.-]*)`")
_NAME: Final = re.compile(r"[A-Za-z][\w.-]*")

_MODULES: Final[dict[str, tuple[str, ...]]] = {
    "pytorch": ("torch", "torchvision", "torchaudio"),
    "tensorflow": ("tensorflow", "tf_keras"),
    "scikit-learn": ("sklearn",),
    "sklearn": ("sklearn",),
    "opencv": ("cv2",),
    "itensor": ("itensor", "itensors", "itensorpy"),
    "alps": ("alps", "pyalps"),
    "jax": ("jax", "jaxlib", "flax"),
    "edkit": ("edkit", "ed_kit"),
    "netket": ("netket",),
    "pyscf": ("pyscf",),
}
"""Libraries whose modules are not called as they are; others are imported under their name in lower case."""


_COMMON: Final = frozenset({"numpy", "np", "scipy", "sp", "math", "pandas", "pd", "matplotlib", "plt", "sklearn", "os"})


class BannedLibrary(Record):
    """A library that must not be used."""

    name: str
    """As the task writes it."""
    modules: tuple[str, ...]
    """Top-level names under which it is imported, in lower case."""
    conditional: bool = False
    """Banned for some uses only."""
    source: str = ""


def banned_libraries(task: TableTask) -> list[BannedLibrary]:
    """What a task bans: in its configuration, its instruction and its graders' text."""
    own = [BannedLibrary(name=name, modules=_modules_of(name), source="task.yaml") for name in task.banned]
    told = banned_in_text(task.instruction, task.instruction_file)
    return _united([*own, *told, *banned_in_text(task.metadata, task.metadata_file)])


def _modules_of(name: str) -> tuple[str, ...]:
    """Names, in lower case, under which a library is imported or installed."""
    lowered = name.lower()
    root = lowered.split(".", 1)[0]
    plain = (root.replace("-", "_"), root.replace("-", "").replace("_", ""))
    return tuple(dict.fromkeys((*_MODULES.get(lowered, ()), *plain)))


def banned_in_text(text: str, source: str) -> list[BannedLibrary]:
    """The libraries that a Markdown text bans, in order of first mention."""
    found: list[BannedLibrary] = []
    heading, column = False, -1
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("|"):
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", stripped.strip("|"))]
            header = next((at for at, cell in enumerate(cells) if _BAN.search(cell) and not _CODE.search(cell)), -1)
            if column < 0 and header >= 0:
                column = header
            elif 0 <= column < len(cells) and not re.fullmatch(r"[\s:|-]*", stripped):
                found += _of_cell(cells[column], source)
            continue
        column = -1
        if stripped.startswith("#"):
            heading = bool(_BAN.search(stripped))
        elif heading and re.match(r"[-*+]|\d+[.)]", stripped):
            found += _named(_CODE.findall(_without_allowed(stripped)), source)
        elif stripped:
            for match in _SENTENCE.finditer(stripped):
                found += _named(_CODE.findall(_without_allowed(match["rest"] or match["after"] or "")), source)
    return _united(found)


def _of_cell(cell: str, source: str) -> list[BannedLibrary]:
    names = _CODE.findall(cell)
    plain = _CODE.sub(" ", cell)
    if not names:
        names = [name for name in re.split(r"[,;/]|\band\b|\bor\b", cell) if _NAME.fullmatch(name.strip())]
        return _named([name.strip() for name in names], source)
    rest = [word for word in re.findall(r"[A-Za-z]+", plain) if word.lower() not in {"and", "or", "etc", "any", "the"}]
    return [item.evolve(conditional=bool(rest)) for item in _named(names, source)]


def _without_allowed(text: str) -> str:
    """Up to where the text goes on with what may be used."""
    return _ALLOWED.split(text, maxsplit=1)[0]


def _named(names: Iterable[str], source: str) -> list[BannedLibrary]:
    files = (".py", ".md", ".csv", ".txt", ".yaml", ".json", ".npy", ".ipynb")
    return [
        BannedLibrary(name=name, modules=_modules_of(name), source=source)
        for name in names
        if not name.lower().endswith(files) and not _is_function(name)
    ]


def _is_function(name: str) -> bool:
    """`numpy.linalg.svd` bans a function of a library that everybody uses, not the library."""
    root, dot, _ = name.lower().partition(".")
    return bool(dot) and root in _COMMON


def _united(found: Iterable[BannedLibrary]) -> list[BannedLibrary]:
    """Each library once; banned without condition somewhere is banned."""
    by_name: dict[str, BannedLibrary] = {}
    for item in found:
        key = item.modules[0]
        known = by_name.get(key)
        if known is None or (known.conditional and not item.conditional):
            by_name[key] = item
    return list(by_name.values())
