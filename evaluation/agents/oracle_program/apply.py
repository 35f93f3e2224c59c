"""Apply the ground truth: restore the source scripts, write the submission, carry it out.

`apply.py PLAN`, where PLAN is the JSON that the adapter wrote: `workspace`, `original`, `restore` (paths), `response`,
`reproduce` (text), `log`. Events go to `log`, one JSON value a line.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time


def main(path: str) -> int:
    """Exit code of `reproduce.sh`."""
    began = time.monotonic()
    with open(path, encoding="utf-8") as stream:  # noqa: PTH123 - no pathlib is needed here
        plan = json.load(stream)
    os.chdir(plan["workspace"])

    def tell(kind: str, **fields: object) -> None:
        event = {"seq": 0, "at": round(time.monotonic() - began, 3), "kind": kind, **fields}
        with open(plan["log"], "a", encoding="utf-8") as log:  # noqa: PTH123
            log.write(json.dumps(event) + "\n")

    for name in plan["restore"]:
        source = os.path.join(plan["original"], name)  # noqa: PTH118
        if not os.path.isfile(source):  # noqa: PTH113
            tell("note", text=f"{name} is not in the original repository")
            continue
        os.makedirs(os.path.dirname(name) or ".", exist_ok=True)  # noqa: PTH103, PTH120
        existed = os.path.exists(name)  # noqa: PTH110
        shutil.copyfile(source, name)
        shutil.copymode(source, name)
        with open(name, encoding="utf-8", errors="replace") as restored:  # noqa: PTH123
            text = restored.read(1 << 20)
        tell("file_change", path=name, action="edited" if existed else "created", text=text)
    for name, text in (("reproduce.sh", plan["reproduce"]), ("response.json", plan["response"])):
        with open(name, "w", encoding="utf-8") as stream:  # noqa: PTH123
            stream.write(text)
        tell("file_change", path=name, action="created", text=text)
    os.chmod("reproduce.sh", 0o755)  # noqa: PTH101, S103 - it is run by others, in the agent's own workspace
    start = time.monotonic()
    done = subprocess.run(["bash", "reproduce.sh"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    output = done.stdout.decode("utf-8", "replace")
    tell(
        "command", command="bash reproduce.sh", directory=plan["workspace"], output=output[-(1 << 20) :],
        truncated=len(output) > 1 << 20, exit_code=done.returncode, duration_s=round(time.monotonic() - start, 3),
    )  # fmt: skip
    sys.stdout.write(output)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
