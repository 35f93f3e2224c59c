"""Code put into words: what a function or a block of statements does, from docstrings, comments, names and calls."""

from __future__ import annotations

import ast
import re
from typing import Final, Literal

from pipeline.tracing.callgraph import calls_in
from pipeline.tracing.program import dotted

__all__ = ["StepKind", "classify", "comment_above", "describe_block", "describe_function", "split_name"]

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
_EXTERNAL: Final[tuple[tuple[str, str], ...]] = (
    ("backward optimizer.step optimiser.step optim.step opt.step scaler.step", "take optimisation steps"),
    ("Adam AdamW SGD RMSprop LBFGS minimize least_squares curve_fit", "set up the optimiser {name}"),
    ("savefig", "save a figure"),
    ("to_csv json.dump np.save np.savez torch.save pickle.dump writerow write_text savez", "save results"),
    (
        "read_csv json.load np.load loadtxt genfromtxt load_dataset read_parquet torch.load safe_load",
        "load data ({name})",
    ),
    (
        "manual_seed random.seed np.random.seed default_rng seed_everything set_seed PRNGKey",
        "fix the random seed",
    ),
    ("print info log_metrics log", "print the results"),
    ("from_pretrained load_state_dict load_checkpoint", "load a pretrained model"),
    ("DataLoader", "wrap the data in loaders"),
    ("makedirs mkdir", "create the output directory"),
    ("parse_args parse_known_args parse_args_into_dataclasses", "parse the command line"),
)
"""Calls into libraries that everybody knows, and what they say about a step."""
_COMMON_CALLS: Final = frozenset(
    {
        "Path", "abs", "add_argument", "all", "any", "append", "bool", "copy", "dict", "endswith", "enumerate",
        "exit", "extend", "filter", "float", "format", "get", "getattr", "hasattr", "int", "isinstance", "item",
        "items", "join", "keys", "len", "list", "lower", "map", "max", "min", "open", "range", "replace", "round",
        "set", "sorted", "split", "startswith", "str", "strip", "sum", "super", "time", "to", "tuple", "type",
        "update", "upper", "values", "zip",
    }
)  # fmt: skip
_LONGEST = 200


def split_name(name: str) -> str:
    """`fit_logistic` and `fitLogistic` in words: `fit logistic`."""
    parts = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).replace(".", "_").split("_")
    return " ".join(part if part.isupper() and len(part) > 1 else part.lower() for part in parts if part)


def classify(name: str, text: str = "") -> StepKind:
    """What part of an experiment a function is, by its name, else by its docstring."""
    for source in (split_name(name), text.lower()[:200]):
        words = re.findall(r"[a-z]+", source.lower())
        for kind, known in _KINDS:
            for stem in known.split():
                if any(word.startswith(stem[:-1]) if stem.endswith("*") else word == stem for word in words):
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
            text += f" of {split_name(name.split('.')[-2])}"
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
            phrase = next((text for known, text in _EXTERNAL if _is_one_of(name, known)), None)
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


def _is_one_of(name: str, known: str) -> bool:
    return any(name == end or name.endswith(f".{end}") for end in known.split())


def _worth_naming(name: str) -> bool:
    tail = name.rsplit(".", 1)[-1]
    return tail not in _COMMON_CALLS


def _short(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 40 else text[:37] + "..."


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3].rstrip() + "..."
