"""Which tests run which line, seen once in a copy of the working tree."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import coverage


class Covering(NamedTuple):
    """What the covering run saw."""

    by_line: dict[str, dict[int, list[str]]]
    """File, line, and the tests (node ids) that ran it; an empty id is an import before any test."""
    seconds: dict[str, float]
    sharing: frozenset[str]
    """Test files in which a fixture runs once for several tests."""

    def tests_of(self, file: str, lines: Sequence[int]) -> list[list[str]]:
        """The tests to run, in turns: those of the file's own test file, the others, and whole files if that says more.

        What runs at import is judged by all tests that run anything of the file, and by its own test file; what no test
        was seen to run by the latter, because it may run in a process that a test starts. Whole files are another turn
        where a line may run in a fixture that several tests share, and be seen in the first of them only.
        """
        of_file = self.by_line.get(file, {})
        named = {test for test in self.seconds if Path(file_of(test)).name == f"test_{Path(file).name}"}
        found = {test for line in lines for test in of_file.get(line, ())} or named
        if "" in found:
            found |= named | {test for tests in of_file.values() for test in tests}
            found = found - {""} or set(self.seconds)
        quickest = sorted(found, key=lambda test: self.seconds.get(test, 0.0))
        own = [test for test in quickest if test in named]
        others = [test for test in quickest if test not in set(own)]
        sharing = sorted({file_of(test) for test in found} & self.sharing)
        return [turn for turn in (own, others, sharing) if turn]

    def seconds_of(self, tests: Sequence[str]) -> float:
        """What tests or test files took unbroken."""
        wanted = set(tests)
        return sum(s for test, s in self.seconds.items() if test in wanted or file_of(test) in wanted)


def file_of(test: str) -> str:
    """The file of a node id."""
    return test.split("::", 1)[0]


def copy_tree(root: Path, to: Path) -> None:
    """The files that git knows or would know: mutants are made in the copy, so that the original can be worked on."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root, check=True, capture_output=True, text=True,
    )  # fmt: skip
    for name in filter(None, listed.stdout.split("\0")):
        if (root / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, to / name)


def cover_lines(copy: Path, files: Sequence[str], tests: Sequence[str], scratch: Path) -> Covering:
    """Runs the tests once, unbroken. Raises where one fails: what fails anyway kills every mutant."""
    data, tests_seen, settings = scratch / "coverage", scratch / "tests.json", scratch / "coveragerc"
    settings.write_text(f"[run]\ndata_file = {data}\ndisable_warnings = no-data-collected\n", encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-m", "coverage", "run", f"--rcfile={settings}", f"--include={','.join(files)}",
         "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "benchmarks.mutation.line_contexts", *tests],
        cwd=copy, env=os.environ | {"PYTHONPATH": str(copy), "EXPBENCH_TESTS_SEEN": str(tests_seen)},
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    if run.returncode != 0:
        raise SystemExit(
            f"The tests ({' '.join(tests)}) fail on the code as it is, so that no mutant can be judged by them:\n"
            f"{run.stdout[-3000:]}{run.stderr[-1000:]}"
        )
    seen = coverage.CoverageData(str(data))
    seen.read()
    by_line = {
        str(Path(file).relative_to(copy)): seen.contexts_by_lineno(file)
        for file in seen.measured_files()
        if Path(file).is_relative_to(copy)
    }
    ran = json.loads(tests_seen.read_text(encoding="utf-8"))
    return Covering(by_line, ran["seconds"], frozenset(ran["sharing"]))
