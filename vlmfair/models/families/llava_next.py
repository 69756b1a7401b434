"""LLaVA-NeXT (LLaVA-1.6): an image is seen whole and in tiles, as many as its shape asks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from vlmfair.models.families.base import ImageFeatures, ImageInputs, pad_and_join
from vlmfair.models.families.llava import LlavaFamily


class LlavaNextFamily(LlavaFamily):
    """LlavaNextForConditionalGeneration."""

    name = "llava_next"
    architectures = ("LlavaNextForConditionalGeneration",)

    def join_images(self, images: Sequence[ImageInputs]) -> dict[str, torch.Tensor]:
        """Return pixels [images, most tiles, ...], empty tiles at the end, and the sizes."""
        return pad_and_join(images, {"pixel_values": 0.0})

    def encode_images(self, model: Any, images: Sequence[ImageInputs]) -> list[ImageFeatures]:
        """Return each image's embeddings: the whole, then the tiles row by row."""
        tensors = self.join_images(images)
        output = model.get_image_features(
            pixel_values=tensors["pixel_values"].to(model.device, model.dtype),
            image_sizes=tensors["image_sizes"].to(model.device),
            return_dict=True,
        )
        return [ImageFeatures(features) for features in output.pooler_output]


FAMILY = LlavaNextFamily()
