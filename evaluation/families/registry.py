"""The families by name. `experiment` is the harness's own default and has no rules here."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Final

from evaluation.families.base import FamilyRules
from pipeline.task import Family

__all__ = ["family_of_source", "family_rules"]

_MODULES: Final[dict[Family, str]] = {
    Family.HISTOGRAM: "evaluation.families.histogram.rules",
    Family.TABLE: "evaluation.families.table.rules",
    Family.CAUSAL: "evaluation.families.causal.rules",
}
"""Each holds `RULES`."""


def family_rules(family: Family) -> FamilyRules | None:
    """The rules of a family; None for `experiment`."""
    name = _MODULES.get(family)
    if name is None:
        return None
    rules = import_module(name).RULES
    assert isinstance(rules, FamilyRules)
    return rules


def family_of_source(directory: Path) -> FamilyRules | None:
    """The family whose tasks a directory holds, None when it is none of these."""
    for family in _MODULES:
        rules = family_rules(family)
        if rules is not None and rules.is_source(directory):
            return rules
    return None
