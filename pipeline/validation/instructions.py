"""What a README and a Dockerfile tell people to install: packages, system packages, a Python.

Commands are read as data and never run: `pip install`, `conda install`, `apt-get install` in code blocks of the README
and in RUN lines of the Dockerfile, the Python of a `FROM python:3.8`, and the table of package versions that some
READMEs have instead of a requirements file.

Non-goals: shell logic (a line with a variable in it is left out and reported), other package managers.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from pipeline.validation.installs import operands

__all__ = ["Instructions", "read_dockerfile", "read_readme"]

_PIP: Final = re.compile(r"(?:^|\s)(?:pip[\d.]*|-m\s+pip|uv\s+pip)\s+install\s+(?P<rest>.+)$")
_CONDA: Final = re.compile(r"(?:^|\s)(?:conda|mamba|micromamba)\s+install\s+(?P<rest>.+)$")
_APT: Final = re.compile(r"(?:^|\s)(?:apt|apt-get|aptitude)\s+(?:-\S+\s+)*install\s+(?P<rest>.+)$")
_PROMPT: Final = re.compile(r"^\s*(?:\$|>|!|%|\(\w+\)\s*\$?)\s*")
_FROM: Final = re.compile(r"^FROM\s+(?:--\S+\s+)?(?P<image>\S+)", re.IGNORECASE)
_PYTHON_IMAGE: Final = re.compile(r"(?:^|/)python:(\d+\.\d+)")
_FENCE: Final = re.compile(r"^\s*(?:```|~~~)")
_INLINE: Final = re.compile(r"`([^`\n]*\binstall\b[^`\n]*)`")
_TABLE_ROW: Final = re.compile(r"^\s*([A-Za-z][\w.-]*)(?:\s{2,}|\s*\|\s*|\s*==\s*|\t)v?(\d+(?:\.\d+){1,3})\s*\|?\s*$")
_VALUE_OPTIONS: Final = frozenset(
    {"-r", "-c", "-i", "-f", "-t", "-n", "-p", "--name", "--index-url", "--extra-index-url", "--find-links", "--target",
     "--requirement", "--constraint", "--channel", "--prefix", "--trusted-host"}
)  # fmt: skip
_NO_NEED: Final = re.compile(
    r"python\d?(?:\.\d+)?(?:-(?:pip|dev|venv|setuptools|distutils|wheel|minimal|full))?$|apt-utils$|sudo$|vim$|nano$|"
    r"wget$|curl$|git$|git-lfs$|ssh$|openssh|htop$|tmux$|screen$|ca-certificates$|locales$|software-properties-common$|"
    r"apt-transport-https$|gnupg|tzdata$|less$|man-db$|nvidia|cuda|libcudnn|zsh$|tree$|unzip$|zip$|rsync$|jupyter$"
)
"""Debian packages for people or for GPUs, or that the base image has: they change nothing of what runs."""


@dataclass
class Instructions:
    """What was found, in order."""

    requirements: list[tuple[str, int]] = field(default_factory=list)
    """(requirement as written, line)."""
    conda: list[tuple[str, int]] = field(default_factory=list)
    system: list[tuple[str, int]] = field(default_factory=list)
    """Debian packages."""
    python: list[tuple[str, int]] = field(default_factory=list)
    """Version specifiers."""
    left_out: list[tuple[str, int]] = field(default_factory=list)
    """Commands that could not be read."""

    def command(self, text: str, line: int) -> None:
        """Take over one command, if it installs something."""
        for pattern, into in ((_PIP, self.requirements), (_CONDA, self.conda), (_APT, self.system)):
            match = pattern.search(text)
            if match is None:
                continue
            try:
                arguments = shlex.split(match["rest"], comments=True)
            except ValueError:
                self.left_out.append((text.strip(), line))
                return
            for argument in (item.rstrip(";,") for item in operands(arguments, _VALUE_OPTIONS)):
                if "$" in argument or "{" in argument:
                    self.left_out.append((argument, line))
                elif into is not self.system:
                    into.append((argument, line))
                elif not _NO_NEED.match(argument):
                    into.append((argument.split("=")[0], line))
            return


def read_dockerfile(text: str) -> Instructions:
    """The instructions of a Dockerfile."""
    found = Instructions()
    for number, line in _logical(text):
        image = _FROM.match(line)
        if image and (version := _PYTHON_IMAGE.search(image["image"])):
            found.python.append((f"=={version[1]}.*", number))
        if line[:4].upper() == "RUN ":
            for part in re.split(r"&&|\|\||;", line[4:]):
                found.command(part.strip(), number)
    return found


def _logical(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their continuations, comments left out."""
    pending, start = "", 0
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if line.startswith("#"):
            continue
        start = start if pending else number
        if line.endswith("\\"):
            pending += line[:-1] + " "
            continue
        if pending + line:
            yield start, pending + line
        pending = ""
    if pending:
        yield start, pending


def read_readme(text: str) -> Instructions:
    """The install commands of a README, and its table of versions where a block consists of one."""
    found = Instructions()
    block: list[tuple[int, str]] = []
    fenced = False
    for number, line in [*enumerate(text.splitlines(), start=1), (0, "")]:
        if _FENCE.match(line) or number == 0:
            fenced = not fenced
            _versions(found, block)
            block = []
            continue
        code = fenced or line.startswith(("    ", "\t"))
        if code:
            if fenced:
                block.append((number, line))
            for part in re.split(r"&&|;", _PROMPT.sub("", line)):
                found.command(part.strip(), number)
        elif _PROMPT.match(line):
            found.command(_PROMPT.sub("", line), number)
        else:
            for inline in _INLINE.findall(line):
                found.command(inline, number)
    return found


def _versions(found: Instructions, block: list[tuple[int, str]]) -> None:
    """`networkx   2.4` line by line: versions that the authors had, in place of a requirements file."""
    rows = [(number, _TABLE_ROW.match(line)) for number, line in block if line.strip()]
    if len(rows) < 2 or not all(match for _, match in rows):
        return
    for number, match in rows:
        if match is not None and match[1].lower() != "python":
            found.requirements.append((f"{match[1]}=={match[2]}", number))
        elif match is not None:
            found.python.append((f"=={'.'.join(match[2].split('.')[:2])}.*", number))
