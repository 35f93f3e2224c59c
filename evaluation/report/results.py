"""The results of runs as they lie on disk: one row of scores per episode, and where its records are.

An episode without scores (not finished, cut off) is counted and named, never taken for a result. A file that cannot be
read is a problem of that episode; the others are reported all the same.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from evaluation.episode import EpisodeFolder
from evaluation.scores import EpisodeScores
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.schema import Problem, Severity
from pipeline.yamlio import load_yaml

__all__ = ["Configuration", "Episode", "Results", "configuration_of", "load_results"]

_COMPONENT: Final = "evaluation.report"
_SHOWN: Final = 3


class _Plan(BaseModel):
    """What of `run.yaml` says how many episodes there should be (`evaluation.harness.run` has all of it)."""

    model_config = ConfigDict(extra="ignore", frozen=True)
    tasks: dict[str, str] = {}
    repeats: int = 1


class Configuration(NamedTuple):
    """What is compared with each other: an agent with a model, in one run."""

    agent: str
    model: str
    run: str

    @property
    def label(self) -> str:
        """For tables and legends; the run is named by the table where it is needed."""
        return f"{self.agent} + {self.model}" if self.model else self.agent


class Episode(NamedTuple):
    """A row of scores and the folder that it was made from."""

    scores: EpisodeScores
    folder: EpisodeFolder

    @property
    def key(self) -> str:
        """`<run>/<task>/<repeat>`, by the names of the directories."""
        return f"{self.scores.run}/{self.folder.root.parent.name}/{self.folder.root.name}"


class Results(NamedTuple):
    """Everything that the reports of one or several runs are made from."""

    episodes: tuple[Episode, ...]
    """Sorted by run, agent, model, task, repeat."""
    unfinished: tuple[str, ...]
    """`<run>/<task>/<repeat>` of episodes that have no scores yet."""
    problems: tuple[Problem, ...]

    @property
    def scores(self) -> list[EpisodeScores]:
        """The rows alone."""
        return [episode.scores for episode in self.episodes]

    @property
    def configurations(self) -> tuple[Configuration, ...]:
        """All that occur, sorted."""
        return tuple(sorted({configuration_of(episode.scores) for episode in self.episodes}))

    def labels(self) -> dict[Configuration, str]:
        """Names of all configurations; with the run where the same agent and model come from several runs."""
        runs = Counter(item[:2] for item in self.configurations)
        return {
            item: item.label if runs[item[:2]] == 1 else f"{item.label} ({item.run})" for item in self.configurations
        }


def configuration_of(scores: EpisodeScores) -> Configuration:
    """The configuration that an episode belongs to."""
    return Configuration(scores.agent, scores.model or "", scores.run)


def load_results(runs: Sequence[Path]) -> Results:
    """Read the scores of runs.

    Args:
        runs: directories that `expbench evaluate` wrote.

    Raises:
        ExpbenchError: `RECORD_INVALID`, a directory is no run; `USAGE`, a run is given twice or two have one name.
    """
    episodes: list[Episode] = []
    unfinished: list[str] = []
    problems: list[Problem] = []
    seen: dict[Path, Path] = {}
    for run in runs:
        place = run.resolve()
        if place in seen:
            raise _usage(run, "the run is given twice", "Name each run once")
        seen[place] = run
        for path in _episode_directories(run):
            folder = EpisodeFolder(path)
            where = f"{run.name}/{path.parent.name}/{path.name}"
            try:
                scores = EpisodeScores.model_validate_json(folder.scores.read_bytes())
            except FileNotFoundError:
                unfinished.append(where)
                continue
            except (OSError, ValidationError) as error:
                problems.append(_problem(where, f"its scores cannot be read and are left out: {_brief(error)}"))
                continue
            episodes.append(Episode(scores, folder))
        unfinished += _not_begun(run)
    _check_unique(episodes)
    episodes.sort(
        key=lambda item: (item.scores.run, *configuration_of(item.scores), item.scores.task, item.scores.repeat)
    )
    return Results(tuple(episodes), tuple(unfinished), tuple(problems))


def _episode_directories(run: Path) -> Iterator[Path]:
    """`RUN/episodes/<task>/<repeat>`, sorted; links and hidden (unfinished, temporary) names are passed over."""
    root = run / "episodes"
    if not root.is_dir():
        raise ExpbenchError(
            FailureKind.RECORD_INVALID,
            str(run),
            "is not a run: it holds no directory `episodes`" if run.is_dir() else "there is no such directory",
            consequence="Nothing was reported",
            next_step="Name a directory that `expbench evaluate` wrote",
        )
    for task in _directories(root):
        yield from sorted(_directories(task), key=lambda path: (len(path.name), path.name))


def _not_begun(run: Path) -> list[str]:
    """Episodes that `run.yaml` plans and that have no directory yet."""
    path = run / "run.yaml"
    if not path.is_file():
        return []
    plan = load_yaml(path, _Plan)
    planned = ((task, str(repeat)) for task in sorted(plan.tasks) for repeat in range(plan.repeats))
    return [f"{run.name}/{task}/{n}" for task, n in planned if not (run / "episodes" / task / n).is_dir()]


def _directories(root: Path) -> list[Path]:
    with os.scandir(root) as entries:
        names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    return [root / name for name in sorted(names) if not name.startswith(".")]


def _check_unique(episodes: Sequence[Episode]) -> None:
    """Two rows for the same attempt would be counted twice."""
    first: dict[tuple[str, str, str, str, int], Path] = {}
    for scores, folder in episodes:
        key = (*configuration_of(scores), scores.task, scores.repeat)
        if key in first:
            raise _usage(
                folder.root,
                f"holds the same episode of run {scores.run!r} as {first[key]}: {scores.task}, repeat {scores.repeat}",
                "Leave out the copy, or give the runs different names",
            )
        first[key] = folder.root


def _usage(path: Path, cause: str, next_step: str) -> ExpbenchError:
    return ExpbenchError(FailureKind.USAGE, str(path), cause, consequence="Nothing was reported", next_step=next_step)


def _problem(where: str, message: str) -> Problem:
    return Problem(component=_COMPONENT, where=where, message=message, severity=Severity.ERROR)


def _brief(error: OSError | ValidationError) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    parts = [f"{'.'.join(map(str, item['loc'])) or 'file'}: {item['msg']}" for item in error.errors()[:_SHOWN]]
    return "; ".join(parts)
