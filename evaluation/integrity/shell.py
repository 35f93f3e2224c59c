"""Command lines as lists of simple commands: what a shell would run, read without running anything.

Understood: pipes, `&&`, `||`, `;`, newlines, subshells, `$(...)` and backticks, here-documents, `sh -c`, `eval`, `env`,
`sudo`, `timeout`, `xargs`, `find -exec`, and the texts that Python (`python -c`, here-documents, scripts) hands to
`subprocess` and `os.system`. Not understood, and therefore not found: names that are put together at run time
(`g=git; $g log`) beyond simple assignments. Non-goal: being a shell.
"""

from __future__ import annotations

import ast
import re
import shlex
import warnings
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pipeline.tracing.parsed import called_function

__all__ = ["SimpleCommand", "commands_in_python", "here_documents", "read_commands"]

_SHELLS: Final = frozenset({"sh", "bash", "zsh", "dash", "ksh", "busybox"})
_PREFIXES: Final = frozenset(
    {
        "sudo",
        "env",
        "nohup",
        "time",
        "timeout",
        "nice",
        "ionice",
        "stdbuf",
        "command",
        "exec",
        "builtin",
        "setsid",
        "xargs",
        "then",
        "do",
        "else",
        "if",
        "while",
        "until",
        "!",
        "{",
        "(",
        "watch",
        "uv",
        "poetry",
        "conda",
    }
)
"""Words in front of a command. `uv run git log` and `conda run git log` run git."""
_PYTHON: Final = re.compile(r"^(?:.*/)?python[\d.]*$|^ipython3?$")
_HEREDOC: Final = re.compile(r"<<-?\s*(?P<quote>['\"]?)(?P<tag>[A-Za-z_]\w*)(?P=quote)")
_SUBSTITUTION: Final = re.compile(r"\$\(([^()]*(?:\([^()]*\)[^()]*)*)\)|`([^`]*)`")
_ASSIGNMENT: Final = re.compile(r"^[A-Za-z_]\w*=")
_WITH_VALUE: Final = frozenset({"-u", "-g", "-k", "-s", "-n", "-I", "-L", "-P", "--signal", "--user"})
"""Options of those words that take the next word."""
_SET: Final = re.compile(r"(?:^|[;&|\n][^\S\n]*+|\bexport\s++)([A-Za-z_]\w*)=[\"']?([\w./~^@:{}-]+)[\"']?(?=\s|;|&|$)")
_NAME: Final = re.compile(r"\$\{?([A-Za-z_]\w*)\}?")
_DEPTH: Final = 6
_LONGEST: Final = 200_000
_RUNNERS: Final = frozenset(
    {
        "run",
        "call",
        "check_call",
        "check_output",
        "Popen",
        "system",
        "popen",
        "getoutput",
        "getstatusoutput",
        "spawn",
        "create_subprocess_exec",
        "create_subprocess_shell",
        "execvp",
        "execv",
        "get_ipython",
    }
)


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One program with its arguments; redirections apart."""

    argv: tuple[str, ...]
    writes: tuple[str, ...] = ()
    """Targets of `>` and `>>`."""

    @property
    def name(self) -> str:
        """The program without its directory."""
        return self.argv[0].rsplit("/", 1)[-1] if self.argv else ""


def here_documents(text: str) -> tuple[str, list[tuple[str, str]]]:
    """The text without the bodies of its here-documents, and (the line that opens it, body) for each."""
    kept: list[str] = []
    found: list[tuple[str, str]] = []
    lines = text.split("\n")
    index = 0
    while index < len(lines):
        line = lines[index]
        kept.append(_HEREDOC.sub(" ", line))
        index += 1
        for match in _HEREDOC.finditer(line):
            body = []
            while index < len(lines) and lines[index].strip() != match["tag"]:
                body.append(lines[index])
                index += 1
            index += 1
            found.append((line, "\n".join(body)))
    return "\n".join(kept), found


def read_commands(text: str, depth: int = _DEPTH) -> list[SimpleCommand]:
    """The simple commands of a command line or script, those inside other shells and Python texts included.

    Args:
        text: what was given to a shell.
        depth: how many shells inside each other are followed.
    """
    if depth == 0 or not text.strip():
        return []
    plain, documents = here_documents(_with_variables(text[:_LONGEST].replace("\\\n", " ")))
    found: list[SimpleCommand] = []
    for opening, body in documents:
        found += _document(opening, body, depth)
    for match in _SUBSTITUTION.finditer(_without_single_quotes(plain)):
        found += read_commands(match[1] or match[2] or "", depth - 1)
    for words, writes in _simple(_SUBSTITUTION.sub(_last_word, plain)):
        found += _expanded(words, writes, depth)
    return found


def _with_variables(text: str) -> str:
    """Names that the text itself sets to a plain word, replaced by it: `R=HEAD~1; git show $R:x`."""
    values: dict[str, list[tuple[int, str]]] = {}
    for found in _SET.finditer(text):
        values.setdefault(found[1], []).append((found.start(), found[2]))

    def value(use: re.Match[str]) -> str:
        known = values.get(use[1])
        if known is None:
            return use[0]
        # what was set last before; a loop or a function may use what is set further down
        return known[max(0, bisect_left(known, (use.start(), "")) - 1)][1]

    return _NAME.sub(value, text) if values else text


def _last_word(match: re.Match[str]) -> str:
    """What stands for `$(...)`: its last word, so that `git show $(git rev-parse HEAD~1):x` names HEAD~1."""
    inner = (match[1] or match[2] or "").split()
    return inner[-1] if inner and not set(inner[-1]) & set("'\";|&") else ""


def _document(opening: str, body: str, depth: int) -> list[SimpleCommand]:
    """A here-document that is fed to a shell or to Python is a script; any other is data."""
    for words, _ in _simple(opening):
        names = [word.rsplit("/", 1)[-1] for word in words]
        if any(name in _SHELLS for name in names):
            return read_commands(body, depth - 1)
        if any(_PYTHON.match(name) for name in names):
            return _of_python(body, depth)
    return []


def _without_single_quotes(text: str) -> str:
    return re.sub(r"'[^']*'", "''", text)


def _simple(text: str) -> Iterator[tuple[list[str], tuple[str, ...]]]:
    """Words and write targets of each simple command; a line that cannot be read is split at white space."""
    for tokens in _tokens(text):
        words: list[str] = []
        writes: list[str] = []
        target = False
        for token in tokens:
            if target:
                target = False
                writes.append(token)
            elif token in {">", ">>", ">|", "&>", "&>>", ">&"}:
                target = True
            elif set(token) <= set(";&|()\n") and token:
                if words:
                    yield words, tuple(writes)
                words, writes = [], []
            elif token in {"<", "<<", "<<<", "<<-"}:
                continue
            else:
                words.append(token)
        if words:
            yield words, tuple(writes)


def _tokens(text: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(_one_line(text), posix=True, punctuation_chars=";&|()<>")
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        yield list(lexer)
    except ValueError:  # a quote that is never closed
        for line in text.split("\n"):
            yield re.sub(r"([;&|()]+)", r" \1 ", line.replace("'", " ").replace('"', " ")).split()


def _one_line(text: str) -> str:
    """Newlines outside of quotes as `;`, comments dropped."""
    kept: list[str] = []
    quote = ""
    index = 0
    while index < len(text):
        letter = text[index]
        if letter == "\\" and quote != "'" and index + 1 < len(text):
            kept.append(text[index : index + 2])
            index += 2
            continue
        if letter in "'\"":
            quote = "" if quote == letter else (quote or letter)
        if not quote and letter == "#" and (index == 0 or text[index - 1].isspace() or text[index - 1] in ";&|("):
            end = text.find("\n", index)
            index = len(text) if end < 0 else end
            continue
        kept.append(" ; " if letter == "\n" and not quote else letter)
        index += 1
    return "".join(kept)


def _expanded(words: list[str], writes: tuple[str, ...], depth: int) -> list[SimpleCommand]:
    """The command itself, and those that it runs in turn."""
    words = _unprefixed(words)
    if not words:
        return []
    command = SimpleCommand(tuple(words), writes)
    found = [command]
    if command.name in _SHELLS or command.name == "eval":
        script = _after_c(words) if command.name in _SHELLS else " ".join(words[1:])
        found += read_commands(script, depth - 1)
    elif _PYTHON.match(command.name):
        found += _of_python(_after_c(words), depth)
    elif command.name == "find":
        for mark in ("-exec", "-execdir", "-ok"):
            if mark in words:
                inner = [word for word in words[words.index(mark) + 1 :] if word not in {"{}", ";", "+", "\\;"}]
                found += _expanded(inner, (), depth - 1) if depth > 1 else []
    return found


def _unprefixed(words: list[str]) -> list[str]:
    """Without assignments and words such as `sudo`, `timeout 60` or `xargs -n 1` in front."""
    while words:
        if _ASSIGNMENT.match(words[0]):
            words = words[1:]
            continue
        if words[0].rsplit("/", 1)[-1] not in _PREFIXES:
            break
        rest = words[1:]
        while rest and (
            rest[0].startswith("-") or _ASSIGNMENT.match(rest[0]) or re.fullmatch(r"[\d.]+[smh]?", rest[0])
        ):
            rest = rest[2:] if rest[0] in _WITH_VALUE else rest[1:]
        if rest[:1] == ["run"]:
            rest = rest[1:]
        if not rest and len(words) == 1:
            return []
        words = rest
    return words


def _after_c(words: list[str]) -> str:
    """The text behind `-c` (also `-lc`)."""
    for index, word in enumerate(words[1:-1], 1):
        if re.fullmatch(r"-[a-z]*c", word):
            return words[index + 1]
    return ""


def _of_python(code: str, depth: int) -> list[SimpleCommand]:
    found: list[SimpleCommand] = []
    for text in commands_in_python(code):
        found += read_commands(text, depth - 1)
    return found


def commands_in_python(code: str) -> list[str]:
    """Command lines that Python code hands to `subprocess`, `os.system` and the like, and notebook `!commands`."""
    found = [match[1] for match in re.finditer(r"(?m)^\s*!\s*(\S.*)$", code)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return found
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = called_function(node)
        if name not in _RUNNERS:
            continue
        first = node.args[0]
        if isinstance(first, ast.List | ast.Tuple):
            words = [item.value if isinstance(item, ast.Constant) else "_" for item in first.elts]
            found.append(shlex.join(str(word) for word in words))
        else:
            found += [text for text in _texts(first) if text.strip()]
    return found


def _texts(node: ast.expr) -> list[str]:
    """The text of a constant, a formatted text or a sum of texts; unknown parts become `_`."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.JoinedStr):
        return ["".join(str(part.value) if isinstance(part, ast.Constant) else "_" for part in node.values)]
    if isinstance(node, ast.BinOp):
        left, right = _texts(node.left) or ["_"], _texts(node.right) or ["_"]
        return [left[0] + right[0]]
    return []
