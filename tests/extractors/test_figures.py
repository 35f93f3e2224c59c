"""Captions and the regions of figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from extractors._captions import match_label
from extractors.document import read_document
from pipeline.paper import Document, FloatKind
from tests.extractors.paper_builder import BOLD, LOREM, PaperBuilder


@pytest.mark.parametrize(
    ("text", "label", "kind", "marked"),
    [
        ("Table 2: Results", "Table 2", FloatKind.TABLE, True),
        ("TABLE IV", "Table IV", FloatKind.TABLE, False),
        ("Tab. 3. Results", "Table 3", FloatKind.TABLE, True),
        ("Figure A.1: Loss", "Figure A.1", FloatKind.FIGURE, True),
        ("Fig. 7. Loss", "Figure 7", FloatKind.FIGURE, True),
        ("FIG. 2 | Loss", "Figure 2", FloatKind.FIGURE, True),
        ("Figure S3: Loss", "Figure S3", FloatKind.FIGURE, True),
        ("Algorithm 1 Weighted votes", "Algorithm 1", FloatKind.ALGORITHM, False),
        ("Supplementary Table 4: More", "Supplementary Table 4", FloatKind.TABLE, True),
    ],
)
def test_labels(text: str, label: str, kind: FloatKind, marked: bool) -> None:
    found = match_label(text)
    assert found is not None
    assert found[:3] == (label, kind, marked)


@pytest.mark.parametrize(
    "text", ["Tables are set in", "Figures 2 and 3", "table 2: lower case", "Figured out", "Table of 3"]
)
def test_no_label(text: str) -> None:
    assert match_label(text) is None


def read(paper: PaperBuilder, path: Path) -> Document:
    return read_document(paper.save(path))


def test_sentence_that_begins_with_a_label_is_no_caption(tmp_path: Path) -> None:
    paper = PaperBuilder()
    paper.text("A Study of Captions", size=17, font=BOLD)
    paper.paragraph(LOREM[0], "Figure 2. Then comes the rest of the sentence in the same paragraph as it was", LOREM[2])
    paper.text("Table 3 shows what was found in these experiments.", step=24)
    document = read(paper, tmp_path / "prose.pdf")
    assert document.captions == ()


def test_side_by_side_figures(tmp_path: Path) -> None:
    paper = PaperBuilder()
    paper.paragraph(*LOREM)
    for x, number in ((80, 1), (330, 2)):
        paper.page.draw_rect((x, 130, x + 190, 250), width=0.8)
        paper.page.draw_line((x, 240), (x + 180, 140))
        paper.text(f"Figure {number}: Panel number {number} of the two.", x=x, size=9, y=275)
    paper.y = 300
    paper.paragraph(*LOREM)
    figures = read(paper, tmp_path / "side.pdf").figures
    assert [(f.label, round(f.box.x0), round(f.box.x1)) for f in figures] == [
        ("Figure 1", 80, 270),
        ("Figure 2", 330, 520),
    ]


def test_figure_does_not_swallow_prose_above_it(tmp_path: Path) -> None:
    paper = PaperBuilder()
    paper.text("A Study of Figures", size=17, font=BOLD)
    paper.paragraph(*LOREM)
    paper.page.draw_rect((100, 160, 400, 300), width=0.8)
    paper.text("epochs", x=230, size=8, y=312)
    paper.text("loss", x=85, size=8, y=230, rotate=90)
    paper.text("Figure 1: Loss by epoch.", x=180, size=9, y=335)
    document = read(paper, tmp_path / "above.pdf")
    (figure,) = document.figures
    assert figure.box.y0 == pytest.approx(160, abs=2)
    assert set(figure.texts) == {"epochs", "loss"}
    assert [p.text for p in document.passages] == [" ".join(LOREM)]


def test_caption_of_several_lines_ends_where_the_text_begins(tmp_path: Path) -> None:
    paper = PaperBuilder()
    paper.text("A Study of Long Captions", size=17, font=BOLD)
    paper.page.draw_rect((100, 120, 400, 200), width=0.8)
    paper.text("Figure 1: Loss by epoch for all of the four methods and both kinds", size=9, y=222)
    paper.text("of noise that were compared in the paper.", size=9, y=233)
    paper.y = 255
    paper.paragraph(*LOREM)
    (caption,) = read(paper, tmp_path / "long.pdf").captions
    assert caption.text.endswith("both kinds of noise that were compared in the paper.")


def test_names_of_panels_beyond_the_axes_are_no_prose(tmp_path: Path) -> None:
    """`under (a) (b) uniaxial stress`: the panels' names above a circuit diagram ran into a sentence."""
    paper = PaperBuilder()
    paper.text("A Study of Panels", size=17, font=BOLD)
    paper.paragraph(*LOREM)
    paper.text("(a)", x=150, size=10, y=152)
    paper.text("(b)", x=320, size=10, y=152)
    paper.text("VDD", x=150, size=7, y=172)
    paper.text("VDD", x=320, size=7, y=172)
    paper.page.draw_rect((100, 180, 400, 300), width=0.8)
    paper.text("Figure 1: Two circuits.", x=180, size=9, y=325)
    document = read(paper, tmp_path / "panels.pdf")
    assert [p.text for p in document.passages] == [" ".join(LOREM)]
