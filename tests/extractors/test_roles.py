"""What varies, what goes along, what is compared."""

from __future__ import annotations

from extractors._roles import roles_of
from pipeline.task import Band, Condition, NumericClaim


def claims_of(rows: list[dict[str, str]]) -> list[NumericClaim]:
    return [
        NumericClaim(
            id=f"c{n}", metric="m", value=n, text=str(n), decimals=1, band=Band(low=n - 1, high=n + 1, source="x"),
            conditions=tuple(Condition(name=name, value=value) for name, value in row.items()),
        )
        for n, row in enumerate(rows)
    ]  # fmt: skip


def test_numbers_in_no_order_go_along_with_the_names_beside_them() -> None:
    """A table of tests with how many cases each has: the cases are not what is varied."""
    rows = [("Negate", "201"), ("Add", "441"), ("Multiply", "10"), ("Sort", "35")]
    roles = roles_of(claims_of([{"Count": count, "Test": name} for name, count in rows]))
    assert [axis.name for axis in roles.axes] == ["Test"]
    assert roles.attributes["Count"][1]["Sort"] == "35"


def test_a_property_of_the_compared_thing_is_no_variable_of_its_own() -> None:
    rows = [("A", "32"), ("B", "32"), ("C", "32"), ("D", "3"), ("E", "3")]
    roles = roles_of(claims_of([{"Variant": name, "#Params": size} for name, size in rows]))
    assert [axis.name for axis in roles.axes] == ["Variant"]
    assert roles.attributes["#Params"][0] == "Variant"


def test_what_a_header_names_is_compared_before_what_none_does() -> None:
    rows = [{"Method": m, "setting": d} for m in "AB" for d in ("Moons", "Rings", "Waves")]
    assert [axis.name for axis in roles_of(claims_of(rows)).axes] == ["Method", "setting"]


def test_names_are_compared_before_numbers_and_what_all_share_is_fixed() -> None:
    rows = [{"n": n, "Method": m, "Noise": "none"} for m in "AB" for n in ("20", "80", "320")]
    roles = roles_of(claims_of(rows))
    assert [(axis.name, axis.kind) for axis in roles.axes] == [("Method", "name"), ("n", "number")]
    assert roles.fixed == (("Noise", "none"),)
