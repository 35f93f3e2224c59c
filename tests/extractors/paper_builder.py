"""Draws small papers for the tests: text at given places, rules, images; what a page looks like is known exactly."""

from __future__ import annotations

import io
from pathlib import Path

import pymupdf
from PIL import Image

BODY, BOLD, ITALIC = "tiro", "tibo", "tiit"


class PaperBuilder:
    """A PDF under construction; `y` runs down the page and `text` moves it on."""

    def __init__(self, width: float = 612, height: float = 792) -> None:
        self.pdf = pymupdf.open()
        self._size = (width, height)
        self.page = self.pdf.new_page(width=width, height=height)
        self.y = 72.0

    def new_page(self) -> None:
        self.page = self.pdf.new_page(width=self._size[0], height=self._size[1])
        self.y = 72.0

    def text(
        self,
        text: str,
        x: float = 72,
        size: float = 10,
        font: str = BODY,
        *,
        step: float | None = None,
        y: float | None = None,
        **style: object,
    ) -> None:
        if y is not None:
            self.page.insert_text((x, y), text, fontsize=size, fontname=font, **style)
            return
        self.y += step if step is not None else 1.2 * size
        self.page.insert_text((x, self.y), text, fontsize=size, fontname=font, **style)

    def paragraph(self, *lines: str, x: float = 72, width: float = 376, size: float = 10, font: str = BODY) -> None:
        """Justified by stretching: every line but the last ends at the right edge."""
        for index, line in enumerate(lines):
            self.y += 1.2 * size
            words = line.split(" ")
            gap = pymupdf.get_text_length(" ", font, size)
            if index < len(lines) - 1 and len(words) > 1:
                used = sum(pymupdf.get_text_length(word, font, size) for word in words)
                gap = (width - used) / (len(words) - 1)
                assert 1 < gap < 10, (line, gap)
            at = x
            for word in words:
                self.page.insert_text((at, self.y), word, fontsize=size, fontname=font)
                at += pymupdf.get_text_length(word, font, size) + gap

    def rule(self, x0: float, x1: float, y: float, width: float = 0.6) -> None:
        self.page.draw_line((x0, y), (x1, y), width=width)

    def table(
        self,
        rows: list[list[str]],
        columns: list[float],
        right: float,
        *,
        header: int = 1,
        x0: float = 72,
        size: float = 9,
        bold: tuple[tuple[int, int], ...] = (),
    ) -> None:
        """A booktabs table: rules above, under the header and below, none vertical."""
        self.y += 8
        self.rule(x0, right, self.y)
        for index, row in enumerate(rows):
            self.y += 1.3 * size
            for column, (cell, x) in enumerate(zip(row, columns, strict=True)):
                if cell:
                    font = BOLD if (index, column) in bold else BODY
                    self.page.insert_text((x, self.y), cell, fontsize=size, fontname=font)
            if index == header - 1:
                self.y += 4
                self.rule(x0, right, self.y)
        self.y += 5
        self.rule(x0, right, self.y)

    def save(self, path: Path, **options: object) -> Path:
        self.pdf.save(str(path), **options)
        self.pdf.close()
        return path


def image_of(pdf: Path, page: int = 0, dpi: int = 200, rotate: int = 0) -> bytes:
    """A page as PNG, turned clockwise by `rotate` degrees."""
    with pymupdf.open(pdf) as document:
        pixels = document[page].get_pixmap(dpi=dpi, alpha=False)
    image = Image.frombytes("RGB", (pixels.width, pixels.height), pixels.samples).rotate(-rotate, expand=True)
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def scan(pdf: Path, out: Path, rotate: int = 0) -> Path:
    """A PDF of images of the pages of `pdf`: no text layer."""
    with pymupdf.open(pdf) as source:
        count = source.page_count
    result = pymupdf.open()
    for number in range(count):
        page = result.new_page(width=792 if rotate % 180 else 612, height=612 if rotate % 180 else 792)
        page.insert_image(page.rect, stream=image_of(pdf, number, rotate=rotate))
    result.save(str(out))
    return out


LOREM = (
    "The method is compared with four baselines on three problems under two kinds of noise",
    "and all results are means over ten seeds that determine the data and the features used",
    "in each of the experiments that follow. The code is deterministic and runs on one core.",
)


def small_paper(path: Path) -> Path:
    """Title, abstract, numbered sections, a table, a figure, a list, a footnote, references and an appendix."""
    paper = PaperBuilder()
    paper.text("A Small Study of Weighted Votes", x=150, size=17, font=BOLD)
    paper.text("Ada Example and Bob Sample", x=220, size=10, step=24)
    paper.text("Abstract", x=280, size=12, font=BOLD, step=24)
    paper.y += 4
    paper.paragraph(*LOREM)
    paper.text("1   Introduction", size=12, font=BOLD, step=26)
    paper.y += 4
    paper.paragraph(*LOREM)
    paper.y += 2
    paper.text("• weighted votes for noisy labels", x=84)
    paper.text("• a comparison with four baselines", x=84)
    paper.text("2   Results", size=12, font=BOLD, step=26)
    paper.text("2.1   Comparison", size=10.5, font=BOLD, step=20)
    paper.y += 4
    paper.paragraph(*LOREM)
    paper.text("Table 1: Accuracy in percent, mean over ten seeds.", x=160, size=9, step=22)
    rows = [
        ["Method", "Rings", "Moons"],
        ["Plain", "85.0 ± 3.6", "90.4 ± 3.6"],
        ["Trimming", "89.0 ± 4.0", "97.3 ± 1.7"],
        ["Weighted (ours)", "90.2 ± 4.4", "98.0 ± 1.2"],
    ]
    paper.table(rows, [160, 270, 360], 430, x0=156, bold=((3, 1), (3, 2)))
    paper.y += 16
    paper.paragraph(*LOREM)
    paper.rule(72, 190, 690)
    paper.text("1", x=72, size=6, y=699)
    paper.text("Code and data are part of the supplement.", x=76, size=8, y=702)
    paper.text("1", x=303, size=9, y=760)
    paper.new_page()
    paper.page.draw_rect((170, 80, 440, 240), width=0.8)
    paper.page.draw_polyline([(180, 230), (260, 180), (340, 140), (430, 90)], width=1)
    paper.text("noise rate", x=285, size=8, y=252)
    paper.text("Figure 1: Accuracy against the noise rate.", x=210, size=9, y=275)
    paper.y = 290
    paper.paragraph(*LOREM)
    paper.text("References", size=12, font=BOLD, step=26)
    paper.text("[1] A. Example. On votes. Journal of Votes, 1(2):3–4, 2019.", step=18)
    paper.text("[2] B. Sample. On noise. In Proceedings of Noise, pages 5–6, 2020.", step=14)
    paper.text("A   Hyper-parameters", size=12, font=BOLD, step=26)
    paper.y += 4
    paper.paragraph(*LOREM)
    paper.text("2", x=303, size=9, y=760)
    return paper.save(path)
