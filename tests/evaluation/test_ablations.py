"""What an ablation leaves out, and what a model that never saw the repository is asked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.ablations import Ablation, ablate, parse_ablation, units
from evaluation.closed_book import probe_closed_book
from evaluation.task import EvaluationTask
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.task import Band, NumericClaim, Verdict
from tests.doubles.protocol_server.turns import text as say
from tests.evaluation.execution_support import public_task, truth
from tests.llm_fixtures import Connect, Serve, connect, no_ambient_model, protocol_server

__all__ = ["connect", "no_ambient_model", "protocol_server"]

TASK = EvaluationTask(public=public_task(), truth=truth())


def test_half_of_the_method_is_left_out() -> None:
    found = ablate(TASK, parse_ablation("method:0.5"))
    assert found.total == 8
    assert len(found.omitted) == 4
    whole = TASK.public.method + TASK.public.agent_instructions
    left = found.task.public.method + found.task.public.agent_instructions
    assert all(text in whole and text not in left for _, text in found.omitted)
    assert found.task.public.question == TASK.public.question


def test_the_draw_depends_on_seed_and_task_only() -> None:
    assert ablate(TASK, Ablation(share=0.5)) == ablate(TASK, Ablation(share=0.5))
    draws = {ablate(TASK, Ablation(share=0.5, seed=seed)).omitted for seed in range(8)}
    assert len(draws) > 1
    other = TASK.evolve(public=public_task(id="paper-other"))
    assert any(
        ablate(TASK, Ablation(share=0.5, seed=seed)).omitted != ablate(other, Ablation(share=0.5, seed=seed)).omitted
        for seed in range(8)
    )


@pytest.mark.parametrize("text", ["method", "method:", "method:0", "method:1.5", "method:nan", "question:0.5", ""])
def test_what_is_no_ablation_is_refused(text: str) -> None:
    with pytest.raises(ExpbenchError) as caught:
        parse_ablation(text)
    assert caught.value.kind is FailureKind.USAGE


@given(st.text(alphabet="abc AB.\n-*1) é", max_size=120), st.floats(min_value=0.01, max_value=1.0))
def test_units_cover_the_text_and_omissions_take_nothing_else(text: str, share: float) -> None:
    covered = [text[start:end] for start, end in units(text)]
    assert "".join("".join(covered).split()) == "".join(text.split())
    task = EvaluationTask(public=public_task(method=text, agent_instructions=""))
    found = ablate(task, Ablation(share=share))
    gone = sum(len("".join(unit.split())) for _, unit in found.omitted)
    assert len("".join(found.task.public.method.split())) == len("".join(text.split())) - gone


def claim(id_: str, value: float) -> NumericClaim:
    band = Band(low=value - 0.005, high=value + 0.005, source="printed")
    return NumericClaim(id=id_, metric="score", value=value, text=str(value), decimals=2, band=band)


def test_closed_book_answers_are_held_against_the_bands(protocol_server: Serve, connect: Connect) -> None:
    expected = truth().expected.evolve(claims=(claim("c1", 0.75), claim("c2", 0.5), claim("c3", 0.9)))
    task = TASK.evolve(truth=truth().evolve(expected=expected))
    answer = (
        '{"remembered": true, "conclusion": "Rule A wins.", "numbers": [{"id": "c1", "value": 0.751},'
        ' {"id": "c2", "value": 0.75}, {"id": "c9", "value": 1.0}]}'
    )
    server = protocol_server(say(answer))
    probe = probe_closed_book(task, connect(server))
    assert probe.grader.engine == "model"
    assert probe.grader.prompts[0][0] == "closed_book"
    assert probe.numbers == (("c1", 0.751, Verdict.PASS), ("c2", 0.75, Verdict.FAIL), ("c3", None, Verdict.UNKNOWN))
    assert probe.hits == pytest.approx(1 / 3)
    assert probe.chance == pytest.approx(1 / 6)  # the answer for c2 would have hit c1
    sent = str(server.requests)
    assert "c2: score" in sent
    assert "0.75" not in sent
    assert "CANARY-TRUTH" not in sent
    assert "Fit rule A" not in sent  # without the method, too
