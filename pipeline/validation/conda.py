"""Requirements of conda as requirements of the package index: names and versions, without builds and channels.

There is no conda here. A package that only conda has (compilers, drivers, libraries of the platform) is told apart by
`imports_map.conda_distribution`, and what cannot be translated is None, for the caller to report.
"""

from __future__ import annotations

import re

__all__ = ["conda_requirement"]

_ITEM = re.compile(r"^(?:[\w./-]+::)?([A-Za-z_][\w.-]*)\s*(.*)$", re.DOTALL)
_BRACKETS = re.compile(r"\[(.*)\]$", re.DOTALL)
_VERSION_OF = re.compile(r"version\s*=\s*(?:'([^']*)'|\"([^\"]*)\"|([^,\]\s]+))")
_EXACT = re.compile(r"^={1,2}\s*([\w.*+!]+?)(?:\s*=\s*[\w.*]+)?$")
_BUILD = re.compile(r"(?<=[\w.*])(?:=|\s+)[\w.*]*$")
"""`>=1.0=*cuda*`, `1.19.2 py38_0`: the build behind a version."""


def conda_requirement(item: str) -> tuple[str, str] | None:
    """(conda's name, version specifier of the package index or empty); None for what is no conda requirement.

    Args:
        item: as it stands in `environment.yml`, in `conda install` or in a list of `conda list --export`:
            `conda-forge::numpy=1.19.2=py38_0`, `numpy 1.19.*`, `numpy>=1.19,<2`, `numpy[version='>=1.19']`,
            `numpy=1.19|1.20` (of several alternatives the last, which is the newest as people write them).
    """
    match = _ITEM.match(item.strip())
    if not match:
        return None
    name, version = match[1], match[2].strip()
    if brackets := _BRACKETS.search(version):
        inside = _VERSION_OF.search(brackets[1])
        version = next((text for text in inside.groups() if text), "") if inside else version[: brackets.start()]
    version = version.strip()
    if version.startswith(("=", "==")) and "|" in version:
        version = "=" + version.rsplit("|", 1)[1]
    else:
        version = version.rsplit("|", 1)[-1].strip()
    return name, _specifier(version)


def _specifier(version: str) -> str:
    if single := _EXACT.match(version):
        return _series(single[1])
    if version and version[0] not in "<>=!~":
        return _series(version.split(maxsplit=1)[0].split("=", maxsplit=1)[0])
    parts = [part.strip() for part in version.split(",") if part.strip()]
    return ",".join(_BUILD.sub("", re.sub(r"^([<>=!~]+)\s+", r"\1", part)) for part in parts)


def _series(exact: str) -> str:
    """Conda's `=1.19` is any 1.19."""
    exact = exact.rstrip("*").rstrip(".")
    return f"=={exact}.*" if exact else ""
