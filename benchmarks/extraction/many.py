"""Memory over many papers in one process: reads the PDFs of a directory again and again and tells the resident size.

    python -m benchmarks.extraction.many DIRECTORY [--papers 200]

Non-goal: speed (see `score`).
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from itertools import cycle, islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from extractors.document import read_document
from extractors.keyless import draft_tasks
from pipeline.errors import ExpbenchError


def resident_mb() -> float:
    """Resident memory of this process now (Linux)."""
    fields = Path("/proc/self/statm").read_text("ascii").split()
    return int(fields[1]) * 4096 / 2**20


def main() -> None:
    """Read and draft each paper, and print what the process holds afterwards."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--papers", type=int, default=200)
    arguments = parser.parse_args()
    held: list[float] = []
    pages, began = 0, time.process_time()
    for pdf in islice(cycle(sorted(arguments.directory.glob("*.pdf"))), arguments.papers):
        try:
            document = read_document(pdf, ocr="off")
            draft_tasks(document)
            pages += len(document.pages)
        except ExpbenchError as error:
            print(f"{pdf.name}: {error}")
        document = None
        gc.collect()
        held.append(resident_mb())
    quarter = max(1, len(held) // 4)
    print(json.dumps({
        "papers": len(held), "pages": pages, "cpu_seconds_per_page": (time.process_time() - began) / max(1, pages),
        "resident_mb_by_quarter": [round(sum(held[i : i + quarter]) / quarter) for i in range(0, quarter * 4, quarter)],
        "highest_mb": round(max(held)),
    }))  # fmt: skip


if __name__ == "__main__":
    main()
