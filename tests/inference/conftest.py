"""The tiny model and the drawn noise that these tests share."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import fake_api
import numpy as np
import pytest
from PIL import Image
from tiny_llava import DrawImage, write_model

from vlmfair.inference.queries import ImageRef


@pytest.fixture(autouse=True, scope="module")
def always_one_thread(one_thread: None) -> None:
    """Every module here computes with tiny models."""


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    write_model(folder)
    return folder


@pytest.fixture
def draw_image(tmp_path: Path) -> DrawImage:
    """Write an image of seeded noise and return its reference."""

    def draw(seed: int = 0, size: tuple[int, int] = (40, 30), transform: str = "none") -> ImageRef:
        pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
        path = tmp_path / f"noise_{seed}_{size[0]}x{size[1]}.png"
        Image.fromarray(pixels).save(path)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        return ImageRef(str(path), digest, transform)

    return draw


@pytest.fixture
def served() -> Iterator[fake_api.Served]:
    """A running server that answers each question with itself in capitals."""
    with fake_api.serve() as running:
        yield running
