"""Qwen3-VL: as Qwen2.5-VL, and features of earlier vision layers enter the first decoder layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from vlmfair.models.families.base import ImageFeatures, ImageInputs
from vlmfair.models.families.qwen2_5_vl import Qwen2_5VLFamily


class Qwen3VLFamily(Qwen2_5VLFamily):
    """Qwen3VLForConditionalGeneration (DeepStack)."""

    name = "qwen3_vl"
    architectures = ("Qwen3VLForConditionalGeneration",)

    def encode_images(self, model: Any, images: Sequence[ImageInputs]) -> list[ImageFeatures]:
        """Return the merged patch embeddings of each image and of its DeepStack layers."""
        output = self._vision_output(model, images)
        grids = [image.tensors["image_grid_thw"] for image in images]
        deeper = zip(*output.deepstack_features, strict=True)
        return [
            ImageFeatures(features, layers, {"image_grid_thw": grid.to(features.device)})
            for features, layers, grid in zip(output.pooler_output, deeper, grids, strict=True)
        ]

    def features_as_inputs(self, features: Sequence[ImageFeatures]) -> dict[str, Any]:
        """Return the forward argument that replaces the patches, and the grids."""
        from transformers.models.qwen3_vl.modeling_qwen3_vl import (
            BaseModelOutputWithDeepstackFeatures,
        )

        listed: Any = [image.embeddings for image in features]
        deeper: Any = list(zip(*(image.layers for image in features), strict=True))
        output = BaseModelOutputWithDeepstackFeatures(
            pooler_output=listed, deepstack_features=deeper
        )
        return {"mm_encoder_outputs": {"image": output}, "image_grid_thw": self._grids(features)}

    def deeper(
        self, image_rows: torch.Tensor | None, layers: Sequence[torch.Tensor]
    ) -> dict[str, Any]:
        """Return which rows are images and what is added to them behind the first layers."""
        if image_rows is None or not layers:
            return {}
        return {"visual_pos_masks": image_rows, "deepstack_visual_embeds": list(layers)}


FAMILY = Qwen3VLFamily()
