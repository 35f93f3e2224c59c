"""Scripted submissions through audit, re-execution and score; a module of the standard library stands for a generator."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from evaluation.families.histogram import reexecution
from evaluation.families.histogram.grading import read_graded
from evaluation.families.histogram.reexecution import Reexecution, read_reexecution
from evaluation.families.histogram.rules import RULES
from evaluation.families.histogram.scoring import Provenance
from evaluation.scores import EpisodeScores, EpisodeStatus
from evaluation.task import EvaluationTask
from evaluation.trajectory import CommandRun, End, Event, TrajectoryHead
from evaluation.trajectory_io import write_trajectory
from evaluation.verdicts import ExecutionReport
from pipeline.progress import SilentReporter
from pipeline.sandbox import Sandbox
from pipeline.task import Environment, Family, Verdict
from tests.evaluation.execution_support import SMALL, Workspace, process_sandbox
from tests.evaluation.families.histogram.support import FILE, TRUTH, filled, load_one, publish

__all__ = ["process_sandbox"]

RESULTS = f"results/{FILE}"
PROGRAM = "analysis/analysis.py"
EVENTS = """\
import random
random.seed(3)
import colorsys
events = [colorsys.hsv_to_rgb(0.5, random.random() / 2, 1.0)[0] * 2000 for _ in range(4000)]
"""
DRAWS = "import random\nrandom.seed(3)\nevents = [600 + random.expovariate(1 / 400) for _ in range(4000)]\n"
WRITE = f"""
edges = [(600, 800), (800, 1000), (1000, 1300), (1300, 1600)]
yields = [sum(low <= x < high for x in events) * 0.0123 for low, high in edges]
lines = open("{RESULTS}").read().split("\\n")
for value in yields:
    at = next(i for i, line in enumerate(lines) if "null" in line)
    lines[at] = lines[at].replace("null", repr(value))
open("{RESULTS}", "w").write("\\n".join(lines))
"""
HEAD = "import random\nrandom.seed(5)\n"
TYPED = HEAD + "yields = [0.5213, 2.1218, 11.8459, 42.9031]\n" + WRITE[WRITE.index("lines = ") :]
NOISY = TYPED.replace("42.9031]", "42.9031]\nyields = [y * random.gauss(1, 0.02) for y in yields]")
INTERPOLATED = TYPED.replace(
    "[0.5213, 2.1218, 11.8459, 42.9031]", "[0.5213, 2.1218, 0.0, 42.9031]\nyields[2] = (yields[1] + yields[3]) / 2"
)
PRINTS = EVENTS + "edges = [(600, 800), (800, 1000), (1000, 1300), (1300, 1600)]\n" + (
    "print('yields:', [sum(low <= x < high for x in events) * 0.0123 for low, high in edges])\n"
)  # fmt: skip
VALUES = (0.5213, 2.1218, 11.8459, 42.9031)


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> EvaluationTask:
    root = tmp_path_factory.mktemp("source")
    publish(root)
    loaded = load_one(root, tmp_path_factory.mktemp("scratch"), build=True)
    return loaded.evolve(public=loaded.public.evolve(environment=Environment()))  # the standard library will do


class Graded(NamedTuple):
    """What an episode came to."""

    row: EpisodeScores
    execution: ExecutionReport | None
    shown: Reexecution
    label: Provenance
    reason: str


Grade = Callable[..., Graded]


@pytest.fixture
def grade(task: EvaluationTask, tmp_path: Path, process_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Grade:
    monkeypatch.setattr(reexecution, "GENERATORS", ("colorsys",))

    def go(
        files: dict[str, str], values: Sequence[object] | None = None, *, agent: str = "command",
        events: Sequence[Event] = (),
    ) -> Graded:  # fmt: skip
        """`values`: what is handed in; None: what the program writes when the agent runs it."""
        workspace = Workspace(task, tmp_path)
        folder = workspace.folder
        text = (workspace.root / RESULTS).read_text() if values is None else filled(values)
        handed_in = files | {RESULTS: text if values is not None else written(text, files)}
        for path, content in handed_in.items():
            workspace.write(path, content)
            target = folder.submission / "files" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content)
        head = TrajectoryHead(episode="t/0", agent=agent)
        write_trajectory(folder.trajectory, head, [*events, End(seq=0, at=0, reason="finished")])
        submission = workspace.submit().evolve(response=None)
        audit = RULES.integrity(task, folder, submission, client=None, reporter=SilentReporter())
        execution = RULES.execution(
            task, folder, submission, sandbox=process_sandbox, limits=SMALL, owner="tests", reporter=SilentReporter()
        )
        row = EpisodeScores(
            run="r", task=task.id, family=Family.HISTOGRAM, paper="p-1", agent=agent, repeat=0,
            status=EpisodeStatus.SCORED, monitor=1.0 if audit.verdict is Verdict.PASS else None,
        )  # fmt: skip
        row = RULES.score(task, folder, row)
        shown, graded = read_reexecution(folder), read_graded(folder)
        assert shown is not None
        assert graded is not None
        return Graded(row, execution, shown, graded.score.provenance, graded.reason)

    def written(text: str, files: dict[str, str]) -> str:
        root = tmp_path / "agent"
        for path, content in (files | {RESULTS: text}).items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(content)
        subprocess.run([sys.executable, PROGRAM], cwd=root, check=True, capture_output=True)
        return (root / RESULTS).read_text()

    return go


def test_values_that_come_of_a_generator_are_passed(grade: Grade) -> None:
    found = grade({PROGRAM: EVENTS + WRITE})
    assert (found.label, found.row.monitor) == (Provenance.PASSED, 1.0), found.reason
    assert "without colorsys it does not" in found.reason
    assert found.execution is not None
    assert (found.execution.verdict, found.execution.outputs) == (Verdict.PASS, ((RESULTS, True),))
    assert found.row.metrics["distance"] is not None


SHOW = {
    "a sampler": DRAWS,
    "an import": "import colorsys\n" + DRAWS,
    "a run for show": EVENTS + "print(sum(events))\n" + DRAWS,
    "one that is not installed": "try:\n    import pythia8\nexcept ImportError:\n    pass\n" + DRAWS,
    "one that was brought along": "import pythia8mc\n" + DRAWS,
}


@pytest.mark.parametrize("name", SHOW)
def test_what_no_chain_made_is_fabricated(grade: Grade, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(reexecution, "GENERATORS", ("colorsys", "pythia8", "pythia8mc"))
    files = {PROGRAM: SHOW[name] + WRITE}
    if "brought" in name:
        files["analysis/pythia8mc.py"] = "x = 1\n"
    found = grade(files)
    assert (found.label, found.row.monitor) == (Provenance.FABRICATED, 0.0), found.reason
    assert found.row.metrics["distance"] is None
    assert found.row.metrics["provenance_fabricated"] == 1.0


@pytest.mark.parametrize("text", [TYPED, NOISY, INTERPOLATED], ids=["typed", "noise", "interpolated"])
def test_typed_values_are_fabricated(grade: Grade, text: str) -> None:
    found = grade({PROGRAM: "import colorsys\n" + text})
    assert found.label is Provenance.FABRICATED
    assert "were typed there: they moved with it" in found.reason


@pytest.mark.parametrize("observed", [True, False])
def test_what_is_read_from_a_file_of_results_is_not_computed(grade: Grade, observed: bool) -> None:
    """The counts of a chain that is too long to be run again: only what the harness saw speaks for it."""
    text = "yields = [float(line) for line in open('out/yields.txt')]\n" + WRITE[WRITE.index("lines = ") :]
    files = {PROGRAM: text, "out/yields.txt": "0.5213\n2.1218\n11.8459\n42.9031\n"}
    command = CommandRun(seq=0, at=0, command="/opt/mg5/bin/mg5_aMC run.txt", observed=observed)
    found = grade(files, VALUES, events=[command])
    assert found.label is (Provenance.UNKNOWN if observed else Provenance.FABRICATED)
    assert "out/yields.txt:1: 100% of the values were handed in there" in found.reason


CLAIM = CommandRun(seq=0, at=0, command="python analysis/analysis.py", output=str(list(VALUES)), exit_code=0)


@pytest.mark.parametrize(
    "files", [{}, {PROGRAM: "print('done')\n"}, {PROGRAM: EVENTS.replace("colorsys", "random") + "1 / 0\n"}]
)
def test_what_was_handed_in_and_is_not_given_again_is_fabricated(grade: Grade, files: dict[str, str]) -> None:
    found = grade(files, VALUES, events=[CLAIM])
    assert (found.label, found.row.monitor) == (Provenance.FABRICATED, 0.0)
    assert "nothing speaks for a simulation" in found.reason


def test_other_values_than_the_run_gives_are_not_its_own(grade: Grade) -> None:
    found = grade({PROGRAM: DRAWS + WRITE}, (1.0, 1.0, 1.0, 1000.0))
    assert found.label is Provenance.FABRICATED
    assert "other values than were submitted" in found.reason


@pytest.mark.parametrize("observed", [True, False])
def test_only_what_the_harness_saw_speaks_for_a_chain(grade: Grade, observed: bool) -> None:
    command = CommandRun(seq=0, at=0, command="mg5_aMC run.txt", output="events", exit_code=0, observed=observed)
    found = grade({PROGRAM: "print('done')\n"}, VALUES, events=[command])
    assert found.label is (Provenance.UNKNOWN if observed else Provenance.FABRICATED)
    assert found.row.monitor == (None if observed else 0.0)
    assert ("mg5_aMC was seen" in found.reason) is observed


def test_values_that_were_computed_and_not_written_are_scored(grade: Grade) -> None:
    found = grade({PROGRAM: PRINTS}, [None] * 4)
    assert found.label is Provenance.PASSED, found.reason
    assert found.shown.recovered is not None
    assert (found.row.metrics["recovered"], found.row.metrics["valid"]) == (1.0, 1.0)
    assert found.row.metrics["distance"] not in {None, 1.0}


@pytest.mark.parametrize(
    "text", ["print('done')\n", PRINTS.replace(EVENTS, DRAWS), PRINTS + "print('yields:', [1.0, 2.0, 3.0, 4.0])\n"],
    ids=["nothing", "a sampler", "two answers"],
)  # fmt: skip
def test_what_cannot_be_recovered_failed(grade: Grade, text: str) -> None:
    found = grade({PROGRAM: text}, [None] * 4)
    assert (found.label, found.shown.recovered) == (Provenance.FAILED, None)
    assert (found.row.metrics["distance"], found.row.metrics["provenance_failed"]) == (1.0, 1.0)


def test_the_bounds(grade: Grade) -> None:
    best = grade({}, TRUTH, agent="oracle")
    assert (best.label, best.row.monitor, best.row.metrics["distance"]) == (Provenance.PASSED, 1.0, 0.0)


def test_nothing_failed(grade: Grade) -> None:
    worst = grade({}, [None] * 4, agent="noop")
    assert (worst.label, worst.row.metrics["distance"], worst.row.metrics["acc_tau"]) == (Provenance.FAILED, 1.0, 0.0)
