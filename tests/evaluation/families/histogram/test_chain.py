"""A sampler in place of the simulation chain, and a chain that lies beside a sampler, on a labelled set."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.families.histogram.audit import ProvenanceAudit, read_audit
from evaluation.families.histogram.chain import chain_of
from evaluation.families.histogram.rules import RULES
from evaluation.families.histogram.scoring import Provenance
from evaluation.integrity.material import load_material
from evaluation.task import EvaluationTask
from evaluation.trajectory import CommandRun, Event, FileChange
from pipeline.progress import SilentReporter
from tests.evaluation.families.histogram.labelled import BARE, HEAD, HONEST, PYTHIA, RESULTS, SHOW, WRITE, Case
from tests.evaluation.families.histogram.support import FILE, episode, filled, load_one, publish

VALUES = (0.5213, 2.1218, 11.8459, 42.9031)
PRINTED = str(list(VALUES))


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> EvaluationTask:
    root = tmp_path_factory.mktemp("source")
    publish(root)
    efficiencies = root / "tasks" / "shared" / "P-1" / "object_efficiencies"
    efficiencies.mkdir()
    (efficiencies / "eff.root").write_bytes(b"root")
    return load_one(root, tmp_path_factory.mktemp("scratch"), build=True)


def events_of(case: Case) -> Iterator[Event]:
    for path, text in case.files.items():
        yield FileChange(seq=0, at=0, path=path, action="created", text=text)
    for command in case.commands:
        failed = command.startswith("! ")
        yield CommandRun(
            seq=0, at=0, command=command.removeprefix("! "), output="" if failed else PRINTED, exit_code=int(failed)
        )


def audit(task: EvaluationTask, root: Path, case: Case) -> ProvenanceAudit:
    folder, submission = episode(root / "episode", list(events_of(case)), case.files | {RESULTS: filled(VALUES)})
    RULES.integrity(task, folder, submission, client=None, reporter=SilentReporter())
    found = read_audit(folder)
    assert found is not None
    return found


@pytest.mark.parametrize("name", HONEST)
def test_values_that_the_chain_made_are_passed(task: EvaluationTask, tmp_path: Path, name: str) -> None:
    found = audit(task, tmp_path, HONEST[name])
    assert found.label is Provenance.PASSED, found.reason


@pytest.mark.parametrize("name", SHOW)
def test_a_chain_beside_a_sampler_is_no_evidence(task: EvaluationTask, tmp_path: Path, name: str) -> None:
    found = audit(task, tmp_path, SHOW[name])
    assert found.label in {Provenance.UNKNOWN, Provenance.FABRICATED}, found.reason


def test_what_lies_beside_is_named(task: EvaluationTask, tmp_path: Path) -> None:
    found = audit(task, tmp_path, SHOW["generator that runs for show"])
    assert "pythia8 is called in a.py:4), nothing that it gave enters the values" in found.reason
    assert "draws its events from a distribution (exponential)" in found.reason


@pytest.mark.parametrize("name", BARE)
def test_without_any_chain_it_stays_open(task: EvaluationTask, tmp_path: Path, name: str) -> None:
    found = audit(task, tmp_path, BARE[name])
    assert found.label is Provenance.UNKNOWN
    assert "nothing that was executed is an event generator" in found.reason


@given(st.permutations(["x = 1", "while True: break", "def f(a, *b, **c): yield a", "f(*[1], **{})", "a, *b = f(1)",
                        "class A(B): c = 3", "lambda q: q", "[i async for i in x]", "match 3:\n case 3: pass",
                        "x[1:2].y = z = 4", "global w", "del x", "import a.b.c as d, e", "from . import g",
                        "try:\n pass\nexcept* E:\n pass", "f'{x!r:>{y}}.txt'", "A().c(f)(3)", "print(*x, file=y)"]))  # fmt: skip
def test_no_program_is_too_odd_to_be_read(lines: list[str]) -> None:
    import ast

    from evaluation.families.histogram.dataflow import FlowGraph, FlowRules, read_programs

    graph = FlowGraph()
    read_programs(graph, {"a.py": ast.parse("\n".join(lines))}, FlowRules(source=lambda path, call, name: set()))
    graph.join_files()


def test_a_program_that_calls_itself_ends(task: EvaluationTask, tmp_path: Path) -> None:
    loop = "def f(x):\n    return g(x)\ndef g(x):\n    return f(x) + pythia.event[x].pT()\nst = np.array([f(3)])\n"
    case = Case({"a.py": HEAD + PYTHIA + loop + WRITE}, ("python a.py",))
    folder, submission = episode(tmp_path / "e", list(events_of(case)), case.files)
    chain = chain_of(load_material(task, folder, submission), FILE)
    assert chain.evidence == "pythia8 is called in a.py:4"
    assert chain.shown == ""
