"""Writing the pages of the episodes: one after the other, or by several processes where there are many.

A page is made from one episode's files alone, so pages are independent: 10,000 of them took 133 s in one process.
Non-goals: what a page says (`episode_page`), which pages are stale (`html`).
"""

from __future__ import annotations

import base64
import hashlib
import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from evaluation.report.episode_page import Render, episode_page
from evaluation.report.results import Episode

__all__ = ["TEMPLATES", "Page", "asset", "remove_page", "renderer", "write_pages"]

TEMPLATES: Final = ("index.html.j2", "matrix.html.j2", "episode.html.j2")
_LOADER: Final = 'const s=document.createElement("script");s.src="../../../assets/episode.js";document.body.append(s);'
"""The page's one inline script. It loads the shared one, which the content security policy lets it do."""
_FEW: Final = 400
"""Pages that one process writes before another has started and imported what it needs (13 ms a page, 2 to 5 s)."""
_CHUNK: Final = 32


class Page(NamedTuple):
    """A page to be written."""

    name: str
    """Path below `episodes/`, without ending."""
    episode: Episode
    label: str
    """Of the agent."""


def write_pages(pages: Sequence[Page], root: Path, *, public: bool) -> Iterator[str]:
    """Write pages below `root`; yields the name of each that is written, in order.

    Raises:
        ExpbenchError: an episode's files cannot be read; see `episode_page`.
    """
    processes = min(len(os.sched_getaffinity(0)), -(-len(pages) // _FEW))
    write = partial(_write, root, public)
    if processes < 2:
        yield from map(write, pages)
        return
    # spawned, not forked: the caller may have threads (a progress display, Prefect)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        yield from pool.map(write, pages, chunksize=_CHUNK)


def _write(root: Path, public: bool, page: Page) -> str:
    _write_page(root, page.name, page.episode, page.label, renderer(), public)
    return page.name


def _write_page(root: Path, name: str, episode: Episode, label: str, render: Render, public: bool) -> None:
    remove_page(root, name)
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


def remove_page(root: Path, name: str) -> None:
    """Remove a page with its chunks, where it is there."""
    path = root / f"{name}.html"
    if not path.parent.is_dir():
        return
    path.unlink(missing_ok=True)
    number = 1
    while (chunk := root / f"{name}.events-{number}.js").exists():
        chunk.unlink()
        number += 1


@cache
def renderer() -> Render:
    """Renders the templates of this package; made once a process."""
    environment = Environment(loader=PackageLoader("evaluation.report"), autoescape=True, undefined=StrictUndefined)
    environment.globals |= {
        "css": _markup("base.css", "index.css"),
        "matrix_css": _markup("base.css", "matrix.css"),
        "script": _markup("index.js"),
        "loader": Markup(_LOADER),  # noqa: S704 - our own
    }
    hashes = {"index.html.j2": _script_hash(asset("index.js")), "episode.html.j2": _script_hash(_LOADER)}
    templates = {name: environment.get_template(name) for name in TEMPLATES}

    def render(name: str, values: dict[str, Any]) -> str:
        return templates[name].render(values, script_hash=hashes.get(name, ""))

    return render


def _markup(*names: str) -> Markup:
    return Markup("".join(asset(name) for name in names))  # noqa: S704 - files of this package


def _script_hash(text: str) -> str:
    """Source expression of a content security policy for one inline script."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"


@cache
def asset(name: str) -> str:
    """Text of a style sheet, script or template."""
    return (files("evaluation.report") / "templates" / name).read_text(encoding="utf-8")
