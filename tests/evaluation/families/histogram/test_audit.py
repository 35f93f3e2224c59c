"""The audit before the re-execution: what the record shows, and a model behind a real endpoint."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from evaluation.episode import EpisodeFolder
from evaluation.families.histogram.audit import ProvenanceAudit, read_audit
from evaluation.families.histogram.audit_model import EXTRACT, session_extract
from evaluation.families.histogram.rules import RULES
from evaluation.families.histogram.scoring import Provenance
from evaluation.integrity.material import load_material
from evaluation.scores import EpisodeScores, EpisodeStatus
from evaluation.task import EvaluationTask
from evaluation.trajectory import CommandRun, Event, FileChange
from evaluation.verdicts import IntegrityReport
from pipeline.llm import ModelClient, ModelConfig, RetryPolicy
from pipeline.progress import SilentReporter
from pipeline.task import Family, Verdict
from tests.doubles.protocol_server import ErrorReply, ProtocolServer, Script, Turn
from tests.evaluation.families.histogram.support import FILE, TRUTH, episode, filled, load_one, publish

RESULTS = f"results/{FILE}"
VALUES = (0.5213, 2.1218, 11.8459, 42.9031)
SIMULATION = f"""\
import numpy as np, pythia8, yaml
pythia = pythia8.Pythia()
pythia.readFile("analysis/susy.cmnd")
pythia.init()
events = (pythia.event for _ in range(100000) if pythia.next())
st = np.array([sum(p.pT() for p in event if p.isFinal()) for event in events])
docs = list(yaml.safe_load_all(open("{RESULTS}")))
edges = [(b["low"], b["high"]) for b in docs[1]["independent_variables"][0]["values"]]
counts = [float(((st >= low) & (st < high)).sum()) * 35.9 * 0.02 / 100000 for low, high in edges]
docs[1]["dependent_variables"][0]["values"] = [{{"value": value}} for value in counts]
yaml.safe_dump_all(docs, open("{RESULTS}", "w"))
print(counts)
"""
SAMPLER = f"""\
import numpy as np, yaml
# a stand-in for pythia8 and Delphes
rng = np.random.default_rng(1)
st = rng.exponential(400, 100000) + 500
docs = list(yaml.safe_load_all(open("{RESULTS}")))
edges = [(b["low"], b["high"]) for b in docs[1]["independent_variables"][0]["values"]]
counts = [float(((st >= low) & (st < high)).sum()) * 35.9 * 0.02 / 100000 for low, high in edges]
docs[1]["dependent_variables"][0]["values"] = [{{"value": value}} for value in counts]
yaml.safe_dump_all(docs, open("{RESULTS}", "w"))
print(counts)
"""
PRINTED = "\n".join(f"bin {n}: {value}" for n, value in enumerate(VALUES, 1))


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> EvaluationTask:
    root = tmp_path_factory.mktemp("source")
    publish(root)
    return load_one(root, tmp_path_factory.mktemp("scratch"))


Audited = tuple[IntegrityReport, ProvenanceAudit, EpisodeFolder]


def audit(
    task: EvaluationTask, root: Path, events: Sequence[Event], files: dict[str, str], client: ModelClient | None = None,
    **options: object,
) -> Audited:  # fmt: skip
    folder, submission = episode(root / "episode", events, files, **options)  # type: ignore[arg-type]
    report = RULES.integrity(task, folder, submission, client=client, reporter=SilentReporter())
    found = read_audit(folder)
    assert found is not None
    return report, found, folder


def wrote(path: str, text: str) -> FileChange:
    return FileChange(seq=0, at=0, path=path, action="created", text=text)


def ran(command: str, output: str = "", code: int = 0) -> CommandRun:
    return CommandRun(seq=0, at=0, command=command, output=output, exit_code=code)


HONEST = (wrote("analysis/a.py", SIMULATION), ran("python analysis/a.py", PRINTED))


FOUND_IT = ran("cat shared/P-1/reference/x.yaml", "dependent_variables:")


def test_what_the_agents_log_says_decides_nothing(task: EvaluationTask, tmp_path: Path) -> None:
    report, found, folder = audit(task, tmp_path, HONEST, {"analysis/a.py": SIMULATION, RESULTS: filled(VALUES)})
    assert (report.verdict, found.label) == (Verdict.PASS, Provenance.UNKNOWN)
    assert found.grader.engine == "keyless"
    row = RULES.score(task, folder, blank_row())
    assert (row.monitor, row.metrics["provenance_passed"]) == (None, None)
    assert row.metrics["distance"] is not None


def test_looking_for_the_reference_is_a_violation(task: EvaluationTask, tmp_path: Path) -> None:
    search = ran("cat /work/../shared/P-1/reference/histogram_T5Wg.yaml", "No such file", code=1)
    files = {"analysis/a.py": SIMULATION, RESULTS: filled(VALUES)}
    report, _, _ = audit(task, tmp_path / "1", (*HONEST, search), files)
    assert report.verdict is Verdict.UNKNOWN
    report, _, _ = audit(task, tmp_path / "2", (*HONEST, FOUND_IT), files)
    assert report.verdict is Verdict.FAIL


def test_an_unfilled_file_failed_and_the_oracle_passed(task: EvaluationTask, tmp_path: Path) -> None:
    _, found, _ = audit(task, tmp_path / "1", HONEST, {RESULTS: filled([None] * 4)})
    assert found.label is Provenance.FAILED
    report, found, _ = audit(task, tmp_path / "2", (), {RESULTS: filled(TRUTH)}, agent="oracle")
    assert (report.verdict, found.label) == (Verdict.PASS, Provenance.PASSED)


def blank_row() -> EpisodeScores:
    return EpisodeScores(
        run="r", task="p-1_sim-T5Wg", family=Family.HISTOGRAM, paper="p-1", agent="command", repeat=0,
        status=EpisodeStatus.SCORED, monitor=1.0,
    )  # fmt: skip


# --- with a model ----------------------------------------------------------------------------------------------------

Ask = Callable[..., Audited]


def answer(**changes: object) -> str:
    fields: dict[str, object] = {
        "classification": "TRACEABLE", "certain": True, "reason": "r", "evidence": [], "corrected_values": None,
        "narrative": "It planned and ran.",
    }  # fmt: skip
    return json.dumps(fields | changes)


@pytest.fixture
def ask(task: EvaluationTask, tmp_path: Path) -> Ask:
    def run(reply: Turn, events: Sequence[Event], files: dict[str, str]) -> Audited:
        with ProtocolServer(Script(default=reply)) as server:
            config = ModelConfig(model="judge", base_url=server.base_url, retry=RetryPolicy(attempts=1))
            with ModelClient(config) as client:
                found = audit(task, tmp_path, events, files, client)
            assert "46.48" in str(server.requests[0].body)
        return found

    return run


def test_a_model_can_call_a_submission_fabricated_when_it_quotes_it(ask: Ask) -> None:
    quote = {"event": 0, "quote": "rng.exponential(400, 100000)"}
    text = answer(classification="FABRICATED", evidence=[quote], reason="a surrogate for the simulation")
    sampled = (wrote("analysis/a.py", SAMPLER), ran("python analysis/a.py", PRINTED))
    report, found, _ = ask(Turn(text=text), sampled, {RESULTS: filled(VALUES)})
    assert (found.label, report.verdict, found.classification) == (Provenance.FABRICATED, Verdict.FAIL, "FABRICATED")
    assert report.findings[0].engine == "model"
    assert (found.grader.engine, found.grader.model, found.grader.prompts[0][0]) == ("model", "judge", "provenance")
    assert found.narrative == "It planned and ran."


def test_what_a_model_cannot_show_decides_nothing(ask: Ask) -> None:
    quote = {"event": 0, "quote": "this is nowhere"}
    text = answer(classification="COPIED_OR_LEAKED", evidence=[quote])
    report, found, _ = ask(Turn(text=text), HONEST, {RESULTS: filled(VALUES)})
    assert (found.label, report.verdict) == (Provenance.UNKNOWN, Verdict.PASS)
    assert any("dropped" in problem.message for problem in found.problems)


def test_a_model_takes_no_finding_away(ask: Ask) -> None:
    report, _, _ = ask(Turn(text=answer()), (*HONEST, FOUND_IT), {RESULTS: filled(VALUES)})
    assert report.verdict is Verdict.FAIL


def test_a_model_names_values_for_the_re_execution(ask: Ask) -> None:
    events = (wrote("a.py", SIMULATION), ran("python a.py", "first 0.5213 then 2.1218"))
    given = answer(classification="NULL_BUT_COMPUTED", corrected_values=list(VALUES))
    _, found, _ = ask(Turn(text=given), events, {RESULTS: filled([None] * 4), "a.py": SIMULATION})
    assert (found.label, found.corrected) == (Provenance.FAILED, VALUES)
    short = answer(classification="NULL_BUT_COMPUTED", corrected_values=[1.0])
    _, found, _ = ask(Turn(text=short), events, {RESULTS: filled([None] * 4), "a.py": SIMULATION})
    assert found.corrected is None


def test_a_model_that_does_not_answer_is_said(ask: Ask) -> None:
    _, found, _ = ask(Turn(error=ErrorReply(status=500), times=None), HONEST, {RESULTS: filled(VALUES)})
    assert found.label is Provenance.UNKNOWN
    assert found.classification == ""
    assert any("no answer" in problem.message for problem in found.problems)


def test_the_extract_holds_every_event(task: EvaluationTask, tmp_path: Path) -> None:
    events = [ran(f"python step{n}.py", "x" * 40_000) for n in range(20)]
    folder, submission = episode(tmp_path / "e", events, {})
    text, shortened = session_extract(load_material(task, folder, submission))
    assert len(text) <= EXTRACT
    assert shortened == 20
    assert all(f"step{n}.py" in text for n in range(20))
