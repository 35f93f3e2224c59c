"""The release gate, with real runs of a real script."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from masking.apply import apply_mask
from masking.plan import plan_mask
from masking.records import MaskPlan, TextEdit
from masking.roundtrip import restore, round_trip, tree_difference
from masking.tree import entries
from pipeline.errors import FailureKind
from pipeline.progress import Reporter
from pipeline.repository import Snapshot
from pipeline.sandbox.base import (
    BuildSpec,
    Command,
    CommandResult,
    Image,
    ProducedFile,
    RunResult,
    RunSpec,
    SandboxStatus,
)
from pipeline.task import MaskedPath, RoundTrip, Task, ValidationReport, Verdict
from tests.masking import builders

IMAGE = Image(reference="here", digest="0" * 64, spec_digest="0" * 64)


class LocalSandbox:
    """A test double: runs the commands for real, in a copy of the tree, without any isolation."""

    name: Literal["docker", "process"] = "process"

    def __init__(self, change: Callable[[RunResult], RunResult] = lambda result: result) -> None:
        self.change = change

    def status(self) -> SandboxStatus:
        return SandboxStatus(name="process", available=True, detail="test double")

    def build(self, spec: BuildSpec, *, log: Path, owner: str, reporter: Reporter) -> Image:
        raise AssertionError("not part of these tests")

    def reap(self, owner: str) -> int:
        return 0

    def run(self, image: Image, tree: Path, spec: RunSpec, *, out: Path, owner: str) -> RunResult:
        results = []
        with tempfile.TemporaryDirectory() as name:
            copy = Path(name) / "tree"
            shutil.copytree(tree, copy, symlinks=True, ignore=shutil.ignore_patterns(".git"))
            before = {entry.path: entry.read() for entry in entries(copy)}
            for number, command in enumerate(spec.commands):
                argv = [sys.executable, "-B", *command.argv[1:]] if command.argv[0] == "python" else list(command.argv)
                done = subprocess.run(
                    argv, cwd=copy / command.directory, capture_output=True, check=False, env=spec.env
                )
                (out / f"{number}.stdout").write_bytes(done.stdout)
                (out / f"{number}.stderr").write_bytes(done.stderr)
                failure = FailureKind.RUN_FAILED if done.returncode else None
                results.append(
                    CommandResult(
                        exit_code=done.returncode,
                        failure=failure,
                        stdout_bytes=len(done.stdout),
                        stderr_bytes=len(done.stderr),
                    )
                )
                if failure:
                    break
            produced = []
            for entry in entries(copy):
                data = entry.read()
                if before.get(entry.path) != data:
                    target = out / "files" / entry.path
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(data)
                    produced.append(
                        ProducedFile(path=entry.path, size=len(data), sha256=hashlib.sha256(data).hexdigest())
                    )
        return self.change(RunResult(commands=tuple(results), produced=tuple(produced), failure=results[-1].failure))


def judge(result: RunResult, out: Path) -> Verdict:
    """Reads the produced summary and compares it with the claims."""
    path = out / "files" / "results" / "summary.json"
    if not path.is_file():
        return Verdict.FAIL
    values = json.loads(path.read_text())["mse"]
    right = all(claim.band.holds(values[claim.conditions[0].value]) for claim in builders.claims())
    return Verdict.PASS if right else Verdict.FAIL


def validated(task: Task, verdict: Verdict = Verdict.PASS) -> Task:
    return task.evolve(validation=ValidationReport(verdict=verdict, reason="test", sandbox="process"))


def go(
    tmp_path: Path, snapshot: Snapshot, *, task: Task | None = None, plan: MaskPlan | None = None,
    argv: tuple[str, ...] = builders.COMMAND, sandbox: LocalSandbox | None = None,
) -> RoundTrip:  # fmt: skip
    task = task or validated(builders.task())
    plan = plan or plan_mask(task, snapshot)
    masked = apply_mask(snapshot, plan, tmp_path / "masked")
    return round_trip(
        task, masked=masked.path, snapshot=snapshot, plan=plan, image=IMAGE, sandbox=sandbox or LocalSandbox(),
        spec=RunSpec(commands=(Command(argv=argv),)), judge=judge, out=tmp_path / "out", owner="test",
    )  # fmt: skip


def test_passes(tmp_path: Path) -> None:
    result = go(tmp_path, builders.make(tmp_path / "original"))
    assert result.verdict is Verdict.PASS
    assert (result.original, result.masked, result.restored) == (Verdict.PASS, Verdict.FAIL, Verdict.PASS)
    assert result.masked_failure == "run_experiment.py: no such file (masked)"
    assert not (tmp_path / "out" / "restored-tree").exists()


@pytest.mark.parametrize(
    ("wrapper", "argv"),
    [
        (b"#!/bin/sh\npython3 run_experiment.py\n", ("sh", "all.sh")),
        (b"#!/bin/sh\npython3 -m run_experiment\n", ("sh", "all.sh")),
        (b"import run_experiment\nrun_experiment.main()\n", ("python", "all.sh")),
        (b"from run_experiment import main\nmain()\n", ("python", "all.sh")),
    ],
)
def test_a_masked_file_missed_indirectly(wrapper: bytes, argv: tuple[str, ...], tmp_path: Path) -> None:
    snapshot = builders.make(tmp_path / "original", {"all.sh": wrapper})
    path = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    task = validated(builders.task())
    plan = plan_mask(task, snapshot)
    masked = apply_mask(snapshot, plan, tmp_path / "masked")
    result = round_trip(
        task, masked=masked.path, snapshot=snapshot, plan=plan, image=IMAGE, sandbox=LocalSandbox(),
        spec=RunSpec(commands=(Command(argv=argv),), env=path), judge=judge, out=tmp_path / "out", owner="test",
    )  # fmt: skip
    assert result.verdict is Verdict.PASS, result
    assert result.masked_failure.startswith("run_experiment.py: no such")


def test_a_mask_that_leaves_the_answer_computable_fails(tmp_path: Path) -> None:
    result = go(tmp_path, builders.make(tmp_path / "original"), plan=MaskPlan(paths=()))
    assert result.verdict is Verdict.FAIL
    assert result.masked is Verdict.PASS
    assert "still gives the answer" in result.reason


def test_a_broken_environment_is_unknown_not_a_success(tmp_path: Path) -> None:
    broken = builders.RUN.replace("import json", "import json\nimport surely_not_installed")
    snapshot = builders.make(tmp_path / "original", {"other.py": broken.encode()})
    task = validated(builders.task())
    plan = plan_mask(task, snapshot)
    kept = MaskPlan(paths=tuple(path for path in plan.paths if path.path != "other.py"))
    result = go(tmp_path, snapshot, task=task, plan=kept, argv=("python", "other.py"))
    assert result.masked is Verdict.UNKNOWN
    assert "surely_not_installed" in result.masked_failure
    assert result.verdict is not Verdict.PASS


@pytest.mark.parametrize("kind", [FailureKind.RUN_TIMEOUT, FailureKind.RUN_OUT_OF_MEMORY, FailureKind.SANDBOX_BROKEN])
def test_a_limit_or_the_machine_is_unknown(kind: FailureKind, tmp_path: Path) -> None:
    sandbox = LocalSandbox(lambda result: result.evolve(failure=kind, produced=()))
    result = go(tmp_path, builders.make(tmp_path / "original"), sandbox=sandbox)
    assert result.masked is Verdict.UNKNOWN
    assert result.verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("original", [Verdict.UNKNOWN, Verdict.FAIL])
def test_the_original_must_have_passed(original: Verdict, tmp_path: Path) -> None:
    task = validated(builders.task(), original)
    assert go(tmp_path, builders.make(tmp_path / "original"), task=task).verdict is original


def test_restored_is_the_original_but_for_cleared_notebooks(tmp_path: Path) -> None:
    from tests.masking.planting import NUMBER, notebook

    root = tmp_path / "original"
    builders.make(
        root,
        {
            "show.ipynb": notebook([("code", "show()", "output\n")]),
            "lib.py": f'"""The shrunk MSE is {NUMBER}."""\n'.encode(),
            "raw\udcff.txt": b"x",
            ".gitmodules": b"[submodule]",
        },
    )
    (root / "link").symlink_to("lib.py")
    (root / "lib.py").chmod(0o755)
    snapshot = builders.snapshot(root)
    plan = plan_mask(builders.task(), snapshot)
    assert {item.action for item in plan.paths} == {"removed", "edited", "outputs_cleared"}
    masked = apply_mask(snapshot, plan, tmp_path / "masked")
    restore(masked.path, snapshot, plan, tmp_path / "restored")
    assert tree_difference(root, tmp_path / "restored") == ["show.ipynb"]
    assert tree_difference(root, tmp_path / "restored", ignore=frozenset({"show.ipynb"})) == []
    (tmp_path / "restored" / "estimators.py").chmod(0o755)
    assert tree_difference(root, tmp_path / "restored") == ["estimators.py", "show.ipynb"]


# --- what a failed masked run is taken for ---------------------------------------------------------------------------


class Told:
    """A test double: the masked repository's runs end as told, one after another; the restored one's print the answer."""

    name: Literal["docker", "process"] = "process"

    def __init__(self, *ends: tuple[RunResult, dict[str, str]], restored: tuple[RunResult, ...] = ()) -> None:
        self.ends = [*ends]
        self.restored = [*restored]
        self.calls: list[str] = []

    def run(self, image: Image, tree: Path, spec: RunSpec, *, out: Path, owner: str) -> RunResult:
        self.calls.append(f"{out.parent.name}/{out.name}")
        if out.parent.name == "restored":
            return self.restored.pop(0) if self.restored else ENDED_WELL
        result, streams = self.ends.pop(0) if len(self.ends) > 1 else self.ends[0]
        for name, text in streams.items():
            (out / name).write_text(text)
        return result


def ended(*exit_codes: int, printed: int = 5, failure: FailureKind | None = None) -> RunResult:
    commands = tuple(CommandResult(exit_code=code, stdout_bytes=printed) for code in exit_codes)
    return RunResult(commands=commands, failure=failure or (FailureKind.RUN_FAILED if exit_codes[-1] else None))


ENDED_WELL = ended(0)
REMOVED = ("lib/run.py", "lib/deep/run.py", "data/table.csv", "pkg/__init__.py", "pkg/core.py")
COMMANDS = (Command(argv=("make", "all")), Command(argv=("python", "-m", "main"), directory="."))


def told(
    tmp_path: Path, sandbox: Told, *, masked: Verdict | list[Verdict] = Verdict.FAIL, repeats: int = 1,
    commands: tuple[Command, ...] = COMMANDS, edits: tuple[TextEdit, ...] = (), restored: Verdict = Verdict.PASS,
) -> RoundTrip:  # fmt: skip
    """A round trip of a repository whose files of `REMOVED` are gone, with the judge's verdicts on the masked runs."""
    original, left = tmp_path / "original", tmp_path / "masked"
    builders.write_tree(original, dict.fromkeys((*REMOVED, "main.py"), b"x"))
    builders.write_tree(left, {"main.py": b"x"})
    verdicts = masked if isinstance(masked, list) else [masked] * repeats
    return round_trip(
        validated(builders.task()), masked=left, snapshot=builders.snapshot(original), plan=mask_of(edits), image=IMAGE,
        sandbox=sandbox, spec=RunSpec(commands=commands), out=tmp_path / "out", owner="test", repeats=repeats,
        judge=lambda _, logs: restored if logs.parent.name == "restored" else verdicts[int(logs.name[4:]) - 1],
    )  # fmt: skip


def mask_of(edits: tuple[TextEdit, ...] = ()) -> MaskPlan:
    return MaskPlan(
        paths=tuple(MaskedPath(path=path, action="removed", reason="test") for path in sorted(REMOVED)), edits=edits
    )


@pytest.mark.parametrize(
    ("result", "judged", "masked", "how"),
    [
        (ENDED_WELL, Verdict.PASS, Verdict.PASS, "its run reproduces the claims"),
        (ENDED_WELL, Verdict.FAIL, Verdict.FAIL, "ended well but the claims are not reproduced"),
        (ENDED_WELL, Verdict.UNKNOWN, Verdict.UNKNOWN, "whether the claims are reproduced is unknown"),
        (ended(0, printed=0), Verdict.UNKNOWN, Verdict.FAIL, "ended well but nothing was printed or written"),
        (
            ended(0, printed=0).evolve(produced=(ProducedFile(path="a", size=1, sha256="0" * 64),)),
            Verdict.UNKNOWN, Verdict.UNKNOWN, "whether the claims are reproduced is unknown",
        ),
        # a failed run that printed the answer first has given it away
        (ended(1), Verdict.PASS, Verdict.PASS, "its run reproduces the claims"),
        (
            ended(1, failure=FailureKind.RUN_TIMEOUT).evolve(message="after 60 s"),
            Verdict.FAIL, Verdict.UNKNOWN, "run_timeout: after 60 s",
        ),
        (ended(1, failure=FailureKind.RUN_TIMEOUT), Verdict.FAIL, Verdict.UNKNOWN, "run_timeout: no message"),
    ],
)  # fmt: skip
def test_how_the_masked_run_ended(
    result: RunResult, judged: Verdict, masked: Verdict, how: str, tmp_path: Path
) -> None:
    found = told(tmp_path, Told((result, {})), masked=judged)
    assert found.masked is masked
    assert how in (found.reason if masked is Verdict.PASS else found.masked_failure)
    assert (found.masked_failure == "") is (masked is Verdict.PASS)
    expected = {Verdict.PASS: Verdict.FAIL, Verdict.FAIL: Verdict.PASS, Verdict.UNKNOWN: Verdict.UNKNOWN}
    assert found.verdict is expected[masked]


@pytest.mark.parametrize(
    ("printed", "cause"),
    [
        (
            "cat: data/table.csv: No such file or directory",
            "data/table.csv: no such file (masked); cat: data/table.csv",
        ),
        # only the file's name is printed: the longest path of that name is the one that is told
        ("can't open file 'run.py'", "lib/deep/run.py: no such file (masked); can't open file 'run.py'"),
        ("ModuleNotFoundError: No module named 'pkg.core'", "pkg/core.py: no such module (masked)"),
        ("ModuleNotFoundError: No module named pkg", "pkg/__init__.py: no such module (masked)"),
        ("ImportError: cannot import name 'core' from 'pkg' (x)", "pkg/core.py: no such module (masked)"),
        ("ImportError: cannot import name 'main' from 'deep.run' (x)", "lib/deep/run.py: no such module (masked)"),
        # the first import fails in a try, the second is the masked one
        ("No module named 'fast'\nNo module named 'pkg.core'", "pkg/core.py: no such module (masked)"),
    ],
)
@pytest.mark.parametrize("stream", ["1.stdout", "1.stderr"])
def test_a_message_about_a_masked_file_is_the_masks_doing(
    printed: str, cause: str, stream: str, tmp_path: Path
) -> None:
    found = told(tmp_path, Told((ended(0, 1), {stream: f"Traceback\n{printed}\n"})))
    assert (found.masked, found.verdict) == (Verdict.FAIL, Verdict.PASS)
    assert found.masked_failure.startswith(cause)


@pytest.mark.parametrize(
    ("printed", "cause"),
    [
        ("No module named 'torch'", "an import failed that was not masked: No module named 'torch'"),
        ("No module named 'mypkg.core'", "an import failed that was not masked"),
        ("table.csv has three columns\n\n", "exit code 3, not about a masked file: table.csv has three columns"),
        ("no such file: other.csv\n", "exit code 3, not about a masked file: no such file: other.csv"),
        ("  \n", "exit code 3, not about a masked file: no output"),
        ("NotImplementedError: [masked]", "exit code 3, not about a masked file: NotImplementedError"),
    ],
)
def test_a_failure_for_another_reason_is_unknown(printed: str, cause: str, tmp_path: Path) -> None:
    found = told(tmp_path, Told((ended(0, 3), {"1.stderr": printed, "0.stderr": "cat: data/table.csv: No such file"})))
    assert (found.masked, found.verdict) == (Verdict.UNKNOWN, Verdict.UNKNOWN)
    assert found.masked_failure.startswith(cause)
    assert "did not fail because of the mask" in found.reason


def test_a_masked_function_that_is_called_is_the_masks_doing(tmp_path: Path) -> None:
    body = TextEdit(
        path="main.py", start=0, end=1, sha256="0" * 64, replacement="raise NotImplementedError('[masked]')"
    )
    found = told(tmp_path, Told((ended(1), {"0.stderr": "NotImplementedError: [masked]\n"})), edits=(body,))
    assert (found.masked, found.verdict) == (Verdict.FAIL, Verdict.PASS)
    assert found.masked_failure.startswith("a masked function was called")


@pytest.mark.parametrize(
    ("argv", "directory", "path"),
    [
        (("python", "lib/run.py"), ".", "lib/run.py"),
        (("python", "./lib/run.py"), ".", "lib/run.py"),
        (("python", "run.py"), "lib/deep", "lib/deep/run.py"),
    ],
)
def test_a_command_that_names_a_masked_file_needs_no_message(
    argv: tuple[str, ...], directory: str, path: str, tmp_path: Path
) -> None:
    commands = (Command(argv=("make",)), Command(argv=argv, directory=directory))
    found = told(tmp_path, Told((ended(0, 2), {})), commands=commands)
    assert found.masked_failure == f"{path}: no such file (masked)"
    assert found.verdict is Verdict.PASS


def test_only_the_end_of_a_long_output_is_read(tmp_path: Path) -> None:
    long = "No module named 'pkg.core'\n" + "step\n" * 20_000
    assert told(tmp_path / "a", Told((ended(1), {"0.stdout": long}))).masked is Verdict.UNKNOWN
    for size, verdict in ((64 << 10, Verdict.FAIL), ((64 << 10) + 1, Verdict.UNKNOWN)):
        late = "No module named 'pkg.core'".ljust(size)
        assert told(tmp_path / str(size), Told((ended(1), {"0.stdout": late}))).masked is verdict


def test_of_a_long_line_two_hundred_letters_are_told(tmp_path: Path) -> None:
    line = "x" * 199
    other = told(tmp_path / "a", Told((ended(1), {"0.stdout": f"  {line}yz\n"})))
    assert other.masked_failure == f"exit code 1, not about a masked file: {line}y"
    missing = f"no such file: data/table.csv {line}"
    masked = told(tmp_path / "b", Told((ended(1), {"0.stdout": f"  {missing}\n"})))
    assert masked.masked_failure == f"data/table.csv: no such file (masked); {missing[:200]}"


# --- repeats ---------------------------------------------------------------------------------------------------------


def test_every_repeat_has_to_agree(tmp_path: Path) -> None:
    sandbox = Told((ENDED_WELL, {}))
    found = told(tmp_path, sandbox, repeats=3)
    assert (found.verdict, found.repeats) == (Verdict.PASS, 3)
    assert sandbox.calls == [f"{kind}/run-{number}" for kind in ("masked", "restored") for number in (1, 2, 3)]
    assert found.reason == "original passes, masked fails because of the mask, restored passes"


def test_one_masked_run_that_gives_the_answer_is_a_leak(tmp_path: Path) -> None:
    sandbox = Told((ENDED_WELL, {}))
    found = told(tmp_path, sandbox, masked=[Verdict.FAIL, Verdict.PASS, Verdict.FAIL], repeats=3)
    assert (found.verdict, found.masked) == (Verdict.FAIL, Verdict.PASS)
    assert [call for call in sandbox.calls if call.startswith("masked")] == ["masked/run-1", "masked/run-2"]


def test_one_restored_run_that_fails_is_a_mask_that_breaks_something(tmp_path: Path) -> None:
    sandbox = Told((ENDED_WELL, {}), restored=(ENDED_WELL, ended(1), ENDED_WELL))
    found = told(tmp_path, sandbox, repeats=3)
    assert (found.verdict, found.restored) == (Verdict.FAIL, Verdict.FAIL)
    assert "the restored repository's verdict is fail" in found.reason
    assert sandbox.calls[-1] == "restored/run-2"


def test_there_is_at_least_one_run_of_each(tmp_path: Path) -> None:
    sandbox = Told((ENDED_WELL, {}))
    assert told(tmp_path, sandbox, masked=[Verdict.FAIL], repeats=0).repeats == 1
    assert sandbox.calls == ["masked/run-1", "restored/run-1"]


def test_a_restored_tree_that_differs_fails_and_names_five_files(tmp_path: Path) -> None:
    builders.write_tree(tmp_path / "masked", {f"extra/{number}": b"" for number in range(7)})
    found = told(tmp_path, Told((ENDED_WELL, {})))
    assert found.verdict is Verdict.FAIL
    named = ", ".join(f"extra/{number}" for number in range(5))
    assert found.reason == f"the restored tree differs from the original: {named}"


def test_a_restored_tree_of_an_earlier_attempt_has_no_say(tmp_path: Path) -> None:
    builders.write_tree(tmp_path / "out" / "restored-tree", {"old": b""})
    assert told(tmp_path, Told((ENDED_WELL, {}))).verdict is Verdict.PASS


def test_the_restored_repository_is_judged_as_it_printed(tmp_path: Path) -> None:
    found = told(tmp_path, Told((ENDED_WELL, {})), restored=Verdict.UNKNOWN)
    assert (found.verdict, found.restored) == (Verdict.UNKNOWN, Verdict.UNKNOWN)
    assert found.reason == "the restored repository's verdict is unknown"


# --- differences of trees --------------------------------------------------------------------------------------------


def test_what_makes_two_trees_differ(tmp_path: Path) -> None:
    for name in ("one", "two"):
        builders.write_tree(tmp_path / name, {"same": b"1", "content": name.encode(), "kind": b"same"})
        (tmp_path / name / "link").symlink_to(name)
    (tmp_path / "two" / "kind").unlink()
    (tmp_path / "two" / "kind").symlink_to("same")
    builders.write_tree(tmp_path / "one", {"a/only here": b""})
    builders.write_tree(tmp_path / "two", {"only there": b""})
    both = ["a/only here", "content", "kind", "link", "only there"]
    assert tree_difference(tmp_path / "one", tmp_path / "two") == both
    assert tree_difference(tmp_path / "two", tmp_path / "one") == both
    assert tree_difference(tmp_path / "one", tmp_path / "two", ignore=frozenset(both[:4])) == ["only there"]
    assert tree_difference(tmp_path / "one", tmp_path / "one") == []
