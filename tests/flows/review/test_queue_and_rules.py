"""Which tasks wait, in which order, and approval by an explicit rule."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.review import Answer, approve_by_rule, decide, parse_rule, queue_of
from flows.review.rules import MEASURES
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.task import LeakHit, Status
from tests.flows.review.support import candidate, review_workspace


def test_the_most_doubtful_come_first_with_reasons(tmp_path: Path) -> None:
    leaky = candidate("paper-c-leaky")
    assert leaky.leaks is not None
    hit = LeakHit(kind="near_duplicate", where="old.py", detail="holds 40 %", score=0.7)
    workspace = review_workspace(
        tmp_path / "work",
        candidate("paper-a-sound"),
        candidate("paper-b-flaky", flakiness=0.5),
        leaky.evolve(leaks=leaky.leaks.evolve(hits=(hit,))),
        candidate("paper-d-doubtful", confidence=0.2),
        candidate("paper-e-once", flakiness=None),
        candidate("paper-f-gone").evolve(status=Status.REJECTED),
    )
    queue = queue_of(workspace)
    assert [entry.task for entry in queue] == [
        "paper-d-doubtful", "paper-c-leaky", "paper-b-flaky", "paper-e-once", "paper-a-sound",
    ]  # fmt: skip
    assert queue[-1].risk == 0
    reasons = {entry.task: entry.reasons for entry in queue}
    assert reasons["paper-c-leaky"] == ("1 leak hit(s) below blocking, the strongest 0.70",)
    assert "flaky" in reasons["paper-b-flaky"][0]
    assert "unknown" in reasons["paper-e-once"][0]


def test_a_rule_approves_what_it_holds_for_and_says_so(tmp_path: Path) -> None:
    workspace = review_workspace(tmp_path / "work", candidate("paper-a"), candidate("paper-b", confidence=0.5))
    applied, waiting = approve_by_rule(workspace, parse_rule(" confidence >= 0.9, flakiness=0,leak_hits=0 "))
    assert (applied, waiting) == (["paper-a"], ["paper-b"])
    [review] = workspace.load_task("paper-a").reviews
    assert review.reviewer == "rule: confidence>=0.9, flakiness=0, leak_hits=0"
    assert workspace.load_task("paper-b").reviews == ()


def test_what_is_unknown_fulfils_no_rule(tmp_path: Path) -> None:
    workspace = review_workspace(tmp_path / "work", candidate("paper-a", flakiness=None))
    for text in ("flakiness=0", "flakiness<=1", "flakiness>=0"):
        assert approve_by_rule(workspace, parse_rule(text)) == ([], ["paper-a"])


def test_a_rule_does_not_overrule_a_person(tmp_path: Path) -> None:
    workspace = review_workspace(tmp_path / "work", candidate("paper-a"))
    decide(workspace, "paper-a", Answer(decision="reject", reviewer="Ada", comment="no"))
    assert approve_by_rule(workspace, parse_rule("confidence>=0")) == ([], [])
    assert workspace.load_task("paper-a").status is Status.REJECTED


@pytest.mark.parametrize(
    "text", ["", ",", "confidence", "confidence>=", "beauty>1", "confidence>=nan", "risk<1;x", "a=b"]
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ExpbenchError, match="is not a condition") as caught:
        parse_rule(text)
    assert caught.value.kind is FailureKind.USAGE


condition = st.tuples(
    st.sampled_from(MEASURES), st.sampled_from([">=", "<=", ">", "<", "="]), st.integers(0, 1000).map(lambda n: n / 100)
)


@given(st.lists(condition, min_size=1, max_size=5))
def test_a_rule_is_read_back_from_how_it_is_recorded(conditions: list[tuple[str, str, float]]) -> None:
    rule = parse_rule(", ".join(f"{name} {relation} {value}" for name, relation, value in conditions))
    assert rule.conditions == tuple(conditions)
    assert parse_rule(str(rule)) == rule
