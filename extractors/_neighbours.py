"""What of a paper is another experiment's: the names and subjects that only its table and discussion hold.

Two general signs. A proper name (`GSM8K`, `WavLM`) that other experiments' tables hold and this one's table and
discussion do not, belongs to those. A sentence that says what another result subsection's title says (`neutral wrapper
baseline`) is about that one. Sentences without either sign are for `extractors.method_text` to judge.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from extractors._reading import Reading, references_in
from extractors.takeaways import Experiment
from pipeline.paper import Table

__all__ = ["Neighbours", "neighbours_of", "proper_names"]

_NAME: Final = re.compile(r"(?<![\w])[A-Za-z][\w.]*(?:[-/][\w.]+)*")
_GENERIC: Final = frozenset({
    "abl", "acros", "additional", "algorithm", "analysi", "annot", "appendix", "approach", "architectur", "augment",
    "backbon", "baselin", "benchmark", "between", "cas", "choic", "collect", "common", "compar", "comparison",
    "compet", "comput", "computational", "configur", "consider", "criter", "criteria", "data", "dataset", "decod",
    "descript", "design", "detail", "different", "discuss", "do", "domain", "each", "effect", "empirical",
    "environment", "evalu", "evaluat", "experiment", "experimental", "extract", "featur", "from", "further",
    "gener", "general", "hardwar", "hyper", "hyperparameter", "impact", "implement", "inferenc", "influenc",
    "infrastructur", "initializ", "instanc", "learn", "main", "material", "measur", "method", "metric", "model",
    "mor", "network", "optimiz", "optimizer", "other", "over", "overall", "overview", "parameter", "particip",
    "participant", "performanc", "preprocess", "pretrain", "problem", "procedur", "process", "prompt", "protocol",
    "qualitativ", "quantitativ", "random", "randomnes", "reproducibility", "resourc", "result", "sampl", "scop",
    "select", "sett", "setting", "setup", "softwar", "split", "stud", "study", "supplementary", "task", "test",
    "that", "thi", "tokeniz", "train", "under", "us", "valid", "variou", "what", "with",
})  # fmt: skip
"""What any setup or result part may be called, without endings (see `_stem`): it names no subject."""


_DATA: Final = re.compile(
    r"\b(?:data ?sets?|benchmarks?|corpora|corpus|test sets?|suites?|diagnostics?|evaluat\w+ on|stud(?:y|ies) uses?)\b",
    re.IGNORECASE,
)


def proper_names(text: str) -> frozenset[str]:
    """Names by their letters: two capitals, or a capital and a digit (`LIMO`, `GSM8K`, `AdamW`), parts of them too."""
    return frozenset(_in_order(text))


def _in_order(text: str) -> list[str]:
    found: dict[str, None] = {}
    for match in _NAME.finditer(text):
        whole = match.group().rstrip(".")
        for part in [whole, *re.split(r"[-/]", whole)]:
            capitals = sum(c.isupper() for c in part)
            if len(part) > 1 and (capitals > 1 or (capitals and re.search(r"\d", part))):
                found[part] = None
    return list(found)


def _subject(title: str) -> frozenset[str]:
    """The words of a title that say what it is about, without their endings."""
    return _words(title) - _GENERIC


def _words(text: str) -> frozenset[str]:
    """Longer words of a text without their endings."""
    return frozenset(_stem(word) for word in re.findall(r"[a-z]{4,}", text.lower().replace("-", " ")))


def _stem(word: str) -> str:
    return re.sub(r"(?:ations?|ions?|ies|es|s|ing|ed|e)$", "", word)


class Neighbours(NamedTuple):
    """What tells that a sentence is about another experiment of the paper."""

    own: frozenset[str]
    """Proper names in this experiment's table and discussion."""
    foreign: frozenset[str]
    """Proper names that stand in other experiments' tables and not in `own`."""
    subjects: tuple[frozenset[str], ...]
    """What the titles of other result subsections are about; two words at least."""
    words: frozenset[str]
    """Words of this experiment's table, titles and discussion, without their endings."""

    @staticmethod
    def is_common(title: str) -> bool:
        """Is the title one that any setup part may have (`Protocol`, `Implementation details`)?"""
        return bool(title) and not _subject(title)

    def concerns(self, title: str) -> bool:
        """Is a setup part of this title about this experiment: has it no subject of its own, or one spoken of here?"""
        return _subject(title) <= self.words

    def lists_others(self, text: str) -> bool:
        """Does a sentence list data (`the diagnostic includes FiNER and IFBench`) of which this experiment has none?"""
        names = [name for name in _in_order(text) if not re.search(r"\d$", name)]
        return len(names) > 1 and _DATA.search(text) is not None and not any(self._known(n) in self.own for n in names)

    def _known(self, name: str) -> str:
        """A name without the mark of a footnote that clings to it: `ORL2` where tables know `ORL`."""
        bare = re.sub(r"\d$", "", name)
        return bare if name not in self.own | self.foreign and bare in self.own | self.foreign else name

    def claims(self, text: str) -> bool:
        """Is the sentence another experiment's, by a subject or by more foreign names than own ones?"""
        names = [self._known(name) for name in _in_order(text)]
        names = [name for name in names if name in self.own or name in self.foreign]
        if names and names[0] in self.foreign:
            return True  # what a sentence names first it is about
        if 2 * sum(name in self.foreign for name in names) > len(names):
            return True
        words = _words(text)
        return any(subject <= words for subject in self.subjects)


def neighbours_of(
    reading: Reading, experiments: Sequence[Experiment], experiment: Experiment, results: Sequence[Table] = (),
    data: str = "",
) -> Neighbours:  # fmt: skip
    """What belongs to the other experiments of the paper and not to this one.

    Args:
        reading: the paper.
        experiments: all that the first pass found.
        experiment: one of them.
        results: further tables that report results but gave no experiment.
        data: what this experiment runs on, as far as it is known from elsewhere.
    """
    blocks = set(experiment.blocks)
    own_text = [line.text for block in experiment.blocks for line in reading.block_lines(block)]
    own_text += [line.text for line in experiment.mentions if line.block in blocks]
    own = proper_names(" ".join([_table_text(experiment), data, *own_text]))
    others = [other for other in experiments if other is not experiment]
    texts = [*map(_table_text, others), *(_grid_text(table) for table in results if table.label != experiment.label)]
    foreign = frozenset[str]().union(*map(proper_names, texts)) - own
    titles = {_subject(reading.blocks[block].title) for block in blocks} | {
        _subject(reading.section_title(block) or "") for block in blocks
    }
    mine = frozenset[str]().union(*titles) | _subject(_table_text(experiment))
    told = {block for other in others for block in other.blocks} | _float_blocks(reading)
    subjects = {_subject(reading.blocks[block].title) for block in told - blocks}
    subjects = {subject for subject in subjects if len(subject) > 1 and not subject <= mine}
    return Neighbours(own, foreign, tuple(sorted(subjects, key=sorted)), mine | _words(" ".join(own_text)))


def _table_text(experiment: Experiment) -> str:
    if experiment.table is None:
        return " ".join(line.text for line in experiment.statements)
    return _grid_text(experiment.table.table)


def _grid_text(table: Table) -> str:
    return " ".join([table.caption, *(text for row in table.grid for text in row)])


def _float_blocks(reading: Reading) -> set[int]:
    """Result and setup blocks that speak of tables or figures: each is about those."""
    lines = (line for line in reading.lines if reading.role(line) in ("evaluation", "setup"))
    return {line.block for line in lines if references_in(line.text)}
