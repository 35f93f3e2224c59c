"""The model engine of stage 2.1: a document becomes draft tasks with a language model (EXP-Bench 3.2).

Tables and figures are read from their pictures, high-level takeaways are found by retrieval, the paper is read
subsection by subsection with accumulated context, and each candidate is completed by asking the whole paper again.
Out comes the same `DraftResult` as from the keyless engine: everything in a draft has a span of the paper behind it,
and what a model said beyond that is a problem in the report. The keyless engine is the cross-check, never a stand-in.
Non-goals: looking at a repository, opening clients and budgets (see `flows.engines`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from extractors._reading import label_key
from extractors.chroma import LOCAL_EMBEDDING, ChromaIndex, Embedding
from extractors.drafting import DraftResult, unique_slugs
from extractors.engine.asking import PROMPTS, Asker, info, prompt
from extractors.engine.checking import CheckedTask
from extractors.engine.composing import compose, lacks
from extractors.engine.evidence import Paper
from extractors.engine.refining import refine
from extractors.engine.subsections import SubsectionReading, read_subsections
from extractors.engine.takeaways import Takeaway, find_takeaways
from extractors.engine.vision import VisualReading, read_visuals
from extractors.index import DenseIndex, Embed, FusedIndex, LexicalIndex, PaperIndex, units_of
from extractors.keyless import draft_tasks
from pipeline.llm import ModelClient, PromptRef
from pipeline.llm.untrusted import addressed_to_models
from pipeline.paper import Document
from pipeline.progress import Reporter, SilentReporter
from pipeline.schema import Problem, Record, Severity, StoredRecord
from pipeline.task import Draft, TableEvidence

__all__ = ["EngineResult", "ModelReading", "ReadingOptions", "draft_with_model", "engine_prompts"]

_SILENT: Final = SilentReporter()
_COMPONENT: Final = "extract.model"
_SAME_TASK: Final = 0.8
"""Share of a candidate's claims that another one holds too: the same measure as the keyless engine's."""


class ReadingOptions(Record):
    """How the engine reads."""

    max_tasks: int | None = None
    """Keep only the best ones; None keeps all."""
    vision: bool = True
    """Show the pictures of tables and figures to the model."""
    workers: int = 4
    """Questions under way at once, where they do not depend on each other."""


class ModelReading(StoredRecord):
    """What the passes found on their way to the drafts, for people."""

    model: str
    endpoint: str
    prompts: tuple[PromptRef, ...]
    """Those that were used."""
    index: str
    visuals: tuple[VisualReading, ...] = ()
    takeaways: tuple[Takeaway, ...] = ()
    subsections: tuple[SubsectionReading, ...] = ()
    candidates: tuple[tuple[str, str], ...] = ()
    """(title and place of a candidate, what became of it)."""


class EngineResult(Record):
    """Drafts, and how they came about."""

    drafts: DraftResult
    reading: ModelReading


def engine_prompts() -> tuple[PromptRef, ...]:
    """All prompts of the engine, for keys and provenance.

    Raises:
        ExpbenchError: `PROMPT_INVALID` when one of the files is broken.
    """
    return tuple(prompt(name).ref for name in PROMPTS)


def draft_with_model(
    document: Document,
    *,
    client: ModelClient,
    pdf: Path | None = None,
    embed: Embed | None = None,
    embed_name: str = "endpoint",
    index_dir: Path | None = None,
    options: ReadingOptions = ReadingOptions(),  # noqa: B008 - immutable
    reporter: Reporter = _SILENT,
) -> EngineResult:
    """Turn a paper into draft tasks with a model.

    The same document and the same answers give the same drafts, in whatever order the answers arrive.

    Args:
        document: the structured reading of a PDF.
        client: the model; calls count in the current budget scope, or else in the client's own.
        pdf: the file, for pictures; None: no picture is shown.
        embed: makes the vectors of the dense index; None: the local embedding does, where there is an `index_dir`.
        embed_name: tells one embedding model's index from another's.
        index_dir: where the dense index is kept (Chroma); None: dense only with `embed`, and in memory.
        options: how to read.
        reporter: is told about each step of each pass.

    Returns:
        Drafts by confidence, then by their place in the paper; everything that was dropped is a problem.

    Raises:
        ExpbenchError: a failure that is not about one question alone: authentication, quota, budget, network, overload,
            a rejected request, a missing recorded exchange, an interrupt. What was answered is in the client's store.
    """
    asker = Asker(client, options.workers)
    paper = Paper(document)
    problems = _flagged(document)
    index, index_name = _index(document, embed, embed_name, index_dir)
    visuals: tuple[VisualReading, ...] = ()
    if options.vision and pdf is not None:
        visuals = read_visuals(asker, document, pdf, problems, reporter)
    takeaways = find_takeaways(asker, paper, index, problems, reporter)
    candidates, subsections = read_subsections(asker, paper, takeaways, visuals, problems, reporter)
    fates: dict[int, str] = {}
    chosen = _chosen(candidates, problems, fates)
    drafts = _drafts(asker, paper, index, chosen, options.max_tasks, problems, fates, reporter)
    _disputed(drafts, visuals, problems)
    _cross_check(document, drafts, takeaways, candidates, problems)
    if not drafts:
        message = "no result of this paper could be made a task"
        problems.append(Problem(component=_COMPONENT, where=document.title or "paper", message=message))
    reading = ModelReading(
        model=client.config.model,
        endpoint=client.config.endpoint or client.config.url,
        prompts=tuple(ref for ref in engine_prompts() if ref.name in asker.used),
        index=index_name,
        visuals=visuals,
        takeaways=takeaways,
        subsections=subsections,
        candidates=tuple((f"{c.title} ({c.where})", fates.get(id(c), "not looked at")) for c in candidates),
    )
    said = tuple(dict.fromkeys(problems))
    return EngineResult(drafts=DraftResult(drafts=tuple(drafts), problems=said), reading=reading)


def _index(
    document: Document, embed: Embed | None, embed_name: str, directory: Path | None
) -> tuple[PaperIndex, str]:  # fmt: skip
    units = units_of(document)
    lexical = LexicalIndex(units)
    if directory is not None:
        embedding = LOCAL_EMBEDDING if embed is None else Embedding(embed_name, embed)
        dense = ChromaIndex(units, directory, embedding)
        return FusedIndex((lexical, dense)), f"lexical (BM25) and dense (Chroma, {embedding.name}), by reciprocal rank"
    if embed is None:
        return lexical, "lexical (BM25)"
    return FusedIndex((lexical, DenseIndex(units, embed))), "lexical (BM25) and dense, by reciprocal rank"


def _flagged(document: Document) -> list[Problem]:
    """Text that speaks to its reader as to a model: shown to the reviewer, and to the model as data like all text."""
    texts = [(f"page {passage.page}", passage.text) for passage in document.passages]
    texts += [(f"{caption.label}, page {caption.page}", caption.text) for caption in document.captions]
    problems = [
        Problem(
            component=_COMPONENT, where=where, message=f"text that {found.kind}: `{found.quote}`; it was read as data"
        )
        for where, text in texts
        for found in addressed_to_models(text)
    ]
    problems += [
        Problem(
            component=_COMPONENT, where=f"page {hidden.page}",
            message=f"invisible text ({hidden.reason}) that {found.kind}: `{found.quote}`; it reached no prompt",
        )
        for hidden in document.hidden
        for found in addressed_to_models(hidden.text)
    ]  # fmt: skip
    return problems


def _chosen(candidates: list[CheckedTask], problems: list[Problem], fates: dict[int, str]) -> list[CheckedTask]:
    """Candidates that can become tasks, each experiment once: of two alike the one with more that is supported."""
    kept: list[CheckedTask] = []
    for task in candidates:
        where = f"{task.title} ({task.where})"
        missing = lacks(task)
        if missing:
            fates[id(task)] = f"no task: {missing}"
            problems.append(Problem(component=_COMPONENT, where=where, message=f"no task: {missing}"))
            continue
        twin = next((n for n, other in enumerate(kept) if _alike(task, other)), None)
        if twin is None:
            kept.append(task)
            continue
        better, worse = (task, kept[twin]) if task.kept > kept[twin].kept else (kept[twin], task)
        kept[twin] = better
        better.takeaways = tuple(dict.fromkeys([*better.takeaways, *worse.takeaways]))
        known = {span.text for span in better.statements}
        better.statements += [span for span in worse.statements if span.text not in known]
        fates[id(worse)] = f"merged into {better.title}"
        problems.append(
            info(_COMPONENT, where, f"merged into {better.title} ({better.where}): it makes the same claims")
        )
    return kept


def _alike(one: CheckedTask, other: CheckedTask) -> bool:
    mine, theirs = one.claim_keys, other.claim_keys
    return len(mine & theirs) >= _SAME_TASK * min(len(mine), len(theirs))


def _drafts(
    asker: Asker, paper: Paper, index: PaperIndex, chosen: list[CheckedTask], max_tasks: int | None,
    problems: list[Problem], fates: dict[int, str], reporter: Reporter,
) -> list[Draft]:  # fmt: skip
    """Refine and compose: all candidates, or the best ones until there are as many drafts as were asked for."""
    order = {id(task): position for position, task in enumerate(chosen)}
    waiting = sorted(chosen, key=lambda task: (-len(task.takeaways) - task.kept / 100, order[id(task)]))
    if max_tasks is None:
        waiting = chosen
    made: list[tuple[int, Draft]] = []
    reporter.start("refine", len(waiting))

    def finish(task: CheckedTask) -> tuple[Draft | None, list[Problem]]:
        with asker.stage("refine"):
            refined, said, why_not = refine(asker, paper, index, task)
        if why_not:
            where = f"{task.title} ({task.where})"
            return None, [*said, Problem(component=_COMPONENT, where=where, message=f"no task: {why_not}")]
        draft, more = compose(asker, paper, refined)
        return draft, [*said, *more]

    while waiting and (max_tasks is None or len(made) < max_tasks):
        batch = waiting if max_tasks is None else waiting[: max_tasks - len(made)]
        waiting = waiting[len(batch) :]
        for task, (draft, said) in zip(batch, asker.each(batch, finish), strict=True):
            problems += said
            fates[id(task)] = "draft" if draft is not None else said[-1].message
            if draft is not None:
                made.append((order[id(task)], draft))
            reporter.step("refine", f"{task.title}: {fates[id(task)]}")
    for task in waiting:
        fates[id(task)] = f"left out: only the best {max_tasks} were asked for"
        problems.append(info(_COMPONENT, f"{task.title} ({task.where})", fates[id(task)]))
    reporter.end("refine", f"{len(made)} drafts")
    made.sort(key=lambda item: item[0])
    unique = unique_slugs([draft for _, draft in made])
    place = {draft.slug: position for position, draft in enumerate(unique)}
    return sorted(unique, key=lambda draft: (-draft.confidence, place[draft.slug]))


def _disputed(drafts: list[Draft], visuals: tuple[VisualReading, ...], problems: list[Problem]) -> None:
    """Claims on cells that picture and text layer give differently: kept as printed, and shown."""
    apart = {(label_key(v.label), d.row, d.column): d for v in visuals for d in v.differences}
    for draft in drafts:
        for claim in draft.expected.claims:
            for cell in claim.evidence:
                if not isinstance(cell, TableEvidence) or cell.row is None or cell.column is None:
                    continue
                found = apart.get((label_key(cell.label), cell.row, cell.column))
                if found is not None:
                    message = (
                        f"claim {claim.id} ({claim.metric} = {claim.text}) rests on a disputed cell: the picture of "
                        f"{cell.label} reads `{found.picture}`"
                    )
                    problems.append(Problem(component=_COMPONENT, where=draft.slug, message=message))


def _cross_check(
    document: Document, drafts: list[Draft], takeaways: tuple[Takeaway, ...], candidates: list[CheckedTask],
    problems: list[Problem],
) -> None:  # fmt: skip
    """What the keyless engine finds and the model did not take up, and takeaways that no candidate answers."""
    covered = {label_key(label) for draft in drafts for label in _tables_of(draft)}
    for other in draft_tasks(document).drafts:
        for label in sorted(_tables_of(other)):
            if label_key(label) not in covered:
                message = f"the keyless engine finds an experiment here ({other.slug}) that no draft of the model holds"
                problems.append(Problem(component=_COMPONENT, where=label, message=message, severity=Severity.INFO))
    answered = {name for task in candidates for name in task.takeaways}
    problems += [
        info(_COMPONENT, takeaway.id, f"no candidate answers the takeaway `{takeaway.statement}`")
        for takeaway in takeaways
        if takeaway.id not in answered
    ]


def _tables_of(draft: Draft) -> frozenset[str]:
    found = (evidence for claim in draft.expected.claims for evidence in claim.evidence)
    return frozenset(evidence.label for evidence in found if isinstance(evidence, TableEvidence))
