"""Text forms inside EXP-Bench's published records: paths, requirements with line spans, variables, commands.

The published data was written by a language model and never validated; every reader here is total: what does not parse
is kept as text and named as a quirk.
"""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from pipeline.task import CodeEvidence, DesignVariable, Requirement, Usage

__all__ = [
    "commands_of", "format_requirement", "format_variables", "normal_path", "parse_requirement", "parse_variables",
]  # fmt: skip

WORKSPACE: Final = "/workspace/"
"""Where the repository was mounted when the data was made."""

_RANGE: Final = r"\d+(?:\s*[-\u2013]\s*\d+)?"
_REF: Final = re.compile(rf"(?:(?P<path>[^\s(),:]+):)?(?P<range>{_RANGE})(?P<cell>\s+in cell \d+)?")
_TAIL: Final = re.compile(r"\s*\((?P<refs>[^()]*:\s*\d[^()]*)\)\s*\.?\s*$")
_CELL: Final = re.compile(r"in cell \d+")
_SEPARATOR: Final = re.compile(r"\s*[,;]\s*")
_MAX_LINE: Final = 10_000_000

_FENCE: Final = re.compile(r"```[a-z]*[ \t]*\n(?P<code>.*?)```", re.DOTALL)
_PROGRAMS: Final = ("python", "python3", "bash", "sh", "torchrun", "accelerate", "deepspeed", "jupyter", "make")
_SHELL: Final = re.compile(r"[|<>;&`$*?{}\[\]]|\.\.\.")
"""A placeholder (`<path>`, `{name}`), an operator, an expansion: such a line is no argument vector."""


def normal_path(text: str, known: Iterable[str] = ()) -> tuple[str, bool]:
    """A path relative to the repository, and whether it had to be changed.

    `/workspace/x` is `x`. `/tmp/<clone>/x` is `x`, or the known path that it ends with. A bare name is the one known
    path that ends with it. Anything else absolute loses its leading slash; `..` cannot lead out.

    Args:
        text: as published.
        known: paths of the repository that are known already, relative.
    """
    stripped = text.strip()
    path = posixpath.normpath(stripped.removeprefix(WORKSPACE)) if stripped else ""
    if path.startswith("/tmp/"):  # noqa: S108 - a text of the published data
        path = _ending(path, known) or "/".join(path.split("/")[3:]) or path
    path = posixpath.normpath("/" + path).lstrip("/")
    if "/" not in path or path == stripped:
        path = _by_name(path, known)
    return path, path != text


def _ending(path: str, known: Iterable[str]) -> str:
    """The longest known path that `path` ends with."""
    return max((item for item in known if path.endswith("/" + item)), key=lambda item: (len(item), item), default="")


def _by_name(path: str, known: Iterable[str]) -> str:
    """The only known path that is `path` or ends with it; `path` itself when there is none or more than one."""
    known = set(known)
    if path in known:
        return path
    found = [item for item in known if item.endswith("/" + path)]
    return found[0] if len(found) == 1 else path


def parse_requirement(text: str, known: Sequence[str] = ()) -> Requirement:
    """A requirement as published: words, and at their end spans in brackets, `(a.py:3-9, 12, b.py:4)`.

    Spans that do not parse stay part of the words; the requirement then has none.
    """
    match = _TAIL.search(text)
    spans = _spans(match["refs"], known) if match else None
    if match is None or not spans:
        return Requirement(text=text.strip(), spans=())
    return Requirement(text=text[: match.start()].strip(), spans=spans)


def _spans(refs: str, known: Sequence[str]) -> tuple[CodeEvidence, ...] | None:
    spans: list[CodeEvidence] = []
    path = ""
    for part in _SEPARATOR.split(refs.strip()):
        match = _REF.fullmatch(re.sub(r":\s+", ":", part))
        if match is None:
            return None
        path = normal_path(match["path"], known)[0] if match["path"] else path
        first, *rest = (int(number) for number in re.findall(r"\d+", match["range"]))
        last = rest[0] if rest else first
        if not path or min(first, last) < 1 or max(first, last) > _MAX_LINE:
            return None
        cell = match["cell"].strip() if match["cell"] else ""
        spans.append(CodeEvidence(path=path, start=min(first, last), end=max(first, last), quote=cell))
    return tuple(spans)


def format_requirement(requirement: Requirement) -> str:
    """The published form: `text (path:start-end, path:line)`."""
    if not requirement.spans:
        return requirement.text
    refs = []
    for span in requirement.spans:
        last = f"-{span.end}" if span.end != span.start else ""
        cell = f" {span.quote}" if _CELL.fullmatch(span.quote) else ""
        refs.append(f"{span.path}:{span.start}{last}{cell}")
    return f"{requirement.text} ({', '.join(refs)})"


def parse_variables(value: Any) -> tuple[DesignVariable, ...] | None:
    """Variables as published: name -> text, list or mapping; a list of names; None when it is something else."""
    if isinstance(value, dict):
        return tuple(DesignVariable(name=name, values=tuple(_values(item))) for name, item in value.items())
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(DesignVariable(name=item) for item in value)
    return None


def _values(value: Any) -> Iterator[str]:
    if value is None:
        return
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _values(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield f"{name}: {', '.join(_values(item))}"
    else:
        yield json.dumps(value)


def format_variables(variables: Sequence[DesignVariable]) -> dict[str, list[str]]:
    """The published form: name -> list of texts."""
    return {variable.name: list(variable.values) for variable in variables}


def commands_of(usage: str) -> tuple[Usage, ...]:
    """Commands in the fenced code of usage instructions that are complete: no placeholders, no shell syntax."""
    found: dict[tuple[str, ...], Usage] = {}
    for fence in _FENCE.finditer(usage):
        code = re.sub(r"\\\s*\n\s*", " ", fence["code"])
        for line in code.splitlines():
            argv = _argv(line.strip().removeprefix("$ "))
            if argv:
                found.setdefault(argv, Usage(argv=argv, reason="usage_instructions"))
    return tuple(found.values())


def _argv(line: str) -> tuple[str, ...]:
    if not line.startswith(_PROGRAMS) or _SHELL.search(line) or "path/to" in line:
        return ()
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        return ()
    return tuple(words) if words and words[0] in _PROGRAMS and len(words) > 1 else ()
