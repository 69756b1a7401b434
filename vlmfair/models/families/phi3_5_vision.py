"""Phi-3.5-vision: remote code in which images are runs of negative ids, -1 for the first one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from PIL import Image

from vlmfair.models.families.base import ImageInputs, pad_and_join
from vlmfair.models.families.remote import IMAGE, RemoteFamily

_SIZED_IMAGE = re.compile(r"<vlmfair-image(?::(\d+))?>")


class Phi35VisionFamily(RemoteFamily):
    """Phi3VForCausalLM; text between images is tokenised piece by piece, as its processor does."""

    name = "phi3_5_vision"
    architectures = ("Phi3VForCausalLM",)
    end_tokens = ("<|end|>", "<|endoftext|>")

    def process_image(self, processor: Any, image: Image.Image) -> ImageInputs:
        """Return tiles [1, tiles, 3, side, side] and the size that they tile."""
        inputs = processor.image_processor([image], return_tensors="pt")
        tokens = int(inputs["num_img_tokens"][0])
        tensors = {name: inputs[name] for name in ("pixel_values", "image_sizes")}
        return ImageInputs(tensors, IMAGE.replace(">", f":{tokens}>"))

    def join_images(self, images: Sequence[ImageInputs]) -> dict[str, torch.Tensor]:
        """Return tensors [images, most tiles, ...], empty tiles at the end."""
        return pad_and_join(images, {"pixel_values": 0.0})

    def tokenise(self, processor: Any, text: str, add_special_tokens: bool) -> Sequence[int]:
        """Return ids, image number i as that many times -i; a placeholder without size as once."""
        ids: list[int] = []
        end = 0
        for number, found in enumerate(_SIZED_IMAGE.finditer(text), start=1):
            ids.extend(super().tokenise(processor, text[end : found.start()], add_special_tokens))
            ids.extend([-number] * int(found[1] or 1))
            end = found.end()
        ids.extend(super().tokenise(processor, text[end:], add_special_tokens))
        return ids

    def next_token_logits(
        self, model: Any, ids: torch.Tensor, image_arguments: Mapping[str, Any]
    ) -> torch.Tensor:
        """Return the logits behind whole prompts; the model overwrites the ids that it is given."""
        output = model(input_ids=ids.clone(), **image_arguments, use_cache=False)
        logits: torch.Tensor = output.logits[:, -1]
        return logits

    def new_tokens(
        self, model: Any, ids: torch.Tensor, image_arguments: Mapping[str, Any], **options: Any
    ) -> torch.Tensor:
        """Return the tokens that the model puts behind whole prompts."""
        output: torch.Tensor = model.generate(
            input_ids=ids.clone(),
            attention_mask=torch.ones_like(ids),
            **image_arguments,
            **options,
        )
        return output[:, ids.shape[1] :]


FAMILY = Phi35VisionFamily()
