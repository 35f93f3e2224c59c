"""Speed of masking beside plain git, and of the leak scan, on one tree.

    python -m benchmarks.masking.run [--megabytes 50] [--repeats 3]

The tree holds Python files of the running interpreter's packages, generated number tables, a zip archive and a masked
script. Its peer for `apply` is what people do by hand: `git clone --no-hardlinks`, `git rm`, `git commit`; that keeps
the history, which is why it is not enough. The leak scan is compared with `grep -rF` for one string over the same tree,
which is the least that any search must do. Each figure is the median of the repeats.
"""

from __future__ import annotations

import argparse
import random
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


def timed(action: Callable[[Path], object], scratch: Path, repeats: int) -> float:
    """Median seconds; every repeat gets a fresh directory."""
    seconds: list[float] = []
    for number in range(repeats):
        place = scratch / f"run{number}"
        start = time.perf_counter()
        action(place)
        seconds.append(time.perf_counter() - start)
        shutil.rmtree(place, ignore_errors=True)
    return statistics.median(seconds)


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
        start = time.perf_counter()
        plan = plan_mask(task, snapshot)
        plan_s = time.perf_counter() - start
        fresh_s = timed(
            lambda place: apply_mask(open_snapshot(scratch / "repository", into=place / "s"), plan, place / "m"),
            scratch,
            options.repeats,
        )
        apply_s = timed(lambda place: apply_mask(snapshot, plan, place), scratch, options.repeats)
        hand_s = timed(lambda place: by_hand(scratch / "repository", place), scratch, options.repeats)
        masked = apply_mask(snapshot, plan, scratch / "masked").path
        scan_s = timed(lambda _: scan_leaks(masked, snapshot=snapshot, plan=plan, task=task), scratch, options.repeats)
        grep = ["grep", "-rFc", "contaminated_sample", "--exclude-dir=.git", str(masked)]
        grep_s = timed(lambda _: subprocess.run(grep, check=False, capture_output=True), scratch, options.repeats)
        report = scan_leaks(masked, snapshot=snapshot, plan=plan, task=task)
    blocking = sum(hit.score >= 0.7 for hit in report.hits)
    sys.stdout.write(
        f"tree: {len(snapshot.files)} files, {size:.1f} MB\n"
        f"hits: {blocking} blocking, {len(report.hits) - blocking} others\n"
        f"plan                           {plan_s:8.2f} s  {size / plan_s:8.1f} MB/s\n"
        f"workspace: export and apply    {fresh_s:8.2f} s  {size / fresh_s:8.1f} MB/s\n"
        f"workspace: apply               {apply_s:8.2f} s  {size / apply_s:8.1f} MB/s\n"
        f"git clone + git rm + commit    {hand_s:8.2f} s  {size / hand_s:8.1f} MB/s\n"
        f"leak scan, all checks          {scan_s:8.2f} s  {size / scan_s:8.1f} MB/s\n"
        f"grep -rF, one string           {grep_s:8.2f} s  {size / grep_s:8.1f} MB/s\n"
    )


if __name__ == "__main__":
    main()
