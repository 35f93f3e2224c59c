"""Which file of a repository an import statement leads to, without importing anything.

`sys.path` is unknown before the program runs; what holds in general is that a script sees its own directory, the
repository root, `src/`, and whatever directory it appends to the path. So a dotted name is looked up by suffix and the
candidate nearest to the importing file wins.
"""

from __future__ import annotations

import posixpath
import sys
from collections.abc import Iterable

__all__ = ["ModuleMap"]


class ModuleMap:
    """Python modules of a repository by every suffix of their dotted name.

    Args:
        paths: POSIX paths of the repository; only `.py` files count.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._by_suffix: dict[str, list[str]] = {}
        self._paths = {path for path in paths if path.endswith(".py")}
        for path in sorted(self._paths):
            parts = path[:-3].split("/")
            if parts[-1] == "__init__":
                parts.pop()
            for start in range(len(parts)):
                self._by_suffix.setdefault(".".join(parts[start:]), []).append(path)

    def module(self, name: str, importer: str) -> str | None:
        """The file of module or package `name` as seen from `importer`; None when it is not of this repository."""
        candidates = [path for path in self._by_suffix.get(name, ()) if path != importer]
        if not candidates:
            return None
        if "." not in name and name in sys.stdlib_module_names:
            # a local file shadows the standard library only from the directory of the script itself
            candidates = [path for path in candidates if _home(path) == posixpath.dirname(importer)]
        here = posixpath.dirname(importer).split("/") if posixpath.dirname(importer) else []

        def distance(path: str) -> tuple[int, int, str]:
            there = posixpath.dirname(path).split("/") if posixpath.dirname(path) else []
            common = 0
            for left, right in zip(here, there, strict=False):
                if left != right:
                    break
                common += 1
            return (-common, len(there), path)

        return min(candidates, key=distance) if candidates else None

    def resolve(self, importer: str, module: str, level: int, name: str | None = None) -> str | None:
        """The file behind `from <level dots><module> import <name>`: the submodule `name` where there is one.

        Args:
            importer: path of the importing file.
            module: dotted name without leading dots, may be empty for `from . import x`.
            level: number of leading dots.
            name: the imported name, or None for `import module`.
        """
        if level:
            base = importer.split("/")[:-1]
            base = base[: len(base) - (level - 1)] if level > 1 else base
            stem = "/".join([*base, *([part for part in module.split(".") if part])])
            for candidate in (f"{stem}/{name}" if stem and name else name, stem):
                if candidate:
                    for path in (f"{candidate}.py", f"{candidate}/__init__.py"):
                        if path in self._paths and path != importer:
                            return path
            return None
        if name:
            found = self.module(f"{module}.{name}", importer)
            if found:
                return found
        return self.module(module, importer)

    def packages(self, path: str) -> list[str]:
        """The `__init__.py` files that importing `path` runs."""
        parts = path.split("/")[:-1]
        chain = ["/".join([*parts[: end + 1], "__init__.py"]) for end in range(len(parts))]
        return [init for init in chain if init in self._paths and init != path]


def _home(path: str) -> str:
    directory = posixpath.dirname(path)
    return posixpath.dirname(directory) if path.endswith("/__init__.py") else directory
