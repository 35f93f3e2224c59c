"""Were the tables computed? PRBench 5.2.1 and B.4: values that are typed, copied, or come from no program.

The rules for all families (`evaluation.integrity`) look at programs and reported numbers; these look at the tables:
how many of a table's values stand as literals in the code or in what the agent typed, whether anything that was handed
in can have written it, and whether it is the truth itself to the last digit. Fitted curves that stand in for a
simulation are beyond rules: the judging model is asked about them.
"""

from __future__ import annotations

import ast
import bisect
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from evaluation.families.table.csvfile import CsvTable, number_of
from evaluation.integrity.literals import Stated, result_literals, significant_digits
from evaluation.integrity.material import Material
from evaluation.verdicts import Finding, ViolationKind
from pipeline.schema import Problem, Severity
from pipeline.task import Verdict
from pipeline.text import shorten
from pipeline.tracing.source import read_unit
from pipeline.validation.numbers import find_numbers

__all__ = ["SubmittedTable", "fabrication_findings", "identical_tables"]

_VIOLATION_SHARE: Final = 0.5
"""Of a table's values that are typed somewhere: more than constants, axes and published reference values explain."""
_SUSPICION_SHARE: Final = 0.2
_LEAST_VALUES: Final = 3
_DIGITS: Final = 3
"""Significant digits from which a number does not occur in a program by chance."""
_CLOSE_DIGITS: Final = 4
"""From which a value counts as typed when only the typed digits agree (noise behind them)."""
_TEXT_NUMBERS: Final = 6
"""Numbers in one text constant from which it is a table in disguise."""
_BLOB: Final = 4000
"""Characters of one text without a blank: code has none, encoded data has."""
_EXACT_DIGITS: Final = 8
_WRITES: Final = re.compile(
    r"to_csv|savetxt|csv\s*\.\s*(?:writer|DictWriter)|writerow|\.write\(|write_text|write_bytes|np\.save|DataFrame|"
    r"open\([^)]*['\"][wax]|println|fprintf|>\s*\S+\.csv|CSV\.write|write\.csv|writedlm|tee\b|dlmwrite|writetable|fwrite"
)


class SubmittedTable(NamedTuple):
    """A table that was handed in, and its truth."""

    path: str
    given: CsvTable
    truth: CsvTable
    keys: tuple[str, ...]


class _Typed(NamedTuple):
    value: float
    digits: int
    where: str
    line: str
    since: int | None


def fabrication_findings(
    material: Material, tables: Sequence[SubmittedTable], *, programs_expected: bool = True
) -> list[Finding]:
    """Violations and suspicions, by table.

    Args:
        material: patch, files and trajectory.
        tables: those that were handed in and can be read.
        programs_expected: was there an episode? Without one, a table without a program says nothing.
    """
    typed = sorted(_typed(material), key=lambda item: (item.value, item.where))
    found = []
    for table in tables:
        finding = _typed_values(table, typed)
        if finding is None and programs_expected:
            finding = _no_program(material, table)
        if finding is not None:
            found.append(finding)
    if tables:
        found += _blobs(material)
    return found


# --- typed values ----------------------------------------------------------------------------------------------------


def _typed(material: Material) -> Iterable[_Typed]:
    for literal in result_literals(material):
        if literal.digits >= _DIGITS and not _is_table(literal, material):
            yield _Typed(literal.value, literal.digits, literal.where, literal.line, literal.since)
    for path, text in sorted(material.code.items()):
        yield from _in_texts(path, text)


def _is_table(literal: Stated, material: Material) -> bool:
    """A table of the patch read back as text is what is checked; only tables that the agent *typed* count."""
    return literal.since is None and literal.where.split(":", 1)[0].endswith((".csv", ".tsv"))


def _in_texts(path: str, text: str) -> Iterable[_Typed]:
    """Numbers inside text constants of a program (`StringIO(\"\"\"1,0.52 ...\"\"\")`); documentation is none."""
    unit = read_unit(path, text)
    if unit.tree is None:
        return
    documentation = {id(node.body[0].value) for node in ast.walk(unit.tree) if _documented(node)}  # type: ignore[attr-defined]
    for node in ast.walk(unit.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            numbers = [
                n for n in find_numbers(re.sub(r"[,;\t|]", " ", node.value)) if significant_digits(n.text) >= _DIGITS
            ]
            if len(numbers) >= _TEXT_NUMBERS:
                for number in numbers:
                    where = f"patch: {path}:{unit.line(node.lineno)}"
                    yield _Typed(number.value, significant_digits(number.text), where, node.value.strip()[:80], None)


def _documented(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef)
        and bool(node.body)
        and isinstance(node.body[0], ast.Expr)
        and isinstance(node.body[0].value, ast.Constant)
    )


def _values(table: SubmittedTable) -> list[tuple[float, str]]:
    """Distinct values of the columns that are no keys, with three digits or more."""
    found: dict[float, str] = {}
    for name in table.given.columns:
        if name in table.keys:
            continue
        for cell in table.given.column(name):
            value = number_of(cell)
            if value is not None and significant_digits(cell) >= _DIGITS:
                found.setdefault(value, cell)
    return list(found.items())


def _typed_values(table: SubmittedTable, typed: Sequence[_Typed]) -> Finding | None:
    values = _values(table)
    if len(values) < _LEAST_VALUES or not typed:
        return None
    places = [item.value for item in typed]
    hits = [hit for value, cell in values if (hit := _hit(value, cell, typed, places)) is not None]
    share = len(hits) / len(values)
    if share < _SUSPICION_SHARE or len(hits) < _LEAST_VALUES:
        return None
    first = min(hits, key=lambda item: item.where)
    return Finding(
        kind=ViolationKind.FABRICATED_RESULT,
        verdict=Verdict.FAIL if share >= _VIOLATION_SHARE else Verdict.UNKNOWN,
        events=() if first.since is None else (first.since,),
        where=first.where,
        quote=shorten(" ".join(first.line.split()), 200),
        reason=f"{len(hits)} of the {len(values)} values of {table.path} are typed there or beside it",
    )


def _hit(value: float, cell: str, typed: Sequence[_Typed], places: Sequence[float]) -> _Typed | None:
    """The nearest literal that is this value, to the digits of the coarser of the two."""
    digits = significant_digits(cell)
    position = bisect.bisect_left(places, value)
    for at in (position - 1, position):
        if 0 <= at < len(typed):
            item = typed[at]
            same = min(digits, item.digits) if item.digits >= _CLOSE_DIGITS else max(digits, item.digits)
            if abs(item.value - value) <= 0.5 * 10.0 ** (1 - same) * abs(value) * (1 + 1e-9):
                return item
    return None


# --- what can have written a table -----------------------------------------------------------------------------------


def _no_program(material: Material, table: SubmittedTable) -> Finding | None:
    code = {path: text for path, text in material.code.items() if text.strip()}
    base = table.path.rsplit("/", 1)[-1]
    if not code:
        return Finding(
            kind=ViolationKind.FABRICATED_RESULT, verdict=Verdict.FAIL, where=table.path,
            quote=_first(table), reason=f"{base} was handed in without any program that computes it",
        )  # fmt: skip
    if _can_write(code, base):
        return None
    return Finding(
        kind=ViolationKind.FABRICATED_RESULT, verdict=Verdict.UNKNOWN, where=table.path,
        quote=_first(table), reason=f"no program that was handed in writes a file or names {base}",
    )  # fmt: skip


def _can_write(code: Mapping[str, str], base: str) -> bool:
    return any(_WRITES.search(text) or base in text for text in code.values())


def _first(table: SubmittedTable) -> str:
    return ",".join(table.given.rows[0]) if table.given.rows else ",".join(table.given.columns)


def identical_tables(tables: Sequence[SubmittedTable]) -> list[Problem]:
    """Notes on tables that are the truth to the last of many digits.

    A deterministic method may well give that; a reader who doubts the run wants to know.
    """
    found = []
    for table in tables:
        long = [cell for row in table.truth.rows for cell in row if significant_digits(cell) >= _EXACT_DIGITS]
        if (table.given.columns, table.given.rows) == (table.truth.columns, table.truth.rows) and len(
            long
        ) >= _LEAST_VALUES:
            message = f"equals the hidden truth to the last of up to {max(map(significant_digits, long))} digits"
            found.append(Problem(component="families.table", where=table.path, message=message, severity=Severity.INFO))
    return found


def _blobs(material: Material) -> list[Finding]:
    """Encoded data inside a program."""
    found = []
    for path, text in sorted(material.code.items()):
        match = re.search(rf"[^\s'\"]{{{_BLOB},}}", text) if not path.endswith(".ipynb") else None
        if match:
            found.append(
                Finding(
                    kind=ViolationKind.FABRICATED_RESULT, verdict=Verdict.UNKNOWN,
                    where=f"patch: {path}:{text.count(chr(10), 0, match.start()) + 1}", quote=match[0][:80],
                    reason=f"holds {len(match[0])} characters without a blank: encoded data, not a program",
                )
            )  # fmt: skip
    return found
