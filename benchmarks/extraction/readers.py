"""The readers that are compared, each run over a directory of papers in a process of its own; one JSON object.

    python -m benchmarks.extraction.readers NAME DIRECTORY [--prototypes DIRECTORY]

`expbench`; `pymupdf`: the library as it comes (text in natural order, `find_tables`, captions by their label at the
beginning of a text block, headings by print larger than the body or bold); `rules`: the prototypes `heads2.py`
(numbering and fonts) and `booktab_frozen_v2.py` (rules and column gaps) of a directory. For every paper: headings
(text, page, level), captions (label, page), tables (page, grid), text in reading order. Non-goal: scoring.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import re
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pymupdf

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.extraction.order import texts_of
from extractors.document import read_document

_LABEL: Final = re.compile(r"\s*(Table|Tab\.|Figure|Fig\.)\s*([A-Z]?\.?\d+|[IVXLC]+)\b(?=\s*[:.|])", re.IGNORECASE)
_BOLD: Final = 16

Paper = dict[str, Any]


def read_expbench(pdf: Path) -> Paper:
    """This program."""
    document = read_document(pdf, ocr="off")
    return {
        "headings": [
            {"text": f"{s.number or ''} {s.title}".strip(), "page": s.page, "level": s.level} for s in document.sections
        ],
        "captions": [{"label": caption.label, "page": caption.page} for caption in document.captions],
        "tables": [{"page": table.page, "grid": [list(row) for row in table.grid]} for table in document.tables],
        "text": texts_of(document), "pages": len(document.pages), "title": document.title,
    }  # fmt: skip


def read_pymupdf(pdf: Path) -> Paper:
    """The library as it comes."""
    found: Paper = {"captions": [], "tables": [], "text": "", "title": ""}
    lines: list[tuple[str, int, float, bool]] = []
    with pymupdf.open(pdf) as handle, contextlib.redirect_stdout(sys.stderr):
        found["pages"] = handle.page_count
        for page in handle:
            number = page.number + 1
            found["text"] += page.get_text() + "\n"
            for block in page.get_text("dict")["blocks"]:
                texts = ["".join(span["text"] for span in line["spans"]) for line in block.get("lines", [])]
                match = _LABEL.match(texts[0]) if texts else None
                if match:
                    found["captions"].append({"label": f"{match[1]} {match[2]}", "page": number})
                for line, text in zip(block.get("lines", []), texts, strict=True):
                    size = round(2 * max(span["size"] for span in line["spans"])) / 2
                    bold = all(span["flags"] & _BOLD for span in line["spans"] if span["text"].strip())
                    lines.append((text.strip(), number, size, bold))
            for table in page.find_tables().tables:
                grid = [[cell or "" for cell in row] for row in table.extract()]
                found["tables"].append({"page": number, "grid": grid})
    found["headings"] = _by_font(lines)
    return found


def _by_font(lines: list[tuple[str, int, float, bool]]) -> list[dict[str, Any]]:
    """Short lines larger than the body, or bold; levels by rank of size."""
    sizes: Counter[float] = Counter()
    for text, _, size, _ in lines:
        sizes[size] += len(text)
    body = sizes.most_common(1)[0][0]
    chosen = [
        (text, page, size) for text, page, size, bold in lines
        if 3 < len(text) < 100 and re.search("[A-Za-z]{3}", text) and (size > body or (bold and size >= body))
    ]  # fmt: skip
    ranks = sorted({size for _, _, size in chosen}, reverse=True)
    return [{"text": text, "page": page, "level": ranks.index(size) + 1} for text, page, size in chosen]


def rules_reader(directory: Path) -> Callable[[Path], Paper]:
    """The prototypes; the one for headings imports the one for tables as `booktab2`."""
    tables = _load(directory / "booktab_frozen_v2.py", "booktab2")
    heads = _load(directory / "heads2.py", "heads2")

    def read(pdf: Path) -> Paper:
        found = tables.extract(str(pdf))
        headed = heads.extract(str(pdf))
        with pymupdf.open(pdf) as handle:
            text, pages = "\n".join(page.get_text() for page in handle), handle.page_count
        return {
            "headings": headed["headings"], "captions": headed["captions"],
            "tables": [{"page": table["page"], "grid": table["grid"]} for table in found],
            "text": text, "pages": pages, "title": "",
        }  # fmt: skip

    return read


def _load(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.exists():
        raise SystemExit(f"{path}: there is no such prototype; give their directory with --prototypes")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Read every PDF of a directory with one reader."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=("expbench", "pymupdf", "rules"))
    parser.add_argument("directory", type=Path)
    parser.add_argument("--prototypes", type=Path, default=Path())
    arguments = parser.parse_args()
    if arguments.name == "rules":
        read = rules_reader(arguments.prototypes)
    else:
        read = {"expbench": read_expbench, "pymupdf": read_pymupdf}[arguments.name]
    began = time.process_time()
    papers = {pdf.stem: read(pdf) for pdf in sorted(arguments.directory.glob("*.pdf"))}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"papers": papers, "cpu_seconds": time.process_time() - began, "peak_mb": peak}))


if __name__ == "__main__":
    main()
