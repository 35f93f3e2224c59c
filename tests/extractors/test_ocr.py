"""When OCR runs, what it gives, and what happens without Tesseract."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pymupdf
import pytest

from extractors import ocr
from extractors._ocr_ink import image_rules
from extractors.document import read_document
from extractors.ocr import text_quality
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.schema import Severity
from tests.extractors.paper_builder import LOREM, PaperBuilder, image_of, scan

needs_tesseract = pytest.mark.skipif(shutil.which("tesseract") is None, reason="Tesseract is not installed")
SOUND = " ".join(LOREM) * 3


def test_quality_of_sound_text() -> None:
    assert text_quality(SOUND) == 1.0


def test_quality_of_nothing() -> None:
    assert text_quality("  \n ") == 0.0


def test_quality_of_shifted_letters() -> None:
    shifted = "".join(chr((ord(c) - 97 + 3) % 26 + 97) if c.isalpha() else c for c in SOUND.lower())
    assert text_quality(shifted) < 0.5


def test_quality_of_unmapped_glyphs() -> None:
    assert text_quality("\ufffd" * 300) == 0.0
    assert text_quality("\ue001\ue002 " * 200) == 0.0


@pytest.mark.parametrize(
    "text", ["Это предложение написано по-русски. " * 20, "実験の結果を表に示す。" * 30, "12.5 13.7 " * 90]
)
def test_quality_does_not_judge_other_scripts_by_vowels(text: str) -> None:
    assert text_quality(text) > 0.9


def test_rules_of_an_image() -> None:
    page = np.full((400, 600), 255, dtype=np.uint8)
    page[100:102, 50:500] = 0  # a rule
    page[200:260, 50:500] = 0  # a dark area is none
    page[300:301, 50:70] = 0  # too short
    scale = 72 / 200
    (rule,) = image_rules(page, scale)
    assert rule.y == pytest.approx(100 * scale, abs=0.5)
    assert (rule.x0, rule.x1) == (pytest.approx(18, abs=0.5), pytest.approx(180, abs=0.5))


def scanned_paper(tmp_path: Path, rotate: int = 0) -> Path:
    paper = PaperBuilder()
    paper.text("A Scanned Study of Votes", x=180, size=17, font="tibo")
    paper.y += 12
    for _ in range(3):
        paper.paragraph(*LOREM, size=11, width=414)
        paper.y += 8
    paper.text("Table 1: Accuracy in percent.", x=160, size=11, step=22)
    paper.table(
        [["Method", "Rings", "Moons"], ["Plain", "85.0", "90.4"], ["Trimming", "89.0", "97.3"], ["Ours", "90.2", "98.0"]],
        [160, 270, 360], 430, x0=156, size=11,
    )  # fmt: skip
    return scan(paper.save(tmp_path / "source.pdf"), tmp_path / f"scan{rotate}.pdf", rotate)


@needs_tesseract
def test_scanned_page_is_read_with_its_table(tmp_path: Path) -> None:
    document = read_document(scanned_paper(tmp_path))
    run = document.pages[0].ocr
    assert run is not None
    assert (run.engine, run.dpi, run.rotation) == ("tesseract", 200, 0)
    assert run.mean_confidence > 80
    assert "no text layer" in run.reason
    assert document.title == "A Scanned Study of Votes"
    assert any("three problems under two kinds of noise and all results" in p.text for p in document.passages)
    table = document.tables[0]
    assert table.grid[0] == ("Method", "Rings", "Moons")
    assert table.grid[2] == ("Trimming", "89.0", "97.3")
    assert table.confidence < 0.8


@needs_tesseract
@pytest.mark.parametrize("rotate", [90, 270])
def test_page_scanned_sideways_is_turned(tmp_path: Path, rotate: int) -> None:
    document = read_document(scanned_paper(tmp_path, rotate))
    run = document.pages[0].ocr
    assert run is not None
    assert run.rotation == 360 - rotate
    assert any("four baselines" in passage.text for passage in document.passages)
    page = document.pages[0]
    for passage in document.passages:
        for _, box in passage.boxes:
            assert -1 <= box.x0 < box.x1 <= page.width + 1
            assert -1 <= box.y0 < box.y1 <= page.height + 1
    longest = max(document.passages, key=lambda passage: len(passage.text))
    box = longest.boxes[0][1]
    assert box.y1 - box.y0 > 3 * (box.x1 - box.x0), "a paragraph on a sideways page is taller than wide"


def mixed_paper(tmp_path: Path) -> Path:
    """A page with a text layer, and one that is an image."""
    paper = PaperBuilder()
    paper.text("A Mixed Document", size=17)
    paper.paragraph(*LOREM)
    first = paper.save(tmp_path / "first.pdf")
    pdf = pymupdf.open(first)
    page = pdf.new_page(width=612, height=792)
    page.insert_image(page.rect, stream=image_of(first))
    pdf.save(str(tmp_path / "mixed.pdf"))
    return tmp_path / "mixed.pdf"


def test_without_tesseract_the_page_is_reported_and_the_rest_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = mixed_paper(tmp_path)
    monkeypatch.setattr(ocr.shutil, "which", lambda name: None)
    document = read_document(path)
    assert len(document.pages) == 2
    (problem,) = document.problems
    assert (problem.where, problem.severity) == ("page 2", Severity.ERROR)
    assert "Tesseract is not installed" in problem.message
    assert "apt-get install tesseract-ocr" in problem.message
    assert document.pages[1].warnings
    assert any("four baselines" in passage.text for passage in document.passages)


def test_switched_off(tmp_path: Path) -> None:
    document = read_document(mixed_paper(tmp_path), ocr="off")
    assert "switched off" in document.problems[0].message
    assert document.pages[1].ocr is None


def test_images_only_without_tesseract_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = scanned_paper(tmp_path)
    monkeypatch.setattr(ocr.shutil, "which", lambda name: None)
    with pytest.raises(ExpbenchError) as caught:
        read_document(path)
    assert caught.value.kind is FailureKind.PAPER_UNREADABLE
    assert "Install Tesseract" in caught.value.next_step


def test_failing_tesseract_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "tesseract"
    program.parent.mkdir()
    program.write_text(
        "#!/bin/sh\n[ \"$1\" = --version ] && echo 'tesseract 5.9' && exit 0\necho 'no data' >&2\nexit 1\n"
    )
    program.chmod(0o755)
    path = mixed_paper(tmp_path)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    document = read_document(path)
    assert "no data" in document.problems[0].message
    assert document.problems[0].severity is Severity.ERROR


@needs_tesseract
def test_ocr_layer_behind_a_scan_is_text_not_hidden(tmp_path: Path) -> None:
    paper = PaperBuilder()
    paper.text("A Scan with a Text Layer", size=17)
    for _ in range(4):
        paper.paragraph(*LOREM)
    source = paper.save(tmp_path / "source.pdf")
    pdf = pymupdf.open()
    page = pdf.new_page(width=612, height=792)
    page.insert_image(page.rect, stream=image_of(source, dpi=100))
    for index in range(12):
        page.insert_text((72, 100 + 12 * index), LOREM[index % 3], fontsize=10, render_mode=3)
    pdf.save(str(tmp_path / "layered.pdf"))
    document = read_document(tmp_path / "layered.pdf")
    assert document.hidden == ()
    assert document.pages[0].ocr is None
    assert "four baselines" in " ".join(passage.text for passage in document.passages)
