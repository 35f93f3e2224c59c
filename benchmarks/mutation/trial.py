"""One mutant tried: its file written, the tests run in a fork of this process, its file restored.

A fork, because pytest and the libraries are loaded by then (3 s of 4 for a small test file); nothing of the project is,
so that the child imports it anew and a changed constant counts.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import docker  # noqa: F401  # loaded here once, for the forks
import httpx  # noqa: F401
import hypothesis  # noqa: F401
import jinja2  # noqa: F401
import libcst  # noqa: F401
import numpy as np  # noqa: F401
import pydantic_settings  # noqa: F401
import pytest
import yaml  # noqa: F401

from benchmarks.mutation.covering import Covering, file_of
from benchmarks.mutation.mutants import Mutant

SLOWER: Final = 5.0
"""Times what the tests took unbroken, the covering run's slowness included."""
AT_LEAST_S: Final = 30.0
"""Imports on a busy machine."""
OPTIONS: Final = (
    "-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0",
    # of all plug-ins that are installed the one that tests use: another takes 2 s to import
    "-p", "_hypothesis_pytestplugin",
    # hypothesis is loaded before its plug-in, which the project's settings make an error
    "-W", "ignore::pytest.PytestAssertRewriteWarning",
)  # fmt: skip
KILLED: Final = (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED)
"""A test that fails, or a module that cannot be imported."""
RENAMED: Final = f"error: pytest ended with {int(pytest.ExitCode.USAGE_ERROR)}"
"""No such test: a parameter came from the mutated code, and its test has another name now."""


def try_mutant(mutant: Mutant, covering: Covering, copy: Path) -> str:
    """`killed`, `survived`, `timeout`, `uncovered` (no test runs the line: it survives), or `error: ...`."""
    end = "uncovered"
    with written(copy / mutant.file, mutant.code):
        for tests in covering.tests_of(mutant.file, mutant.lines):
            end = run_tests(tests, copy, AT_LEAST_S + SLOWER * covering.seconds_of(tests))
            if end == RENAMED:
                files = sorted({file_of(test) for test in tests})
                end = run_tests(files, copy, AT_LEAST_S + SLOWER * covering.seconds_of(files))
            if end != "survived":
                break
    return end


@contextmanager
def written(path: Path, code: str) -> Iterator[None]:
    """With the time of its last change put back, so that the compiled original is used again."""
    original, times = path.read_bytes(), path.stat()
    path.write_text(code, encoding="utf-8")
    try:
        yield
    finally:
        path.write_bytes(original)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def run_tests(tests: Sequence[str], copy: Path, limit_s: float) -> str:
    """Ends with the first failure; the whole process group is ended when the time is up."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        _run_pytest(tests, copy)
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            if code == 0:
                return "survived"
            # a negative code: the mutant brought the interpreter down
            return "killed" if code in KILLED or code < 0 else f"error: pytest ended with {code}"
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timeout"


def _run_pytest(tests: Sequence[str], copy: Path) -> None:
    code = 70  # of no pytest
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        os.chdir(copy)
        os.environ |= {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        sys.dont_write_bytecode = True
        sys.path.insert(0, str(copy))
        for name in [name for name in sys.modules if name.split(".")[0] == "benchmarks"]:
            del sys.modules[name]
        code = int(pytest.main([*OPTIONS, f"--basetemp={copy.parent / 'pytest'}", *tests]))
    finally:
        os._exit(code)
