"""What a repository declares of its environment, as records that the readers of its files fill."""

from __future__ import annotations

from dataclasses import dataclass, field

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from pipeline.schema import Problem, Severity
from pipeline.validation.imports_map import replacement

__all__ = ["Declarations"]

_COMPONENT = "validation.environment"


@dataclass
class Declarations:
    """What a repository declares, in the order in which it was read."""

    requirements: list[Requirement] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    python: list[tuple[str, SpecifierSet]] = field(default_factory=list)
    """(file, Python requirement)."""
    system: list[str] = field(default_factory=list)
    """Debian packages that a Dockerfile or the README installs."""
    problems: list[Problem] = field(default_factory=list)

    def report(self, where: str, message: str, severity: Severity = Severity.WARNING) -> None:
        """Note something that was not taken over."""
        self.problems.append(Problem(component=_COMPONENT, where=where, message=message, severity=severity))

    def add(self, text: str, where: str) -> None:
        """Take over one requirement in PEP 508 notation."""
        try:
            found = Requirement(text)
        except InvalidRequirement:
            self.report(where, f"`{text}` is not a requirement: left out")
            return
        if found.url:
            self.report(where, f"`{found.name}` comes from {_kind(found.url)}: its release of the same name is used")
            found.url = None
        if instead := replacement(found.name):
            self.report(where, f"`{found.name}` is replaced by `{instead[0]}`: {instead[1]}", Severity.INFO)
            found = Requirement(f"{instead[0]}{found.specifier}" + (f"; {found.marker}" if found.marker else ""))
        self.requirements.append(found)

    def require_python(self, text: str, where: str) -> None:
        """Note the Python versions that the repository supports."""
        try:
            self.python.append((where, SpecifierSet(text)))
        except InvalidSpecifier:
            self.report(where, f"`{text}` is not a Python version requirement: not considered")


def _kind(url: str) -> str:
    return "a path of somebody's machine" if url.startswith("file:") else f"`{url}`"
