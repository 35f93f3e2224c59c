"""Words in pictures, by the real Tesseract."""

from __future__ import annotations

import io
import shutil

import pytest
from PIL import Image, ImageDraw, ImageFont

from pipeline import ocr
from pipeline.errors import ExpbenchError, FailureKind

needs_tesseract = pytest.mark.skipif(shutil.which("tesseract") is None, reason="Tesseract is not installed")


def picture(kind: str, size: tuple[int, int] = (420, 90), background: str = "white") -> bytes:
    image = Image.new("RGBA" if kind == "PNG" else "RGB", size, background)
    ImageDraw.Draw(image).text((20, 30), "accuracy 0.8731", fill="black", font=ImageFont.load_default(size=14))
    stream = io.BytesIO()
    image.save(stream, kind)
    return stream.getvalue()


@needs_tesseract
@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_a_small_figure_is_read(kind: str) -> None:
    assert "0.8731" in ocr.picture_text(picture(kind))


@needs_tesseract
def test_a_transparent_figure_is_read_on_white() -> None:
    assert "0.8731" in ocr.picture_text(picture("PNG", background="#00000000"))


def test_what_is_no_picture_says_so() -> None:
    for data in (b"", b"\x89PNG\r\n\x1a\n broken", picture("PNG")[:60]):
        with pytest.raises(ValueError, match="not a readable picture"):
            ocr.picture_text(data)
    assert ocr.too_small_for_text(picture("PNG", (28, 28)))
    assert not ocr.too_small_for_text(picture("PNG"))


def test_without_tesseract_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(ExpbenchError) as caught:
        ocr.picture_text(picture("PNG", (421, 91)))
    assert caught.value.kind is FailureKind.TOOL_MISSING
    assert "apt install tesseract-ocr" in caught.value.next_step
