"""Images of a dataset inside figures, read with distrust and made as small as they are printed."""

from __future__ import annotations

import os

import numpy as np
from matplotlib.axes import Axes
from PIL import Image, UnidentifiedImageError

from vlmfair.errors import RawDataError, reason_of

LARGEST_PICTURE = 600  # pixels on the longer side: 300 dpi at two inches
LARGEST_FILE = 100_000_000  # pixels; more is not a photograph


def open_picture(path: str | os.PathLike[str], figure: str) -> Image.Image:
    """Return the picture that a figure shows; a figure with a hole is no figure.

    Raises RawDataError when the file is missing or cannot be read.
    """
    try:
        with Image.open(path) as opened:
            if opened.width * opened.height > LARGEST_FILE:
                raise ValueError("it is larger than any photograph")
            opened.draft("RGB", (LARGEST_PICTURE, LARGEST_PICTURE))
            picture = opened.convert("RGB")
    except FileNotFoundError as error:
        raise RawDataError(
            f"{path}: the image that {figure} shows is missing. Put it back into the raw folder."
        ) from error
    except (OSError, UnidentifiedImageError, Image.DecompressionBombError, ValueError) as error:
        raise RawDataError(
            f"{path}: the image that {figure} shows cannot be read ({reason_of(error)}). "
            f"Put the raw file back as it was downloaded."
        ) from error
    picture.thumbnail((LARGEST_PICTURE, LARGEST_PICTURE))
    return picture


def show_picture(axes: Axes, picture: Image.Image) -> None:
    """Fill axes with a picture."""
    axes.axis("off")
    axes.imshow(np.asarray(picture))
