"""Verifier of an exported task: does the submission run again, and are its numbers those that were expected?

A program of its own, for Python 3.8 and later without any package: it is copied into exported tasks and runs in their
containers after the agent. `reproduce.sh` is run in a copy of the workspace from which the declared outputs and the
response were removed; it has to end with 0, make its outputs again, and print or write every number of the conclusion.
A number of the expected outcome is met by the one reported number whose name holds the words of all its conditions
and fewest others, when it lies in the band.

Non-goals: design (D), implementation (I) and integrity (M). For those, evaluate with expbench.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
MOST_BYTES = 16 << 20
SKIPPED = (".git", "__pycache__", ".ipynb_checkpoints")


def main() -> int:
    """Verify; writes `reward.json` and `details.json`, prints the details."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--workspace", type=Path, required=True)
    parser.add_argument("--expected", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    expected = json.loads(arguments.expected.read_text(encoding="utf-8"))
    details = verify(arguments.workspace, expected)
    arguments.out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(details["rewards"])
    (arguments.out / "reward.json").write_text(text, encoding="utf-8")
    (arguments.out / "details.json").write_text(json.dumps(details, indent=1), encoding="utf-8")
    sys.stdout.write(json.dumps(details, indent=1) + "\n")
    return 0


def verify(workspace: Path, expected: dict[str, Any]) -> dict[str, Any]:
    """Rewards and reasons for one workspace."""
    response, problem = read_response(workspace / "response.json")
    numbers = response["numbers"]
    executed, why = execute(workspace, response["outputs"], numbers, expected["seconds"])
    claims = [judge(claim, numbers) for claim in expected["claims"]]
    met = sum(claim["met"] for claim in claims)
    share = met / len(claims) if claims else 0.0
    passed = executed and bool(claims) and met == len(claims)
    return {
        "rewards": {"reward": float(passed), "execution": float(executed), "conclusion": round(share, 6)},
        "problem": problem,
        "execution": why,
        "claims": claims,
    }


def read_response(path: Path) -> tuple[dict[str, Any], str]:
    """The numbers and outputs of `response.json`, and what is wrong with it."""
    empty: dict[str, Any] = {"numbers": {}, "outputs": []}
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return empty, f"response.json cannot be read: {error}"
    if not isinstance(value, dict):
        return empty, "response.json is no object"
    conclusion = value.get("conclusion")
    stated = conclusion.get("numbers") if isinstance(conclusion, dict) else None
    numbers = {
        str(name): float(number)
        for name, number in (stated.items() if isinstance(stated, dict) else ())
        if isinstance(number, (int, float)) and not isinstance(number, bool) and math.isfinite(number)
    }
    outputs = value.get("outputs")
    listed = [str(name) for name in outputs] if isinstance(outputs, list) else []
    inside = [name for name in listed if not name.startswith("/") and ".." not in Path(name).parts]
    return {"numbers": numbers, "outputs": inside}, ""


# --- execution


def execute(workspace: Path, outputs: list[str], numbers: dict[str, float], seconds: int) -> tuple[bool, str]:
    """(did it run again and give its numbers, what happened)."""
    if not (workspace / "reproduce.sh").is_file() or not numbers:
        return False, "there is no reproduce.sh, or the conclusion states no number"
    with tempfile.TemporaryDirectory(prefix="verify-") as scratch:
        copy = Path(scratch) / "workspace"
        shutil.copytree(str(workspace), str(copy), symlinks=True, ignore=shutil.ignore_patterns(*SKIPPED))
        for name in [*outputs, "response.json"]:
            remove(copy / name)
        text, why = run(copy, seconds)
        missing = [name for name in outputs if not (copy / name).exists()]
        if not why and missing:
            why = f"it did not make {', '.join(missing)} again"
        if why:
            return False, why
        found = read_numbers(text + "\n" + "\n".join(read_text(copy / name) for name in outputs))
    lost = [name for name, value in sorted(numbers.items()) if not occurs(value, found)]
    if lost:
        return False, f"it did not give {len(lost)} number(s) of the conclusion, e.g. {lost[0]}"
    return True, f"reproduce.sh gave all {len(numbers)} number(s) of the conclusion"


def run(copy: Path, seconds: int) -> tuple[str, str]:
    """What `reproduce.sh` printed, and how it failed; what it left running is ended with it."""
    with tempfile.TemporaryFile() as printed:
        process = subprocess.Popen(
            ["bash", "reproduce.sh"], cwd=str(copy), stdout=printed, stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            code = process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            code = None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        printed.seek(max(0, printed.tell() - MOST_BYTES))
        text = printed.read().decode("utf-8", "replace")
    if code is None:
        return text, f"reproduce.sh did not end within {seconds} s"
    return text, f"reproduce.sh ended with {code}: {text[-500:]}" if code else ""


def remove(path: Path) -> None:
    """Remove a file or directory that may be there; links are not followed."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        shutil.rmtree(str(path))


def read_text(path: Path) -> str:
    """The text of a file, or nothing."""
    if not path.is_file() or path.is_symlink():
        return ""
    with path.open("rb") as stream:
        return stream.read(MOST_BYTES).decode("utf-8", "replace")


def read_numbers(text: str) -> list[float]:
    """The numbers of a text, sorted."""
    return sorted({float(match.group()) for match in NUMBER.finditer(text)})


def occurs(value: float, found: list[float]) -> bool:
    """Is there a number that is `value` at the digits that `value` is stated with, as it is or in percent?"""
    text = repr(value)
    decimals = len(text.partition(".")[2]) if "e" not in text and not text.endswith(".0") else 0
    slack = 0.5 * 10.0**-decimals if decimals else 1e-9 + abs(value) * 1e-9
    for scale in (1.0, 100.0, 0.01):
        wanted, width = value * scale, slack * scale + 1e-12
        if any(abs(number - wanted) <= width for number in found):
            return True
    return False


# --- conclusion


def words(text: str) -> set[str]:
    """Words and numbers of a text in lower case."""
    return set(re.findall(r"[^\W_]+(?:\.\d+)?", text.lower()))


def judge(claim: dict[str, Any], numbers: dict[str, float]) -> dict[str, Any]:
    """The verdict on one number of the expected outcome."""
    needed: set[str] = set()
    free = words(claim["metric"])
    for name, value in claim["conditions"].items():
        needed |= words(value)
        free |= words(name)
    free |= needed
    fitting = []
    for name, value in sorted(numbers.items()):
        said = words(name)
        if needed <= said and (needed or said & words(claim["metric"])):
            fitting.append((len(said - free), -len(said & free), name, value))
    result = {"claim": claim["id"], "met": False, "reported": None, "name": None}
    if not fitting:
        return dict(result, reason="no reported number is named after its conditions")
    best = min(fitting)[:2]
    chosen = [item for item in fitting if item[:2] == best]
    if len({item[3] for item in chosen}) > 1:
        return dict(result, reason=f"{len(chosen)} reported numbers could be it")
    name, value = chosen[0][2], chosen[0][3]
    scales = (1.0, 100.0, 0.01) if claim["share"] else (1.0,)
    slack = 1e-9 * max(1.0, abs(claim["high"]))
    met = any(claim["low"] - slack <= value * scale <= claim["high"] + slack for scale in scales)
    return dict(result, met=met, reported=value, name=name, reason="in the band" if met else "outside the band")


if __name__ == "__main__":
    sys.exit(main())
