"""The oracle: carry out a plan on the bench. `oracle.py PLAN`: `workspace`, and `calls`, each (tool, arguments)."""

from __future__ import annotations

import importlib
import json
import sys


def main(path: str) -> int:
    """Exit code: 1 when the bench refused a call."""
    with open(path, encoding="utf-8") as stream:  # noqa: PTH123 - no pathlib is needed here
        plan = json.load(stream)
    sys.path.insert(0, plan["workspace"])
    client = importlib.import_module("bench")
    answers = [client.call(tool, arguments) for tool, arguments in plan["calls"]]
    sys.stdout.write("".join(json.dumps(answer) + "\n" for answer in answers))
    return int(any("error" in answer for answer in answers))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
