"""Third pass: ask the whole paper, appendices included, for what a draft still lacks.

After EXP-Bench 3.2, stage 2.1: setup details often stand far from the experiment. A lexical index (BM25) over
sentences answers two questions here: which of them describe how to do it, and which settings are given anywhere; tables
of settings are read cell by cell. Nothing is returned without the span it was read from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import bm25s

from extractors._reading import Line, Reading
from extractors._vocabulary import SETTING, find_metric
from extractors.claims import find_numbers, normalize, symbols_in
from pipeline.paper import Table
from pipeline.task import Evidence, Hyperparameter, TableEvidence

__all__ = ["Index", "find_settings", "settings_of_table", "tokens"]

_STOP: Final = frozenset({
    "the", "a", "an", "of", "and", "or", "to", "in", "on", "for", "with", "by", "is", "are", "was", "were", "be",
    "as", "at", "from", "that", "this", "these", "those", "it", "its", "we", "our", "which", "can", "has", "have",
    "had", "not", "no", "than", "then", "also", "such", "each", "both", "all", "into", "over", "under", "using",
    "used", "use", "between", "their", "they",
})  # fmt: skip


def tokens(text: str) -> list[str]:
    """Lower-case words and symbols without stop words; plural `s` dropped, so that `seeds` finds `seed`."""
    words = re.findall(r"[^\W_]+(?:[-'][^\W_]+)*", normalize(text).lower())
    return [w[:-1] if len(w) > 3 and w.endswith("s") and not w.endswith("ss") else w for w in words if w not in _STOP]


class Index:
    """BM25 over the sentences of a paper, deterministic in its order of answers."""

    def __init__(self, reading: Reading) -> None:
        self.lines: Sequence[Line] = reading.lines
        corpus = [tokens(f"{reading.blocks[line.block].title} {line.text}") or ["-"] for line in self.lines]
        self._model = None
        if corpus:
            self._model = bm25s.BM25()
            self._model.index(corpus, show_progress=False)

    def search(self, query: str, limit: int) -> list[tuple[float, Line]]:
        """The best lines for a query with their scores, ties in reading order; scores of 0 are left out."""
        words = sorted(set(tokens(query)))
        if self._model is None or not words:
            return []
        scores = [float(score) for score in self._model.get_scores(words)]
        order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
        return [(scores[i], self.lines[i]) for i in order[:limit] if scores[i] > 0]


class _Setting(NamedTuple):
    name: str
    value: str


_NUMBER_WORD: Final = r"(?:two|three|four|five|six|seven|eight|nine|ten|twenty|fifty|hundred)"
_VALUE: Final = rf"(?:\d(?:[\d,]*\d)?(?:\.\d+)?(?:\s?[×·]\s?10\s?[−–-]?\d+|[eE][−-]?\d+)?%?|{_NUMBER_WORD})"
_NAME_VALUE: Final = re.compile(
    rf"\b(?P<name>{SETTING})\s(?:\([^()]{{1,12}}\)\s)?"
    rf"(?:(?:is|are|was|were)(?: set| fixed)?(?: to| at)?|of(?: either)?|=|to|:|at|as|set to|fixed (?:to|"
    rf"at))\s?(?P<value>{_VALUE})(?!\w)",
    re.IGNORECASE,
)
_VALUE_NAME: Final = re.compile(
    rf"(?<![\w.,-])(?<!\d, )(?<!every )(?P<value>{_VALUE})\s(?P<mid>(?:(?:random|independent|different|training|"
    rf"bootstrap|Monte Carlo|"
    rf"fixed|decision|hidden|total|node-wise|warm-up)\s){{0,2}})(?P<name>{SETTING})\b",
    re.IGNORECASE,
)
_CHOICE: Final = re.compile(
    r"\b(?P<value>Adam[WX]?|SGD|RMSprop|L-BFGS|LBFGS|Adagrad|Nesterov|CMA-ES)\b(?=\s?(?:optimi[sz]er|with|,|\.|\[|\())|"
    r"\b(?P<split>\d{1,2}\s?[/:–-]\s?\d{1,2}(?:\s?[/:–-]\s?\d{1,2})?)\s(?:train\w*|split)|"
    r"\b(?P<cv>leave-one-out|LOO|(?:\d+|two|three|four|five|ten|twenty)-fold(?: cross-validation)?)\b"
)


_EXPONENT: Final = re.compile(r"[−–-]\d")
_IS_VALUED: Final = re.compile(
    r"(?:rates?|sizes?|decay|probability|momentum|temperature|threshold|bandwidth|dimensions?|length|tolerance|penalty|"
    r"factor|rank|width|depth)$",
    re.IGNORECASE,
)
"""Names of what has a value of its own; the number in front of them counts something else."""
# More values behind the first: a grid that was searched or an either-or, not a setting.
_MORE_VALUES: Final = re.compile(r"\s?(?:,|,? or|,? and|to|–|;)\s?\d")


def _sets(match: re.Match[str]) -> bool:
    """Does a name with a number behind it set something? Not a grid, a list or half a power."""
    text, after = match.string, match.string[match.end() :]
    if text[: match.start()].endswith("in ") or _MORE_VALUES.match(after) or _EXPONENT.match(after):
        return False  # `in steps of 0.1`, `2, 4 or 8`, `10` of a `10−6` that lost its form
    bare = re.match(rf"{re.escape(match['name'])}\s(?:of|to)\s", match.group(), re.IGNORECASE)
    return not bare or bool(_IS_VALUED.search(match["name"]))  # `samples of 8 subjects` are not 8 samples


def _counted_in(text: str, own: bool) -> list[_Setting]:
    """Settings with the number in front: `200 epochs`, `5 random seeds`."""
    found: list[_Setting] = []
    for match in _VALUE_NAME.finditer(text):
        if re.search(r"\d\s?(?:to|or|and|–|-|,)\s?$", text[: match.start()]):
            continue  # the end of a range or list: `1 to 4 epochs`
        if re.fullmatch(r"samples|examples|instances|observations", match["name"], re.IGNORECASE) and not match["mid"]:
            continue  # of what, the name does not say
        if _IS_VALUED.search(match["name"]):
            continue  # `10 learning rates` were tried
        if re.search(r"improv|patience|plateau|early[- ]stop", text[: match.start()][-60:], re.IGNORECASE):
            continue  # `no improvement for 10 epochs` is not how long one trains
        if not own and not re.match(r"seed|rep|run|trial|fold|.*epoch|restart", match["name"], re.IGNORECASE):
            continue  # `10 steps` or `50 samples` mean something only where they are said
        per = re.match(r"\s(?:per|in each|for each) \w+", text[match.end() :])  # `3 epochs per trial` are not 3 epochs
        found.append(_Setting(f"{match['mid']}{match['name']}{per.group() if per else ''}".lower(), match["value"]))
    return found


def _settings_in(text: str, own: bool) -> list[_Setting]:
    text = re.sub(r"(?<=\d), (?=000\b)", ",", text)  # typeset thousands: `260, 000`
    found: list[_Setting] = []
    found += [_Setting(match["name"].lower(), match["value"]) for match in _NAME_VALUE.finditer(text) if _sets(match)]
    found += _counted_in(text, own)
    for match in _CHOICE.finditer(text):
        if match["value"]:
            found.append(_Setting("optimizer", match["value"]))
        elif match["split"]:
            found.append(_Setting("data split", match["split"]))
        else:
            found.append(_Setting("cross-validation", match["cv"]))
    metrics = {phrase.split()[-1] for _, _, phrase in find_metric(text)}
    for name, value, start, end in symbols_in(text):
        counts = re.match(r"\s([a-z]{4,}s)\b", text[end:])  # `T = 4 rounds`: the symbol with what it counts
        if counts and any(setting.value == value and setting.name.endswith(counts[1]) for setting in found):
            continue
        if (
            name not in metrics
            and value[0] not in "{["
            and not re.match(r"[xyzi]\d?$", name)
            and not re.search(r"[|ˆ^(]\s?$", text[:start])
            and not _EXPONENT.match(text, end)
            and not re.fullmatch(r"10\d{1,2}", value)  # `10` to a power whose place the text layer lost
        ):
            found.append(_Setting(f"{counts[1]} {name}" if counts else name, value))
    return found


def _of_some(text: str, compared: Sequence[Sequence[str]]) -> str:
    """` (MSVD)` where a sentence names some of the compared things and not the others; nothing else."""
    for values in compared:
        names = [re.sub(r"\s*\(ours\)$", "", value, flags=re.IGNORECASE) for value in values]
        held = [name for name in names if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)]
        words = any(re.fullmatch(r"[A-Z]?[a-z]+", name) for name in held)  # `Value`, `Default`: words of any sentence
        if 0 < len(held) < len(names) and not words:
            return f" ({', '.join(held)})"
    return ""


def _shortens(short: str, name: str) -> bool:
    """Is a header an abbreviation of the name (`dim` of `dimension`)?"""
    return len(short) >= 3 and name.startswith(short) and " " not in name


def find_settings(
    reading: Reading, lines: Iterable[Line], exclude: frozenset[str], claimed: frozenset[str], own: frozenset[int],
    compared: Sequence[Sequence[str]] = (),
) -> tuple[Hyperparameter, ...]:  # fmt: skip
    """Settings that sentences state, first statement first.

    What a sentence says of some of the compared methods or data sets alone is named after them: `batch size (MSVD)`.

    Args:
        reading: the paper.
        lines: sentences to read, most relevant first: where two disagree, the first one stands.
        exclude: names (lower case) that vary in the experiment and therefore have no single value.
        claimed: printed numbers of the claims: a result is not a setting.
        own: indices of the experiment's own sentences; a bare symbol means the same thing only there.
        compared: the values of each variable that is compared (methods, data sets).
    """
    found: dict[str, Hyperparameter] = {}
    lines = list(lines)
    given: dict[str, set[str]] = {}
    for line in lines:
        for name, value, _, _ in symbols_in(line.text):
            given.setdefault(name, set()).add(value)
    several = {name for name, values in given.items() if len(values) > 1}  # `ρ = 0.3` here and `ρ = 0.4` there
    for line in lines:
        for setting, printed in _settings_in(line.text, line.order in own):
            name = f"{setting}{_of_some(line.text, compared)}"
            key = re.sub(r"s$", "", name.lower())
            value = printed.rstrip(",.")
            numbers = {number.text for number in find_numbers(value)}
            if re.match(r"[A-Za-zα-ω]{1,2}(?:max|min|\d)?$", name) and (line.order not in own or name in several):
                continue
            if re.search(r"\d,\d{1,2}(?:,|$)", value):
                continue  # `2,3,4` lists values, `10,000` is one
            varied = key in exclude or name.lower() in exclude or any(_shortens(short, key) for short in exclude)
            if key in found or varied or numbers & claimed:
                continue
            if re.sub(r"\s", "", normalize(value)) not in re.sub(r"\s", "", normalize(line.text)):
                continue
            evidence: tuple[Evidence, ...] = (reading.quote(line),)
            found[key] = Hyperparameter(name=name, value=value, source="paper", evidence=evidence)
    return tuple(found.values())


def _is_one_of(head: str, values: Sequence[str]) -> bool:
    """Is a header one of the things that an experiment runs, written the same but for case, signs and what follows?"""
    bare = re.sub(r"\W", "", head.lower())
    return bool(bare) and any(re.sub(r"\W", "", value.lower()).startswith(bare) for value in values)


def settings_of_table(table: Table, methods: Sequence[str]) -> tuple[Hyperparameter, ...]:
    """Settings listed in a hyper-parameter table: name/value rows, or one row per method with settings as columns.

    Args:
        table: a table refused as a result because it lists settings.
        methods: the methods of the experiment; rows of other methods are left out.
    """
    found: list[Hyperparameter] = []
    wanted = {re.sub(r"\W", "", method.lower()) for method in methods}
    heads = table.grid[0] if table.header_rows and table.grid else ()
    columns = max((len(row) for row in table.grid), default=0)
    single = next((c for c in range(1, len(heads)) if re.match(r"values?\b|settings?\b|default", heads[c], re.I)), None)
    single = 1 if single is None and columns == 2 else single
    for row, texts in enumerate(table.grid):
        if row < table.header_rows or len(texts) < 2 or not texts[0]:
            continue
        label = re.sub(r"\W", "", texts[0].lower())
        for column in range(1, len(texts)):
            value = texts[column].strip()
            if not value or value in "—–-" or re.fullmatch(r"[A-Za-z]", value):
                continue
            if single is not None:
                if column != single:
                    continue
                name = texts[0].strip()
            elif re.fullmatch(SETTING, texts[0].strip(), re.IGNORECASE) and column < len(heads):
                if not _is_one_of(heads[column], methods):
                    continue  # of another experiment's model or data set, or of none that is known
                name = f"{texts[0].strip().lower()} ({heads[column]})"
            elif column < len(heads) and heads[column] and label in wanted:
                name = f"{heads[column].lower()} ({texts[0].strip()})"
            else:
                continue
            page, box = table.place_of(row, column)
            evidence: tuple[Evidence, ...] = (
                TableEvidence(label=table.label, page=page, box=box, row=row, column=column, quote=value),
            )
            found.append(Hyperparameter(name=name, value=value, source="paper", evidence=evidence))
    return tuple(found)
