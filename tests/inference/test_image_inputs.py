"""Images reach the processor as the released scripts hand them over."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tiny_llava import DrawImage, tiny_entry

from vlmfair.errors import InferenceError
from vlmfair.inference.images import ImageCache, UnreadableImageError, open_image
from vlmfair.inference.queries import ImageRef
from vlmfair.models.loading import load_processor


def write(image: Image.Image, path: Path, **options: object) -> ImageRef:
    image.save(path, **options)
    return ImageRef(str(path), hashlib.sha256(path.read_bytes()).hexdigest())


def test_resizing_is_bicubic_and_ignores_the_aspect_ratio(draw_image: DrawImage) -> None:
    ref = draw_image(size=(60, 20), transform="resize:256x256")

    image = open_image(ref)

    assert image.size == (256, 256)
    expected = Image.open(ref.path).resize((256, 256))  # Pillow's own filter is bicubic
    np.testing.assert_array_equal(np.asarray(image), np.asarray(expected))


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "CMYK"])
def test_every_kind_of_image_becomes_rgb(tmp_path: Path, mode: str) -> None:
    suffix = "jpg" if mode == "CMYK" else "png"

    image = open_image(write(Image.new(mode, (5, 4)), tmp_path / f"a.{suffix}"))

    assert (image.mode, image.size) == ("RGB", (5, 4))


def test_the_exif_orientation_is_left_alone(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # "turn by 90 degrees to view"

    image = open_image(write(Image.new("RGB", (8, 4)), tmp_path / "turned.jpg", exif=exif))

    assert image.size == (8, 4)


def test_an_image_that_changed_since_the_samples_were_made_stops_the_run(
    draw_image: DrawImage,
) -> None:
    ref = draw_image()
    Image.new("RGB", (4, 4)).save(ref.path)

    with pytest.raises(
        InferenceError, match=r"is not the one that the samples table was made from"
    ):
        open_image(ref)


def test_an_unknown_transform_is_refused(draw_image: DrawImage) -> None:
    with pytest.raises(InferenceError, match=r"'mirror' does not exist. Use none or resize"):
        open_image(draw_image(transform="mirror"))


def test_a_file_that_is_no_image_is_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "page.jpg"
    path.write_text("<html>not found</html>")
    ref = ImageRef(str(path), hashlib.sha256(path.read_bytes()).hexdigest())

    with pytest.raises(UnreadableImageError, match=r"page.jpg is not a readable image"):
        open_image(ref)


@pytest.mark.parametrize("size", [(1, 1), (3, 700)])
def test_images_of_any_shape_are_processed(
    model_folder: Path, draw_image: DrawImage, size: tuple[int, int]
) -> None:
    loaded = load_processor(tiny_entry(model_folder))

    inputs = ImageCache(loaded.processor, loaded.family, 1).get(draw_image(size=size))

    assert tuple(inputs.tensors["pixel_values"].shape) == (1, 3, 24, 24)


def test_an_image_is_opened_once_while_it_is_remembered(
    model_folder: Path, draw_image: DrawImage
) -> None:
    loaded = load_processor(tiny_entry(model_folder))
    cache = ImageCache(loaded.processor, loaded.family, capacity=2)
    first, second, third = (draw_image(seed) for seed in range(3))

    for ref in (first, first, second, first, third, first):
        cache.get(ref)
    assert cache.opened == 3

    cache.get(second)
    assert cache.opened == 4
