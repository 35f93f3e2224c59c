"""The tables of a submission as our own run of it wrote them; and whether they are computed, or copies of numbers.

Only these tables count for data accuracy and the callback: what was merely handed in shows nothing. Where numbers in
what was handed in are near the tables' values, they are moved and the submission is run once more (`families.rerun`):

- values that follow numbers of a *program* were typed: a violation, with the share of them that PRBench 5.2.1 and B.4
  call made up;
- values that follow numbers of a *data file* were not computed by this run: they count as handed in, nobody is accused.

Of the oracle, which the harness itself lets hand in the truth, nothing is run: tables that are the truth letter by
letter count as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Final

from pydantic import Field

from evaluation.episode import EpisodeFolder, EpisodeLimits
from evaluation.families.rerun import Copied, Ran, Rerun, copied_values, is_oracle, moved_numbers, read_output
from evaluation.families.table.banned import asked_findings
from evaluation.families.table.banned_list import BannedLibrary, banned_libraries
from evaluation.families.table.compare import row_keys
from evaluation.families.table.csvfile import TableError, number_of, parse_table
from evaluation.families.table.records import FileRule, TableTask
from evaluation.integrity.material import is_code
from evaluation.submission import Submission
from evaluation.task import EvaluationTask
from evaluation.verdicts import ExecutionReport, Finding, ViolationKind
from pipeline.files import find_record
from pipeline.progress import Reporter
from pipeline.sandbox.base import Sandbox
from pipeline.schema import StoredRecord
from pipeline.store import write_if_changed
from pipeline.task import Verdict

__all__ = ["Reexecution", "read_reexecution", "reexecute"]

_FILE: Final = "reexecution.json"
_VIOLATION_SHARE: Final = 0.5
"""Of the tables' values that follow typed numbers: more than constants and published reference values explain."""

Columns = Mapping[str, Sequence[float | None]]


class Reexecution(StoredRecord):
    """`reexecution.json`: what our own run of a submission showed."""

    SCHEMA_VERSION: ClassVar[int] = 1

    ran: Ran
    tables: dict[str, str] = Field(default_factory=dict)
    """Expected table -> its text as the run wrote it and as far as it counts."""
    copied: tuple[str, ...] = ()
    """Tables that the run wrote with values that it did not compute."""
    findings: tuple[Finding, ...] = ()


def read_reexecution(folder: EpisodeFolder) -> Reexecution | None:
    """What a re-execution showed; None where there was none."""
    return find_record(folder.root / _FILE, Reexecution)


def reexecute(
    evaluation: EvaluationTask, task: TableTask, folder: EpisodeFolder, submission: Submission, *, sandbox: Sandbox,
    limits: EpisodeLimits, owner: str, reporter: Reporter,
) -> ExecutionReport | None:  # fmt: skip
    """Run a submission again; writes `reexecution.json`. None: the task has no tables, nothing is run for it.

    Raises:
        ExpbenchError: the user interrupted, or a defect of ours; nothing is known.
    """
    (folder.root / _FILE).unlink(missing_ok=True)
    if not task.files:
        return None
    if is_oracle(folder):
        found = _of_oracle(task, folder)
    else:
        outputs = tuple(rule.path for rule in task.files)
        rerun = Rerun(
            evaluation, folder, submission, outputs, task.expected.code, sandbox, limits, owner, reporter
        )  # fmt: skip
        found = _run(task, rerun)
    write_if_changed(folder.root / _FILE, found.model_dump_json(indent=1) + "\n")
    ran, produced = found.ran, tuple((rule.path, rule.path in found.tables) for rule in task.files)
    missing = [path for path, there in produced if not there]
    verdict, reason = ran.verdict, ran.reason
    if missing and verdict is not Verdict.UNKNOWN:
        verdict = Verdict.FAIL
        reason += f"; {len(missing)} of {len(produced)} table(s) were not computed: {', '.join(missing[:5])}"
    return ExecutionReport(
        verdict=verdict, reason=reason, applied=bool(ran.log), exit_code=ran.exit_code, failure=ran.failure,
        outputs=produced, log=ran.log, duration_s=ran.duration_s,
    )  # fmt: skip


def _of_oracle(task: TableTask, folder: EpisodeFolder) -> Reexecution:
    tables = {}
    for rule in task.files:
        path = folder.submission / "files" / rule.path
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        if text and text == task.read(rule.truth):
            tables[rule.path] = text
    reason = "the harness lets the oracle hand in the truth: its tables are that, letter by letter"
    return Reexecution(ran=Ran(verdict=Verdict.PASS, reason=reason), tables=tables)


def _run(task: TableTask, rerun: Rerun) -> Reexecution:
    banned = banned_libraries(task)
    # a library that the task itself installs is needed for something, whatever the text says of it
    installed = " ".join(task.container.packages).lower()
    only_watched = [item for item in banned if item.conditional or any(name in installed for name in item.modules)]
    refused = _modules(item for item in banned if item not in only_watched)
    ran = rerun.run("clean", refused=refused, watched=_modules(only_watched))
    tables = _tables(task, rerun, ran)
    findings = asked_findings(ran.asked, [item.evolve(conditional=item in only_watched) for item in banned])
    columns = _columns(task, tables)
    copied: tuple[str, ...] = ()
    texts = rerun.handed_in() if columns else {}
    for kind in (True, False):  # programs and data files apart: numbers of both at once could not be told apart
        moved = moved_numbers({path: text for path, text in texts.items() if is_code(path) is kind}, columns)
        if moved is None:
            continue
        again = rerun.run("moved-programs" if kind else "moved-data", moved=moved.texts, refused=refused)
        after = _columns(task, _tables(task, rerun, again))
        if after:
            follows = copied_values(moved, columns, after)
            if follows is not None:
                copied += tuple({name.split("\0")[0]: None for name in follows.columns})
                findings += [_copied(follows)] if kind else []
        elif kind:
            first = next(iter(next(iter(moved.factors.values())).values()))
            reason = f"numbers near the tables' values are typed there; with them moved it writes none: {again.reason}"
            findings.append(_finding(Verdict.UNKNOWN, first, reason))
    tables = {path: text for path, text in tables.items() if path not in copied}
    return Reexecution(ran=ran, tables=tables, copied=copied, findings=tuple(findings))


def _modules(banned: Iterable[BannedLibrary]) -> tuple[str, ...]:
    return tuple(module for item in banned for module in item.modules)


def _tables(task: TableTask, rerun: Rerun, ran: Ran) -> dict[str, str]:
    found = {rule.path: read_output(rerun.folder, ran, rule.path) for rule in task.files}
    return {path: text for path, text in found.items() if text is not None}


def _columns(task: TableTask, tables: Mapping[str, str]) -> dict[str, list[float | None]]:
    """The value columns of tables, by table and name."""
    found: dict[str, list[float | None]] = {}
    for rule in task.files:
        try:
            table = parse_table(tables[rule.path].removeprefix("\ufeff"))
        except (KeyError, TableError):
            continue
        keys = _keys(task, rule)
        found |= {
            f"{rule.path}\0{name}": [number_of(cell) for cell in table.column(name)]
            for name in table.columns
            if name not in keys
        }
    return found


def _keys(task: TableTask, rule: FileRule) -> tuple[str, ...]:
    return row_keys(rule, parse_table(task.read(rule.truth)))


def _copied(follows: Copied) -> Finding:
    certain = follows.share >= _VIOLATION_SHARE
    reason = f"{follows.share:.0%} of the tables' values are numbers that were typed: they moved as these were moved"
    return _finding(Verdict.FAIL if certain else Verdict.UNKNOWN, follows.where, reason)


def _finding(verdict: Verdict, where: str, reason: str) -> Finding:
    return Finding(kind=ViolationKind.FABRICATED_RESULT, verdict=verdict, where=where, reason=reason)
