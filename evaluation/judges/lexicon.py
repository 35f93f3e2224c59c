"""The words in which outcomes are told: better and worse, more and less, equal, shapes of curves, negation, hedges.

Closed lists of general English and of what experiments measure; no name of a method, data set or paper is in them. A
word either says a *quality* (`outperforms`, `degrades`: good or bad whatever is measured) or an *amount* (`higher`,
`drops`: good or bad depends on the metric). Non-goal: meaning beyond these classes.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from pipeline.validation.tokens import KNOWN_METRICS, words

__all__ = [
    "AMOUNT", "DIMINUTIVES", "DOUBTFUL", "EQUAL", "FRAMES", "LIMITED", "LONGEST_SENTENCE", "LOWER_IS_BETTER",
    "NO_BEFORE", "STRONG", "Cue", "CueKind", "aspects_of", "content", "cues_in", "is_negated", "lower_is_better",
    "polarity_of", "shape_of", "stem",
]  # fmt: skip

CueKind = Literal["quality", "amount", "cost", "extreme", "extreme-amount", "equal", "at-least", "at-most"]

LOWER_IS_BETTER: Final = frozenset(
    {
        "error", "loss", "mse", "rmse", "mae", "nll", "perplexity", "fid", "wer", "cer", "distance", "regret",
        "ece", "brier", "kl", "divergence", "bias", "variance", "time", "latency", "cost", "memory", "vram", "runtime",
        "duration", "miss", "noise", "overhead", "storage", "usage", "misalignment", "bound", "asr", "eer", "deviation",
        "uncertainty", "flop", "size", "complexity", "hallucination", "redundancy", "toxicity", "violation", "failure",
        "delay", "consumption", "footprint", "expense", "computation", "discrepancy", "risk",
    }
)  # fmt: skip
"""What a smaller amount of is good, unless the text itself says otherwise (`higher (better)`)."""
RESOURCES: Final = frozenset(
    {
        "time", "latency", "cost", "memory", "vram", "runtime", "duration", "speed", "throughput", "speedup", "faster",
        "slower", "parameter", "flop", "hour", "second", "minute", "efficiency", "storage", "overhead", "usage", "size",
        "computation", "footprint", "expense", "fps", "training-time", "wallclock",
    }
)  # fmt: skip
QUALITIES: Final = KNOWN_METRICS | frozenset(
    {
        "accuracy", "auc", "asr", "f1", "em", "bleu", "map", "miou", "pq", "return", "reward", "score", "validity",
        "novelty", "ap", "calibration", "robustness", "credibility", "likelihood",
        "generalization", "interpretability", "diversity", "stability", "convergence", "similarity", "correlation",
        "fidelity", "detection", "silhouette", "ppl", "fid",
    }
)  # fmt: skip

_CUES: Final[tuple[tuple[CueKind, int, str], ...]] = (
    ("at-least", 1, r"(?:match\w*|comparable|equal\w*|similar|on par)[\w\s]{0,12}? (?:or|and even|"
                    r"if not) (?:slightly )?"
                    r"(?:exceed\w*|surpass\w*|better|superior|higher|improv\w*|outperform\w*)"),
    ("at-least", 1, r"(?:maintain\w*|retain\w*|preserv\w*) or (?:improv\w*|surpass\w*|exceed\w*|enhanc\w*)"),
    ("equal", 0, r"no (?:\w+ly )?(?:significant|clear|notable|measurable|real|meaningful|systematic|discernible|"
                 r"substantial|"
                 r"statistically significant|marked|noticeable|visible|consistent|appreciable)? ?(?:difference|"
                 r"change|effect|"
                 r"gap|impact|influence|improvement|gain|increase|decrease|degradation|drop|loss|benefit|advantage|"
                 r"correlation|trend)s?"),
    ("equal", 0, r"(?:comparabl[ey]|similar(?:ly)?|equal(?:ly)?|equivalent(?:ly)?|identical(?:ly)?|on par|"
                 r"near-?parity|parity|tied?|"
                 r"indistinguishable|unchanged|unaffected|insensitive|the same|as (?:well|good|accurate|high|low|"
                 r"fast) as|competitive|"
                 r"(?:does|do|did) not (?:\w+ly )?(?:differ|change|vary|affect|matter|depend)|constant|"
                 r"near-?baseline|stays? flat|"
                 r"remains? (?:stable|flat|the same))"),
    ("equal", 0, r"(?:match(?:es|ed|ing)?|equals?) (?=the |that |those |[A-Z])"),
    ("quality", 1, r"(?:out-?perform\w*|surpass\w*|ahead(?= of)|helps\b|helped\b|"
                   r"beat(?:s|en|ing)?\b|superior\w*|better|improv\w*|enhanc\w*|boost\w*|"
                   r"benefit\w*|stronger|excel\w*|strengthen\w*|alleviat\w*|mitigat\w*|more (?:accurate\w*|"
                   r"robust\w*|precise\w*|"
                   r"reliabl\w*|effective\w*|consistent\w*|stable|stably|interpretable|pronounced improvement))"),
    ("quality", -1, r"(?:under-?perform\w*|inferior\w*|worse\w*|degrad\w*|deteriorat\w*|hurts?|harm(?:s|ed|ful)|"
                    r"weaker|suffer\w*|"
                    r"lag(?:s|ged|ging)?\b(?: behind)?|trail(?:s|ed|ing)\b(?: behind)?|collaps\w*|struggl\w*|"
                    r"poorer|impair\w*|"
                    r"less (?:accurate\w*|robust\w*|precise\w*|reliabl\w*|effective\w*|consistent\w*|stable|"
                    r"favou?rable|interpretable))"),
    ("cost", 1, r"(?:faster|quicker|cheaper|lighter|more (?:efficient\w*|quickly)|speeds? up|accelerat\w*)"),
    ("cost", -1, r"(?:slower|costlier|heavier|less efficient\w*|slows? down|more (?:expensive|costly))"),
    ("extreme", 1, r"(?:the best|best|(?:the )?top[- ]performing|strongest|wins?|optimal|most (?:accurate|"
                   r"efficient|robust|effective|"
                   r"sensitive|reliable)|ranks? first|state-of-the-art)"),
    ("extreme", -1, r"(?:the worst|worst|weakest|poorest|least (?:accurate|efficient|robust|effective|reliable)|"
                    r"ranks? last)"),
    ("extreme-amount", 1, r"(?:highest|largest|greatest|most|maximum|maximal)"),
    ("extreme-amount", -1, r"(?:lowest|smallest|fewest|least|minimum)"),
    ("amount", 1, r"(?:higher|larger|greater|more|exceed(?:s|ed|ing)?|increas\w*|ris(?:e|es|ing)|rose|gr[eo]w(?:s|"
                  r"n|ing)?|growth|"
                  r"gains?|elevat\w*|climb\w*|rais(?:e|es|ed|ing)|longer|bigger|amplif\w*|maximi[sz]\w*|goes up|"
                  r"went up|\bup\b|above(?= (?:that|those) of))"),
    ("amount", -1, r"(?:lower(?:s|ed|ing)?|smaller|fewer|less|decreas\w*|declin\w*|drop(?:s|ped|ping)?|fall(?:s|"
                   r"ing)?|fell|"
                   r"reduc\w*|shrink\w*|shrank|diminish\w*(?! returns)|minimi[sz]\w*|shorter|goes down|went down|"
                   r"loses?|lost|\bdown\b|below(?= (?:that|those) of))"),
)  # fmt: skip
# What an outcome *may not* be smaller than: the signs that such a cue allows.
AMOUNT: Final = frozenset({"amount", "extreme-amount"})
EQUAL: Final = frozenset({"equal"})
_CUE: Final = [
    (kind, sign, re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-]*\w-)", re.I)) for kind, sign, pattern in _CUES
]

_NEGATION: Final = re.compile(
    r"\b(?:not(?! only)|never|neither|cannot|can't|fail(?:s|ed)? to|unable to|isn't|aren't|doesn't|don't|didn't|"
    r"wasn't|weren't|no longer|"
    r"nor|could not|rather than|instead of|no evidence(?: that| of)?|hardly|rarely|unsuccessful\w*|"
    r"fails?|failed|"
    r"impossib\w*|lacks?|absence of|without success|refut\w*|disprov\w*|contradict\w*)\b",
    re.I,
)
NO_BEFORE: Final = re.compile(
    r"\b(?:no|without|zero|neither|nor)(?: \w+ly)?(?: (?:significant|clear|notable|measurable|further|additional|"
    r"any|real|such|performance|accuracy|quality|consistent))* ?$",
    re.I,
)
"""At the end of what stands before a cue: `no significant`, `without`."""

DIMINUTIVES: Final = re.compile(
    r"\b(?:slight\w*|minimal\w*|minor|small|marginal\w*|negligibl\w*|modest\w*|little|barely|limited|tiny|mild\w*)\b",
    re.I,
)
STRONG: Final = re.compile(
    r"\b(?:significant\w*|substantial\w*|drastic\w*|dramatic\w*|considerabl\w*|strong\w*|marked\w*|sharp\w*|"
    r"severe\w*|large\w*|"
    r"vast\w*|huge\w*|massive\w*|pronounced|greatly|clearly|far|much|rapidly)\b",
    re.I,
)
FRAMES: Final = re.compile(
    r"\b(?:it|this|the experiment|the expectation|the expected outcome|(?:these |the |our )?(?:results?|"
    r"experiments?|analys[ei]s|"
    r"findings?|outcomes?))?\s*(?:(?:is|are|was|were) (?:therefore |also )?(?:expected|anticipated|"
    r"hypothesi[sz]ed|observed|found|"
    r"likely)(?: that| to)?|(?:should|will|would|do|does|may|might|can)?\s*(?:suggest|show|indicate|demonstrate|"
    r"reveal|confirm|find|"
    r"found|showed|see|observe)s?(?:ed)? that)\b|\b(?:we|i) (?:find|found|observed?|saw|see|expect|"
    r"measured)(?: that\b|:)|"
    r"\b(?:is|are) (?:expected|anticipated|likely|hypothesi[sz]ed|predicted) to\b|\b(?:based on|according to|"
    r"as (?:shown|reported) in)"
    r" [^,.;]*,|\b(?:similar|comparable|identical) to (?:those|the ones|that|the trends?|"
    r"the results?) \w+ed (?:in|by|with) [^,.;]*"
    r"|\b(?:contrary to|against|unlike) (?:the |our |all |what was )?(?:expect|hypothes|predict|anticipat|"
    r"assum)\w*[^,.;]*,"
    r"|\b(?:should|will|would|shall|might)\b|\bin our (?:runs?|experiments?),?",
    re.I,
)
"""How a text says that it is about to state an outcome; expectation and finding are told apart by nobody here."""
DOUBTFUL: Final = re.compile(
    r"\b(?:perhaps|whether|unclear|not sure|do not know|don't know|cannot (?:say|tell)|inconclusive)\b|"
    r"\b(?:would|could|might)\b[^.;]*\bif\b|\bif\b[^.;]*\b(?:would|could|might)\b|\b(?:could|might|would) have\b",
    re.I,
)

LIMITED: Final = re.compile(
    r"\b(?:except(?: for)?|apart from|aside from|other than|excluding|besides|leaving out|not counting|ignoring|"
    r"second only to|all but)\b(?P<names>[^,;:.]*)|"
    r"\b(?:of|among|amongst)\s+(?:all |the |these |those |its |our )*(?:[\w-]+ ){0,2}?"
    r"(?:methods?|models?|variants?|approach(?:es)?|baselines?|algorithms?|ones|those|systems?|settings?)\s+"
    r"(?:without|not|that|which|with|using)\b(?P<kept>[^,;:.]*)",
    re.I,
)
"""What limits a superlative to some of the candidates: best `of the methods without labels`, best `except for A`."""

_SHAPES: Final = (
    ("saturates", r"saturat\w*|plateau\w*|level(?:s|ed|ing)? off|diminishing (?:returns|gains)|flatten\w*|"
                  r"converg\w+ after"),
    ("peaks", r"\bpeak(?:s|ed|ing)?\b|optimal (?:number|value|size|balance|at|point|trade)|optimum|sweet spot|"
              r"best at|(?:maximum|highest|"
              r"maximal) at|non-monotonic\w*|inverted u"),
    ("unbounded", r"without (?:saturat\w*|plateau\w*|bound)|(?:no|never) (?:sign of )?(?:saturation|plateau\w*|"
                  r"diminishing)|does not "
                  r"(?:saturate|plateau|level off|peak)|(?:keeps?|continues?) (?:to )?(?:improv|increas|grow|ris|"
                  r"declin|fall)\w*"),
)  # fmt: skip
_SHAPE: Final = [(name, re.compile(pattern, re.I)) for name, pattern in reversed(_SHAPES)]

LONGEST_SENTENCE: Final = 2_000
"""Characters of a sentence that are read: patterns for language take time with the square of a sentence's length. The
longest of 155 published outcomes has 412."""

_EMPTY: Final = frozenset(
    {
        "about", "above", "achieve", "across", "after", "all", "also", "among", "an", "and", "anticipate", "any",
        "approach", "approximately", "are", "around", "as", "at", "be", "because", "been", "before", "being", "below",
        "between", "both", "but", "by", "can", "close", "compared", "comparison", "confirm", "consistently", "could",
        "demonstrate", "did", "do", "doe", "does", "done", "down", "due", "during", "e.g", "each", "eg", "especially",
        "etc", "evaluation", "even", "every", "exhibit", "expect", "expected", "experiment", "find", "for", "found",
        "from", "get", "give", "had", "has", "have", "hence", "however", "i.e", "ie", "if", "in", "include",
        "including", "indicate", "into", "is", "it", "it's", "its", "just", "lead", "level", "maintain", "many", "may",
        "method", "metric", "might", "model", "more", "most", "much", "must", "near", "nearly", "no", "nor", "not",
        "obtain", "of", "off", "on", "one", "only", "onto", "or", "other", "our", "out", "over", "overall",
        "particularly", "per", "performance", "produce", "provide", "reach", "relative", "remain", "respectively",
        "result", "roughly", "s", "score", "should", "show", "significantly", "since", "slightly", "so", "some",
        "still", "substantially", "such", "suggest", "t", "than", "that", "the", "their", "them", "then", "there",
        "thereby", "these", "they", "this", "those", "through", "thus", "to", "two", "under", "up", "use", "used",
        "using", "value", "versus", "very", "vs", "was", "we", "were", "when", "where", "whereas", "which", "while",
        "who", "whose", "will", "with", "within", "would", "yet", "yield",
    }
)  # fmt: skip
_ENDINGS: Final = ("ations", "ation", "ingly", "edly", "ings", "ing", "ied", "ers", "ed", "es", "ly", "er", "e")


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """A word without its usual endings, so that `evaluating` and `evaluated` are one; numbers and short words stay."""
    if len(word) <= 4 or not word.isalpha():
        return word
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word


_NEGATED_WORD: Final = re.compile(
    r"\b(?:without|w/o|no|lacking|removing|disabling|excluding|not using|minus)\s+(?:the |any )?([\w/-]+)", re.I
)


@lru_cache(maxsize=16384)
def content(text: str) -> frozenset[str]:
    """The telling words of a text as stems; what stands behind `without` is another thing than itself (`~x`)."""
    turned = {stem(w) for match in _NEGATED_WORD.finditer(text) for w in words(match[1])}
    found = {stem(w) for w in words(text) if w not in _EMPTY and not re.fullmatch(r"[\d.]+(?:e-?\d+)?", w)}
    found = {w for w in found if w not in _EMPTY_STEMS}
    return frozenset((found - turned) | {f"~{w}" for w in turned & found})


_EMPTY_STEMS: Final = frozenset(stem(w) for w in _EMPTY)


class Cue(NamedTuple):
    """A word or phrase that says better, worse, more, less, equal or best."""

    kind: CueKind
    sign: int
    start: int
    end: int
    text: str


def cues_in(text: str) -> list[Cue]:
    """The cues of a clause, left to right; of overlapping ones the class that is listed first."""
    found: list[Cue] = []
    for kind, sign, pattern in _CUE:
        for match in pattern.finditer(text):
            if not any(match.start() < other.end and other.start < match.end() for other in found):
                found.append(Cue(kind, sign, match.start(), match.end(), match[0]))
    return sorted(found, key=lambda cue: cue.start)


def lower_is_better(text: str) -> bool | None:
    """Is less of what a text names good? None where it names nothing that is measured."""
    named = [word for word in words(text) if word in LOWER_IS_BETTER or word in QUALITIES or word in RESOURCES]
    return None if not named else named[-1] in LOWER_IS_BETTER


def polarity_of(cue: Cue, before: str, after: str) -> int:
    """The cue's sign as good (+1) or bad (-1): an amount counts by the metric that it is an amount of.

    The metric is what follows next (`lower rollout errors`), else what stands before (`the error is lower`); an amount
    of nothing known is taken as good when it grows.
    """
    if cue.kind not in AMOUNT:
        return cue.sign
    following = re.split(r"\b(?:than|compared|relative|versus|as|when|while|with|by|to)\b|[,;:(]", after, maxsplit=1)[0]
    near = " ".join(following.split()[:7])
    first = re.split(r"\b(?:and|for|on)\b", near, maxsplit=1)[0]
    for piece in (first, near, " ".join(before.split()[-8:])):
        if (lower := lower_is_better(piece)) is not None:
            return -cue.sign if lower else cue.sign
    return cue.sign


def aspects_of(text: str) -> frozenset[str]:
    """What is measured: metrics by name, and `resource` for time, memory and money."""
    found = set()
    plain = re.sub(r"\b\w*[a-z][A-Z]\w*", " ", text)  # `TimeMixer` is a name, not a time
    for word in words(plain):
        if word in RESOURCES:
            found.add("resource")
        elif word in QUALITIES or word in LOWER_IS_BETTER:
            found.add(word)
    return frozenset(found)


def shape_of(text: str) -> str:
    """`saturates`, `peaks`, `unbounded`, or nothing."""
    return next((name for name, pattern in _SHAPE if pattern.search(text)), "")


def is_negated(text: str) -> bool:
    """An odd number of negations; `neither ... nor` is one."""
    found = [match.lower() for match in _NEGATION.findall(text)]
    return (len(found) - min(found.count("nor"), found.count("neither"))) % 2 == 1
