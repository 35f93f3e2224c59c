"""Scores reading of scans: pages with a text layer are rendered to images, read by OCR, and compared with that layer.

    python -m benchmarks.extraction.scans PAPER.pdf:3,5,8 ... [--dpi 200] [--turn 90] [--json]

Two measures per page. *Numbers recall*: of the numbers in the text layer (two digits or a decimal point and more), the
share that the document holds, with multiplicity, anywhere in its passages, headings, captions, tables and figure texts.
*Character error rate*: edit distance over length, of the running words alone (three and more letters) in reading order,
since formulas have no one-line truth. Non-goal: real scanners' noise; a page image is as clean as a scan can be.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Final

import pymupdf

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from extractors.document import read_document
from extractors.pdf import quiet_mupdf
from pipeline.paper import Document

_NUMBER: Final = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)+(?![\w])|(?<![\w.])\d{2,}(?![\w])")
_WORD: Final = re.compile(r"[A-Za-z]{3,}")


def scan(source: Path, page: int, target: Path, *, dpi: int, turn: int) -> None:
    """One page (from 1) as an image-only PDF; `turn` degrees clockwise as a careless person feeds a scanner."""
    with quiet_mupdf(), pymupdf.open(source) as pdf, pymupdf.open() as out:
        sheet = pdf[page - 1]
        pixels = sheet.get_pixmap(matrix=pymupdf.Matrix(dpi / 72, dpi / 72).prerotate(turn), alpha=False)
        new = out.new_page(width=pixels.width * 72 / dpi, height=pixels.height * 72 / dpi)
        new.insert_image(new.rect, pixmap=pixels)
        out.save(target)


def everything(document: Document) -> str:
    """All text of a document, tables cell by cell."""
    parts = [section.title for section in document.sections]
    parts += [passage.text for passage in document.passages]
    parts += [caption.text for caption in document.captions]
    parts += [cell for table in document.tables for row in table.grid for cell in row]
    parts += [text for figure in document.figures for text in figure.texts]
    return "\n".join([document.title, *parts])


def numbers(text: str) -> Counter[str]:
    """The numbers of a text with their counts."""
    return Counter(_NUMBER.findall(text.replace("\u2212", "-")))


def words(document: Document) -> str:
    """The running words of all passages in order."""
    return " ".join(_WORD.findall(" ".join(passage.text for passage in document.passages))).lower()


def distance(one: str, other: str) -> int:
    """Levenshtein distance."""
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        last, row[0] = row[0], i
        for j, b in enumerate(other, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (a != b))
    return row[-1]


def measure(source: Path, page: int, *, dpi: int, turn: int) -> dict[str, float]:
    """The measures of one page, and the CPU seconds of this process and wall seconds it took."""
    with tempfile.TemporaryDirectory() as scratch:
        single, image = Path(scratch) / "page.pdf", Path(scratch) / "scan.pdf"
        with pymupdf.open(source) as pdf, pymupdf.open() as out:
            out.insert_pdf(pdf, from_page=page - 1, to_page=page - 1)
            out.save(single)
        scan(source, page, image, dpi=dpi, turn=turn)
        truth = read_document(single, ocr="off")
        began = time.monotonic()
        read = read_document(image)
        wall = time.monotonic() - began
    with pymupdf.open(source) as pdf:
        wanted = numbers(pdf[page - 1].get_text())
    found = wanted & numbers(everything(read))
    expected, got = words(truth), words(read)
    return {
        "numbers": sum(wanted.values()), "numbers_found": sum(found.values()), "characters": len(expected),
        "errors": distance(expected, got), "seconds": wall, "missing": " ".join((wanted - found).elements()),  # type: ignore[dict-item]
    }  # fmt: skip


def main() -> None:
    """Score the pages named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="+", help="PAPER.pdf:3,5,8")
    parser.add_argument("--dpi", type=int, default=200)
    parser.add_argument("--turn", type=int, default=0, choices=(0, 90, 180, 270))
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    results = []
    for spec in arguments.pages:
        name, _, chosen = spec.rpartition(":")
        for page in map(int, chosen.split(",")):
            result = measure(Path(name), page, dpi=arguments.dpi, turn=arguments.turn)
            results.append(result)
            if not arguments.json:
                print(f"{Path(name).stem} {page}: {result}", flush=True)
    total = {
        key: sum(result[key] for result in results)
        for key in ("numbers", "numbers_found", "characters", "errors", "seconds")
    }
    summary = {
        "pages": len(results), "numbers_recall": total["numbers_found"] / max(1, total["numbers"]),
        "character_error_rate": total["errors"] / max(1, total["characters"]),
        "seconds_per_page": total["seconds"] / max(1, len(results)),
    }  # fmt: skip
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
