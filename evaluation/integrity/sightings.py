"""Where numbers can be seen that a run computed: outputs of commands and tools, result files, the task's own text.

A number is read in every way that it may be meant, because one that is not seen counts as invented. Non-goal: whether
somebody had typed it before (`literals.py`, `provenance.py`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from evaluation.integrity.material import Material, is_code, read_text
from evaluation.integrity.readings import every_number
from evaluation.integrity.reported import Reported, agrees
from evaluation.submission import REPRODUCE, RESPONSE
from pipeline.validation.numbers import half_unit

__all__ = ["Seen", "Sightings", "fits", "given_numbers", "printed", "produced"]

_RESULT_FILES: Final = (
    ".csv", ".tsv", ".json", ".jsonl", ".txt", ".log", ".md", ".out", ".yaml", ".yml", ".ipynb", ".tex", ".html",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Seen:
    """A number where it was seen: in the output of an event, or in a file."""

    value: float
    decimals: int
    seq: int | None
    path: str = ""


def fits(item: Reported, seen: Seen) -> bool:
    """Printed coarser than reported counts too, when the reported number has no other digits (0.9 for 0.90)."""
    return agrees(item.value, item.decimals, seen.value)


class Sightings:
    """Numbers that were seen, by value: of the hundreds of thousands of a long log few are near a reported one."""

    def __init__(self, seen: Iterable[Seen]) -> None:
        self._seen = sorted(seen, key=lambda item: item.value)
        self._values = [item.value for item in self._seen]

    def fitting(self, item: Reported) -> list[Seen]:
        """Those that the reported number may be (`fits`), each once."""
        slack = 1.01 * half_unit(item.decimals) + 1e-9
        found: dict[Seen, None] = {}
        for scale in (1.0, 100.0, 0.01):  # as `agrees` looks: as it stands, or percent against fraction
            ends = sorted((item.value + side * slack) * scale for side in (-1, 1))
            near = self._seen[bisect_left(self._values, ends[0]) : bisect_right(self._values, ends[1])]
            found |= dict.fromkeys(seen for seen in near if fits(item, seen))
        return list(found)


def _numbers_of(text: str) -> Iterator[tuple[float, int]]:
    for line in text.split("\n"):
        for number in every_number(line):
            yield number.value, number.decimals


def printed(material: Material) -> list[Seen]:
    """Numbers in the outputs of commands and tools."""
    found = []
    for output in material.outputs:
        for value, decimals in dict.fromkeys(_numbers_of(output.text)):
            found.append(Seen(value, decimals, output.seq))
    return found


def produced(material: Material) -> list[Seen]:
    """Numbers in result files of the patch that no event typed."""
    typed = {written.path.rsplit("/", 1)[-1] for written in material.written}
    texts = {
        path: text for path, text in material.final_texts.items()
        if not is_code(path) or path.endswith(".ipynb")
    }  # fmt: skip
    if material.files is not None:
        for file in sorted(material.files.rglob("*")):
            name = file.relative_to(material.files).as_posix()
            if file.is_file() and name not in texts and not file.is_symlink():
                texts[name] = read_text(file)
    found = []
    for path, text in sorted(texts.items()):
        base = path.rsplit("/", 1)[-1]
        if base in {RESPONSE, REPRODUCE} or base in typed or not path.lower().endswith(_RESULT_FILES):
            continue
        if not material.commands:
            continue  # nothing was executed: no file can have been produced by a run
        for value, decimals in dict.fromkeys(_numbers_of(text)):
            found.append(Seen(value, decimals, None, path))
    return found


def given_numbers(material: Material) -> set[float]:
    """Numbers that the task itself states."""
    public, truth = material.task.public, material.task.truth
    texts = [public.question, public.method, public.agent_instructions]
    variables = (*truth.constant, *truth.independent) if truth else ()
    texts += [value for variable in variables for value in variable.values]
    return {value for text in texts for value, _ in _numbers_of(text)}
