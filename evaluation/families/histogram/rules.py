"""The `histogram` family in the harness."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Final

from evaluation.families.base import FamilyRules
from pipeline.task import Family

__all__ = ["RULES"]


class HistogramRules(FamilyRules):
    """See `FamilyRules`."""

    family: ClassVar[Family] = Family.HISTOGRAM

    def is_source(self, directory: Path) -> bool:
        """See `FamilyRules.is_source`."""
        return False


RULES: Final = HistogramRules()
