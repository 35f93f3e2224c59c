"""The tools: a shell, Python, and files. Each call gives text for the model and a record for the log.

Nothing here is a boundary: the container is. What is bounded is what the model and the log get to see.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .processes import Finished, run

__all__ = ["TOOLS", "ToolBox"]

_PATH = {"type": "string", "description": "Absolute, or relative to the workspace."}
_MOST_MATCHES = 200
_MOST_FILE_BYTES = 4 << 20
_LONGEST_LINE = 2000


def _tool(name: str, description: str, required: tuple[str, ...], **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


_TIMEOUT = {"type": "number", "description": "Seconds after which it is ended. Optional."}

TOOLS: list[dict[str, Any]] = [
    _tool(
        "bash",
        "Run a bash command in a new shell in the workspace. Output and errors come back together; long output is cut "
        "in the middle. For what must go on beside your work use nohup, &, and a log file.",
        ("command",),
        command={"type": "string"},
        timeout_s=_TIMEOUT,
    ),
    _tool(
        "python",
        "Run Python code in a new interpreter in the workspace; print what you want to see.",
        ("code",),
        code={"type": "string"},
        timeout_s=_TIMEOUT,
    ),
    _tool(
        "read_file",
        "Read lines of a text file (numbered).",
        ("path",),
        path=_PATH,
        start_line={"type": "integer", "description": "From 1. Optional."},
        end_line={"type": "integer", "description": "Inclusive. Optional."},
    ),
    _tool("write_file", "Create or replace a text file.", ("path", "content"), path=_PATH, content={"type": "string"}),
    _tool(
        "edit_file",
        "Replace a piece of a text file; the old text must occur exactly once.",
        ("path", "old", "new"),
        path=_PATH,
        old={"type": "string"},
        new={"type": "string"},
    ),
    _tool(
        "search_files",
        "Lines that match a regular expression, in a file or below a directory.",
        ("pattern",),
        pattern={"type": "string"},
        path=_PATH,
    ),
]


class ToolError(Exception):
    """The call cannot be carried out; the model is told why."""


class ToolBox:
    """Carries out tool calls.

    Args:
        workspace: where commands run and relative paths begin.
        shown_chars: of an output, to the model.
        logged_chars: of an output, in the log.
        timeout_s: default of a command.
        python: interpreter of the `python` tool: the task's own, found on PATH.
    """

    def __init__(self, workspace: str, *, shown_chars: int, logged_chars: int, timeout_s: float, python: str) -> None:
        self._workspace, self._timeout_s = workspace, timeout_s
        self._shown, self._logged = shown_chars, logged_chars
        self._python = python
        self._tools: dict[str, Callable[[dict[str, Any], float], tuple[str, dict[str, Any]]]] = {
            "bash": self._bash,
            "python": self._run_python,
            "read_file": self._read,
            "write_file": self._write,
            "edit_file": self._edit,
            "search_files": self._search,
        }

    def call(self, name: str, arguments: str, left_s: float) -> tuple[str, dict[str, Any]]:
        """Carry out one call.

        Args:
            name: of the tool.
            arguments: JSON, as the model wrote it.
            left_s: no command may take longer.

        Returns:
            Text for the model, and what the log says about the call (always `is_error`).
        """
        try:
            values = json.loads(arguments or "{}")
        except ValueError as error:
            return self._failed(f"the arguments are no JSON: {error}")
        if not isinstance(values, dict):
            return self._failed("the arguments are no JSON object")
        tool = self._tools.get(name)
        if tool is None:
            return self._failed(f"there is no tool {name!r}; there are {', '.join(self._tools)}")
        try:
            text, record = tool(values, left_s)
        except ToolError as error:
            return self._failed(str(error))
        except (OSError, UnicodeError, re.error) as error:  # a missing file, no permission, a full disk, a bad pattern
            return self._failed(f"{type(error).__name__}: {error}")
        return _middle_out(text, self._shown), {"is_error": False, **record}

    @staticmethod
    def _failed(message: str) -> tuple[str, dict[str, Any]]:
        return f"ERROR: {message}", {"is_error": True, "output": f"ERROR: {message}"}

    # --- commands

    def _bash(self, values: dict[str, Any], left_s: float) -> tuple[str, dict[str, Any]]:
        command = _text(values, "command")
        shell = shutil.which("bash") or "/bin/sh"
        return self._finished(command, run([shell, "-c", command], self._workspace, self._seconds(values, left_s)))

    def _run_python(self, values: dict[str, Any], left_s: float) -> tuple[str, dict[str, Any]]:
        code = _text(values, "code")
        handle, path = tempfile.mkstemp(prefix="cell_", suffix=".py")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(code)
            # the workspace is importable, as it is for a script that lies in it
            bootstrap = (
                "import sys,runpy;sys.path[0]=sys.argv.pop(1);runpy.run_path(sys.argv.pop(1),run_name='__main__')"
            )
            argv = [self._python, "-c", bootstrap, self._workspace, path]
            result = run(argv, self._workspace, self._seconds(values, left_s))
        finally:
            Path(path).unlink()
        return self._finished(f"python <<'CODE'\n{code}\nCODE", result)

    def _seconds(self, values: dict[str, Any], left_s: float) -> float:
        wanted = values.get("timeout_s")
        seconds = float(wanted) if isinstance(wanted, (int, float)) and wanted > 0 else self._timeout_s
        return max(min(seconds, left_s), 0.1)

    def _finished(self, command: str, result: Finished) -> tuple[str, dict[str, Any]]:
        logged = _middle_out(result.output, self._logged)
        record = {
            "command": command,
            "directory": self._workspace,
            "exit_code": result.exit_code,
            "duration_s": round(result.duration_s, 3),
            "truncated": result.truncated or len(logged) < len(result.output),
            "output": logged,
        }
        note = f"\n[{result.note}]" if result.note else ""
        code = "none: it was ended" if result.exit_code is None else str(result.exit_code)
        return f"{_middle_out(result.output, self._shown - 200)}{note}\n[exit code {code}]", record

    # --- files

    def _path(self, values: dict[str, Any], default: str | None = None) -> Path:
        path = _text(values, "path") if default is None or "path" in values else default
        return Path(os.path.normpath(Path(self._workspace) / path))

    @staticmethod
    def _load(path: Path) -> str:
        if not path.is_file():  # a FIFO or a device would block or never end
            raise ToolError(f"{path} is not a file")
        if path.stat().st_size > _MOST_FILE_BYTES:
            raise ToolError(f"{path} has {path.stat().st_size} bytes: look at it with bash (head, sed, grep)")
        with path.open(encoding="utf-8", errors="replace", newline="") as stream:
            return stream.read()

    def _read(self, values: dict[str, Any], _left_s: float) -> tuple[str, dict[str, Any]]:
        lines = self._load(self._path(values)).splitlines()
        first = max(_number(values, "start_line", 1), 1)
        last = min(_number(values, "end_line", len(lines)), len(lines))
        shown = [f"{n:6d}\t{lines[n - 1][:_LONGEST_LINE]}" for n in range(first, last + 1)]
        text = "\n".join(shown) + f"\n[lines {first} to {last} of {len(lines)}]"
        return text, {"output": _middle_out(text, self._logged)}

    def _write(self, values: dict[str, Any], _left_s: float) -> tuple[str, dict[str, Any]]:
        path, content = self._path(values), _text(values, "content", may_be_empty=True)
        existed = path.exists()
        self._store(path, content)
        message = f"{'Replaced' if existed else 'Created'} {path} ({len(content)} characters)."
        action = "edited" if existed else "created"
        return message, {
            "output": message,
            "path": str(path),
            "action": action,
            "text": _middle_out(content, self._logged),
        }

    def _edit(self, values: dict[str, Any], _left_s: float) -> tuple[str, dict[str, Any]]:
        path, old, new = self._path(values), _text(values, "old"), _text(values, "new", may_be_empty=True)
        content = self._load(path)
        count = content.count(old)
        if count != 1:
            raise ToolError(f"the old text occurs {count} times in {path}, it must occur once; nothing was changed")
        if "\ufffd" in content:
            raise ToolError(f"{path} is not UTF-8 text; nothing was changed")
        self._store(path, content.replace(old, new))
        message = f"Edited {path}."
        text = _middle_out(f"<<<<<<< old\n{old}\n=======\n{new}\n>>>>>>> new", self._logged)
        return message, {"output": message, "path": str(path), "action": "edited", "text": text}

    @staticmethod
    def _store(path: Path, content: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8", newline="") as stream:
            stream.write(content)

    def _search(self, values: dict[str, Any], _left_s: float) -> tuple[str, dict[str, Any]]:
        pattern = re.compile(_text(values, "pattern"))
        root = self._path(values, ".")
        found: list[str] = []
        for path in _files(root):
            if len(found) >= _MOST_MATCHES:
                break
            try:
                lines = self._load(path).splitlines()
            except (ToolError, OSError):  # too large, vanished or unreadable: not searched
                continue
            name = os.path.relpath(path, self._workspace)
            hits = [
                f"{name}:{n}: {line[:300]}" for n, line in enumerate(lines, 1) if pattern.search(line[:_LONGEST_LINE])
            ]
            found.extend(hits[: _MOST_MATCHES - len(found)])
        end = " (there are more)" if len(found) >= _MOST_MATCHES else ""
        text = "\n".join([*found, f"[{len(found)} matching lines{end}]"])
        return text, {"output": _middle_out(text, self._logged)}


def _files(root: Path) -> list[Path]:
    if root.is_file():
        return [root]
    if not root.is_dir():
        raise ToolError(f"{root} does not exist")
    paths: list[Path] = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in (".git", "__pycache__"))
        paths += [Path(folder, name) for name in sorted(names)]
    return paths


def _text(values: dict[str, Any], name: str, *, may_be_empty: bool = False) -> str:
    value = values.get(name)
    if not isinstance(value, str) or (not value and not may_be_empty):
        raise ToolError(f"{name!r} must be given as text")
    if name in ("command", "path") and "\0" in value:
        raise ToolError(f"{name!r} holds a NUL character")
    return value


def _number(values: dict[str, Any], name: str, default: int) -> int:
    value = values.get(name)
    return value if isinstance(value, int) else default


def _middle_out(text: str, most: int) -> str:
    """The text, cut in its middle when it is longer than `most` characters: its end says how a command ended."""
    if len(text) <= most:
        return text
    note = f"\n[... {len(text) - most} of {len(text)} characters left out ...]\n"
    room = max(most - len(note), 0)
    return text[: room // 2] + note + text[len(text) - (room - room // 2) :]
