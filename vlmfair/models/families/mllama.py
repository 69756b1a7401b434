"""Llama 3.2 Vision (Mllama): text layers look at the image by cross attention in between.

The image is one token of the prompt. Tokens from it on see the image's tiles; tokens before it see
all tiles, empty ones too, and skip the layers' feed-forward part. The features of an image travel
as `ImageFeatures.layers`: all its states in one row, and which of its tiles are not empty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch

from vlmfair.models.families.base import Family, ImageFeatures, ImageInputs, text_obstacle


class MllamaFamily(Family):
    """MllamaForConditionalGeneration."""

    name = "mllama"
    architectures = ("MllamaForConditionalGeneration",)
    shares_image_features = True
    # The template's own date where it cannot ask the clock; with a clock prompts change every day.
    template_arguments = MappingProxyType({"date_string": "26 Jul 2024"})

    def process_image(self, processor: Any, image: Any) -> ImageInputs:
        """Return tiles [1, 1, most tiles, 3, height, width] and which arrangement they have."""
        inputs = processor.image_processor(images=[[image]], return_tensors="pt")
        names = ("pixel_values", "aspect_ratio_ids", "aspect_ratio_mask")
        return ImageInputs({name: inputs[name] for name in names}, self.image_token(processor))

    def encode_images(self, model: Any, images: Sequence[ImageInputs]) -> list[ImageFeatures]:
        """Return, for each image, its token's embedding and what cross attention looks at."""
        tensors = self.join_images(images)
        vision = model.model.vision_model(
            pixel_values=tensors["pixel_values"].to(model.device, model.dtype),
            aspect_ratio_ids=tensors["aspect_ratio_ids"].to(model.device),
            aspect_ratio_mask=tensors["aspect_ratio_mask"].to(model.device),
        )
        states = model.model.multi_modal_projector(vision.last_hidden_state)
        token = torch.tensor([self.image_token_id(model)], device=model.device)
        embedding = self.embed(model, token)
        tiles = tensors["aspect_ratio_mask"].to(model.device)[:, 0]
        return [
            ImageFeatures(embedding, (row.reshape(1, -1), shown.unsqueeze(0)))
            for row, shown in zip(states, tiles, strict=True)
        ]

    def features_as_inputs(self, features: Sequence[ImageFeatures]) -> dict[str, Any]:
        """Return states and tiles under the names that `next_token_logits` reads."""
        return {
            "cross_attention_states": torch.cat([image.layers[0] for image in features]),
            "aspect_ratio_mask": torch.cat([image.layers[1] for image in features]).unsqueeze(1),
        }

    def next_token_logits(
        self, model: Any, ids: torch.Tensor, image_arguments: Mapping[str, Any]
    ) -> torch.Tensor:
        """Return the logits behind whole prompts, each with its own images in its row."""
        inputs = self._by_prompt(model, ids, image_arguments)
        output = model(input_ids=ids, **inputs, logits_to_keep=1, use_cache=False)
        logits: torch.Tensor = output.logits[:, -1]
        return logits

    def new_tokens(
        self, model: Any, ids: torch.Tensor, image_arguments: Mapping[str, Any], **options: Any
    ) -> torch.Tensor:
        """Return the tokens that the model puts behind whole prompts.

        States that are given are cached first: `generate` would show them again at each step.
        """
        inputs = self._by_prompt(model, ids, image_arguments)
        states = inputs.pop("cross_attention_states", None)
        if states is not None:
            from transformers import DynamicCache

            seen = dict(inputs, cross_attention_mask=inputs["cross_attention_mask"][:, :-1])
            cache = DynamicCache()
            model(ids[:, :-1], **seen, cross_attention_states=states, cache=cache, use_cache=True)
            inputs["cache"] = cache
        output: torch.Tensor = model.generate(
            input_ids=ids, attention_mask=torch.ones_like(ids), **inputs, **options
        )
        return output[:, ids.shape[1] :]

    def _by_prompt(
        self, model: Any, ids: torch.Tensor, image_arguments: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return image arguments with an axis of prompts and one of images, and who sees what."""
        if not image_arguments:
            return {}
        prompts = len(ids)
        inputs = {
            name: tensor.reshape(prompts, -1, *tensor.shape[2:])
            for name, tensor in image_arguments.items()
            if name != "cross_attention_states"
        }
        states = image_arguments.get("cross_attention_states")
        if states is not None:
            width = model.config.text_config.hidden_size
            patches = model.model.vision_model.num_patches
            inputs["cross_attention_states"] = states.reshape(-1, patches, width)
        tiles = inputs["aspect_ratio_mask"]
        sees = self._sees(ids == self.image_token_id(model)).to(tiles)
        inputs["cross_attention_mask"] = sees[..., None] * tiles[:, None]
        if states is not None:
            del inputs["aspect_ratio_mask"]
        return inputs

    @staticmethod
    def _sees(is_image: torch.Tensor) -> torch.Tensor:
        """Return which tokens [prompts, tokens, images] see which of their prompt's images.

        A token sees the image before it, and those that stand directly before that one.
        """
        prompts, tokens = is_image.shape
        images = int(is_image[0].sum())
        sees = is_image.new_zeros((prompts, tokens, images))
        for prompt in range(prompts):
            places = is_image[prompt].nonzero()[:, 0].tolist()
            end = tokens
            for image in reversed(range(images)):
                following = places[image + 1] if image + 1 < images else tokens
                if following != places[image] + 1:
                    end = following
                sees[prompt, places[image] : end, image] = True
        return sees

    def obstacle(self, model: Any, longest: int, images: int = 1) -> str | None:
        """Return also that tokens before the first of several images see all of them."""
        if images > 1:
            return f"tokens before the first of {images} images see those that come later"
        return text_obstacle(model.config.get_text_config(decoder=True), longest)

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
        """Run one row of tokens; an image in it is what they, and what follows, look at.

        Several image rows are the same image in prompts that are packed beside each other.
        """
        shown = None
        if image_rows is not None and layers:
            states, shown = layers[0][0], layers[1][0].bool()
            shown = shown.repeat_interleave(model.model.vision_model.num_patches)
            looks = _looks_at_image(embeddings, _behind_image(image_rows[0], mask), states, shown)
        else:
            looks = self._looks_at_cache(model, embeddings, cache)
        output = self.decoder(model)(
            inputs_embeds=embeddings,
            position_ids=positions[0],
            attention_mask=mask,
            cache=cache,
            use_cache=True,
            **looks,
        )
        if shown is not None:
            # What follows sees the tiles that are not empty, and needs no mask when only they stay.
            for index in model.config.text_config.cross_attention_layers:
                layer = cache.layers[index]
                layer.keys, layer.values = layer.keys[:, :, shown], layer.values[:, :, shown]
        hidden: torch.Tensor = output.last_hidden_state
        return hidden

    @staticmethod
    def _looks_at_cache(model: Any, embeddings: torch.Tensor, cache: Any) -> dict[str, Any]:
        """Return that all tokens see all cached states; without a mask sdpa would be causal."""
        first = model.config.text_config.cross_attention_layers[0]
        layer = cache.layers[first] if first < len(cache.layers) else None
        if layer is None or not layer.is_initialized or layer.keys.numel() == 0:
            return {}
        shape = (1, 1, embeddings.shape[1], layer.keys.shape[2])
        return {"cross_attention_mask": embeddings.new_zeros(shape)}


def _looks_at_image(
    embeddings: torch.Tensor, after: torch.Tensor, states: torch.Tensor, shown: torch.Tensor
) -> dict[str, Any]:
    """Return the decoder's arguments for an image: its states, and which tokens see what of them.

    `after` [tokens] marks tokens from the image on, `shown` [states] the states of real tiles.
    """
    blocked = after[:, None] & ~shown
    lowest = torch.finfo(embeddings.dtype).min
    mask = embeddings.new_zeros(blocked.shape).masked_fill(blocked, lowest)
    return {
        "cross_attention_states": states.reshape(1, -1, embeddings.shape[-1]),
        "cross_attention_mask": mask[None, None],
        "full_text_row_masked_out_mask": after.to(embeddings.dtype)[None, None, :, None],
    }


def _behind_image(image_rows: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    """Return which tokens [tokens] have an image among themselves and the tokens they attend to."""
    if mask is None:
        return image_rows.cumsum(0) > 0
    own = mask[0, 0, :, -len(image_rows) :] == 0
    return (own & image_rows).any(dim=1)


FAMILY = MllamaFamily()
