"""Re-execution before a sandbox in memory: what is asked of it, what each of its answers comes to, and perturbed runs."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from evaluation import execution
from evaluation.episode import EpisodeLimits, Perturbing
from evaluation.execution import execution_limits, validate_execution
from evaluation.submission import Submission
from evaluation.task import EvaluationTask
from evaluation.verdicts import Counterfactual, ExecutionReport
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.progress import Reporter
from pipeline.sandbox.base import BuildSpec, CommandResult, Image, Limits, ProducedFile, RunResult, RunSpec
from pipeline.schema import Problem, Severity
from pipeline.task import Band, Condition, Expected, ExperimentTruth, NumericClaim, Verdict
from pipeline.witness.records import FunctionRun, Perturbation, Response
from tests.evaluation.execution_support import SMALL, Workspace, make_task
from tests.evaluation.harness.doubles import Heard, failure

LEVELS = range(8)
MB8 = 8 << 20


class Seen(NamedTuple):
    """A run that was asked for."""

    kind: Perturbation | None
    spec: RunSpec
    files: dict[str, str]
    settings: dict[str, Any]
    out: Path
    tree: Path


Answer = Callable[[Seen], str | RunResult]


class Box:
    """A sandbox whose runs print what `answer` gives for them, and which can carry a witness when it is a `docker`."""

    def __init__(self, answer: Answer | str, name: str = "docker") -> None:
        self.answer: Answer = (lambda seen: answer) if isinstance(answer, str) else answer
        self.name = name
        self.runs: list[Seen] = []
        self.builds: list[tuple[BuildSpec, dict[str, Any]]] = []

    def build(self, spec: BuildSpec, **options: Any) -> Image:
        self.builds.append((spec, options))
        return Image(reference="i", digest="d", spec_digest="s")

    def run(self, image: Image, tree: Path, spec: RunSpec, *, out: Path, owner: str) -> RunResult:
        assert (image.reference, owner) == ("i", "the owner")
        settings = {}
        for mount in spec.mounts:
            if mount.source.suffix == ".pth":
                call = mount.source.read_text().split(".begin(", 1)[1].rstrip()[:-1]
                settings = json.loads(ast.literal_eval(call))
        kind = Perturbation(settings["perturbation"]) if settings else None
        files = {
            path.relative_to(tree).as_posix(): path.read_text("utf-8", "replace")
            for path in sorted(tree.rglob("*")) if path.is_file()
        }  # fmt: skip
        seen = Seen(kind, spec, files, settings, out, tree)
        self.runs.append(seen)
        out.mkdir(parents=True, exist_ok=True)
        if kind is not None:
            (out / "outbox").mkdir(exist_ok=True)
            record = {"argv": ["python"], "directory": ".", "touched": 3}
            (out / "outbox" / "1.json").write_text(json.dumps(record))
        answer = self.answer(seen)
        if isinstance(answer, RunResult):
            return answer
        (out / "0.stdout").write_text(answer)
        return RunResult(commands=(CommandResult(exit_code=0),), duration_s=10)


def ended(code: int | None = 0, **changes: Any) -> RunResult:
    return RunResult(commands=(CommandResult(exit_code=code),), **changes)


@pytest.fixture
def task(tmp_path: Path) -> EvaluationTask:
    return make_task(tmp_path, {"lib.py": "def load():\n    pass\n", "data/given.csv": table(range(20))})


@pytest.fixture
def workspace(task: EvaluationTask, tmp_path: Path) -> Workspace:
    made = Workspace(task, tmp_path)
    made.write("reproduce.sh", "echo\n")
    return made


def table(values: Any) -> str:
    return "x,y\n" + "".join(f"{value},{value}\n" for value in values)


def judge(
    task: EvaluationTask, workspace: Workspace, box: Box, submission: Submission, *, heard: Reporter | None = None,
    limits: EpisodeLimits = SMALL, **perturbing: Any,
) -> ExecutionReport:  # fmt: skip
    return validate_execution(
        task, workspace.folder, submission, sandbox=box, limits=limits, owner="the owner",  # type: ignore[arg-type]
        reporter=heard or Heard(), perturbing=Perturbing(**perturbing) if perturbing else None,
    )  # fmt: skip


# --- what is asked of the sandbox


def test_the_ceilings_are_those_that_the_agent_worked_under() -> None:
    limits = EpisodeLimits(wall_s=1, cpus=2, memory_mb=3, pids=4, disk_mb=5, output_mb=6, gpus=7)
    assert execution_limits(limits) == Limits(wall_s=1, cpus=2, memory_mb=3, pids=4, disk_mb=5, output_mb=6)


@pytest.mark.parametrize("gpus", [0, 1, 2])
def test_the_script_is_run_once_in_the_patched_tree_within_the_limits(
    task: EvaluationTask, workspace: Workspace, gpus: int
) -> None:
    workspace.write("new.py", "print(1)\n")
    box, heard = Box("n = 12.5\n", "process"), Heard()
    limits = SMALL.evolve(gpus=gpus)
    report = judge(task, workspace, box, workspace.submit({"n": 12.5}), heard=heard, limits=limits)
    assert report.verdict is Verdict.PASS
    [seen] = box.runs
    assert [(command.argv, command.directory) for command in seen.spec.commands] == [(("bash", "reproduce.sh"), ".")]
    assert seen.spec.limits == execution_limits(SMALL)
    assert (None if seen.spec.gpus is None else seen.spec.gpus.count) == (gpus or None)
    assert {"new.py", "reproduce.sh", "lib.py"} <= set(seen.files)
    assert seen.out == workspace.folder.root / "execution"
    assert "**/__pycache__/*" in seen.spec.drop
    [(_, options)] = box.builds
    assert (options["log"], options["owner"]) == (seen.out / "build.log", "the owner")
    assert options["reporter"] is heard
    assert heard.steps == [f"{task.id}: fresh checkout and patch", f"{task.id}: bash reproduce.sh"]


def test_what_an_earlier_re_execution_left_is_gone(task: EvaluationTask, workspace: Workspace) -> None:
    old = workspace.folder.root / "execution" / "old"
    old.parent.mkdir(parents=True)
    old.write_text("x")
    judge(task, workspace, Box("n = 12.5\n"), workspace.submit({"n": 12.5}))
    assert not old.exists()


def test_a_report_says_how_it_ran(task: EvaluationTask, workspace: Workspace) -> None:
    report = judge(task, workspace, Box("n = 12.5\n", "process"), workspace.submit({"n": 12.5}))
    assert (report.applied, report.exit_code, report.failure, report.log, report.duration_s) == (
        True, 0, None, "execution", 10,
    )  # fmt: skip
    assert report.reason == "re-executed: 0 output(s) produced, 1 number(s) found"
    assert (report.witness, report.counterfactuals) == (None, ())
    [problem] = [item for item in report.problems if item.where == "sandbox"]
    assert (problem.severity, problem.component) == (Severity.INFO, "evaluation.execution")
    assert "isolates less" in problem.message
    report = judge(task, workspace, Box("n = 12.5\n"), workspace.submit({"n": 12.5}))
    assert not [item for item in report.problems if item.where == "sandbox"]


# --- before anything is run


@pytest.mark.parametrize(
    ("changes", "reason"),
    [({"blocked": "no GPU"}, "no GPU"), ({"masked_repository": None}, "the masked repository is not at hand")],
)
def test_a_task_that_is_not_at_hand_is_unknown(
    task: EvaluationTask, workspace: Workspace, changes: Any, reason: str
) -> None:
    box = Box("")
    report = judge(task.evolve(**changes), workspace, box, workspace.submit({"n": 1.0}))
    assert (report.verdict, report.reason, report.failure, box.runs) == (Verdict.UNKNOWN, reason, None, [])


def test_without_a_script_it_fails_and_without_the_patch_nothing_is_known(
    task: EvaluationTask, workspace: Workspace
) -> None:
    box = Box("")
    report = judge(task, workspace, box, workspace.submit(reproduce=False))
    assert (report.verdict, report.reason) == (Verdict.FAIL, "no reproduce.sh was handed in")
    submission = workspace.submit()
    (workspace.folder.submission / "patch.diff").unlink()
    report = judge(task, workspace, box, submission)
    assert (report.verdict, report.failure) == (Verdict.UNKNOWN, "record_invalid")
    assert report.reason == "the stored patch is not the one that was handed in"
    assert box.runs == []


def test_nothing_changed_and_no_patch_is_a_run_of_the_repository_as_it_is(
    task: EvaluationTask, workspace: Workspace
) -> None:
    """The repository brings its `reproduce.sh` along, or the harness kept it beside a patch that it did not fit in."""
    kept = workspace.folder.submission / "reproduce.sh"
    kept.parent.mkdir(parents=True)
    kept.write_text("echo kept\n")
    submission = workspace.submit({"n": 12.5}).evolve(patch_sha256="", reproduce=True)
    (workspace.folder.submission / "patch.diff").unlink()
    box = Box("n = 12.5\n")
    assert judge(task, workspace, box, submission).verdict is Verdict.PASS
    assert box.runs[0].files["reproduce.sh"] == "echo kept\n"


def test_the_script_of_the_patch_goes_before_the_one_that_was_kept(task: EvaluationTask, workspace: Workspace) -> None:
    box, submission = Box("n = 12.5\n"), workspace.submit({"n": 12.5})
    (workspace.folder.submission / "reproduce.sh").write_text("echo kept\n")
    judge(task, workspace, box, submission)
    assert box.runs[0].files["reproduce.sh"] == "echo\n"


def test_a_script_that_is_nowhere_is_a_defect_of_the_record(task: EvaluationTask, workspace: Workspace) -> None:
    (workspace.root / "reproduce.sh").unlink()
    workspace.write("other", "x")
    submission = workspace.submit({"n": 1.0}).evolve(reproduce=True)
    box = Box("")
    report = judge(task, workspace, box, submission)
    assert (report.verdict, report.failure, box.runs) == (Verdict.UNKNOWN, "record_invalid", [])
    assert report.reason.startswith(f"{task.id}: reproduce.sh: ")


def test_a_patch_that_does_not_apply_is_our_defect(task: EvaluationTask, workspace: Workspace) -> None:
    workspace.submit()
    patch = b"--- a/nothing.py\n+++ b/nothing.py\n@@ -1 +1 @@\n-a\n+b\n"
    (workspace.folder.submission / "patch.diff").write_bytes(patch)
    box = Box("")
    submission = Submission(reproduce=True, patch_sha256=hashlib.sha256(patch).hexdigest())
    report = judge(task, workspace, box, submission)
    assert (report.verdict, report.failure, box.runs) == (Verdict.UNKNOWN, "internal", [])
    assert report.reason.startswith("the patch does not apply to the masked commit: ")
    assert "nothing.py" in report.reason


# --- how it ended


@pytest.mark.parametrize(
    ("kind", "verdict"),
    [(FailureKind.RUN_FAILED, Verdict.FAIL), (FailureKind.RUN_TIMEOUT, Verdict.FAIL), (FailureKind.RUN_OUT_OF_MEMORY, Verdict.FAIL),
     (FailureKind.SANDBOX_BROKEN, Verdict.UNKNOWN), (FailureKind.DISK_FULL, Verdict.UNKNOWN)],
)  # fmt: skip
def test_a_failure_counts_where_it_is_the_submissions_own(
    task: EvaluationTask, workspace: Workspace, kind: FailureKind, verdict: Verdict
) -> None:
    box = Box(lambda seen: ended(3, failure=kind))
    report = judge(task, workspace, box, workspace.submit({"n": 1.0}))
    assert (report.verdict, report.failure, report.exit_code) == (verdict, kind.value, 3)
    assert report.reason == "reproduce.sh ended with exit code 3"
    assert report.not_perturbed == "it does not run again as it is"


@pytest.mark.parametrize(
    ("out", "err", "said"),
    [("", "", ""), ("a\nlast\n", "", "last"), ("o\n", "a\ne\n\n", "e"), ("o\n", " \n", "o"),
     ("", "x" * 300, "x" * 200), ("", "first\n" + "y" * 200, "y" * 200)],
)  # fmt: skip
def test_the_reason_of_a_failure_quotes_its_last_line(
    task: EvaluationTask, workspace: Workspace, out: str, err: str, said: str
) -> None:
    def answer(seen: Seen) -> RunResult:
        (seen.out / "0.stdout").write_text(out)
        (seen.out / "0.stderr").write_text(err)
        return ended(1, failure=FailureKind.RUN_FAILED)

    report = judge(task, workspace, Box(answer), workspace.submit({"n": 1.0}))
    assert report.reason == "reproduce.sh ended with exit code 1" + (f"; it said: `{said}`" if said else "")


def test_the_reason_of_a_failure_says_what_met_which_limit_and_what_was_left_out(
    task: EvaluationTask, workspace: Workspace
) -> None:
    box = Box(lambda seen: ended(None, failure=FailureKind.RUN_PROCESS_LIMIT, message="64 processes"))
    submission = workspace.submit({"n": 1.0}).evolve(truncated=("a", "b"))
    assert judge(task, workspace, box, submission).reason == (
        "reproduce.sh: run_process_limit; 64 processes; 2 file(s) were left out of the patch because of their size"
    )
    nothing = Box(lambda seen: RunResult(commands=(), failure=FailureKind.RUN_DISK_FULL))
    report = judge(task, workspace, nothing, workspace.submit({"n": 1.0}))
    assert (report.reason, report.exit_code) == ("reproduce.sh: run_disk_full", None)


def test_outputs_that_were_not_made_are_counted_and_named_up_to_five(
    task: EvaluationTask, workspace: Workspace
) -> None:
    names = tuple(f"out{n}.csv" for n in range(7))

    def answer(seen: Seen) -> RunResult:
        return ended(produced=(ProducedFile(path="out6.csv", size=1, sha256="s"),))

    report = judge(task, workspace, Box(answer), workspace.submit({"n": 1.0}, names))
    assert report.verdict is Verdict.FAIL
    assert report.reason == ("6 of 7 declared output(s) not produced: out0.csv, out1.csv, out2.csv, out3.csv, out4.csv")
    assert report.outputs == (*((name, False) for name in names[:6]), ("out6.csv", True))


def test_numbers_that_do_not_occur_are_counted_and_named_up_to_five(task: EvaluationTask, workspace: Workspace) -> None:
    numbers = {f"n{k}": 10.5 + k for k in range(7)}
    report = judge(task, workspace, Box("n6 = 16.5\n"), workspace.submit(numbers))
    assert report.verdict is Verdict.FAIL
    assert report.reason == (
        "6 of 7 number(s) of the conclusion do not occur in what it printed or wrote: "
        "n0 = 10.5, n1 = 11.5, n2 = 12.5, n3 = 13.5, n4 = 14.5"
    )


def test_outputs_alone_and_numbers_alone_show_that_something_was_run(
    task: EvaluationTask, workspace: Workspace
) -> None:
    made = Box(lambda seen: ended(produced=(ProducedFile(path="a.csv", size=1, sha256="s"),)))
    assert judge(task, workspace, made, workspace.submit({}, ("a.csv",))).verdict is Verdict.PASS
    assert judge(task, workspace, Box("n = 12.5"), workspace.submit({"n": 12.5})).verdict is Verdict.PASS
    report = judge(task, workspace, Box("n = 12.5"), workspace.submit())
    assert report.verdict is Verdict.FAIL
    assert "nothing shows that an experiment was run" in report.reason
    nothing = workspace.submit().evolve(response=None)
    assert judge(task, workspace, Box("n = 12.5"), nothing).verdict is Verdict.FAIL


@pytest.mark.parametrize(
    ("result", "verdict"),
    [
        (ended(produced=(ProducedFile(path="a.bin", size=MB8, sha256="s"),)), Verdict.FAIL),
        (ended(produced=(ProducedFile(path="a.bin", size=MB8 + 1, sha256="s"),)), Verdict.UNKNOWN),
        (RunResult(commands=(CommandResult(exit_code=0, stdout_bytes=MB8),)), Verdict.FAIL),
        (RunResult(commands=(CommandResult(exit_code=0, stdout_bytes=MB8 + 1),)), Verdict.UNKNOWN),
        (RunResult(commands=(CommandResult(exit_code=0, stderr_bytes=MB8 + 1),)), Verdict.UNKNOWN),
        (ended(problems=(Problem(component="c", where="w", message="m", severity=Severity.ERROR),)), Verdict.UNKNOWN),
        (ended(problems=(Problem(component="c", where="w", message="m", severity=Severity.WARNING),)), Verdict.FAIL),
    ],
)  # fmt: skip
def test_a_number_that_is_missing_where_not_all_could_be_read_is_unknown(
    task: EvaluationTask, workspace: Workspace, result: RunResult, verdict: Verdict
) -> None:
    report = judge(task, workspace, Box(lambda seen: result), workspace.submit({"n": 12.5}))
    assert report.verdict is verdict
    assert report.reason.endswith("but not all of it could be read") == (verdict is Verdict.UNKNOWN)
    assert report.numbers[0].verdict is verdict


def test_more_numbers_than_are_read_leave_a_missing_one_unknown(task: EvaluationTask, workspace: Workspace) -> None:
    report = judge(task, workspace, Box("7.25\n" * 60_001, "process"), workspace.submit({"n": 12.5}))
    assert report.verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("over", [0, 1])
def test_what_is_too_large_to_be_read_is_not_kept_and_its_digest_is(
    task: EvaluationTask, workspace: Workspace, over: int
) -> None:
    def answer(seen: Seen) -> RunResult:
        (seen.out / "files").mkdir()
        (seen.out / "files" / "model.bin").write_bytes(b"x")
        return ended(produced=(ProducedFile(path="model.bin", size=MB8 + over, sha256="SHA"),))

    report = judge(task, workspace, Box(answer), workspace.submit({}, ("model.bin",)))
    assert report.outputs == (("model.bin", True),)
    assert (workspace.folder.root / "execution" / "files" / "model.bin").exists() == (not over)
    said = [(item.message, item.severity) for item in report.problems if item.where == "model.bin"]
    message = f"produced ({MB8 + 1} bytes, sha256 SHA); too large to be kept"
    assert said == ([(message, Severity.INFO)] if over else [])


def test_what_the_sandbox_had_to_say_is_said_once(task: EvaluationTask, workspace: Workspace) -> None:
    said = Problem(component="sandbox.copy", where="w", message="m")
    workspace.write("results/kept.csv", "a\n12.5\n")

    def answer(seen: Seen) -> RunResult:
        (seen.out / "0.stdout").write_text("n = 12.5\n" if len(box.runs) > 1 else "")
        return ended(problems=(said,))

    box = Box(answer)
    report = judge(task, workspace, box, workspace.submit({"n": 12.5}))
    assert len(box.runs) == 2
    assert report.problems.count(said) == 1


# --- shipped files that hold what the run does not show


def test_shipped_files_that_hold_missing_numbers_are_taken_away_and_it_runs_again(
    task: EvaluationTask, workspace: Workspace
) -> None:
    for n in range(4):
        workspace.write(f"results/r{n}.csv", f"a\n{10.25 + n}\n")
    workspace.write("results/other.csv", "a\n99.75\n")
    box = Box("m = 99.75\n")
    report = judge(task, workspace, box, workspace.submit({f"n{n}": 10.25 + n for n in range(4)} | {"m": 99.75}))
    first, second = box.runs
    assert {name for name in first.files if name.startswith("results/")} - set(second.files) == {
        f"results/r{n}.csv" for n in range(4)
    }
    assert "results/other.csv" in second.files
    assert report.verdict is Verdict.FAIL
    assert report.reason.endswith(
        "; results/r0.csv, results/r1.csv, results/r2.csv of the patch hold(s) missing numbers and was deleted before "
        "this run"
    )
    assert "data/given.csv" in second.files


def test_a_result_that_is_written_again_passes_without_a_word(task: EvaluationTask, workspace: Workspace) -> None:
    workspace.write("results/r.csv", "a\n10.25\n")
    box = Box(lambda seen: "" if "results/r.csv" in seen.files else "a = 10.25\n")
    report = judge(task, workspace, box, workspace.submit({"n": 10.25}))
    assert (report.verdict, len(box.runs)) == (Verdict.PASS, 2)
    assert report.reason == "re-executed: 0 output(s) produced, 1 number(s) found"


def test_a_second_run_that_the_machinery_lost_says_nothing_of_shipped_files(
    task: EvaluationTask, workspace: Workspace
) -> None:
    workspace.write("results/r.csv", "a\n10.25\n")
    broken = ended(None, failure=FailureKind.SANDBOX_BROKEN)
    box = Box(lambda seen: "" if "results/r.csv" in seen.files else broken)
    report = judge(task, workspace, box, workspace.submit({"n": 10.25}))
    assert (report.verdict, report.reason) == (Verdict.UNKNOWN, "reproduce.sh: sandbox_broken")


def test_numbers_of_a_run_that_failed_are_not_looked_for_in_shipped_files(
    task: EvaluationTask, workspace: Workspace
) -> None:
    workspace.write("results/r.csv", "a\n10.25\n")
    box = Box(lambda seen: ended(1, failure=FailureKind.RUN_FAILED))
    report = judge(task, workspace, box, workspace.submit({"n": 10.25}))
    assert (len(box.runs), report.reason) == (1, "reproduce.sh ended with exit code 1")


def test_a_shipped_file_is_taken_away_for_missing_numbers_only(task: EvaluationTask, workspace: Workspace) -> None:
    """It may be what the run reads: where all numbers came out there is nothing to find out."""
    workspace.write("results/r.csv", "a\n10.25\n")
    box = Box("n = 10.25\n")
    assert judge(task, workspace, box, workspace.submit({"n": 10.25})).verdict is Verdict.PASS
    assert len(box.runs) == 1


# --- the machinery


class Broken(Box):
    """Fails so often before it runs."""

    def __init__(self, *errors: ExpbenchError) -> None:
        super().__init__("n = 12.5\n")
        self.errors, self.tried = list(errors), 0

    def run(self, *given: Any, **options: Any) -> RunResult:
        self.tried += 1
        if self.errors:
            raise self.errors.pop(0)
        return super().run(*given, **options)


@pytest.mark.parametrize(
    ("kinds", "tried", "found"),
    [
        ([FailureKind.SANDBOX_BROKEN], 2, None), ([FailureKind.NETWORK] * 2, 3, None),
        ([FailureKind.NETWORK] * 3, 3, "network"), ([FailureKind.DISK_FULL], 1, "disk_full"),
        ([FailureKind.ENVIRONMENT_UNBUILDABLE], 1, "environment_unbuildable"),
        ([FailureKind.SANDBOX_BROKEN, FailureKind.DISK_FULL], 2, "disk_full"),
    ],
)  # fmt: skip
def test_what_the_machinery_does_to_it_is_tried_again_or_unknown(
    task: EvaluationTask, workspace: Workspace, kinds: list[FailureKind], tried: int, found: str | None
) -> None:
    box, heard = Broken(*(failure(kind) for kind in kinds)), Heard()
    report = judge(task, workspace, box, workspace.submit({"n": 12.5}), heard=heard)
    assert (box.tried, report.failure) == (tried, found)
    assert report.verdict is (Verdict.PASS if found is None else Verdict.UNKNOWN)
    if found:
        assert report.reason == "the engine: broke"
    assert heard.warnings == [
        f"{task.id}: re-execution, attempt {n} of 3: the engine: broke. c. n." for n in range(1, tried)
    ]


@pytest.mark.parametrize(
    "kind", [FailureKind.INTERNAL, FailureKind.USAGE, FailureKind.INTERRUPTED, FailureKind.WORKSPACE_LOCKED]
)
def test_what_is_not_the_machinerys_is_raised_at_once(
    task: EvaluationTask, workspace: Workspace, kind: FailureKind
) -> None:
    box = Broken(failure(kind))
    with pytest.raises(ExpbenchError) as caught:
        judge(task, workspace, box, workspace.submit({"n": 12.5}))
    assert (caught.value.kind, box.tried) == (kind, 1)


@pytest.mark.parametrize(("message", "cause"), [("Ctrl-C", "Ctrl-C"), ("", "interrupted")])
def test_a_run_that_was_ended_from_outside_has_no_outcome(
    task: EvaluationTask, workspace: Workspace, message: str, cause: str
) -> None:
    box = Box(lambda seen: ended(None, failure=FailureKind.INTERRUPTED, message=message))
    with pytest.raises(ExpbenchError) as caught:
        judge(task, workspace, box, workspace.submit({"n": 12.5}))
    assert (caught.value.kind, caught.value.cause) == (FailureKind.INTERRUPTED, cause)
    assert caught.value.object == f"re-execution of {task.id}"
    assert len(box.runs) == 1


# --- with a witness beside it


def test_a_container_carries_a_witness_and_what_it_saw_is_reported(task: EvaluationTask, workspace: Workspace) -> None:
    box = Box("n = 12.5\n")
    report = judge(task, workspace, box, workspace.submit({"n": 12.5}))
    [seen] = box.runs
    assert seen.kind is Perturbation.NONE
    assert report.witness is not None
    assert (report.witness.perturbation, report.witness.amount, report.witness.files_permuted) == (
        Perturbation.NONE, seen.settings["amount"], 0,
    )  # fmt: skip
    assert [process.argv for process in report.witness.processes] == [("python",)]
    assert any(f"python{task.public.environment.python or '3.11'}/" in mount.target for mount in seen.spec.mounts)
    assert judge(task, workspace, Box("n = 12.5\n", "process"), workspace.submit({"n": 12.5})).witness is None


@pytest.mark.parametrize(
    ("kind", "again"),
    [(FailureKind.RUN_TIMEOUT, True), (FailureKind.RUN_OUT_OF_MEMORY, True), (FailureKind.RUN_DISK_FULL, True),
     (FailureKind.RUN_FAILED, False), (FailureKind.RUN_PROCESS_LIMIT, False)],
)  # fmt: skip
def test_a_limit_that_the_witness_may_have_cost_is_tried_without_it(
    task: EvaluationTask, workspace: Workspace, kind: FailureKind, again: bool
) -> None:
    box = Box(lambda seen: "n = 12.5\n" if seen.kind is None else ended(None, failure=kind))
    report = judge(task, workspace, box, workspace.submit({"n": 12.5}))
    assert [seen.kind for seen in box.runs] == ([Perturbation.NONE, None] if again else [Perturbation.NONE])
    assert report.verdict is (Verdict.PASS if again else Verdict.FAIL)
    assert (report.witness is None) == again
    said = [(item.severity, "run again without" in item.message) for item in report.problems if item.where == "witness"]
    assert said == ([(Severity.WARNING, True)] if again else [])
    alone = Box(lambda seen: ended(None, failure=kind), "process")
    assert judge(task, workspace, alone, workspace.submit({"n": 12.5})).verdict is Verdict.FAIL
    assert len(alone.runs) == 1


# --- perturbed runs


def _claim(level: int) -> NumericClaim:
    value = 90.0 - level
    return NumericClaim(
        id=f"c{level}", metric="accuracy", value=value, text=f"{value}", decimals=1,
        conditions=(Condition(name="n", value=str(level)),),
        band=Band(low=value - 1, high=value + 1, source="seeds (n=6)", deviation=0.4),
    )  # fmt: skip


def _response(perturbation: Perturbation) -> Response:
    return Response(perturbation=perturbation, values=tuple((f"c{n}", 50.0) for n in LEVELS), touched=3)


MOVED, PERMUTED, MUTED = Perturbation.MOVED, Perturbation.PERMUTED, Perturbation.MUTED
TRUTH = ExperimentTruth(
    expected=Expected(text="-", claims=tuple(_claim(level) for level in LEVELS)),
    responses=(_response(MUTED), _response(PERMUTED)),
    ran=(
        FunctionRun(path="lib.py", name="load", line=1, calls=1),
        FunctionRun(path="lib.py", name="Data.rows", line=1, calls=1),
        FunctionRun(path="gone.py", name="f", line=1, calls=1),
        FunctionRun(path="changed.py", name="g", line=1, calls=1),
    ),
)
NUMBERS = {f"accuracy n={level}": 90.13 - level for level in LEVELS}


def printed(shift: Callable[[int], float] = lambda level: 0.0) -> str:
    return "".join(f"n={level} accuracy {90.13 - level + shift(level):.2f}\n" for level in LEVELS)


def computed(seen: Seen) -> str:
    """What an experiment prints."""
    if seen.kind is MOVED:
        return printed(lambda level: 0.31 * (-1) ** level)
    return printed(lambda level: -38.0) if seen.kind in (PERMUTED, MUTED) else printed()


@pytest.fixture
def answering(tmp_path: Path) -> EvaluationTask:
    files = {"lib.py": "def load():\n    pass\n", "changed.py": "x\n", "data/given.csv": table(range(40)),
             "data/edited.csv": table(range(40, 80))}  # fmt: skip
    return make_task(tmp_path / "answering", files, truth=TRUTH)


@pytest.fixture
def work(answering: EvaluationTask, tmp_path: Path) -> Workspace:
    made = Workspace(answering, tmp_path / "answering")
    made.write("reproduce.sh", "echo\n")
    made.write("changed.py", "y\n")
    made.write("data/edited.csv", table(range(50, 90)))
    return made


def test_an_experiment_answers_to_every_perturbation(answering: EvaluationTask, work: Workspace) -> None:
    box, heard = Box(computed), Heard()
    report = judge(answering, work, box, work.submit(NUMBERS), heard=heard)
    assert [seen.kind for seen in box.runs] == [Perturbation.NONE, MOVED, PERMUTED, MUTED]
    assert (report.verdict, report.not_perturbed) == (Verdict.PASS, "")
    assert [(item.perturbation, item.verdict) for item in report.counterfactuals] == [
        (kind, Verdict.PASS) for kind in (MOVED, PERMUTED, MUTED)
    ]
    assert [item.duration_s for item in report.counterfactuals] == [10, 10, 10]
    assert [item.touched for item in report.counterfactuals] == [3, 4, 3]  # one given file was permuted beforehand
    assert not any(item.failed for item in report.counterfactuals)
    log = work.folder.root / "execution"
    assert [seen.out for seen in box.runs] == [log, log / "moved", log / "permuted", log / "muted"]
    assert heard.steps[2::2] == [f"{answering.id}: again, {kind.value}" for kind in (MOVED, PERMUTED, MUTED)]
    assert {name: value.perturbed for name, value in ((n.name, n) for n in report.counterfactuals[0].numbers)} == {
        f"accuracy n={level}": pytest.approx(90.13 - level + 0.31 * (-1) ** level) for level in LEVELS
    }
    assert report.witness is not None
    assert report.witness.perturbation is Perturbation.NONE, "the report's witness is that of the clean run"


def test_numbers_that_stay_fail_although_it_runs_again(answering: EvaluationTask, work: Workspace) -> None:
    report = judge(answering, work, Box(printed()), work.submit(NUMBERS))
    assert report.verdict is Verdict.FAIL
    failing = [item for item in report.counterfactuals if item.verdict is Verdict.FAIL]
    assert report.reason == f"it runs again, and {failing[0].reason}"
    assert len(report.counterfactuals) == 3


def test_what_does_not_run_under_a_perturbation_says_nothing(answering: EvaluationTask, work: Workspace) -> None:
    box = Box(lambda seen: ended(1, failure=FailureKind.RUN_FAILED) if seen.kind is MUTED else computed(seen))
    report = judge(answering, work, box, work.submit(NUMBERS))
    assert report.verdict is Verdict.PASS
    muted = report.counterfactuals[-1]
    assert (muted.verdict, muted.failed) == (Verdict.UNKNOWN, True)


def test_labels_are_permuted_in_given_files_and_functions_of_a_copy(answering: EvaluationTask, work: Workspace) -> None:
    """What the agent wrote or changed is its own, and stays as it handed it in."""
    box = Box(computed)
    judge(answering, work, box, work.submit(NUMBERS))
    plain, _, permuted, muted = box.runs
    assert permuted.tree != plain.tree
    assert muted.tree == plain.tree
    assert muted.files == plain.files, "the tree itself is as it was"
    assert {name for name in plain.files if plain.files[name] != permuted.files[name]} == {"data/given.csv"}
    assert set(plain.files) == set(permuted.files)
    assert permuted.settings["permute"] == [["lib.py", "Data.rows"], ["lib.py", "load"]]
    assert muted.settings["permute"] == []


def test_a_perturbed_run_that_the_machinery_lost_is_made_again_with_all_before_it(
    answering: EvaluationTask, work: Workspace
) -> None:
    lost = [failure(FailureKind.SANDBOX_BROKEN)]

    def answer(seen: Seen) -> str:
        if seen.kind is PERMUTED and lost:
            raise lost.pop()
        return computed(seen)

    box = Box(answer)
    report = judge(answering, work, box, work.submit(NUMBERS))
    plan = [Perturbation.NONE, MOVED, PERMUTED]
    assert [seen.kind for seen in box.runs] == [*plan, *plan, MUTED]
    assert box.runs[2].files == box.runs[5].files, "its copy was made anew, not permuted twice"
    assert report.verdict is Verdict.PASS


def test_links_of_the_tree_stay_links_in_the_copy(answering: EvaluationTask, work: Workspace) -> None:
    (work.root / "link.csv").symlink_to("data/given.csv")
    links: list[bool] = []

    def answer(seen: Seen) -> str:
        links.append((seen.tree / "link.csv").is_symlink())
        return computed(seen)

    judge(answering, work, Box(answer), work.submit(NUMBERS))
    assert links == [True] * 4


def test_files_of_perturbed_runs_are_nobodys_results(answering: EvaluationTask, work: Workspace) -> None:
    def answer(seen: Seen) -> str:
        (seen.out / "files").mkdir()
        (seen.out / "files" / "out.csv").write_text("a\n1\n")
        return computed(seen)

    judge(answering, work, Box(answer), work.submit(NUMBERS))
    log = work.folder.root / "execution"
    assert [path.relative_to(log).as_posix() for path in sorted(log.rglob("out.csv"))] == ["files/out.csv"]
    assert (log / "moved" / "0.stdout").exists()


@pytest.mark.parametrize(
    ("perturbing", "made", "left_out"),
    [
        ({"mode": "off"}, [], "not asked for"),
        ({"mode": "on", "budget_s": 1}, [MOVED, PERMUTED, MUTED], ""),
        ({"mode": "auto", "budget_s": 9.5}, [], "moved: the budget of 9.5 s is used up"),
        ({"mode": "auto", "budget_s": 10}, [MOVED], "permuted: the budget of 10 s is used up"),
        ({"mode": "auto", "budget_s": 29}, [MOVED, PERMUTED], "muted: the budget of 29 s is used up"),
        ({"mode": "auto", "budget_s": 30}, [MOVED, PERMUTED, MUTED], ""),
    ],
)  # fmt: skip
def test_how_many_perturbed_runs_are_made(
    answering: EvaluationTask, work: Workspace, perturbing: Any, made: list[Perturbation], left_out: str
) -> None:
    report = judge(answering, work, Box(computed), work.submit(NUMBERS), **perturbing)
    assert [item.perturbation for item in report.counterfactuals] == made
    assert report.not_perturbed == left_out
    assert report.verdict is Verdict.PASS


def test_why_no_perturbed_run_is_made(answering: EvaluationTask, work: Workspace, tmp_path: Path) -> None:
    submission = work.submit(NUMBERS)

    def why(task: EvaluationTask, box: Box) -> str:
        report = judge(task, work, box, submission)
        assert report.counterfactuals == ()
        return report.not_perturbed

    assert why(answering, Box(computed, "process")) == "the process sandbox cannot carry a witness"
    assert why(answering, Box("nothing\n")) == "it does not run again as it is"
    unlearnt = "how the task's own numbers answer was not learnt when it was validated"
    quiet = TRUTH.expected.evolve(
        claims=tuple(claim.evolve(band=claim.band.evolve(deviation=None)) for claim in TRUTH.expected.claims)
    )
    assert why(answering.evolve(truth=TRUTH.evolve(expected=quiet, responses=())), Box(computed)) == unlearnt
    assert why(answering.evolve(truth=None), Box(computed)) == unlearnt


def test_a_suspicion_alone_does_not_decide(
    answering: EvaluationTask, work: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def judged(perturbation: Perturbation, *_: Any, **__: Any) -> Counterfactual:
        return Counterfactual(perturbation=perturbation, verdict=Verdict.UNKNOWN, reason="goes a part of the way")

    monkeypatch.setattr(execution, "judge_perturbed", judged)
    assert judge(answering, work, Box(computed), work.submit(NUMBERS)).verdict is Verdict.PASS
