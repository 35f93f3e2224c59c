"""Stage 3 (EXP-Bench 3.2): environment, re-execution, and whether the outcome is the paper's."""

from __future__ import annotations

from pipeline.validation.building import build_with_corrections
from pipeline.validation.environment import EnvironmentPlan, extend_environment, resolve_environment
from pipeline.validation.monitor import inspect_run
from pipeline.validation.plan import make_plan
from pipeline.validation.refine import Attempt, Refined, validate_with_refinement
from pipeline.validation.rerun import missing_modules, missing_system_packages, validate

__all__ = [
    "Attempt",
    "EnvironmentPlan",
    "Refined",
    "build_with_corrections",
    "extend_environment",
    "inspect_run",
    "make_plan",
    "missing_modules",
    "missing_system_packages",
    "resolve_environment",
    "validate",
    "validate_with_refinement",
]
