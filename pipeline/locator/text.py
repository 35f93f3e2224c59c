"""Words of code and prose made comparable: identifiers split at case and underscores, light stemming.

`loadCIFAR10_data` and "CIFAR-10 data loading" must meet. No language model, no dictionary.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

__all__ = ["compact", "labels", "spelled", "stem", "tokens"]

_WORD = re.compile(r"[A-Za-z0-9_]+")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_LABEL = re.compile(r"(?<![a-z])(tab(?:le|\.)?|fig(?:ure|\.)?)s?[\s_\-~.]*([a-z][._\-]?)?(\d{1,2})(?![\d.]*\d)", re.I)
_STOP: Final = frozenset(
    {
        "a", "an", "and", "are", "as", "at", "be", "been", "being", "but", "by", "can", "could", "did", "do", "does",
        "each", "eg", "etc", "for", "from", "had", "has", "have", "how", "ie", "if", "in", "into", "is", "it", "its",
        "may", "might", "more", "most", "must", "no", "not", "of", "on", "one", "or", "our", "should", "so", "some",
        "such", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "those", "through",
        "to", "under", "up", "use", "used", "uses", "using", "via", "was", "we", "were", "what", "when", "where",
        "whether", "which", "while", "who", "will", "with", "within", "would", "you", "your", "self", "def", "import",
        "return", "none", "true", "false", "else", "elif", "cls", "args", "kwargs",
    }
)  # fmt: skip
# Different words for one thing in research code; each pair occurs as directory name and as prose in many repositories.
_ALIASES: Final = {
    "evaluat": "eval", "evaluator": "eval", "inferenc": "infer", "configur": "config", "cfg": "config",
    "generat": "gen", "visualiz": "plot", "visualis": "plot", "viz": "plot", "optimiz": "optim", "optimis": "optim",
    "argument": "arg", "dataset": "data", "calculat": "comput", "figur": "fig", "experiment": "exp",
    "perplexity": "ppl", "hyperparamet": "hparam", "tuning": "tun",
}  # fmt: skip
_SUFFIXES: Final = (
    "izations", "ization", "ations", "ation", "ators", "ator", "ings", "ing", "ers", "ies", "ied", "ed", "er", "ors",
    "or", "ions", "ion", "es", "s", "e",
)  # fmt: skip


@lru_cache(maxsize=200_000)
def stem(word: str) -> str:
    """Cut the usual English endings off a lower-case word of five letters or more."""
    if word in _ALIASES:
        return _ALIASES[word]
    if len(word) < 5 or word.isdigit():
        return word
    if word.endswith(("bility", "bilities")):
        word = word[: word.rindex("bilit")] + "ble"  # reliability, reliable
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 4:
            base = word[: -len(suffix)]
            if suffix in {"ations", "ation", "ators", "ator"}:
                base += "at"
            elif suffix in {"izations", "ization"}:
                base += "iz"
            elif suffix in {"ies", "ied"}:
                base += "y"
            if len(base) > 4 and base[-1] == base[-2] and base[-1] not in "ls":
                base = base[:-1]
            return _ALIASES.get(base, base)
    return _ALIASES.get(word, word)


@lru_cache(maxsize=400_000)
def _expand(word: str) -> tuple[str, ...]:
    low = word.lower().strip("_")
    if not low or len(low) > 40:
        return ()
    parts = _PART.findall(word)
    found = [stem(low)] if len(low) > 1 and low not in _STOP else []
    if len(parts) > 1:
        found += [stem(part) for part in map(str.lower, parts) if len(part) > 1 and part not in _STOP]
    return tuple(found)


def tokens(text: str) -> list[str]:
    """Stems of all identifiers and words in `text`, whole and in parts, in order."""
    found: list[str] = []
    for word in _WORD.findall(text):
        found.extend(_expand(word))
    return found


def spelled(text: str) -> dict[str, str]:
    """Each stem of `text` with the first word that it was cut from, for people to read."""
    found: dict[str, str] = {}
    for word in _WORD.findall(text):
        for part in _expand(word):
            found.setdefault(part, word)
    return found


def compact(word: str) -> str:
    """Letters and digits only, lower case: `CIFAR-10`, `cifar_10` and `Cifar10` are one name."""
    return re.sub(r"[^a-z0-9]", "", word.lower())


def labels(text: str) -> tuple[str, ...]:
    """Tables and figures that `text` names, as `table2`, `figurea1`, sorted."""
    found = set()
    for kind, letter, number in _LABEL.findall(text):
        word = "table" if kind.lower().startswith("tab") else "figure"
        found.add(f"{word}{compact(letter)}{int(number)}")
    return tuple(sorted(found))
