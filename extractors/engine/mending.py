"""Pass 3: a task whose run did not bear it out goes back to the reader, with the log and the numbers that were seen.

It may choose other commands or files, or claim only what the run gives. What it answers is validated like any chain;
the numbers of the paper stay what they are.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Final

from extractors.engine.run import PaperReader
from extractors.engine.said import SaidMending
from pipeline.llm import PromptRef
from pipeline.locator import Chain
from pipeline.progress import Reporter
from pipeline.reader.gate import command_problem, usage_of
from pipeline.reader.loop import LoopLimits, Step
from pipeline.schema import Record
from pipeline.task import ClaimMatch, SourceScript, Task, ValidationReport, Verdict

__all__ = ["Mended", "mend"]

_LIMITS: Final = LoopLimits(turns=3, characters=40_000)
_FEWEST: Final = 3
"""Claims that a mended task has left at least; a task of fewer is not worth a run."""
_LOG: Final = 6_000


class Mended(Record):
    """What the reader made of a task that its run did not bear out."""

    chain: Chain
    keep: tuple[str, ...]
    """Ids of the claims that are left."""
    why: str
    prompt: PromptRef
    steps: tuple[Step, ...]


def mend(
    reader: PaperReader, task: Task, report: ValidationReport, logs: Mapping[str, str], reporter: Reporter
) -> Mended | None:
    """Ask once, with tools.

    Args:
        reader: the paper, the repository and the model.
        task: with the chain that was tried, as it ran at last.
        report: how that went.
        logs: name of a stream of its last run -> its end.
        reporter: notes of stage `validate`.

    Returns:
        None where the reader gives up, or changes nothing that holds.

    Raises:
        ModelError: the endpoint failed.
        BudgetError: the budget does not allow the next call.
    """
    truth = task.truth
    known = [claim.id for claim in truth.expected.claims]
    roles: dict[str, str] = {source.path: source.role for source in truth.sources}

    def check(said: SaidMending) -> list[str]:
        if said.give_up.strip():
            return []
        wrong = [f"there is no claim {name}" for name in said.keep if name not in known]
        left = [name for name in said.keep if name in known] or known
        if len(left) < min(_FEWEST, len(known)):
            wrong.append(f"{len(left)} claims are too few for a task: give up, or keep at least {_FEWEST}")
        wrong += [f"{item.path} is no text file of the repository" for item in said.files
                  if not reader.files.readable(item.path)]  # fmt: skip
        files = {item.path: item.role for item in said.files} or roles
        for command in said.commands:
            problem, _ = command_problem(reader.files, command, files)
            wrong += [f"command `{' '.join(command.argv)[:100]}`: {problem}"] if problem else []
        if said.files and not said.commands:
            wrong.append("other files need other commands")
        if not said.commands and len(left) == len(known):
            wrong.append("nothing is changed: give other commands, keep fewer claims, or give up")
        return wrong

    toolbox = reader.toolbox()
    talk = reader.ask(
        "mend", SaidMending, check, limits=_LIMITS, reporter=reporter, stage="mend", tools=toolbox.tools,
        task=_shown(task, report), logs=[f"{name}:\n{text[-_LOG:]}" for name, text in logs.items()] or ["no output"],
    )  # fmt: skip
    said = talk.value
    if said is None or said.give_up.strip():
        return None
    by = f"model {reader.client.config.model}"
    sources = tuple(
        SourceScript(path=item.path, role=item.role, score=1.0, reasons=(f"{by}: {item.why}",)) for item in said.files
    )
    usage = tuple(usage_of(command) for command in said.commands)
    chain = Chain(sources=sources or truth.sources, usage=usage or truth.usage, confidence=0.0)
    keep = tuple(name for name in known if name in said.keep) or tuple(known)
    return Mended(chain=chain, keep=keep, why=said.why, prompt=talk.prompt, steps=talk.steps)


def _shown(task: Task, report: ValidationReport) -> str:
    seen = {match.claim: match for match in report.matches}
    lines = [f"Question: {task.question}", f"What happened: {report.reason}"]
    lines += [f"file: {source.path} ({source.role})" for source in task.truth.sources]
    lines += [f"command: {shlex.join(step.argv)} in {step.directory}" for step in task.truth.usage]
    for claim in task.truth.expected.claims:
        conditions = ", ".join(f"{item.name} = {item.value}" for item in claim.conditions)
        under = f" ({conditions})" if conditions else ""
        lines.append(f"{claim.id}: {claim.metric}{under}: the paper prints {claim.text}; {_told(seen.get(claim.id))}")
    return "\n".join(lines)


def _told(match: ClaimMatch | None) -> str:
    if match is None or not match.observed:
        return "nothing that was seen is this number"
    values = ", ".join(f"{value * match.factor:.6g}" for value in match.observed)
    return f"the run gave {values}" + ("" if match.verdict is Verdict.PASS else ", which is another number")
