"""What calls do, in words: of libraries that everybody knows by what they are for, of own functions by their names.

`optim.SGD(net.parameters(), lr=args.lr)` is "set up the optimiser SGD (lr 0.1)"; `adjust_learning_rate(epoch)` is
"adjust learning rate (adjust_learning_rate)". Values in force are put in where they are known.

Non-goals: sentences (see `pipeline.tracing.wording`), values that a run computes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from typing import Final

from pipeline.tracing.options import literal
from pipeline.tracing.parsed import called_name, dotted

__all__ = ["Known", "phrases_of", "split_name"]

Known = Callable[[ast.expr], str | None]
"""What an expression is in this run, as text; None: not known."""

_OPTIMISERS: Final = "Adam|AdamW|Adamax|Adagrad|Adadelta|SGD|RMSprop|LBFGS|Lion|LAMB|LARS|NAdam|RAdam|Adafactor"
_RULES: Final[tuple[tuple[str, str], ...]] = (
    (r"(?:^|\.)backward$|(?:^|\.|_)(?:optimi[sz]er\w*|opt|optim|scaler)\.step$", "take optimisation steps"),
    (rf"(?:^|\.)(?:{_OPTIMISERS})$|^(?:optax|optimizers)\.[a-z]\w+$", "set up the optimiser {names}"),
    (r"(?:^|\.)(?:minimize|least_squares|curve_fit)$", "fit the parameters with {names}"),
    (r"(?:^|\.)lr_scheduler\.\w+$|(?:^|\.)\w+LR$|(?:^|\.)get_\w*schedule\w*$",
     "schedule the learning rate with {names}"),
    (r"(?:^|\.)(?:transforms|T|v2|albumentations)\.[A-Z]\w+$", "transform the data with {names}"),
    (r"(?:^|\.)datasets\.[A-Z]\w+$|(?:^|\.)(?:load_dataset|fetch_openml)$|^tfds\.(?:load|builder)$",
     "load the data set {names}"),
    (r"(?:^|\.)(?:\w+Loss|cross_entropy|mse_loss|nll_loss|l1_loss|smooth_l1_loss|kl_div|binary_cross_entropy\w*)$",
     "compute the loss {names}"),
    (r"(?:^|\.)from_pretrained$", "load the pretrained {names}"),
    (r"(?:^|\.)(?:load_state_dict|load_checkpoint|load_from_checkpoint)$", "load pretrained weights"),
    (r"(?:^|\.)DataLoader$", "wrap the data in loaders"),
    (r"(?:^|\.)(?:DataParallel|DistributedDataParallel|DDP|FullyShardedDataParallel)$",
     "spread the model over devices"),
    (r"(?:^|\.)(?:savefig)$", "save a figure"),
    (r"(?:^|\.)(?:to_csv|json\.dump|np\.save|torch\.save|pickle\.dump|writerow|write_text|savez|save_pretrained)$",
     "save results"),
    (r"(?:^|\.)(?:read_csv|json\.load|np\.load|loadtxt|genfromtxt|read_parquet|torch\.load|safe_load|pickle\.load)$",
     "load data ({names})"),
    (r"(?:^|\.)(?:manual_seed|manual_seed_all|random\.seed|default_rng|seed_everything|set_seed|PRNGKey)$",
     "fix the random seed"),
    (r"^(?:print|logging\.info|logger\.info|log_metrics|log)$|(?:^|\.)(?:log_metrics|add_scalar)$|^wandb\.log$",
     "print the results"),
    (r"(?:^|\.)(?:makedirs|mkdir)$", "create the output directory"),
    (r"(?:^|\.)(?:parse_args|parse_known_args|parse_args_into_dataclasses)$", "parse the command line"),
    (r"^(?:\w*gym\w*|dmc2gym|envpool|suite)\.(?:vector\.)?(?:make|load)$", "set up the environment {names}"),
    (r"^(?:plt|ax\w*|sns)\.(?:plot|bar|scatter|hist|imshow|errorbar|fill_between|semilog\w+|lineplot|barplot|boxplot)$",
     "draw {names}"),
    (r"(?:^|\.)(?:trainer|model|clf|estimator|learner)\.(?:fit|train|run)$", "train with {whole}"),
    (r"(?:^|\.)(?:trainer|model|clf|estimator)\.(?:evaluate|test|predict|score)$", "evaluate with {whole}"),
    (r"^(?:plt|sns|fig|figure|ax\w*)\.\w+$", "draw the figure"),
    (r"^(?:np|onp|jnp|numpy|torch|tf|math|F|jax|jax\.\w+|scipy|scipy\.\w+)\.[a-z]\w*$", "compute {names}"),
)  # fmt: skip
"""(calls, what they do). `{names}` is what is called, with known arguments, `{whole}` its dotted name."""
_PATTERNS: Final = tuple((re.compile(pattern), phrase) for pattern, phrase in _RULES)
_OF_OWNER: Final = frozenset({"from_pretrained"})
_BY_ARGUMENT: Final = re.compile(r"(?:^|\.)(?:from_pretrained|load_dataset|fetch_openml|builder|load|make)$")
_WITH_VALUES: Final = re.compile(
    rf"(?:^|\.)(?:{_OPTIMISERS})$|^optax\.|lr_scheduler|LR$|(?:^|\.)(?:DataLoader|curve_fit)$"
)
_COMMON: Final = frozenset(
    {
        "FileHandler", "Formatter", "Path", "StreamHandler", "abs", "abspath", "addHandler", "add_argument",
        "all", "any", "append", "barrier", "basename", "basicConfig", "bool", "close", "compile", "copy",
        "count", "cpu", "cuda", "debug", "detach", "device", "device_count", "dict", "dirname",
        "empty_cache", "endswith", "enumerate", "error", "exists", "exit", "expanduser", "extend", "filter",
        "float", "flush", "format", "format_exc", "get", "getLogger", "getattr", "getcwd", "getpid",
        "globals", "hasattr", "import_module", "int", "is_available", "is_bf16_supported", "isdir",
        "isfile", "isinstance", "item", "items", "iter", "join", "keys", "len", "list", "locals", "lower",
        "map", "max", "min", "next", "now", "numpy", "open", "parameters", "perf_counter", "print_exc",
        "range", "remove", "replace", "round", "set", "setFormatter", "setLevel", "set_postfix", "setattr",
        "sorted", "split", "startswith", "str", "strftime", "strip", "sum", "super", "synchronize",
        "system", "time", "to", "tqdm", "tuple", "type", "update", "upper", "values", "vars", "view",
        "warning", "zero_grad", "zip",
    }
)  # fmt: skip
_MODES: Final = re.compile(r"(?:^|\.)\w*(?:model|net|module|network|agent|critic|actor)\w*\.(?:train|eval)$")
_ERRORS: Final = re.compile(r"(?:Error|Exception|Warning|Interrupt|Exit)$")
_LOCAL: Final = re.compile(r"__\d+$")
"""What names that settings chose are told apart by (see `pipeline.tracing.dispatch`)."""
_OWN: Final = "own "
_NAMED: Final = 4
_ARGUMENTS: Final = 5


def split_name(name: str) -> str:
    """`fit_logistic` and `fitLogistic` in words: `fit logistic`."""
    parts = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).replace(".", "_").split("_")
    return " ".join(part if part.isupper() and len(part) > 1 else part.lower() for part in parts if part)


def phrases_of(calls: Sequence[ast.Call], known: Known) -> list[str]:
    """What calls do in words, in order of first use; own functions and unknown calls by their names.

    Args:
        calls: in the order in which they are made.
        known: what expressions are in this run.
    """
    grouped: dict[str, list[str]] = {}
    order: list[str] = []
    for call in calls:
        name = called_name(call)
        last = name.rpartition(".")[2]
        if not name or last.startswith("__") or _MODES.search(name) or _ERRORS.search(name):
            continue
        phrase = next((phrase for pattern, phrase in _PATTERNS if pattern.search(name)), None)
        if phrase is None and last not in _COMMON:
            text, phrase = _spelled(dotted(call.func) or name), _own(order, grouped)
        elif phrase is not None:
            text = name if "{whole}" in phrase else _shown(call, name, known)
        else:
            continue
        if phrase not in grouped:
            grouped[phrase] = []
            order.append(phrase)
        if not any(text in shown for key, shown in grouped.items() if key.startswith(_OWN) == phrase.startswith(_OWN)):
            grouped[phrase].append(text)
    found = [_said(phrase, grouped[phrase]) for phrase in order]
    return [text for text in found if text]


def _own(order: Sequence[str], grouped: dict[str, list[str]]) -> str:
    """The group that the next own call belongs to: that of the call before, or a new one."""
    if order and order[-1].startswith(_OWN):
        return order[-1]
    return f"{_OWN}{len(grouped)}"


def _said(phrase: str, shown: Sequence[str]) -> str:
    if phrase.startswith(_OWN):
        return ", ".join(shown[:_NAMED])
    listed = _listed(shown)
    return phrase.format(names=listed, whole=listed)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    shown = list(names[:_NAMED])
    return ", ".join(shown) + more if more or len(shown) < 2 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _shown(call: ast.Call, name: str, known: Known) -> str:
    """What is called, with the arguments that say something and are known."""
    last = name.rpartition(".")[2]
    if last in _OF_OWNER:
        last = name.rpartition(".")[0].rpartition(".")[2] or "model"
    if _BY_ARGUMENT.search(name) and call.args:
        given = literal(call.args[0]) or known(call.args[0])
        other = last if name.endswith("from_pretrained") else ""
        return f"{other} {given}".strip() if given else last
    if not _WITH_VALUES.search(name):
        return last
    parts = []
    for word in call.keywords:
        value = literal(word.value) or known(word.value)
        if word.arg and value and len(value) <= 20:
            parts.append(f"{word.arg.replace('_', ' ')} {value}")
    for item in call.args[:2]:  # `SGD(parameters, 0.1)`
        value = literal(item) or known(item)
        if value and len(value) <= 20:
            parts.append(value)
    return f"{last} ({', '.join(parts[:_ARGUMENTS])})" if parts else last


def _spelled(name: str) -> str:
    """A name in words with the name itself, where they differ: `adjust learning rate (adjust_learning_rate)`."""
    name = _LOCAL.sub("", name)
    last = name.rpartition(".")[2]
    words = split_name(last)
    if last[:1].isupper():
        return f"build {name}"
    return name if words == last.lower() else f"{words} ({name})"
