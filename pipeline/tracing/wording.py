"""Code put into words: what a function or a block of statements does, from docstrings, comments, names and calls."""

from __future__ import annotations

import ast
import re
from typing import Final, Literal

from pipeline.tracing.callgraph import calls_in
from pipeline.tracing.phrases import Known, phrases_of, split_name
from pipeline.tracing.program import dotted

__all__ = [
    "StepKind",
    "classify",
    "comment_above",
    "describe_block",
    "describe_function",
    "nothing_known",
    "split_name",
]

StepKind = Literal["arguments", "data", "model", "training", "evaluation", "report", "other"]

_KINDS: Final[tuple[tuple[StepKind, str], ...]] = (
    ("arguments", "pars* arg* option options flags config* setup seed seeds"),
    ("report", "plot* figure figures save* write* dump* print* report* export* log table show"),
    (
        "evaluation",
        "eval* test* metric metrics score scores accuracy auroc auc validat* measure* error errors predict* compare* "
        "compute rmse mse mae perplexity benchmark* infer*",
    ),
    ("training", "train* fit* optimis* optimiz* step loss backward epoch epochs update* learn* finetune descent run"),
    (
        "data",
        "data* load* read* download* generat* make sampl* split* batch* tokeni* preprocess* augment* get simulat* "
        "noise transform* collate",
    ),
    ("model", "model* net* build init forward layer layers encoder decoder estimator classifier attention module"),
)
"""Words of names and docstrings that tell the part of an experiment; the first kind that has one wins."""
_LONGEST: Final = 200
_PHRASES: Final = 5


def classify(name: str, text: str = "") -> StepKind:
    """What part of an experiment a function is, by its name, else by its docstring."""
    for source in (split_name(name), text.lower()[:200]):
        words = re.findall(r"[a-z]+", source.lower())
        for kind, known in _KINDS:
            for stem in known.split():
                if any(word.startswith(stem[:-1]) if stem.endswith("*") else word == stem for word in words):
                    return kind
    return "other"


def nothing_known(_: ast.expr) -> str | None:
    """No expression has a known value."""
    return None


def describe_function(node: ast.FunctionDef | ast.AsyncFunctionDef, name: str, known: Known = nothing_known) -> str:
    """A sentence: the docstring's first, else the name in words with what the function calls and loops over.

    Args:
        node: the function.
        name: qualified within its file.
        known: what expressions are in this run.
    """
    docstring = ast.get_docstring(node) or ""
    first = _first_sentence(docstring)
    base = name.rsplit(".", 1)[-1]
    if first:
        return f"{first} ({name})"
    if base == "__init__":
        text = f"Set up {split_name(name.rsplit('.', 1)[0])}"
    elif base in {"forward", "__call__", "call"}:
        text = f"Compute the output of {split_name(name.rsplit('.', 1)[0])}"
    else:
        text = split_name(base)
        text = text[:1].upper() + text[1:]
        if "." in name and not name.startswith("."):
            text += f" of {split_name(name.split('.')[-2])}"
    details = _details(list(node.body), known)
    arguments = [argument.arg for argument in node.args.args if argument.arg not in {"self", "cls"}][:4]
    if not details and arguments:
        details = f"from {', '.join(arguments)}"
    return _cut(f"{text} ({name})" + (f": {details}" if details else ""))


def describe_block(statements: list[ast.stmt], comment: str, known: Known = nothing_known) -> str:
    """A sentence for consecutive statements: the comment above them, else what they loop over, call and print.

    Args:
        statements: in the order of the code.
        comment: what stands above them.
        known: what expressions are in this run.
    """
    details = _details(statements, known)
    if _is_prose(comment):
        text = comment[:1].upper() + comment[1:].rstrip(" .:")
        return _cut(f"{text}" + (f": {details}" if details and len(text) < 60 else ""))
    if details:
        return _cut(details[:1].upper() + details[1:])
    names = [dotted(target) for node in statements if isinstance(node, ast.Assign) for target in node.targets]
    named = ", ".join(name for name in names if name)
    return _cut(f"Set {named}") if named else "Run the statements of this block"


def comment_above(lines: list[str], start: int) -> str:
    """Comment lines right above line `start` (from 1), or at its end."""
    found: list[str] = []
    number = start - 2
    while number >= 0 and lines[number].strip().startswith("#"):
        text = lines[number].strip().lstrip("#").strip(" -=*#")
        if text:
            found.insert(0, text)
        number -= 1
    return " ".join(found)


def _is_prose(comment: str) -> bool:
    words = re.findall(r"[A-Za-z]{2,}", comment)
    return len(words) >= 2 and not re.search(r"[=;{}]|\w\(|noqa|pylint|type: ignore|fmt:", comment)


def _first_sentence(docstring: str) -> str:
    text = " ".join(docstring.strip().split("\n\n")[0].split())
    text = (
        re.split(r"(?<=[a-z)\]0-9])\.\s|\s(?:Args|Parameters|Returns|Usage|Input|Output)s?\s*:", text)[0]
        .strip()
        .rstrip(".:")
    )
    return _cut(text[:1].upper() + text[1:]) if len(re.findall(r"[A-Za-z]{2,}", text)) >= 2 else ""


def _details(statements: list[ast.stmt], known: Known) -> str:
    """`for each seed in seeds: make data (make_data), fit, score; print the results`."""
    calls: list[ast.Call] = []
    loops: list[str] = []
    for statement in statements:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for node in ast.walk(statement):
            if isinstance(node, (ast.For, ast.AsyncFor)) and len(loops) < 2:
                loops.append(f"for each {_short(node.target)} in {_short(node.iter)}")
            elif isinstance(node, ast.While) and not loops:
                loops.append(f"while {_short(node.test)}")
        calls += calls_in(statement)
    done = phrases_of(calls, known)[:_PHRASES]
    looped = ", ".join(loops)
    if not looped or not done:
        return looped or "; ".join(done)
    return f"{looped}: {'; '.join(done)}"


def _short(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 40 else text[:37] + "..."


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3].rstrip() + "..."
