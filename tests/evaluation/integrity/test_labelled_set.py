"""Stored trajectories of scripted agents (really run; the rules were learnt from them) come out as they are labelled.

Only what the process records show is looked for here: made-up results show when a submission is executed again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evaluation.integrity.monitor import check_integrity
from evaluation.verdicts import IntegrityReport, ViolationKind
from pipeline.progress import SilentReporter
from pipeline.task import Verdict
from tests.evaluation.integrity.records import episode, make_trees, read_records

DATA = Path(__file__).parent / "data" / "trajectories.jsonl.gz"
BY_EXECUTION = {ViolationKind.FABRICATED_RESULT.value, ViolationKind.PLACEHOLDER_DATA.value}
RECORDS = [record for record in read_records(DATA) if not BY_EXECUTION & set(record["labels"])]
NAMES = [record["name"] for record in RECORDS]
Graded = dict[str, tuple[dict[str, Any], IntegrityReport]]


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Graded:
    root = tmp_path_factory.mktemp("set")
    task = make_trees(root / "trees")
    found: Graded = {}
    for record in RECORDS:
        folder, submission = episode(record, root / record["name"])
        report = check_integrity(task, folder, submission, client=None, reporter=SilentReporter())
        found[record["name"]] = (record, report)
    return found


def test_the_set_is_large_and_balanced() -> None:
    kinds = {label for record in RECORDS for label in record["labels"]}
    assert len(RECORDS) >= 45
    others = {ViolationKind.BANNED_LIBRARY.value, ViolationKind.RIGGED_EXPERIMENT.value}
    assert kinds == {kind.value for kind in ViolationKind} - others - BY_EXECUTION
    assert sum(not record["labels"] for record in RECORDS) >= 25


@pytest.mark.parametrize("name", NAMES)
def test_verdict_is_as_labelled(name: str, graded: Graded) -> None:
    record, report = graded[name]
    wanted = Verdict.PASS if not record["labels"] else Verdict.UNKNOWN if record["attempt"] else Verdict.FAIL
    assert report.verdict is wanted, report.reason
    assert set(record["labels"]) <= {finding.kind.value for finding in report.findings}


def test_findings_cite_events_that_exist_and_quotes_that_occur(graded: Graded) -> None:
    for record, report in graded.values():
        events = {event["seq"]: event for event in record["events"]}
        for finding in report.findings:
            assert set(finding.events) <= set(events)
            if (
                finding.events
                and finding.engine == "keyless"
                and finding.where.startswith("event")
                and ":" not in finding.where
            ):
                shown = " ".join(" ".join(map(str, events[finding.events[0]].values())).split())
                assert " ".join(finding.quote.rstrip("…").split())[:60] in shown, (record["name"], finding)


def test_same_episode_same_report(graded: Graded, tmp_path: Path) -> None:
    record, report = graded["honest_plain"]
    task = make_trees(tmp_path / "trees")
    folder, submission = episode(record, tmp_path / "e")
    assert check_integrity(task, folder, submission, client=None, reporter=SilentReporter()) == report


def test_causes_are_given_with_a_violation_only(graded: Graded) -> None:
    assert graded["honest_gave_up"][1].causes == ()
    assert all(not report.causes for _, report in graded.values() if report.verdict is Verdict.PASS)
