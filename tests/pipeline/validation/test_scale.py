"""Smoke scale and seeds: what makes a run smaller without touching its code, and what a small run may claim."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.sandbox.base import CommandResult, Image, Limits, RunResult, RunSpec
from pipeline.task import Resources, Usage, ValidationReport, Verdict
from pipeline.validation import validate_with_refinement
from pipeline.validation.plan import execution_plan, make_plan
from pipeline.validation.rerun import validate
from pipeline.validation.scale import _smaller, smoke_scale
from tests.pipeline.validation.support import IMAGE, CopySandbox, claim, make_snapshot, make_task

PARSER = "import argparse\np = argparse.ArgumentParser()\n"
SCRIPT = (
    PARSER
    + "p.add_argument('--epochs', type=int, default=100)\np.add_argument('--n-samples', type=int, default=5000)\n"
    "p.add_argument('--batch-size', type=int, default=64)\np.add_argument('--save-every-epochs', type=int, default=10)\n"
    "p.add_argument('--lr', type=float, default=0.1)\np.add_argument('--seed', type=int)\na = p.parse_args()\n"
    "total = sum(0.875 for _ in range(a.epochs)) / a.epochs\n"
    "print(f'accuracy = {total:.3f} epochs={a.epochs} samples={a.n_samples} seed={a.seed}')\n"
)
SLOW = SCRIPT + "import sys\nif a.epochs > 1:\n    sys.exit('too slow')\n"
CLAIMS = [claim("c1", "accuracy", "0.875")]


def smoke(tmp_path: Path, files: dict[str, str], *argv: str) -> tuple[list[str], dict[str, str]]:
    """The words that smoke scale adds, and what they change."""
    found = smoke_scale(make_snapshot(tmp_path, files), [Usage(argv=argv)])
    added = list(found.commands[0].argv[len(argv) :]) if found.commands else []
    return added, {item.name: f"{item.full} -> {item.smoke}" for item in found.changes}


def test_counts_of_an_argument_parser_become_small(tmp_path: Path) -> None:
    added, changed = smoke(tmp_path, {"run.py": SCRIPT}, "python", "run.py", "--lr", "0.5")
    assert added == ["--epochs", "1", "--n-samples", "64"]
    assert changed == {"epochs": "100 -> 1", "n_samples": "5000 -> 64"}


def test_the_command_s_own_value_counts_and_only_downwards(tmp_path: Path) -> None:
    added, changed = smoke(tmp_path, {"run.py": SCRIPT}, "python", "run.py", "--epochs=7", "--n-samples", "10")
    assert added == ["--epochs", "1"]
    assert changed == {"epochs": "7 -> 1"}


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ("p.add_argument('--debug', action='store_true')", ["--debug"]),
        ("p.add_argument('--fast', action='store_true')", []),
        ("p.add_argument('--no-smoke', dest='smoke', action='store_false')", []),
        ("p.add_argument('--max-steps', type=int, default=-1)", ["--max-steps", "20"]),
        ("p.add_argument('--steps', type=int)", []),
        ("p.add_argument('--warmup-steps', type=int, default=500)", []),
        ("p.add_argument('--step-size', type=int, default=30)", []),
        ("p.add_argument('--train-size', type=int, default=10000)", ["--train-size", "64"]),
        ("p.add_argument('--n_folds', type=int, default=10)", ["--n_folds", "2"]),
        ("p.add_argument('--fold', type=int, default=3)", []),
        ("p.add_argument('--seeds', type=int, nargs='+', default=[3, 4, 5])", ["--seeds", "3"]),
        ("p.add_argument('--total_timesteps', type=int, default=1000000)", ["--total_timesteps", "1000"]),
        ("p.add_argument('--n-estimators', type=int, default=500)", ["--n-estimators", "20"]),
        ("p.add_argument('--hidden', type=int, default=512)", []),
        ("p.add_argument('--epochs', type=int, default=epochs())", []),
    ],
)  # fmt: skip
def test_only_what_counts_the_work_is_touched(declared: str, expected: list[str], tmp_path: Path) -> None:
    assert smoke(tmp_path, {"run.py": PARSER + declared}, "python", "run.py")[0] == expected


def test_click_absl_hydra_and_parsers_in_other_files(tmp_path: Path) -> None:
    files = {
        "c.py": "import click\n@click.command()\n@click.option('--trials', default=30)\ndef main(trials): ...\nmain()\n",
        "b.py": "from absl import flags\nflags.DEFINE_integer('num_iterations', 1000, 'h')\n",
        "h.py": "import hydra\n@hydra.main(config_path='conf', config_name='config')\ndef main(cfg): ...\nmain()\n",
        "conf/config.yaml": "optim:\n  epochs: 200  # as in the paper\n  lr: 0.1\n",
        "far.py": "from options import get\nargs = get()\n",
        "options.py": "import argparse\ndef get():\n    p = argparse.ArgumentParser()\n"
        "    p.add_argument('--epochs', default=9)\n    return p.parse_args()\n",
    }
    snapshot = make_snapshot(tmp_path, files)

    def added(*argv: str) -> tuple[str, ...]:
        found = smoke_scale(snapshot, [Usage(argv=argv)])
        return found.commands[0].argv[len(argv) :]

    assert added("python", "c.py") == ("--trials", "1")
    assert added("python", "b.py") == ("--num_iterations=20",)
    assert added("python", "far.py") == ("--epochs", "1")
    found = smoke_scale(snapshot, [Usage(argv=("python", "h.py", "optim.epochs=50"))])
    assert found.commands[0].argv[-1] == "optim.epochs=1"
    assert found.files[0].text == "optim:\n  epochs: 1  # as in the paper\n  lr: 0.1\n"
    assert {item.where for item in found.changes} == {"the command", "conf/config.yaml:2"}


@pytest.mark.parametrize(("argv", "why"), [
    (("bash", "run.sh"), "starts no Python file"),
    (("python", "plain.py"), "no option or configuration counts"),
])  # fmt: skip
def test_without_such_a_setting_there_is_no_smoke_scale(argv: tuple[str, ...], why: str, tmp_path: Path) -> None:
    found = smoke_scale(make_snapshot(tmp_path, {"plain.py": "EPOCHS = 9\n", "run.sh": "ls\n"}), [Usage(argv=argv)])
    assert found.commands == ()
    assert why in found.why_not


@given(name=st.from_regex(r"[a-zA-Z_-]{1,24}", fullmatch=True), value=st.integers(0, 10**7))
def test_a_value_never_grows(name: str, value: int) -> None:
    smaller = _smaller(name, str(value))
    assert smaller is None or int(smaller) < value


# --- seeds -----------------------------------------------------------------------------------------------------------


def plan_of(tmp_path: Path, script: str, *argv: str):
    snapshot = make_snapshot(tmp_path, {"run.py": script})
    task = make_task(snapshot, [["python", "run.py", *argv]], ["run.py"], CLAIMS)
    return execution_plan(task, snapshot), [
        make_plan(task, snapshot, limits=Limits(), repeat=repeat).commands[0].argv[2 + len(argv) :] for repeat in (1, 2)
    ]


def test_a_seed_that_nothing_sets_is_set_for_each_repeat(tmp_path: Path) -> None:
    plan, added = plan_of(tmp_path, SCRIPT)
    assert added == [("--seed", "0"), ("--seed", "1")]
    assert [(seed.value, seed.source) for seed in plan.seeds] == [("0, 1, ...", "set")]


@pytest.mark.parametrize(("line", "argv", "seed"), [
    ("p.add_argument('--seed', type=int, default=7)", (), ("7", "default")),
    ("p.add_argument('--seed', type=int)", ("--seed", "3"), ("3", "command")),
    ("import random\nrandom.seed(5)", (), ("5", "code")),
    ("SEED = 4", (), ("4", "code")),
    ("s = p.add_subparsers()\nq = s.add_parser('a')\nq.add_argument('--seed', type=int)", (), None),
])  # fmt: skip
def test_seeds_that_are_fixed_are_recorded_and_left(
    line: str, argv: tuple[str, ...], seed: tuple[str, str] | None, tmp_path: Path
) -> None:
    plan, added = plan_of(tmp_path, PARSER + line, *argv)
    assert added == [(), ()]
    assert [(item.value, item.source) for item in plan.seeds] == ([seed] if seed else [])


# --- what a run at either scale says ---------------------------------------------------------------------------------


def attempt(tmp_path: Path, script: str, scale: str, sandbox: CopySandbox | None = None, **fields) -> ValidationReport:
    snapshot = make_snapshot(tmp_path / "tree", {"run.py": script})
    task = make_task(snapshot, [["python", "run.py"]], ["run.py"], CLAIMS, **fields)
    return validate(
        task, snapshot=snapshot, image=IMAGE, sandbox=sandbox or CopySandbox(), repeats=2, out=tmp_path / "validation",
        owner="test", limits=Limits(), scale=scale,
    )  # fmt: skip


class Limited(CopySandbox):
    """Full scale hits a limit, or finds no GPU."""

    def __init__(self, failure: FailureKind) -> None:
        super().__init__()
        self.failure = failure

    def run(self, image: Image, tree: Path, spec: RunSpec, *, out: Path, owner: str) -> RunResult:
        if spec.gpus is not None:
            raise ExpbenchError(self.failure, "run", "no GPU is here", consequence="c", next_step="n")
        if "--epochs" not in spec.commands[0].argv:
            self.runs += 1
            return RunResult(
                commands=(CommandResult(exit_code=None, failure=self.failure),), failure=self.failure, message="limit"
            )
        return super().run(image, tree, spec, out=out, owner=owner)


def test_a_smoke_run_confirms_nothing(tmp_path: Path) -> None:
    report = attempt(tmp_path, SCRIPT, "smoke")
    assert (report.verdict, report.outcome, report.scale) == (Verdict.UNKNOWN, "smoke: runs", "smoke")
    assert report.reason.startswith("smoke: runs")
    assert report.matches == ()
    assert [(run.scale, run.log) for run in report.runs] == [("smoke", "validation/smoke")]
    assert "epochs=1 samples=64" in (tmp_path / "validation/smoke/0.stdout").read_text()
    assert report.notes[1] == "Smoke scale: epochs 100 -> 1, n_samples 5000 -> 64"


def test_a_small_run_that_prints_the_paper_s_numbers_is_noted(tmp_path: Path) -> None:
    report = attempt(tmp_path, SCRIPT, "smoke")
    assert report.verdict is Verdict.UNKNOWN
    assert any("what was made smaller does not decide them" in problem.message for problem in report.problems)
    other = attempt(tmp_path / "b", SCRIPT.replace("/ a.epochs", "/ 100"), "smoke")
    assert other.outcome == "smoke: runs"
    assert not any("what was made smaller" in problem.message for problem in other.problems)


@pytest.mark.parametrize("failure", [FailureKind.RUN_TIMEOUT, FailureKind.RUN_OUT_OF_MEMORY, FailureKind.RUN_DISK_FULL])
def test_auto_falls_to_smoke_at_a_limit_and_says_so(failure: FailureKind, tmp_path: Path) -> None:
    report = attempt(tmp_path, SCRIPT, "auto", Limited(failure))
    assert (report.outcome, report.verdict) == ("smoke: runs", Verdict.UNKNOWN)
    assert report.scale_reason.startswith("full scale: the run hit a limit")
    assert [(run.scale, run.failure) for run in report.runs] == [("full", failure.value), ("smoke", None)]


def test_auto_falls_to_smoke_without_a_gpu_and_full_refuses(tmp_path: Path) -> None:
    needs = {"resources": Resources(gpus=2)}
    report = attempt(tmp_path, SCRIPT, "auto", Limited(FailureKind.GPU_UNAVAILABLE), **needs)
    assert report.outcome == "smoke: runs"
    assert "no GPU is here" in report.scale_reason
    with pytest.raises(ExpbenchError, match="no GPU is here"):
        attempt(tmp_path / "again", SCRIPT, "full", Limited(FailureKind.GPU_UNAVAILABLE), **needs)


def test_auto_stays_at_full_scale_where_that_fits(tmp_path: Path) -> None:
    report = attempt(tmp_path, SCRIPT, "auto")
    assert (report.scale, report.outcome, len(report.runs)) == ("full", "reproduced", 2)


def test_a_smoke_run_that_fails_may_do_so_for_its_size(tmp_path: Path) -> None:
    report = attempt(tmp_path, SCRIPT + "assert a.n_samples > 100\n", "smoke")
    assert (report.verdict, report.outcome) == (Verdict.UNKNOWN, "smoke: does not run")
    assert "may be its small size" in report.reason


def test_without_a_smaller_variant_nothing_is_run(tmp_path: Path) -> None:
    sandbox = CopySandbox()
    report = attempt(tmp_path, "print('accuracy = 0.875')\n", "smoke", sandbox)
    assert (sandbox.runs, report.outcome, report.verdict) == (0, "unknown", Verdict.UNKNOWN)
    assert "there is no smaller variant" in report.reason
    limited = attempt(tmp_path / "b", "print(1)\n", "auto", Limited(FailureKind.RUN_TIMEOUT))
    assert "no smoke scale to fall back to" in limited.scale_reason


def test_refinement_ends_with_the_first_chain_that_runs_small(tmp_path: Path) -> None:
    tried: list[int] = []

    def run(candidate: str, number: int, before: ValidationReport | None) -> ValidationReport:
        tried.append(number)
        return attempt(tmp_path / str(number), candidate, "smoke")

    refined = validate_with_refinement([SCRIPT + "raise SystemExit(3)\n", SCRIPT, SCRIPT], run, rounds=3)
    assert refined is not None
    assert tried == [1, 2]
    assert refined.best.number == 2


def test_files_that_the_code_names_and_a_run_does_not_write_are_told(tmp_path: Path) -> None:
    report = attempt(tmp_path, "if 0:\n    open('out/table.csv', 'w')\nprint('accuracy = 0.875')\n", "full")
    assert report.plan is not None
    assert report.plan.outputs == ("out/table.csv",)
    assert any(problem.where == "out/table.csv" for problem in report.problems)
