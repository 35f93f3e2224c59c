"""The `causal` family in the harness."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Final

from evaluation.families.base import FamilyRules
from pipeline.task import Family

__all__ = ["RULES"]


class CausalRules(FamilyRules):
    """See `FamilyRules`."""

    family: ClassVar[Family] = Family.CAUSAL

    def is_source(self, directory: Path) -> bool:
        """See `FamilyRules.is_source`."""
        return False


RULES: Final = CausalRules()
