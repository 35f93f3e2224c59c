"""The witness in real containers: a program that tries to leave it out, and the worked example's experiment."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pipeline.progress import SilentReporter
from pipeline.sandbox import BuildSpec, Command, Image, Limits, RunSpec
from pipeline.sandbox.docker import DockerSandbox
from pipeline.witness.launch import with_witness
from pipeline.witness.read import read_witness
from pipeline.witness.records import Perturbation, WitnessReport

pytestmark = pytest.mark.docker

EXAMPLE = Path(__file__).parents[3] / "datasets" / "examples" / "agreement-weights" / "repository"
KEPT = (("caw/data.py", "sample"),)


def run(
    image: Image, tree: Path, out: Path, *argv: str, perturbation: Perturbation = Perturbation.NONE
) -> tuple[str, WitnessReport]:
    spec = RunSpec(commands=(Command(argv=argv),), limits=Limits(wall_s=300, cpus=1, memory_mb=1024, disk_mb=128))
    spec = with_witness(
        spec, perturbation=perturbation, amount=104729, python="3.11", scratch=out / "scratch", permute=KEPT
    )
    result = DockerSandbox().run(image, tree, spec, out=out, owner="tests-witness")
    assert result.failure is None, (out / "0.stderr").read_text()
    report = read_witness(out, perturbation=perturbation, amount=104729)
    assert report.problems == ()
    return (out / "0.stdout").read_text(), report


def test_a_program_that_sets_its_own_paths_is_watched_all_the_same(tmp_path: Path) -> None:
    image = DockerSandbox().build(BuildSpec(), log=tmp_path / "log", owner="tests-witness", reporter=SilentReporter())
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "main.py").write_text("import sys\ndef f(x): return x\nprint(f(len(sys.argv)))\n")
    (tree / "reproduce.sh").write_text(
        "export PYTHONPATH=/tmp PYTHONNOUSERSITE=1\npython -I main.py 1\n/usr/bin/python3 main.py 1 2\n"
        "env -i /opt/venv/bin/python main.py\ncd /tmp && cp /work/main.py copy.py && python copy.py 1 2 3\n"
    )
    text, report = run(image, tree, tmp_path / "out", "bash", "reproduce.sh")
    assert text.split() == ["2", "3", "1", "4"]
    calls = {item.path: set(dict(item.arguments)["x"]) for item in report.functions if item.name == "f"}
    assert calls == {"/tmp/copy.py": {"4"}, "main.py": {"1", "2", "3"}}  # of all processes together
    assert [process.facts for process in report.processes if process.facts] == []


def accuracies(text: str) -> list[float]:
    rows = [line.split() for line in text.splitlines() if line.startswith("0.")]
    return [float(value) for row in rows for value in row[1:]]


def test_the_numbers_of_an_experiment_answer(tmp_path: Path) -> None:
    image = DockerSandbox().build(
        BuildSpec(packages=("PyYAML==6.0.1", "numpy==1.26.4")), log=tmp_path / "log", owner="tests-witness",
        reporter=SilentReporter(),
    )  # fmt: skip
    found: dict[Perturbation, tuple[list[float], WitnessReport]] = {}
    for perturbation in Perturbation:
        tree = tmp_path / perturbation / "tree"
        shutil.copytree(EXAMPLE, tree)
        text, report = run(
            image, tree, tmp_path / perturbation / "out", "python", "experiments/run_noise_sweep.py",
            perturbation=perturbation,
        )  # fmt: skip
        found[perturbation] = (accuracies(text), report)
    plain, report = found[Perturbation.NONE]
    assert (len(plain), plain[:4], report.touched) == (20, [95.0, 93.9, 94.8, 94.5], 0)
    (process,) = report.processes
    assert process.facts == ()
    assert process.seeds[:3] == ("[2019, 0]", "[2019, 0, 1]", "[2019, 1]")
    assert process.writes == ("results/noise_sweep.csv",)
    by_name = {item.name: item for item in process.functions}
    assert (by_name["fit_ridge"].path, by_name["fit_ridge"].calls) == ("caw/ridge.py", 350)
    assert dict(by_name["corrupt"].arguments)["rate"] == ("0.0", "0.1", "0.2", "0.3", "0.4")
    assert by_name["draw"].callers == ("caw/evaluation.py:57",)
    moved = found[Perturbation.MOVED][0]
    differences = [abs(a - b) for a, b in zip(plain, moved, strict=True)]
    assert sum(difference > 0 for difference in differences) >= 18
    assert max(differences) < 8
    for perturbation in (Perturbation.MUTED, Perturbation.PERMUTED):
        values, told = found[perturbation]
        assert told.touched > 0
        assert max(abs(value - 50) for value in values) < 3
