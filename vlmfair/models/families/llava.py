"""LLaVA-1.5 and models of its class: a CLIP-like tower, a projector, a causal language model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vlmfair.models.families.base import Family, ImageFeatures, ImageInputs


class LlavaFamily(Family):
    """LlavaForConditionalGeneration; each image becomes a fixed number of placeholder tokens."""

    name = "llava"
    architectures = ("LlavaForConditionalGeneration",)
    shares_image_features = True

    def encode_images(self, model: Any, images: Sequence[ImageInputs]) -> list[ImageFeatures]:
        """Return the projected patch embeddings of each image."""
        tensors = self.join_images(images)
        pixels = tensors["pixel_values"].to(model.device, model.dtype)
        output = model.get_image_features(pixel_values=pixels, return_dict=True)
        return [ImageFeatures(features) for features in output.pooler_output]

    def features_as_inputs(self, features: Sequence[ImageFeatures]) -> dict[str, Any]:
        """Return the forward argument that replaces `pixel_values`."""
        from transformers.modeling_outputs import BaseModelOutputWithPooling

        # The model reads a list here, one tensor for each image, whatever the annotation says.
        listed: Any = [image.embeddings for image in features]
        return {"mm_encoder_outputs": {"image": BaseModelOutputWithPooling(pooler_output=listed)}}


FAMILY = LlavaFamily()
