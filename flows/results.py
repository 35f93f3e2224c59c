"""Reports and comparisons of finished runs: what `expbench report`, `compare` and `failures` do.

Non-goal: running or grading anything; all of it is read from the runs' directories.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Literal

from evaluation.episode import EpisodeFolder
from evaluation.failures import Taxonomy, find_failures
from evaluation.metrics import RANKED_BY, Convention, Estimate, Metric, rank_key
from evaluation.report.html import HtmlReport, write_html
from evaluation.report.plain import episode_rows, to_csv, to_markdown, write_parquet
from evaluation.report.results import Results, configuration_of, load_results
from evaluation.report.summary import Summary, summarise
from evaluation.report.tables import UNKNOWN, Table, all_tables, percent, range_text
from evaluation.scores import EpisodeScores
from evaluation.statistics import Comparison, compare_metrics
from flows.engines import ModelOptions
from flows.grading_model import recorded_model
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import read_record, write_text
from pipeline.llm import model_config_from_environment
from pipeline.llm.config import find_key
from pipeline.progress import Reporter
from pipeline.schema import Record

__all__ = [
    "ComparisonReport", "Format", "Report", "compare_runs", "comparison_tables", "failures_of", "make_report",
    "report_text", "tables_of", "write_report",
]  # fmt: skip

Format = Literal["html", "md", "csv", "parquet", "json"]
FAILURES_FILE = "failures.json"
_COMPARED = (
    RANKED_BY,
    Metric.M,
    Metric.D,
    Metric.I,
    Metric.E,
    Metric.C,
    Metric.I_E,
    Metric.C_D,
    Metric.ALL,
    Metric.ALL_E,
)
_SIGNIFICANT = 0.05
_SHOWN = 3


class Report(Record):
    """What a report is written from."""

    summary: Summary
    taxonomy: Taxonomy | None
    unfinished: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


class ComparisonReport(Record):
    """Two runs on the tasks they share."""

    a: str
    b: str
    tasks: int
    """Shared tasks."""
    only_a: int
    only_b: int
    differing: tuple[str, ...]
    """Shared tasks whose locks differ: not set up or graded in the same way."""
    comparisons: tuple[Comparison, ...]
    paper: tuple[Comparison, ...]
    """The same in EXP-Bench's own convention; decides nothing."""
    ahead: Literal["a", "b"] | None
    """Which ranks higher, by `rank_key` over all episodes of the shared tasks; None: neither."""
    worse: tuple[str, ...]
    """Metrics in which b is significantly worse (Holm-corrected p below .05)."""
    better: tuple[str, ...]
    too_few: bool
    """There are so few shared tasks that no difference at all could have been significant."""


def make_report(runs: Sequence[Path], *, public: bool, reporter: Reporter) -> tuple[Results, Report]:
    """Read runs and compute everything that a report shows.

    A run's own `failures.json` is used when there is one for exactly these runs; otherwise failure types are made by
    the keyless engine.

    Raises:
        ExpbenchError: `RECORD_INVALID`, no run there or no finished episode in it; `USAGE`, a run is given twice.
    """
    results = load_results(runs)
    if not results.episodes:
        raise ExpbenchError(
            FailureKind.RECORD_INVALID,
            ", ".join(map(str, runs)),
            f"no episode has scores ({len(results.unfinished)} are not finished)",
            consequence="There is nothing to report",
            next_step="Finish the run with `expbench evaluate ... --resume`",
        )
    taxonomy = _stored(runs) or find_failures(_folders(results), client=None, reporter=reporter)
    problems = () if public else tuple(f"{problem.where}: {problem.message}" for problem in results.problems)
    report = Report(
        summary=summarise(results),
        taxonomy=_public(taxonomy) if public else taxonomy,
        unfinished=results.unfinished,
        problems=problems,
    )
    return results, report


def write_report(
    results: Results,
    report: Report,
    out: Path,
    form: Format,
    *,
    title: str,
    public: bool,
    pages: bool,
    reporter: Reporter,
) -> HtmlReport | list[Path]:
    """Write a report: HTML into a directory, CSV tables into a directory, the others as one file.

    Raises:
        ExpbenchError: `WORKSPACE_CONFLICT`: there is something else.
    """
    tables = all_tables(report.summary, report.taxonomy)
    if form == "html":
        return write_html(
            results, report.summary, report.taxonomy, out, title=title, public=public, pages=pages, reporter=reporter
        )
    if form == "csv":
        _directory(out)
        write_text(out / "episodes.csv", to_csv(episode_rows(results, public=public)))
        for table in tables:
            write_text(out / f"{table.name}.csv", to_csv(table))
        return [out / "episodes.csv", *(out / f"{table.name}.csv" for table in tables)]
    if out.is_dir():
        raise _conflict(out, f"is a directory, and a {form} report is one file")
    if form == "parquet":
        write_parquet(out, episode_rows(results, public=public))
    else:
        write_text(out, to_markdown(tables, title) if form == "md" else report.model_dump_json(indent=1) + "\n")
    return [out]


def report_text(results: Results, report: Report, form: Format, *, title: str, public: bool) -> str:
    """A report for standard output: Markdown, CSV (the episodes) or JSON."""
    if form == "md":
        return to_markdown(all_tables(report.summary, report.taxonomy), title)
    return to_csv(episode_rows(results, public=public)) if form == "csv" else report.model_dump_json() + "\n"


def tables_of(report: Report) -> tuple[Table, ...]:
    """The tables of a report, for the terminal."""
    return all_tables(report.summary, report.taxonomy)


def failures_of(run: Path, *, model: ModelOptions | None, reporter: Reporter) -> tuple[Taxonomy, Path]:
    """Make the failure taxonomy of a run and keep it in the run as `failures.json`.

    Args:
        run: the run's directory; a model's calls are kept there, so that the same question is never paid twice.
        model: who reads; None: the keyless engine.
        reporter: progress.

    Raises:
        ExpbenchError: as `make_report`; `AUTHENTICATION`, the model has no key; and others of the model layer.
    """
    results = load_results([run])
    if model is not None:
        find_key(model_config_from_environment(model.name))
    with nullcontext() if model is None else recorded_model(model, run / "failures", "failures") as client:
        taxonomy = find_failures(_folders(results), client=client, reporter=reporter)
    path = run / FAILURES_FILE
    write_text(path, taxonomy.model_dump_json(indent=1) + "\n")
    return taxonomy, path


def compare_runs(run_a: Path, run_b: Path, *, allow_different: bool) -> ComparisonReport:
    """Compare two runs on the tasks they share, metric by metric.

    Args:
        allow_different: compare tasks whose locks differ, too.

    Raises:
        ExpbenchError: `USAGE`, they share no task, or a run holds several agents; `RECORD_INVALID`, locks differ.
    """
    a, b = (_one_agent(run) for run in (run_a, run_b))
    tasks_a, tasks_b = {scores.task for scores in a}, {scores.task for scores in b}
    shared = tasks_a & tasks_b
    if not shared:
        raise ExpbenchError(
            FailureKind.USAGE,
            f"{run_a} and {run_b}",
            "share no task",
            consequence="Nothing was compared",
            next_step="Compare runs on the same tasks",
        )
    differing = tuple(sorted(task for task in shared if _locks(a, task) != _locks(b, task)))
    if differing and not allow_different:
        some = ", ".join(differing[:_SHOWN]) + (", ..." if len(differing) > _SHOWN else "")
        parts = _differing_parts(run_a, run_b, differing)
        what = f"; what differs: {', '.join(parts)}" if parts else ""
        raise ExpbenchError(
            FailureKind.RECORD_INVALID,
            f"{run_a} and {run_b}",
            f"{len(differing)} of {len(shared)} shared tasks were not set up or graded in the same way ({some}){what}",
            consequence="Nothing was compared: a difference could come from that",
            next_step="Run both with the same tasks, image, limits and graders, or give --allow-different",
        )
    rows_a = [scores for scores in a if scores.task in shared]
    rows_b = [scores for scores in b if scores.task in shared]
    comparisons = compare_metrics(rows_a, rows_b, _COMPARED)
    first = comparisons[0]
    ranks = {"a": rank_key(first.all_a), "b": rank_key(first.all_b)}
    significant = [item for item in comparisons if item.p_holm is not None and item.p_holm < _SIGNIFICANT]
    return ComparisonReport(
        a=_name(a),
        b=_name(b),
        tasks=len(shared),
        only_a=len(tasks_a - shared),
        only_b=len(tasks_b - shared),
        differing=differing,
        comparisons=comparisons,
        paper=compare_metrics(rows_a, rows_b, _COMPARED, Convention.PAPER),
        ahead=None if ranks["a"] == ranks["b"] else "a" if ranks["a"] < ranks["b"] else "b",
        worse=tuple(item.metric.value for item in significant if (item.difference or 0.0) < 0),
        better=tuple(item.metric.value for item in significant if (item.difference or 0.0) > 0),
        too_few=_smallest_p(comparisons) >= _SIGNIFICANT,
    )


def comparison_tables(compared: ComparisonReport) -> tuple[Table, Table]:
    """A comparison for the terminal: ours, which decides, and in EXP-Bench's convention."""
    paper = Convention.PAPER.value
    return (
        _comparison_table(
            compared.comparisons,
            "comparison",
            f"{compared.b} against {compared.a}",
            f"{compared.tasks} shared tasks ({compared.only_a} only in the first, {compared.only_b} only in the "
            "second), n of them known on both sides. Per cent; A, B: means over these [lowest and highest mean over "
            "all episodes of the shared tasks]; difference [95 % interval, bootstrapped over papers]; +/-: tasks on "
            "which the second is better and worse; p: Wilcoxon signed-rank [Holm-corrected over the metrics].",
        ),
        _comparison_table(
            compared.paper,
            "comparison-exp-bench",
            f"{paper}'s convention",
            f"E, I·E and AllX·E over execution-checked episodes and the monitor in M·D·I·C·E and M alone, as {paper} "
            "does it; it decides nothing here.",
        ),
    )


def _comparison_table(comparisons: Sequence[Comparison], name: str, title: str, note: str) -> Table:
    return Table(
        name=name,
        title=title,
        note=note,
        columns=("Metric", "n", "A", "B", "Difference", "+/-", "p"),
        rows=tuple(
            (
                item.metric.value,
                str(item.tasks),
                _side(item.mean_a, item.all_a),
                _side(item.mean_b, item.all_b),
                _difference(item),
                f"{item.better}/{item.worse}",
                UNKNOWN if item.p is None or item.p_holm is None else f"{item.p:.2g} [{item.p_holm:.2g}]",
            )
            for item in comparisons
        ),
    )


def _side(mean: float | None, whole: Estimate) -> str:
    if whole.low is None or whole.high is None:
        return UNKNOWN
    return f"{percent(mean)} [{range_text((whole.low, whole.high))}]"


def _difference(item: Comparison) -> str:
    if item.difference is None:
        return UNKNOWN
    shown = f"{100 * item.difference:+.1f}"
    return f"{shown} [{range_text(item.interval)}]" if item.interval else shown


def _smallest_p(comparisons: Sequence[Comparison]) -> float:
    """The smallest corrected p that one metric could have: all of n differences of one sign have 2 of 2^n."""
    tasks = max((item.tasks for item in comparisons), default=0)
    return len(comparisons) * 2.0 ** (1 - tasks)


def _one_agent(run: Path) -> list[EpisodeScores]:
    results = load_results([run])
    if len(results.configurations) != 1:
        found = ", ".join(item.label for item in results.configurations) or "no finished episode"
        raise ExpbenchError(
            FailureKind.USAGE,
            str(run),
            f"holds {found}",
            consequence="Nothing was compared",
            next_step="Compare runs of one agent with one model each",
        )
    return results.scores


def _differing_parts(run_a: Path, run_b: Path, tasks: Sequence[str]) -> list[str]:
    """Names of the digests that differ, where the runs kept their locks."""
    from pydantic import ValidationError

    from evaluation.lock import EpisodeLock, differences

    found: set[str] = set()
    for task in tasks:
        locks = []
        for run in (run_a, run_b):
            paths = sorted((run / "episodes" / task).glob("*/lock.json"))[:1]
            try:
                locks += [EpisodeLock.model_validate_json(path.read_bytes()) for path in paths]
            except ValidationError:  # of another version: only the message is poorer for it
                continue
        if len(locks) == len((run_a, run_b)):
            found.update(differences(*locks))
    return sorted(found)


def _locks(rows: Sequence[EpisodeScores], task: str) -> set[str]:
    return {scores.lock for scores in rows if scores.task == task}


def _name(rows: Sequence[EpisodeScores]) -> str:
    configuration = configuration_of(rows[0])
    return f"{configuration.label} ({configuration.run})"


def _folders(results: Results) -> list[tuple[str, EpisodeFolder]]:
    return [(episode.key, episode.folder) for episode in results.episodes]


def _stored(runs: Sequence[Path]) -> Taxonomy | None:
    """The taxonomy that `expbench failures` kept in the run; several runs have none in common."""
    if len(runs) != 1:
        return None
    path = runs[0] / FAILURES_FILE
    if not path.is_file():
        return None
    return read_record(
        path, Taxonomy, consequence="No report was written",
        next_step=f"Run `expbench failures {runs[0]}` again, or remove the file",
    )  # fmt: skip


def _public(taxonomy: Taxonomy) -> Taxonomy:
    """Failure types without texts that may come from the ground truth."""
    types = tuple(
        item.evolve(examples=())
        if item.known
        else item.evolve(examples=(), name=f"failure type {item.id} (name withheld)", description="")
        for item in taxonomy.types
    )
    return taxonomy.evolve(types=types, problems=())


def _directory(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise _conflict(out, "is a file, and a CSV report is a directory of tables")


def _conflict(out: Path, cause: str) -> ExpbenchError:
    return ExpbenchError(
        FailureKind.WORKSPACE_CONFLICT,
        str(out),
        cause,
        consequence="No report was written",
        next_step="Choose another --out",
    )
