"""What PyMuPDF's layout model makes of papers, in the shape of `benchmarks.extraction.readers`; one JSON object.

    python benchmarks/extraction/layout_model.py DIRECTORY

Runs in an environment of its own, because the model comes with another major version of PyMuPDF than this program
uses: `pip install pymupdf pymupdf-layout pymupdf4llm`. OCR is off. Non-goal: scoring.
"""

import contextlib
import json
import re
import resource
import sys
import time
from pathlib import Path
from typing import Any

import pymupdf.layout  # noqa: F401  (switches the model on)
import pymupdf4llm

LABEL = re.compile(r"\s*(Table|Tab\.|Figure|Fig\.)\s*([A-Z]?\.?\d+|[IVXLC]+)\b", re.IGNORECASE)


def text_of(box: dict[str, Any]) -> str:
    """The lines of a box."""
    return "\n".join("".join(span["text"] for span in line["spans"]) for line in box.get("textlines") or [])


def read(pdf: Path) -> dict[str, Any]:
    """Headings, captions, tables and text of one paper, in the model's order."""
    with contextlib.redirect_stdout(sys.stderr):  # notices of the library
        pages = json.loads(pymupdf4llm.to_json(str(pdf), use_ocr=False))["pages"]
    found: dict[str, Any] = {"headings": [], "captions": [], "tables": [], "text": "", "pages": len(pages), "title": ""}
    for page in pages:
        number = page["page_number"]
        for box in page["boxes"]:
            text, kind = text_of(box), box["boxclass"]
            found["text"] += text + "\n"
            if kind in ("section-header", "title"):
                heading = {"text": " ".join(text.split()), "page": number, "level": box["header_level"] or 1}
                found["headings"].append(heading)
                found["title"] = found["title"] or (heading["text"] if kind == "title" else "")
            elif kind == "table" and box["table"]:
                grid = [[cell or "" for cell in row] for row in box["table"]["extract"]]
                found["tables"].append({"page": number, "grid": grid})
            match = LABEL.match(text)
            if match and kind == "caption":
                found["captions"].append({"label": f"{match[1]} {match[2]}", "page": number})
    return found


def main() -> None:
    """Read every PDF of a directory."""
    began = time.process_time()
    papers = {pdf.stem: read(pdf) for pdf in sorted(Path(sys.argv[1]).glob("*.pdf"))}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"papers": papers, "cpu_seconds": time.process_time() - began, "peak_mb": peak}))


if __name__ == "__main__":
    main()
