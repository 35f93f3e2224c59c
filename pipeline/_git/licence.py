"""Recognises the common licences by sentences that only they contain.

Non-goal: legal certainty. Extra conditions, two different licences or anything unfamiliar give None, which later stages
treat as "not redistributable".
"""

from __future__ import annotations

import re

__all__ = ["is_licence_name", "recognise", "recognise_all"]

_NAME = re.compile(r"^(licen[cs]e|copying|unlicen[cs]e)([._-][a-z0-9._-]*)?$", re.IGNORECASE)

# Conditions that turn a permissive text into something else.
_RIDERS = ("commons clause", "noncommercial", "non-commercial", "non commercial")

_BSD = "redistributions in binary form must reproduce the above copyright"

# (identifier, sentences that must all be there, sentences that must not). Titles are looked for in the first lines
# only, because licences cite one another further down.
_TITLES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Apache-2.0", ("apache license", "version 2.0")),
    ("MPL-2.0", ("mozilla public license", "2.0")),
    ("CC-BY-4.0", ("attribution 4.0 international",)),
    ("CC0-1.0", ("cc0 1.0",)),
    ("CC0-1.0", ("creative commons legal code cc0",)),
)
_TEXTS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("Unlicense", ("this is free and unencumbered software released into the public domain",), ()),
    (
        "MIT",
        (
            "permission is hereby granted, free of charge, to any person obtaining a copy",
            "the above copyright notice and this permission notice",
        ),
        (),
    ),
    ("BSD-4-Clause", (_BSD, "advertising materials mentioning"), ()),
    ("BSD-3-Clause", (_BSD, "neither the name"), ("advertising materials mentioning",)),
    ("BSD-2-Clause", (_BSD,), ("advertising materials mentioning", "neither the name")),
)
_TITLE_LENGTH = 600


def is_licence_name(name: str) -> bool:
    """Does a file of this name at the root of a repository state its licence?"""
    return _NAME.match(name) is not None


def recognise(text: str) -> str | None:
    """SPDX identifier of a licence text, or None (GPL family in the short form that names no "or later")."""
    flat = re.sub(r"[\s*#>]+", " ", text.lower())
    if any(rider in flat for rider in _RIDERS):
        return None
    head = flat[:_TITLE_LENGTH]
    titled = [spdx for spdx, signs in _TITLES if all(sign in head for sign in signs)]
    texts = [
        spdx
        for spdx, signs, others in _TEXTS
        if all(sign in flat for sign in signs) and not any(other in flat for other in others)
    ]
    found = {spdx for spdx in (_gnu(head), *titled, *texts) if spdx is not None}
    return found.pop() if len(found) == 1 else None


def _gnu(head: str) -> str | None:
    for title, short in (
        ("gnu affero general public license", "AGPL"),
        ("gnu lesser general public license", "LGPL"),
        ("gnu library general public license", "LGPL"),
        ("gnu general public license", "GPL"),
    ):
        if title in head and (version := re.search(r"version (3|2\.1|2)\b", head)):
            number = version.group(1)
            return f"{short}-{number if '.' in number else number + '.0'}"
    return None


def recognise_all(texts: dict[str, str]) -> str | None:
    """The one licence that the licence files of a repository agree on, or None."""
    found = {recognise(text) for text in texts.values()}
    return found.pop() if len(found) == 1 else None
