"""Scores the extractor against hand-labelled papers: tables, headings, captions, speed and memory.

    python benchmarks/extraction/score.py DIRECTORY [--json]

DIRECTORY holds `*.pdf`, `truth/*.json` and the scorer `score.py` (cell F1, exact grids, link, path, headings,
captions). Non-goal: defining the measures; the directory's own scorer does.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import resource
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from extractors.document import read_document
from pipeline.paper import Document


def load_scorer(path: Path) -> ModuleType:
    """The measures that belong to the truth."""
    spec = importlib.util.spec_from_file_location("extraction_scorer", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path}: there is no scorer here; give the directory that holds the truth")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def truth_of(directory: Path, name: str) -> dict[str, Any]:
    """Headings, captions and tables of one paper, as far as they were labelled."""
    truth: dict[str, Any] = {}
    for kind in ("outlines", "captions"):
        data = json.loads((directory / f"{kind}.json").read_text("utf-8"))
        if name in data:
            truth["headings" if kind == "outlines" else "captions"] = data[name]
    for path in (directory / f"{name}.tables.json", directory / f"{name}.json"):
        if path.exists():
            truth.update(json.loads(path.read_text("utf-8")))
    return truth


def score(document: Document, truth: dict[str, Any], scorer: ModuleType) -> dict[str, Any]:
    """The measures of one paper."""
    result: dict[str, Any] = {}
    if "tables" in truth:
        read = [{"page": t.page, "grid": [list(row) for row in t.grid]} for t in document.tables]
        result["tables"] = scorer.score_tables(read, truth["tables"])[0]
    if "headings" in truth:
        heads = [
            {"text": f"{s.number or ''} {s.title}".strip(), "page": s.page, "level": s.level} for s in document.sections
        ]
        result["headings"] = scorer.score_heads(heads, truth["headings"], document.title)
    if "captions" in truth:
        read = [{"label": caption.label, "page": caption.page} for caption in document.captions]
        result["captions"] = scorer.score_caps(read, truth["captions"])
    return result


def main() -> None:
    """Score every labelled paper of a directory."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    scorer = load_scorer(arguments.directory / "score.py")
    tables: list[Any] = []
    lines: list[str] = []
    heads = [0, 0, 0]
    pages, seconds = 0, 0.0
    for pdf in sorted(arguments.directory.glob("*.pdf")):
        truth = truth_of(arguments.directory / "truth", pdf.stem)
        began = time.process_time()
        document = read_document(pdf, ocr="off")
        seconds += time.process_time() - began
        pages += len(document.pages)
        result = score(document, truth, scorer)
        line = pdf.stem
        if "headings" in result:
            head = result["headings"]
            heads = [total + head[key] for total, key in zip(heads, ("tp", "np", "nt"), strict=True)]
            line += f" | headings F1 {head['F']:.3f} levels {head['level']:.3f}"
        if "captions" in result:
            line += f" | captions F1 {result['captions'][2]:.3f}"
        if "tables" in result:
            tables += result["tables"]
            found = scorer.summ(result["tables"])
            line += f" | tables {found['found']}/{found['n']} exact {found['exact']} path {found['path']:.3f}"
        lines.append(line)
    total = scorer.summ(tables)
    summary = {
        "tables": {key: total[key] for key in ("n", "found", "cell", "exact", "linked", "path")},
        "headings_f1": 2 * heads[0] / max(1, heads[1] + heads[2]),
        "cpu_seconds_per_page": seconds / max(1, pages),
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    print(json.dumps(summary, indent=1) if arguments.json else "\n".join([*lines, json.dumps(summary)]))


if __name__ == "__main__":
    main()
