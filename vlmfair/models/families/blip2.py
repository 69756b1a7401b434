"""BLIP-2 with OPT: a fixed number of queries about one image stands before the prompt's text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from vlmfair.models.families.base import Family, ImageFeatures, ImageInputs


class Blip2Family(Family):
    """Blip2ForConditionalGeneration with a decoder-only language model; it has no chat template."""

    name = "blip2"
    architectures = ("Blip2ForConditionalGeneration",)
    rendering = "raw"
    raw_adds_special_tokens = False
    most_images = 1
    shares_image_features = True

    def image_token(self, processor: Any) -> str:
        """Return the placeholder, which this processor may keep as an object."""
        token = processor.image_token
        return str(getattr(token, "content", token))

    def raw_text(self, text: str, number_of_images: int, processor: Any) -> str:
        """Return the text as the processor orders it: the image, the first token, the text."""
        bos = processor.tokenizer.bos_token
        return f"{self.image_token(processor) * number_of_images}{bos}{text}"

    def process_image(self, processor: Any, image: Any) -> ImageInputs:
        """Return the pixels; each image is as many tokens as the Q-Former has queries."""
        inputs = processor.image_processor(images=[image], return_tensors="pt")
        return ImageInputs(
            dict(inputs), self.image_token(processor) * int(processor.num_query_tokens)
        )

    def encode_images(self, model: Any, images: Sequence[ImageInputs]) -> list[ImageFeatures]:
        """Return the projected outputs of the Q-Former for each image."""
        pixels = self.join_images(images)["pixel_values"].to(model.device, model.dtype)
        output = model.get_image_features(pixel_values=pixels, return_dict=True)
        return [ImageFeatures(features) for features in output.pooler_output]

    def features_as_inputs(self, features: Sequence[ImageFeatures]) -> dict[str, Any]:
        """Return the forward arguments that stand in for the pixels."""
        from transformers.models.blip_2.modeling_blip_2 import (
            BaseModelOutputWithVisionQformerOutputs,
        )

        stacked: Any = torch.stack([image.embeddings for image in features])
        output = BaseModelOutputWithVisionQformerOutputs(pooler_output=stacked)
        return {"pixel_values": None, "mm_encoder_outputs": {"image": output}}

    def next_token_logits(
        self, model: Any, ids: torch.Tensor, image_arguments: Mapping[str, Any]
    ) -> torch.Tensor:
        """Return the logits behind whole prompts; one without image is the language model's own."""
        if image_arguments:
            return super().next_token_logits(model, ids, image_arguments)
        logits: torch.Tensor = model.language_model(ids, logits_to_keep=1).logits[:, -1]
        return logits

    def new_tokens(
        self, model: Any, ids: torch.Tensor, image_arguments: Mapping[str, Any], **options: Any
    ) -> torch.Tensor:
        """Return greedy tokens; `generate` of this model knows only pixels and embeddings."""
        embeddings = self.embed(model, ids)
        if image_arguments:
            pixels = image_arguments.get("pixel_values")
            features = (
                image_arguments["mm_encoder_outputs"]["image"].pooler_output
                if pixels is None
                else model.get_image_features(pixel_values=pixels, return_dict=True).pooler_output
            )
            places = (ids == self.image_token_id(model)).unsqueeze(-1)
            embeddings = embeddings.masked_scatter(places, features.to(embeddings))
        output: torch.Tensor = model.language_model.generate(
            inputs_embeds=embeddings, attention_mask=torch.ones_like(ids), **options
        )
        return output

    def decoder(self, model: Any) -> Any:
        """Return OPT's decoder."""
        return model.language_model.model.decoder

    def head(self, model: Any, hidden: torch.Tensor) -> torch.Tensor:
        """Return the logits of hidden states; the head is the language model's."""
        logits: torch.Tensor = model.language_model.lm_head(hidden)
        return logits


FAMILY = Blip2Family()
