"""Is a submission a copy of a sibling: another experiment of the same paper, whose script was left in the repository?

Experiments of one paper share nearly everything: loading, training, averaging, printing. A copy of one that was left
says 19 of the 20 requirements of another, and carries none of it out. What tells them apart is what only the original
of this task says: its own settings, values and names of variants. A program that is for the most part the lines of one
kept file and says next to nothing of that is the other experiment. Whoever starts from a sibling and adapts it says
the specific part, and is judged requirement by requirement like everybody.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evaluation.integrity.material import Material, read_text
from evaluation.judges.features import NAME, Features, coverage, features_of_file
from evaluation.submission import REPRODUCE
from pipeline.task import ExperimentTruth

__all__ = ["Sibling", "copied_sibling"]

_PROGRAMS: Final = (".py", ".ipynb", ".sh")
_SETTINGS: Final = (".yaml", ".yml", ".json", ".toml", ".cfg", ".ini", ".sh")
_COPIED: Final = 0.75
"""Share of a program's lines that one kept file has, too. Copies of siblings have all of them; on two worked examples
the eight originals share .29 to .62 with their most similar sibling."""
_SPECIFIC: Final = 0.25
"""Share of what only the original says. Copies of siblings on two worked examples: at most .17; the originals: 1.00."""
_TELLING: Final = 2
"""Features below which nothing tells the experiment from its siblings; then only a verbatim copy, started without
settings of its own, is called one."""
_LINES: Final = 8
_MANY: Final = 400
_MOST_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class Sibling:
    """The kept file that a program is a copy of."""

    program: str
    """File of the submission."""
    path: str
    """File of the repository."""
    lacking: tuple[str, ...]
    """What tells the task's experiment apart and the submission does not say."""

    @property
    def reason(self) -> str:
        """For the verdicts."""
        told = f"{self.program} is a copy of {self.path}, another experiment"
        return f"{told} (of this one it lacks: {', '.join(self.lacking[:_MOST_NAMED])})" if self.lacking else told


def copied_sibling(
    truth: ExperimentTruth, material: Material, patch: Features, files: dict[str, str]
) -> Sibling | None:
    """The sibling that the submission's programs are a copy of; None: it is work of its own, or nothing tells.

    Args:
        truth: with the source scripts of this task.
        material: of the episode.
        patch: features of all that was handed in.
        files: path -> text of what was handed in.
    """
    programs = {path: text for path, text in files.items() if path.endswith((".py", ".ipynb")) and _lines(text)}
    masked = material.task.masked_repository
    if not programs or masked is None or not masked.is_dir():
        return None
    kept = _kept_files(masked)
    copies = {path: _most_like(text, kept) for path, text in programs.items()}
    if any(share < _COPIED for _, share in copies.values()):
        return None  # something of its own is in it
    own = _telling(truth, material, kept)
    if len(own.weights) < _TELLING:
        if not _nothing_of_its_own(material, files, kept, copies):
            return None
    elif coverage(own, patch, exact=frozenset(own.weights)) >= _SPECIFIC:
        return None
    program = max(programs, key=lambda path: (len(programs[path]), path))
    lacking = sorted(own.weights, key=lambda name: (-own.weights[name], name))
    names = tuple(dict.fromkeys(name.partition(":")[2] for name in lacking if name not in patch.weights))
    return Sibling(program=program, path=copies[program][0], lacking=names)


def _nothing_of_its_own(
    material: Material, files: dict[str, str], kept: dict[str, str], copies: dict[str, tuple[str, float]]
) -> bool:
    """Are programs and settings verbatim those that were left, started as they are?"""
    texts = set(kept.values())
    settings = [text for path, text in files.items() if path.endswith(_SETTINGS) and path != REPRODUCE]
    if any(share < 1.0 for _, share in copies.values()) or any(text not in texts for text in settings):
        return False
    lines = [line for line in material.reproduce.split("\n") for path in copies if posixpath.basename(path) in line]
    return not any(line.rpartition(posixpath.basename(path))[2].strip(" \"'") for line in lines for path in copies)


def _kept_files(root: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in sorted(root.rglob("*"))[: 10 * _MANY]:
        relative = path.relative_to(root)
        if ".git" in relative.parts or path.is_symlink() or not path.is_file():
            continue
        if path.suffix in {*_PROGRAMS, *_SETTINGS} and len(found) < _MANY:
            found[relative.as_posix()] = read_text(path)
    return found


def _lines(text: str) -> list[str]:
    """Lines that say something, without their layout; none for a program that is too short to be anybody's."""
    found = [re.sub(r"\s+", "", line.partition("#")[0]) for line in text.split("\n")]
    found = [line for line in found if len(line) > 3]
    return found if len(found) >= _LINES else []


def _most_like(text: str, kept: dict[str, str]) -> tuple[str, float]:
    """(kept file, share of the lines of `text` that it has)."""
    lines = _lines(text)
    best = ("", 0.0)
    for path, other in kept.items():
        there = set(_lines(other)) if path.endswith(_PROGRAMS) else set()
        share = sum(line in there for line in lines) / len(lines)
        if share > best[1]:
            best = (path, share)
    return best


def _telling(truth: ExperimentTruth, material: Material, kept: dict[str, str]) -> Features:
    """What only the original's scripts and settings say: calls, keys and numbers, no wording and no local names."""
    said: set[str] = set()
    for path, text in kept.items():
        said |= {_plain(name) for name in features_of_file(path, _code(path, text)).weights}
    found = Features()
    root = material.task.original_tree
    for script in truth.sources:
        target = root / script.path if root is not None else None
        if target is None or not target.is_file():
            continue
        text = _code(script.path, read_text(target))
        for name, weight in features_of_file(script.path, text).weights.items():
            kind, _, value = name.partition(":")
            telling = kind == "number" or (kind in {"text", "call"} and re.fullmatch(r"[A-Za-z][\w-]{2,}", value))
            if telling and weight > NAME and _plain(name) not in said and f"def {value}" not in text:
                found.add(name, weight)
    return found


def _plain(feature: str) -> str:
    """A feature without its kind: a key here may be an argument's name there."""
    return feature.partition(":")[2].lower()


def _code(path: str, text: str) -> str:
    """Settings and shell scripts without their comments, which are wording."""
    return re.sub(r"(?m)(^|\s)#.*$", "", text) if path.endswith(_SETTINGS) else text
