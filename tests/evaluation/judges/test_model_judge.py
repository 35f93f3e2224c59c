from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.judges.judge import judge
from evaluation.judges.model_judge import agreement, majority
from evaluation.task import EvaluationTask
from evaluation.verdicts import Judgement
from pipeline.llm import ModelClient, ModelConfig, ModelError
from pipeline.llm.retry import RetryPolicy
from pipeline.progress import SilentReporter
from pipeline.task import Verdict
from tests.doubles.protocol_server import ErrorReply, Match, ProtocolServer, Turn
from tests.evaluation.integrity.episodes import Made
from tests.llm_fixtures import protocol_server  # noqa: F401

Serve = Callable[..., ProtocolServer]
QUOTES = {"design": "repetitions", "implementation": "def deviations", "conclusion": "Median is best"}
PLACES = {
    "design": "experimental design that",
    "implementation": "implemented an experiment",
    "conclusion": "judge the conclusion",
}


def _ids(task: EvaluationTask, dimension: str) -> list[str]:
    truth = task.truth
    assert truth is not None
    if dimension == "implementation":
        return [f"requirement:{n}" for n in range(1, len(truth.requirements) + 1)]
    if dimension == "conclusion":
        return ["conclusion:meaning"]
    return [
        "constant:n",
        "constant:repetitions",
        "constant:outlier",
        "independent:estimator",
        "independent:rate",
        "dependent:mean-squared-error",
    ]


def _turn(task: EvaluationTask, dimension: str, verdict: str = "met", times: int | None = None, **changes: Any) -> Turn:
    items = [
        {"item": item, "verdict": verdict, "quote": QUOTES[dimension], "reason": "because", **changes.get(item, {})}
        for item in _ids(task, dimension)
    ]
    return Turn(structured={"items": items}, match=Match(contains=PLACES[dimension]), times=times)


def _all(task: EvaluationTask, verdict: str = "met", times: int | None = None) -> list[Turn]:
    return [_turn(task, dimension, verdict, times) for dimension in QUOTES]


def _ask(
    task: EvaluationTask, root: Path, server: ProtocolServer, panel: int = 1, made: Made | None = None
) -> Judgement:
    folder, submission = (made or Made()).write(root)
    config = ModelConfig(model="judge-1", base_url=server.base_url, retry=RetryPolicy(attempts=1))
    with ModelClient(config) as client:
        return judge(task, folder, submission, client=client, panel=panel, reporter=SilentReporter())


def _verdicts(judgement: Judgement) -> list[Verdict]:
    """Of what the model is asked."""
    return [item.verdict for item in (*judgement.design, *judgement.implementation, judgement.conclusion[0])]


def test_whether_a_number_lies_in_its_band_is_never_asked(
    task: EvaluationTask,
    tmp_path: Path,
    protocol_server: Serve,  # noqa: F811
) -> None:
    made = Made()
    name = min(made.response["conclusion"]["numbers"])
    made.response["conclusion"]["numbers"][name] = 1e6
    server = protocol_server(*_all(task))
    judgement = _ask(task, tmp_path / "e", server, made=made)
    numbers = [item for item in judgement.conclusion if item.item not in {"conclusion:meaning", "conclusion:relations"}]
    assert {item.verdict for item in numbers} == {Verdict.PASS, Verdict.FAIL}, "the rules decided"
    asked = next(_text(request.body) for request in server.requests if PLACES["conclusion"] in _text(request.body))
    assert "conclusion:meaning" in asked
    assert not any(item.item in asked for item in numbers)


def test_a_patch_that_was_not_saved_is_unknown_and_not_asked_about(
    task: EvaluationTask,
    tmp_path: Path,
    protocol_server: Serve,  # noqa: F811
) -> None:
    folder, submission = Made().write(tmp_path / "e")
    (folder.submission / "patch.diff").unlink()
    config = ModelConfig(model="judge-1", base_url=(server := protocol_server(*_all(task))).base_url)
    with ModelClient(config) as client:
        changed = submission.evolve(patch_sha256="0" * 64)
        judgement = judge(task, folder, changed, client=client, panel=1, reporter=SilentReporter())
    assert {item.verdict for item in judgement.implementation} == {Verdict.UNKNOWN}
    assert not any(PLACES["implementation"] in _text(request.body) for request in server.requests)


def test_criteria_are_shown_whole(task: EvaluationTask, tmp_path: Path, protocol_server: Serve) -> None:  # noqa: F811
    assert task.truth is not None
    long = "The median wins. " * 60 + "At the very end the mean wins."
    truth = task.truth.evolve(expected=task.truth.expected.evolve(text=long))
    server = protocol_server(*_all(task))
    judgement = _ask(task.model_copy(update={"truth": truth}), tmp_path / "e", server)
    asked = next(_text(request.body) for request in server.requests if PLACES["conclusion"] in _text(request.body))
    assert long in asked
    assert judgement.conclusion[0].text == long


def test_verdicts_are_the_model_s_and_labelled(task: EvaluationTask, tmp_path: Path, protocol_server: Serve) -> None:  # noqa: F811
    judgement = _ask(task, tmp_path / "e", protocol_server(*_all(task)))
    assert set(_verdicts(judgement)) == {Verdict.PASS}
    assert (judgement.grader.engine, judgement.grader.model) == ("model", "judge-1")
    assert [name for name, _ in judgement.grader.prompts] == [
        "judge_design",
        "judge_implementation",
        "judge_conclusion",
    ]
    assert judgement.design[0].quote == "repetitions"


def test_a_quote_that_does_not_occur_makes_the_vote_unknown(
    task: EvaluationTask,
    tmp_path: Path,
    protocol_server: Serve,  # noqa: F811
) -> None:
    wrong = _turn(task, "design", **{"constant:n": {"quote": "n = 61 exactly"}})
    server = protocol_server(wrong, _turn(task, "implementation"), _turn(task, "conclusion"))
    judgement = _ask(task, tmp_path / "e", server)
    assert [item.verdict for item in judgement.design] == [Verdict.UNKNOWN, *[Verdict.PASS] * 5]
    assert any("quote" in problem.message and problem.where == "constant:n" for problem in judgement.problems)


def test_answers_that_leave_criteria_out_are_sent_back(
    task: EvaluationTask,
    tmp_path: Path,
    protocol_server: Serve,  # noqa: F811
) -> None:
    short = Turn(structured={"items": []}, match=Match(contains=PLACES["design"]), times=1)
    server = protocol_server(short, *_all(task))
    assert set(_verdicts(_ask(task, tmp_path / "e", server))) == {Verdict.PASS}
    assert len(server.requests) == 4


def test_a_panel_votes_and_each_draw_sees_another_order(
    task: EvaluationTask,
    tmp_path: Path,
    protocol_server: Serve,  # noqa: F811
) -> None:
    turns = [*_all(task, "met", 2), *_all(task, "not_met", 1)]
    server = protocol_server(*turns)
    judgement = _ask(task, tmp_path / "e", server, panel=3)
    assert judgement.grader.engine == "panel"
    assert set(_verdicts(judgement)) == {Verdict.PASS}
    assert all(item.votes == (Verdict.PASS, Verdict.PASS, Verdict.FAIL) for item in judgement.design)
    assert any("agree in 33%" in problem.message for problem in judgement.problems)
    orders = [
        tuple(re.findall(r"^(requirement:\d+): ", _text(request.body), re.MULTILINE))
        for request in server.requests
        if PLACES["implementation"] in _text(request.body)
    ]
    assert len(orders) == 3
    assert len(set(orders)) > 1
    assert len({frozenset(order) for order in orders}) == 1


def _text(body: Any) -> str:
    contents = [message["content"] for message in body["messages"]]
    return "\n".join(c if isinstance(c, str) else "\n".join(part.get("text", "") for part in c) for c in contents)


def test_an_endpoint_that_fails_is_unknown_never_not_met(
    task: EvaluationTask,
    tmp_path: Path,
    protocol_server: Serve,  # noqa: F811
) -> None:
    server = protocol_server(default=Turn(error=ErrorReply(status=503), times=None))
    judgement = _ask(task, tmp_path / "e", server)
    assert set(_verdicts(judgement)) == {Verdict.UNKNOWN}
    assert judgement.error_analysis == ()


def test_a_wrong_key_ends_the_step(task: EvaluationTask, tmp_path: Path, protocol_server: Serve) -> None:  # noqa: F811
    server = protocol_server(default=Turn(error=ErrorReply(status=401), times=None))
    with pytest.raises(ModelError):
        _ask(task, tmp_path / "e", server)


def test_differences_from_the_keyless_judge_are_said(
    task: EvaluationTask,
    tmp_path: Path,
    protocol_server: Serve,  # noqa: F811
) -> None:
    judgement = _ask(task, tmp_path / "e", protocol_server(*_all(task, "not_met")))
    assert any("differs from the keyless judge on 6 of 6" in problem.message for problem in judgement.problems)


@given(st.lists(st.sampled_from(list(Verdict)), max_size=9))
def test_majority_is_more_than_half_and_ignores_order(votes: list[Verdict]) -> None:
    verdict = majority(votes)
    assert verdict is majority(votes[::-1])
    if verdict is not Verdict.UNKNOWN:
        assert votes.count(verdict) * 2 > len(votes)
    elif votes:
        assert all(votes.count(other) * 2 <= len(votes) for other in (Verdict.PASS, Verdict.FAIL))


def test_agreement() -> None:
    yes, no = Verdict.PASS, Verdict.FAIL
    assert agreement([(yes, yes, no), (no, no, no)]) == 4 / 6
    assert agreement([(yes,), ()]) is None
