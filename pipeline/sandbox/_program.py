"""The program that a sandbox is started with: the modules of `_inside`, sent as text to a Python of the sandbox's own.

Non-goals: what the program does (`_inside/supervisor.py`), and talking to it (`_session.py`).
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["bootstrap", "supervisor_source"]

_INSIDE = "pipeline.sandbox._inside"


def bootstrap() -> str:
    """The program to start a supervisor with: it reads its text, whose length comes first, from stdin and runs it."""
    return (
        "import os\n"
        "def take(size):\n"
        "    data = b''\n"
        "    while len(data) < size:\n"
        "        part = os.read(0, size - len(data))\n"
        "        if not part: os._exit(3)\n"
        "        data += part\n"
        "    return data\n"
        "exec(compile(take(int(take(8))), 'supervisor', 'exec'))\n"
    )


def supervisor_source() -> bytes:
    """What `bootstrap` waits for: length and text of a program that makes the modules of `_inside` and runs them."""
    folder = Path(__file__).with_name("_inside")
    names = ("wire", "tree", "watch", "gate", "runner", "supervisor")
    modules = [(f"{_INSIDE}.{name}", (folder / f"{name}.py").read_text(encoding="utf-8")) for name in names]
    text = (
        "import sys, types\n"
        f"for name in {['.'.join(_INSIDE.split('.')[: n + 1]) for n in range(3)]!r}:\n"
        "    sys.modules[name] = types.ModuleType(name)\n"
        "    sys.modules[name].__path__ = []\n"
        f"for name, text in {modules!r}:\n"
        "    sys.modules[name] = types.ModuleType(name)\n"
        "    exec(compile(text, name, 'exec'), sys.modules[name].__dict__)\n"
        "sys.modules[name].main()\n"
    ).encode("ascii", "backslashreplace")
    return b"%08d" % len(text) + text
