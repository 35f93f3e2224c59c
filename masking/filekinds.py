"""Kinds of files that the mask tells apart by their path alone: README, results, documents, the paper's LaTeX.

Non-goal: what a file holds (`probe.py`).
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Final

from masking.numbers import TextKind

__all__ = [
    "is_code",
    "is_document",
    "is_latex_byproduct",
    "is_list",
    "is_prose",
    "is_result_path",
    "is_root_readme",
    "is_text_throughout",
    "states_results",
    "text_kind",
]

_RESULT_DIRECTORIES: Final = frozenset(
    ["results", "result", "outputs", "output", "logs", "log", "runs", "wandb", "tensorboard", "lightning_logs",
     "mlruns"]
)  # fmt: skip
_RESULT_SUFFIXES: Final = frozenset(
    [".csv", ".tsv", ".json", ".jsonl", ".yaml", ".yml", ".log", ".txt", ".out", ".md", ".html", ".tex", ".png", ".jpg",
     ".jpeg", ".gif", ".svg", ".pdf", ".eps", ".npz", ".npy", ".pkl", ".pickle", ".parquet", ".xlsx", ".wandb"]
)  # fmt: skip
_STATED_RESULTS: Final = _RESULT_SUFFIXES - {".yaml", ".yml"} | {".rst", ".htm", ".org", ".adoc", ".tex", ".bbl"}
_LATEX: Final = frozenset(
    [".tex", ".bbl", ".aux", ".blg", ".log", ".out", ".toc", ".lof", ".lot", ".fls", ".fdb_latexmk", ".pdf", ".ps",
     ".dvi", ".gz"]
)  # fmt: skip
_KEPT_PROSE: Final = re.compile(r"^(licen[cs]e|copying|notice|requirements.*|constraints.*)(\.\w+)?$", re.IGNORECASE)
_BIBLIOGRAPHY: Final = frozenset({".cff", ".bib"})


_LISTS: Final = frozenset({".yaml", ".yml", ".json", ".toml", ".ini", ".cfg", ".sh", ".bash"})
_PROSE: Final = frozenset({".md", ".markdown", ".rst", ".txt", ".tex", ".html", ".htm", ".org", ".adoc", ".bbl"})
_TABLE: Final = frozenset({".csv", ".tsv"})
_CODE: Final = frozenset(
    {".py", ".pyx", ".sh", ".bash", ".r", ".jl", ".c", ".cc", ".cpp", ".cu", ".h", ".js", ".lua", ".m", ".ipynb"}
)


def is_prose(path: str) -> bool:
    """Is the file something that people read: documentation, a page, plain text?"""
    name = PurePosixPath(path)
    return name.suffix.lower() in _PROSE or (not name.suffix and name.name.upper().startswith("README"))


def is_code(path: str) -> bool:
    """Is the file a program (a notebook counts)?"""
    return PurePosixPath(path).suffix.lower() in _CODE


def is_list(path: str) -> bool:
    """Is the file a list of settings or commands, which resembles its siblings by nature?"""
    return PurePosixPath(path).suffix.lower() in _LISTS


def text_kind(path: str) -> TextKind:
    """How numbers of a file are associated with names (see `masking.numbers`)."""
    if is_prose(path):
        return "prose"
    return "table" if PurePosixPath(path).suffix.lower() in _TABLE else "code"


def is_root_readme(path: str) -> bool:
    """Is it a README at the root of the repository?"""
    return "/" not in path and path.lower().startswith("readme")


def is_result_path(path: str) -> bool:
    """Is it a data file in a directory for results, or an event file of TensorBoard?"""
    name = PurePosixPath(path)
    inside = any(part.lower() in _RESULT_DIRECTORIES for part in name.parts[:-1])
    events = name.name.startswith("events.out.tfevents")
    return (inside and name.suffix.lower() in _RESULT_SUFFIXES) or events


def states_results(path: str) -> bool:
    """May all of it go because of a number? Results, documents, notebooks and tests; not code or settings."""
    name = PurePosixPath(path)
    test = any(part.lower().startswith("test") for part in name.parts)
    suffix = name.suffix.lower()
    return test or is_prose(path) or suffix in _STATED_RESULTS or suffix == ".ipynb"


def is_document(path: str) -> bool:
    """Is it prose that may describe the experiment? Licences, notices and lists of requirements are not."""
    return is_prose(path) and not _KEPT_PROSE.match(PurePosixPath(path).name)


def is_text_throughout(path: str) -> bool:
    """Is all of it text that nothing runs: prose, or a bibliography?"""
    return is_prose(path) or PurePosixPath(path).suffix.lower() in _BIBLIOGRAPHY


def is_latex_byproduct(path: str, source: PurePosixPath) -> bool:
    """Is it what LaTeX makes of this source, or its PDF's source?"""
    name = PurePosixPath(path)
    stem = name.name.removesuffix(".synctex.gz").removesuffix(name.suffix)
    return name.parent == source.parent and stem == source.stem and name.suffix.lower() in _LATEX
