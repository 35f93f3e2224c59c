"""A table task in two halves: instruction, paper and inputs; rubric, graders' text, true tables, reference code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from evaluation.exports.families.histogram import WITHHELD
from evaluation.families.table.csvfile import CsvTable, number_of, read_table
from evaluation.families.table.imported import task_files
from evaluation.families.table.reading import CODE_ONLY_SUFFIX, read_table_tasks
from evaluation.families.table.records import Mode, TableTask
from evaluation.families.table.workspace import public_files
from evaluation.task import EvaluationTask
from pipeline.digests import file_digest
from pipeline.formats.family_parts import FamilyPart, FamilyShape, WithheldFile, significant_digits
from pipeline.task import Family

__all__ = ["SHAPE", "parts"]

_TOLERANCE: Final = {"path": "string", "truth": "string", "relative": "float64", "absolute": "float64",
                     "keys": ["string"], "csv": "string"}  # fmt: skip
SHAPE: Final = FamilyShape(
    family=Family.TABLE,
    public={
        "published_id": "string", "author": "string", "doi": "string", "instruction": "string", "paper": "string",
        "inputs": ["string"], "analysis": ["string"], "code": ["string"], "data": ["string"],
        "requirements": ["string"], "code_only": "bool",
    },
    private={
        "dimensions": [{"name": "string", "weight": "float64", "description": "string"}], "tables": [_TOLERANCE],
        "graders_text": "string", "reference_code": [{"name": "string", "text": "string"}],
    },
    title="tables of a paper (PRBench)",
    about="the agent gets a paper and an instruction, implements the method from scratch and writes the paper's tables;"
    " `expbench score table` compares them with hidden ones.",
    chart=("Expected tables by table task", "tables"),
)  # fmt: skip
_MIN_LINE: Final = 60
"""Characters of a line of the graders' text that can only come from there; headings and formulas are shorter."""
_MIN_DIGITS: Final = 8
"""Significant digits in a row of numbers: fewer (`1, 0, 0`) occur in any text."""


def parts(directory: Path, tasks: Sequence[EvaluationTask], shared_papers: frozenset[str]) -> list[FamilyPart]:
    """See `evaluation.exports.families.forms.family_parts`; the code-only mode of a task comes with its full one."""
    known = {task.id: task for task in tasks}
    found, _ = read_table_tasks(directory, modes=(Mode.FULL,))
    return [
        _part(task, known[task.id], f"{task.id}{CODE_ONLY_SUFFIX}" in known, shared_papers)
        for task in found
        if task.id in known
    ]


def _part(task: TableTask, loaded: EvaluationTask, code_only: bool, shared_papers: frozenset[str]) -> FamilyPart:
    files = task_files(task)
    public = {task.instruction_file, *public_files(task)} & files.keys()
    paper = {name for name in public if name not in {task.instruction_file, *task.input_files}}
    kept = set() if loaded.public.paper.id in shared_papers else paper
    home = f"tasks/{task.id}"
    tables = {rule.truth: read_table(task.root / rule.truth) for rule in task.files}
    values = sum(number_of(cell) is not None for table in tables.values() for row in table.rows for cell in row)
    return FamilyPart(
        public=loaded.public,
        category=loaded.category,
        columns={
            "published_id": task.published_id, "author": task.author, "doi": task.doi,
            "instruction": task.instruction_file, "paper": task.paper_file, "inputs": list(task.input_files),
            "analysis": list(task.expected.analysis), "code": list(task.expected.code),
            "data": list(task.expected.data), "requirements": list(task.container.packages), "code_only": code_only,
        },
        truth={
            "dimensions": [item.model_dump(mode="json") for item in task.dimensions],
            "tables": [
                {"path": rule.path, "truth": rule.truth, "relative": rule.tolerance.relative,
                 "absolute": rule.tolerance.absolute, "keys": None if rule.keys is None else list(rule.keys),
                 "csv": task.read(rule.truth)}
                for rule in task.files
            ],
            "graders_text": task.metadata,
            "reference_code": [{"name": name, "text": text} for name, text in sorted(task.reference_code().items())],
        },
        public_files={f"{home}/{name}": files[name].read_bytes() for name in sorted(public - kept)},
        private_files={f"{home}/{name}": files[name].read_bytes() for name in sorted(files.keys() - public)},
        withheld=tuple(
            WithheldFile(path=f"{home}/{name}", sha256=file_digest(files[name]), why=WITHHELD) for name in sorted(kept)
        ),
        paper_files=tuple(f"{home}/{name}" for name in sorted(paper - kept)),
        figures={
            "tables": len(task.files), "expected values": values, "reference programs": len(task.reference_code()),
            "code-only mode": "yes" if code_only else "no",
        },
        sentences=tuple(_sentences(task)),
        runs=tuple(run for name, table in sorted(tables.items()) for run in _runs(name, table)),
    )  # fmt: skip


def _sentences(task: TableTask) -> Iterator[tuple[str, str]]:
    """Lines of the graders' text and of the reference programs that the agent's own material does not hold."""
    told = " ".join([task.instruction, task.read(task.paper_file), *(task.read(name) for name in task.input_files)])
    own = re.sub(r"\s+", " ", told)
    for field, text in (("graders' text", task.metadata), *sorted(task.reference_code().items())):
        for line in text.splitlines():
            flat = re.sub(r"\s+", " ", line).strip()
            if len(flat) >= _MIN_LINE and flat not in own:
                yield field, flat


def _runs(name: str, table: CsvTable) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Whole rows, since a few columns of one may be a grid that the instruction states."""
    for row in table.rows:
        numbers = tuple(value for cell in row if (value := number_of(cell)) is not None)
        if len(numbers) > 1 and sum(map(significant_digits, numbers)) >= _MIN_DIGITS:
            yield name, numbers
