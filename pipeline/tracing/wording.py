"""Code put into words: what a function or a block of statements does, from docstrings, comments, names and calls."""

from __future__ import annotations

import ast
import re
from typing import Final, Literal

from pipeline.tracing.callgraph import calls_in
from pipeline.tracing.program import dotted

__all__ = ["StepKind", "classify", "comment_above", "describe_block", "describe_function", "split_name"]

StepKind = Literal["arguments", "data", "model", "training", "evaluation", "report", "other"]

_KINDS: Final[tuple[tuple[StepKind, re.Pattern[str]], ...]] = (
    ("arguments", re.compile(r"\b(?:pars\w*|arg\w*|options?|flags|config\w*|setup|seeds?)\b")),
    ("report", re.compile(r"\b(?:plot\w*|figures?|save\w*|write\w*|dump\w*|print\w*|report\w*|export\w*|log|table|show)\b")),
    ("evaluation", re.compile(r"\b(?:eval\w*|test\w*|metrics?|scores?|accuracy|auroc|auc|validat\w*|measure\w*|error|errors|"
                              r"predict\w*|compare\w*|compute|rmse|mse|mae|perplexity|benchmark\w*|infer\w*)\b")),
    ("training", re.compile(r"\b(?:train\w*|fit\w*|optimi[sz]\w*|step|loss|backward|epochs?|update\w*|learn\w*|finetune|descent|run)\b")),
    ("data", re.compile(r"\b(?:data\w*|load\w*|read\w*|download\w*|generat\w*|make|sampl\w*|split\w*|batch\w*|tokeni\w*|"
                        r"preprocess\w*|augment\w*|get|simulat\w*|noise|transform\w*|collate)\b")),
    ("model", re.compile(r"\b(?:model\w*|net\w*|build|init|forward|layers?|encoder|decoder|estimator|classifier|attention|module)\b")),
)  # fmt: skip
_EXTERNAL: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (re.compile(r"(?:^|\.)(?:backward|step)$"), "take optimisation steps"),
    (re.compile(r"(?:^|\.)(?:Adam|AdamW|SGD|RMSprop|LBFGS|minimize|least_squares|curve_fit)$"), "set up the optimiser {name}"),
    (re.compile(r"(?:^|\.)(?:savefig)$"), "save a figure"),
    (re.compile(r"(?:^|\.)(?:to_csv|json\.dump|np\.save|np\.savez|torch\.save|pickle\.dump|writerow|write_text|savez)$"), "save results"),
    (re.compile(r"(?:^|\.)(?:read_csv|json\.load|np\.load|loadtxt|genfromtxt|load_dataset|read_parquet|torch\.load|safe_load)$"), "load data ({name})"),
    (re.compile(r"(?:^|\.)(?:manual_seed|random\.seed|np\.random\.seed|default_rng|seed_everything|set_seed|PRNGKey)$"), "fix the random seed"),
    (re.compile(r"^print$|(?:^|\.)(?:info|log_metrics|log)$"), "print the results"),
    (re.compile(r"(?:^|\.)(?:from_pretrained|load_state_dict|load_checkpoint)$"), "load a pretrained model"),
    (re.compile(r"(?:^|\.)(?:DataLoader)$"), "wrap the data in loaders"),
    (re.compile(r"(?:^|\.)(?:makedirs|mkdir)$"), "create the output directory"),
    (re.compile(r"(?:^|\.)(?:parse_args|parse_known_args|parse_args_into_dataclasses)$"), "parse the command line"),
)  # fmt: skip
_LONGEST = 200


def split_name(name: str) -> str:
    """`fit_logistic` and `fitLogistic` in words: `fit logistic`."""
    parts = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).replace(".", "_").split("_")
    return " ".join(part if part.isupper() and len(part) > 1 else part.lower() for part in parts if part)


def classify(name: str, text: str = "") -> StepKind:
    """What part of an experiment a function is, by its name, else by its docstring."""
    for source in (split_name(name), text.lower()[:200]):
        for kind, pattern in _KINDS:
            if pattern.search(source):
                return kind
    return "other"


def describe_function(node: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> str:
    """A sentence: the docstring's first, else the name in words with what the function calls and loops over."""
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
            text += f" of {split_name(name.rsplit('.', 1)[0])}"
    details = _details(list(node.body))
    arguments = [argument.arg for argument in node.args.args if argument.arg not in {"self", "cls"}][:4]
    if not details and arguments:
        details = f"from {', '.join(arguments)}"
    return _cut(f"{text} ({name})" + (f": {details}" if details else ""))


def describe_block(statements: list[ast.stmt], comment: str) -> str:
    """A sentence for consecutive statements: the comment above them, else what they loop over, call and print."""
    details = _details(statements)
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


def _details(statements: list[ast.stmt]) -> str:
    """`for each seed in seeds, call make_data, fit and score; print the results`."""
    calls: list[str] = []
    phrases: list[str] = []
    loops: list[str] = []
    for statement in statements:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for node in ast.walk(statement):
            if isinstance(node, (ast.For, ast.AsyncFor)) and len(loops) < 2:
                loops.append(f"for each {_short(node.target)} in {_short(node.iter)}")
            elif isinstance(node, ast.While) and not loops:
                loops.append(f"while {_short(node.test)}")
        for call in calls_in(statement):
            name = dotted(call.func)
            if not name:
                continue
            phrase = next((text for pattern, text in _EXTERNAL if pattern.search(name)), None)
            if phrase:
                phrase = phrase.format(name=name.rsplit(".", 1)[-1])
                if phrase not in phrases:
                    phrases.append(phrase)
            elif _worth_naming(name) and name not in calls:
                calls.append(name)
    parts = []
    if loops:
        parts.append(", ".join(loops))
    if calls:
        parts.append(f"call {', '.join(calls[:4])}")
    return "; ".join(filter(None, [", ".join(parts), *phrases[:3]]))


def _worth_naming(name: str) -> bool:
    tail = name.rsplit(".", 1)[-1]
    return tail not in {
        "len", "range", "enumerate", "zip", "str", "int", "float", "list", "dict", "set", "tuple", "append", "format",
        "join", "items", "keys", "values", "sorted", "max", "min", "sum", "abs", "round", "isinstance", "add_argument",
        "open", "update", "copy", "split", "strip", "get", "extend", "super", "map", "filter", "any", "all", "type", "Path",
        "exit", "time", "bool", "hasattr", "getattr", "replace", "lower", "upper", "startswith", "endswith", "item", "to",
    }  # fmt: skip


def _short(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 40 else text[:37] + "..."


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3].rstrip() + "..."
