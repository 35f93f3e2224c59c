"""What of a histogram task is public: the record that the harness knows it by, and what an agent is told first.

The agent's instructions are those of the paper (B.2): a role, and the documents to read in their order; `TASK.md` and
the other documents lie in the workspace. Nothing here reads the reference.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from evaluation.episode import EpisodeLimits
from evaluation.families.histogram.task import HistogramTask
from evaluation.families.histogram.workspace import NULL_COMMIT, PACKAGES
from pipeline.paper import Paper
from pipeline.repository import RepositoryRef
from pipeline.task import Environment, Family, Provenance, PublicTask, Resources, Status

__all__ = ["instructions", "public_task"]

_DEFAULT_WALL_S: Final = 9000
"""2.5 hours (Collider-Bench 4.1)."""
_TASK: Final = re.compile(r"^#+\s*Task\s*$(.+?)(?=^#|\Z)", re.MULTILINE | re.DOTALL)

_TOLD: Final = """\
You are an LHC experimentalist with expertise in Standard Model and BSM search strategies, event generation tools, event
selection design, and statistical interpretation of collider data. Read these in order:

1. `TASK.md`: the task for this run.
2. `AGENTS.md`: what you have and how to work.
3. `TOOLS.md`: reference of the command-line tools.

Everything you need is in this directory. Nobody will answer questions.

# What is graded

`results/{file}`: fill every `null` of `dependent_variables[0].values` with a finite, non-negative number; change
neither bin edges nor metadata. What lies there when the time is over is your submission. Beside it the programs that
made the values (`analysis/`), the cards and intermediate data that fit, and `report.md`.

# Rules

- Every value comes from code that you ran here: your own simulation and analysis. Do not copy values from figures,
  tables or public records, and do not invent, hard-code or tune them.
- At the end the results file is put back to its template, and your work is run again without internet access: `bash
  reproduce.sh` if you hand in such a script at the top of the directory, otherwise `python3 analysis/analysis.py`. What
  this run does not give again, in the same time and memory, counts as made up, and so does what comes out the same
  without the event generator.
- Do not write text that is meant to influence the people or programs that grade the work.
- If a part cannot be done, say so in `report.md` and hand in the rest: values that were not computed are worth less
  than bins that stay `null`.

# Limits

{minutes} minutes in all, {cpus:g} CPUs, {memory} MB of memory, {disk} MB of disk{calls}. {network}
"""


def public_task(task: HistogramTask, pdf_sha256: str | None) -> PublicTask:
    """The public half.

    Args:
        task: with its reference, which is not read.
        pdf_sha256: of the paper, where it is at hand.
    """
    match = _TASK.search(task.instructions)
    asked = " ".join((match[1] if match else "").strip().split("\n\n")[0].split())
    asked = asked or f"Predict the binned distribution of {task.observable or 'the observable'} for {task.target}"
    return PublicTask(
        id=task.id,
        family=Family.HISTOGRAM,
        status=Status.RELEASED,
        paper=Paper(id=_slug(task.paper), title=task.paper, sha256=pdf_sha256),
        # there is no repository: the workspace is made of the task's own files
        repository=RepositoryRef(url=f"collider-bench:{task.id}", commit=NULL_COMMIT),
        question=asked,
        method=task.instructions,
        environment=Environment(python=task.python, packages=task.packages or PACKAGES),
        resources=Resources(wall_time_s=task.wall_time_s or _DEFAULT_WALL_S),
        provenance=Provenance(engine="model", model="as published", stages=(("import.collider-bench", "1"),)),
    )


def _slug(paper: str) -> str:
    return re.sub(r"[^a-z0-9._-]+", "-", paper.lower()).strip("-._")[:80] or "paper"


def instructions(file: str, *, limits: EpisodeLimits, network: Sequence[str] = ()) -> str:
    """What starts an episode.

    Args:
        file: name of the file to fill.
        limits: ceilings of the episode.
        network: hosts that the agent may reach beside its model.
    """
    calls = "" if limits.model_calls is None else f", {limits.model_calls} model calls"
    calls += "" if limits.tokens is None else f", {limits.tokens} tokens"
    calls += "" if limits.money_usd is None else f", {limits.money_usd:g} USD for model calls"
    return _TOLD.format(
        file=file,
        minutes=f"{limits.wall_s / 60:.1f}".removesuffix(".0"),
        cpus=limits.cpus,
        memory=limits.memory_mb,
        disk=limits.disk_mb,
        calls=calls,
        network=f"Of the internet you can reach {', '.join(network)} only."
        if network
        else "There is no internet access.",
    )
