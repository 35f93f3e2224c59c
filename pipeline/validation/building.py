"""Building an environment; what a failed build says is missing, or does not exist, is put right and built again.

Source archives want compilers and headers that nothing declares; a Dockerfile of another release names packages that
Debian has no more. Both are read from the build's log. Every correction is a problem of the result.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.sandbox.base import Image
from pipeline.schema import Problem, Severity
from pipeline.validation.environment import EnvironmentPlan, extend_environment
from pipeline.validation.system_packages import missing_build_packages, unknown_package

__all__ = ["build_with_corrections", "unbuildable_package"]

_PACKAGE: Final = re.compile(r"^package ([A-Za-z0-9][\w.-]*?)(?:==\S+)? cannot be installed")
_CORRECTIONS: Final = 6
"""Builds after the first one; each puts one thing right, or several that one log names."""


def build_with_corrections(
    plan: EnvironmentPlan, build: Callable[[EnvironmentPlan], Image], log_of: Callable[[EnvironmentPlan], Path]
) -> tuple[EnvironmentPlan, Image, tuple[Problem, ...]]:
    """Build; on failure add what the log asks for, or drop a system package that does not exist, and build again.

    Args:
        plan: what to build.
        build: builds a plan.
        log_of: where the output of a plan's build lies.

    Returns:
        The plan that was built, its image, and what was corrected.

    Raises:
        ExpbenchError: `ENVIRONMENT_UNBUILDABLE`: no correction helps; and what `build` raises otherwise.
    """
    problems: list[Problem] = []
    for left in range(_CORRECTIONS, -1, -1):
        try:
            return plan, build(plan), tuple(problems)
        except ExpbenchError as error:
            if error.kind is not FailureKind.ENVIRONMENT_UNBUILDABLE or not left:
                raise
            corrected = _corrected(plan, _read(log_of(plan)) + error.cause, problems)
            if corrected is None:
                raise
            plan = corrected
    raise AssertionError("unreachable")


def unbuildable_package(cause: str) -> str:
    """The distribution that a failed build names; empty when it failed otherwise."""
    match = _PACKAGE.search(cause)
    return match[1] if match else ""


def _read(log: Path) -> str:
    return log.read_text("utf-8", "replace") + "\n" if log.is_file() else ""


def _corrected(plan: EnvironmentPlan, log: str, problems: list[Problem]) -> EnvironmentPlan | None:
    spec = plan.spec
    unknown = unknown_package(log)
    if unknown in spec.system_packages:
        problems.append(_problem(unknown, "no such system package in the sandbox's Debian: left out", Severity.WARNING))
        kept = tuple(name for name in spec.system_packages if name != unknown)
        return plan.evolve(spec=spec.evolve(system_packages=kept))
    dropped = {problem.where for problem in problems}
    more = [name for name in missing_build_packages(log) if name not in spec.system_packages and name not in dropped]
    if not more:
        return None
    problems += [_problem(name, "a package's build asks for it: installed", Severity.INFO) for name in more]
    return extend_environment(plan, more)


def _problem(where: str, message: str, severity: Severity) -> Problem:
    return Problem(component="validation.environment", where=where, message=message, severity=severity)
