"""`expbench --version`: the version, and digests of what else decides results - stages, prompts, installed packages.

Two machines that print the same lines read, locate and judge alike (models apart).
"""

from __future__ import annotations

from importlib import resources
from importlib.metadata import distributions
from typing import Final

from pipeline.digests import digest_of, text_digest
from pipeline.version import STAGE_VERSIONS, version

__all__ = ["version_lines"]

_PACKAGES: Final = ("pipeline", "extractors", "masking", "evaluation", "flows")
_SHOWN: Final = 12
"""Characters of a digest, as git shows them."""


def version_lines() -> list[str]:
    """The lines of `--version`; the first is the name and the version alone."""
    prompts = _prompts()
    packages = sorted({f"{item.name.lower()}=={item.version}" for item in distributions() if item.name})
    rows = (
        ("stages", digest_of(STAGE_VERSIONS), ", ".join(f"{name} {number}" for name, number in STAGE_VERSIONS.items())),
        ("prompts", digest_of(prompts), f"{len(prompts)} files"),
        ("packages", digest_of(packages), f"{len(packages)} installed"),
    )
    return [f"expbench {version()}", *(f"{name:9} {digest[:_SHOWN]}  {detail}" for name, digest, detail in rows)]


def _prompts() -> dict[str, str]:
    """Path within the package -> sha256, of every prompt file."""
    found: dict[str, str] = {}
    for package in _PACKAGES:
        pending = [(package, resources.files(package))]
        while pending:
            name, place = pending.pop()
            for item in place.iterdir():
                path = f"{name}/{item.name}"
                if item.is_dir():
                    pending.append((path, item))
                elif name.endswith("/prompts") and item.name.endswith(".md"):
                    found[path] = text_digest(item.read_text(encoding="utf-8"))
    return dict(sorted(found.items()))
