"""What a task says of the data that its run needs (`ExperimentTruth.data_needs`)."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["needed_file"]

_STATED: Final = re.compile(r"(?:file|checkpoint) (?P<path>.+?)(?: \([^()]+:\d+\))?")


def needed_file(need: str) -> str | None:
    """The path that a need of a task names, relative to where the code runs; None for what is no file.

    Args:
        need: `file data/a.csv`, with or without the place that reads it (`(train.py:12)`); a need without its kind, as
            other tools write them, is a path by itself.
    """
    stated = _STATED.fullmatch(need)
    if stated is not None:
        return stated["path"].removeprefix("./")
    return None if " " in need else need.removeprefix("./")
