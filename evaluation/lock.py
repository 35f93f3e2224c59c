"""The lock of an episode: digests of everything that its score depends on (DESIGN 4).

Two rows of scores may be compared when the digests that matter are equal: the task (what the agent is told and what
the judge knows), the masked repository, the environment, the limits, the instructions, and the graders. Who was
evaluated - agent, version, options, model - is in the lock too, but does not hinder a comparison: it is what is
compared. An image's id is written down for people only: two machines that build the same specification get different
ids.

Non-goal: paths and times; equality is by digest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Final

from pydantic import JsonValue

from evaluation.episode import EpisodeLimits
from evaluation.task import EvaluationTask
from evaluation.verdicts import Grader
from masking.git import git
from pipeline.digests import digest_of, text_digest
from pipeline.sandbox.base import BuildSpec
from pipeline.schema import StoredRecord

__all__ = ["COMPARABLE", "EpisodeLock", "differences", "environment_spec", "lock_episode", "repository_commit"]

COMPARABLE: Final = ("task", "truth", "repository", "environment", "sandbox", "limits", "instructions", "graders")
"""The digests that must be equal for two scores to be comparable."""

_EMPTY_DIGEST: Final = ""


class EpisodeLock(StoredRecord):
    """Digests (sha256 unless said otherwise) of what one episode's score depends on; empty: there is none."""

    SCHEMA_VERSION: ClassVar[int] = 1

    task_id: str
    task: str
    """Question, method, agent instructions."""
    truth: str = _EMPTY_DIGEST
    """Ground truth."""
    repository: str = _EMPTY_DIGEST
    """Commit of the masked repository, which depends on its content only."""
    environment: str
    """Build specification: Python, packages, system packages."""
    sandbox: str = ""
    """`docker` or `process`: what an agent can do differs."""
    image: str = ""
    """Id of the image, for people."""
    limits: str
    instructions: str
    graders: str = _EMPTY_DIGEST
    """Engines, models, prompts and versions of judge and monitor."""
    agent: str = _EMPTY_DIGEST
    """Name, version, options and model of the agent."""

    @property
    def comparable(self) -> str:
        """sha256 over the digests that matter: what `EpisodeScores.lock` holds."""
        return digest_of({"task_id": self.task_id} | {name: getattr(self, name) for name in COMPARABLE})

    @property
    def full(self) -> str:
        """sha256 over everything but the image's id: equal for repeats of the same agent on the same task."""
        return digest_of([self.comparable, self.agent])


def environment_spec(task: EvaluationTask) -> BuildSpec:
    """What the task's image is built from; agent and re-execution get the same."""
    environment = task.public.environment
    return BuildSpec(
        python=environment.python or BuildSpec().python,
        packages=environment.packages,
        system_packages=environment.system_packages,
    )


def repository_commit(repository: Path | None) -> str:
    """The one commit of a masked repository; empty when there is none.

    Raises:
        ExpbenchError: `TOOL_MISSING`, git is not installed; `INTERNAL`, it is not a repository.
    """
    if repository is None:
        return _EMPTY_DIGEST
    # the directory is named: git would look for a repository above it otherwise
    return git("--git-dir=.git", "rev-parse", "--verify", "HEAD^{commit}", directory=repository).decode("ascii").strip()


def lock_episode(
    task: EvaluationTask,
    *,
    limits: EpisodeLimits,
    instructions: str,
    sandbox: str = "",
    image: str = "",
    agent: str = "",
    agent_version: str | None = None,
    agent_options: Mapping[str, JsonValue] | None = None,
    model: str | None = None,
    graders: Sequence[tuple[str, Grader]] = (),
) -> EpisodeLock:
    """The lock of one episode.

    Args:
        task: the task.
        limits: ceilings of the episode.
        instructions: what the agent is told (`evaluation.families`).
        sandbox: kind of sandbox.
        image: id of the image that it runs in.
        agent: name of the agent.
        agent_version: its version, where it is known.
        agent_options: its options; no secrets.
        model: the model that it calls.
        graders: (`integrity` or `judge`, who), as they will grade or have graded.

    Raises:
        ExpbenchError: see `repository_commit`.
    """
    public = task.public
    told = public.model_dump(mode="json", include={"id", "family", "question", "method", "agent_instructions"})
    who = {"name": agent, "version": agent_version, "options": dict(agent_options or {}), "model": model}
    return EpisodeLock(
        task_id=task.id,
        task=digest_of(told),
        truth=task.private_digest,
        repository=repository_commit(task.masked_repository),
        environment=environment_spec(task).digest,
        sandbox=sandbox,
        image=image,
        limits=digest_of(limits.model_dump(mode="json")),
        instructions=text_digest(instructions),
        graders=digest_of(sorted([role, grader.model_dump(mode="json")] for role, grader in graders))
        if graders
        else _EMPTY_DIGEST,
        agent=digest_of(who) if agent else _EMPTY_DIGEST,
    )


def differences(first: EpisodeLock, second: EpisodeLock) -> tuple[str, ...]:
    """Names of the digests that matter and differ, in the order of `COMPARABLE`; empty: comparable."""
    names = ("task_id", *COMPARABLE)
    return tuple(name for name in names if getattr(first, name) != getattr(second, name))
