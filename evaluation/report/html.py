"""The HTML report: an index of one file, the matrix of tasks and agents, and a page per episode beside them.

Pages are written again only when what they are made from has changed (size and time of the records, mode, version of
the templates), so that a report of a growing run costs what has grown. `manifest.json` holds what each was made from.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, NamedTuple

from evaluation.failures import Taxonomy
from evaluation.report.index_page import index_page
from evaluation.report.matrix_page import matrix_page
from evaluation.report.pages import TEMPLATES, Page, asset, remove_page, renderer, write_pages
from evaluation.report.results import Configuration, Episode, Results, configuration_of
from evaluation.report.summary import Summary
from pipeline.digests import text_digest
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import write_text
from pipeline.progress import Reporter
from pipeline.text import slug

__all__ = ["HtmlReport", "write_html"]

_STAGE: Final = "report"


class HtmlReport(NamedTuple):
    """What was written."""

    page: Path
    """The index, to be opened in a browser."""
    pages: int
    written: int
    """Pages that were new or had changed."""


def write_html(
    results: Results,
    summary: Summary,
    taxonomy: Taxonomy | None,
    out: Path,
    *,
    title: str,
    public: bool,
    pages: bool,
    reporter: Reporter,
) -> HtmlReport:
    """Write the report into a directory; what an earlier report left there is replaced.

    Args:
        taxonomy: failure types; None: none were made.
        public: leave out what only graders may see.
        pages: write the pages of the episodes, too.

    Raises:
        ExpbenchError: `WORKSPACE_CONFLICT`: the directory holds something else, or a report of the other mode
            (public and not): mixing them would leak.
    """
    manifest_path = out / "manifest.json"
    old = _manifest(out, manifest_path, public)
    render = renderer()
    folders, labels = _folders(results), results.labels()
    for name in ("episode.css", "episode.js"):
        write_text(out / "assets" / name, asset("base.css") + asset(name) if name.endswith(".css") else asset(name))
    made: dict[str, str] = {}
    todo: list[Page] = []
    if pages:
        for episode in results.episodes:
            configuration = configuration_of(episode.scores)
            name = f"{folders[configuration]}/{episode.folder.root.parent.name}/{episode.folder.root.name}"
            digest = _inputs(episode, labels[configuration], public)
            made[name] = digest
            if old.get(name) != digest or not (out / "episodes" / f"{name}.html").is_file():
                todo.append(Page(name, episode, labels[configuration]))
        reporter.start(_STAGE, len(todo))
        for name in write_pages(todo, out / "episodes", public=public):
            reporter.step(_STAGE, name)
        reporter.end(_STAGE, f"{len(todo)} of {len(made)} pages written")
    for name in sorted(old.keys() - made.keys()):
        remove_page(out / "episodes", name)
    if todo:
        os.sync()
    write_text(manifest_path, json.dumps({"expbench": "report", "public": public, "pages": made}, indent=0) + "\n")
    index = out / "index.html"
    text = index_page(results, summary, taxonomy, folders, render, title=title, public=public, pages=pages)
    write_text(index, text)
    matrix = out / "matrix.html"
    if summary.entries:
        text = matrix_page(results, summary, folders, render, title=title, public=public, pages=pages)
        write_text(matrix, text)
    else:  # of an earlier report
        matrix.unlink(missing_ok=True)
    return HtmlReport(index, len(made), len(todo))


def _folders(results: Results) -> dict[Configuration, str]:
    """A readable directory name for each configuration; a number keeps them apart."""
    return {
        item: f"{number}-{slug(f'{item.run} {item.agent} {item.model}', 60) or 'run'}"
        for number, item in enumerate(results.configurations, 1)
    }


def _inputs(episode: Episode, label: str, public: bool) -> str:
    """Digest of what a page is made from: the records' sizes and times stand for their content."""
    folder = episode.folder
    paths = [folder.scores, folder.trajectory, folder.integrity, folder.judgement, folder.execution]
    paths += [folder.submission / name for name in ("submission.json", "patch.diff", "reproduce.sh")]
    stamps = []
    for path in paths:
        try:
            status = path.stat()
        except FileNotFoundError:
            stamps.append("-")
        else:
            stamps.append(f"{status.st_size}:{status.st_mtime_ns}")
    return text_digest("\n".join([_version(), label, str(public), str(folder.root.resolve()), *stamps]))


def _manifest(out: Path, path: Path, public: bool) -> dict[str, str]:
    """Pages of an earlier report in this directory, with their digests."""
    if not out.exists():
        return {}
    if not out.is_dir():
        raise _conflict(out, "is not a directory")
    if not path.exists():
        if any(out.iterdir()):
            raise _conflict(out, "is not empty and holds no report")
        return {}
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
        ours = found["expbench"] == "report"
        pages = {str(name): str(digest) for name, digest in found["pages"].items()}
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise _conflict(out, "holds a manifest.json that is not a report's") from error
    if not ours or any(".." in Path(name).parts or Path(name).is_absolute() for name in pages):
        raise _conflict(out, "holds a manifest.json that is not a report's")
    if found.get("public") is not public:
        kinds = ("public", "not public") if found.get("public") else ("not public", "public")
        raise _conflict(out, f"holds a report that is {kinds[0]}, and this one is {kinds[1]}")
    return pages


def _conflict(out: Path, cause: str) -> ExpbenchError:
    return ExpbenchError(
        FailureKind.WORKSPACE_CONFLICT,
        str(out),
        cause,
        consequence="No report was written",
        next_step="Choose another --out, or remove the directory",
    )


@cache
def _version() -> str:
    """Digest of everything that makes a page, so that an upgrade writes all pages again."""
    package = files("evaluation.report")
    sources = (
        "episode_page.py",
        "event_views.py",
        "diffs.py",
        "cleaning.py",
        "pages.py",
        "measured.py",
        "measured.json",
    )
    texts: Iterable[str] = [*(asset(name) for name in (*TEMPLATES, "episode.css", "episode.js", "base.css"))]
    return text_digest("\n".join([*texts, *((package / name).read_text(encoding="utf-8") for name in sources)]))
