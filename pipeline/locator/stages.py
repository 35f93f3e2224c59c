"""Stages of an experiment in the order in which they are run, read off file names."""

from __future__ import annotations

import posixpath
import re
from typing import Final

__all__ = ["is_rehearsal", "stage_of"]

_STAGES: Final = (
    re.compile(r"download|prepare|preproc|generate_data|gen_data|make_data|build_data|create|tokenize|convert|extract"),
    re.compile(r"pretrain|train|fit|finetune|learn|run|main|search|optimi[sz]e|quantize|attack"),
    re.compile(r"infer|predict|generate|sample"),
    re.compile(r"test|eval|benchmark|score|verify|metric|(?:^|[_-])fid"),
    re.compile(r"plot|figure|table|analy|summar|aggregate|report|visuali|compare"),
)
_MAIN_STAGE: Final = 1
_REHEARSAL: Final = re.compile(r"(?:^|[_\-.])(?:smoke|debug|dummy|sanity|dry[_-]?run)(?:[_\-.]|$)")


def stage_of(path: str) -> int:
    """0: makes data, 1: trains or runs (also when the name says nothing), 2: predicts, 3: evaluates, 4: reports."""
    name = posixpath.splitext(posixpath.basename(path))[0].lower()
    for number, pattern in enumerate(_STAGES):
        if pattern.search(name):
            return number
    return _MAIN_STAGE


def is_rehearsal(path: str) -> bool:
    """Is a file named as a trial of the machinery (`smoke_config.json`)? Its settings give no result of a paper."""
    return bool(_REHEARSAL.search(posixpath.basename(path).lower()))
