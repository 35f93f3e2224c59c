"""Reads every PDF of a directory in a child of its own with limits; tells what came of each, one JSON line a file.

One process loads the parser and forks: seventeen fresh interpreters would take most of the tests' time.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from pathlib import Path

from extractors.document import read_document
from pipeline.errors import ExpbenchError

_SECONDS = 30
_MEMORY = 3 * 1024**3


def attempt(pdf: Path) -> dict[str, object]:
    """What reading a file gives: a document in short, or the error as users see it."""
    try:
        document = read_document(pdf, ocr="off")
    except ExpbenchError as error:
        return {"error": error.kind.value, "message": str(error)}
    return {
        "pages": len(document.pages),
        "text": " ".join(passage.text for passage in document.passages) + document.title,
        "hidden": [hidden.reason for hidden in document.hidden],
        "hidden_text": " ".join(hidden.text for hidden in document.hidden),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main() -> None:
    """Fork one child per file."""
    for pdf in sorted(Path(sys.argv[1]).glob("*.pdf")):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            signal.alarm(_SECONDS)
            resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
            with os.fdopen(writing, "w", encoding="utf-8") as pipe:
                json.dump(attempt(pdf), pipe)
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading, encoding="utf-8") as pipe:
            said = pipe.read()
        _, status = os.waitpid(child, 0)
        died = os.waitstatus_to_exitcode(status)
        sys.stdout.write(json.dumps({"name": pdf.stem, "died": died, **(json.loads(said) if said else {})}) + "\n")


if __name__ == "__main__":
    main()
