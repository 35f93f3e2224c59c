"""Re-execution from the patch alone: what counts as produced, what is unknown, what a patch cannot do."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from evaluation.execution import validate_execution
from evaluation.submission import Submission
from evaluation.task import EvaluationTask
from evaluation.verdicts import ExecutionReport
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.progress import SilentReporter
from pipeline.sandbox import Image, RunResult, RunSpec, Sandbox, open_sandbox
from pipeline.sandbox.process import ProcessSandbox
from pipeline.task import Environment, Verdict
from tests.evaluation.execution_support import SMALL, Workspace, make_task, process_sandbox, public_task, with_downloads

__all__ = ["process_sandbox"]

LIBRARY = "def score(values):\n    return sum(values) / len(values)\n"
EXPERIMENT = (
    "import csv, os\nfrom library import score\n"
    "value = score([0.5, 1.0])\nprint('score of rule A:', value)\n"
    "os.makedirs('results', exist_ok=True)\n"
    "with open('results/scores.csv', 'w') as out:\n    out.write(f'rule,score\\nA,{value:.4f}\\n')\n"
)


@pytest.fixture
def task(tmp_path: Path) -> EvaluationTask:
    """A repository with a library and, by accident, an old result."""
    return make_task(tmp_path, {"library.py": LIBRARY, "results/old.csv": "rule,score\nA,0.1234\n"})


@pytest.fixture
def workspace(task: EvaluationTask, tmp_path: Path) -> Workspace:
    return Workspace(task, tmp_path)


def run(task: EvaluationTask, workspace: Workspace, submission: Submission, sandbox: Sandbox) -> ExecutionReport:
    return validate_execution(
        task, workspace.folder, submission, sandbox=sandbox, limits=SMALL, owner="tests", reporter=SilentReporter()
    )


def test_an_honest_submission_passes(task: EvaluationTask, workspace: Workspace, process_sandbox: Sandbox) -> None:
    workspace.write("experiment.py", EXPERIMENT)
    workspace.write("reproduce.sh", "set -e\npython experiment.py\n")
    workspace.write("response.json", "{}")
    submission = workspace.submit({"score of rule A": 0.75}, ("results/scores.csv", "experiment.py"))
    report = run(task, workspace, submission, process_sandbox)
    assert report.verdict is Verdict.PASS, report
    assert report.applied
    assert report.exit_code == 0
    assert report.outputs == (("results/scores.csv", True),)  # a script among the outputs is no matter of form
    assert report.numbers[0].files
    assert (workspace.folder.root / report.log / "0.stdout").read_text() == "score of rule A: 0.75\n"
    assert "CANARY-TRUTH" not in report.model_dump_json()


def test_shipped_results_are_not_produced_results(
    task: EvaluationTask, workspace: Workspace, process_sandbox: Sandbox
) -> None:
    """The three ways that were tried: an output in the patch, a copy of a shipped file, a print of the response."""
    workspace.write("results/scores.csv", "rule,score\nA,0.9100\n")
    workspace.write("kept/answer.csv", "rule,score\nA,0.9200\n")
    workspace.write("response.json", '{"score": 0.93}')
    workspace.write("reproduce.sh", "cp kept/answer.csv results/copied.csv\ncat response.json\nexit 0\n")
    submission = workspace.submit(
        {"first": 0.91, "second": 0.92, "third": 0.93}, ("results/scores.csv", "results/copied.csv")
    )
    report = run(task, workspace, submission, process_sandbox)
    assert report.verdict is Verdict.FAIL
    assert report.outputs == (("results/scores.csv", False), ("results/copied.csv", False))
    assert [trace.verdict for trace in report.numbers] == [Verdict.FAIL] * 3
    assert any("kept/answer.csv" in problem.message for problem in report.problems)


def test_an_output_that_the_repository_had_before_must_be_made_again(
    task: EvaluationTask, workspace: Workspace, process_sandbox: Sandbox
) -> None:
    workspace.write("reproduce.sh", "true\n")
    report = run(task, workspace, workspace.submit({}, ("results/old.csv",)), process_sandbox)
    assert report.verdict is Verdict.FAIL
    assert report.outputs == (("results/old.csv", False),)


def test_the_same_content_made_again_is_produced(
    task: EvaluationTask, workspace: Workspace, process_sandbox: Sandbox
) -> None:
    """A deterministic experiment writes the very bytes that it shipped; deleting them first tells the two apart."""
    workspace.write("results/scores.csv", "rule,score\nA,0.5\n")
    workspace.write("reproduce.sh", "printf 'rule,score\\nA,0.5\\n' > results/scores.csv\n")
    report = run(task, workspace, workspace.submit({"score": 0.5}, ("results",)), process_sandbox)
    assert report.verdict is Verdict.PASS, report


def test_an_undeclared_result_that_is_written_again_counts(
    task: EvaluationTask, workspace: Workspace, process_sandbox: Sandbox
) -> None:
    """The first form of this check failed an honest agent: its table was in the patch, undeclared, and came out equal."""
    workspace.write("results/table.csv", "rule,score\nA,0.8125\n")
    workspace.write("reproduce.sh", "mkdir -p results; printf 'rule,score\\nA,0.8125\\n' > results/table.csv\n")
    report = run(task, workspace, workspace.submit({"score": 0.8125}), process_sandbox)
    assert report.verdict is Verdict.PASS, report
    assert report.numbers[0].files[0].startswith("results/table.csv")


def test_an_undeclared_result_that_is_only_shipped_does_not(
    task: EvaluationTask, workspace: Workspace, process_sandbox: Sandbox
) -> None:
    workspace.write("results/table.csv", "rule,score\nA,0.8125\n")
    workspace.write("reproduce.sh", "echo computing\n")
    report = run(task, workspace, workspace.submit({"score": 0.8125}), process_sandbox)
    assert report.verdict is Verdict.FAIL
    assert "results/table.csv" in report.reason


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo broken >&2; exit 3\n", "exit code 3"),
        ("echo 0.75\n", "results/scores.csv"),
        ("mkdir -p results; echo 0.5 > results/scores.csv\n", "score = 0.75"),
    ],
)
def test_what_fails(
    task: EvaluationTask, workspace: Workspace, process_sandbox: Sandbox, script: str, reason: str
) -> None:
    workspace.write("reproduce.sh", script)
    report = run(task, workspace, workspace.submit({"score": 0.75}, ("results/scores.csv",)), process_sandbox)
    assert report.verdict is Verdict.FAIL
    assert reason in report.reason


def test_a_script_that_shows_nothing_is_no_experiment(
    task: EvaluationTask, workspace: Workspace, process_sandbox: Sandbox
) -> None:
    workspace.write("reproduce.sh", "echo done\n")
    report = run(task, workspace, workspace.submit(), process_sandbox)
    assert report.verdict is Verdict.FAIL
    assert "nothing shows" in report.reason


def test_nothing_handed_in_fails_without_a_run(
    task: EvaluationTask, workspace: Workspace, process_sandbox: Sandbox
) -> None:
    report = run(task, workspace, workspace.submit(), process_sandbox)
    assert report.verdict is Verdict.FAIL
    assert not report.applied
    assert not (workspace.folder.root / "execution").exists()


def test_what_is_no_result_of_the_agent_is_unknown(
    task: EvaluationTask, workspace: Workspace, process_sandbox: Sandbox
) -> None:
    workspace.write("reproduce.sh", "echo 1\n")
    submission = workspace.submit({"n": 1.0})
    blocked = task.evolve(blocked="no GPU here")
    assert run(blocked, workspace, submission, process_sandbox).verdict is Verdict.UNKNOWN
    missing = task.evolve(public=public_task(environment=Environment(python="3.11", packages=("no-such-thing==0",))))
    report = run(missing, workspace, submission, process_sandbox)
    assert report.verdict is Verdict.UNKNOWN
    assert report.failure is not None
    gpu = validate_execution(
        task, workspace.folder, submission, sandbox=process_sandbox, limits=SMALL.evolve(gpus=1), owner="tests",
        reporter=SilentReporter(),
    )  # fmt: skip
    assert (gpu.verdict, gpu.failure) == (Verdict.UNKNOWN, "gpu_unavailable")
    (workspace.folder.submission / "patch.diff").write_text("changed since\n")
    assert run(task, workspace, submission, process_sandbox).verdict is Verdict.UNKNOWN


def test_a_patch_cannot_reach_out_of_the_tree(
    task: EvaluationTask, workspace: Workspace, process_sandbox: Sandbox, tmp_path: Path
) -> None:
    """`reproduce.sh` as a link to a path of this machine: nothing is written through it, and nothing is read."""
    target = tmp_path / "outside"
    (workspace.root / "reproduce.sh").symlink_to(target)
    (workspace.root / "results" / "link.csv").symlink_to("/etc/hostname")
    submission = workspace.submit({"n": 1.0}, ("results/link.csv", "/etc/passwd", "../../x"))
    (workspace.folder.submission / "reproduce.sh").write_text("echo 1\n")
    report = run(task, workspace, submission, process_sandbox)
    assert report.verdict is Verdict.FAIL
    assert not target.exists()
    assert [produced for _, produced in report.outputs] == [False, False, False]
    assert sum("out of the repository" in problem.message for problem in report.problems) == 2


def test_a_patch_of_absolute_paths_is_refused(
    task: EvaluationTask, workspace: Workspace, process_sandbox: Sandbox, tmp_path: Path
) -> None:
    workspace.write("reproduce.sh", "echo 1\n")
    submission = workspace.submit({"n": 1.0})
    outside = tmp_path / "planted"
    hostile = (
        f"diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/../../../..{outside}\n@@ -0,0 +1 @@\n+x\n"
    )
    import hashlib

    (workspace.folder.submission / "patch.diff").write_text(hostile)
    changed = submission.evolve(patch_sha256=hashlib.sha256(hostile.encode()).hexdigest())
    report = run(task, workspace, changed, process_sandbox)
    assert report.verdict is Verdict.UNKNOWN
    assert not outside.exists()


def test_the_checkout_is_the_commit_not_the_working_tree(
    task: EvaluationTask, workspace: Workspace, process_sandbox: Sandbox
) -> None:
    workspace.write("experiment.py", EXPERIMENT)
    workspace.write("reproduce.sh", "python experiment.py\n")
    submission = workspace.submit({"score": 0.75}, ("results/scores.csv",))
    assert task.masked_repository is not None
    (task.masked_repository / "library.py").write_text("raise SystemExit('somebody was here')\n")
    assert run(task, workspace, submission, process_sandbox).verdict is Verdict.PASS


def test_without_the_data_of_the_original_nothing_is_run_and_nothing_is_known(
    task: EvaluationTask, workspace: Workspace, tmp_path: Path, process_sandbox: Sandbox
) -> None:
    workspace.write("reproduce.sh", "echo score 0.75\n")
    submission = workspace.submit({"score": 0.75})
    for whole, words in ((False, "data record"), (True, "process sandbox")):
        given = with_downloads(task, tmp_path / "cache", whole=whole)
        report = run(given, workspace, submission, process_sandbox)
        assert (report.verdict, report.exit_code) == (Verdict.UNKNOWN, None)
        assert words in report.reason


class Machine(ProcessSandbox):
    """The real sandbox, whose machinery fails the first `broken` times."""

    def __init__(self, broken: int, kind: FailureKind) -> None:
        super().__init__()
        self.left, self.kind, self.runs = broken, kind, 0

    def run(self, image: Image, tree: Path, spec: RunSpec, *, out: Path, owner: str, **options: Any) -> RunResult:
        self.runs += 1
        if self.left:
            self.left -= 1
            raise ExpbenchError(self.kind, "sandbox", "broke", consequence="c", next_step="n")
        return super().run(image, tree, spec, out=out, owner=owner, **options)


@pytest.mark.parametrize(
    ("broken", "kind", "verdict", "runs"),
    [
        (2, FailureKind.SANDBOX_BROKEN, Verdict.PASS, 3),
        (3, FailureKind.SANDBOX_BROKEN, Verdict.UNKNOWN, 3),
        (1, FailureKind.DISK_FULL, Verdict.UNKNOWN, 1),  # trying again would not help
    ],
)
def test_a_run_that_the_machinery_lost_is_made_again_and_never_a_fail(
    task: EvaluationTask,
    workspace: Workspace,
    process_sandbox: Sandbox,
    broken: int,
    kind: FailureKind,
    verdict: Verdict,
    runs: int,
) -> None:
    workspace.write("reproduce.sh", "echo score 0.75\n")
    machine = Machine(broken, kind)
    report = run(task, workspace, workspace.submit({"score": 0.75}), machine)
    assert (report.verdict, machine.runs) == (verdict, runs)
    assert report.failure == (None if verdict is Verdict.PASS else kind.value)


def test_an_interrupted_run_has_no_outcome(
    task: EvaluationTask, workspace: Workspace, process_sandbox: Sandbox
) -> None:
    """Written down as unknown it would be finished, and never made again by --resume."""
    workspace.write("reproduce.sh", "echo 1\n")
    submission = workspace.submit({"n": 1.0})
    with pytest.raises(ExpbenchError) as caught:
        run(task, workspace, submission, Machine(1, FailureKind.INTERRUPTED))
    assert caught.value.kind is FailureKind.INTERRUPTED


def test_large_outputs_are_named_and_not_kept(
    task: EvaluationTask, workspace: Workspace, process_sandbox: Sandbox
) -> None:
    workspace.write("reproduce.sh", "head -c 9000000 /dev/zero > model.bin; echo score 0.75\n")
    report = run(task, workspace, workspace.submit({"score": 0.75}, ("model.bin",)), process_sandbox)
    assert report.verdict is Verdict.PASS, report
    assert report.outputs == (("model.bin", True),)
    assert not (workspace.folder.root / report.log / "files" / "model.bin").exists()
    assert any("9000000 bytes" in problem.message for problem in report.problems)


@pytest.mark.docker
def test_the_same_in_a_container(task: EvaluationTask, workspace: Workspace) -> None:
    workspace.write("experiment.py", EXPERIMENT)
    workspace.write(
        "reproduce.sh",
        "set -e\npython experiment.py\n! python -c 'import socket; socket.create_connection((\"1.1.1.1\", 53), 2)'\n",
    )
    submission = workspace.submit({"score": 0.75}, ("results/scores.csv",))
    report = run(task, workspace, submission, open_sandbox("docker"))
    assert report.verdict is Verdict.PASS, report
    assert os.environ.get("HOME", "/root") not in report.model_dump_json()
