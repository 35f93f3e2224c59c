"""The report in Chromium: scripts run under the policy, links and filters work, hostile text does nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evaluation.report.html import write_html
from evaluation.report.results import load_results
from evaluation.report.summary import summarise
from pipeline.progress import SilentReporter
from tests.evaluation.report.conftest import HOSTILE
from tests.evaluation.report.synthetic import write_run

pytestmark = pytest.mark.browser
CHROMIUM = Path("/usr/bin/chromium")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("browser"), tasks=4, events=400, texts=HOSTILE)


def written(root: Path, *, tasks: int, events: int, texts: tuple[str, ...]) -> Path:
    """The report of a synthetic run."""
    run = write_run(root / "run", tasks=tasks, events=events, texts=texts)
    results = load_results([run])
    summary = summarise(results, resamples=50)
    write_html(
        results, summary, None, root / "out", title="Evaluation", public=False, pages=True, reporter=SilentReporter()
    )
    return root / "out"


@pytest.fixture(scope="module")
def tab() -> Iterator[Any]:
    if not CHROMIUM.exists():
        pytest.skip("Chromium is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        page = browser.new_page()
        page.errors = []
        page.on("console", lambda message: page.errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        yield page
        browser.close()


def test_a_cell_leads_to_its_episodes_and_these_to_their_pages(report: Path, tab: Any) -> None:
    from playwright.sync_api import expect

    tab.goto((report / "index.html").as_uri())
    tab.wait_for_selector("#rows tr")
    assert tab.locator("#rows tr").count() == 4
    tab.locator("#leaderboard .cards td.n a").nth(1).click()
    expect(tab.locator("#f-metric")).to_have_value("1")
    tab.select_option("#f-mark", "")
    tab.fill("#f-q", "task-2")
    assert tab.locator("#rows tr").count() == 1
    tab.locator("#rows a").first.click()
    tab.wait_for_selector("#shown:has-text('of 400 events loaded')")
    assert tab.locator("h1").inner_text() == "paper-2-task-2"
    assert not tab.errors


def test_events_are_loaded_searched_and_linked(report: Path, tab: Any) -> None:
    from playwright.sync_api import expect

    page = next(report.glob("episodes/*/paper-1-task-1/0.html"))
    tab.goto(f"{page.as_uri()}#e390")
    tab.wait_for_selector("#e390[open]")
    tab.fill("#search", "--n 393")
    expect(tab.locator(".event")).to_have_count(2)  # not by `wait_for_function`: the policy forbids eval
    tab.fill("#search", "")
    expect(tab.locator(".event")).to_have_count(250)  # the first 150 and the part with #390
    tab.locator(".gap").click()
    expect(tab.locator(".event")).to_have_count(400)
    expect(tab.locator("#more")).to_be_hidden()
    assert not tab.errors


def test_a_very_long_trajectory_is_not_loaded_to_reach_its_end(tmp_path: Path, tab: Any) -> None:
    """100,000 events: going through all of them to the last took more than two minutes."""
    from playwright.sync_api import expect

    page = next(written(tmp_path, tasks=1, events=40_000, texts=()).glob("episodes/*/*/0.html"))
    assert len(list(page.parent.glob("*.js"))) == 199
    tab.goto(f"{page.as_uri()}#e39990")
    tab.wait_for_selector("#e39990[open]")
    assert tab.locator(".event").count() == 400
    assert tab.locator("#more").is_hidden(), "the end is there; what lies between has a button of its own"
    tab.fill("#search", "--n 39993")
    expect(tab.locator(".event")).to_have_count(2, timeout=60_000)
    tab.fill("#search", "-")
    expect(tab.locator("#shown")).to_contain_text("narrow the search", timeout=60_000)
    expect(tab.locator(".event")).to_have_count(1000)
    assert not tab.errors


def test_hostile_text_does_not_run(report: Path, tab: Any) -> None:
    for path in [report / "index.html", *sorted(report.glob("episodes/*/*/0.html"))[:2]]:
        tab.goto(path.as_uri())
        tab.wait_for_load_state("load")
        assert tab.evaluate("window.hacked === undefined")
        if path.name != "index.html":  # files of further events go in as markup: they, too, must hold none of theirs
            tab.evaluate("document.getElementById('more').click()")
            tab.wait_for_selector("#e200", state="attached")
            assert tab.evaluate("window.hacked === undefined")
    assert not tab.errors


def test_an_injected_script_would_be_stopped_by_the_policy(report: Path, tab: Any) -> None:
    broken = report / "broken.html"
    text = (report / "index.html").read_text()
    broken.write_text(
        text.replace("<h1>", "<script>window.hacked = 4</script><img src=x onerror='window.hacked=5'><h1>")
    )
    tab.goto(broken.as_uri())
    tab.wait_for_selector("#rows tr")
    assert tab.evaluate("window.hacked === undefined")


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", ["index", "matrix"])
def test_no_page_scrolls_sideways(report: Path, tab: Any, width: int, name: str) -> None:
    before = tab.viewport_size
    tab.set_viewport_size({"width": width, "height": 900})
    tab.goto((report / f"{name}.html").as_uri())
    tab.wait_for_load_state("load")
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    if name == "index" and width == 390:
        ends = tab.eval_on_selector_all(
            "#leaderboard .cards td", "cells => cells.map(c => c.getBoundingClientRect().right)"
        )
        assert max(ends) <= width, "a figure of the leaderboard is out of sight"
    tab.set_viewport_size(before)


def test_the_matrix_leads_to_an_episode_and_back(report: Path, tab: Any) -> None:
    tab.errors.clear()  # those of the script that the policy stopped
    tab.goto((report / "index.html").as_uri())
    tab.get_by_role("link", name="Tasks × agents").click()
    link = tab.locator(".matrix td a").first
    assert len(link.inner_text()) in {4, 5}
    link.click()
    assert tab.locator("h1").inner_text() == "paper-0-task-0"
    tab.get_by_role("link", name="All episodes").click()
    tab.wait_for_selector("#rows tr")
    assert not tab.errors
