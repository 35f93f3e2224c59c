"""What a report of many episodes costs: reading, computing, failure types, HTML, and opening it.

    python -m benchmarks.report.run [--episodes 10000] [--events 40] [--long 20] [--long-events 5000] [--keep DIR]

The episodes are synthetic (`tests.evaluation.report.synthetic`): 5 configurations, 50 papers, every record that
an episode has. `--long` of them have long trajectories. The report is built twice: from nothing, and again with nothing
changed. With Chromium at hand, the index is opened, and the episodes are filtered.
"""

from __future__ import annotations

import argparse
import random
import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from evaluation.episode import EpisodeFolder
from evaluation.failures import find_failures
from evaluation.report.html import write_html
from evaluation.report.plain import episode_rows, to_csv, write_parquet
from evaluation.report.results import load_results
from evaluation.report.summary import summarise
from pipeline.progress import SilentReporter
from tests.evaluation.report.synthetic import CATEGORIES, write_episode

T = TypeVar("T")
CONFIGURATIONS = 5
PAPERS = 50


def make_runs(root: Path, episodes: int, events: int, long: int, long_events: int) -> list[Path]:
    generator = random.Random(1)
    for number in range(episodes):
        configuration, task = number % CONFIGURATIONS, number // CONFIGURATIONS
        run, paper = root / f"run-{configuration}", f"paper-{task % PAPERS}"
        write_episode(
            EpisodeFolder(run / "episodes" / f"{paper}-task-{task}" / "0"),
            generator,
            run=run.name,
            agent=f"agent-{configuration}",
            model="model",
            paper=paper,
            task=f"{paper}-task-{task}",
            category=CATEGORIES[task % PAPERS % len(CATEGORIES)],
            repeat=0,
            events=long_events if number < long else events,
            skill=0.2 + 0.15 * configuration,
            cost=0.1 * 3**configuration,
            secret="",
            texts=(),
        )
    return sorted(root.iterdir())


def timed(name: str, function: Callable[[], T]) -> T:
    start = time.perf_counter()
    value = function()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"| {name} | {time.perf_counter() - start:.2f} s | {peak:.0f} MB |", flush=True)
    return value


def browse(index: Path, page: Path) -> None:
    """Times in Chromium: until the list of episodes is there, a filter, a search, and a long trajectory."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        tab = browser.new_page()

        def opened() -> None:
            tab.goto(index.as_uri())
            tab.wait_for_selector("#rows tr")

        timed("open the index in Chromium", opened)
        apply = (
            "([id, value]) => { const e = document.getElementById(id); e.value = value; const t = performance.now();"
        )
        apply += " e.dispatchEvent(new Event(id === 'f-q' ? 'input' : 'change')); return performance.now() - t; }"
        print(f"| filter by agent | {tab.evaluate(apply, ['f-agent', '1']):.0f} ms | |")
        print(f"| search by text | {tab.evaluate(apply, ['f-q', 'task-77']):.0f} ms | |")

        def trajectory() -> None:
            tab.goto(f"{page.as_uri()}#e4000")
            tab.wait_for_selector("#e4000[open]")

        timed("open a long trajectory at event 4,000", trajectory)
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("episodes", 10_000), ("events", 40), ("long", 20), ("long-events", 5_000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--keep", type=Path, default=None)
    options = parser.parse_args()
    root = options.keep or Path(tempfile.mkdtemp(prefix="expbench-report-"))
    silent = SilentReporter()
    print("| step | wall time | peak memory so far |\n|---|---|---|")
    runs = timed(
        "(make the runs)",
        lambda: make_runs(root / "runs", options.episodes, options.events, options.long, options.long_events),
    )
    results = timed("read the scores", lambda: load_results(runs))
    summary = timed("summary with intervals", lambda: summarise(results))
    pairs = [(episode.key, episode.folder) for episode in results.episodes]
    taxonomy = timed("failure types, keyless", lambda: find_failures(pairs, client=None, reporter=silent))

    def html(pages: bool) -> Callable[[], Path]:
        return lambda: write_html(
            results, summary, taxonomy, root / ("html" if pages else "index"), title="Benchmark", public=False,
            pages=pages, reporter=silent,
        ).page  # fmt: skip

    timed("CSV of the episodes", lambda: to_csv(episode_rows(results)))
    timed("Parquet of the episodes", lambda: write_parquet(root / "episodes.parquet", episode_rows(results)))
    timed("HTML, index only", html(False))
    index = timed("HTML with all pages", html(True))
    timed("HTML again, nothing changed", html(True))
    size = sum(path.stat().st_size for path in root.joinpath("html").rglob("*") if path.is_file())
    print(f"| size of index; of the report | {index.stat().st_size / 1e6:.1f} MB; {size / 1e6:.0f} MB | |")
    if Path("/usr/bin/chromium").exists():
        browse(index, next(iter(sorted(root.glob("html/episodes/1-*/paper-0-task-0/0.html")))))
    if options.keep is None:
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
