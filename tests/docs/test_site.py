"""The documentation site builds without a warning: pages, links, anchors, generated reference."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import PAGES, ROOT

pytest.importorskip("mkdocs", reason="the site's generator comes with the extra [docs]")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(target)],
        cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return target


def test_reference_pages_hold_what_the_code_has(site: Path):
    commands = (site / "reference/cli.html").read_text()
    for name in ("curate", "evaluate", "report", "release"):
        assert f"expbench {name}" in commands
    schema = (site / "reference/schema.html").read_text()
    assert "agent_instructions" in schema
    assert "M: 1 passed, 0 violation, None unknown" in schema, "the strings below fields are their meaning"
    assert "budget_exceeded" in (site / "reference/failures.html").read_text()


def test_pages_ask_no_other_host(site: Path):
    for page in site.rglob("*.html"):
        loaded = re.findall(r"<(?:script|img|iframe)[^>]* src=\"?(https?:[^\"> ]+)", page.read_text())
        loaded += re.findall(
            r"<link[^>]* rel=\"?(?:stylesheet|preconnect)\"?[^>]* href=\"?(https?:[^\"> ]+)", page.read_text()
        )
        assert not loaded, page


def test_links_of_the_readme_exist():
    for page in PAGES:
        if page.parent != ROOT:
            continue  # the site's generator checks the others
        for link in re.findall(r"\]\(([^)#\s]+)|<img src=\"([^\"]+)", page.read_text()):
            target = next(filter(None, link))
            assert target.startswith("https://") or (ROOT / target).exists(), f"{page.name}: {target}"
