"""OCR with Tesseract, page by page and only where the text layer is missing or broken.

`text_quality` is the measured test that decides. Words come with boxes, so that passages and tables of a scanned page
are found like those of any other. Non-goal: improving a text layer that is readable.
"""

from __future__ import annotations

import csv
import io
import os
import re
import shutil
import subprocess
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pymupdf
from PIL import Image

from extractors._ocr_cells import read_cells
from extractors._ocr_ink import PageInk, image_rules
from extractors._ocr_lines import text_lines
from extractors._ocr_regions import PrintedLine, Region, find_regions
from extractors._page_text import PageText, rotate_box
from extractors._rules import Rule
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.paper import Box, OcrRun

__all__ = ["OCR_DPI", "OcrPage", "ocr_page", "ocr_reason", "tesseract_version", "text_quality"]

OCR_DPI: Final = 200
"""Character error rate on machine-learning pages .010 at 200 dpi; 300 dpi is no better and 1.6 times slower."""
_GOOD: Final = 0.5
"""Text layers below this are read by OCR; see `text_quality` for what was measured."""
_FEW: Final = 40
_TIMEOUT: Final = 180
_SURE: Final = 60.0
"""Mean confidence below which the page may lie on its side: upright pages gave 88-96, turned ones 20-45."""
_TSV_WORD: Final = "5"
_ONE_BLOCK: Final = 6
_MOST_PIXELS: Final = 60_000_000
"""A sheet of A2 at 200 dpi has 15 million; Tesseract needs some ten bytes for each."""
_OF_NUMBERS: Final = "0123456789.,+-()%/<>"
"""What the second reading of a number may consist of."""
_ENLARGE: Final = 2
"""Tables are cut into cells at twice the resolution of the page image: 4 point print has digits of 8 pixels there."""
_FINER: Final = 1.15
"""Times `OCR_DPI` from which a page's picture holds more than its rendering shows."""
_TABLE_BLOCK: Final = 5000
"""Blocks of tables are numbered from here, beyond those of a page."""


@dataclass(frozen=True, slots=True)
class OcrPage:
    """The words and rules that OCR found, and the record of the run."""

    text: PageText
    rules: list[Rule]
    run: OcrRun


class _Sheet:
    """A page as pixels: whole at the resolution for prose, its tables as finely as the page holds them."""

    def __init__(self, sheet: pymupdf.Page) -> None:
        self._sheet = sheet
        self._turn = 0
        self._upright: Image.Image | None = None

    def image(self, dpi: int, clip: pymupdf.Rect | None = None) -> Image.Image:
        """The page, or a part of it (points of the unturned page), in grey."""
        pixels = self._sheet.get_pixmap(dpi=dpi, colorspace=pymupdf.csGRAY, alpha=False, clip=clip)
        return Image.frombytes("L", (pixels.width, pixels.height), pixels.samples)

    def upright(self, image: Image.Image, turn: int) -> None:
        """Regions are those of this image from now on: the page turned clockwise by `turn` degrees."""
        self._upright, self._turn = image, turn

    @property
    def _is_fine(self) -> bool:
        """Does the page hold more than `OCR_DPI` shows: printed glyphs, or a picture of higher resolution?"""
        area = abs(self._sheet.rect)
        for info in self._sheet.get_image_info():
            box = pymupdf.Rect(info["bbox"])
            if abs(box & self._sheet.rect) > 0.5 * area:
                return bool(info["width"] * 72 / max(box.width, 1) > _FINER * OCR_DPI)
        return True

    def enlarged(self, region: Region) -> npt.NDArray[np.uint8]:
        """A table region at `_ENLARGE` times the resolution of the upright image."""
        assert self._upright is not None, "regions exist only on an upright image"
        size = ((region.x1 - region.x0) * _ENLARGE, (region.y1 - region.y0) * _ENLARGE)
        if self._is_fine:
            scale = 72 / OCR_DPI
            box = Box(*(side * scale for side in region))
            width, height = (side * scale for side in self._upright.size)
            if self._turn:
                box = rotate_box(box, width, height, 360 - self._turn)
            clip = pymupdf.Rect(box.x0, box.y0, box.x1, box.y1)
            part = self.image(OCR_DPI * _ENLARGE, clip).rotate(-self._turn, expand=True)
        else:
            part = self._upright.crop(region)
        return np.asarray(part if part.size == size else part.resize(size, Image.Resampling.LANCZOS))


def text_quality(text: str) -> float:
    """How far a text layer can be read: 1 clean, 0 none.

    The share of characters that are real (assigned, not private-use, not a replacement or control character), times
    the plausibility of its words: of the words of three and more Latin letters, 75 % and more count as sound, 45 % and
    fewer as none. Measured over 88 pages of seven papers: .89 to 1.0 have a vowel, the lowest quality was .81 (a page
    of formulas); with letters shifted by three places, as a font without a character map gives them, .42 have one and
    the quality is 0. Texts of fewer than 40 such words are not judged by vowels; other scripts never are.
    """
    dense = re.sub(r"\s", "", text)
    if not dense:
        return 0.0
    bad = sum(unicodedata.category(c) in ("Co", "Cn", "Cc", "Cs") or c == "\ufffd" for c in dense)
    real = 1 - bad / len(dense)
    words = re.findall(r"[A-Za-z]{3,}", text)
    plausible = 1.0
    if len(words) >= 40:
        voiced = sum(bool(re.search("[aeiouyAEIOUY]", word)) for word in words) / len(words)
        plausible = min(1.0, max(0.0, (voiced - 0.45) / 0.3))
    elif len(dense) > 400 and len(words) < 5 and sum(c.isalpha() and c.isascii() for c in dense) > 0.3 * len(dense):
        plausible = 0.4
    return round(real * plausible, 3)


def ocr_reason(page: PageText, quality: float) -> str | None:
    """Why the page needs OCR, or None.

    A page without marks is empty, not scanned; a page that is one large image with a stamp of text on it is scanned.
    """
    characters = sum(len(line.text) for line in page.lines)
    area = page.width * page.height
    covered = max(((box.x1 - box.x0) * (box.y1 - box.y0) / area for box in page.images), default=0.0)
    painted = covered > 0.02 or len(page.drawings) > 50
    if characters < _FEW and (covered > 0.25 or (characters == 0 and painted)):
        return f"no text layer ({characters} characters on a page whose image covers {covered:.0%})"
    if covered > 0.6 and characters < 200:
        return f"{characters} characters of text on a page whose image covers {covered:.0%}"
    if characters >= _FEW and quality < _GOOD:
        return f"text layer not readable (quality {quality:.2f}, {_GOOD} needed)"
    return None


def tesseract_version() -> str | None:
    """Version of the installed Tesseract, or None where there is none."""
    if shutil.which("tesseract") is None:
        return None
    done = subprocess.run(["tesseract", "--version"], capture_output=True, text=True, timeout=30, check=False)
    match = re.search(r"tesseract\s+v?([\d.]+\S*)", done.stdout + done.stderr)
    return match.group(1) if match else None


@contextmanager
def _one_thread() -> Iterator[None]:
    """One thread for Tesseract: with two it was seven times slower on a busy machine.

    pytesseract hands its child this process's environment, so the limit stands there for the time of the call.
    """
    before = os.environ.get("OMP_THREAD_LIMIT")
    os.environ["OMP_THREAD_LIMIT"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["OMP_THREAD_LIMIT"]
        else:
            os.environ["OMP_THREAD_LIMIT"] = before


def _tesseract(image: Image.Image, number: int, output: str, language: str, options: str) -> str:
    """What Tesseract says of an image.

    Raises:
        TesseractError: it ended with an error; the caller knows what that means.
        ExpbenchError: no result in time, or it could not be started.
    """
    import pytesseract

    try:
        with _one_thread():
            found = pytesseract.run_and_get_output(
                image, output, language, f"{options} --dpi {OCR_DPI}", 0, _TIMEOUT, True
            )
    except pytesseract.TesseractError:
        raise
    except RuntimeError as error:  # how pytesseract says that the time is up
        raise _fail(number, f"no result after {_TIMEOUT} s") from error
    except OSError as error:
        raise _fail(number, f"it could not be started: {error}") from error
    return bytes(found).decode("utf-8", "replace")


def _fail(page: int, cause: str) -> ExpbenchError:
    return ExpbenchError(
        FailureKind.PAPER_UNREADABLE, f"page {page}", f"Tesseract failed ({cause})",
        consequence="The text of this page is missing",
        next_step="Run `tesseract --list-langs` and install the language data `eng` if it is not listed",
    )  # fmt: skip


def _orientation(image: Image.Image, number: int) -> int:
    """Degrees clockwise that bring the page upright, as Tesseract's orientation detection sees it; 0 when unsure."""
    import pytesseract

    try:
        found = _tesseract(image, number, "osd", "osd", "--psm 0")
    except pytesseract.TesseractError:  # too few characters to tell, or no data for it
        return 0
    match = re.search(r"Rotate: (\d+)", found)
    sure = re.search(r"Orientation confidence: ([\d.]+)", found)
    return int(match.group(1)) if match and sure and float(sure.group(1)) > 1 else 0


def ocr_page(sheet: pymupdf.Page, number: int, reason: str, version: str) -> OcrPage:
    """Read one page by OCR; on its side, it is turned upright first.

    Raises:
        ExpbenchError: Tesseract fails on the page or takes longer than three minutes.
    """
    paper = _Sheet(sheet)
    inches = sheet.rect.width * sheet.rect.height / 72**2
    if inches * OCR_DPI**2 > _MOST_PIXELS:
        raise _fail(number, f"the sheet is too large, {sheet.rect.width:.0f} by {sheet.rect.height:.0f} points")
    image = paper.image(OCR_DPI)
    turn, words, sure = 0, *_read(image, number)
    sideways = _is_sideways(words)
    if sure < _SURE or sideways:
        turn = _orientation(image, number)
        turned = image.rotate(-turn, expand=True)
        again, surer = _read(turned, number) if turn else (words, sure)
        if turn and (surer > sure or (sideways and not _is_sideways(again))):
            image, words, sure = turned, again, surer
        else:
            turn = 0
    scale = 72 / OCR_DPI
    grey = np.asarray(image)
    rules = image_rules(grey, scale)
    paper.upright(image, turn)
    ink = PageInk(grey)
    words = _with_tables(words, paper, ink, rules, number, scale)
    lines = text_lines(words, number, scale, ink)
    page = PageText(number, image.width * scale, image.height * scale, lines, turn, scanned=True)
    page.drawings = ink.drawings(scale, [word.box for line in lines for word in line.words])
    run = OcrRun(
        engine="tesseract", version=version, dpi=OCR_DPI, rotation=turn, mean_confidence=round(sure, 1), reason=reason
    )
    return OcrPage(page, rules, run)


def _with_tables(
    words: list[dict[str, str]], paper: _Sheet, ink: PageInk, rules: list[Rule], number: int, scale: float
) -> list[dict[str, str]]:
    """The words of a page, those of its tables read again cell by cell (see `extractors._ocr_cells`)."""
    lines = [PrintedLine(line.x0, line.x1, line.baseline, line.text) for line in text_lines(words, number, scale, ink)]

    def recognise(sheet: Image.Image, *, digits: bool) -> list[dict[str, str]]:
        return _read(sheet, number, layout=_ONE_BLOCK, allowed=_OF_NUMBERS if digits else "")[0]

    for block, region in enumerate(find_regions(rules, lines, scale), _TABLE_BLOCK):
        inside = [
            row for row in words
            if region.holds(int(row["left"]) + int(row["width"]) / 2, int(row["top"]) + int(row["height"]) / 2)
        ]  # fmt: skip
        again = read_cells(paper.enlarged(region), _ENLARGE, region, recognise)
        if sum(len(word.text) for word in again) < 0.6 * sum(len(row["text"]) for row in inside):
            continue  # not a table after all (a picture, a box of text): the first reading stays
        known = set(map(id, inside))
        words = [row for row in words if id(row) not in known]
        words += [
            {
                "block_num": str(block), "par_num": "1", "line_num": str(word.row), "left": str(word.x0),
                "top": str(word.y0), "width": str(word.x1 - word.x0), "height": str(word.y1 - word.y0),
                "text": word.text, "conf": str(word.confidence),
            }
            for word in again
        ]  # fmt: skip
    return words


def _is_sideways(words: list[dict[str, str]]) -> bool:
    """Tesseract reads text that runs upwards, but its lines are of no use then: most words are taller than wide."""
    longer = [word for word in words if len(word["text"]) >= 4]
    return sum(int(word["height"]) > int(word["width"]) for word in longer) > 0.5 * max(1, len(longer))


def _read(image: Image.Image, number: int, layout: int = 3, allowed: str = "") -> tuple[list[dict[str, str]], float]:
    """Words and their mean confidence; `layout` is Tesseract's segmentation mode, `allowed` its only characters."""
    import pytesseract

    options = f"-c tessedit_create_tsv=1 --psm {layout}"
    if allowed:
        options += f" -c tessedit_char_whitelist={allowed}"
    try:
        found = _tesseract(image, number, "tsv", "eng", options)
    except pytesseract.TesseractError as error:
        raise _fail(number, str(error.message).strip() or f"exit code {error.status}") from error
    table = csv.DictReader(io.StringIO(found), delimiter="\t", quoting=csv.QUOTE_NONE)
    words = [row for row in table if row["level"] == _TSV_WORD and (row["text"] or "").strip()]
    letters = sum(len(row["text"]) for row in words)
    sure = sum(float(row["conf"]) * len(row["text"]) for row in words) / letters if letters else 0.0
    return words, sure
