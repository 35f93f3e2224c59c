"""What an agent is told: everything that it needs, nothing that only the judge may know."""

from __future__ import annotations

import json
import re

from evaluation.episode import EpisodeLimits
from evaluation.families.experiment import EXAMPLE, instructions
from evaluation.submission import REPRODUCE, RESPONSE, Response
from evaluation.task import EvaluationTask
from pipeline.task import MaskedPath
from tests.evaluation.execution_support import public_task, truth

TASK = EvaluationTask(
    public=public_task(),
    truth=truth(),
    masked_paths=(MaskedPath(path="CANARY-PATH.py", action="removed", reason="source"),),
    paper_texts=("CANARY-PAPER",),
)


def test_question_method_files_and_limits_are_said() -> None:
    text = instructions(TASK, limits=EpisodeLimits(wall_s=90, cpus=1.5, gpus=2, model_calls=7, tokens=9, money_usd=0.5))
    for part in (TASK.public.question, TASK.public.method, "- Run rule B.", RESPONSE, REPRODUCE, "1.5 minutes"):
        assert part in text
    assert "1.5 CPUs, 4096 MB of memory, 4096 MB of disk, 2 GPU(s), 7 model calls, 9 tokens, 0.5 USD" in text


def test_the_truth_has_no_way_in() -> None:
    assert "CANARY" not in instructions(TASK, limits=EpisodeLimits())


def test_the_example_is_a_response() -> None:
    text = instructions(TASK, limits=EpisodeLimits())
    shown = re.search(r"```json\n(.*?)\n```", text, re.DOTALL)
    assert shown is not None
    assert json.loads(shown[1]) == EXAMPLE
    response = Response.model_validate(EXAMPLE)
    assert response.conclusion.numbers
    assert response.outputs


def test_braces_in_a_question_stay_what_they_are() -> None:
    task = TASK.evolve(public=public_task(question="Is {method} better on {{x}}?", method="", agent_instructions=""))
    text = instructions(task, limits=EpisodeLimits())
    assert "Is {method} better on {{x}}?" in text
    assert "# Instructions" not in text
    assert "choice of method is yours" in text
