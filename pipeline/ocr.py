"""The words in a picture, by Tesseract. For figures and screenshots of a repository, not for pages of a paper.

A page of a paper needs boxes, rules and a reading order (`extractors.ocr`); here lines of text are enough. Non-goal:
reading handwriting, formulas, or text in photographs.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
from functools import lru_cache
from typing import Final

from pipeline.errors import ExpbenchError, FailureKind

__all__ = ["picture_text", "too_small_for_text"]

_TIMEOUT_S: Final = 60
_MAX_PIXELS: Final = 40_000_000
_SMALLEST: Final = (80, 24)
"""Pixels below which a picture holds no line of text: data sets of 28x28 to 64x64 pictures are not read."""
_ENLARGE_BELOW: Final = 1600
"""Pixels of width below which it is enlarged. Six numbers above the bars of Matplotlib charts, read as they are and at
twice the size: 7 points at 72 dpi 0 and 5, 7 points at 100 dpi 3 and 6, 8 points at 72 dpi 1 and 6; larger ones all."""


def too_small_for_text(data: bytes) -> bool:
    """Is the picture so small that no line of text fits in? Only its header is read.

    Raises:
        ValueError: not a picture that can be read.
    """
    width, height = _size(data)
    return width < _SMALLEST[0] or height < _SMALLEST[1]


def _size(data: bytes) -> tuple[int, int]:
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(data)) as picture:
            return picture.size
    except (UnidentifiedImageError, OSError, Image.DecompressionBombError, SyntaxError, ValueError) as error:
        raise ValueError(f"not a readable picture ({error})") from error


@lru_cache(maxsize=2048)
def picture_text(data: bytes) -> str:
    """The lines of text in a picture, top to bottom; empty when there are none.

    Args:
        data: PNG, JPEG, GIF, BMP, TIFF or WebP; of an animation the first frame.

    Raises:
        ExpbenchError: `TOOL_MISSING`: Tesseract is not installed.
        ValueError: not a readable picture, too large, or Tesseract gave up on it.
    """
    program = shutil.which("tesseract")
    if program is None:
        raise ExpbenchError(
            FailureKind.TOOL_MISSING,
            "tesseract",
            "the program is not installed",
            consequence="Pictures were not searched for results",
            next_step="Install Tesseract (Debian: `apt install tesseract-ocr`) and run again",
        )
    command = [program, "stdin", "stdout", "--psm", "6", "-l", "eng"]
    environment = os.environ | {"OMP_THREAD_LIMIT": "1"}  # two threads were seven times slower on a busy machine
    try:
        done = subprocess.run(
            command, input=_prepared(data), capture_output=True, timeout=_TIMEOUT_S, check=False, env=environment
        )
    except subprocess.TimeoutExpired as error:
        raise ValueError(f"Tesseract needed more than {_TIMEOUT_S} s") from error
    if done.returncode != 0:
        message = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise ValueError(f"Tesseract failed: {message[-1] if message else done.returncode}")
    lines = (line.strip() for line in done.stdout.decode("utf-8", "replace").splitlines())
    return "\n".join(line for line in lines if line)


def _prepared(data: bytes) -> bytes:
    """The picture as PNG in grey on white, enlarged when it is small."""
    from PIL import Image

    width, height = _size(data)
    if width * height > _MAX_PIXELS:
        raise ValueError(f"{width}x{height} pixels are more than {_MAX_PIXELS // 1_000_000} million")
    try:
        with Image.open(io.BytesIO(data)) as picture:
            flat = Image.new("RGBA", picture.size, "white")
            flat.alpha_composite(picture.convert("RGBA"))
            grey = flat.convert("L")
    except (OSError, SyntaxError, ValueError) as error:
        raise ValueError(f"not a readable picture ({error})") from error
    if width < _ENLARGE_BELOW:
        grey = grey.resize((width * 2, height * 2), Image.Resampling.LANCZOS)
    stream = io.BytesIO()
    grey.save(stream, "PNG")
    return stream.getvalue()
