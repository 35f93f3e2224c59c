"""What a sentence does by its words: a step or a setting, or talk about steps (their reasons, merits and results).

Looks at one sentence alone. Which experiment it belongs to is decided in `extractors.method_text` and
`extractors._neighbours`.
"""

from __future__ import annotations

import re
from typing import Final

from extractors._vocabulary import SETTING, WINNER
from extractors.claims import symbols_in, text_claims
from extractors.prose import takes_step

__all__ = [
    "is_formula",
    "is_markup", "is_row_debris", "is_talk", "is_whole_sentence", "measures", "sets_only", "tells_step",
    "without_references",
]  # fmt: skip

_PARTICIPLE: Final = (
    r"used|utili[sz]ed|employed|adopted|trained|pre-?trained|fine-?tuned|finetuned|evaluated|tested|validated|assessed|"
    r"computed|calculated|measured|estimated|counted|scored|set|initiali[sz]ed|optimi[sz]ed|minimi[sz]ed|maximi[sz]ed|"
    r"generated|sampled|subsampled|resampled|drawn|split|divided|partitioned|averaged|repeated|conducted|performed|"
    r"carried out|run|executed|simulated|selected|picked|chosen(?! (?:for|to|because|due|so))|tuned|searched|fixed|"
    r"held|kept|applied|added|injected|compared|implemented|built|constructed|created|collected|annotated|labell?ed|"
    r"rated|normali[sz]ed|standardi[sz]ed|scaled|rescaled|resized|cropped|padded|truncated|tokeni[sz]ed|segmented|"
    r"pre-?processed|processed|filtered|removed|excluded|included|replaced|masked|corrupted|perturbed|augmented|"
    r"shuffled|randomi[sz]ed|assigned|mapped|encoded|embedded|extracted|concatenated|combined|merged|converted|"
    r"transformed|projected|fed|given|frozen|updated|decayed|weighted|aggregated|clustered|ranked|restricted|limited|"
    r"capped|clipped|varied|increased|decreased|reduced|halved|doubled|stopped|triggered|warmed up|rerun|cached|"
    r"reported (?:as|over|with|for|at|in)|defined (?:as|by|to be)|obtained (?:by|from|with|using|via)|"
    r"taken (?:from|as|over)|derived (?:from|by)|distilled|parameteri[sz]ed|denoted|followed by|composed of|"
    r"based on|made (?:up )?of|fitted|fit|solved|queried|prompted|instructed|asked"
)
_PASSIVE: Final = re.compile(
    rf"\b(?:is|are|was|were|be|been|being)\s(?:(?:\w+ly|then|also|first|all|both|each|only)\s){{0,2}}(?:{_PARTICIPLE})\b",
    re.IGNORECASE,
)
_ACTIVE: Final = re.compile(
    r"\b(?:uses?|employs?|utili[sz]es?|consists? of|comprises?|contains?|includes?|covers? \d|ha(?:s|ve) (?:an? |\w+ )?"
    r"(?:\d|two|three|four|five|six|seven|eight|nine|ten|one|single)|takes? (?:the|an?|as)\b|computes?|applies|apply|"
    r"adopts?|maps?|samples? (?:the|an?|from|\d)|generates?|minimi[sz]es?|maximi[sz]es?|follows?|receives?|averages?|"
    r"combines?|splits?|selects?|replaces?|adds?|removes?|trains?|compares?|var(?:y|ies)|flips?|drops? (?:the|all)|"
    r"draws?|estimates?|fits?|solves?|weights?|runs? (?:for|on|with|over|the)|starts? "
    r"(?:from|with|at)|measures?|quantifies|counts?|predicts?|classif(?:y|ies)|concatenates?|randomi[sz]ed?|stands? "
    r"for|denotes?|freezes?|updates?|initiali[sz]es?|extracts?|encodes?|repeats?|shares?|"
    r"(?:is|are) (?:the same|identical|always|never)|(?:variable|metric|measure|criterion) is)\b",
    re.IGNORECASE,
)
_SETS: Final = re.compile(
    rf"\b(?:{SETTING})\s(?:(?:is|are|was|were|of|=|to|:|at|as)\s)+\d|\d\s(?:\w+\s)?(?:{SETTING})\b", re.IGNORECASE
)
_REASON: Final = (
    r"intentional\w*|auditable|representative|reproducibility|for completeness|overhead|complexity|it is useful|"
    r"useful for|same conclusion|an overview|no (?:claim|guarantee)|not to (?:estimate|claim|show)|"
    r"designed an? (?:experiment|study)|whether \w+ (?:appears?|holds?|exists?)|treated as|"
    r"^(?:this|these|such|it|they|which)\b[^,;]{0,40}?\s(?:ensures?|enables?|allows?|lets?|makes?|reflects?|provides?|"
    r"avoids?|helps?|prevents?|guarantees?|mirrors?|captures?|isolates?)\b|"
    r"^(?:therefore|thus|hence|consequently|as a result|intuitively|crucially|importantly|interestingly|notably)\b"
    r"(?![^.]*\bwe\b)|^(?:in essence|in this sense|in other words|essentially)\b|"
    r"\b(?:we|the authors) (?:refer|prioriti[sz]e|recommend|emphasi[sz]e|stress|argue)\b|"
    r"[^.]{0,60}\b(?:naturally|inherently) (?:\w+ly )?\w+s\b|typically employed|is known to|are known to|"
    r"ha(?:ve|s) been shown|(?:report|present|describe) (?:our|the) (?:experiment|result|evaluation)\w*|"
    r"^(?:while|although|though|despite|unlike|whereas|given that|since)\b"
    r"(?![^.]*,\s(?:we|all|each|the \w+ (?:is|are))\b)|\b(?:strive|aim|seek|attempt|intend|plan) (?:to|for)\b|"
    r"(?:additional|further|more|full) details\b|common practice|"
    r"zero (?:improvement|gain)|proving|close to (?:random|chance)|^before presenting|^even so\b|competitive|"
    r"\b(?:we|the authors|you) (?:cannot|can not|could not|were unable)|\bablation (?:stud|and\b)"
)
"""Why something was done that way, or what it is good for: a reason is no step."""
_TALK: Final = re.compile(
    r"\b(?:(?:these|such|our) results|supports?|often|it is possible|is known for|requires?|suitable|testbed|"
    r"tables?|figures?|"
    r"fig\.|shown? in|summari[sz]ed|we (?:believe|hope|anticipate|note|attribute|hypothesi[sz]e)|"
    r"finding|contribution|acknowledg|future|motivat\w+|challeng\w+|important|novel|recently|popular|widely|intuiti\w+|"
    r"limitation|not (?:obvious|clear)|in contrast|lacks?|however|available at|publicly|github|https?:|may\b|might\b|"
    r"want to|as (?:below|follows)|under an? (?:minute|second|hour)|"
    r"(?:this|these)(?=[,.;]|\s(?:from|in|is|are|by|to|for|with)\b)|"
    r"questions? arise|following observations?|in this (?:sub)?section|to (?:address|answer) the \w+ question|"
    r"^this experiment\b|"
    r"will release|experimental results|\bsota\b|state-of-the-art (?:performance|results)|"
    r"^previous\b|seem to suggest|^for (?:instance|example)\b|\breason is\b|^this (?:work|paper|section|"
    r"appendix)\b|worth noting|(?:huge|big|large|great|strong|significant) (?:impact|influence|effect)|"
    r"commonly used|is considered|(?:brief|detailed) analysis|experimental study|the goal of|"
    rf"refers? (?:the reader|to)|can serve|found\b(?! in)|(?:is|in|of|by|from|see|solves?) \(\d+\))|{_REASON}",
    re.IGNORECASE,
)
_FINDS: Final = re.compile(
    r"\b[Ww]e (?:\w+ly )?(?:also )?(?:observed?|find|found|see|saw|notice[ds]?|conclude[ds]?|confirm(?:ed)?|draw the)\b"
)
_ROW: Final = re.compile(r"(?:\S*\d[^\s,]*\s+){4,}")
"""Numbers one after the other without commas: a row of a table that no rules or caption mark as one."""
_MATH: Final = re.compile(r"[∥∑∏∫∂∇∀∃∈∉⊂⊆⊇∪∩⇒⇔→←↦≤≥≈≡≜∼⊙⊗⊕√∞⟨⟩⌊⌋⌈⌉′˜ˆ]|[^\W\d_]\(\w\)")
_DEBRIS: Final = re.compile(r"∈\s?R[\da-z]|[)∥|]\s?\d\s\d\b|\b[A-Za-z]{1,2}\(\w\)\s\w\b|[=≤≥]\s*(?:$|[.,;])")


def tells_step(text: str, *, as_own: bool) -> bool:
    """Does a sentence say what is done (`we train`, `each run is repeated`), or what something is set to?

    Args:
        text: one sentence.
        as_own: it stands where things are described, not discussed: there `the encoder uses ...` is a step as well.
    """
    passive = _PASSIVE.search(text) and (as_own or not _MODAL.search(text))
    return bool(takes_step(text) or passive or (as_own and (_ACTIVE.search(text) or _SETS.search(text))))


_MODAL: Final = re.compile(r"\b(?:can|could|cannot|would|might|may|must)\b|^because\b", re.IGNORECASE)


def is_markup(text: str) -> bool:
    """Is a sentence part of a transcript set in the paper (`**Model Size**: With ...`)? What it says is no result."""
    return bool(re.search(r"\\n|\*\*|#{3}|\\[()]", text))


def is_talk(text: str) -> bool:
    """Does a sentence tell a result, a reason, a merit, or where to look, rather than what to do?"""
    return bool(WINNER.search(text) or _TALK.search(without_references(text)) or _FINDS.search(text))


def measures(text: str) -> bool:
    """Does a sentence give a measured number (with decimals or in percent) for a metric?"""
    return any(c.number.decimals > 0 or c.number.unit == "%" for c in text_claims(text))


def sets_only(text: str, symbols: frozenset[str]) -> bool:
    """Does a sentence do nothing but give a value to what is varied (`We use K = 1 for efficiency`)?"""
    return any(
        name in symbols and value[0] not in "{[" and _GIVES.search(text[:start])
        for name, value, start, _ in symbols_in(text)
    )


_GIVES: Final = re.compile(r"\b(?:[Uu]s(?:e|ing)|set|fix|choose)\s(?:\w+ )?$")


def without_references(text: str) -> str:
    """A sentence without the references in brackets to floats and sections."""
    return re.sub(r"\s?\((?:see )?(?:Tables?|Figs?\.?|Figures?|Sections?|Appendix|Eqs?\.)[^()]*\)", "", text)


def is_whole_sentence(text: str) -> bool:
    """Not a question, half a sentence cut by a page or a float, a scrap of a formula or a monster."""
    words = re.findall(r"[A-Za-z]{3,}", text)
    if text.endswith("?") or not re.search(r"[.:;!?][\"”)]?$", text):
        return False
    if re.search(r"(?:^|\s)[a-z]\s[a-z]\s|\(\d+\)$", text) or is_formula(text) or is_row_debris(text):
        return False
    return len(words) >= 5 and len(words) * 3 >= len(re.findall(r"[^\W\d_]+", text)) and len(text) <= 420


def is_row_debris(text: str) -> bool:
    """Is a row of a table caught in a sentence? Numbers one after the other without commas are no prose."""
    return _ROW.search(text) is not None


def is_formula(text: str) -> bool:
    """Formulas whose exponents and indices were flattened say nothing: three signs, or what is left of one."""
    return len(_MATH.findall(text)) >= 3 or bool(_DEBRIS.search(text))
