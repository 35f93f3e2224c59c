"""How `--help` looks in 80 columns: short names of values, and examples that can be copied as they stand.

Typer names the Python type of each option (`<bool>`, `<list[Path]>`, `<int range>`), which took a third of the width
of our longest pages and told nobody what to type; and it breaks a long example in the middle of a line, so that a shell
runs half of it. Not here: what the texts say; that is each command's own.
"""

from __future__ import annotations

import inspect
import re
from typing import Any, Final

from rich.console import Console
from rich.text import Text
from typer.core import TyperCommand, TyperGroup, TyperOption

__all__ = ["ReadableCommand", "ReadableGroup", "with_folded_examples"]

_WIDTH: Final = 80
"""Of an example: the narrowest terminal that is common."""

_PLACEHOLDERS: Final = {"bool": "", "str": "TEXT", "Path": "PATH", "path": "PATH", "int": "N", "float": "X"}
"""Python type -> what stands for the value on a command line; a switch takes none."""


class ReadableCommand(TyperCommand):
    """A command whose help names values as its usage does: `--out PATH`, `--repeats N`, `--resume`."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, options with a placeholder instead of their Python type."""
        return _with_placeholders(super().get_params(ctx), ctx)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help, the epilogue by ourselves: a backslash does not survive the blanks that typer adds."""
        written, self.epilog = self.epilog, None
        try:
            super().format_help(ctx, formatter)
        finally:
            self.epilog = written
        if written:
            Console(highlight=False).print(
                Text.from_markup(with_folded_examples(inspect.cleandoc(written))), end="\n\n"
            )


class ReadableGroup(TyperGroup):
    """The same for a group of commands."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, options with a placeholder instead of their Python type."""
        return _with_placeholders(super().get_params(ctx), ctx)


def _with_placeholders(parameters: list[Any], context: Any) -> list[Any]:
    for parameter in parameters:
        if isinstance(parameter, TyperOption) and parameter.metavar is None:
            parameter.metavar = _placeholder(parameter.display_type(context))
    return parameters


def _placeholder(shown: str) -> str:
    """`<list[str]>` -> `TEXT`, `<int range>` -> `N`, `<docker|process>` -> `docker|process`."""
    name = re.sub(r"^list\[(.*)\]$", r"\1", shown.strip("<>")).removesuffix(" range")
    return _PLACEHOLDERS.get(name, name)


def with_folded_examples(epilogue: str) -> str:
    """The text, its indented lines (the examples) continued with a backslash where they are too long for a terminal."""
    return "\n".join(_folded(line) if line.startswith("  ") else line for line in epilogue.split("\n"))


def _folded(line: str) -> str:
    if len(line) <= _WIDTH:
        return line
    # an option stays with its value, and what is quoted in one piece
    words = re.findall(r"""(?:[^\s'"]|'[^']*'|"[^"]*")+""", line)
    parts: list[str] = []
    for word in words:
        if parts and not word.startswith("-"):
            parts[-1] += f" {word}"
        else:
            parts.append(word)
    lines = [f"  {parts[0]}"]
    for part in parts[1:]:
        if len(lines[-1]) + len(part) + len("  \\") <= _WIDTH:
            lines[-1] += f" {part}"
        else:
            lines.append(f"    {part}")
    return " \\\n".join(lines)
