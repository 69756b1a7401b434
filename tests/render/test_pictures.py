"""Images inside figures: small, and never a hole where one is missing or damaged."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from vlmfair.errors import RawDataError
from vlmfair.render.pictures import LARGEST_PICTURE, open_picture


def test_a_picture_is_made_as_small_as_it_is_printed(tmp_path: Path) -> None:
    Image.new("RGBA", (3000, 1500), (255, 0, 0, 255)).save(tmp_path / "large.png")

    picture = open_picture(tmp_path / "large.png", "Figure 6")

    assert (picture.mode, picture.size) == ("RGB", (LARGEST_PICTURE, LARGEST_PICTURE // 2))


def test_a_missing_image_is_named_with_its_figure(tmp_path: Path) -> None:
    with pytest.raises(RawDataError, match=r"gone\.jpg: the image that Figure 6 shows is missing"):
        open_picture(tmp_path / "gone.jpg", "Figure 6")


@pytest.mark.parametrize("content", [b"", b"<html>", b"\x89PNG\r\n\x1a\n"])
def test_a_damaged_image_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "bad.jpg").write_bytes(content)

    with pytest.raises(RawDataError, match="cannot be read"):
        open_picture(tmp_path / "bad.jpg", "Figure 4")


def test_an_enormous_image_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Image.new("RGB", (40, 40)).save(tmp_path / "bomb.png")
    monkeypatch.setattr("vlmfair.render.pictures.LARGEST_FILE", 1000)

    with pytest.raises(RawDataError, match="larger than any photograph"):
        open_picture(tmp_path / "bomb.png", "Figure 4")
