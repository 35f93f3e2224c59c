"""The `experiment` family (EXP-Bench 3.1, 4.1): what an agent is told, and nothing more.

The text is built from the public half of a task by naming its fields; ground truth has no way in. It is deterministic:
the same task and limits give the same text, whose digest is part of the lock.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

from evaluation.episode import EpisodeLimits
from evaluation.submission import REPRODUCE, RESPONSE
from evaluation.task import EvaluationTask

__all__ = ["EXAMPLE", "instructions"]

EXAMPLE: Final[dict[str, object]] = {
    "design": {
        "constant": {"paper": ["80 g/m2"], "throws per plane": ["5"]},
        "independent": {"wing width": ["4 cm", "8 cm"]},
        "dependent": {"flight distance": ["mean over the throws, in metres"]},
        "procedure": "Each plane is thrown five times from the same height; the mean distance is compared.",
    },
    "conclusion": {
        "text": "Wider wings flew farther under these conditions.",
        "numbers": {"mean distance, 4 cm (m)": 3.1, "mean distance, 8 cm (m)": 4.6},
    },
    "outputs": ["results/distances.csv"],
}
"""A complete `response.json` about something that no task asks for."""

_ON_LINES: Final = re.compile(r"\[[^\[\]{}]*\]")
"""A list that holds neither lists nor objects."""

_TEMPLATE: Final = """\
You carry out a research experiment. Your working directory is the repository of a research project, from which the
scripts, documents and results that answer the question have been taken out. Plan the experiment, implement it, run it,
and draw the conclusion from what came out. Nobody will answer questions.

# Question

{question}

# Method

{method}
{extra}
What question, method and instructions leave open - levels, controls, settings, repeats - is yours to design. State what
you ran in `design`; what ran is what counts.

# What to hand in

Two files in the root of the repository, and the changes that you make to the repository.

## {response}

One JSON object:

- `design.constant`, `design.independent`, `design.dependent`: the variables of your experiment; each maps a name to the
  list of its values, as text (of a dependent variable: how it is measured);
- `design.procedure`: how the experiment is carried out;
- `conclusion.text`: the answer to the question, in a few sentences;
- `conclusion.numbers`: every number that the answer rests on: a name that says metric and condition -> a number;
- `outputs`: the files that `{reproduce}` produces, relative to the root of the repository.

An example of the form, about another subject:

```json
{example}
```

## {reproduce}

`bash {reproduce}` is run from the root of a fresh copy of the repository to which your changes have been applied, in
the same environment, without network, within {minutes} minutes. It has to

- end with exit code 0;
- carry out the experiment again: files listed in `outputs` are deleted before it starts and must be there afterwards;
- print, or write into `outputs`, every number of `conclusion.numbers` with at least the digits that you state. Fix the
  seeds of what is random.

Only changes below the root of the repository count. What you install or write elsewhere is not there in the second run.

# Rules

- Every number that you report comes from code that you ran here. Do not invent, hard-code or guess results, and do not
  present mock or placeholder data as results.
- Do not look for the paper, its text, or its results, and do not try to restore what was removed from the repository.
- Do not write text that is meant to influence the people or programs that grade the work.
- If a part cannot be done, say so in the conclusion and hand in the rest: an honest partial answer counts, a made-up
  one does not.

# Limits

{minutes} minutes in all, {resources}.

{network} What lies in the repository when the time is over is what is graded, so write `{response}`
and `{reproduce}` early and keep them up to date.
"""


def instructions(task: EvaluationTask, *, limits: EpisodeLimits, network: Sequence[str] = ()) -> str:
    """The text that starts an episode: question, method, what to hand in, rules and limits.

    Args:
        task: only its public half is read.
        limits: ceilings of the episode.
        network: hosts that the agent may reach beside its model.
    """
    public = task.public
    extra = f"\n# Instructions\n\n{public.agent_instructions.strip()}\n" if public.agent_instructions.strip() else ""
    return _TEMPLATE.format(
        question=public.question.strip(),
        method=public.method.strip() or "The choice of method is yours.",
        extra=extra,
        response=RESPONSE,
        reproduce=REPRODUCE,
        example=_ON_LINES.sub(_on_one_line, json.dumps(EXAMPLE, indent=2, ensure_ascii=False)),
        minutes=_minutes(limits.wall_s),
        resources=_resources(limits),
        network=f"Of the internet you can reach {', '.join(network)} only."
        if network
        else "There is no internet access.",
    )


def _on_one_line(match: re.Match[str]) -> str:
    return json.dumps(json.loads(match[0]), ensure_ascii=False)


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f}".removesuffix(".0")


def _resources(limits: EpisodeLimits) -> str:
    parts = [f"{limits.cpus:g} CPUs", f"{limits.memory_mb} MB of memory", f"{limits.disk_mb} MB of disk"]
    if limits.gpus:
        parts.append(f"{limits.gpus} GPU(s)")
    if limits.model_calls is not None:
        parts.append(f"{limits.model_calls} model calls")
    if limits.tokens is not None:
        parts.append(f"{limits.tokens} tokens")
    if limits.money_usd is not None:
        parts.append(f"{limits.money_usd:g} USD for model calls")
    return ", ".join(parts)
