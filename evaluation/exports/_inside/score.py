"""Verifier of an exported task of the histogram and table families: calls `expbench score`, and says the rewards.

A program of its own, for Python 3.11 and later. With `expbench.zip` beside it, `expbench` is run from there, and its
packages have to be installed for the interpreter that runs this; without, the command `expbench` (or what the
environment variable EXPBENCH names) has to be on the path. Rewards are numbers from 0 to 1, `reward` is the benchmark's
own pass for histograms, a distance of at most 0.33 (Collider-Bench 4.1). Of tables files alone never confirm the
callback (PRBench 4.1): theirs is the lower bound of the weighted sum, and 0 once the callback is missed. A scorer that
fails gives no reward, which is not the reward 0.

Non-goals: integrity. Whether the values were computed cannot be told from files; for that, evaluate with expbench.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any


def main() -> int:
    """Score; writes `reward.json` and `details.json`, prints the details."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--score", type=Path, required=True, help="score.json of the task.")
    parser.add_argument("--submission", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    settings = json.loads(arguments.score.read_text(encoding="utf-8"))
    report, why = score(settings, arguments.score.resolve().parent, arguments.submission.resolve())
    if report is None:
        sys.stderr.write(f"the scorer did not run: {why}\n")
        return 1
    details = {"rewards": rewards(settings["family"], report), "report": report}
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "reward.json").write_text(json.dumps(details["rewards"]), encoding="utf-8")
    (arguments.out / "details.json").write_text(json.dumps(details, indent=1), encoding="utf-8")
    sys.stdout.write(json.dumps(details, indent=1) + "\n")
    return 0


def score(settings: dict[str, Any], home: Path, submission: Path) -> tuple[dict[str, Any] | None, str]:
    """The report of `expbench score`, or None and what went wrong."""
    packed = Path(__file__).resolve().with_name("expbench.zip")
    environment = dict(os.environ)
    if packed.is_file():
        command = [sys.executable, "-P", "-m", "flows.cli"]
        environment["PYTHONPATH"] = str(packed)
    else:
        command = shlex.split(os.environ.get("EXPBENCH", "expbench"))
    command += ["score", settings["family"], "--submission", str(submission), "--json"]
    for name, path in settings["arguments"].items():
        command += [name, str(home / path)]
    try:
        done = subprocess.run(
            command, env=environment, cwd=home, capture_output=True, text=True, timeout=settings["seconds"], check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, f"{error}. Install expbench, or name its command in EXPBENCH"
    if done.returncode != 0:
        return None, f"it ended with {done.returncode}: {done.stderr[-2000:]}"
    report: dict[str, Any] = json.loads(done.stdout)
    return report, ""


def rewards(family: str, report: dict[str, Any]) -> dict[str, float]:
    """Numbers of a report by name; what the report does not know is left out."""
    if family == "histogram":
        closeness = max(0.0, 1.0 - report["distance"])
        return {"reward": float(report["accurate"]), "closeness": closeness, "valid": float(report["valid"])}
    metrics = report["metrics"]
    # of files alone the callback is never confirmed, only missed: the reward is what is sure of the weighted sum
    found = {"reward": 0.0 if metrics["end_to_end_callback"] == 0 else metrics["overall_low"]}
    found["overall"] = metrics["overall"]
    found["data_accuracy"] = metrics.get("data_accuracy")
    return {name: float(value) for name, value in found.items() if value is not None}


if __name__ == "__main__":
    sys.exit(main())
