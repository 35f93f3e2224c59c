"""Stage 3 (EXP-Bench 3.2): environment, re-execution, and whether the outcome is the paper's.

What compares numbers is imported from its module: it uses `pipeline.match`, which uses the numbers of this package.
"""

from __future__ import annotations

from pipeline.validation.building import build_with_corrections
from pipeline.validation.environment import EnvironmentPlan, extend_environment, resolve_environment
from pipeline.validation.plan import make_plan
from pipeline.validation.refine import Attempt, Refined, validate_with_refinement

__all__ = [
    "Attempt",
    "EnvironmentPlan",
    "Refined",
    "build_with_corrections",
    "extend_environment",
    "make_plan",
    "resolve_environment",
    "validate_with_refinement",
]
