"""`bin/check-results`: can the file in `results/` be scored? Knows its form, nothing of the values that are expected.

Runs in the agent's container with its Python (3.9 or later) and PyYAML.
"""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import yaml


def histogram(text: str) -> dict[str, object]:
    """The document with the histogram."""
    for document in yaml.safe_load_all(text):
        if isinstance(document, dict) and "dependent_variables" in document:
            return document
    raise ValueError("no document in it has dependent variables")


def edges(document: dict[str, object]) -> object:
    """Its bins."""
    return document["independent_variables"][0]["values"]  # type: ignore[index]


def is_value(value: object) -> bool:
    """Is it a finite, non-negative number?"""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return False
    try:
        return math.isfinite(float(value)) and float(value) >= 0
    except ValueError:
        return False


def complaints(path: Path) -> list[str]:
    """What stands in the way of a score."""
    mine = histogram(path.read_text(encoding="utf-8"))
    given = subprocess.run(["git", "show", f"HEAD:{path}"], capture_output=True, text=True, check=False)
    found = []
    if given.returncode == 0 and edges(histogram(given.stdout)) != edges(mine):
        found.append("its bins are not those of the template")
    for number, entry in enumerate(mine["dependent_variables"][0]["values"], start=1):  # type: ignore[index]
        value = entry.get("value") if isinstance(entry, dict) else entry
        if not is_value(value):
            found.append(f"bin {number} holds no finite, non-negative number ({value!r})")
    return found


def main() -> int:
    """Print the complaints; 1 when there are any."""
    paths = sorted(Path("results").glob("*.yaml"))
    found = [] if paths else ["there is no file in results/"]
    for path in paths:
        try:
            found += [f"{path}: {text}" for text in complaints(path)]
        except (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError, yaml.YAMLError) as error:
            found.append(f"{path}: it cannot be read as a histogram ({error})")
    sys.stdout.write("\n".join(found or ["it can be scored"]) + "\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
