"""Files of the demo's raw downloads: what one drawn image is, and how it is encoded or damaged."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
from PIL import Image

from vlmfair.demo.scenes import GENDERS, OCCUPATIONS, PLACES, Scene, draw, sample_scene
from vlmfair.provenance import write_bytes

T = TypeVar("T")
TRUNCATED, MISSING, EMPTY = "truncated", "missing", "empty"
TWO_PERSON_SHARE = 0.1
# One in fourteen people does nothing in particular.
ACTIVITIES = (*OCCUPATIONS, "")


@dataclass(frozen=True)
class DrawnImage:
    """One image of a raw folder.

    `path` is what follows the dataset's name in a sample id, `stored` where the file lies below
    the raw folder, `row` its line of the label file and `more_rows` further lines about it; `scene`
    is the truth that was drawn. `width` and `height` are in pixels; `fault` is "" or one of
    `truncated`, `missing`, `empty`.
    """

    path: str
    stored: str
    row: Mapping[str, str]
    scene: Scene
    width: int
    height: int
    selected: bool = False
    fault: str = ""
    more_rows: tuple[Mapping[str, str], ...] = ()

    def damaged(self, fault: str) -> DrawnImage:
        """Return the same image with a fault."""
        return replace(self, fault=fault)

    def stored_as(self, stored: str) -> DrawnImage:
        """Return the same image in a file of another name than its label says."""
        return replace(self, stored=stored)


def write_image(raw_dir: Path, image: DrawnImage) -> None:
    """Write an image as its file name says; a missing one is removed if a file lies there."""
    target = raw_dir / image.stored
    if image.fault == MISSING:
        target.unlink(missing_ok=True)
        return
    content = encode(image)
    if image.fault == TRUNCATED:
        content = content[: len(content) * 2 // 3]
    write_bytes(target, b"" if image.fault == EMPTY else content)


def encode(image: DrawnImage) -> bytes:
    """Draw the scene and return it as the bytes of a PNG or a JPEG file."""
    picture = draw(image.scene, max(image.width, image.height))
    if picture.size != (image.width, image.height):
        picture = picture.resize((image.width, image.height), Image.Resampling.BICUBIC)
    buffer = io.BytesIO()
    if image.stored.lower().endswith(".png"):
        picture.save(buffer, "PNG", compress_level=1)
    else:
        picture.save(buffer, "JPEG", quality=92)
    return buffer.getvalue()


def spread(rng: np.random.Generator, values: Sequence[T], count: int) -> list[T]:
    """Return `count` values in random order, each as often as any other, give or take one.

    Attributes that a measurement does not hold fixed are spread like this, so that in a small set
    they do not happen to go with one that it does.
    """
    order = [values[place] for place in rng.permutation(len(values))]
    repeated = (order * (count // len(order) + 1))[:count]
    return [repeated[place] for place in rng.permutation(count)]


def lone_people(
    rng: np.random.Generator, cells: Sequence[tuple[str, str]], hooded_share: float
) -> list[Scene]:
    """Return a scene of one person for each (gender, occupation), in their order.

    Places, skin tones, ages from 16 to 85 and hoods are spread evenly within each gender.
    """
    scenes: list[Scene | None] = [None] * len(cells)
    for gender in GENDERS:
        own = [number for number, cell in enumerate(cells) if cell[0] == gender]
        hoods = round(hooded_share * len(own))
        drawn = zip(
            spread(rng, PLACES, len(own)),
            spread(rng, range(1, 11), len(own)),
            spread(rng, range(16, 86), len(own)),
            spread(rng, [True] * hoods + [False] * (len(own) - hoods), len(own)),
            strict=True,
        )
        for number, (place, tone, age, hooded) in zip(own, drawn, strict=True):
            scenes[number] = sample_scene(
                rng,
                place=place,
                gender=gender,
                skin_tone=tone,
                age=age,
                occupation=cells[number][1],
                hooded=hooded,
                two=False,
            )
    return [scene for scene in scenes if scene is not None]


def image_size(rng: np.random.Generator, shortest: int, longest: int) -> tuple[int, int]:
    """Return a width and a height in pixels, the height from `shortest` to `longest`."""
    height = int(rng.integers(shortest, longest))
    return round(height * float(rng.uniform(0.9, 1.12))), height


def csv_lines(columns: Sequence[str], rows: Sequence[Mapping[str, str]]) -> str:
    """Return rows as comma-separated lines with a header, in quotes where a value needs them."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([row[name] for name in columns] for row in rows)
    return text.getvalue()
