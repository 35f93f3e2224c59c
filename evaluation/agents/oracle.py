"""The agent that applies the ground truth: the ceiling of every score, and the proof that a task can be solved.

It gets what no other agent may see: the original files (mounted read-only) and an answer made from the task's truth. It
restores the chain's source scripts, writes `response.json` and a `reproduce.sh` that runs the chain's commands, and
runs it once. It must come out with full marks wherever a task is sound; where it does not, task or graders are wrong.
"""

from __future__ import annotations

import json
import posixpath
import shlex
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import ClassVar, Final, Literal

from evaluation.agents.base import AgentAvailability, AgentContext, AgentLaunch, Mount
from evaluation.agents.command import CommandAgent
from evaluation.agents.options import parse_options
from evaluation.submission import Conclusion, Response, ResponseDesign
from evaluation.task import EvaluationTask
from evaluation.trajectory import Event
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.schema import Record
from pipeline.task import DesignVariable, ExperimentTruth, NumericClaim, Usage

__all__ = ["OracleAgent", "oracle_response", "reproduce_script"]

_ORIGINAL: Final = "/oracle"
# As in the validation of a task: nothing looks for a hub or a tracking server that is not there.
_ENVIRONMENT: Final = {
    "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "WANDB_MODE": "offline",
    "TQDM_DISABLE": "1",
}  # fmt: skip


class _NoOptions(Record):
    """It takes none."""


class OracleAgent:
    """Restores, answers, reproduces."""

    name: ClassVar[str] = "oracle"
    description: ClassVar[str] = "applies the ground truth: the ceiling of every score"
    kind: Literal["bound", "loop", "product", "command"] = "bound"
    version: str | None = "1"

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        parse_options(self.name, options or {}, _NoOptions)

    def availability(self) -> AgentAvailability:
        """Always; a task without ground truth or original files is refused when it starts."""
        return AgentAvailability(
            available=True, detail="comes with expbench; needs tasks with ground truth and original files; no model"
        )

    def launch(self, task: EvaluationTask, context: AgentContext) -> AgentLaunch:
        """See `AgentAdapter.launch`.

        Raises:
            ExpbenchError: `DATA_UNAVAILABLE`: the task has no ground truth, no commands or no original files here.
        """
        from evaluation.families.registry import family_rules  # the families' rules know the adapters' types

        rules = family_rules(task.public.family)
        if rules is not None:
            return rules.oracle(task, context)
        truth = task.truth
        if truth is None or not truth.usage or task.original_tree is None:
            missing = "ground truth" if truth is None else "commands" if not truth.usage else "original files"
            raise ExpbenchError(
                FailureKind.DATA_UNAVAILABLE,
                task.id,
                f"the oracle needs its {missing}, which this source does not have",
                consequence="The oracle was not run on it",
                next_step="Evaluate the oracle on a workspace of `expbench curate`, or choose other tasks with --tasks",
            )
        plan = {
            "workspace": context.workspace,
            "original": _ORIGINAL,
            "restore": sorted({source.path for source in truth.sources}),
            "response": oracle_response(truth).model_dump_json(indent=1, exclude={"extra"}) + "\n",
            "reproduce": reproduce_script(truth.usage),
            "log": f"{context.outbox}/events.jsonl",
        }
        program = resources.files("evaluation.agents.oracle_program").joinpath("apply.py").read_text(encoding="utf-8")
        return AgentLaunch(
            argv=("python3", "-I", "-B", f"{context.inbox}/apply.py", f"{context.inbox}/plan.json"),
            files={"apply.py": program, "plan.json": json.dumps(plan, indent=1)},
            mounts=(Mount(source=task.original_tree, target=_ORIGINAL),),
            needs_model=False,
        )

    def read_events(self, logs: Path, stdout: Path, stderr: Path) -> Iterator[Event]:
        """What its program wrote down."""
        return CommandAgent({"cmd": "oracle"}).read_events(logs, stdout, stderr)


def oracle_response(truth: ExperimentTruth) -> Response:
    """The truth in the form of a submission."""
    return Response(
        design=ResponseDesign(
            constant=_variables(truth.constant),
            independent=_variables(truth.independent),
            dependent=_variables(truth.dependent),
            procedure=" ".join(f"{number}. {item.text}." for number, item in enumerate(truth.requirements, 1)),
        ),
        conclusion=Conclusion(
            text=truth.expected.text, numbers={_name(claim): claim.value for claim in truth.expected.claims}
        ),
    )


def _variables(variables: tuple[DesignVariable, ...]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for variable in variables:
        found[variable.name] = tuple(dict.fromkeys((*found.get(variable.name, ()), *variable.values)))
    return found


def _name(claim: NumericClaim) -> str:
    """Metric and conditions in words; the claim's id keeps two equal ones apart."""
    conditions = ", ".join(f"{condition.name} = {condition.value}" for condition in claim.conditions)
    unit = f" (in {claim.unit})" if claim.unit else ""
    return f"{claim.metric}{unit}{f' [{conditions}]' if conditions else ''} ({claim.id})"


def reproduce_script(usage: tuple[Usage, ...]) -> str:
    """A script that runs the commands of a chain one after another, from the directory that it lies in.

    The repository's root and `src` are on PYTHONPATH, as in the validation of a task.
    """
    lines = ["#!/usr/bin/env bash", "set -euo pipefail", 'cd -- "$(dirname -- "${BASH_SOURCE[0]}")"', "root=$PWD"]
    lines += ['export PYTHONPATH="$root:$root/src${PYTHONPATH:+:$PYTHONPATH}"']
    lines += [f"export {name}={value}" for name, value in sorted(_ENVIRONMENT.items())]
    for item in usage:
        command = shlex.join(item.argv)
        directory = posixpath.normpath(item.directory)
        lines.append(command if directory == "." else f"(cd -- {shlex.quote(directory)} && {command})")
    return "\n".join(lines) + "\n"
