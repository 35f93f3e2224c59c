"""Names of metrics and conditions as sets of comparable words: `Test Acc. (%)`, `test_accuracy` and `testAcc` agree.

What counts as the same word is a closed list below (synonyms, phrases, qualifiers); nothing is guessed from values.
Non-goal: meaning. Two words that this file does not know are equal only when they are spelled alike.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final, NamedTuple

__all__ = ["DERIVED", "OPTIONAL", "SHARES", "STATISTICS", "TIMES", "MetricName", "metric_name", "words"]

SYNONYMS: Final[dict[str, str]] = {
    "acc": "accuracy", "accs": "accuracy", "accuracies": "accuracy", "err": "error", "prec": "precision",
    "rec": "recall", "avg": "mean", "average": "mean", "averaged": "mean", "mu": "mean", "stddev": "std", "sd": "std",
    "stdev": "std", "sigma": "std", "dev": "val", "sem": "stderr", "se": "stderr",
    "ppl": "perplexity", "auroc": "auc", "rocauc": "auc",
    "fscore": "f1", "fmeasure": "f1", "rsquared": "r2", "temp": "temperature", "iter": "iteration",
    "iters": "iteration", "params": "parameter", "param": "parameter", "num": "number", "no": "number", "nr": "number",
    "count": "number", "dim": "dimension", "dims": "dimension", "lr": "learningrate", "bs": "batchsize",
    "maximum": "max", "minimum": "min", "largest": "max", "smallest": "min", "highest": "max", "lowest": "min",
    "proposed": "ours", "our": "ours", "validation": "val", "valid": "val", "dev_set": "val", "training": "train",
    "testing": "test", "evaluation": "eval", "eps": "epsilon", "std.": "std", "secs": "second", "sec": "second",
    "seconds": "second", "msec": "ms", "milliseconds": "ms", "millisecond": "ms", "mins": "minute", "minutes": "minute",
    "reps": "replicate", "rep": "replicate", "replicates": "replicate", "repetition": "replicate", "trials": "trial",
    "seeds": "seed", "runs": "run", "folds": "fold", "epochs": "epoch", "steps": "step", "samples": "sample",
    "losses": "loss", "errors": "error", "rates": "rate", "scores": "score", "methods": "method",
    "models": "model", "datasets": "dataset", "data_set": "dataset", "coef": "coefficient", "corr": "correlation",
    "wo": "without", "w": "with", "med": "median", "var": "variance", "regularisation": "regularization",
    "normalised": "normalized", "normalisation": "normalization", "nmi": "nmi", "ll": "loglikelihood",
}  # fmt: skip

# Longest first at look-up; the keys are words after SYNONYMS.
PHRASES: Final[dict[tuple[str, ...], str]] = {
    ("root", "mean", "squared", "error"): "rmse", ("root", "mean", "square", "error"): "rmse",
    ("mean", "squared", "error"): "mse", ("mean", "square", "error"): "mse", ("mean", "absolute", "error"): "mae",
    ("standard", "deviation"): "std", ("std", "val"): "std", ("standard", "error"): "stderr",
    ("area", "under", "curve"): "auc", ("area", "under", "roc", "curve"): "auc", ("roc", "auc"): "auc",
    ("adjusted", "rand", "index"): "ari", ("adjusted", "rand", "score"): "ari",
    ("normalized", "mutual", "information"): "nmi", ("expected", "calibration", "error"): "ece",
    ("intersection", "over", "union"): "iou", ("mean", "mean", "precision"): "map", ("mean", "precision"): "map",
    ("f", "score"): "f1", ("f1", "score"): "f1", ("f1", "measure"): "f1", ("f", "1"): "f1", ("f", "measure"): "f1",
    ("r", "squared"): "r2", ("r", "square"): "r2", ("r2", "score"): "r2", ("coefficient", "determination"): "r2",
    ("negative", "log", "likelihood"): "nll", ("log", "likelihood"): "loglikelihood", ("data", "set"): "dataset",
    ("learning", "rate"): "learningrate", ("batch", "size"): "batchsize", ("dev", "set"): "val",
    ("cross", "entropy"): "crossentropy", ("k", "nearest", "neighbor"): "knn", ("wall", "clock"): "wallclock",
    ("square", "root"): "sqrt", ("signal", "to", "noise"): "snr", ("pass", "rate"): "passrate",
}  # fmt: skip

STATISTICS: Final = frozenset({"mean", "std", "stderr", "min", "max", "median", "variance", "sum"})
SPLITS: Final = frozenset({"train", "val", "test"})
GENERIC: Final = frozenset({
    "score", "value", "rate", "result", "performance", "overall", "total", "final", "metric", "measure", "reported",
    "number", "percent", "percentage", "estimate", "estimated", "observed", "eval", "best", "level", "task", "ratio",
})  # fmt: skip
SHARES: Final = frozenset({
    "accuracy", "precision", "recall", "f1", "auc", "map", "iou", "dice", "error", "coverage", "ece", "ari", "nmi",
    "specificity", "sensitivity", "rate", "passrate", "share", "fraction", "proportion", "percentage", "success", "win",
    "top1", "top5", "em", "purity", "power", "exact",
})  # fmt: skip
"""Metrics that are printed as a fraction by one program and in percent by another."""
TIMES: Final = frozenset({
    "time", "runtime", "latency", "throughput", "second", "ms", "minute", "hour", "wallclock", "speedup", "fps",
    "duration", "memory", "flop", "flops",
})  # fmt: skip
"""What depends on the machine: never contradicts a claim."""
DERIVED: Final = frozenset(
    {
        "gap",
        "difference",
        "improvement",
        "gain",
        "drop",
        "delta",
        "increase",
        "decrease",
        "reduction",
        "change",
        "relative",
    }
)
"""Quantities made from two others: a difference of accuracies is not an accuracy."""
OPTIONAL: Final = frozenset({"ours", "method", "model", "dataset", "baseline", "proposed", "variant", "full"})
"""What a paper adds to a name and a program does not (`CAW (ours)`)."""
_STOP: Final = frozenset(
    [
        "the",
        "of",
        "on",
        "at",
        "for",
        "in",
        "and",
        "with",
        "a",
        "an",
        "to",
        "by",
        "we",
        "is",
        "are",
        "was",
        "were",
        "as",
        "from",
        "per",
        "over",
        "vs",
        "than",
        "that",
        "this",
        "its",
        "it",
        "our",
        "using",
    ]
) - {"with", "our"}
_GREEK: Final = dict(
    zip(
        "αβγδεζηθικλμνξοπρστυφχψω",
        [
            "alpha",
            "beta",
            "gamma",
            "delta",
            "epsilon",
            "zeta",
            "eta",
            "theta",
            "iota",
            "kappa",
            "lambda",
            "mu",
            "nu",
            "xi",
            "omicron",
            "pi",
            "rho",
            "sigma",
            "tau",
            "upsilon",
            "phi",
            "chi",
            "psi",
            "omega",
        ],
        strict=True,
    )
)
_SYMBOLS: Final = str.maketrans(
    {
        "√": " sqrt ",
        "×": " ",
        "·": " ",
        "∗": " ",
        "’": "'",
        "#": " number ",
        "\u2212": "-",
        "∆": " delta ",
        "Δ": " delta ",
        "ϵ": " epsilon ",
    }
)
# `top-1`, `hits@10`, `R^2`, `h_2`, `F 1`: a short name with its index is one word.
_INDEXED = re.compile(
    r"\b(top|hits|hit|recall|precision|ndcg|map|mrr|pass)\s?[-@_ ]\s?(\d+)\b|\b([a-z]{1,2})[_^](\d+)\b"
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z][a-z])|(?<=[a-z])(?=[A-Z])")
# the number alternative ends where the digits end: `50kb` is one word, not `5` and `0kb`
_WORD = re.compile(
    r"\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![a-z\d]|\.\d)|[a-z][a-z0-9]*|\d+(?:\.\d+)?[a-z][a-z0-9]*|\d+(?:\.\d+)?"
)
_MAGNITUDE = re.compile(r"(?<![\w.,])(\d+(?:\.\d+)?)([kKM])(?![\w])")
_MAGNITUDES: Final = {"k": 1e3, "K": 1e3, "M": 1e6}
"""`n=50K` is the paper's n = 50,000. A small m is a metre or a minute, a B a billion parameters' name (`7B`)."""
_THOUSANDS = re.compile(r"(?<=\d)[,;](?=\d{3}(?!\d))")
_COMBINED = re.compile("[\u0300-\u036fˆ˜¯]")


@lru_cache(maxsize=65536)
def words(text: str) -> tuple[str, ...]:
    """The comparable words of a name, in order: lower case, synonyms folded, numbers in canonical form."""
    text = _THOUSANDS.sub("", text)
    text = _MAGNITUDE.sub(lambda m: repr(float(m[1]) * _MAGNITUDES[m[2]]).removesuffix(".0"), text)
    text = _CAMEL.sub(" ", text)
    text = unicodedata.normalize("NFKC", text).translate(_SYMBOLS)
    text = _COMBINED.sub("", unicodedata.normalize("NFD", text)).lower()
    text = "".join(_GREEK.get(letter, letter) for letter in text)
    text = re.sub(r"\bw/o\b", "without", text)
    text = _INDEXED.sub(lambda m: f" {m[1] or m[3]}{m[2] or m[4]} ", text.replace("$", "").replace("\\", " "))
    found = [_canonical(word) for word in _WORD.findall(text)]
    # a name that is one letter (`method A`) is not an article
    return tuple(_fold_phrases([word for word in found if word not in _STOP] or found))


def _canonical(word: str) -> str:
    if word[0].isdigit():
        try:
            return f"{float(word):g}"
        except ValueError:
            return word
    word = SYNONYMS.get(word, word)
    if len(word) > 3 and word.endswith("ies"):
        word = word[:-3] + "y"
    elif len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is", "as")) and word != "ours":
        word = word[:-1]
    return SYNONYMS.get(word, word)


def _fold_phrases(found: list[str]) -> list[str]:
    result: list[str] = []
    position = 0
    while position < len(found):
        for length in (4, 3, 2):
            phrase = PHRASES.get(tuple(found[position : position + length]))
            if phrase and len(found) - position >= length:
                result.append(phrase)
                position += length
                break
        else:
            result.append(found[position])
            position += 1
    return result


class MetricName(NamedTuple):
    """A metric taken apart: what is measured, which statistic of it, on which split."""

    core: frozenset[str]
    generic: frozenset[str]
    statistic: str
    """`` (none or the mean), or another of STATISTICS."""
    split: str


def metric_name(text: str) -> MetricName:
    """Take a metric's name apart. `R2 (mean ± std)` names a mean: the number before the sign is the value."""
    text = re.sub(r"\(?\s*(?:mean|average|avg\.?)\s*(?:±|\+/-|\\pm)\s*[\w. ]*\)?", " ", text, flags=re.IGNORECASE)
    found = words(text)
    statistics = [word for word in found if word in STATISTICS and word != "mean"]
    splits = [word for word in found if word in SPLITS]
    rest = frozenset(found) - STATISTICS - SPLITS
    return MetricName(
        rest - GENERIC, rest & GENERIC, statistics[0] if statistics else "", splits[0] if len(set(splits)) == 1 else ""
    )
