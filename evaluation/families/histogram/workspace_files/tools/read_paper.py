"""Client of `bin/read-paper`: asks the reader beside the container and prints or writes what it answers.

Runs in the agent's container with its Python (3.9 or later, standard library only). The request and the answer are one
line of JSON each, over the unix socket that the environment variable names.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import re
import socket
import sys
from pathlib import Path

SOCKET = "EXPBENCH_READ_PAPER"


def ask(request: dict[str, object]) -> dict[str, object]:
    """One request, one answer."""
    path = os.environ.get(SOCKET, "/harness/paper.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(path)
        connection.sendall(json.dumps(request).encode() + b"\n")
        with connection.makefile("rb") as stream:
            line = stream.readline()
    if not line:
        raise ValueError("the reader gave no answer")
    answer = json.loads(line)
    if not isinstance(answer, dict):
        raise ValueError("the reader's answer is no object")
    return answer


def main(arguments: list[str]) -> int:
    """Parse, ask, print."""
    parser = argparse.ArgumentParser(prog="read-paper", description="Text and figures of the paper.")
    parser.add_argument("pdf", help="the paper, e.g. papers/PAPER.pdf")
    parser.add_argument("--pages", default="", help="e.g. 3-5 or 1,4-6")
    parser.add_argument("--figures", action="store_true", help="write figures as PNG instead of printing text")
    parser.add_argument("--output-dir", default="", help="where figures go; default: figures/ beside the paper")
    chosen = parser.parse_args(arguments)
    pdf = Path(chosen.pdf)
    if not pdf.is_file():
        sys.stderr.write(f"read-paper: there is no file {chosen.pdf}\n")
        return 1
    try:
        answer = ask({"paper": pdf.name, "pages": chosen.pages, "figures": chosen.figures})
    except (OSError, ValueError) as error:
        sys.stderr.write(f"read-paper: the reader cannot be reached: {error}\n")
        return 1
    if answer.get("error"):
        sys.stderr.write(f"read-paper: {answer['error']}\n")
        return 1
    sys.stdout.write(str(answer.get("text", "")))
    target = Path(chosen.output_dir) if chosen.output_dir else pdf.parent / "figures"
    for figure in answer.get("figures", []):
        target.mkdir(parents=True, exist_ok=True)
        path = target / re.sub(r"[^A-Za-z0-9._-]", "_", figure["name"])
        path.write_bytes(base64.b64decode(figure["png"]))
        sys.stdout.write(f"{path}  page {figure['page']}  {figure['caption']}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
