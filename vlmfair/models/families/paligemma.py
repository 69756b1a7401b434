"""PaliGemma 1 and 2: image and prompt see each other in both directions, only the answer is causal.

A prompt's last words change what its image tokens hold, so that no two prompts share a prefix.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from vlmfair.models.families.base import Family, ImageFeatures, ImageInputs


class PaliGemmaFamily(Family):
    """PaliGemmaForConditionalGeneration; it has no chat template, and its positions start at 1."""

    name = "paligemma"
    architectures = ("PaliGemmaForConditionalGeneration",)
    rendering = "raw"
    raw_adds_special_tokens = False
    shares_image_features = True

    def raw_text(self, text: str, number_of_images: int, processor: Any) -> str:
        """Return the text as the processor orders it: images, the first token, the text, a line."""
        image, bos = self.image_token(processor), processor.tokenizer.bos_token
        if image not in text:
            return f"{image * number_of_images}{bos}{text}\n"
        end = text.rfind(image) + len(image)
        return f"{text[:end]}{bos}{text[end:]}\n"

    def encode_images(self, model: Any, images: Sequence[ImageInputs]) -> list[ImageFeatures]:
        """Return the projected patch embeddings of each image."""
        pixels = self.join_images(images)["pixel_values"].to(model.device, model.dtype)
        output = model.get_image_features(pixel_values=pixels, return_dict=True)
        return [ImageFeatures(features) for features in output.pooler_output]

    def features_as_inputs(self, features: Sequence[ImageFeatures]) -> dict[str, Any]:
        """Return the forward argument that replaces `pixel_values`."""
        from transformers.modeling_outputs import BaseModelOutputWithPooling

        stacked: Any = torch.stack([image.embeddings for image in features])
        return {"mm_encoder_outputs": {"image": BaseModelOutputWithPooling(pooler_output=stacked)}}

    def forward_arguments(self, model: Any, input_ids: torch.Tensor) -> dict[str, Any]:
        """Return the token types, without which the model attends causally and says nothing."""
        return {"token_type_ids": torch.zeros_like(input_ids)}

    def embed(self, model: Any, ids: torch.Tensor) -> torch.Tensor:
        """Return embeddings; an image token behind the vocabulary takes the first row, as there."""
        if self.image_token_id(model) >= model.config.text_config.vocab_size:
            ids = ids.masked_fill(ids == self.image_token_id(model), 0)
        return super().embed(model, ids)

    def positions(
        self, model: Any, ids: Sequence[int], images: Sequence[ImageInputs]
    ) -> torch.Tensor:
        """Return positions [1, tokens], counted from 1."""
        return super().positions(model, ids, images) + 1

    def obstacle(self, model: Any, longest: int, images: int = 1) -> str | None:
        """Return that attention within the prompt goes both ways."""
        return "image and prompt attend to each other in both directions"

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
        """Run the decoder; a whole prompt, which comes without a mask, sees all of itself."""
        if mask is None:
            tokens = embeddings.shape[1]
            mask = embeddings.new_zeros((1, 1, tokens, tokens))
        return super().decode(
            model, embeddings=embeddings, positions=positions, mask=mask, cache=cache
        )

    def head(self, model: Any, hidden: torch.Tensor) -> torch.Tensor:
        """Return the logits of hidden states, softly capped where the model (Gemma 2) caps them."""
        logits = super().head(model, hidden)
        cap = getattr(model.config.get_text_config(), "final_logit_softcapping", None)
        return logits if cap is None else torch.tanh(logits / cap) * cap


FAMILY = PaliGemmaFamily()
