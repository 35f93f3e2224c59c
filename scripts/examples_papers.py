"""LaTeX and PDF of the worked examples: tables, compilation that gives the same bytes again, pages turned into images.

Non-goal: deciding what the numbers are. Needs pdflatex only for building, never for checking.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pymupdf
from examples_common import ExampleError, Numbers

# Resolution of pages that are images: what a flat-bed scan of a paper has.
IMAGE_DPI = 200
# Share of an image page's numbers that OCR may miss: Tesseract 5.3 misses none, other versions differ a little.
MAX_LOST_BY_OCR = 0.1
# 2024-06-14, the date that the PDFs carry.
SOURCE_DATE_EPOCH = "1718323200"


def bold_if(condition: bool, text: str) -> str:
    """`text`, in bold when `condition` holds."""
    return f"\\textbf{{{text}}}" if condition else text


def best(texts: Sequence[str], smallest: bool = False) -> str:
    """The largest (or smallest) of some printed numbers, as printed."""
    return (min if smallest else max)(texts, key=float)


def table(
    *,
    label: str,
    caption: str,
    columns: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    rules_before: Mapping[int, str] | None = None,
    setup: str = "\\small",
    place: str = "t",
    wide: bool = False,
) -> str:
    """A floating booktabs table. `header` holds LaTeX lines; `rules_before` maps row numbers to rules."""
    environment = "table*" if wide else "table"
    lines = [f"\\begin{{{environment}}}[{place}]", f"\\centering{setup}"]
    lines += [f"\\caption{{{caption}}}", f"\\label{{{label}}}", f"\\begin{{tabular}}{{{columns}}}", "\\toprule"]
    lines += [*header, "\\midrule"]
    for index, row in enumerate(rows):
        if rules_before and index in rules_before:
            lines.append(rules_before[index])
        lines.append(" & ".join(row) + " \\\\")
    lines += ["\\bottomrule", "\\end{tabular}", f"\\end{{{environment}}}", ""]
    return "\n".join(lines)


def numbers_macros(numbers: Numbers) -> str:
    r"""Definitions behind `\N{id}`; an id that is not defined stops LaTeX."""
    lines = [
        "% Generated from numbers.json; do not edit.",
        "\\newcommand{\\N}[1]{\\ifcsname n@#1\\endcsname\\csname n@#1\\endcsname\\else"
        "\\errmessage{no number is called #1}\\fi}",
    ]
    lines += [f"\\expandafter\\def\\csname n@{n.id}\\endcsname{{{n.text}}}" for n in numbers.by_id.values()]
    return "\n".join(lines) + "\n"


def compile_paper(source: Path, work: Path, image_pages: Sequence[int]) -> tuple[bytes, list[str]]:
    """The PDF of `source`/main.tex and LaTeX's complaints about boxes and references.

    Raises:
        ExampleError: LaTeX stopped, or pdflatex is not installed.
    """
    if shutil.which("pdflatex") is None:
        raise ExampleError("pdflatex is not installed: install TeX Live (texlive-latex-extra, texlive-pictures)")
    build = work / "latex"
    shutil.copytree(source, build)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(work),
        "SOURCE_DATE_EPOCH": SOURCE_DATE_EPOCH,
        "FORCE_SOURCE_DATE": "1",
        "max_print_line": "1000",
    }
    command = [
        "pdflatex", "-interaction=nonstopmode", "-halt-on-error",
        "\\pdftrailerid{}\\pdfsuppressptexinfo=-1\\pdfminorversion=5\\input{main.tex}",
    ]  # fmt: skip
    for _ in range(3):
        done = subprocess.run(command, cwd=build, env=environment, capture_output=True, check=False)
        if done.returncode:
            raise ExampleError(f"pdflatex stopped in {source}:\n{done.stdout.decode('latin-1')[-3000:]}")
    log = (build / "main.log").read_text(encoding="latin-1")
    complaints = re.findall(
        r"^(?:Overfull|Underfull \\vbox|LaTeX Warning:|Package natbib Warning:).*", log, re.MULTILINE
    )
    document = pymupdf.open(build / "main.pdf")
    for number in image_pages:
        _replace_by_image(document, document[number - 1 if number > 0 else number])
    return document.tobytes(garbage=4, deflate=True, no_new_id=True), complaints


def _replace_by_image(document: pymupdf.Document, page: pymupdf.Page) -> None:
    """Turn a page into a grey image of itself, keeping the page object so that links to it stay valid."""
    pixmap = page.get_pixmap(dpi=IMAGE_DPI, colorspace=pymupdf.csGRAY, alpha=False)
    for link in page.get_links():
        page.delete_link(link)
    document.update_stream(page.get_contents()[0], b" ")
    page.set_contents(page.get_contents()[0])
    document.xref_set_key(page.xref, "Resources", "<<>>")
    page.insert_image(page.rect, pixmap=pixmap)


# --- checking -------------------------------------------------------------------------------------------------------

_DECIMAL = re.compile(r"(?<![\d.,])\d+(?:,\d{3})*\.\d+(?![\d]|\.\d)")


def decimals_of(text: str) -> Counter[str]:
    """How often each number with a decimal point occurs in a text."""
    return Counter(_DECIMAL.findall(text))


def stated_decimals(source: Path, numbers: Numbers) -> Counter[str]:
    r"""How often the LaTeX sources state each decimal number through `\N` and generated tables."""
    main = (source / "main.tex").read_text(encoding="utf-8")
    stated: Counter[str] = Counter()
    for id_ in re.findall(r"\\N\{([^}]+)\}", main):
        stated += decimals_of(numbers[id_])
    for name in re.findall(r"\\input\{(tables/[^}]+)\}", main):
        if not name.endswith("_figure"):
            body = (source / f"{name}.tex").read_text(encoding="utf-8")
            stated += decimals_of(re.sub(r"\\begin\{table\*?\}.*?\\caption", r"\\caption", body, flags=re.DOTALL))
    return stated


def check_pdf(pdf: Path, source: Path, numbers: Numbers, image_pages: Sequence[int]) -> list[str]:
    r"""Differences between the numbers that the sources state and those that the PDF's text shows.

    Args:
        pdf: the committed PDF.
        source: its LaTeX sources.
        numbers: what was computed.
        image_pages: pages without a text layer. They hold the appendix, whose numbers are read by OCR where Tesseract
            is installed.
    """
    document = pymupdf.open(pdf)
    images = {number - 1 if number > 0 else document.page_count + number for number in image_pages}
    problems = [
        f"page {i + 1} is to be an image without text, but is not"
        for i in images
        if document[i].get_text().strip() or not document[i].get_images()
    ]
    shown = decimals_of("\n".join(document[i].get_text() for i in range(document.page_count) if i not in images))
    main = (source / "main.tex").read_text(encoding="utf-8")
    appendix = main.partition("\\appendix")[2] if images else ""
    on_images = decimals_of(_expand(appendix, source, numbers))
    stated = stated_decimals(source, numbers)
    literal = decimals_of(main)
    sections = set(_subsection_numbers(main))
    for figure in sorted(source.glob("tables/*_figure.tex")):
        ticks = re.findall(r"[xy]tick=\{([^}]*)\}", figure.read_text(encoding="utf-8"))
        literal += decimals_of(" ".join(ticks).replace(",", " "))
    for text, count in sorted(stated.items()):
        here = count - on_images[text]
        if shown[text] < here:
            problems.append(f"{text} is stated {here} times in the sources, but shown {shown[text]} times in the PDF")
    problems += [
        f"{text} is shown in the PDF, but stated nowhere"
        for text in sorted(shown - stated - literal)
        if text not in sections
    ]
    if images and shutil.which("tesseract"):
        read = decimals_of("\n".join(_ocr(document[i]) for i in sorted(images)))
        lost = sorted(on_images - read)
        if len(lost) > MAX_LOST_BY_OCR * on_images.total():
            problems.append(f"not legible on the image page: {', '.join(lost)}")
    return problems


def _subsection_numbers(main: str) -> list[str]:
    """`5.1`, `5.2`, ... of the numbered subsections of the body."""
    section, found = 0, []
    for kind in re.findall(r"\\(section|subsection)\{", main):
        if kind == "section":
            section, subsection = section + 1, 0
        else:
            subsection += 1
            found.append(f"{section}.{subsection}")
    return found


def _expand(latex: str, source: Path, numbers: Numbers) -> str:
    latex = re.sub(r"\\input\{([^}]+)\}", lambda m: (source / f"{m[1]}.tex").read_text(encoding="utf-8"), latex)
    return re.sub(r"\\N\{([^}]+)\}", lambda m: numbers[m[1]], latex)


def _ocr(page: pymupdf.Page) -> str:
    """The text that Tesseract reads on a page."""
    done: subprocess.CompletedProcess[bytes] = subprocess.run(
        ["tesseract", "-", "-", "--psm", "6"],
        input=page.get_pixmap(dpi=IMAGE_DPI).tobytes("png"),
        capture_output=True,
        env={**os.environ, "OMP_THREAD_LIMIT": "1"},
        check=True,
    )
    return done.stdout.decode("utf-8")
