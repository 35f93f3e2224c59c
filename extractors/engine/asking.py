"""Asking a model within a stage: one prompt, one typed answer, and what a failure of one question means.

A model that refuses, does not manage the format or cannot hold the text fails *here*, at a known place, and the rest
goes on. Everything else (authentication, quota, budget, network, overload) is about all questions alike: it ends the
run, and what was paid for stays in the store of exchanges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from pydantic import BaseModel

from pipeline.errors import FailureKind
from pipeline.llm import ContextPolicy, ModelClient, ModelError, Prompt, Request, current_budget, load_prompt
from pipeline.schema import Problem, Severity

__all__ = ["PROMPTS", "Answer", "Asker", "info", "prompt"]

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
ModelT = TypeVar("ModelT", bound=BaseModel)

PROMPTS: Final = (
    "takeaways",
    "subsection",
    "mend_subsection",
    "refine",
    "reword_question",
    "read_table",
    "read_figure",
)
"""All prompts of the engine; their digests are part of what a run depends on."""
_LOCATED: Final = frozenset({FailureKind.REFUSAL, FailureKind.INVALID_OUTPUT, FailureKind.CONTEXT_TOO_LONG})
_PACKAGE: Final = "extractors.prompts"


def prompt(name: str) -> Prompt:
    """One of `PROMPTS`."""
    return load_prompt(_PACKAGE, name)


@dataclass(frozen=True)
class Answer(Generic[ModelT]):
    """What came back for one question: no value when it failed there, several when its text had to be split."""

    values: tuple[ModelT, ...]
    problems: tuple[Problem, ...] = ()

    @property
    def value(self) -> ModelT | None:
        """The only value of a question that was not split."""
        return self.values[0] if self.values else None


@dataclass
class Asker:
    """Puts questions to one model.

    Args:
        client: the model; its budget scope is the current one.
        workers: questions that may be under way at once where they do not depend on each other.
    """

    client: ModelClient
    workers: int = 4
    used: set[str] = field(default_factory=set)
    """Names of the prompts that were rendered."""

    def ask(
        self,
        name: str,
        model: type[ModelT],
        where: str,
        *,
        split: bool = False,
        also_located: frozenset[FailureKind] = frozenset(),
        **values: Any,
    ) -> Answer[ModelT]:
        """Ask once.

        Args:
            name: of the prompt.
            model: what it answers with.
            where: page, section or table, for problems.
            split: ask once per piece when the text is too long; otherwise its middle is left out, and that is reported.
            also_located: further failures that are about this question only.
            values: the prompt's inputs.

        Raises:
            ExpbenchError: a failure that is not about this question (see the module).
        """
        asked = prompt(name)
        self.used.add(name)
        request = Request(messages=asked.render(**values), prompt=asked.ref)
        component = f"extract.model.{name}"
        try:
            if split:
                answers = self.client.structured_split(request, model)
            else:
                answers = (self.client.structured(request, model, policy=ContextPolicy.SHRINK),)
        except ModelError as error:
            if error.kind not in _LOCATED | also_located:
                raise
            message = f"{error.kind.value}: {error.cause}; nothing was taken from here"
            return Answer((), (Problem(component=component, where=where, message=message),))
        left_out = sum(answer.reply.left_out_characters for answer in answers)
        problems: tuple[Problem, ...] = ()
        if left_out:
            message = f"{left_out} characters were not shown to the model: its context window does not hold them"
            problems = (Problem(component=component, where=where, message=message),)
        return Answer(tuple(answer.value for answer in answers), problems)

    def each(self, items: Sequence[ItemT], work: Callable[[ItemT], ResultT]) -> list[ResultT]:
        """`work` for all items, several at once, results in the order of the items.

        The first failure (in that order) is raised; questions that were under way end before, so that their answers are
        kept, and those not begun are not asked.
        """
        if self.workers <= 1 or len(items) <= 1:
            return [work(item) for item in items]
        with ThreadPoolExecutor(min(self.workers, len(items)), thread_name_prefix="expbench-ask") as pool:
            futures = [pool.submit(copy_context().run, work, item) for item in items]
            try:
                return [future.result() for future in futures]
            except KeyboardInterrupt:
                self.client.cancel.cancel()  # otherwise leaving the pool would wait for answers of minutes
                raise
            finally:
                for future in futures:
                    future.cancel()

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Calls of the block count for this stage in ledger and budget."""
        budget = current_budget()
        if budget is None:
            yield
            return
        with budget.scope("stage", name):
            yield


def info(component: str, where: str, message: str) -> Problem:
    """A problem that takes nothing away from what is kept."""
    return Problem(component=component, where=where, message=message, severity=Severity.INFO)
