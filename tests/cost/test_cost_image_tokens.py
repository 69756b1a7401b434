"""Tokens of images: the same numbers as the families' own processors give, without them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
import transformers as hf

from vlmfair.cost.image_tokens import image_load, served_tokens

SIZES = [(224, 224), (640, 480), (480, 640), (2250, 1500), (500, 375), (800, 1200), (300, 900)]
# The settings of the checkpoints' own preprocessor_config.json.
PINPOINTS = [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]]


def llava_next_tokens(width: int, height: int) -> int:
    processor = SimpleNamespace(
        image_processor=hf.LlavaNextImageProcessor(image_grid_pinpoints=PINPOINTS),
        patch_size=14,
        num_additional_image_tokens=1,
    )
    own: Any = hf.LlavaNextProcessor
    processor._get_unpadded_features = lambda *sides: own._get_unpadded_features(processor, *sides)
    return own._get_number_of_features(processor, height, width, 336, 336) - 1


def qwen_tokens(patch: int, least: int, most: int, width: int, height: int) -> int:
    processor = hf.Qwen2VLImageProcessor(
        patch_size=patch, size={"shortest_edge": least, "longest_edge": most}
    )
    return processor.get_number_of_image_patches(height, width, {}) // 4


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_tiles_of_llava_next(width: int, height: int) -> None:
    assert image_load("llava_next", width, height, None).tokens == llava_next_tokens(width, height)


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_native_sizes_of_qwen(width: int, height: int) -> None:
    older = qwen_tokens(14, 56 * 56, 12845056, width, height)
    newer = qwen_tokens(16, 256 * 256, 4096 * 4096, width, height)

    assert image_load("qwen2_5_vl", width, height, None).tokens == older
    assert image_load("qwen3_vl", width, height, None).tokens == newer


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_tiles_of_idefics3_and_internvl(width: int, height: int) -> None:
    idefics = hf.Idefics3ImageProcessor(
        size={"longest_edge": 1456}, max_image_size={"longest_edge": 364}
    )
    internvl = hf.GotOcr2ImageProcessor(
        crop_to_patches=True, min_patches=1, max_patches=12, size={"height": 448, "width": 448}
    )

    views, rows, columns = idefics.get_number_of_image_patches(height, width)
    load = image_load("idefics3", width, height, None)
    assert load.crops == views
    # 169 tokens and two tags a tile, a line break a row; a break, two tags and an end at the whole.
    assert load.tokens == rows * columns * 171 + rows + 1 + 2 + 169 + 1
    crops = internvl.get_number_of_image_patches(height, width)
    assert image_load("internvl", width, height, None).crops == crops


@pytest.mark.parametrize(("width", "height"), [(224, 224), (640, 480), (500, 375), (300, 900)])
def test_tiles_of_phi4(width: int, height: int) -> None:
    image = torch.zeros((3, height, width), dtype=torch.uint8)
    own: Any = hf.models.phi4_multimodal.image_processing_phi4_multimodal
    found = own.Phi4MultimodalImageProcessor()(image, return_tensors="pt")

    load = image_load("phi4_multimodal", width, height, None)

    assert load.tokens == int(found["num_img_tokens"][0])
    assert load.crops == found["image_pixel_values"].shape[1]


def test_towers_that_see_one_view() -> None:
    assert image_load("llava", 2250, 1500, (336, 14)).tokens == 576
    assert image_load("llava", 2250, 1500, (96, 16)).tokens == 36
    assert image_load("paligemma", 10, 10, None).tokens == 256
    assert image_load("blip2", 10, 10, None).tokens == 32


def test_phi3_5_takes_up_to_four_tiles() -> None:
    """757 tokens of a square image with four tiles, as its model card counts."""
    assert image_load("phi3_5_vision", 1000, 1000, None).tokens == 757


@pytest.mark.parametrize(
    ("width", "height", "tokens"),
    # OpenAI's own examples: 1,024 x 1,024 and 2,048 x 4,096 pixels in high detail.
    [(1024, 1024, 765), (2048, 4096, 1105)],
)
def test_tiles_of_gpt_4o(width: int, height: int, tokens: int) -> None:
    assert served_tokens("gpt-4o-2024-11-20", width, height) == tokens
    assert served_tokens("gemini-1.5-pro-002", width, height) == 258
