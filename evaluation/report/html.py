"""The HTML report: an index of one file, and a page per episode beside it.

Pages are written again only when what they are made from has changed (size and time of the records, mode, version of
the templates), so that a report of a growing run costs what has grown. `manifest.json` holds what each was made from.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from evaluation.failures import Taxonomy
from evaluation.report.episode_page import Render, episode_page
from evaluation.report.index_page import index_page
from evaluation.report.results import Configuration, Episode, Results, configuration_of
from evaluation.report.summary import Summary
from pipeline.digests import text_digest
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import write_text
from pipeline.progress import Reporter
from pipeline.text import slug

__all__ = ["HtmlReport", "write_html"]

_STAGE: Final = "report"
_TEMPLATES: Final = ("index.html.j2", "episode.html.j2")
_LOADER: Final = 'const s=document.createElement("script");s.src="../../../assets/episode.js";document.body.append(s);'
"""The page's one inline script. It loads the shared one, which the content security policy lets it do."""


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
    render = _renderer()
    folders, labels = _folders(results), results.labels()
    for name in ("episode.css", "episode.js"):
        write_text(out / "assets" / name, _asset("base.css") + _asset(name) if name.endswith(".css") else _asset(name))
    made: dict[str, str] = {}
    written = 0
    if pages:
        reporter.start(_STAGE, len(results.episodes))
        for episode in results.episodes:
            configuration = configuration_of(episode.scores)
            name = f"{folders[configuration]}/{episode.folder.root.parent.name}/{episode.folder.root.name}"
            digest = _inputs(episode, labels[configuration], public)
            made[name] = digest
            if old.get(name) != digest or not (out / "episodes" / f"{name}.html").is_file():
                _write_page(out / "episodes", name, episode, labels[configuration], render, public)
                written += 1
            reporter.step(_STAGE, name)
        reporter.end(_STAGE, f"{written} of {len(made)} pages written")
    for name in sorted(old.keys() - made.keys()):
        _remove_page(out / "episodes", name)
    if written:
        os.sync()
    write_text(manifest_path, json.dumps({"expbench": "report", "public": public, "pages": made}, indent=0) + "\n")
    index = out / "index.html"
    text = index_page(results, summary, taxonomy, folders, render, title=title, public=public, pages=pages)
    write_text(index, text)
    return HtmlReport(index, len(made), written)


def _folders(results: Results) -> dict[Configuration, str]:
    """A readable directory name for each configuration; a number keeps them apart."""
    return {
        item: f"{number}-{slug(f'{item.run} {item.agent} {item.model}', 60) or 'run'}"
        for number, item in enumerate(results.configurations, 1)
    }


def _write_page(root: Path, name: str, episode: Episode, label: str, render: Render, public: bool) -> None:
    _remove_page(root, name)
    base = Path(name).name
    page = episode_page(episode, label, lambda number: f"{base}.events-{number}.js", render, public=public)
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    for number, script in enumerate(page.chunks, 1):
        _put(root / f"{name}.events-{number}.js", script)
    _put(root / f"{name}.html", page.html)


def _put(path: Path, text: str) -> None:
    """Replace a file; unlike `pipeline.files` without a sync each, which costs 5 ms: 50 s for 10,000 pages.

    A report can be made again, and the manifest that calls a page finished is written after a sync of all of them.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_bytes(text.encode("utf-8", "replace"))
    temporary.replace(path)


def _remove_page(root: Path, name: str) -> None:
    path = root / f"{name}.html"
    if not path.parent.is_dir():
        return
    path.unlink(missing_ok=True)
    number = 1
    while (chunk := root / f"{name}.events-{number}.js").exists():
        chunk.unlink()
        number += 1


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


def _renderer() -> Render:
    environment = Environment(loader=PackageLoader("evaluation.report"), autoescape=True, undefined=StrictUndefined)
    environment.globals |= {
        "css": _markup("base.css", "index.css"),
        "script": _markup("index.js"),
        "loader": Markup(_LOADER),  # noqa: S704 - our own
    }
    hashes = {"index.html.j2": _script_hash(_asset("index.js")), "episode.html.j2": _script_hash(_LOADER)}
    templates = {name: environment.get_template(name) for name in _TEMPLATES}

    def render(name: str, values: dict[str, Any]) -> str:
        return templates[name].render(values, script_hash=hashes.get(name, ""))

    return render


def _markup(*names: str) -> Markup:
    return Markup("".join(_asset(name) for name in names))  # noqa: S704 - files of this package


def _script_hash(text: str) -> str:
    """Source expression of a content security policy for one inline script."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"


@cache
def _asset(name: str) -> str:
    return (files("evaluation.report") / "templates" / name).read_text(encoding="utf-8")


@cache
def _version() -> str:
    """Digest of everything that makes a page, so that an upgrade writes all pages again."""
    package = files("evaluation.report")
    sources = ("episode_page.py", "event_views.py", "diffs.py", "cleaning.py")
    texts: Iterable[str] = [*(_asset(name) for name in (*_TEMPLATES, "episode.css", "episode.js", "base.css"))]
    return text_digest("\n".join([*texts, *((package / name).read_text(encoding="utf-8") for name in sources)]))
