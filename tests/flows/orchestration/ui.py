"""Driving Prefect's user interface in headless Chromium, as a reviewer does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = Path("/usr/bin/chromium")
_OPTIONS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
]  # fmt: skip
_WAIT_MS = 60_000


class ReviewUi:
    """One browser page on one Prefect server."""

    def __init__(self, page: Any, base: str, shots: Path) -> None:
        self.page = page
        self.base = base
        self.shots = shots

    def open_queue(self) -> None:
        """The list of suspended review runs."""
        self.page.goto(f"{self.base}/v2/runs?state=Suspended&tags=expbench-review")

    def open_form(self, run: str) -> Any:
        """A run's page, its menu, Resume; returns the dialog once the form is there."""
        self.page.goto(f"{self.base}/v2/runs/flow-run/{run}")
        self.page.get_by_role("button", name="Open menu").first.click()
        self.page.get_by_role("menuitem", name="Resume").click()
        dialog = self.page.get_by_role("dialog")
        dialog.get_by_label(re.compile("^Reviewer")).wait_for()
        return dialog

    def choose(self, dialog: Any, decision: str) -> None:
        """Pick the decision.

        The list opens beside a dialog that may still be growing, and then lies outside of what the window shows (seen once):
        no pointer reaches it there, so the option is clicked in the document.
        """
        dialog.get_by_label(re.compile(r"^(Select )?Decision")).first.click()
        self.page.get_by_role("option", name=decision, exact=True).evaluate("option => option.click()")

    def field(self, dialog: Any, label: str) -> Any:
        """A text field of the form."""
        return dialog.get_by_label(re.compile(rf"^{label}( \(Optional\))?$"))

    def fill(self, dialog: Any, label: str, text: str) -> None:
        """Write into a field."""
        self.field(dialog, label).fill(text)

    def submit(self, dialog: Any) -> dict[str, Any]:
        """Press Resume; returns what the server answered.

        A busy server with SQLite may answer with an error ("database is locked"): a person presses again, and so do we.
        """
        for _ in range(5):
            with self.page.expect_response(
                lambda response: response.url.endswith("/resume") and response.request.method == "POST"
            ) as answered:
                dialog.get_by_role("button", name="Resume", exact=True).click()
            if answered.value.status < 500:
                return dict(answered.value.json())
        raise AssertionError(f"the server does not take the answer: {answered.value.text()}")

    def run_filled_in(self, link: str) -> str:
        """Submit the form of a deployment that a link has filled in; returns the id of the run."""
        self.page.goto(link)
        self.page.get_by_role("button", name="Submit", exact=True).wait_for()
        for _ in range(5):
            with self.page.expect_response(lambda response: response.url.endswith("/create_flow_run")) as answered:
                self.page.get_by_role("button", name="Submit", exact=True).click()
            if answered.value.status < 500:
                return str(answered.value.json()["id"])
        raise AssertionError(f"the server does not take the run: {answered.value.text()}")

    def shot(self, name: str) -> Path:
        """Keep a screenshot."""
        self.shots.mkdir(parents=True, exist_ok=True)
        path = self.shots / f"{name}.png"
        self.page.screenshot(path=str(path))
        return path


@contextmanager
def reviewer_ui(base: str, shots: Path) -> Iterator[ReviewUi]:
    """A browser for one reviewer; nothing but the server can be reached from it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), headless=True, args=_OPTIONS)
        try:
            context = browser.new_context(viewport={"width": 1400, "height": 1100})
            context.route(
                "**/*", lambda route: route.continue_() if route.request.url.startswith(base) else route.abort()
            )
            page = context.new_page()
            page.set_default_timeout(_WAIT_MS)
            yield ReviewUi(page, base, shots)
        finally:
            browser.close()
