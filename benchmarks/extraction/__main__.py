"""Every measure of reading papers for this program and for the baselines, in one run.

    python -m benchmarks.extraction DIRECTORY [--prototypes DIR] [--layout PYTHON] [--scans] [--json]

DIRECTORY holds `*.pdf`, `truth/*.json` and their scorer `score.py` (see `score`). Each reader runs in a process of its
own (`readers`), so that time and memory are its own. `--prototypes` adds the first prototypes (numbering and font
rules; rules and column gaps), `--layout` PyMuPDF's layout model: the interpreter of an environment that has it (see
`layout_model`). `--scans` adds OCR beside Tesseract alone (ten minutes). Non-goal: single failures (`score`, `order
--wrong`, `scans` list them).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pymupdf

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.extraction.order import is_right, letters, pairs_of
from benchmarks.extraction.scans import measure, pages_with_tables, summary
from benchmarks.extraction.score import load_scorer, truth_of

_ROOT: Final = Path(__file__).resolve().parents[2]


def run_reader(command: list[str]) -> dict[str, Any]:
    """The JSON that a reader prints."""
    done = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: ended with {done.returncode}; see what it printed")
    # the library of the layout model prints notices as well
    result: dict[str, Any] = json.loads(done.stdout[done.stdout.index('{"papers"') :])
    return result


def score_reader(read: dict[str, Any], directory: Path, scorer: ModuleType, unruled: str) -> dict[str, float | None]:
    """The rows of the table for one reader; None where it has nothing of the kind."""
    heads, levels, caps = [0, 0, 0], 0.0, [0, 0, 0]
    ruled: list[Any] = []
    physics: list[Any] = []
    pairs = right = 0
    for name, paper in read["papers"].items():
        truth = truth_of(directory / "truth", name)
        if "headings" in truth and paper["headings"] is not None:
            head = scorer.score_heads(paper["headings"], truth["headings"], paper["title"])
            heads = [total + head[key] for total, key in zip(heads, ("tp", "np", "nt"), strict=True)]
            levels += head["level"] * head["tp"]
        if "captions" in truth and paper["captions"] is not None:
            missed, extra = scorer.score_caps(paper["captions"], truth["captions"])[3:5]
            wanted = len({(scorer.cl(caption["label"]), caption["page"]) for caption in truth["captions"]})
            hit = wanted - len(missed)
            caps = [caps[0] + hit, caps[1] + hit + len(extra), caps[2] + wanted]
        if "tables" in truth:
            rows = scorer.score_tables(paper["tables"], truth["tables"])[0]
            (physics if name.startswith(unruled) else ruled).extend(rows)
        with pymupdf.open(directory / f"{name}.pdf") as handle:
            asked = [pair for page in handle for pair in pairs_of(page, page.number + 1)]
        text = "|".join(map(letters, paper["text"].split("|"))) if asked else ""
        pairs += len(asked)
        right += sum(is_right(pair, text) for pair in asked)
    tables, others = scorer.summ(ruled), scorer.summ(physics) if physics else None
    pages = sum(paper["pages"] for paper in read["papers"].values())
    return {
        "headings F1": _f1(heads), "levels of those found": levels / heads[0] if heads[0] else None,
        "captions F1": _f1(caps),
        "tables with rules: found": tables["found"] / tables["n"], "exact grid": tables["exact"] / tables["n"],
        "path": tables["path"], "tables without full rules: path": others["path"] if others else None,
        "reading order: next line right": right / pairs if pairs else None,
        "CPU seconds a page": read["cpu_seconds"] / max(1, pages), "peak memory, MB": read["peak_mb"],
    }  # fmt: skip


def _f1(counts: list[int]) -> float | None:
    """From pairs found, read and true; None where nothing was read."""
    return 2 * counts[0] / (counts[1] + counts[2]) if counts[1] else None


def scan_rows(directory: Path) -> dict[str, dict[str, float]]:
    """OCR of the pages with labelled tables, by reader."""
    results: dict[str, list[dict[str, Any]]] = {}
    for source, page in pages_with_tables(directory):
        print(f"{source.stem} page {page}", file=sys.stderr, flush=True)
        for name, result in measure(source, page, dpi=200, turn=0, baseline=True).items():
            results.setdefault(name, []).append(result)
    return {name: summary(rows) for name, rows in results.items()}


def print_table(columns: dict[str, dict[str, float | None]]) -> None:
    """A Markdown table, a reader a column."""
    print("| measure | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for row in next(iter(columns.values())):
        cells = ["-" if value is None else f"{value:.0f}" if value >= 20 else f"{value:.3f}"
                 for value in (column[row] for column in columns.values())]  # fmt: skip
        print(f"| {row} | " + " | ".join(cells) + " |")


def main() -> None:
    """Run the readers and print what they reach."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--prototypes", type=Path, help="directory of heads2.py and booktab_frozen_v2.py")
    parser.add_argument("--layout", type=Path, help="Python of an environment with pymupdf-layout")
    parser.add_argument("--unruled", default="CMS-", help="beginning of the names of papers without full rules")
    parser.add_argument("--scans", action="store_true", help="OCR beside Tesseract alone as well")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    directory = arguments.directory.resolve()
    module = [sys.executable, "-m", "benchmarks.extraction.readers"]
    commands = {"expbench": [*module, "expbench", str(directory)], "PyMuPDF": [*module, "pymupdf", str(directory)]}
    if arguments.prototypes:
        commands["prototypes"] = [*module, "rules", str(directory), "--prototypes", str(arguments.prototypes.resolve())]
    if arguments.layout:  # the environment's own path: resolved, it would be the Python that it was made from
        script = Path(__file__).with_name("layout_model.py")
        commands["layout model"] = [str(arguments.layout.absolute()), str(script), str(directory)]
    scorer = load_scorer(directory / "score.py")
    columns = {
        name: score_reader(run_reader(command), directory, scorer, arguments.unruled)
        for name, command in commands.items()
    }
    scans = scan_rows(directory) if arguments.scans else None
    if arguments.json:
        print(json.dumps({"readers": columns, "scans": scans}, indent=1))
        return
    print_table(columns)
    if scans:
        print()
        print_table(dict(scans))


if __name__ == "__main__":
    main()
