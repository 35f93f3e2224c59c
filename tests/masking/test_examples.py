"""The worked example with a near-duplicate, a notebook and results, masked for each of its experiments."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from masking.apply import apply_mask
from masking.leaks import scan_leaks
from masking.numbers import BLOCKING
from masking.plan import plan_mask
from masking.texts import pdf_text
from pipeline.task import Band, Condition, Expected, NumericClaim, Task, Verdict
from tests.masking import builders, independent

EXAMPLES = Path(__file__).resolve().parents[2] / "datasets" / "examples"

# experiment -> example, masked scripts, old versions of them in the repository
EXPERIMENTS: dict[str, tuple[str, tuple[tuple[str, str], ...], tuple[str, ...]]] = {
    "benchmark": (
        "agreement-weights",
        (("experiments/run_benchmark.py", "entry"), ("scripts/benchmark.sh", "wrapper")),
        ("legacy/benchmark_v1.py",),
    ),
    "ablation": (
        "agreement-weights", (("experiments/run_ablation.py", "entry"), ("scripts/ablation.sh", "wrapper")), ()),
    "noise": (
        "agreement-weights", (("experiments/run_noise_sweep.py", "entry"), ("configs/noise_sweep.yaml", "config")), ()),
    "size": (
        "agreement-weights", (("experiments/run_sample_size.py", "entry"), ("configs/sample_size.yaml", "config")), ()),
    "main": ("neighbour-conformal", (("experiments/main_table.py", "entry"), ("configs/main.yaml", "config")), ()),
    "nsc ablation": (
        "neighbour-conformal", (("experiments/ablate.py", "entry"),), ("backup/ablate_old.py",)),
    "calibration": ("neighbour-conformal", (("experiments/calibration_size.py", "entry"),), ()),
    "shift": (
        "neighbour-conformal", (("experiments/covariate_shift.py", "entry"), ("scripts/shift.sh", "wrapper")), ()),
}  # fmt: skip


def claim(number: int, entry: dict[str, Any]) -> NumericClaim:
    text = str(entry["text"])
    value = float(text)
    column = str(entry["origin"]["column"])
    return NumericClaim(
        id=f"c{number}", metric=column.replace("_", " "), value=value, text=text, decimals=len(text.partition(".")[2]),
        unit="%" if "accuracy" in column or "coverage" in column else None,
        conditions=tuple(Condition(name=name, value=str(word)) for name, word in entry["origin"]["row"].items()),
        band=Band(low=value, high=value, source="printed precision"),
    )  # fmt: skip


def task(name: str) -> Task:
    example, sources, _ = EXPERIMENTS[name]
    entries = json.loads((EXAMPLES / example / "numbers.json").read_text())["numbers"]
    prefix = name.rsplit(maxsplit=1)[-1] + "."
    stated = [entry for entry in entries if entry["id"].startswith(prefix) and "row" in entry["origin"]]
    assert stated
    base = builders.task(sources=sources)
    claims = tuple(claim(number, entry) for number, entry in enumerate(stated, start=1))
    return base.evolve(truth=base.truth.evolve(expected=Expected(text="", claims=claims)))


@pytest.mark.parametrize("name", sorted(EXPERIMENTS))
def test_masked_without_a_leak_and_without_losing_the_library(name: str, tmp_path: Path) -> None:
    example, sources, old = EXPERIMENTS[name]
    directory = EXAMPLES / example
    if not (directory / "numbers.json").is_file():
        pytest.skip("the worked example is not there")
    original = tmp_path / "original"
    shutil.copytree(directory / "repository", original)
    shutil.copyfile(directory / "paper.pdf", original / "paper.pdf")
    snapshot = builders.snapshot(original)
    pdf = (directory / "paper.pdf").read_bytes()
    documents = [builders.document(pdf_text(pdf)).evolve(sha256=builders.sha256(pdf))]
    probed = task(name)
    plan = plan_mask(probed, snapshot, documents=documents)
    masked = apply_mask(snapshot, plan, tmp_path / "masked").path
    report = scan_leaks(
        masked, snapshot=snapshot, plan=plan, task=probed, documents=documents, pdf=directory / "paper.pdf"
    )
    assert report.verdict is Verdict.PASS, [hit for hit in report.hits if hit.score >= BLOCKING]

    gone = {item.path for item in plan.paths if item.action == "removed"}
    assert {"README.md", "paper.pdf", *(path for path, _ in sources), *old} <= gone
    library = {file.path for file in snapshot.files if file.path.startswith(("caw/", "nsc/"))}
    assert library
    assert not gone & library
    mine = {path for path, _ in sources}
    same = [other for home, other, _ in EXPERIMENTS.values() if home == example]
    assert not gone & ({path for scripts in same for path, _ in scripts} - mine)

    # Independently of our code: the claimed numbers, as printed, are in no file and no object.
    needles = [c.text.encode() for c in probed.truth.expected.claims if len(c.text) > 3]
    assert independent.holders(masked, needles) == []
    assert len(independent.commits(masked)) == 1
    assert independent.unreachable(masked) == b""
