"""Speed of masking beside plain git, and of the leak scan, on one tree.

    python -m benchmarks.masking.run [--megabytes 50] [--repeats 3]

The tree holds Python files of the running interpreter's packages, generated number tables, a zip archive and a masked
script. Its peer for `apply` is what people do by hand: `git clone --no-hardlinks`, `git rm`, `git commit`; that keeps
the history, which is why it is not enough. The leak scan is compared with `grep -rF` and `git grep` for one string over
the same tree, the least that any search must do, and with `detect-secrets` (a scanner of the same kind: rules over
every line, in Python) where that is installed. Each figure is the median of the repeats.
"""

from __future__ import annotations

import argparse
import random
import resource
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from masking.apply import apply_mask
from masking.leaks import scan_leaks
from masking.plan import plan_mask
from pipeline.paper import Paper
from pipeline.repository import Snapshot, open_snapshot
from pipeline.task import (
    Band,
    Condition,
    Expected,
    ExperimentTruth,
    Family,
    NumericClaim,
    Provenance,
    SourceScript,
    Status,
    Task,
)

_IDENTITY = ["-c", "user.name=a", "-c", "user.email=a@b"]


def _git(*arguments: str, directory: Path) -> None:
    subprocess.run(["git", *_IDENTITY, *arguments], cwd=directory, check=True, capture_output=True)


def make_repository(root: Path, megabytes: int) -> None:
    """A repository of about that size: half code, half data."""
    root.mkdir(parents=True)
    code = 0
    packages = Path(sysconfig.get_paths()["purelib"])
    for number, path in enumerate(sorted(packages.rglob("*.py"))):
        if code > megabytes * 500_000:
            break
        target = root / "vendor" / f"{number % 40}" / f"{number}_{path.name}"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
        code += path.stat().st_size
    generator = random.Random(0)
    (root / "data").mkdir()
    written = 0
    while written < megabytes * 500_000:
        rows = "".join(
            f"{row},{generator.gauss(0, 1):.4f},{generator.random():.3f},{generator.random():.6f}\n"
            for row in range(50_000)
        )
        (root / "data" / f"table_{written}.csv").write_text("id,value,accuracy,weight\n" + rows)
        written += len(rows)
    with zipfile.ZipFile(root / "old.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", "text\n" * 1000)
    shutil.copyfile(Path(__file__), root / "run_experiment.py")
    (root / "README.md").write_text("# Experiment\n")
    _git("init", "-q", directory=root)
    _git("add", "-A", "--force", directory=root)
    _git("commit", "-qm", "all", directory=root)


def make_task(snapshot: Snapshot) -> Task:
    """One masked script and ten claims."""
    claims = tuple(
        NumericClaim(
            id=f"c{number}", metric="accuracy", value=0.8 + number / 1000, text=f"{0.8 + number / 1000:.3f}",
            decimals=3, conditions=(Condition(name="method", value="ours"),),
            band=Band(low=0, high=1, source="printed precision"),
        )
        for number in range(1, 11)
    )  # fmt: skip
    truth = ExperimentTruth(
        sources=(SourceScript(path="run_experiment.py", role="entry", score=1.0),),
        expected=Expected(text="", claims=claims),
    )
    return Task(
        id="benchmark", family=Family.EXPERIMENT, status=Status.VALIDATED, paper=Paper(id="benchmark", title=""),
        repository=snapshot.ref, question="", method="", provenance=Provenance(engine="keyless"), truth=truth,
    )  # fmt: skip


class Taken(NamedTuple):
    """Medians; processor time counts what was started too, and holds on a machine that others use."""

    wall: float
    cpu: float


def _cpu() -> float:
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(item.ru_utime + item.ru_stime for item in usage)


def timed(action: Callable[[Path], object], scratch: Path, repeats: int) -> Taken:
    """Every repeat gets a fresh directory."""
    taken: list[tuple[float, float]] = []
    for number in range(repeats):
        place = scratch / f"run{number}"
        start, used = time.perf_counter(), _cpu()
        action(place)
        taken.append((time.perf_counter() - start, _cpu() - used))
        shutil.rmtree(place, ignore_errors=True)
    return Taken(statistics.median(wall for wall, _ in taken), statistics.median(cpu for _, cpu in taken))


def by_hand(source: Path, into: Path) -> None:
    """What apply is compared with."""
    subprocess.run(
        ["git", "clone", "-q", "--no-hardlinks", "--no-local", str(source), str(into)], check=True, capture_output=True
    )
    _git("rm", "-q", "run_experiment.py", "README.md", directory=into)
    _git("commit", "-qm", "masked", directory=into)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        make_repository(scratch / "repository", options.megabytes)
        snapshot = open_snapshot(scratch / "repository", into=scratch / "snapshot")
        task = make_task(snapshot)
        size = sum(file.size for file in snapshot.files) / 1e6
        plan = plan_mask(task, snapshot)
        rows = {"plan": timed(lambda _: plan_mask(task, snapshot), scratch, options.repeats)}
        rows["workspace: export and apply"] = timed(
            lambda place: apply_mask(open_snapshot(scratch / "repository", into=place / "s"), plan, place / "m"),
            scratch,
            options.repeats,
        )
        rows["workspace: apply"] = timed(lambda place: apply_mask(snapshot, plan, place), scratch, options.repeats)
        rows["git clone + git rm + commit"] = timed(
            lambda place: by_hand(scratch / "repository", place), scratch, options.repeats
        )
        masked = apply_mask(snapshot, plan, scratch / "masked").path
        report = scan_leaks(masked, snapshot=snapshot, plan=plan, task=task)
        rows["leak scan, all checks"] = timed(
            lambda _: scan_leaks(masked, snapshot=snapshot, plan=plan, task=task), scratch, options.repeats
        )
        for peer, argv in peers(masked).items():
            rows[peer] = timed(
                lambda _, argv=argv: subprocess.run(argv, cwd=masked, check=False, capture_output=True),
                scratch,
                options.repeats,
            )
    blocking = sum(hit.score >= 0.7 for hit in report.hits)
    lines = [
        f"tree: {len(snapshot.files)} files, {size:.1f} MB",
        f"hits: {blocking} blocking, {len(report.hits) - blocking} others",
        f"{'':<30}{'wall s':>9}{'CPU s':>9}{'MB/CPU s':>10}",
        *(f"{name:<30}{t.wall:9.2f}{t.cpu:9.2f}{size / max(t.cpu, 1e-9):10.1f}" for name, t in rows.items()),
    ]
    sys.stdout.write("\n".join(lines) + "\n")


def peers(masked: Path) -> dict[str, list[str]]:
    """Searches of the same tree by others: one string in files and in git; and a scanner, where it is installed."""
    needle = "contaminated_sample"
    found = {
        "grep -rF, one string": ["grep", "-rFc", needle, "--exclude-dir=.git", str(masked)],
        "git grep, one string": ["git", "grep", "-cF", needle, "HEAD"],
    }
    scanner = shutil.which("detect-secrets")
    if scanner is not None:
        found["detect-secrets, all files"] = [scanner, "scan", "--all-files", "--no-verify", "."]
    return found


if __name__ == "__main__":
    main()
