"""The keyless judge of implementation (I): which of the task's requirements does the submission implement?

Each requirement has the lines of the original that implement it. Where those lines were taken out, the patch must have
their counterpart: the share of what they say (calls, settings, texts, numbers) that the patch says too. Where they were
left in the repository, the submission's own programs must lead to them. One that changes nothing meets nothing.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from dataclasses import dataclass
from typing import Final

from evaluation.integrity.material import Material, read_text
from evaluation.judges.features import (
    NAME,
    Features,
    best_line,
    coverage,
    features_of_code,
    features_of_file,
    features_of_text,
)
from evaluation.judges.kept import defined_in, kept_features
from evaluation.judges.reaching import Use, Used, used_by
from evaluation.judges.siblings import copied_sibling
from evaluation.judges.units import Counterparts, Unit, live_units, units_of
from evaluation.submission import RESPONSE
from evaluation.verdicts import ItemVerdict
from pipeline.task import CodeEvidence, ExperimentTruth, Requirement, Verdict
from pipeline.tracing.source import parse_python
from pipeline.validation.numbers import find_numbers

__all__ = ["judge_implementation", "requirement_id"]

MET: Final = 0.6
"""Share of a requirement's features from which it counts as implemented. On a worked example of 20 requirements the
original meets 20, a second implementation over the same library 17 (it has no command line, and its main loop says 57%
of the original's), one from scratch of a single method 2, and a copy of a sibling experiment 19: copies are looked for
first (`siblings`)."""
WORDS_MET: Final = 0.6
WORDS_LACKING: Final = 0.35
"""The same for requirements that are words only; between the two nothing can be said."""
_FEW: Final = 3.0
"""Weight below which a text says nothing that could be looked for."""


SHARED: Final = 0.5
OWN: Final = 1.5
NAMED: Final = 2.0
INVENTED: Final = 0.1
KEYS: Final = 0.5
LACKS_KEYS: Final = 0.5
"""SHARED and OWN weigh what files that were left say too, and what only the original says; NAMED what of the latter
its requirement names; INVENTED the names of removed functions. Without half of what the requirement names (KEYS), the
rest is what siblings share. With equal weights the copy of a sibling met all 20."""
_TRIVIAL: Final = frozenset({"number:0", "number:1", "number:2"})
_PRINTING: Final = frozenset({"print", "show", "display", "report", "log"})
_WRITING: Final = frozenset({"write", "save", "dump", "export", "store"})
_PRINTS: Final = re.compile(r"\bprint\(|\blog(?:ger|ging)?\.\w+\(|\becho\b")
_WRITES: Final = re.compile(
    r"\.(?:write|writerow|writerows|write_text|to_csv|to_json|savetxt|save)\(|\bjson\.dump\(|\bsavetxt\("
)
_PROGRAMS: Final = (".py", ".ipynb")
_READ: Final = (".py", ".ipynb", ".sh", ".yaml", ".yml", ".json", ".toml", ".cfg", ".ini")
PIECES: Final = 4
"""Functions and the like over which the counterpart of a span may be spread. Over all pieces of a submission, 22 of 30
requirements whose lines had been deleted were found somewhere."""
_OFFERED: Final = 12
_GAIN: Final = 0.02


def requirement_id(number: int) -> str:
    """Stable id of the requirement at a position from 0."""
    return f"requirement:{number + 1}"


@dataclass(slots=True)
class _Found:
    """How well one span is implemented, and what shows it."""

    share: float
    reason: str
    quote: str = ""
    where: str = ""


def judge_implementation(truth: ExperimentTruth, material: Material) -> tuple[ItemVerdict, ...]:
    """The verdict on each requirement, in their order."""
    files = {path: text for path, text in sorted(material.final_texts.items()) if path != RESPONSE}
    if not material.patch.strip() and material.submission.patch_sha256:
        reason = "the patch that was handed in is not among the saved artefacts"
        return tuple(_verdict(n, item, Verdict.UNKNOWN, reason) for n, item in enumerate(truth.requirements))
    if not files:
        return tuple(
            _verdict(number, item, Verdict.FAIL, "the submission changes nothing")
            for number, item in enumerate(truth.requirements)
        )
    judge = _Judge(truth, material, files)
    return tuple(judge.verdict(number, item) for number, item in enumerate(truth.requirements))


def _verdict(
    number: int, item: Requirement, verdict: Verdict, reason: str, quote: str = "", where: str = ""
) -> ItemVerdict:
    return ItemVerdict(
        item=requirement_id(number), text=item.text, verdict=verdict, reason=reason, quote=quote, where=where
    )


class _Judge:
    """The submission, read once for all requirements."""

    def __init__(self, truth: ExperimentTruth, material: Material, files: dict[str, str]) -> None:
        self._material = material
        read = {path: text for path, text in files.items() if path.endswith(_READ)}
        self._lines = [
            (f"patch: {path}:{number}", line)
            for path, text in files.items()
            for number, line in enumerate(text.split("\n"), 1)
        ]
        self._used: Used = used_by(material)
        self._kept = kept_features(material)
        self._settings = {setting.name.lower(): setting.value for setting in truth.hyperparameters}
        self._masked = {item.path for item in material.task.masked_paths if item.action == "removed"}
        self._invented = defined_in(material.task.original_tree, self._masked)
        units = [unit for path, text in read.items() for unit in units_of(path, text)]
        live = live_units(units, self._named(read))
        self._patch = Features()
        for unit in live:
            self._patch.merge(unit.features)
        self._lines = _without_dead(self._lines, [unit for unit in units if unit not in live])
        self._claimed = _comments(read)
        self._counterparts = Counterparts(live, self._original_units(truth))
        self._sibling = copied_sibling(truth, material, self._patch, files)

    def _named(self, read: dict[str, str]) -> set[str]:
        """Words that may name a function of the submission: in the kept files, and in what starts programs."""
        kept = {feature.partition(":")[2] for feature in self._kept.features}
        scripts = [text for path, text in read.items() if not path.endswith((".py", ".ipynb"))]
        return kept | {word for text in (self._material.reproduce, *scripts) for word in re.findall(r"\w+", text)}

    def _original_units(self, truth: ExperimentTruth) -> list[Unit]:
        """The pieces of the files that were taken out and that some requirement or the chain names."""
        root = self._material.task.original_tree
        cited = {span.path for item in truth.requirements for span in item.spans} | {s.path for s in truth.sources}
        paths = sorted(cited & self._masked) if root is not None else []
        return [unit for path in paths if root is not None for unit in units_of(path, read_text(root / path))]

    def verdict(self, number: int, item: Requirement) -> ItemVerdict:
        """Of one requirement."""
        if self._sibling is not None:
            return _verdict(number, item, Verdict.FAIL, self._sibling.reason, where=f"patch: {self._sibling.program}")
        spans = [(span, self._code(span)) for span in item.spans]
        known = [(span, code) for span, code in spans if code.strip()]
        if not known:
            return self._by_words(number, item)
        weights = [max(1, code.count("\n") + 1) for _, code in known]
        found = [self._span(span, code, item.text) for span, code in known]
        share = sum(one.share * weight for one, weight in zip(found, weights, strict=True)) / sum(weights)
        best = max(found, key=lambda one: one.share)
        verdict = Verdict.PASS if share >= MET else Verdict.FAIL
        shown = best if verdict is Verdict.PASS or best.quote else found[0]
        reason = shown.reason if len(found) == 1 else f"{shown.reason}; {share:.0%} over its {len(found)} pieces"
        return _verdict(number, item, verdict, reason, shown.quote, shown.where)

    def _code(self, span: CodeEvidence) -> str:
        """The original's lines; what the evidence quotes where the original is not at hand."""
        for root in (self._material.task.original_tree, self._material.task.masked_repository):
            if root is None:
                continue
            target = (root / span.path).resolve()
            if target.is_relative_to(root.resolve()) and target.is_file():
                return "\n".join(read_text(target).split("\n")[span.start - 1 : span.end])
        return span.quote

    def _span(self, span: CodeEvidence, code: str, asked: str) -> _Found:
        use = None if span.path in self._masked else self._use(span)
        if use is not None:
            return _Found(1.0, f"runs {span.path}:{span.start}, which the repository has", use.quote, use.where)
        reference = (
            features_of_code(code) if span.path.endswith((".py", ".ipynb")) else features_of_file(span.path, code)
        )
        exact, keys = self._weigh(reference, asked)
        said, chosen = self._counterpart(span, reference, exact)
        share = coverage(reference, said, also=self._equivalent, exact=exact)
        if keys.weights and coverage(keys, said, also=self._equivalent, exact=exact) < KEYS:
            share = min(share, LACKS_KEYS)
        where, quote = best_line(reference, self._lines_of(chosen))
        if share < MET and (other := self._output(span, code)):
            return _Found(
                1.0, f"writes its results out in its own way, as {span.path}:{span.start} does", other[1], other[0]
            )
        lacking = [
            name.partition(":")[2]
            for name, weight in _heaviest(reference)
            if coverage(_only(name, weight), said, also=self._equivalent) == 0
        ]
        reason = f"{share:.0%} of what {span.path}:{span.start}-{span.end} says is in the patch"
        if lacking:
            reason += f" (lacking: {', '.join(lacking[:4])})"
        return _Found(share, reason, quote, where)

    def _counterpart(
        self, span: CodeEvidence, reference: Features, exact: frozenset[str]
    ) -> tuple[Features, list[Unit]]:
        """The few pieces of the submission that together say most of what the span says."""
        wanted = self._counterparts.holding(span.path, span.start, span.end)
        offered = []
        for position, unit in enumerate(self._counterparts.units):
            said = self._counterparts.said_for(position, wanted)
            if span.path.endswith(_PROGRAMS) and not unit.path.endswith(_PROGRAMS):
                said = _values_of(said, reference)
            share = coverage(reference, said, also=self._equivalent, exact=exact)
            if share > 0:
                offered.append((share, unit, said))
        offered.sort(key=lambda one: (-one[0], one[1].path, one[1].start))
        together, chosen, reached = Features(), [], 0.0
        for _ in range(PIECES):
            best = None
            for _, unit, said in offered[:_OFFERED]:
                if unit not in chosen:
                    both = Features()
                    both.merge(together)
                    both.merge(said)
                    share = coverage(reference, both, also=self._equivalent, exact=exact)
                    if share > reached + _GAIN:
                        reached, best = share, (unit, both)
            if best is None:
                break
            chosen.append(best[0])
            together = best[1]
        return together, chosen

    def _lines_of(self, chosen: list[Unit]) -> list[tuple[str, str]]:
        """The lines of some pieces; of notebooks all lines, as theirs are counted in cells."""
        spans = [(unit.path, unit.start, unit.end) for unit in chosen]
        found = []
        for where, line in self._lines:
            path, _, number = where.removeprefix("patch: ").rpartition(":")
            if any(
                path == own and (own.endswith(".ipynb") or start <= int(number) <= end) for own, start, end in spans
            ):
                found.append((where, line))
        return found

    def _weigh(self, reference: Features, said: str) -> tuple[frozenset[str], Features]:
        """What no file that was left says tells this experiment from its siblings, most of all what the words name.

        Returns:
            Texts of the original alone (similar words do not stand for them), and what its requirement names of those.
        """
        exact = set()
        keys = Features()
        named = set(re.findall(r"[\w.-]+", said.lower()))
        for feature, weight in reference.weights.items():
            kind, _, name = feature.partition(":")
            if name in self._invented:  # functions of the removed files: their names are the author's own
                reference.weights[feature] = weight * INVENTED
                continue
            own = feature not in self._kept.features
            boost = NAMED if own and kind != "name" and name.lower() in named else 1.0
            reference.weights[feature] = weight * (OWN if own else SHARED) * boost
            if own and kind == "text":
                exact.add(feature)
            if boost > 1.0 and weight > NAME:
                keys.add(feature, weight)
        return frozenset(exact), keys

    def _equivalent(self, feature: str) -> bool:
        """Other ways to say a feature: the value of a setting, or the functions that a helper would have called."""
        kind, _, name = feature.partition(":")
        if kind == "text" and name in self._settings:
            numbers = [f"number:{n.value:.12g}" for n in find_numbers(self._settings[name].replace(",", " "))]
            return bool(numbers) and all(number in self._patch.weights or number in _TRIVIAL for number in numbers)
        if kind == "call" and self._prints_or_writes(name.split("_")[0].lower()):
            return True
        if kind == "call" and name in self._kept.calls:
            inner = self._kept.calls[name]
            return bool(inner) and inner <= {function.rsplit(".", 1)[-1] for _, function in self._used.functions}
        return False

    def _output(self, span: CodeEvidence, code: str) -> tuple[str, str] | None:
        """(place, line) of the patch that prints or writes, where the span is a function that does only that."""
        match = re.match(r"\s*def (\w+)", code)
        first = match[1].split("_")[0].lower() if match else ""
        return self._prints_or_writes(first)

    def _prints_or_writes(self, verb: str) -> tuple[str, str] | None:
        """(place, line) of the patch that does what helpers called `print_...` or `write_...` do."""
        for verbs, calls in ((_PRINTING, _PRINTS), (_WRITING, _WRITES)):
            if verb in verbs:
                return next(((where, line.strip()[:200]) for where, line in self._lines if calls.search(line)), None)
        return None

    def _use(self, span: CodeEvidence) -> Use | None:
        """How the submission's programs lead to the function that holds the span, or to its file for top-level code."""
        name = self._function_at(span)
        if name is None:
            return self._used.files.get(span.path)
        return self._used.functions.get((span.path, name))

    def _function_at(self, span: CodeEvidence) -> str | None:
        for root in (self._material.task.original_tree, self._material.task.masked_repository):
            target = root / span.path if root is not None else None
            if target is not None and target.is_file() and span.path.endswith(".py"):
                tree, _ = parse_python(read_text(target))
                return _qualified(tree, span.start) if tree is not None else None
        return None

    def _by_words(self, number: int, item: Requirement) -> ItemVerdict:
        reference = features_of_text(item.text)
        if sum(reference.weights.values()) < _FEW:
            return _verdict(number, item, Verdict.UNKNOWN, "its text names nothing that could be looked for in code")
        share = coverage(reference, self._patch)
        where, quote = best_line(reference, self._lines)
        reason = f"{share:.0%} of its telling words and names are in the patch"
        if share < WORDS_MET <= coverage(reference, _with_words(self._patch, self._claimed)):
            return _verdict(number, item, Verdict.UNKNOWN, f"{reason}, the rest in comments alone", quote, where)
        if WORDS_LACKING <= share < WORDS_MET:
            return _verdict(number, item, Verdict.UNKNOWN, f"{reason}: neither enough nor too little", quote, where)
        return _verdict(number, item, Verdict.PASS if share >= WORDS_MET else Verdict.FAIL, reason, quote, where)


def _values_of(said: Features, reference: Features) -> Features:
    """What a settings file or a command line has of a program's step: its numbers, and then what they are called.

    It gives values to options; it does not read them, and does nothing of what they mean.
    """
    numbers = {name: weight for name, weight in said.weights.items() if name.startswith("number:")}
    return said if numbers.keys() & reference.weights.keys() else Features(numbers)


def _without_dead(lines: list[tuple[str, str]], dead: list[Unit]) -> list[tuple[str, str]]:
    gone = {f"patch: {unit.path}:{number}" for unit in dead for number in range(unit.start, unit.end + 1)}
    return [line for line in lines if line[0] not in gone]


def _comments(read: dict[str, str]) -> Counter[str]:
    """The words of comments, documentation and prose: what the code is said to do."""
    found: Counter[str] = Counter()
    for path, text in read.items():
        found.update(features_of_file(path, text).words)
    return found


def _with_words(features: Features, words_: Counter[str]) -> Features:
    return Features(features.weights, features.words + words_)


def _heaviest(reference: Features) -> list[tuple[str, float]]:
    return sorted(reference.weights.items(), key=lambda pair: (-pair[1], pair[0]))[:12]


def _only(name: str, weight: float) -> Features:
    return Features({name: weight})


def _qualified(tree: ast.Module, line: int) -> str | None:
    """Qualified name of the innermost top-level function or method that holds a line."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.lineno <= line <= (node.end_lineno or 0):
            return node.name
        if isinstance(node, ast.ClassDef) and node.lineno <= line <= (node.end_lineno or 0):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef) and inner.lineno <= line <= (inner.end_lineno or 0):
                    return f"{node.name}.{inner.name}"
    return None
