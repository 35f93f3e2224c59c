"""Version of expbench and of its stages."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as _distribution_version
from typing import Final

__all__ = ["STAGE_VERSIONS", "version"]

STAGE_VERSIONS: Final[dict[str, str]] = {
    "extract": "4",
    "draft": "9",
    "locate": "7",
    "validate": "7",
    "mask": "4",
}
"""Raised when a stage's output for the same input changes: `--resume` then runs the stage again."""


def version() -> str:
    """The installed version; `0+unknown` when expbench is run from files that were never installed."""
    try:
        return _distribution_version("expbench")
    except PackageNotFoundError:
        return "0+unknown"
