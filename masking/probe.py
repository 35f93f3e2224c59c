"""One file against everything that must not be readable in it. Shared by the plan and the leak scan.

Because both use the same probe, the plan takes out what the scan would block; the scan then proves it on the finished
repository, git's object database included.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

from masking.filekinds import is_code, is_list, text_kind
from masking.fingerprints import Fingerprint, Index, Share, code_only, fingerprint
from masking.numbers import BLOCKING, NumberHit, NumberProbe, TextKind
from masking.papers import PAPER_SHARE, PaperProbe
from masking.texts import Budget, Pictures, Unit, read_units
from pipeline.schema import Problem
from pipeline.task import LeakHit, NumericClaim

__all__ = ["MIN_EXACT", "Examination", "Probe", "Reference"]

MIN_EXACT: Final = 32
"""Bytes below which equal content is no evidence (`__init__.py` with one line)."""
COPY_SHARE: Final = 0.8
"""A text with this share of all fingerprints of a masked file is a copy, whatever else resembles it."""
LIST_SHARE: Final = 0.95
"""The same for settings and shell scripts. They are lists of values, and a sibling that differs in a data set's name is
another experiment: in published repositories launchers of one family had 0.80 to 0.93 of each other."""
OWN_SHARE: Final = 0.5
"""So is one with this share of the masked file's own fingerprints, those that no COMMON_FILES other files have.

Experiments of one repository share their argument parsing and printing: in a worked example two sibling scripts had
0.66 of each other and 0.45 of their own fingerprints, an old version of a third, reordered and with other names, 0.45
and 0.55. This rule is not for settings and shell scripts."""
COMMON_FILES: Final = 2
CHUNK_SHARE: Final = 0.8
"""Share of one function's fingerprints that counts as a copy of it: helpers that were adapted fall below."""
NAMES_SHARE: Final = 0.6
MIN_NAMES: Final = 12
"""Compiled Python has no tokens; its names and strings are compared. Sibling scripts shared up to 0.45 of theirs."""
MOSTLY_PAPER: Final = 0.5
LONG_QUOTE: Final = 300
"""A file that is half the paper's words, and longer than an abstract (about 150 shingles), is a part of the paper."""
REPORT_SHARE: Final = 0.3
COMPILED_NUMBER: Final = 0.5
FUNCTION_SCORE: Final = 0.5
"""A function that occurs elsewhere (helpers that scripts share) is reported; a person decides."""

_POINTER: Final = re.compile(rb"version https://git-lfs[^\n]*\n(?:ext-[^\n]*\n)*oid sha256:([0-9a-f]{64})\n")
_OWN: Final = "own:"
_COPY: Final = "holds a copy"


@dataclass(frozen=True, slots=True)
class Reference:
    """A masked text whose near-duplicates are looked for."""

    path: str
    data: bytes = field(repr=False)

    @property
    def renamable(self) -> bool:
        """Is it also looked for with its names abstracted? A shell script is little else than names."""
        return is_code(self.path) and not is_list(self.path)

    @property
    def is_python(self) -> bool:
        """Python can be parsed."""
        return PurePosixPath(self.path).suffix.lower() == ".py"


@dataclass(slots=True)
class Examination:
    """What was found in one file."""

    hits: list[LeakHit] = field(default_factory=list)
    numbers: list[NumberHit] = field(default_factory=list)
    """Number hits in the file's own text (not in what it contains), for edits."""
    copies: list[LeakHit] = field(default_factory=list)
    """Copies of masked files or of functions of theirs, without mere resemblances."""
    problems: list[Problem] = field(default_factory=list)

    @property
    def blocking(self) -> list[LeakHit]:
        """Hits that fail a scan."""
        return [hit for hit in self.hits if hit.score >= BLOCKING]


def _functions(reference: Reference) -> list[tuple[str, bytes]]:
    """(name, code) of the top-level functions and classes of a Python file."""
    try:
        tree = ast.parse(reference.data)
    except (SyntaxError, ValueError, RecursionError):
        return []
    lines = reference.data.splitlines(keepends=True)
    found: list[tuple[str, bytes]] = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            code = b"".join(lines[node.lineno - 1 : node.end_lineno])
            found.append((f"{reference.path}:{node.name}", code_only(code)))
    return found


def _names(reference: Reference) -> frozenset[str]:
    """Names and one-line strings that compiling the file keeps."""
    try:
        tree = ast.parse(reference.data)
    except (SyntaxError, ValueError, RecursionError):
        return frozenset()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" not in node.value:
            names.add(node.value)
    return frozenset(name for name in names if len(name) >= 4 and not name.startswith("__"))


class Probe:
    """Examines files for masked text, claimed numbers, the paper and canary strings.

    Args:
        references: masked texts (near-duplicates of these are looked for).
        digests: sha256 -> path of files that must not be there in any form.
        claims: numbers of the expected outcome.
        paper: the paper's words, or None.
        background: other code of the repository; what it has in common with a masked file does not make a copy.
        paper_digests: sha256 of the paper's file.
        canaries: strings that private artefacts carry.
    """

    def __init__(
        self, *, references: Sequence[Reference], digests: Mapping[str, str], claims: Iterable[NumericClaim],
        paper: PaperProbe | None, background: Iterable[bytes] = (), paper_digests: frozenset[str] = frozenset(),
        canaries: Sequence[str] = (),
    ) -> None:  # fmt: skip
        whole, parts = _fingerprints(references)
        self._parts = parts
        common = Index(whole).common(background, copies=COPY_SHARE, files=COMMON_FILES)
        code = {reference.path for reference in references if not is_list(reference.path)}
        own = [item.without(common, _OWN + item.name) for item in whole if item.name in code]
        self._index = Index([*whole, *(item for item in own if item is not None)])
        named = {reference.path: _names(reference) for reference in references if reference.is_python}
        self._names = {path: names for path, names in named.items() if len(names) >= MIN_NAMES}
        self._digests = dict(digests)
        self._numbers = NumberProbe(claims)
        self._paper = paper
        self._paper_digests = paper_digests
        self._pictures = Pictures()
        self._canaries = tuple(canary.encode() for canary in canaries if canary)

    def examine(self, path: str, data: bytes, *, where: str | None = None) -> Examination:
        """Look for everything in one file and in what it contains.

        Args:
            path: decides by its suffix how the file is read.
            data: its bytes.
            where: label for reports; the path when None.
        """
        result = Examination()
        budget = Budget(pictures=self._pictures)
        for unit in read_units(path, data, budget, where=where):
            result.hits += self._exact(unit)
            result.hits += self._canary(unit)
            if unit.binary:
                continue
            result.hits += self._near(unit) if unit.role != "strings" else self._compiled(unit)
            numbers = self._numbers.find(unit.data, self._kind(unit))
            if unit.role == "file":
                result.numbers = numbers
            result.hits += self._best_numbers(unit, numbers)
            result.hits += self._paper_text(unit)
        result.problems = budget.problems
        result.copies = [
            hit for hit in result.hits
            if hit.kind == "near_duplicate" and (hit.score >= BLOCKING or hit.detail.startswith(_COPY))
        ]  # fmt: skip
        return result

    def numbers(self, path: str, data: bytes) -> list[NumberHit]:
        """Claimed numbers in a file as it is stored, for edits of formats that are examined piece by piece."""
        return self._numbers.find(data, text_kind(path))

    @staticmethod
    def _kind(unit: Unit) -> TextKind:
        return "prose" if unit.role == "output" else text_kind(unit.name)

    def _exact(self, unit: Unit) -> list[LeakHit]:
        if len(unit.data) < MIN_EXACT:
            return []
        digest = hashlib.sha256(unit.data).hexdigest()
        if pointer := _POINTER.match(unit.data):  # git LFS keeps the content elsewhere, under this name
            digest = pointer[1].decode("ascii")
        if digest in self._paper_digests:
            return [LeakHit(kind="paper", where=unit.where, detail="the paper's file", score=1.0)]
        if digest in self._digests:
            detail = f"identical to the masked file {self._digests[digest]}"
            return [LeakHit(kind="exact", where=unit.where, detail=detail, score=1.0)]
        return []

    def _canary(self, unit: Unit) -> list[LeakHit]:
        return [
            LeakHit(kind="canary", where=unit.where, detail="a canary string of a private artefact", score=1.0)
            for canary in self._canaries
            if canary in unit.data or canary in unit.where.encode("utf-8", "replace")
        ]

    def _near(self, unit: Unit) -> list[LeakHit]:
        best: dict[str, Share] = {}
        for share in self._index.shares(unit.data):
            if share.name not in best or share.share > best[share.name].share:
                best[share.name] = share
        hits: list[LeakHit] = []
        whole: set[str] = set()
        for name, share in sorted(best.items()):
            if name in self._parts or name.startswith(_OWN):
                continue
            hit = _file_hit(unit, share, best.get(_OWN + name))
            if hit is not None:
                hits.append(hit)
                whole |= {name} if hit.score >= BLOCKING else set()
        copied = [n for n, s in sorted(best.items()) if n in self._parts and s.share >= CHUNK_SHARE]
        for path in sorted({self._parts[name] for name in copied} - whole):
            functions = ", ".join(name.rpartition(":")[2] for name in copied if self._parts[name] == path)
            detail = f"{_COPY} of {functions} of the masked file {path}"
            hits.append(LeakHit(kind="near_duplicate", where=unit.where, detail=detail, score=FUNCTION_SCORE))
        return hits

    def _compiled(self, unit: Unit) -> list[LeakHit]:
        lines = frozenset(unit.data.decode("utf-8", "replace").split("\n"))
        hits: list[LeakHit] = []
        for path, names in sorted(self._names.items()):
            share = len(names & lines) / len(names)
            if share >= NAMES_SHARE:
                detail = f"compiled code with {share:.0%} of the names and strings of the masked file {path}"
                hits.append(LeakHit(kind="near_duplicate", where=unit.where, detail=detail, score=max(share, BLOCKING)))
        hits.extend(
            LeakHit(
                kind="number", where=unit.where, score=COMPILED_NUMBER,
                detail=f"a constant equals claim {claim.id} ({claim.metric} = {claim.text})",
            )
            for claim in self._numbers.among(unit.values)
        )  # fmt: skip
        return hits

    @staticmethod
    def _best_numbers(unit: Unit, numbers: list[NumberHit]) -> list[LeakHit]:
        """The best hit of each claim in a unit: more of the same would only make the report long."""
        best: dict[str, NumberHit] = {}
        for number in numbers:
            best.setdefault(number.claim, number)
        return [
            LeakHit(kind="number", where=f"{unit.where}:{hit.line}", detail=hit.detail, score=hit.score)
            for _, hit in sorted(best.items())
        ]

    def _paper_text(self, unit: Unit) -> list[LeakHit]:
        share = self._paper.share(unit.data) if self._paper is not None and unit.role != "cell" else None
        if share is None:
            return []
        detail = (
            f"{share.of_paper:.0%} of the paper's five-word sequences; {share.of_file:.0%} of this text is the paper"
        )
        mostly = share.of_file >= MOSTLY_PAPER and share.shared >= LONG_QUOTE
        score = 1.0 if share.of_paper >= PAPER_SHARE else 0.8 if mostly else 0.4
        return [LeakHit(kind="paper", where=unit.where, detail=detail, score=score)]


def _fingerprints(references: Sequence[Reference]) -> tuple[list[Fingerprint], dict[str, str]]:
    """Fingerprints of whole texts and of functions, and for each function the path of its file."""
    prints: list[Fingerprint] = []
    parts: dict[str, str] = {}
    for reference in references:
        code = code_only(reference.data) if reference.is_python else reference.data
        found = fingerprint(reference.path, code, abstracted=reference.renamable)
        prints += [found] if found else []
        for name, body in _functions(reference) if reference.is_python else []:
            part = fingerprint(name, body, abstracted=True)
            if part is not None:
                prints.append(part)
                parts[name] = reference.path
    return prints, parts


def _file_hit(unit: Unit, whole: Share, own: Share | None) -> LeakHit | None:
    """A hit on a whole masked file: a copy blocks, a resemblance from REPORT_SHARE on is reported."""
    names = "" if whole.view.name == "kept" else " with other names"
    detail = f"holds {whole.share:.0%} of the masked file {whole.name}{names}"
    if whole.share >= (LIST_SHARE if is_list(whole.name) else COPY_SHARE):
        score = whole.share
    elif own is not None and own.share >= OWN_SHARE:
        detail += f", {own.share:.0%} of what is its own"
        score = BLOCKING + (1 - BLOCKING) * (own.share - OWN_SHARE) / (1 - OWN_SHARE)
    elif whole.share >= REPORT_SHARE:
        score = min(whole.share, 0.99 * BLOCKING)
    else:
        return None
    return LeakHit(kind="near_duplicate", where=unit.where, detail=detail, score=round(score, 3))
