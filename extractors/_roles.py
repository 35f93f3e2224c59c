"""The conditions of a set of claims sorted into roles: what varies, what merely goes along, what is fixed.

Independent is what varies between the claims, constant what all of them share (EXP-Bench 3.1). A condition that goes
along with another one (the alphabet size of each method) is an attribute, not a variable of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from extractors.naming import UNNAMED, is_numeric
from pipeline.task import NumericClaim

__all__ = ["Axis", "Roles", "roles_of"]

_COUNTED: Final = re.compile(r" \d+$")


class Axis(NamedTuple):
    """A condition and the values it takes. `kind`: are they numbers, or names?"""

    name: str
    values: tuple[str, ...]
    kind: Literal["name", "number"]


class Roles(NamedTuple):
    """What the conditions of some claims are to each other."""

    axes: tuple[Axis, ...]
    """Independent variables, the compared one first."""
    attributes: dict[str, tuple[str, dict[str, str]]]
    """Condition -> (the axis it goes along with, its value for each value of that axis)."""
    fixed: tuple[tuple[str, str], ...]


def roles_of(claims: Sequence[NumericClaim]) -> Roles:
    """Sort the conditions of `claims` into roles.

    Args:
        claims: the claims of one experiment, in the order of the paper.
    """
    values: dict[str, dict[str, None]] = {}
    for claim in claims:
        for condition in claim.conditions:
            values.setdefault(condition.name, {})[condition.value] = None
    complete = {name for name in values if all(any(c.name == name for c in claim.conditions) for claim in claims)}
    varying = [_axis(n, tuple(v)) for n, v in values.items() if len(v) > 1 or n not in complete]
    fixed = tuple((n, next(iter(v))) for n, v in values.items() if len(v) == 1 and n in complete)
    # the compared axis: names before numbers; what a header names before what none does; among equals the one with
    # most values, then the first in the table (`list.sort` shows an empty list to its own key function)
    varying = sorted(
        varying,
        key=lambda axis: (
            _goes_along(claims, axis, varying), axis.kind == "number", _is_unnamed(axis.name), -len(axis.values),
        ),
    )  # fmt: skip
    attributes: dict[str, tuple[str, dict[str, str]]] = {}
    axes: list[Axis] = []
    for axis in varying:
        owner = next((o for o in axes if _mapping(claims, o.name, axis.name) is not None), None)
        mapping = _mapping(claims, owner.name, axis.name) if owner else None
        if owner is not None and mapping is not None:
            attributes[axis.name] = (owner.name, mapping)
        elif len(axis.values) > 1 or owner is None:
            axes.append(axis)
    return Roles(tuple(axes), attributes, fixed)


def _axis(name: str, values: tuple[str, ...]) -> Axis:
    return Axis(name, values, "number" if all(map(is_numeric, values)) else "name")


def _is_unnamed(name: str) -> bool:
    return _COUNTED.sub("", name) in UNNAMED.values()


def _goes_along(claims: Sequence[NumericClaim], axis: Axis, varying: Sequence[Axis]) -> bool:
    """Is a numeric condition a property of another one's values (the number of parameters of each backbone)?

    So it is when several of those have one number, or when names stand beside numbers in no order: what is varied is
    listed rising or falling, how many cases each test has is not.
    """
    return axis.kind == "number" and any(
        (len(other.values) > len(axis.values) or (other.kind != "number" and not _in_order(axis.values)))
        and _mapping(claims, other.name, axis.name) is not None
        for other in varying
        if other.name != axis.name
    )


def _in_order(values: Sequence[str]) -> bool:
    numbers = [float(match[0]) for value in values if (match := re.search(r"\d+(?:\.\d+)?", value.replace(",", "")))]
    return numbers in (sorted(numbers), sorted(numbers, reverse=True))


def _mapping(claims: Sequence[NumericClaim], of: str, name: str) -> dict[str, str] | None:
    """The one value of condition `name` for each value of condition `of`; None when it is not one."""
    mapping: dict[str, str] = {}
    for claim in claims:
        conditions = {c.name: c.value for c in claim.conditions}
        if of in conditions and mapping.setdefault(conditions[of], conditions.get(name, "")) != conditions.get(
            name, ""
        ):
            return None
    return mapping
