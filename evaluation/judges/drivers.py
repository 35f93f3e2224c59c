"""What drives a trend: `as p grows`, `with more waves`, `increasing p leads to`."""

from __future__ import annotations

import re
from typing import Final

from evaluation.judges.lexicon import aspects_of, content, cues_in, is_negated

__all__ = ["without_driver"]

_DRIVER: Final = re.compile(
    r"\b(?:as|when|once|while)\b(?P<what>[^,;.()]{0,80}?)\b(?:(?P<up>increas\w*|gr[eo]ws?\b|growing|ris(?:es?|"
    r"ing)|rose|rais\w+|gets? (?:larger|longer|"
    r"bigger|higher)|(?:is|are|becomes?) (?:larger|longer|bigger|higher|increased)|(?:goes|going|"
    r"went) (?:from [\d.]+ to [\d.]+|up))|(?P<down>decreas\w*|declin\w*|"
    r"falls?\b|fell|drops?\b|shrink\w*|(?:is|are|becomes?|gets?) (?:smaller|fewer|lower|shorter|reduced|scarcer?)|"
    r"goes down))|\b(?:with|for|using)(?P<what2>(?: [\w-]+)? )"
    r"(?:(?P<up2>more|larger|increasing|increased|longer|bigger|growing)|(?P<down2>fewer|smaller|decreasing|"
    r"shorter|less))\b(?P<rest>(?: [\w-]+){0,3})",
    re.I,
)
"""`as p grows`, `with more waves`: what drives a trend."""
_PUSHED: Final = re.compile(
    r"^(?:an? |the |further |any |that )*(?:(?P<up>increas\w*|rais\w+|larger|higher|more|longer|growing|"
    r"scaling(?: up)?|adding|enlarging|greater)|"
    r"(?P<down>decreas\w*|reduc\w+|lowering|smaller|fewer|shorter|shrinking|less))\b(?P<what>(?:(?!\b(?:than|is|"
    r"are)\b)[^,;]){0,80}?)\b(?:"
    r"leads? to|led to|results? in|yields?|gives?|brings?|causes?|makes?|(?=improv|boost|enhanc|reduc|increas|"
    r"decreas|degrad|lower|rais|hurt|harm|help|rise|drop|fall))",
    re.I,
)


def without_driver(clause: str) -> tuple[str, int, frozenset[str] | None]:
    """(the clause without what drives the trend, +1 or -1 as that grows or shrinks, the driver's words)."""
    for pattern in (_DRIVER, _PUSHED):
        match = pattern.search(clause)
        if match and cues_in(clause[: match.start()] + " " + clause[match.end() :]):
            groups = match.groupdict()
            what = " ".join(groups.get(name) or "" for name in ("what", "what2", "rest"))
            if groups.get("what2") and aspects_of(what):
                continue  # `with less latency` is an outcome
            sign = 1 if groups.get("up") or groups.get("up2") else -1
            denied = " does not" if is_negated(match[0]) else ""
            return f"{clause[: match.start()]}{denied} {clause[match.end() :]}".strip(" ,"), sign, content(what)
    return clause, 1, None
