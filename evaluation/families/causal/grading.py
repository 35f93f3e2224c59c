"""A bench log becomes grades: points, audit and flags in one record, and the numbers of a report's row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar, Final

from pydantic import ValidationError

from evaluation.families.causal.bench import EpisodeLog, Refused
from evaluation.families.causal.scoring import Audit, CausalScore, audit, score
from evaluation.families.causal.task import CausalTask
from evaluation.families.causal.taxonomy import Flag, classify
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.schema import StoredRecord

__all__ = ["Graded", "grade", "read_log"]

_NAME: Final = "Name a bench log, an episode of `expbench solve`, or an episode's directory"
_PLACES: Final = ("submission/bench.json", "bench.json", "agent/bench.json")
"""Where the log lies in an episode's directory."""


class Graded(StoredRecord):
    """What `expbench score causal` prints, and an episode's `family.json`."""

    SCHEMA_VERSION: ClassVar[int] = 1

    task: str
    tier: str
    simulation: str
    band: str
    score: CausalScore
    audit: Audit
    flags: tuple[Flag, ...]
    refused: int
    """Calls that were not carried out."""
    over_budget_calls: int
    """Of those, because the budget was used up."""

    def metrics(self) -> dict[str, float | None]:
        """The row of a report: `score` is 0 to 100; None where there is nothing to measure."""
        points, process = self.score, self.audit
        valid, claims = points.claims_valid
        return {
            "score": points.total,
            "solved": float(points.solved),
            "correctness": points.correctness,
            "rigor": points.rigor,
            "efficiency": points.efficiency,
            "bench_calls": float(points.calls),
            "over_budget_calls": float(self.over_budget_calls),
            "claim_validity": valid / claims if claims else None,
            "p_hacking": float(process.p_hacking),
            "probe_only": float(process.support == "probe_only"),
            "unbacked": float(process.support == "unbacked"),
            "over_testing": float(process.over_testing),
            "backing_survives_holm": (
                None if process.backing_survives_holm is None else float(process.backing_survives_holm)
            ),
        }


def grade(task: CausalTask, log: EpisodeLog) -> Graded:
    """Grade a log against its task; everything follows from the two.

    Raises:
        ExpbenchError: `RECORD_INVALID`: the log is of another task, or tests what its simulation does not have.
    """
    if log.task != task.id:
        raise _invalid(f"the log of {log.task}", f"it is not of the task {task.id}", "Name the task that it is of")
    names = {name for item in log.experiments for name in (*item.config_a, *item.config_b)}
    unknown = sorted(names - set(task.control))
    if unknown:
        raise _invalid(
            f"the log of {log.task}", f"it changes {unknown[0]}, which {task.simulation} does not have",
            "Give a log that the bench wrote",
        )  # fmt: skip
    refused = [entry for entry in log.entries if isinstance(entry, Refused)]
    return Graded(
        task=task.id, tier=task.tier, simulation=task.simulation, band=task.difficulty.band, score=score(task, log),
        audit=audit(task, log), flags=classify(task, log), refused=len(refused),
        over_budget_calls=sum(entry.over_budget for entry in refused),
    )  # fmt: skip


def read_log(path: Path) -> EpisodeLog:
    """A bench log from its file, a sweep's episode, or the directory of an episode or submission.

    Raises:
        ExpbenchError: `RECORD_INVALID`.
    """
    file = path
    if path.is_dir():
        file = next((path / name for name in _PLACES if (path / name).is_file()), path / _PLACES[1])
    try:
        data = _json(file)
        return EpisodeLog.model_validate(data.get("log", data), strict=False)
    except FileNotFoundError as error:
        where = f"it holds none of {', '.join(_PLACES)}" if path.is_dir() else "it is not there"
        raise _invalid(str(path), where, _NAME) from error
    except (OSError, ValueError, RecursionError) as error:
        raise _invalid(str(file), f"it is no bench log: {_first(error)}", _NAME) from error


def _first(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return str(error).splitlines()[0]
    found = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(str(part) for part in found['loc'])}: {found['msg']}"


def _json(file: Path) -> dict[str, Any]:
    data = json.loads(file.read_bytes())
    if not isinstance(data, dict):
        raise ValueError("it holds no JSON object")
    return data


def _invalid(what: str, cause: str, next_step: str) -> ExpbenchError:
    return ExpbenchError(FailureKind.RECORD_INVALID, what, cause, consequence="Nothing was scored", next_step=next_step)
