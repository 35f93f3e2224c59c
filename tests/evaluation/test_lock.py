"""Locks: equal where scores are comparable, different by name where they are not."""

from __future__ import annotations

from pathlib import Path

from evaluation.episode import EpisodeLimits
from evaluation.families.experiment import instructions
from evaluation.lock import COMPARABLE, EpisodeLock, differences, lock_episode
from evaluation.task import EvaluationTask, private_digest
from evaluation.verdicts import Grader
from pipeline.task import Environment, Status
from tests.evaluation.execution_support import make_task, public_task, truth

LIMITS = EpisodeLimits()


def lock(task: EvaluationTask, **changes: object) -> EpisodeLock:
    values: dict[str, object] = {
        "limits": LIMITS, "instructions": instructions(task, limits=LIMITS), "sandbox": "docker", "image": "sha256:1",
        "agent": "noop", "graders": [("judge", Grader(engine="keyless"))],
    }  # fmt: skip
    return lock_episode(task, **(values | changes))  # type: ignore[arg-type]


def test_what_may_differ_between_comparable_scores(tmp_path: Path) -> None:
    """Agent, model, image id, status and place of the task: two agents on one task are what is compared."""
    one = make_task(tmp_path / "a", {"x.py": "1\n"})
    other = make_task(tmp_path / "b", {"x.py": "1\n"}, public=public_task(status=Status.RELEASED))
    first, second = lock(one), lock(other, agent="openhands", model="m", image="sha256:2")
    assert differences(first, second) == ()
    assert first.comparable == second.comparable
    assert first.full != second.full


def test_every_digest_that_matters_is_named_when_it_differs(tmp_path: Path) -> None:
    task = make_task(tmp_path / "a", {"x.py": "1\n"})
    changed = truth().evolve(follow_ups=("other",))
    other = make_task(
        tmp_path / "b", {"x.py": "2\n"}, truth=changed, private_digest=private_digest(changed),
        public=public_task(question="Another?", environment=Environment(packages=("numpy==1.26.4",))),
    )  # fmt: skip
    limits = EpisodeLimits(wall_s=60)
    first = lock(task)
    second = lock(
        other, limits=limits, instructions=instructions(other, limits=limits), sandbox="process",
        graders=[("judge", Grader(engine="model", model="m"))],
    )  # fmt: skip
    assert differences(first, second) == COMPARABLE
    assert first.comparable != second.comparable


def test_a_task_without_repository_has_a_lock_too() -> None:
    found = lock(EvaluationTask(public=public_task(), blocked="not at hand"))
    assert found.repository == found.truth == ""
    assert EpisodeLock.model_validate_json(found.model_dump_json()) == found
