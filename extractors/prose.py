"""Small English: lists, names, and a paper's sentences turned into instructions.

Sentences are adapted lightly (citations and cross-references dropped, `we train` made `train`), never rewritten: what
cannot be adapted without guessing is left out by returning None.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from extractors._sentences import without_heading

__all__ = [
    "adapt_sentence",
    "capitalise",
    "clean_name",
    "count_word",
    "join_names",
    "lower_first",
    "name_list",
    "plain_number",
    "plural",
    "singular",
    "slugify",
    "spoken",
    "takes_step",
    "unmarked",
    "with_article",
]

_SMALL: Final = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_CITATION: Final = re.compile(
    r"\s?\[(?!0\b)\d+(?:\s?[,;–-]\s?\d+)*\]|"
    r"\s?[\[(](?:e\.g\.,? |see |cf\. )?[A-Z][^()\[\]]{1,80}?,? ?(?:19|20)\d\d[a-z]?(?:[;,] ?[^()\[\]]{0,80}?)*[\])]"
)
_CITED_SOURCE: Final = re.compile(
    rf"(?:^|,\s)(?:[Ff]ollowing|[Aa]s(?:\s\w+)?\s(?:by|in))(?:{_CITATION.pattern}),?|"
    r"\s(?:(?:described|outlined|introduced|proposed|specified|suggested)\s)?(?:by|in|from|following)"
    rf"(?:{_CITATION.pattern})"
)
"""A reference that a sentence leans on grammatically (`trained by [1]`, `as done in (Li 2018),`) goes with its "
"words."""
_CROSS_REFERENCE: Final = re.compile(
    r"\s?\((?:see |cf\. |e\.g\.,? )?(?:Tables?|Tab\.|Figs?\.?|Figures?|Sections?|Sects?\.|Secs?\.|Eqs?\.?|Equations?|"
    r"Appendix|Appendices|App\.|Algorithms?)\s[^()]*\)|"
    r"(?:^As\s|^|,?\s(?:as\s)?)(?:described|introduced|explained|defined|discussed|detailed|given|listed|shown|"
    r"presented|summari[sz]ed"
    r"|reported) in (?:the )?(?:Tables?|Figs?\.?|Figures?|Sections?|Sec\.|Appendix|Equation|"
    r"Eq\.)\s?\w+(?:\.\d+)*(?:\([a-z]\))?,?|"
    r",?\s(?:as\s)?(?:described|introduced|explained|defined|discussed|detailed|given|listed|shown|mentioned)\s"
    r"(?:below|above|before|earlier|previously)\b",
)
_LEFT_OVER: Final = re.compile(
    r"\b(?:Tables?|Tab\.|Figs?\.|Figures?|Sections?|Sec\.|Appendix|Equations?|Eqs?\.|Algorithm)\s?(?:[IVX]+\b|"
    r"[A-Z]?\.?\d|(?<=Appendix )[A-Z]\b)|"
    r"\bthis (?:paper|section|appendix|work)\b|\bfollowing (?:section|subsection|table)|\bour (?:code|paper|"
    r"contribution)"
)
_PAST: Final = {
    "used": "use", "trained": "train", "ran": "run", "compared": "compare", "evaluated": "evaluate", "chose": "choose",
    "generated": "generate", "sampled": "sample", "split": "split", "set": "set", "measured": "measure", "took": "take",
    "computed": "compute", "repeated": "repeat", "averaged": "average", "drew": "draw", "fitted": "fit", "fit": "fit",
    "selected": "select", "tuned": "tune", "varied": "vary", "fixed": "fix", "applied": "apply", "added": "add",
    "reported": "report", "performed": "perform", "conducted": "conduct", "constructed": "construct", "kept": "keep",
    "adopted": "adopt", "considered": "consider", "followed": "follow", "implemented": "implement", "removed": "remove",
}  # fmt: skip
_BASE: Final = frozenset({
    "use", "train", "run", "compare", "evaluate", "choose", "generate", "sample", "split", "set", "measure", "take",
    "compute", "repeat", "average", "draw", "fit", "select", "tune", "vary", "fix", "apply", "add", "report",
    "perform", "conduct", "construct", "keep", "adopt", "consider", "follow", "implement", "remove", "initialize",
    "initialise", "optimize", "optimise", "employ", "extract", "divide", "define", "calculate", "estimate", "assess",
    "test", "build", "create", "collect", "normalize", "normalise", "standardize", "standardise", "replace", "start",
    "freeze", "finetune", "fine-tune", "simulate", "solve", "restrict", "limit", "include", "exclude", "record",
    "concatenate", "convert", "encode", "map", "assign", "combine", "truncate", "subsample", "resample", "corrupt",
    "perturb", "inject", "mask", "shuffle", "hold", "increase", "decrease", "reduce", "scale", "transform", "expand",
    "obtain", "utilize", "utilise", "operate", "search", "experiment", "score", "determine", "investigate", "pick",
    "call", "denote", "match", "rescale", "cluster", "rank", "label", "merge", "discard", "replicate", "reproduce",
    "distill", "annotate", "filter", "prompt", "query", "crop", "resize", "pad", "tokenize", "tokenise", "pretrain",
    "pre-train", "adapt", "inspect", "count",
})  # fmt: skip
_NO_STEP: Final = re.compile(
    r"[a-z-]+ed|are|were|have|had|do|did|can|could|may|might|will|would|should|must|shall|not|now|both|all|hereby|"
    r"find|found|see|saw|observe|note|believe|think|thought|hope|expect|conclude|show|argue|hypothesi[sz]e|want|wish|"
    r"know|knew|get|got|made|gave|began|wrote|held|built|left|thus|therefore|here|present|propose|introduce|refer|"
    r"study|discuss|share|release|provide|publish|describe|summari[sz]e|review|focus|address|make|leave|notice|"
    r"suspect|acknowledge|thank|attribute|[a-z]+ly"
)
_ADVERB: Final = (
    r"(?:first|then|also|further|next|additionally|randomly|again|finally|simply|directly|always|only|instead)"
)
_WE: Final = re.compile(rf"\b(?P<we>[Ww]e)\s(?P<adverbs>(?:{_ADVERB}\s)*)(?P<verb>[a-z-]+)\b")


def count_word(count: int) -> str:
    """Small numbers in words, as people write them."""
    return _SMALL[count] if 0 <= count < len(_SMALL) else str(count)


def capitalise(text: str) -> str:
    """First letter upper case, the rest untouched."""
    return text[:1].upper() + text[1:]


def join_names(items: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`; semicolons where the items hold commas of their own."""
    if len(items) <= 1:
        return "".join(items)
    comma = "; " if any(", " in re.sub(r"\([^()]*\)", "", item) for item in items) else ", "
    return f"{comma.join(items[:-1])} and {items[-1]}"


def name_list(items: Sequence[str], noun: str, limit: int = 4) -> str:
    """All items where they are few, else the first ones and how many more there are: `A, B and five other methods`."""
    if len(items) <= limit + 1:
        return join_names(items)
    rest = len(items) - limit + 1
    return f"{join_names([*items[: limit - 1], f'{count_word(rest)} other {noun}'])}"


def clean_name(text: str) -> str:
    """A header or label as it reads in a sentence: `# of Atoms` -> `number of atoms`, `Order m` -> `order m`."""
    text = re.sub(r"^#\s*(?:of\s)?", "number of ", text.strip())
    text = re.sub(r"^(?:No\.|Num\.|Number) of ", "number of ", text)
    words = [w.lower() if re.fullmatch(r"[A-Z][a-z]+(?:-[a-z]+)*", w) else w for w in text.split()]
    return " ".join(words)


def plain_number(text: str) -> str:
    """Typeset thousands without the thin space (`104, 664` -> `104,664`); anything else as it is."""
    return re.sub(r"(?<=\d), (?=\d{3}\b)", ",", text) if re.fullmatch(r"\d{1,3}(?:, \d{3})+", text) else text


def spoken(name: str) -> str:
    """A header as it reads in a sentence; `training points n` counts points: `number of training points n`."""
    name = clean_name(name)
    counted = name.startswith("number of ")
    return f"number of {name}" if not counted and re.fullmatch(r"[a-z ]{3,}s [A-Za-z]", name) else name


def with_article(name: str) -> str:
    """`the number of atoms`, `the order m`; a bare symbol or word stands alone."""
    return f"the {name}" if re.match(r"[a-z]{4,}\s", name) else name


def plural(name: str) -> str:
    """`dataset` -> `datasets`, `study` -> `studies`; a bare symbol is `values of n`."""
    bare = clean_name(name)
    if bare.endswith("data"):
        return bare
    if bare.startswith("number of "):
        return bare.replace("number", "numbers", 1)
    if bare.endswith("s") or re.search(r"\b\w$", bare):
        return bare if bare.endswith("s") else f"values of {bare}"
    return f"{bare[:-1]}ies" if re.search(r"[^aeiou]y$", bare) else f"{bare}s"


def singular(name: str) -> str:
    """`models` -> `model`, `studies` -> `study`; `bias`, `loss` and names in capitals stay."""
    if name.startswith("number of "):
        return name
    if re.search(r"[a-z]{2}ies$", name):
        return f"{name[:-3]}y"
    return re.sub(r"(?<=[a-z]{2}[b-hj-rt-z])s$|(?<=[a-z]{2}e)s$", "", name)


def lower_first(text: str) -> str:
    """A phrase as it reads inside a sentence: `Cosine similarity` -> `cosine similarity`; `MAE`, `Rand Index` stay."""
    plain = re.match(r"[A-Z][a-z]+\b(?![’'])", text) and not re.search(r"[\s-][A-Z][a-z]", text)
    return text[:1].lower() + text[1:] if plain else text


def unmarked(label: str) -> str:
    """A label without the mark by which authors tell their own method: `CAW (ours)` -> `CAW`."""
    label = re.sub(r"\s*\((?:Eqs?|Secs?|Sect|Section|App|Appendix|Figs?|Tab|Table|Alg)\b[^()]*\)", "", label) or label
    return re.sub(r"\s*\((?:ours|our method|this work|proposed)\)\s*$", "", label, flags=re.IGNORECASE) or label


def slugify(text: str) -> str:
    """Lower-case ASCII words joined by hyphens."""
    import unicodedata

    table = str.maketrans(
        {"α": "alpha", "β": "beta", "λ": "lambda", "σ": "sigma", "ϵ": "epsilon", "ψ": "psi", "√": "sqrt"}
    )
    plain = unicodedata.normalize("NFKD", text.translate(table)).encode("ascii", "ignore").decode("ascii")
    return re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")


def _imperative(match: re.Match[str]) -> str | None:
    verb = match["verb"]
    stems = (verb, re.sub(r"d$", "", verb), re.sub(r"ed$", "", verb), re.sub(r"ied$", "y", verb))
    base = _PAST.get(verb) or next((stem for stem in stems if stem in _BASE), None)
    if base is None and not match.string[: match.start()].strip() and not _NO_STEP.fullmatch(verb):
        base = verb  # `We tilt the inputs`: the present after `we` is the bare verb
    return None if base is None else f"{match['adverbs']}{base}"


def takes_step(text: str) -> bool:
    """Does a sentence say what its authors do (`We tilt ...`, `Then we train ...`), rather than find or announce?"""
    return any(
        _imperative(match) is not None and not _SUBORDINATE.search(text[: match.start()])
        for match in _WE.finditer(text)
    )


_SUBORDINATE: Final = re.compile(r"\b(?:that|which|where|because|as|if|when|and what|how|since)\s$")


_FLOAT_DOES: Final = re.compile(r"^(?:Tables?|Figures?|Fig\.)\s[\w.]+\s(?P<verb>[a-z]+(?:s|es|ies))\s(?=[a-z])")


def _float_does(match: re.Match[str]) -> str:
    """`Table 3 removes one part at a time` -> `Remove one part at a time`; unchanged where the verb reports."""
    verb = match["verb"]
    stems = (verb.removesuffix("s"), verb.removesuffix("es"), re.sub(r"ies$", "y", verb))
    base = next((stem for stem in stems if stem in _BASE and stem not in ("report", "record", "measure")), None)
    return match.group() if base is None else f"{capitalise(base)} "


_OTHERS_WAY: Final = re.compile(
    r"^(?:Following|As in|Similar to|Like|Consistent with) (?:these|those|previous|prior|existing|earlier|recent|other|"
    r"most)(?: \w+)? (?:works?|stud(?:y|ies)|methods?|papers?|approaches|literature),?\s",
)
"""`Following previous works,` says nothing to whoever does not know them."""


def adapt_sentence(text: str) -> str | None:
    """A sentence of the paper as an instruction; None where it leans on something its reader does not have.

    Args:
        text: one sentence, as printed.
    """
    text = _OTHERS_WAY.sub("", without_heading(text)[1])
    pointer = next((match for match in _CROSS_REFERENCE.finditer(text) if match.start() > 0), None)
    uncited = _CITED_SOURCE.sub("", text)
    bare = re.sub(r"\s+", " ", _CROSS_REFERENCE.sub("", _CITATION.sub("", uncited))).strip()
    if pointer is not None and "(" not in pointer.group() and len(bare.split()) < 9:
        return None  # the reference was what it said
    bare = re.sub(r"^\(\d\)\s(?!.*\(\d\))", "", bare)
    text = re.sub(r"^(?:[•◦▪–-]\s*|\d{1,2}(?=[A-Z][a-z]|We\b)|\d{1,2}\s(?=(?:We|The|This|For|In|All)\b))", "", bare)
    text = re.sub(r"(?<=[a-z)])(?<!\d\))\d{1,2}(?=:\s|,\s(?:which|where|and)\b)", "", text)  # the mark of a footnote
    text = re.sub(r"(?<=[a-z)]\.)\d{1,2}\s(?=[A-Z])", " ", text)
    text = re.sub(r"^[A-Z][^.:;,]{3,80}?[^.:;,]\s(?=We\s)", "", text)  # a heading that lost its full stop
    text = re.sub(r"^(?:[A-Z][\w-]*\s){1,5}?[A-Z]?[\w-]*:\s(?=[A-Z])", "", text)
    text = _FLOAT_DOES.sub(_float_does, text)
    if re.search(r"\b(?:is|are|as|in|by|and|the)[.;:]?$", text):
        return None  # cut in the middle by what was dropped
    if text.count("(") != text.count(")") or re.search(r"\b(?:i\.e|e\.g|cfr?)\.$", text):
        return None
    text = re.sub(r"\s+([,.;:)])", r"\1", text)
    if _LEFT_OVER.search(text):
        return None
    while (match := _WE.search(text)) is not None:
        verb = _imperative(match)
        start = match.start()
        if verb is None or _SUBORDINATE.search(text[:start]):
            text = f"{text[:start]}{'The' if match['we'] == 'We' else 'the'} authors {text[match.start('adverbs') :]}"
            continue
        text = (
            text[:start]
            + (verb if start and not re.search(r"[.:]\s$", text[:start]) else capitalise(verb))
            + text[match.end() :]
        )
    text = re.sub(r"\bWe\b", "The authors", re.sub(r"\bwe\b", "the authors", text))
    text = re.sub(r"\b([Oo])ur\b", lambda m: "The" if m[1] == "O" else "the", text)
    text = re.sub(
        r"^(?:However|Moreover|Furthermore|Additionally|Therefore|Thus|Hence|Also|Then|In addition|"
        r"Specifically|More specifically|To be specific|In particular|Note that|Here|Namely|Finally),?\s",
        "",
        text,
    )
    text = capitalise(text.strip())
    return text if text.endswith((".", "!", "?")) else f"{text.rstrip(':;,')}."
