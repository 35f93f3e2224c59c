"""The keyless judge of analysis and code: what can be said of them without a model that reads.

It looks at structure and at words, not at meaning, and says so in every reason: a prior and a cross-check for the
judging model, not its equal.

- Methodology: which of the concepts of the graders' text - headings, emphasised words, first cells of tables, names in
  formulas - the analysis mentions, those left out that the instruction itself gives away, where enough others remain.
  An analysis that is the paper or the instruction over again counts for what it adds.
- Code: half for what is there (each expected file exists, parses, and holds more than stubs), half for how much of the
  reference implementation's vocabulary - functions it defines and calls, modules it imports - occurs; without a
  reference, of the names in the graders' text.
- Quality: documented and short functions, in programs that parse.
- Completeness: expected files that are there and not trivial.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from evaluation.families.table.csvfile import TableError, parse_table
from evaluation.families.table.records import Kind, TableTask
from pipeline.schema import Record
from pipeline.tracing.source import read_unit

__all__ = ["HandedIn", "keyless_grade"]

_STOP: Final = frozenset(
    re.findall(
        r"\w+",
        """
    about above after agent also and answer any are article author based been before below both but can code
    compare could data eqs defined described description details does each equation every expected figure file files
    find following for formula formulas from full given grading ground has have her here how into its less main
    many metadata method methodology more most must next not note notes one only other our out over overview
    page paper parameter parameters per physical point reference result results same section see shall should
    show shown some step such table task than that the their them then there these they this title truth two
    under used uses using value values very was were what when where which while will with within year your
    """,
    )
)
"""Words that any task's texts have."""
_ENOUGH: Final = 15
"""Concepts that the instruction leaves out, from which on they alone count. Of those of the public full task it leaves
out 8, and none of them (`approximation`, `multiple`) tells a good analysis from another."""
_TOO_SHORT: Final = 40
"""Bytes below which a file holds nothing (a header line and a row of numbers have more)."""
_COPIED: Final = 0.5
"""Share of an analysis' eight-word sequences that are the paper's or the instruction's, above which it loses marks."""
_SHINGLE: Final = 8
_LONG_FUNCTION: Final = 80


class HandedIn(Record):
    """Texts of what was handed in, by path."""

    texts: dict[str, str]

    def of(self, paths: Sequence[str]) -> dict[str, str]:
        """Those of these paths that are there."""
        return {path: self.texts[path] for path in paths if path in self.texts}

    @property
    def programs(self) -> dict[str, str]:
        """All programs in Python, notebooks included."""
        return {path: text for path, text in sorted(self.texts.items()) if path.endswith((".py", ".ipynb"))}


def keyless_grade(kind: Kind, task: TableTask, handed_in: HandedIn) -> tuple[float, str]:
    """(score from 0 to 1, why) of one dimension that needs no table.

    Args:
        kind: any but `DATA`; `OTHER` is graded as code.
        task: its expectations and reference.
        handed_in: what there is.
    """
    if kind is Kind.METHODOLOGY:
        return _methodology(task, handed_in)
    if kind is Kind.COMPLETENESS:
        return _completeness(task, handed_in)
    if kind is Kind.QUALITY:
        return _quality(handed_in)
    return _code(task, handed_in)


# --- methodology -----------------------------------------------------------------------------------------------------


def _methodology(task: TableTask, handed_in: HandedIn) -> tuple[float, str]:
    documents = handed_in.of(task.expected.analysis)
    if not task.expected.analysis:
        documents = {path: text for path, text in handed_in.texts.items() if path.endswith((".md", ".rst", ".txt"))}
    text = "\n".join(documents.values())
    if not text.strip():
        return 0.0, "there is no analysis"
    concepts = _concepts(task.metadata)
    beyond = concepts - set(_words(task.instruction))
    concepts = beyond if len(beyond) >= _ENOUGH else concepts
    if not concepts:
        return 1.0, "the graders' text names no concept to look for; the analysis is there"
    named = concepts & set(_words(text))
    share = len(named) / len(concepts)
    reason = f"names {len(named)} of {len(concepts)} concepts of the graders' text"
    copied = _copied(text, (task.read(task.paper_file), task.instruction))
    if copied > _COPIED:
        share *= (1 - copied) / (1 - _COPIED)
        reason += f"; {copied:.0%} of it is the paper's or the instruction's own wording"
    missing = sorted(concepts - named)[:6]
    return share, reason + (f" (not {', '.join(missing)})" if missing else "") + "; words only, meaning was not read"


def _concepts(markdown: str) -> set[str]:
    """Words of headings, emphasis, code spans, first cells of rows and formulas; all words of a text without these."""
    pieces = re.findall(r"^#{1,6}\s+(.+)$", markdown, re.MULTILINE)
    pieces += re.findall(r"\*\*(.+?)\*\*|`([^`\n]+)`", markdown) and [
        first or second for first, second in re.findall(r"\*\*(.+?)\*\*|`([^`\n]+)`", markdown)
    ]
    pieces += re.findall(r"^\|\s*([^|\n]+?)\s*\|", markdown, re.MULTILINE)
    pieces += re.findall(r"\\(?:text|mathrm)\{([^}]*)\}", markdown)
    found = set(_words(" ".join(pieces)))
    return found or set(_words(markdown))


def _words(text: str) -> Iterable[str]:
    """Content words in lower case, without plural endings."""
    for word in re.findall(r"[A-Za-z][A-Za-z-]{2,}", re.sub(r"\\[A-Za-z]+", " ", text)):
        for part in word.lower().split("-"):
            if len(part) > 2 and part not in _STOP:
                yield (
                    part[:-1]
                    if part.endswith("s") and not part.endswith(("ss", "is", "us")) and len(part) > 4
                    else part
                )


def _copied(text: str, sources: Sequence[str]) -> float:
    own = _shingles(text)
    given = set().union(*(_shingles(source) for source in sources))
    return len(own & given) / len(own) if own else 0.0


def _shingles(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[at : at + _SHINGLE]) for at in range(len(words) - _SHINGLE + 1)}


# --- code ------------------------------------------------------------------------------------------------------------


def _code(task: TableTask, handed_in: HandedIn) -> tuple[float, str]:
    expected = task.expected.code or tuple(handed_in.programs)
    if not expected:
        return 0.0, "there is no program"
    sound = [path for path in expected if path in handed_in.texts and _substance(path, handed_in.texts[path])]
    there = len(sound) / len(expected)
    reason = f"{len(sound)} of {len(expected)} expected program(s) parse and hold more than stubs"
    if not sound:
        return 0.0, reason
    own = _vocabulary(handed_in.programs)
    reference = task.reference_code()
    if reference:
        wanted, what = _vocabulary(reference), "the reference implementation's functions and modules"
    else:
        names = set(re.findall(r"`([A-Za-z_]\w{2,})(?:\(\))?`", task.metadata))
        wanted, what = {name.lower() for name in names}, "the names in the graders' text"
    if not wanted:
        return there, f"{reason}; there is no reference to compare with"
    share = len(wanted & own) / len(wanted)
    text = f"{reason}; {len(wanted & own)} of {len(wanted)} of {what} occur; structure only, it was not read"
    return (there + share) / 2, text


def _substance(path: str, text: str) -> bool:
    """Does a program hold at least one statement that does something? Other languages: is it not trivial?"""
    if not path.endswith((".py", ".ipynb")):
        return len(text.strip()) >= _TOO_SHORT
    unit = read_unit(path, text)
    if unit.tree is None:
        return False
    functions = [node for node in ast.walk(unit.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    if functions:
        return any(not _is_stub(function) for function in functions)
    return any(
        not isinstance(node, ast.Import | ast.ImportFrom | ast.Pass) and not _is_text(node) for node in unit.tree.body
    )


def _is_stub(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    body = [node for node in function.body if not _is_text(node)]
    return all(isinstance(node, ast.Pass | ast.Raise) or _is_constant_return(node) for node in body)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_constant_return(node: ast.stmt) -> bool:
    return isinstance(node, ast.Return) and (node.value is None or isinstance(node.value, ast.Constant))


def _vocabulary(programs: Mapping[str, str]) -> set[str]:
    """Names of functions and classes that are defined, of functions that are called, and of modules."""
    found: set[str] = set()
    for path, text in programs.items():
        unit = read_unit(path, text)
        for node in ast.walk(unit.tree) if unit.tree is not None else ():
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.Call):
                found.add(node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", ""))
            elif isinstance(node, ast.Import):
                found |= {item.name.split(".")[0] for item in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.split(".")[0])
    return {name.lower() for name in found if len(name) > 2} - {"print", "range", "len", "main", "format", "append"}


def _quality(handed_in: HandedIn) -> tuple[float, str]:
    programs = handed_in.programs
    if not programs:
        return 0.0, "there is no program"
    units = [read_unit(path, text) for path, text in programs.items()]
    parsed = [unit for unit in units if unit.tree is not None]
    functions = [
        node for unit in parsed if unit.tree is not None for node in ast.walk(unit.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]  # fmt: skip
    share = len(parsed) / len(units)
    if not functions:
        return share / 2, f"{len(parsed)} of {len(units)} program(s) parse; there are no functions"
    documented = sum(ast.get_docstring(node) is not None for node in functions) / len(functions)
    short = sum((node.end_lineno or node.lineno) - node.lineno < _LONG_FUNCTION for node in functions) / len(functions)
    reason = (
        f"{len(parsed)} of {len(units)} program(s) parse, {documented:.0%} of {len(functions)} functions are documented"
    )
    return share * (1 + documented + short) / 3, f"{reason}, {short:.0%} are shorter than {_LONG_FUNCTION} lines"


# --- completeness ----------------------------------------------------------------------------------------------------


def _completeness(task: TableTask, handed_in: HandedIn) -> tuple[float, str]:
    expected = task.expected.all
    good = [path for path in expected if path in handed_in.texts and not _trivial(path, handed_in.texts[path])]
    missing = [path for path in expected if path not in good]
    reason = f"{len(good)} of {len(expected)} expected file(s) are there and not trivial"
    return len(good) / len(expected), reason + (f" (not {', '.join(missing[:4])})" if missing else "")


def _trivial(path: str, text: str) -> bool:
    if path.endswith(".csv"):
        try:
            return not any(cell for row in parse_table(text).rows for cell in row)
        except TableError:
            return True
    if path.endswith((".py", ".ipynb")):
        return not _substance(path, text)
    return len(text.strip()) < _TOO_SHORT
