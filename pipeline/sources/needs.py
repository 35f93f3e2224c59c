"""What reproducing a paper takes, read from the words of an export (`reproduce_difficulty` of the published rows).

The published estimates were written by a language model without a schema: `GPUs` is `"1"`, `"1x NVIDIA GPU"`,
`{"type": "NVIDIA", "amount": 1}` or `"None"`; the requirements as a whole may be one sentence. What does not say a
number stays unknown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from pipeline.sources.candidate import Needs

__all__ = ["read_needs"]

_NO: Final = re.compile(r"^\W*(none|no|n/?a|0|not (required|needed|necessary)|cpu( only)?)\b", re.IGNORECASE)
_VAGUE: Final = re.compile(r"\b(not|un)\W?(specified|stated|mentioned|known|clear)|\bunspecified\b", re.IGNORECASE)
_OPEN: Final = re.compile(r"\bGPUs?\s+(are |is )?(not|un)\W?(specified|stated|mentioned|clear)", re.IGNORECASE)
_COUNT: Final = re.compile(
    r"\b(\d{1,3})\s*(?:x|×|\*)?\s*(?:[A-Z][\w-]*\s+){0,3}(?:GPUs?|A100|H100|V100|A40|A6000|RTX|GTX|T4)\b", re.IGNORECASE
)
_GPU: Final = re.compile(r"\bGPUs?\b|\bCUDA\b", re.IGNORECASE)
_TYPE: Final = re.compile(r"\b(A100|H100|V100|A40|A6000|L40S?|T4|(?:RTX|GTX)\s?\d{3,4}(?:\s?Ti)?)\b", re.IGNORECASE)
_GB: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(GB|TB|MB)\b", re.IGNORECASE)
_TIME: Final = re.compile(
    r"(\d+(?:\.\d+)?)(?:\s*(?:-|–|to)\s*(\d+(?:\.\d+)?))?\s*(h|hours?|hrs?|minutes?|mins?|days?|weeks?)?\b",
    re.IGNORECASE,
)
_HOURS: Final = {"m": 1 / 60, "h": 1.0, "d": 24.0, "w": 168.0}
_API: Final = re.compile(r"\bAPI\b", re.IGNORECASE)


def read_needs(value: object) -> Needs:
    """Needs from the value of `reproduce_difficulty`, or from an export's own words.

    Args:
        value: a mapping with `resource_requirements`, `time_requirements`, `difficulty`; or a text.
    """
    if isinstance(value, str):
        return _from_resources(value).evolve(stated=value)
    if not isinstance(value, Mapping):
        return Needs()
    resources = value.get("resource_requirements")
    needs = _from_resources(resources)
    difficulty = value.get("difficulty")
    return needs.evolve(
        hours=_hours(value.get("time_requirements")),
        difficulty=difficulty if isinstance(difficulty, int) and not isinstance(difficulty, bool) else None,
        stated=resources if isinstance(resources, str) else json.dumps(resources, ensure_ascii=False, sort_keys=True)
        if resources is not None else "",
    )  # fmt: skip


def _from_resources(value: object) -> Needs:
    if isinstance(value, str):
        return Needs(
            gpus=_gpus_in(value),
            gpu_type=_type(value),
            memory_gb=_memory(value),
            api_calls=True if _API.search(value) else None,
        )
    if not isinstance(value, Mapping):
        return Needs()
    fields = {re.sub(r"[^a-z]", "", str(key).lower()): item for key, item in value.items()}
    gpu = next((fields[key] for key in ("gpus", "gpu") if key in fields), None)
    kind = gpu.get("type") if isinstance(gpu, Mapping) else fields.get("type")
    api = next((fields[key] for key in sorted(fields) if key.startswith("api")), None)
    return Needs(
        gpus=_gpus(gpu),
        gpu_type=_type(f"{kind or ''} {gpu if isinstance(gpu, str) else ''}"),
        memory_gb=_memory(fields.get("memory")),
        api_calls=_api(api),
    )


def _gpus(value: Any) -> int | None:
    """How many GPUs the value of a field about GPUs names (text, number, or `{"type", "amount"}`); None: not said.

    GPUs that are needed without a number count as one.
    """
    if isinstance(value, Mapping):
        amount = value.get("amount", value.get("count", value.get("number")))
        return _gpus(amount) if amount is not None else (1 if value.get("type") else None)
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return max(0, round(value))
    if _NO.match(value):
        return 0
    bare = re.match(r"\W*(\d{1,3})\b", value)
    return int(bare[1]) if bare and not _COUNT.search(value) else _gpus_in(value)


def _gpus_in(text: str) -> int | None:
    """The same of a sentence, in which a number may be about something else."""
    if match := _COUNT.search(text):
        return int(match[1])
    if re.search(r"\b(no|without( a| any)?) GPUs?\b", text, re.IGNORECASE):
        return 0
    return 1 if _GPU.search(text) and not _OPEN.search(text) else None


def _type(text: str) -> str | None:
    match = _TYPE.search(text)
    return re.sub(r"\s+", " ", match[1]).upper() if match else None


def _memory(value: object) -> float | None:
    """Gigabytes; the largest that the text names."""
    found = [
        float(number) * {"gb": 1.0, "tb": 1024.0, "mb": 1 / 1024}[unit.lower()]
        for number, unit in _GB.findall(str(value or ""))
    ]
    return round(max(found), 3) if found else None


def _api(value: object) -> bool | None:
    if value is None:
        return None
    text = str(value)
    if _VAGUE.search(text) and not re.match(r"\W*none", text, re.IGNORECASE):
        return None
    return not _NO.match(text)


def _hours(value: object) -> float | None:
    """Hours; of a range its end; a bare number is hours."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return float(value) if value >= 0 else None
    match = _TIME.search(str(value))
    if match is None:
        return None
    number = float(match[2] or match[1])
    return round(number * _HOURS[(match[3] or "h")[0].lower()], 3)
