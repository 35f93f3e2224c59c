"""The keyless engine of the failure taxonomy: rules for the known types, clustering of messages for the rest.

The known types are those of EXP-Bench's Table 2, and a few that the paper's re-executions had no use for. What no rule
knows is grouped by its exception and its message without numbers, paths, names and addresses; groups whose words are
nearly the same are one type.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from evaluation.failure_evidence import FailureEvidence, Phase
from pipeline.text import shorten

__all__ = ["KNOWN", "Grouped", "group_keyless", "insight_of", "template"]


class _Rule(NamedTuple):
    phase: Phase
    name: str
    description: str
    kinds: frozenset[str]
    pattern: re.Pattern[str] | None


def _rule(phase: Phase, name: str, description: str, *, kinds: Iterable[str] = (), pattern: str = "") -> _Rule:
    return _Rule(phase, name, description, frozenset(kinds), re.compile(pattern, re.I) if pattern else None)


_LIMITS: Final = ("run_timeout", "run_out_of_memory", "run_disk_full", "run_process_limit", "run_output_limit")
_OMITTED: Final = (
    r"\b(missing|omit\w*|absent|empty|incomplete|underdeveloped|lacks?|(?:does|do|did) not (?:state|mention|report))\b"
)
_EXTRA: Final = r"\b(extraneous|irrelevant|unnecessary|superfluous|additional|not (?:specified|asked|part of))\b"
_MODULES: Final = r"\b(ModuleNotFoundError|ImportError|PackageNotFoundError)\b|No module named|cannot import name"

KNOWN: Final[tuple[_Rule, ...]] = (
    _rule("design", "No Design Given", "Nothing was handed in for the design.", kinds=["absent"]),
    _rule(
        "design", "Irrelevant Procedural Additions in Design", "The design holds what the experiment does not ask for.",
        pattern=_EXTRA,
    ),
    _rule(
        "design", "Incomplete or Misclassified Design Variables",
        "A variable is missing, has other values, or is of the wrong kind.", pattern=".",
    ),
    _rule("implementation", "No Implementation Submitted", "The patch is empty.", kinds=["absent"]),
    _rule(
        "implementation", "Incomplete Evaluation Metric Implementation", "A metric is not computed, or otherwise.",
        pattern=r"\b(metrics?|evaluat\w*|accurac\w*|auc|auroc|f1|precision|recall|bleu|rouge|rmse|mae|mse|perplexity|scor\w+)\b",
    ),
    _rule(
        "implementation", "Incomplete Data and Preprocessing Setup", "Data are not prepared as required.",
        pattern=r"\b(data ?sets?|data|preprocess\w*|loader|split\w*|token\w*|augment\w*|normali[sz]\w*|download\w*)\b",
    ),
    _rule(
        "implementation", "Missing Essential Implementation Components", "A required step is missing.", pattern=".",
    ),
    _rule("execution", "Missing Setup Script File", "There is no reproduction script to run.", kinds=["no_script"],
          pattern=r"reproduce\.sh\W+(?:is missing|not found|no such file)|no `?reproduce\.sh`?"),
    _rule("execution", "Patch Does Not Apply", "The patch does not fit the masked repository.", kinds=["not_applied"]),
    _rule("execution", "Resource Limits Exceeded", "Time, memory, disk or processes ran out.", kinds=_LIMITS,
          pattern=r"\bMemoryError\b|out of memory|^Killed|TimeoutExpired|No space left on device"),
    _rule(
        "execution", "Environment/Dependency Configuration Errors", "A package, program or driver is missing.",
        kinds=["environment_unbuildable"],
        pattern=_MODULES + r"|command not found|: not found|Could not find a version|No matching distribution|"
        r"not registered|CUDA (?:driver|error)|libcu\w+|VersionConflict|shared object file",
    ),
    _rule(
        "execution", "Tensor Operation Execution Error", "Shapes, types or devices of tensors do not fit.",
        pattern=r"size of tensor|size mismatch|shapes? \(?.{0,60}(?:mismatch|cannot be|not aligned|incompatible)|"
        r"mat1 and mat2|expected (?:all tensors|scalar type)|broadcast together|dimension\w* (?:out of range|mismatch)|"
        r"inhomogeneous shape",
    ),
    _rule(
        "execution", "Execution Script and File Errors",
        "A script, file, checkpoint, argument or name that the run needs is not there.",
        pattern=r"\b(FileNotFoundError|NotADirectoryError|IsADirectoryError|PermissionError|SyntaxError|IndentationError|"
        r"NameError)\b|No such file or directory|Permission denied|unrecognized arguments|the following arguments are "
        r"required|invalid choice|unknown model|checkpoint",
    ),
    _rule("execution", "Declared Outputs Not Produced", "It ran, but an output is missing.", kinds=["outputs"]),
    _rule("execution", "Reported Numbers Not Reproduced", "It ran, but without the conclusion's numbers.",
          kinds=["numbers"]),
    _rule("conclusion", "Missing Conclusion Content", "There is no conclusion, or an asked part of it is missing.",
          kinds=["absent", "missing"], pattern=_OMITTED + r"|no conclusion"),
    _rule(
        "conclusion", "Incorrect Numeric Conclusion", "A number lies outside the task's band.", kinds=["wrong"],
        pattern=r"\b(?:band|outside|numeric|numbers?|values? (?:of |is |are )?-?\d)",
    ),
    _rule("conclusion", "Extraneous Details in Conclusion", "It claims what was not asked.", pattern=_EXTRA),
    _rule("conclusion", "Incorrect Conclusion Interpretation", "It says otherwise than the outcome.", pattern="."),
)  # fmt: skip
"""Looked through in this order; the last rule of a phase takes all, but execution has none such."""

_REPLACED: Final = (
    (re.compile(r"0x[0-9a-fA-F]+"), "HEX"),
    (re.compile(r"(?:[A-Za-z]:)?(?:/|\./|~/)[^\s'\"`,;:()\[\]]+"), "PATH"),
    (re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`"), "NAME"),
    (re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"), "N"),
)
_WORD: Final = re.compile(r"\w+")
_SAME: Final = 0.6
"""Jaccard similarity of the words of two templates from which they are one type. Two wordings of one exception by two
versions of a library share about .7 of their words, different messages of one exception less than .4."""
_LONGEST: Final = 120


class Grouped(NamedTuple):
    """A failure type with its evidence."""

    phase: Phase
    name: str
    description: str
    known: bool
    """One of `KNOWN`; otherwise found by clustering."""
    evidence: tuple[FailureEvidence, ...]


def template(message: str) -> str:
    """A message without what differs from run to run: numbers, paths, quoted names, addresses."""
    for pattern, mark in _REPLACED:
        message = pattern.sub(mark, message)
    return shorten(message, _LONGEST)


def insight_of(evidence: FailureEvidence) -> str:
    """First pass: what the evidence says, in one line."""
    kind = evidence.kind.partition(":")[0]
    if evidence.source == "item" and kind in {"constant", "independent", "dependent"}:
        return f"{kind} variable not met: {evidence.text}"
    return evidence.text


def group_keyless(evidence: Sequence[FailureEvidence]) -> list[Grouped]:
    """Second pass: evidence into types; every piece into exactly one."""
    by_rule: dict[int, list[FailureEvidence]] = {}
    rest: list[FailureEvidence] = []
    for item in evidence:
        index = _rule_of(item)
        if index is None:
            rest.append(item)
        else:
            by_rule.setdefault(index, []).append(item)
    known = [
        Grouped(KNOWN[index].phase, KNOWN[index].name, KNOWN[index].description, True, tuple(items))
        for index, items in sorted(by_rule.items())
    ]
    return known + _clustered(rest)


def _rule_of(item: FailureEvidence) -> int | None:
    rules = [(index, rule) for index, rule in enumerate(KNOWN) if rule.phase == item.phase]
    for index, rule in rules:
        if item.kind in rule.kinds:
            return index
    if item.source == "item" and (item.phase == "design" or item.kind.endswith("meaning")):
        return rules[-1][0]  # a criterion is what it is, whatever words its reason uses
    text = item.subject if item.phase == "implementation" and item.subject else item.text
    for index, rule in rules:
        if rule.pattern is not None and rule.pattern.search(text):
            return index
    return None


def _clustered(evidence: Sequence[FailureEvidence]) -> list[Grouped]:
    """Leader clustering of templates, most frequent first: deterministic, whatever the order of the evidence."""
    templates = Counter((item.phase, template(item.text)) for item in evidence)
    leaders: list[tuple[Phase, str, frozenset[str]]] = []
    leader_of: dict[tuple[Phase, str], int] = {}
    for (phase, text), _ in sorted(templates.items(), key=lambda entry: (-entry[1], entry[0])):
        words = frozenset(_WORD.findall(text))
        head = text.partition(":")[0]
        for index, (other_phase, other, other_words) in enumerate(leaders):
            same_head = head == other.partition(":")[0]
            if phase == other_phase and same_head and _jaccard(words, other_words) >= _SAME:
                leader_of[phase, text] = index
                break
        else:
            leader_of[phase, text] = len(leaders)
            leaders.append((phase, text, words))
    members: dict[int, list[FailureEvidence]] = {}
    for item in evidence:
        members.setdefault(leader_of[item.phase, template(item.text)], []).append(item)
    return [
        Grouped(
            leaders[index][0], leaders[index][1], "Messages that differ in names and numbers only.", False, tuple(items)
        )
        for index, items in sorted(members.items())
    ]


def _jaccard(first: frozenset[str], second: frozenset[str]) -> float:
    union = len(first | second)
    return len(first & second) / union if union else 1.0
