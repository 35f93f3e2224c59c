"""Many tasks in one go: a prediction for each case, in the form of the scorer; resumable, and never half written.

Each finished prediction lies in `<out>.partial/` until all are there, under a digest of what it depends on (the task,
what the repository holds, the version of the locator, the model). The same command goes on where it was
ended, and a repository or task that was changed meanwhile is searched again. A repository that cannot be searched
leaves its cases without a prediction: an empty one would say that nothing was found.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from flows.locate_inputs import Case, open_repository
from flows.locate_run import located, prediction
from pipeline.digests import digest_of
from pipeline.errors import FAILURES, Cause, ExpbenchError, FailureKind
from pipeline.files import exclusive_lock, remove_tree, write_text
from pipeline.locator import RepositoryIndex, build_index, locate
from pipeline.progress import Reporter
from pipeline.repository import Snapshot
from pipeline.version import STAGE_VERSIONS, version

if TYPE_CHECKING:
    from flows.locate_model import Search

__all__ = ["partial_directory", "run_cases"]

_FORM: Final = 3
"""Raise when the form of a prediction changes: kept ones of the older form are then made again."""


def partial_directory(out: Path) -> Path:
    """Where finished predictions wait for the others."""
    return out.with_name(f"{out.name}.partial")


def run_cases(
    cases: Sequence[Case],
    repositories: Path,
    out: Path,
    *,
    cache: Path,
    reporter: Reporter,
    search: Search | None = None,
    searcher: str = "keyless",
) -> dict[str, Any]:
    """Search all cases and write one prediction a line, in the order of the cases.

    Args:
        cases: the tasks.
        repositories: directory with the repository of each paper as `<paper_id>/`.
        out: the JSON Lines file; replaced atomically when all is done.
        cache: directory for indexes and exports of bare repositories.
        reporter: progress.
        search: decides the tasks of a repository; None: the deterministic search alone.
        searcher: what of `search` decides its answers.

    Returns:
        Counts: cases, predictions, chains, not_found, resumed (found from an earlier run), missing (papers without a
        repository), unreadable (papers whose repository cannot be searched, with the cause).

    Raises:
        ExpbenchError: `REPOSITORY_INVALID`: there is no directory, or none of the repositories can be searched;
            `WORKSPACE_LOCKED`: another process writes the same predictions.
    """
    if not repositories.is_dir():
        raise _no_repositories(repositories, "no such directory")
    partial = partial_directory(out)
    with exclusive_lock(partial / "lock", str(out)):
        run = _Run(repositories, partial, cache, reporter, search, searcher)
        reporter.start("locate", len(cases))
        for paper, group in _by_paper(cases):
            run.paper(paper, group)
        if not run.rows:
            remove_tree(partial)
            names = ", ".join(sorted([*run.missing, *run.unreadable])[:5])
            raise _no_repositories(
                repositories, f"holds none of the repositories {names} in a form that can be searched"
            )
        ordered = [run.rows[key] for case in cases if (key := (case.paper_id, case.task_index)) in run.rows]
        write_text(out, "".join(f"{row}\n" for row in ordered))
        remove_tree(partial)
    reporter.end("locate", f"{len(ordered)} predictions")
    found = [json.loads(row)["not_found"] is None for row in ordered]
    return {
        "cases": len(cases),
        "predictions": len(ordered),
        "chains": sum(found),
        "not_found": len(found) - sum(found),
        "resumed": run.resumed,
        "missing": run.missing,
        "unreadable": run.unreadable,
        "out": str(out),
    }


class _Run:
    """The cases of one command, paper by paper."""

    def __init__(
        self, repositories: Path, partial: Path, cache: Path, reporter: Reporter, search: Search | None, searcher: str
    ) -> None:
        self._search, self._searcher = search, searcher
        self._repositories, self._partial, self._cache, self._reporter = repositories, partial, cache, reporter
        self.rows: dict[tuple[str, int], str] = {}
        """The line of each case."""
        self.missing: list[str] = []
        self.unreadable: dict[str, str] = {}
        self.resumed = 0

    def paper(self, paper: str, group: Sequence[Case]) -> None:
        """Search the cases of one paper."""
        root = self._repositories / paper
        without = f"{len(group)} case(s) of paper {paper} have no prediction"
        if not root.is_dir():
            self.missing.append(paper)
            self._reporter.warn(f"{root}: no such directory; {without}")
            return
        try:
            snapshot = open_repository(str(root), None, self._cache, self._reporter)
        except ExpbenchError as error:
            if FAILURES[error.kind].cause is not Cause.USER:
                raise
            self.unreadable[paper] = error.cause
            self._reporter.warn(f"{root}: {error.cause}; {without}")
            return
        kept = {case.task_index: self._partial / f"{self._key(case, snapshot)}.json" for case in group}
        left = [case for case in group if not kept[case.task_index].is_file()]
        for case in group:
            if case not in left:
                self.resumed += 1
                self._done(case, kept[case.task_index].read_text(encoding="utf-8"), "kept from before")
        if not left:
            return
        index = build_index(snapshot, cache=self._cache / "indexes")
        for some in [left] if self._search is not None else [[case] for case in left]:
            for case, row in zip(some, self._rows(some, index), strict=True):
                write_text(kept[case.task_index], row)
                self._done(case, row, ", ".join(json.loads(row)["chain"]) or "not found")

    def _rows(self, cases: Sequence[Case], index: RepositoryIndex) -> list[str]:
        """The lines of cases; a model is asked about all that a repository has left together."""
        if self._search is None:
            found = [(locate(index, case.query), "keyless") for case in cases]
        else:
            found = self._search(index, [case.query for case in cases], f"reader/{cases[0].paper_id}.json")
        rows = []
        for case, (location, engine) in zip(cases, found, strict=True):
            value = {
                "paper_id": case.paper_id,
                "task_index": case.task_index,
                "engine": engine,
                **prediction(located(index, case.query, location=location, engine=engine)),
            }
            rows.append(json.dumps(value, ensure_ascii=False))
        return rows

    def _done(self, case: Case, row: str, message: str) -> None:
        self.rows[case.paper_id, case.task_index] = row
        self._reporter.step("locate", f"{case.paper_id}/{case.task_index}: {message}")

    def _key(self, case: Case, snapshot: Snapshot) -> str:
        """What a prediction depends on."""
        return digest_of(
            [_FORM, self._searcher, version(), STAGE_VERSIONS["locate"], snapshot.ref.commit,
             case.paper_id, case.task_index, case.query.model_dump(mode="json")]
        )  # fmt: skip


def _by_paper(cases: Sequence[Case]) -> Iterator[tuple[str, list[Case]]]:
    for paper, group in itertools.groupby(
        sorted(cases, key=lambda case: case.paper_id), key=lambda case: case.paper_id
    ):
        yield paper, list(group)


def _no_repositories(root: Path, cause: str) -> ExpbenchError:
    return ExpbenchError(
        FailureKind.REPOSITORY_INVALID,
        str(root),
        cause,
        consequence="No prediction was written",
        next_step="Put the files of each paper's repository into a directory of its own, DIR/<paper_id>/",
    )
