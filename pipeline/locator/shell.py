"""Reading shell text (scripts, README blocks, Makefile recipes) into the commands it would run. Nothing is run.

Understood: continuation lines, comments, prompts, `cd`, assignments, `export`, `${x:-default}`, arrays, `for` loops
over words (expanded), `if`/`else` (both branches), `&&`, `;`, pipes and redirections (dropped). What stays unknown
(`$1`, `$(date)`) is left in the argument, so that the reader of a command can see it: `Invocation.unresolved`.
"""

from __future__ import annotations

import contextlib
import itertools
import posixpath
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Invocation", "parse_shell"]

# A sweep over 8 data sets, 4 horizons and 5 seeds is 160 commands; beyond that only the first are told apart.
_MAX_COMMANDS = 256
# What loops within loops and values made of values may be spelt out to, in letters: a script of 1.2 MB stays below it.
_MAX_LETTERS = 1_500_000
# What following a statement costs beside its letters.
_STEP = 10
# A value that people write is a list of some hundred words; `a=$a$a` doubles with each line.
_LONGEST_VALUE = 20_000
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?:\[[@*]\])?(?::?[-=]([^{}]*))?\}|(\w+))")
_SEQ = re.compile(
    r"\$\(\s*seq\s+(-?\d{1,18})(?:\s+(-?\d{1,18}))?(?:\s+(-?\d{1,18}))?\s*\)|\{(-?\d{1,18})\.\.(-?\d{1,18})\}"
)
_ASSIGN = re.compile(r"^(?:export\s+|local\s+|declare\s+(?:-\w+\s+)?)?([A-Za-z_]\w*)=(.*)$", re.S)
_HERE = re.compile(r"(?:\$\(pwd\)|`pwd`|\$\{?PWD\}?)/")
"""Where the command is run from: a path that begins so is relative to it."""
_ARRAY = re.compile(r"^\s*(?:(?:declare|local|export)\s+(?:-\w+\s+)?)?[A-Za-z_]\w*=\([^)]*$")
"""The beginning of an array that is not closed on the line."""
_KEYWORDS = {"then", "else", "fi", "do", "done", "{", "}", "esac"}
_TO_FILL_IN = re.compile(r"<[\w\s./:\-]+>$")
"""`<your_output_dir>`: what the reader puts in, not a redirection."""
_REDIRECT = re.compile(r"^(?:\d?>>?|&>>?|\d?>&\d?|<|2>&1)")


@dataclass(frozen=True, slots=True)
class Invocation:
    """One simple command with its variables filled in."""

    argv: tuple[str, ...]
    line: int
    """Line of the text it was read from, from 1."""
    directory: str = "."
    """Where the text has changed to, relative to where it started."""
    environment: tuple[tuple[str, str], ...] = ()
    comment: str = ""
    """Comment lines right above it."""

    @property
    def unresolved(self) -> tuple[str, ...]:
        """Arguments that hold a variable or substitution whose value is not known."""
        return tuple(word for word in self.argv if "$" in word or "`" in word)


@dataclass(slots=True)
class _Statement:
    line: int
    text: str
    comment: str


@dataclass(slots=True)
class _Loop:
    variable: str
    items: str
    body: list[_Statement | _Loop]


def parse_shell(text: str, variables: dict[str, str] | None = None) -> tuple[Invocation, ...]:
    """The commands of `text` in order, loops expanded.

    Loops that no person would unroll (sweeps of sweeps, blocks nested a thousand deep) give the commands until there.

    Args:
        text: shell.
        variables: those that are set before; what `text` sets is added.
    """
    statements = iter(_statements(text))
    found: list[Invocation] = []
    with contextlib.suppress(RecursionError):  # more nested blocks than Python's own stack holds
        _run(_blocks(statements), {} if variables is None else variables, {}, ["."], found, [_MAX_LETTERS])
    return tuple(found)


def _statements(text: str) -> Iterator[_Statement]:
    """Logical lines split at `;`, `&&`, `||`, `&` and `|`; what a pipe leads into is dropped."""
    buffer, first, comment = "", 0, ""
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.rstrip()
        if not buffer:
            line = re.sub(r"^\s*(?:\$|%|>)\s+(?=\w|\.)", "", line)
            first = number
            stripped = line.strip()
            if stripped.startswith("#"):
                comment = f"{comment} {stripped.lstrip('#! ')}".strip()
                continue
            if not stripped:
                comment = ""
                continue
        if line.endswith("\\"):
            buffer += line[:-1] + " "
            continue
        if _ARRAY.match(buffer + line):  # the words of an array, each on a line of its own
            buffer += _uncommented(line) + " "
            continue
        yield from (_Statement(first, part, comment) for part in _split(buffer + line))
        buffer, comment = "", ""
    if buffer:
        yield from (_Statement(first, part, comment) for part in _split(buffer))


def _uncommented(line: str) -> str:
    return re.sub(r"(?:^|\s)#.*$", "", line)


def _split(line: str) -> list[str]:
    parts, current, quote, depth, index, piped = [], "", "", 0, 0, False
    while index < len(line):
        char = line[index]
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"`":
            quote = char
        elif char == "(":
            depth += 1
        elif char == ")":
            depth = max(0, depth - 1)
        elif char == "#" and (not current or current[-1].isspace()):
            break
        elif depth == 0 and char in ";&|":
            if char == "&" and (current.endswith((">", "<")) or line[index + 1 : index + 2] == ">"):
                current += char
                index += 1
                continue
            if not piped:
                parts.append(current)
            double = line[index : index + 2] in {"&&", "||", ";;"}
            piped = char == "|" and not double
            current = ""
            index += 2 if double else 1
            continue
        current += char
        index += 1
    if not piped:
        parts.append(current)
    return [part.strip() for part in parts if part.strip()]


def _blocks(statements: Iterator[_Statement]) -> list[_Statement | _Loop]:
    program: list[_Statement | _Loop] = []
    for statement in statements:
        text = statement.text
        while (head := text.split(maxsplit=1)) and head[0] in _KEYWORDS:
            if head[0] == "done":
                return program
            text = head[1] if len(head) > 1 else ""
        match = re.match(r"for\s+(\w+)\s+in\s+(.*)$", text, re.S)
        if match:
            program.append(_Loop(match.group(1), match.group(2), _blocks(statements)))
        elif re.match(r"(?:while|until|for)\b", text):
            program.extend(_blocks(statements))
        elif text and not re.match(
            r"(?:if|elif|case|function|set|echo|printf|read|shift|trap|exit|return|\[)\b|\[|\w+\(\)", text
        ):
            program.append(_Statement(statement.line, text, statement.comment))
    return program


def _run(
    program: list[_Statement | _Loop],
    variables: dict[str, str],
    exported: dict[str, str],
    directory: list[str],
    found: list[Invocation],
    left: list[int],
) -> None:
    """Follow `program`; `left` are the letters that may still be spelt out."""
    for part in program:
        if len(found) >= _MAX_COMMANDS or left[0] <= 0:
            return
        left[0] -= _STEP + len(part.items if isinstance(part, _Loop) else part.text)
        if isinstance(part, _Loop):
            for item in _words(_expand(_sequences(part.items), variables)):
                if len(found) >= _MAX_COMMANDS or left[0] <= 0:
                    return
                variables[part.variable] = item
                left[0] -= _STEP
                _run(part.body, variables, exported, directory, found, left)
            continue
        match = _ASSIGN.match(part.text)
        if match and _is_assignment_only(match.group(2)):
            value = _value(match.group(2), variables)
            variables[match.group(1)] = value
            if part.text.startswith("export"):
                exported[match.group(1)] = value
            continue
        _command(part, variables, exported, directory, found)


def _is_assignment_only(rest: str) -> bool:
    if rest.startswith("("):
        return True
    try:
        return len(shlex.split(rest)) <= 1
    except ValueError:
        return False


def _value(text: str, variables: dict[str, str]) -> str:
    text = _expand(_sequences(text), variables).strip()
    if text.startswith("(") and text.endswith(")"):
        return " ".join(_words(text[1:-1]))
    return " ".join(_words(text)) if text[:1] in "'\"" else text


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text, comments=True)
    except ValueError:
        return text.split()


def _sequences(text: str) -> str:
    def spell(match: re.Match[str]) -> str:
        one, two, three, low, high = match.groups()
        if low is not None:
            start, step, stop = int(low), 1, int(high)
        elif three is not None:
            start, step, stop = int(one), int(two) or 1, int(three)
        else:
            start, step, stop = (int(one), 1, int(two)) if two is not None else (1, 1, int(one))
        values = range(start, stop + (1 if step > 0 else -1), step)
        return " ".join(str(value) for value in itertools.islice(values, _MAX_COMMANDS))  # never listed: {1..10**9}

    return _SEQ.sub(spell, text)


def _expand(text: str, variables: dict[str, str]) -> str:
    text = _HERE.sub("", text)

    def fill(match: re.Match[str]) -> str:
        name, default = match.group(1) or match.group(3), match.group(2)
        if name in variables:
            return variables[name]
        return default if default is not None else match.group(0)

    if sum(len(variables.get(match.group(1) or match.group(3), "")) for match in _VARIABLE.finditer(text)) > (
        _LONGEST_VALUE + len(text)
    ):
        return text  # stays unknown
    return _VARIABLE.sub(fill, text)


def _command(
    statement: _Statement,
    variables: dict[str, str],
    exported: dict[str, str],
    directory: list[str],
    found: list[Invocation],
) -> None:
    text = statement.text.strip()
    if text.startswith("(") and text.endswith(")"):
        text = text[1:-1]
    words = _words(_expand(text, variables))
    environment = dict(exported)
    while words and (match := re.match(r"^([A-Za-z_]\w*)=(.*)$", words[0], re.S)):
        environment[match.group(1)] = match.group(2)
        words.pop(0)
    kept: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word in {"$@", "$*", "${@}", "${@:1}", "${@:2}", "$args"}:  # what a caller may add: nothing
            continue
        elif _REDIRECT.match(word) and not _TO_FILL_IN.match(word):
            skip = word in {">", ">>", "<", "2>", "1>", "&>", "2>>"}
        else:
            kept.append(word)
    if not kept:
        return
    if kept[0] in {"cd", "pushd"}:
        target = kept[1] if len(kept) > 1 else "."
        directory[0] = posixpath.normpath(posixpath.join(directory[0], target))
        return
    found.append(
        Invocation(tuple(kept), statement.line, directory[0], tuple(sorted(environment.items())), statement.comment)
    )
