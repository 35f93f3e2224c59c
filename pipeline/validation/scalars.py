"""A number of a parsed file, with the digits that it shows."""

from __future__ import annotations

import math
from typing import Any, Final

from pipeline.validation.numbers import Number, parse_number

__all__ = ["number_of"]

_LARGEST: Final = 10**15
"""Larger whole numbers are identifiers and time stamps."""


def number_of(value: Any) -> Number | None:
    """The number that a value is; strings count when they are one number, truth values and infinities do not."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str):
        return parse_number(value)
    if not isinstance(value, int | float) or not math.isfinite(value):
        return None
    if isinstance(value, int) and abs(value) > _LARGEST:
        return None
    text = repr(value)
    mantissa, _, exponent = text.partition("e")
    decimals = len(mantissa.partition(".")[2]) - (int(exponent) if exponent else 0)
    return Number(float(value), text, decimals if isinstance(value, float) else 0, False, None, 0, len(text))
