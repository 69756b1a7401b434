"""Images on their way to a model: opened as RGB, transformed as asked, processed once."""

from __future__ import annotations

import hashlib
import io
import re
import warnings
from collections import OrderedDict
from pathlib import Path
from typing import Any

from PIL import Image, UnidentifiedImageError

from vlmfair.errors import InferenceError
from vlmfair.models.chat import ImageRef
from vlmfair.models.families.base import Family, ImageInputs

_RESIZE = re.compile(r"resize:([1-9]\d{0,3})x([1-9]\d{0,3})")


class UnreadableImageError(Exception):
    """An image that cannot be opened or processed; its questions become error rows."""


def apply_transform(image: Image.Image, transform: str) -> Image.Image:
    """Return the image as `transform` says: `none`, or `resize:WIDTHxHEIGHT`.

    Resizing is bicubic and ignores the aspect ratio, as in the released GRAS scripts for AI-Face.
    Raises InferenceError on any other transform.
    """
    if transform == "none":
        return image
    matched = _RESIZE.fullmatch(transform)
    if matched is None:
        raise InferenceError(
            f"the image transform {transform!r} does not exist. Use none or resize:WIDTHxHEIGHT."
        )
    return image.resize((int(matched[1]), int(matched[2])), Image.Resampling.BICUBIC)


def open_image(ref: ImageRef) -> Image.Image:
    """Return the image in RGB after its transform; the EXIF orientation is left alone, as released.

    Raises InferenceError when the file's bytes are not those the samples were made from, and
    UnreadableImageError when it is missing or not an image.
    """
    try:
        content = Path(ref.path).read_bytes()
    except OSError as error:
        raise UnreadableImageError(f"{ref.path} cannot be read: {error.strerror}") from error
    if hashlib.sha256(content).hexdigest() != ref.sha256:
        raise InferenceError(
            f"{ref.path}: the image is not the one that the samples table was made from. "
            f"Restore the raw dataset, or run the prepare step of this dataset again."
        )
    try:
        with warnings.catch_warnings():
            # Large photographs are legitimate; Pillow still refuses twice its own limit.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(content)) as opened:
                image = opened.convert("RGB")
    except (
        OSError,
        ValueError,
        SyntaxError,
        UnidentifiedImageError,
        Image.DecompressionBombError,
    ) as error:
        raise UnreadableImageError(f"{ref.path} is not a readable image: {error}") from error
    return apply_transform(image, ref.transform)


class ImageCache:
    """Processed images by content, the most recently used `capacity` of them."""

    def __init__(self, processor: Any, family: Family, capacity: int) -> None:
        self._processor = processor
        self._family = family
        self._capacity = capacity
        self._inputs: OrderedDict[tuple[str, str], ImageInputs | UnreadableImageError] = (
            OrderedDict()
        )
        self.opened = 0

    def get(self, ref: ImageRef) -> ImageInputs:
        """Return the processed image; raises as `open_image`."""
        key = (ref.sha256, ref.transform)
        found = self._inputs.get(key)
        if found is None:
            found = self._process(ref)
            self._inputs[key] = found
            while len(self._inputs) > self._capacity:
                self._inputs.popitem(last=False)
        else:
            self._inputs.move_to_end(key)
        if isinstance(found, UnreadableImageError):
            raise found
        return found

    def _process(self, ref: ImageRef) -> ImageInputs | UnreadableImageError:
        self.opened += 1
        try:
            return self._family.process_image(self._processor, open_image(ref))
        except UnreadableImageError as error:
            return error
        except (ValueError, RuntimeError, ZeroDivisionError) as error:
            return UnreadableImageError(f"{ref.path} cannot be processed: {error}")
