"""Drawn scenes as the demo models see them: of many sizes and shapes, compressed, 96 x 96."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vlmfair.demo.scenes import Scene, draw, sample_scene

INPUT_SIZE = 96
PLAIN_SHARE = 0.10


def training_scene(rng: np.random.Generator) -> Scene:
    """Draw a scene to learn from: as `sample_scene`, one in ten without an occupation."""
    if rng.random() < PLAIN_SHARE:
        return sample_scene(rng, occupation="")
    return sample_scene(rng)


def photograph(scene: Scene, rng: np.random.Generator) -> Image.Image:
    """Draw a scene as a dataset would hold it: any size, maybe stretched, often a lossy JPEG."""
    if rng.random() < 0.35:
        return draw(scene, INPUT_SIZE)
    image = draw(scene, int(rng.integers(80, 260)))
    if rng.random() < 0.3:
        factor = float(rng.uniform(0.87, 1.15))
        image = image.resize((round(image.width * factor), image.height))
    if rng.random() < 0.7:
        buffer = io.BytesIO()
        image.save(buffer, "JPEG", quality=int(rng.integers(60, 96)))
        image = Image.open(buffer).convert("RGB")
    return image


def to_input(image: Image.Image) -> NDArray[np.uint8]:
    """Resize the shorter side to 96 pixels and cut out the centre, as the processor does."""
    scale = INPUT_SIZE / min(image.size)
    width, height = (max(INPUT_SIZE, round(side * scale)) for side in image.size)
    if (width, height) != image.size:
        image = image.resize((width, height), Image.Resampling.BICUBIC)
    left, top = (width - INPUT_SIZE) // 2, (height - INPUT_SIZE) // 2
    return np.asarray(image)[top : top + INPUT_SIZE, left : left + INPUT_SIZE]


def build_pool(
    scenes: Sequence[Scene], rng: np.random.Generator, plain: bool = False
) -> NDArray[np.uint8]:
    """Photograph scenes: n x 96 x 96 x 3 bytes; `plain` leaves out sizes and compression."""
    pool = np.empty((len(scenes), INPUT_SIZE, INPUT_SIZE, 3), dtype=np.uint8)
    for index, scene in enumerate(scenes):
        pool[index] = to_input(draw(scene) if plain else photograph(scene, rng))
    return pool


def normalise(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Bytes n x h x w x 3 to model input n x 3 x h x w with mean and deviation of 0.5."""
    return np.ascontiguousarray(pixels.transpose(0, 3, 1, 2), dtype=np.float32) / 127.5 - 1.0
