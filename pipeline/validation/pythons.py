"""Which Python an environment gets: what the repository supports, among what the sandbox has."""

from __future__ import annotations

from packaging.specifiers import SpecifierSet

from pipeline.schema import Severity
from pipeline.validation.declarations import Declarations

__all__ = ["choose_pythons"]

_PATCHES = 40
"""Patch releases that a Python of the table has at most: `==3.8.5` means 3.8, whichever of them the sandbox has."""


def choose_pythons(declared: Declarations, available: tuple[str, ...]) -> tuple[str, ...]:
    """The Pythons to try, best first: those that the repository supports, or all where it supports none of them."""
    supported = tuple(python for python in available if not _refused(declared, python))
    if not supported:
        for where, specifier in _refused(declared, available[0]):
            have = ", ".join(available)
            message = (
                f"wants Python {specifier}, the sandbox has {have}: it runs with {available[0]}, maybe not as it did"
            )
            declared.report(where, message)
        return available
    for where, specifier in _refused(declared, available[0]):
        declared.report(where, f"wants Python {specifier}: Python {supported[0]} is used", Severity.INFO)
    return supported


def _refused(declared: Declarations, python: str) -> list[tuple[str, SpecifierSet]]:
    """The declarations that rule out a Python, whatever its patch release."""
    return [
        item for item in declared.python if not any(item[1].contains(f"{python}.{patch}") for patch in range(_PATCHES))
    ]
