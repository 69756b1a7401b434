"""Idefics3: an image as rows and columns of tiles, each with its tags, and the whole image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from PIL import Image

from vlmfair.models.families.base import Family, ImageFeatures, ImageInputs


class Idefics3Family(Family):
    """Idefics3ForConditionalGeneration."""

    name = "idefics3"
    architectures = ("Idefics3ForConditionalGeneration",)
    shares_image_features = True

    def process_image(self, processor: Any, image: Image.Image) -> ImageInputs:
        """Return tiles [1, tiles, 3, height, width] and which of their pixels are padding."""
        inputs = processor.image_processor(
            images=[[image]], return_tensors="pt", return_row_col_info=True
        )
        replacement = processor.replace_image_token(inputs, image_idx=0)
        names = ("pixel_values", "pixel_attention_mask")
        return ImageInputs({name: inputs[name] for name in names if name in inputs}, replacement)

    def join_images(self, images: Sequence[ImageInputs]) -> dict[str, torch.Tensor]:
        """Return all tiles in one row; the model takes tiles in order, whichever prompt's."""
        names = images[0].tensors.keys() if images else ()
        return {name: torch.cat([image.tensors[name] for image in images], dim=1) for name in names}

    def encode_images(self, model: Any, images: Sequence[ImageInputs]) -> list[ImageFeatures]:
        """Return the resampled embeddings of each image's tiles, one tile behind the other."""
        tensors = self.join_images(images)
        mask = tensors.get("pixel_attention_mask")
        output = model.get_image_features(
            pixel_values=tensors["pixel_values"].to(model.device, model.dtype),
            pixel_attention_mask=None if mask is None else mask.to(model.device),
            return_dict=True,
        )
        embeddings = torch.cat(list(output.pooler_output))
        tiles = [_visible_tiles(image) for image in images]
        per_tile = len(embeddings) // sum(tiles)
        return [
            ImageFeatures(features)
            for features in embeddings.split([number * per_tile for number in tiles])
        ]

    def features_as_inputs(self, features: Sequence[ImageFeatures]) -> dict[str, Any]:
        """Return the forward argument that replaces the tiles."""
        from transformers.modeling_outputs import BaseModelOutputWithPooling

        listed: Any = [image.embeddings for image in features]
        return {"mm_encoder_outputs": {"image": BaseModelOutputWithPooling(pooler_output=listed)}}

    def decoder(self, model: Any) -> Any:
        """Return the language model without its head."""
        return model.model.text_model


def _visible_tiles(image: ImageInputs) -> int:
    """The model leaves out tiles of zeros, which are padding; so does this count."""
    return int((image.tensors["pixel_values"][0] != 0).flatten(1).any(dim=1).sum())


FAMILY = Idefics3Family()
