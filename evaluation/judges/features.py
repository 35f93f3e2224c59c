"""What a piece of code says that another implementation of the same step would say too.

Called functions, keyword arguments, attributes, texts, numbers and the words of its names, each with a weight for how
much it tells. Layout, order and the names of local variables do not count much. Non-goal: equivalence of programs.
"""

from __future__ import annotations

import ast
import builtins
import keyword
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from pipeline.tracing.parsed import called_function
from pipeline.tracing.source import parse_python, read_unit
from pipeline.validation.numbers import find_numbers
from pipeline.validation.tokens import words

__all__ = ["Features", "best_line", "coverage", "features_of_code", "features_of_file", "features_of_text"]

CALL: Final = 2.0
KEYWORD: Final = 1.5
TEXT: Final = 1.5
NUMBER: Final = 1.5
ATTRIBUTE: Final = 1.0
NAME: Final = 0.3
COMMON: Final = 0.2
"""Of what nearly every script has: printing, paths, argument parsing, containers."""
_COMMON: Final = frozenset(dir(builtins)) | {
    "append", "join", "format", "items", "keys", "values", "get", "path", "Path", "resolve", "parent", "exists",
    "mkdir", "add_argument", "ArgumentParser", "parse_args", "argparse", "sys", "os", "insert", "write", "read",
    "strip", "split", "info", "getLogger", "self", "args", "main", "parser", "__doc__", "__file__", "np", "numpy",
    "array", "description", "extend", "update", "close", "flush", "default", "help", "action", "store_true",
    "nargs",
}  # fmt: skip
_TRIVIAL: Final = frozenset({0.0, 1.0, 2.0, -1.0})
_IDENTIFIER: Final = re.compile(
    r"`([^`]+)`|(--[\w-]+)|\b([A-Za-z_]\w*(?:\.\w+)+)\b|\b([a-z]+_\w+|[A-Z][a-z]+[A-Z]\w*|\w+\.(?:py|sh|ya?ml|json))\b"
)
_ENGLISH: Final = frozenset(
    [
        "the",
        "and",
        "for",
        "with",
        "from",
        "that",
        "this",
        "each",
        "into",
        "over",
        "under",
        "then",
        "than",
        "when",
        "where",
        "which",
        "while",
        "will",
        "use",
        "uses",
        "used",
        "using",
        "set",
        "sets",
        "run",
        "runs",
        "load",
        "loads",
        "call",
        "calls",
        "create",
        "creates",
        "make",
        "makes",
        "define",
        "defines",
        "ensure",
        "perform",
        "compute",
        "computes",
        "implement",
        "apply",
        "applies",
        "based",
        "such",
        "same",
        "step",
        "script",
        "code",
        "function",
        "method",
        "methods",
        "experiment",
        "process",
        "all",
        "both",
        "other",
        "its",
        "their",
        "value",
        "values",
        "number",
        "as",
        "well",
        "not",
        "one",
        "two",
        "three",
        "first",
        "second",
        "next",
        "also",
        "via",
        "per",
        "return",
        "returns",
        "write",
        "writes",
        "print",
        "prints",
        "save",
        "saves",
        "file",
        "files",
        "given",
        "specified",
    ]
)
_LONGEST_TEXT: Final = 60


@dataclass(slots=True)
class Features:
    """Weighted features of a piece of code, and the words that occur anywhere in it."""

    weights: dict[str, float] = field(default_factory=dict)
    words: Counter[str] = field(default_factory=Counter)

    def add(self, feature: str, weight: float) -> None:
        """Keep the larger weight of a feature that is found twice."""
        self.weights[feature] = max(weight, self.weights.get(feature, 0.0))

    def merge(self, other: Features) -> None:
        """Unite with another piece."""
        for feature, weight in other.weights.items():
            self.add(feature, weight)
        self.words.update(other.words)


def _weight(name: str, weight: float) -> float:
    return COMMON if name in _COMMON or keyword.iskeyword(name) else weight


def features_of_code(code: str) -> Features:
    """Of Python source; a piece that cannot be parsed by itself is read token by token."""
    found = Features()
    tree, _ = parse_python(textwrap.dedent(code))
    if tree is None:
        tree, _ = parse_python("if True:\n" + textwrap.indent(textwrap.dedent(code), "    "))
    if tree is None:
        return _of_tokens(code)
    documentation = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if id(node) not in documentation:
            _node(node, found)
    for name in _local_names(tree):  # calling a parameter is calling whatever the author named so
        if f"call:{name}" in found.weights:
            found.weights[f"call:{name}"] = NAME
    return found


def _local_names(tree: ast.Module) -> set[str]:
    """Parameters and assigned names."""
    return {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)} | {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def _node(node: ast.AST, found: Features) -> None:
    match node:
        case ast.Call():
            name = called_function(node)
            if name:
                found.add(f"call:{name}", _weight(name, CALL))
            for word in node.keywords:
                if word.arg:
                    found.add(f"name:{word.arg}", _weight(word.arg, KEYWORD))
                    found.words.update(words(word.arg))
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            found.add(f"call:{node.name}", _weight(node.name, CALL))
            found.words.update(words(node.name))
        case ast.Attribute():
            found.add(f"name:{node.attr}", _weight(node.attr, ATTRIBUTE))
            found.words.update(words(node.attr))
        case ast.Name():
            found.add(f"name:{node.id}", _weight(node.id, NAME))
            found.words.update(words(node.id))
        case ast.arg():
            found.add(f"name:{node.arg}", _weight(node.arg, NAME))
            found.words.update(words(node.arg))
        case ast.Constant():
            _constant(node.value, found)
        case ast.ImportFrom() | ast.Import():
            for alias in node.names:
                found.add(f"name:{alias.name}", _weight(alias.name, NAME))
                found.words.update(words(alias.name))
        case _:
            pass


_LARGEST_BITS: Final = 1023
"""Larger integers (the keys and primes of cryptography) are no floats."""


def _constant(value: object, found: Features) -> None:
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int | float):
        if isinstance(value, int) and value.bit_length() > _LARGEST_BITS:
            found.add(f"number:{value:#x}"[:_LONGEST_TEXT], NUMBER)
        elif float(value) not in _TRIVIAL:
            found.add(f"number:{float(value):.12g}", NUMBER)
    elif isinstance(value, str) and value.strip():
        if len(value) <= _LONGEST_TEXT:
            found.add(f"text:{value.strip().lower()}", _text_weight(value.strip()))
        found.words.update(words(value[:400]))


def _text_weight(text: str) -> float:
    """Keys and names tell; wording, formats and paths of outputs are the author's own."""
    return COMMON if re.search(r"\s|/|^[.%]|^\W*$", text) else _weight(text, TEXT)


def _uncommented(code: str) -> str:
    """Without comments: what they say is not done."""
    return re.sub(r"(?m)(^|\s)#(?!!).*$", "", code)


def _of_tokens(code: str) -> Features:
    found = Features()
    code = _uncommented(code)
    for name in re.findall(r"\b([A-Za-z_]\w*)\s*\(", code):
        found.add(f"call:{name}", _weight(name, CALL))
    for name in re.findall(r"\b[A-Za-z_]\w*\b", code):
        found.add(f"name:{name}", _weight(name, NAME))
        found.words.update(words(name))
    for text in re.findall(r"['\"]([^'\"\n]{1,60})['\"]", code):
        found.add(f"text:{text.strip().lower()}", _weight(text, TEXT))
    for line in code.split("\n"):
        for number in find_numbers(line.replace("=", " = ")):
            if number.value not in _TRIVIAL:
                found.add(f"number:{number.value:.12g}", NUMBER)
    return found


def features_of_file(path: str, text: str) -> Features:
    """Of a whole file, settings and shell scripts included."""
    if path.endswith((".py", ".ipynb")):
        unit = read_unit(path, text)
        found = features_of_code(unit.code)
        found.words.update(words(unit.prose[:20_000]))
        for comment in re.findall(r"#\s*(.+)$", unit.code, re.MULTILINE):
            found.words.update(words(comment))
        return found
    text = _uncommented(text)
    found = _of_tokens(text)
    for key, value in re.findall(
        r"^[^\S\n]*+-?[^\S\n]*+[\"']?([\w.-]+)[\"']?\s*[:=]\s*[\"']?([^\"'#\n]{1,60})", text, re.MULTILINE
    ):
        found.add(f"text:{key.lower()}", _weight(key, TEXT))
        found.add(f"text:{value.strip().lower()}", TEXT)
    for item in re.findall(r"[\w./-]+", text):
        found.add(f"text:{item.lower()}", COMMON)
    return found


def features_of_text(text: str) -> Features:
    """Of a requirement in words: names of code as they are, numbers, and its telling words."""
    found = Features()
    for groups in _IDENTIFIER.findall(text):
        name = next(group for group in groups if group)
        tail = (
            name.strip("-").split("(")[0].split(".")[-1]
            if not name.endswith((".py", ".sh", ".yaml", ".yml", ".json"))
            else name
        )
        if tail:
            found.add(f"any:{tail}", _weight(tail, CALL))
    for line in text.split("\n"):
        for number in find_numbers(line.replace("=", " = ").replace("'", " ")):
            if number.value not in _TRIVIAL:
                found.add(f"number:{number.value:.12g}", NUMBER)
    for word in words(text):
        if len(word) > 2 and word not in _ENGLISH and not word[0].isdigit():
            found.add(f"word:{word}", 0.6)
    return found


def coverage(
    reference: Features,
    candidate: Features,
    also: Callable[[str], bool] = lambda _: False,
    exact: frozenset[str] = frozenset(),
) -> float:
    """Share of the reference's weight that the candidate has, in [0, 1]; 0 for a reference without features.

    Args:
        reference: what is looked for.
        candidate: where.
        also: other ways in which a feature may be there.
        exact: features for which similar words are not enough.
    """
    total = sum(reference.weights.values())
    if not total:
        return 0.0
    return (
        sum(
            weight
            for feature, weight in reference.weights.items()
            if feature in candidate.weights or also(feature) or (feature not in exact and _has(feature, candidate))
        )
        / total
    )


def _has(feature: str, candidate: Features) -> bool:
    if feature in candidate.weights:
        return True
    kind, _, name = feature.partition(":")
    if kind in {"call", "name", "any"}:
        if (
            any(f"{other}:{name}" in candidate.weights for other in ("call", "name"))
            or f"text:{name.lower()}" in candidate.weights
        ):
            return True
        parts = [word for word in words(name) if len(word) > 1]
        return kind != "call" and bool(parts) and all(part in candidate.words for part in parts)
    if kind == "text":
        parts = [word for word in words(name) if len(word) > 1]
        return bool(parts) and len(parts) <= 3 and all(part in candidate.words for part in parts)
    if kind == "word":
        return name in candidate.words or any(
            len(name) >= 5 and other.startswith(name[:5]) for other in candidate.words
        )
    return False


def best_line(reference: Features, lines: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """(place, line) that shares most with the reference; two empty texts when none shares anything that tells."""
    best, chosen = 0.5, ("", "")
    spoken = {word for feature in reference.weights for word in _spoken(feature)}
    for place, line in lines:
        own, said = _of_line(line)
        if spoken.isdisjoint(said):
            continue
        score = sum(weight for feature, weight in reference.weights.items() if _has(feature, own))
        if score > best:
            best, chosen = score, (place, line.strip()[:200])
    return chosen


def _spoken(feature: str) -> frozenset[str]:
    """A feature's name and its words: without one of them in a line, the line does not have it."""
    name = feature.partition(":")[2]
    return frozenset({name.lower(), *words(name)})


@lru_cache(maxsize=32768)
def _of_line(line: str) -> tuple[Features, frozenset[str]]:
    """Each line is held against every requirement: it is read once."""
    own = _of_tokens(line)
    return own, frozenset({*own.words, *(word for feature in own.weights for word in _spoken(feature))})
