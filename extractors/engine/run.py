"""The model engine of stage 2.1: a reader with the whole paper and the repository in view writes the tasks.

All conversations about a paper begin with the same bytes (`PaperReader.beginning`): the paper whole, with ids; the
repository's map; what was run and which cells came out. Pass 1 lists the experiments, in one call. Pass 2 writes one
task for each that is chosen, with tools that read the repository. Every answer goes through `extractors.engine.gates`;
what is refused goes back twice, then what holds is kept and the rest is a problem. A run that the reader chooses binds
the claims to its output. Retrieval serves only papers that the model's context window does not hold.
Non-goals: running anything, opening clients and budgets (see `flows.engines`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import BaseModel

from extractors.drafting import DraftResult, unique_slugs
from extractors.engine.composing import compose, why_no_task
from extractors.engine.gates import Checked, Gates
from extractors.engine.listing import Listing
from extractors.engine.pictures import pictures_of
from extractors.engine.runs import Rehearsed
from extractors.engine.said import Experiment, Experiments, SaidTask
from extractors.index import LexicalIndex, units_of
from pipeline.digests import digest_of
from pipeline.errors import FailureKind
from pipeline.llm import TOOL_NOTICE, Message, ModelClient, ModelError, Parameters, PromptRef, load_prompt
from pipeline.llm.counting import typical_text_tokens
from pipeline.llm.untrusted import addressed_to_models
from pipeline.locator import Chain, RepositoryIndex
from pipeline.paper import Document
from pipeline.progress import Reporter, SilentReporter
from pipeline.reader.loop import Conversation, LoopLimits, ReaderTool, Step, converse
from pipeline.reader.map import repository_map
from pipeline.reader.tools import Toolbox
from pipeline.schema import Problem, Record, Severity, StoredRecord
from pipeline.survey import list_candidates
from pipeline.task import Draft, Requirement, TableEvidence
from pipeline.tracing.lines import FileLines

__all__ = [
    "EngineResult",
    "ModelReading",
    "PaperReader",
    "ReaderChain",
    "ReadingOptions",
    "draft_with_model",
    "engine_prompts",
]  # fmt: skip

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
AnswerT = TypeVar("AnswerT", bound=BaseModel)

PROMPTS: Final = ("paper", "experiments", "task", "mend")
_PACKAGE: Final = "extractors.prompts"
_STAGE: Final = "draft"
_COMPONENT: Final = "extract.model"
_SILENT: Final = SilentReporter()
_LOCATED: Final = frozenset({FailureKind.REFUSAL, FailureKind.INVALID_OUTPUT, FailureKind.CONTEXT_TOO_LONG})
"""Failures of one question; everything else (key, quota, budget, network, overload) is about all of them."""
_CONVERSATION: Final = 30_000
"""Tokens of what a conversation adds to its beginning: 80,000 characters of results, and the answers."""
_ANSWER: Final = 8192
"""Tokens: a dozen each of steps, settings and requirements with their evidence are some 5,000 of JSON."""
_READER: Final = 0.86
"""Share of kept-back tasks for which a reader with tree, README and a few searches named the right file first."""
_LIST: Final = LoopLimits(turns=1)
_WRITE: Final = LoopLimits(turns=5)


class ReadingOptions(Record):
    """How the engine reads."""

    max_tasks: int | None = None
    """Make tasks of so many experiments, those first that can be run here; None: of all that have code."""
    vision: bool = True
    """Show the pictures of tables that may have been read wrongly."""
    workers: int = 4
    """Tasks that are written at once."""


class ReaderChain(Record):
    """What the reader chose to carry out one draft."""

    chain: Chain | None
    not_found: str = ""
    """Why there is no chain."""
    searched: tuple[str, ...] = ()
    requirements: tuple[Requirement, ...] = ()
    run: str = ""
    """Key of the rehearsed command that the chain is; empty: it was not run so."""
    others: tuple[str, ...] = ()
    """Keys of other commands that gave at least half of the claims."""
    problems: tuple[Problem, ...] = ()


class Written(Record):
    """How one experiment of the list became a task, or why not."""

    experiment: Experiment
    fate: str
    answer: SaidTask | None = None
    """The last one, before the gates."""
    refusals: tuple[str, ...] = ()
    """What did not hold of it."""
    steps: tuple[Step, ...] = ()


class ModelReading(StoredRecord):
    """What the passes found on their way to the drafts, for people."""

    model: str
    endpoint: str
    prompts: tuple[PromptRef, ...]
    beginning: str
    """Digest of what all conversations begin with."""
    left_out: tuple[str, ...] = ()
    """Blocks of the paper for which the context window had no room."""
    listed: tuple[Step, ...] = ()
    """Pass 1."""
    written: tuple[Written, ...] = ()
    """Pass 2."""


class EngineResult(Record):
    """Drafts with the chains that carry them out, in one order, and how they came about."""

    drafts: DraftResult
    choices: tuple[ReaderChain, ...] = ()
    reading: ModelReading


def engine_prompts() -> tuple[PromptRef, ...]:
    """All prompts of the engine, for keys and provenance.

    Raises:
        ExpbenchError: `PROMPT_INVALID` when one of the files is broken.
    """
    return tuple(load_prompt(_PACKAGE, name).ref for name in PROMPTS)


class PaperReader:
    """Conversations about one paper and its repository.

    Args:
        document: the structured reading of a PDF.
        index: the repository.
        rehearsed: what was run.
        client: the model.
        pdf: the file, for pictures of doubtful tables; None: none are shown.
    """

    def __init__(
        self, document: Document, index: RepositoryIndex, rehearsed: Rehearsed, client: ModelClient,
        pdf: Path | None = None,
    ) -> None:  # fmt: skip
        self.document, self.index, self.client = document, index, client
        self.listing = Listing(document)
        self.files = FileLines(index.snapshot)
        self.gates = Gates(self.listing, self.files, f"model {client.config.model}")
        self._map = repository_map(index, list_candidates(index, document))
        self._runs = rehearsed.shown(document, self.listing)
        self.left_out = _too_much(self.listing, self._room())
        self._pictures = pictures_of(pdf, document) if pdf is not None else ()
        self.beginning = self._begin()

    @property
    def digest(self) -> str:
        """Of the bytes that all conversations begin with."""
        return digest_of([message.model_dump(mode="json") for message in self.beginning])

    def _room(self) -> int | None:
        """Tokens that the paper may have; None: nothing is known of the model's window."""
        window = self.client.prices.context_window(self.client.config)
        if window is None:
            return None
        room = max(window // 2, window - self.client.config.parameters.max_output_tokens - _CONVERSATION)
        return room - typical_text_tokens(self._map) - typical_text_tokens(self._runs) - 1500

    def _parameters(self) -> Parameters | None:
        """Room for a whole task in one answer, where nobody set another and the window is not small."""
        own, window = self.client.config.parameters, self.client.prices.context_window(self.client.config)
        if own.max_output_tokens != Parameters().max_output_tokens or (window is not None and window < 4 * _ANSWER):
            return None
        return own.evolve(max_output_tokens=_ANSWER)

    def _begin(self) -> tuple[Message, ...]:
        return load_prompt(_PACKAGE, "paper").render(
            notice=TOOL_NOTICE, paper=self.listing.shown(self.left_out), map=self._map, runs=self._runs,
            pictures=self._pictures,
        )  # fmt: skip

    def without_pictures(self) -> bool:
        """Show no pictures from now on; False where none were shown."""
        shown, self._pictures = bool(self._pictures), ()
        self.beginning = self._begin()
        return shown

    def toolbox(self) -> Toolbox:
        """Tools of one conversation; the paper can be searched where not all of it is shown."""
        return Toolbox(self.index, self.files, self.document if self.left_out else None)

    def ask(
        self, name: str, answer: type[AnswerT], check: Callable[[AnswerT], list[str]], *, limits: LoopLimits,
        reporter: Reporter, stage: str, tools: Sequence[ReaderTool] = (), **values: Any,
    ) -> Conversation[AnswerT]:  # fmt: skip
        """Hold one conversation: the beginning, a prompt, and what the reader asks for.

        Args:
            name: of the prompt that follows the beginning.
            answer: what is submitted.
            check: what is wrong with it.
            limits: turns and refusals.
            reporter: notes.
            stage: for them, ledger and budget.
            tools: what can be asked for.
            values: inputs of the prompt.

        Raises:
            ModelError: the endpoint failed.
            BudgetError: the budget does not allow the next call.
        """
        prompt = load_prompt(_PACKAGE, name)
        *first, last = self.beginning
        asked = prompt.render(**values)[-1]  # untrusted inputs are announced by the beginning
        messages = (*first, last.evolve(content=(*last.content, *asked.content)))
        with self.client.scope("stage", stage):
            return converse(
                self.client, messages, tools=tools, answer=answer, check=check, limits=limits, prompt=prompt.ref,
                reporter=reporter, stage=stage, parameters=self._parameters(),
            )  # fmt: skip


def draft_with_model(
    reader: PaperReader,
    rehearsed: Rehearsed,
    *,
    options: ReadingOptions = ReadingOptions(),  # noqa: B008 - immutable
    reporter: Reporter = _SILENT,
) -> EngineResult:
    """Turn a paper into draft tasks with a model.

    The same paper, repository, runs and answers give the same drafts, in whatever order the answers arrive.

    Args:
        reader: the paper, the repository and the model; calls count in the current budget scope.
        rehearsed: what was run.
        options: how to read.
        reporter: is told about each step of each pass.

    Returns:
        Drafts by confidence, then by the reader's order; everything that was dropped is a problem.

    Raises:
        ExpbenchError: a failure that is not about one question alone: authentication, quota, budget, network, overload,
            a rejected request, a missing recorded exchange, an interrupt. What was answered is in the client's store.
    """
    problems = _flagged(reader.document)
    if reader.left_out:
        message = f"{len(reader.left_out)} blocks were not shown to the model: its context window does not hold them"
        problems.append(_problem("paper", message))
    experiments, listed = _list(reader, problems, reporter)
    chosen = _chosen(experiments, options.max_tasks, problems)
    reporter.start("tasks", len(chosen))

    def write(item: Experiment) -> _Result:
        return _write(reader, rehearsed, item, [other for other in experiments if other is not item], reporter)

    results = _each(chosen, write, options.workers, reader.client)
    made = []
    for result in results:
        problems += result.problems
        reporter.step("tasks", f"{result.written.experiment.title}: {result.written.fate}")
        if result.draft is not None and result.choice is not None:
            made.append((result.draft, result.choice))
    reporter.end("tasks", f"{len(made)} drafts")
    drafts = unique_slugs([draft for draft, _ in made])
    ordered = sorted(
        zip(drafts, (choice for _, choice in made), strict=True), key=lambda item: -item[0].confidence
    )  # stable: the reader's order among equals
    problems += _unclaimed(reader, rehearsed, drafts) if options.max_tasks is None else []
    if not drafts:
        problems.append(_problem(reader.document.title or "paper", "no result of this paper could be made a task"))
    config = reader.client.config
    used = PROMPTS[:3] if chosen else PROMPTS[:2]
    reading = ModelReading(
        model=config.model, endpoint=config.endpoint or config.url, beginning=reader.digest, left_out=reader.left_out,
        prompts=tuple(ref for ref in engine_prompts() if ref.name in used), listed=listed,
        written=tuple(result.written for result in results),
    )  # fmt: skip
    said = tuple(dict.fromkeys(problems))
    return EngineResult(
        drafts=DraftResult(drafts=tuple(draft for draft, _ in ordered), problems=said),
        choices=tuple(choice for _, choice in ordered), reading=reading,
    )  # fmt: skip


# --- pass 1 ----------------------------------------------------------------------------------------------------------


def _list(
    reader: PaperReader, problems: list[Problem], reporter: Reporter
) -> tuple[tuple[Experiment, ...], tuple[Step, ...]]:
    """The experiments of the paper, as far as what is said of them exists."""
    reporter.start("experiments", 1)
    last: list[tuple[Experiments, list[str]]] = []

    def check(said: Experiments) -> list[str]:
        last.append(reader.gates.experiments(said))
        return last[-1][1]

    def ask() -> Conversation[Experiments]:
        return reader.ask(
            "experiments", Experiments, check, limits=_LIST, reporter=reporter, stage="experiments"
        )  # fmt: skip

    try:
        try:
            talk = ask()
        except ModelError as error:
            if error.kind is not FailureKind.REQUEST_REJECTED or not reader.without_pictures():
                raise
            message = f"no picture was shown: the endpoint rejected the first question with one ({error.cause})"
            problems.append(_problem("pictures", message))
            talk = ask()
    except ModelError as error:
        if error.kind not in _LOCATED:
            raise
        problems.append(_problem("experiments", f"{error.kind.value}: {error.cause}; nothing was read"))
        reporter.end("experiments", error.cause)
        return (), ()
    if not last:
        problems.append(_problem("experiments", f"the model listed nothing: {talk.reason}"))
    elif talk.value is None:
        problems += [_problem("experiments", f"left out: {wrong}") for wrong in last[-1][1]]
    found = last[-1][0].experiments if last else ()
    reporter.end("experiments", f"{len(found)} experiments, {sum(item.runs_here for item in found)} of which run here")
    return found, talk.steps


def _chosen(experiments: Sequence[Experiment], most: int | None, problems: list[Problem]) -> tuple[Experiment, ...]:
    """Those that become tasks: what can be run here first, and nothing for which there is no code."""
    with_code = sorted((item for item in experiments if item.files), key=lambda item: not item.runs_here)
    problems += [
        _problem(item.title, f"no task: nothing in the repository carries it out: {item.why}")
        for item in experiments
        if not item.files
    ]
    if most is not None:
        problems += [
            _problem(item.title, f"left out: only {most} were asked for", Severity.INFO) for item in with_code[most:]
        ]
    return tuple(with_code[:most])


# --- pass 2 ----------------------------------------------------------------------------------------------------------


class _Result(Record):
    """What came of one experiment."""

    written: Written
    problems: tuple[Problem, ...]
    draft: Draft | None = None
    choice: ReaderChain | None = None


def _write(
    reader: PaperReader, rehearsed: Rehearsed, item: Experiment, others: Sequence[Experiment], reporter: Reporter
) -> _Result:
    """One experiment as a task."""
    last: list[tuple[SaidTask, Checked]] = []

    def check(said: SaidTask) -> list[str]:
        last.append((said, reader.gates.task(said, item.claims)))
        return last[-1][1].complaints

    toolbox = reader.toolbox()
    try:
        talk = reader.ask(
            "task", SaidTask, check, limits=_WRITE, reporter=reporter, stage="tasks", tools=toolbox.tools,
            experiment=_shown(item), others=[other.title for other in others] or ["none"],
        )  # fmt: skip
    except ModelError as error:
        if error.kind not in _LOCATED:
            raise
        fate = f"no task: {error.kind.value}: {error.cause}"
        return _Result(written=Written(experiment=item, fate=fate), problems=(_problem(item.title, fate),))
    problems = [problem.evolve(component=_COMPONENT) for problem in toolbox.flagged]
    if not last:
        fate = f"no task: {talk.reason}"
        written = Written(experiment=item, fate=fate, steps=talk.steps)
        return _Result(written=written, problems=(*problems, _problem(item.title, fate)))
    said, checked = last[-1]
    problems += [_problem(item.title, f"dropped: {wrong}") for wrong in checked.complaints]
    problems += [_problem(item.title, note) for note in checked.notes]
    run = rehearsed.behind(checked.usage) if checked.usage else None
    if run is not None:
        checked.claims, left_out = rehearsed.bound(checked.claims, run, reader.document)
        problems += [_problem(item.title, told, Severity.INFO) for told in left_out]
    why_not = why_no_task(checked)
    written = Written(
        experiment=item, fate=f"no task: {why_not}" if why_not else "draft", answer=said,
        refusals=tuple(checked.complaints), steps=talk.steps,
    )  # fmt: skip
    if why_not:
        return _Result(written=written, problems=(*problems, _problem(item.title, written.fate)))
    draft = compose(reader.listing, item.title, checked)
    also = rehearsed.others(checked.claims, run, reader.document)
    chain = Chain(sources=checked.sources, usage=checked.usage, confidence=1.0 if run is not None else _READER)
    choice = ReaderChain(
        chain=chain if checked.sources else None, not_found=checked.not_found, searched=tuple(toolbox.searched),
        requirements=checked.requirements, run=run.candidate.key if run is not None else "",
        others=tuple(other.candidate.key for other in also), problems=tuple(problems),
    )  # fmt: skip
    return _Result(written=written, problems=tuple(problems), draft=draft, choice=choice)


def _shown(item: Experiment) -> str:
    """An experiment of the list, for the prompt."""
    lines = [item.title, f"numbers: {', '.join(item.claims)}", f"files: {', '.join(item.files)}"]
    lines += [f"command: {item.command}"] if item.command else []
    return "\n".join([*lines, f"{'can run here' if item.runs_here else 'cannot run here'}: {item.why}"])


def _each(items: Sequence[ItemT], work: Callable[[ItemT], ResultT], workers: int, client: ModelClient) -> list[ResultT]:
    """`work` for all items, several at once, results in the order of the items.

    The first failure (in that order) is raised; what is under way ends before, so that its answers are kept, and what
    has not begun is not asked.
    """
    if workers <= 1 or len(items) <= 1:
        return [work(item) for item in items]
    with ThreadPoolExecutor(min(workers, len(items)), thread_name_prefix="expbench-read") as pool:
        futures = [pool.submit(copy_context().run, work, item) for item in items]
        try:
            return [future.result() for future in futures]
        except KeyboardInterrupt:
            client.cancel.cancel()  # otherwise leaving the pool would wait for answers of minutes
            raise
        finally:
            for future in futures:
                future.cancel()


# --- the beginning ---------------------------------------------------------------------------------------------------


def _too_much(listing: Listing, room: int | None) -> tuple[str, ...]:
    """Blocks that are not shown where the paper is longer than `room` tokens.

    Those that its captions have least to do with; tables, captions and headings are always shown.
    """
    size = typical_text_tokens(listing.shown())
    if room is None or size <= room:
        return ()
    names = {passage.id: name for name, passage in listing.passages.items()}
    units = [unit for unit in units_of(listing.document) if unit.id in names]
    query = " ".join(caption.text for caption in listing.document.captions) or listing.document.title
    ranked = [names[hit.unit.id] for hit in LexicalIndex(units).search(query, len(units))]
    dropped: list[str] = []
    for name in [*(other for other in reversed(names.values()) if other not in ranked), *reversed(ranked)]:
        if size <= room:
            break
        size -= typical_text_tokens(listing.passages[name].text)
        dropped.append(name)
    return tuple(name for name in listing.passages if name in dropped)


# --- problems --------------------------------------------------------------------------------------------------------


def _problem(where: str, message: str, severity: Severity = Severity.WARNING) -> Problem:
    return Problem(component=_COMPONENT, where=where, message=message, severity=severity)


def _flagged(document: Document) -> list[Problem]:
    """Text that speaks to its reader as to a model: shown to the reviewer, and to the model as data like all text."""
    texts = [(f"page {passage.page}", passage.text) for passage in document.passages]
    texts += [(f"{caption.label}, page {caption.page}", caption.text) for caption in document.captions]
    problems = [
        _problem(where, f"text that {found.kind}: `{found.quote}`; it was read as data")
        for where, text in texts
        for found in addressed_to_models(text)
    ]
    return problems + [
        _problem(
            f"page {hidden.page}",
            f"invisible text ({hidden.reason}) that {found.kind}: `{found.quote}`; it reached no prompt",
        )
        for hidden in document.hidden
        for found in addressed_to_models(hidden.text)
    ]


def _unclaimed(reader: PaperReader, rehearsed: Rehearsed, drafts: Sequence[Draft]) -> list[Problem]:
    """Tables whose numbers came out of a run, and that no draft claims."""
    claimed = {
        (evidence.label, evidence.page)
        for draft in drafts
        for claim in draft.expected.claims
        for evidence in claim.evidence
        if isinstance(evidence, TableEvidence)
    }
    labels = {(cell[0], cell[1]) for cell in claimed}
    found: dict[int, int] = {}
    for match in rehearsed.matches:
        if match.origin == "run":
            found[match.table] = max(found.get(match.table, 0), len(match.cells))
    tables = reader.document.tables
    pages = {number: {tables[number].page, *(page for page, _ in tables[number].continued)} for number in found}
    return [
        _problem(tables[number].label, f"a run gives {count} of its numbers, and no draft claims them", Severity.INFO)
        for number, count in sorted(found.items())
        if not any((tables[number].label, page) in labels for page in pages[number])
    ]
