"""The keyless engine of stage 2.1: a document becomes draft tasks without any language model.

Three passes after EXP-Bench 3.2: takeaways over the whole paper, one draft per experiment with the accumulated context,
refinement by re-querying the paper. Everything in a draft is read from the document and carries the span it was read
from; what was considered and refused is part of the result. It does not look at a repository and judges no claim.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from extractors._ownership import own_names
from extractors._reading import Reading, label_key
from extractors._scope import data_of, labels_of
from extractors._sentences import run_in_heading
from extractors.answers import states_answer
from extractors.drafting import compose_draft, unique_slugs
from extractors.method_text import Context, caption_text
from extractors.refining import Index
from extractors.result_tables import Refusal, listed_labels, read_result_table
from extractors.takeaways import find_takeaways
from pipeline.paper import Document, Table
from pipeline.progress import Reporter, SilentReporter
from pipeline.schema import Problem, Record, Severity
from pipeline.task import Draft, NumericClaim, TableEvidence

__all__ = ["DraftResult", "draft_tasks"]

_STAGE = "draft"
_SILENT = SilentReporter()
# Words of at most 60 letters: without an end, one "word" of 100,000 letters (a damaged text layer) took a minute.
_ABBREVIATION = re.compile(r"(?P<long>(?:[\w-]{1,60}\s){1,6})\((?P<short>[A-Z][A-Za-z0-9]{1,6})s?\)")


class DraftResult(Record):
    """Drafts, best first, and everything that was considered and refused."""

    drafts: tuple[Draft, ...]
    problems: tuple[Problem, ...] = ()


def draft_tasks(document: Document, *, max_tasks: int | None = None, reporter: Reporter = _SILENT) -> DraftResult:
    """Turn a paper into draft tasks (EXP-Bench 3.2, stage 2.1), deterministically.

    Args:
        document: the structured reading of a PDF.
        max_tasks: keep only the best ones; None keeps all.
        reporter: is told about each experiment.

    Returns:
        Drafts ordered by confidence, then by their place in the paper. No drafts is a possible answer; then `problems`
        says what was looked at and why it gave none.
    """
    reading = Reading(document)
    found = find_takeaways(reading)
    problems = list(found.problems)
    discussed = frozenset(block for e in found.experiments if e.table is not None for block in e.blocks)
    stated = frozenset(line.order for experiment in found.experiments for line in experiment.statements)
    refused = _refused(document)
    unread = (*refused["no_metric"], *refused["unclear"], *refused["copied"])
    context = Context(
        reading, Index(reading), _definitions(reading), refused["settings"], discussed, stated,
        labels_of(found.experiments) | _row_labels(unread),
        data_of(found.experiments, listed_labels(document.tables), [table.caption for table in document.tables])
        - own_names(reading),
        frozenset(label_key(e.label) for e in found.experiments if e.table is not None),
        found.experiments, unread,
    )  # fmt: skip
    reporter.start(_STAGE, len(found.experiments))
    composed: list[tuple[Draft, str]] = []
    for experiment in found.experiments:
        reporter.step(_STAGE, experiment.label)
        draft = compose_draft(context, experiment, problems)
        if draft is not None:
            composed.append((draft, caption_text(reading, experiment.table.table) if experiment.table else ""))
    drafts = _told_apart(composed)
    drafts = unique_slugs(_merged(drafts, problems))
    order = {draft.slug: position for position, draft in enumerate(drafts)}
    drafts.sort(key=lambda draft: (-draft.confidence, order[draft.slug]))
    for draft in drafts[max_tasks:] if max_tasks is not None else ():
        _say(problems, draft.slug, f"left out: only the best {max_tasks} were asked for")
    kept = tuple(drafts if max_tasks is None else drafts[:max_tasks])
    if not kept:
        _say(problems, document.title or "paper", "no result of this paper could be made a task", Severity.WARNING)
    reporter.end(_STAGE, f"{len(kept)} drafts")
    return DraftResult(drafts=kept, problems=tuple(problems))


def _say(problems: list[Problem], where: str, message: str, severity: Severity = Severity.INFO) -> None:
    problems.append(Problem(component="extract.keyless", where=where, message=message, severity=severity))


def _refused(document: Document) -> dict[str, tuple[Table, ...]]:
    """The tables that report no results by themselves, by the kind of their refusal."""
    tables: dict[str, tuple[Table, ...]] = defaultdict(tuple)
    for table in document.tables:
        found = read_result_table(table)
        if isinstance(found, Refusal):
            tables[found.kind] += (table,)
    return tables


def _row_labels(tables: Sequence[Table]) -> frozenset[str]:
    """What the rows of result tables compare of which no experiment could be made."""
    labels = (row[0].strip() for table in tables for row in table.grid[table.header_rows :] if row)
    return frozenset(label for label in labels if re.search(r"[^\W\d_]{3}", label) and len(label.split()) <= 4)


def _definitions(reading: Reading) -> dict[str, str]:
    """Abbreviations with their long forms, and symbols that a run-in heading defines (`MAE on the matrix H.`)."""
    names: dict[str, str] = {}
    for line in reading.lines:
        for match in _ABBREVIATION.finditer(line.text):
            short, words = match["short"], match["long"].split()
            letters = [c.lower() for c in short if c.isalpha()]
            size = len(letters)
            candidate = [part for word in words for part in word.split("-")][-size:]
            if size >= 2 and [w[0].lower() for w in candidate if w] == letters:
                start = " ".join(words)
                long = start[start.lower().rfind(candidate[0].lower()) :] if candidate else start
                names.setdefault(short, f"{long} ({short})")
    for passage in reading.document.passages:
        heading = run_in_heading(passage.text)
        words = heading.split() if heading else []
        if heading and len(words) > 2 and re.fullmatch(r"[^\W\d_]", words[-1]) and words[-1] not in "aAI":
            names.setdefault(words[-1], heading)
    return names


def _told_apart(composed: Sequence[tuple[Draft, str]]) -> list[Draft]:
    """Where two experiments would be asked about in the same words, what only one's caption says is added.

    Tables of one shape often differ in a condition that only the caption states (`true positive here is when ...`).
    """
    asked = Counter(draft.question for draft, _ in composed)
    captions = {id(draft): _sentences_of(caption) for draft, caption in composed}
    result = []
    for draft, _ in composed:
        twins = [
            captions[id(other)] for other, _ in composed if other is not draft and other.question == draft.question
        ]
        own = [part for part in captions[id(draft)] if not any(part.lower() in map(str.lower, twin) for twin in twins)]
        text = f"{draft.question[:-1]} (setting: {'; '.join(own)})?"
        apart = asked[draft.question] > 1 and own and not states_answer(text, draft)
        result.append(draft.evolve(question=text) if apart else draft)
    return result


def _sentences_of(caption: str) -> list[str]:
    """The sentences of a caption as parts of one: without full stop, the first letter small unless it is a name's."""
    parts = re.split(r"(?<=[^\W\d_][^\W\d_]|.[)\]%])\.\s+", caption.strip())
    parts = [part.strip(" .") for part in parts if re.search(r"[^\W\d_]{3}", part)]
    return [part[0].lower() + part[1:] if re.match(r"A\s|[A-Z][a-z]", part) else part for part in parts]


def _merged(drafts: list[Draft], problems: list[Problem]) -> list[Draft]:
    """Drop a draft whose claims another one holds too (four in five of them).

    Between two tables a claim is the same only under the same conditions: percentages of two digits coincide.
    """
    kept: list[Draft] = []
    for draft in drafts:
        twin = next((other for other in kept if _same_claims(draft, other)), None)
        if twin is None:
            kept.append(draft)
        else:
            _say(problems, draft.slug, f"merged into {twin.slug}: it makes the same claims")
    return kept


def _same_claims(draft: Draft, other: Draft) -> bool:
    from_tables = all(isinstance(d.expected.claims[0].evidence[0], TableEvidence) for d in (draft, other))

    def known(claim: NumericClaim) -> tuple[str, str, frozenset[str]]:
        values = frozenset(condition.value.lower() for condition in claim.conditions) if from_tables else frozenset()
        return claim.metric.lower(), claim.text, values

    own = {known(claim) for claim in draft.expected.claims}
    return len(own & {known(claim) for claim in other.expected.claims}) >= 0.8 * len(own)
