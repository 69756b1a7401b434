"""Qwen2.5-VL: images in their own shape, and positions with a time, a height and a width axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from vlmfair.models.families.base import Family, ImageFeatures, ImageInputs


class Qwen2_5VLFamily(Family):
    """Qwen2_5_VLForConditionalGeneration."""

    name = "qwen2_5_vl"
    architectures = ("Qwen2_5_VLForConditionalGeneration",)
    shares_image_features = True

    def process_image(self, processor: Any, image: Any) -> ImageInputs:
        """Return patches and their grid; the number of tokens is a tensor in this processor."""
        inputs = processor.image_processor(images=[image], return_tensors="pt")
        tokens = int(inputs["image_grid_thw"][0].prod()) // processor.image_processor.merge_size**2
        return ImageInputs(dict(inputs), self.image_token(processor) * tokens)

    def encode_images(self, model: Any, images: Sequence[ImageInputs]) -> list[ImageFeatures]:
        """Return the merged patch embeddings of each image."""
        output = self._vision_output(model, images)
        grids = [image.tensors["image_grid_thw"] for image in images]
        return [
            ImageFeatures(features, inputs={"image_grid_thw": grid.to(features.device)})
            for features, grid in zip(output.pooler_output, grids, strict=True)
        ]

    def features_as_inputs(self, features: Sequence[ImageFeatures]) -> dict[str, Any]:
        """Return the forward argument that replaces the patches, and the grids."""
        from transformers.modeling_outputs import BaseModelOutputWithPooling

        listed: Any = [image.embeddings for image in features]
        output = BaseModelOutputWithPooling(pooler_output=listed)
        return {"mm_encoder_outputs": {"image": output}, "image_grid_thw": self._grids(features)}

    def forward_arguments(self, model: Any, input_ids: torch.Tensor) -> dict[str, Any]:
        """Return the token types, by which the model finds images when it computes positions."""
        return {"mm_token_type_ids": (input_ids == self.image_token_id(model)).int()}

    def positions(
        self, model: Any, ids: Sequence[int], images: Sequence[ImageInputs]
    ) -> torch.Tensor:
        """Return positions [3, tokens]: those behind an image go on from its longer side."""
        if not images:
            return torch.arange(len(ids)).expand(3, -1)
        row = torch.tensor([list(ids)])
        positions, _ = model.model.get_rope_index(
            row,
            mm_token_type_ids=(row == self.image_token_id(model)).int(),
            image_grid_thw=torch.cat([image.tensors["image_grid_thw"] for image in images]),
        )
        found: torch.Tensor = positions[:, 0]
        return found

    def decode(
        self,
        model: Any,
        *,
        embeddings: torch.Tensor,
        positions: torch.Tensor,
        mask: torch.Tensor | None,
        cache: Any,
        image_rows: torch.Tensor | None = None,
        layers: Sequence[torch.Tensor] = (),
    ) -> torch.Tensor:
        """Run the decoder with three position axes; see `Family.decode`."""
        output = self.decoder(model)(
            inputs_embeds=embeddings,
            position_ids=positions,
            attention_mask=mask,
            cache=cache,
            use_cache=True,
            **self.deeper(image_rows, layers),
        )
        hidden: torch.Tensor = output.last_hidden_state
        return hidden

    def deeper(
        self, image_rows: torch.Tensor | None, layers: Sequence[torch.Tensor]
    ) -> dict[str, Any]:
        """Return the decoder's arguments for features that enter behind the first layers."""
        return {}

    def _vision_output(self, model: Any, images: Sequence[ImageInputs]) -> Any:
        tensors = self.join_images(images)
        return model.get_image_features(
            pixel_values=tensors["pixel_values"].to(model.device, model.dtype),
            image_grid_thw=tensors["image_grid_thw"].to(model.device),
            return_dict=True,
        )

    @staticmethod
    def _grids(features: Sequence[ImageFeatures]) -> torch.Tensor:
        return torch.cat([image.inputs["image_grid_thw"] for image in features])


FAMILY = Qwen2_5VLFamily()
