"""Stages of an experiment in the order in which they are run, read off file names."""

from __future__ import annotations

import posixpath
import re
from typing import Final

__all__ = ["stage_of"]

_STAGES: Final = (
    re.compile(r"download|prepare|preproc|generate_data|gen_data|make_data|build_data|create|tokenize|convert|extract"),
    re.compile(r"pretrain|train|fit|finetune|learn|run|main|search|optimi[sz]e|quantize|attack"),
    re.compile(r"test|eval|infer|predict|generate|sample|benchmark|score|verify"),
    re.compile(r"plot|figure|table|analy|summar|aggregate|report|visuali|compare"),
)
_MAIN_STAGE: Final = 1


def stage_of(path: str) -> int:
    """0: makes data, 1: trains or runs (also when the name says nothing), 2: evaluates, 3: reports."""
    name = posixpath.splitext(posixpath.basename(path))[0].lower()
    for number, pattern in enumerate(_STAGES):
        if pattern.search(name):
            return number
    return _MAIN_STAGE
