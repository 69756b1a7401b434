"""InternVL 3 and 3.5 (the -HF checkpoints): an image as tiles of equal size and a thumbnail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from PIL import Image

from vlmfair.models.families.base import Family, ImageFeatures, ImageInputs


class InternVLFamily(Family):
    """InternVLForConditionalGeneration."""

    name = "internvl"
    architectures = ("InternVLForConditionalGeneration",)
    shares_image_features = True

    def process_image(self, processor: Any, image: Image.Image) -> ImageInputs:
        """Return the tiles [tiles, 3, height, width] of one image."""
        # The processor asks its image processor for tiles; the image processor's default is none.
        inputs = processor.image_processor(
            images=[image], return_tensors="pt", **processor.images_kwargs
        )
        replacement = processor.replace_image_token(inputs, image_idx=0)
        return ImageInputs({"pixel_values": inputs["pixel_values"]}, replacement)

    def encode_images(self, model: Any, images: Sequence[ImageInputs]) -> list[ImageFeatures]:
        """Return the projected embeddings of each image's tiles, one tile behind the other."""
        pixels = self.join_images(images)["pixel_values"].to(model.device, model.dtype)
        output = model.get_image_features(pixel_values=pixels, return_dict=True)
        tiles = [len(image.tensors["pixel_values"]) for image in images]
        return [
            ImageFeatures(features.flatten(0, 1)) for features in output.pooler_output.split(tiles)
        ]

    def features_as_inputs(self, features: Sequence[ImageFeatures]) -> dict[str, Any]:
        """Return the forward argument that replaces `pixel_values`."""
        from transformers.modeling_outputs import BaseModelOutputWithPooling

        joined: Any = torch.cat([image.embeddings for image in features])
        return {"mm_encoder_outputs": {"image": BaseModelOutputWithPooling(pooler_output=joined)}}


FAMILY = InternVLFamily()
