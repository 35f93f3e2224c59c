"""Reading of scans, beside Tesseract alone in the same run: pages with a text layer rendered to images and read.

    python -m benchmarks.extraction.scans DIRECTORY [--json]                 every page with a labelled table
    python -m benchmarks.extraction.scans PAPER.pdf:3,5,8 [--turn 90]        pages of one's choice

DIRECTORY as for `score`. The baseline is `pytesseract.image_to_string` (its default segmentation) of the same image.
Measures, each for both:

* *numbers*: of the numbers in the text layer (two digits or a decimal point and more), the share that was read, with
  multiplicity, anywhere. Page numbers and numbers in figures count.
* *running words*: character error rate (edit distance over length) of the words of running text (three and more
  letters) in reading order; headings, tables, captions, figures and furniture are no running text. Truth is what the
  extractor reads from the text layer. Tesseract does not tell running text from the rest, so it is given the true
  places: its words inside the boxes of the true passages. It need not find them, the extractor must.
* *whole page*: character error rate of all words of the page, formulas and figures included, in any order: equal words
  are paired first, then the most alike; what is left over on either side counts in full. Truth is MuPDF's text.
* *in order*: character error rate of the whole page as one string, white space aside, each against the text layer in
  its own order (Tesseract: MuPDF's natural order; the extractor: what it makes of the text layer).

Non-goal: real scanners' noise; a page image is as clean as a scan can be.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import resource
import sys
import tempfile
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pymupdf
import pytesseract
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from extractors.document import read_document
from extractors.pdf import quiet_mupdf
from pipeline.paper import Document

_NUMBER: Final = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)+(?![\w])|(?<![\w.])\d{2,}(?![\w])")
_WORD: Final = re.compile(r"[A-Za-z]{3,}")
_MEASURES: Final = ("running", "page", "ordered")


class Reading(NamedTuple):
    """What one reader made of a page."""

    everything: str
    running: str
    """Words of running text in order."""
    ordered: str
    """The page as one string."""


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
    parts = [section.title if section.number is None else f"{section.number} {section.title}"
             for section in document.sections]  # fmt: skip
    parts += [passage.text for passage in document.passages]
    parts += [caption.text for caption in document.captions]
    parts += [cell for table in document.tables for row in table.grid for cell in row]
    parts += [text for figure in document.figures for text in figure.texts]
    return "\n".join(parts)


def numbers(text: str) -> Counter[str]:
    """The numbers of a text with their counts."""
    return Counter(_NUMBER.findall(text.replace("\u2212", "-")))


def words(document: Document) -> str:
    """The running words of all passages in order."""
    return running(" ".join(passage.text for passage in document.passages))


def running(text: str) -> str:
    """The words of three and more letters."""
    return " ".join(_WORD.findall(text)).lower()


def plain(text: str) -> str:
    """Compatible characters alike, hyphens at line ends undone."""
    text = unicodedata.normalize("NFKC", text).translate(str.maketrans("−–—‐’‘“”", "----''\"\""))
    return re.sub(r"(?<=[a-z])-\s*\n\s*(?=[a-z])", "", text)


def distance(one: str, other: str) -> int:
    """Levenshtein distance, a row of the table at a time."""
    codes = np.array([ord(character) for character in other], dtype=np.int64)
    steps = np.arange(len(other) + 1)
    row = steps.copy()
    for i, character in enumerate(one, 1):
        best = np.minimum(row[1:] + 1, row[:-1] + (codes != ord(character)))
        row = np.minimum.accumulate(np.concatenate(([i], best)) - steps) + steps
    return int(row[-1])


def distance_in_any_order(wanted: str, found: str) -> int:
    """Characters to change, add and remove when words may stand anywhere: equal words are paired, then similar ones."""
    left, right = Counter(wanted.split()), Counter(found.split())
    missing, extra = sorted((left - right).elements(), key=len, reverse=True), list((right - left).elements())
    errors = 0
    for word in missing:
        near = [(distance(word, other), index) for index, other in enumerate(extra)
                if abs(len(other) - len(word)) < len(word)]  # fmt: skip
        cost, index = min(near, default=(len(word), -1))
        if cost < len(word):
            errors += cost
            extra.pop(index)
        else:
            errors += len(word)
    return errors + sum(map(len, extra))


def _cpu_seconds() -> float:
    """Of this process and of the children it has waited for."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def alone(image: Path, truth: Document, dpi: int) -> Reading:
    """Tesseract by itself; running words are those that it has inside the true passages."""
    with pymupdf.open(image) as pdf:
        picture = Image.open(io.BytesIO(pdf[0].get_pixmap(dpi=dpi, alpha=False).tobytes("png")))
    text = pytesseract.image_to_string(picture)
    data = pytesseract.image_to_data(picture, output_type=pytesseract.Output.DICT)
    boxes = [box for passage in truth.passages for _, box in passage.boxes]
    inside: list[str] = []
    for word, left, top, width, height in zip(
        *(data[key] for key in ("text", "left", "top", "width", "height")), strict=True
    ):
        x, y = (left + width / 2) * 72 / dpi, (top + height / 2) * 72 / dpi
        if word.strip() and any(box.x0 - 2 <= x <= box.x1 + 2 and box.y0 - 2 <= y <= box.y1 + 2 for box in boxes):
            inside.append(word)
    joined = re.sub(r"(?<=[a-z])- (?=[a-z])", "", " ".join(inside))
    return Reading(plain(text), running(joined), "".join(plain(text).split()))


def measure(source: Path, page: int, *, dpi: int, turn: int, baseline: bool) -> dict[str, dict[str, Any]]:
    """The counts of one page by reader: `expbench` and, when it is asked for, `tesseract`."""
    with tempfile.TemporaryDirectory() as scratch:
        single, image = Path(scratch) / "page.pdf", Path(scratch) / "scan.pdf"
        with pymupdf.open(source) as pdf, pymupdf.open() as out:
            out.insert_pdf(pdf, from_page=page - 1, to_page=page - 1)
            layer = pdf[page - 1].get_text()
            out.save(single)
        scan(source, page, image, dpi=dpi, turn=turn)
        truth = read_document(single, ocr="off")
        began = _cpu_seconds()
        document = read_document(image)
        spent = {"expbench": _cpu_seconds() - began}
        readings = {"expbench": Reading(plain(everything(document)), words(document),
                                        "".join(plain(everything(document)).split()))}  # fmt: skip
        if baseline:
            began = _cpu_seconds()
            readings["tesseract"] = alone(image, truth, dpi)
            spent["tesseract"] = (_cpu_seconds() - began) / 2  # it reads the page twice: as a string and with places
    orders = {"expbench": "".join(plain(everything(truth)).split()), "tesseract": "".join(plain(layer).split())}
    return {
        name: _counts(reading, numbers(layer), words(truth), plain(layer), orders[name]) | {"seconds": spent[name]}
        for name, reading in readings.items()
    }


def _counts(reading: Reading, wanted: Counter[str], prose: str, page: str, ordered: str) -> dict[str, Any]:
    found = wanted & numbers(reading.everything)
    return {
        "numbers": sum(wanted.values()), "numbers_found": sum(found.values()),
        "missing": " ".join((wanted - found).elements()),
        "running_length": len(prose), "running_errors": distance(prose, reading.running),
        "page_length": len("".join(page.split())), "page_errors": distance_in_any_order(page, reading.everything),
        "ordered_length": len(ordered), "ordered_errors": distance(ordered, reading.ordered),
    }  # fmt: skip


def summary(results: list[dict[str, Any]]) -> dict[str, float]:
    """Shares over all characters and numbers of all pages."""
    total = {key: sum(result[key] for result in results) for key in results[0] if key != "missing"}
    result = {"numbers_recall": total["numbers_found"] / max(1, total["numbers"])}
    for name in _MEASURES:
        result[f"{name}_error_rate"] = total[f"{name}_errors"] / max(1, total[f"{name}_length"])
    return result | {"cpu_seconds_per_page": total["seconds"] / len(results)}


def pages_with_tables(directory: Path) -> list[tuple[Path, int]]:
    """The pages of labelled papers that hold a labelled table."""
    chosen = []
    for pdf in sorted(directory.glob("*.pdf")):
        for path in (directory / "truth" / f"{pdf.stem}.json", directory / "truth" / f"{pdf.stem}.tables.json"):
            if path.exists():
                tables = json.loads(path.read_text("utf-8")).get("tables", [])
                chosen += [(pdf, page) for page in sorted({table["page"] for table in tables})]
    return chosen


def main() -> None:
    """Score the pages named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="+", help="DIRECTORY, or PAPER.pdf:3,5")
    parser.add_argument("--dpi", type=int, default=200)
    parser.add_argument("--turn", type=int, default=0, choices=(0, 90, 180, 270))
    parser.add_argument("--no-baseline", action="store_true", help="without Tesseract alone")
    parser.add_argument("--json", action="store_true", help="only the summary")
    arguments = parser.parse_args()
    chosen: list[tuple[Path, int]] = []
    for spec in arguments.pages:
        if Path(spec).is_dir():
            chosen += pages_with_tables(Path(spec))
        else:
            name, _, listed = spec.rpartition(":")
            chosen += [(Path(name), int(page)) for page in listed.split(",")]
    results: dict[str, list[dict[str, Any]]] = {}
    for source, page in chosen:
        measured = measure(source, page, dpi=arguments.dpi, turn=arguments.turn, baseline=not arguments.no_baseline)
        for name, result in measured.items():
            results.setdefault(name, []).append(result)
            if not arguments.json:
                shares = ", ".join(
                    f"{key} {result[f'{key}_errors'] / max(1, result[f'{key}_length']):.3f}" for key in _MEASURES
                )
                print(f"{source.stem} {page} {name}: numbers {result['numbers_found']}/{result['numbers']}, {shares}; "
                      f"missing {result['missing']}", flush=True)  # fmt: skip
    print(json.dumps({"pages": len(chosen)} | {name: summary(rows) for name, rows in results.items()}, indent=1))


if __name__ == "__main__":
    main()
