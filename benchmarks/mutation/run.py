"""Breaks the code in one place at a time and asks whether a test sees it.

Usage: python -m benchmarks.mutation.run TARGET... [--sample N] [--seed S] [--tests PATH...] [--json]

A target is a package or file (`masking`, `masking/leaks.py`). Needs the dependency group `mutation`
(`uv sync --group mutation`). One process, one core; survivors are printed as they are found, and an
interrupt ends a target with what was tried so far.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from scipy.stats import binomtest

from benchmarks.mutation.covering import copy_tree, cover_lines
from benchmarks.mutation.mutants import ALL_BELOW, Mutant, draw_mutants, find_places, is_declared, read_equivalents
from benchmarks.mutation.trial import try_mutant

ROOT: Final = Path(__file__).resolve().parents[2]
LIVES: Final = ("survived", "uncovered")


def list_files(target: str) -> list[str]:
    path = ROOT / target
    found = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    if not found or not found[0].is_file():
        raise SystemExit(
            f"There is no file or package {target!r} in {ROOT}: nothing can be mutated. Name one, like `masking`."
        )
    return [str(file.relative_to(ROOT)) for file in found]


def list_tests(target: str) -> list[str]:
    """The tests that mirror a target: of a package its folder, of a file the test files beside its own."""
    mirrored = ROOT / "tests" / target
    if mirrored.suffix == ".py":
        mirrored = mirrored.parent
        found = [str(path.relative_to(ROOT)) for path in sorted(mirrored.glob("test_*.py"))]
    else:
        found = [str(mirrored.relative_to(ROOT))] if mirrored.is_dir() else []
    if not found:
        raise SystemExit(
            f"There are no tests in {mirrored.relative_to(ROOT)}: say by --tests what {target!r} must live by."
        )
    return found


def measure(targets: Sequence[str], *, sample: int, seed: int, tests: Sequence[str]) -> dict[str, Any]:
    started = time.monotonic()
    files = {target: list_files(target) for target in targets}
    tests = tests or sorted({test for target in targets for test in list_tests(target)})
    declared = read_equivalents(ROOT)
    with tempfile.TemporaryDirectory(prefix="expbench-mutation-") as scratch:
        copy = Path(scratch) / "copy"
        copy_tree(ROOT, copy)
        covering = cover_lines(copy, sorted({file for some in files.values() for file in some}), tests, Path(scratch))
        print(f"covered in {time.monotonic() - started:.0f} s by {len(covering.seconds)} tests", file=sys.stderr)
        reports = {}
        for target, names in files.items():
            places = [place for name in names for place in find_places(name, (copy / name).read_text(encoding="utf-8"))]
            size = len(places) if len(names) == 1 and len(places) < ALL_BELOW else sample
            ends: list[tuple[Mutant, str]] = []
            mutants = draw_mutants(places, size=size, seed=seed, root=copy)
            try:
                for mutant in mutants:
                    end = "equivalent" if is_declared(mutant, declared) else try_mutant(mutant, covering, copy)
                    ends.append((mutant, end))
                    tell(ends, of=len(mutants), started=started)
            except KeyboardInterrupt:
                print(f"ended after {len(ends)} of {len(mutants)} mutants of {target}", file=sys.stderr)
            reports[target] = summarise(ends, places=len(places))
    return {"seed": seed, "tests": list(tests), "seconds": round(time.monotonic() - started), "targets": reports}


def tell(ends: Sequence[tuple[Mutant, str]], *, of: int, started: float) -> None:
    """A survivor as soon as it is known, and now and then how far the run is."""
    mutant, end = ends[-1]
    if end in LIVES or end.startswith("error"):
        print(f"{end} {mutant.file}:{mutant.line} {mutant.operator}\n{mutant.diff}", file=sys.stderr)
    if len(ends) % 10 == 0:
        lived = sum(end in LIVES for _, end in ends)
        seconds = time.monotonic() - started
        print(f"{len(ends)} of {of} tried in {seconds:.0f} s, {lived} lived", file=sys.stderr, flush=True)


def summarise(ends: Sequence[tuple[Mutant, str]], *, places: int) -> dict[str, Any]:
    """What is declared equivalent, and what pytest could not judge, is in no share. A time-out is a mutant seen."""
    count = Counter(end.split(":")[0] for _, end in ends)
    seen, judged = count["killed"] + count["timeout"], sum(count[end] for end in ("killed", "timeout", *LIVES))
    interval = binomtest(seen, judged).proportion_ci(method="wilson") if judged else None
    return {
        "mutants": places,
        "tried": len(ends),
        **{end: count[end] for end in ("killed", "timeout", *LIVES, "equivalent", "error")},
        "share": round(seen / judged, 3) if judged else None,
        "wilson95": [round(float(interval.low), 3), round(float(interval.high), 3)] if interval else None,
        "survivors": [
            {"at": f"{mutant.file}:{mutant.line}", "operator": mutant.operator, "end": end, "diff": mutant.diff}
            for mutant, end in sorted(ends)
            if end in LIVES or end.startswith("error")
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="+", metavar="TARGET")
    parser.add_argument("--sample", type=int, default=150, help="mutants of each target (small files: all)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tests", nargs="+", default=[], help="in place of the tests that mirror the target")
    parser.add_argument("--json", action="store_true", help="everything, survivors included, as JSON")
    options = parser.parse_args()
    report = measure(options.targets, sample=options.sample, seed=options.seed, tests=options.tests)
    if options.json:
        print(json.dumps(report, indent=2))
        return
    for target, figures in report["targets"].items():
        shown = {key: value for key, value in figures.items() if key != "survivors"}
        print(target, *(f"{key} {value}" for key, value in shown.items()), sep="  ")


if __name__ == "__main__":
    main()
