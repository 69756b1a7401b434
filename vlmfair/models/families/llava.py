"""LLaVA-1.5 and models of its class: a CLIP-like tower, a projector, a causal language model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from vlmfair.models.families.base import Family


class LlavaFamily(Family):
    """LlavaForConditionalGeneration; each image becomes a fixed number of placeholder tokens."""

    name = "llava"
    architectures = ("LlavaForConditionalGeneration",)
    shares_image_features = True

    def image_features(self, model: Any, tensors: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return the projected patch embeddings of images, [images, patches, hidden size]."""
        output = model.get_image_features(pixel_values=tensors["pixel_values"], return_dict=True)
        return torch.stack(list(output.pooler_output))

    def features_as_inputs(self, features: torch.Tensor) -> dict[str, Any]:
        """Return the forward argument that replaces `pixel_values`."""
        from transformers.modeling_outputs import BaseModelOutputWithPooling

        # The model reads a list here, one tensor for each image, whatever the annotation says.
        output = BaseModelOutputWithPooling(pooler_output=list(features))  # type: ignore[arg-type]
        return {"mm_encoder_outputs": {"image": output}}


FAMILY = LlavaFamily()
