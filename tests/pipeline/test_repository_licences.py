"""Licences are recognised by their sentences, and only when nothing else is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline._git.licence import recognise, recognise_all
from tests.pipeline.repositories import MIT

_BSD2 = "Redistributions in binary form must reproduce the above copyright\n notice, this list of conditions"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (MIT, "MIT"),
        (
            "                                 Apache License\n                           Version 2.0, January 2004",
            "Apache-2.0",
        ),
        (_BSD2, "BSD-2-Clause"),
        (_BSD2 + "\nNeither the name of the copyright holder", "BSD-3-Clause"),
        ("GNU GENERAL PUBLIC LICENSE\n Version 3, 29 June 2007", "GPL-3.0"),
        ("GNU GENERAL PUBLIC LICENSE\n Version 2, June 1991", "GPL-2.0"),
        ("GNU AFFERO GENERAL PUBLIC LICENSE\n Version 3, 19 November 2007", "AGPL-3.0"),
        ("GNU LESSER GENERAL PUBLIC LICENSE\n Version 2.1, February 1999", "LGPL-2.1"),
        ("Mozilla Public License Version 2.0", "MPL-2.0"),
        ("Creative Commons Legal Code\n\nCC0 1.0 Universal", "CC0-1.0"),
        ("This is free and unencumbered software released into the public domain.", "Unlicense"),
        ("Attribution 4.0 International", "CC-BY-4.0"),
        ("Attribution-NonCommercial 4.0 International", None),
        (MIT + "\nfor non-commercial use only", None),
        ("All rights reserved", None),
    ],
)
def test_licences(text: str, expected: str | None) -> None:
    assert recognise(text) == expected


def test_own_licence_file_is_recognised() -> None:
    text = (Path(__file__).resolve().parents[2] / "LICENSE").read_text()
    assert recognise(text) == "Apache-2.0"


def test_two_licences_are_not_one() -> None:
    assert recognise_all({"a": MIT, "b": "All rights reserved"}) is None
    assert recognise_all({"a": MIT, "b": MIT}) == "MIT"
    assert recognise_all({}) is None
