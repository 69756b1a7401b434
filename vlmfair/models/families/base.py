"""What the rest of the project asks of a model family, and what most families answer alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from PIL import Image


@dataclass(frozen=True, slots=True)
class ImageInputs:
    """One processed image: the model's input tensors, and the text that stands for the image."""

    tensors: Mapping[str, torch.Tensor]
    replacement: str


class Family:
    """Base of the families: the stock image-text-to-text classes of transformers.

    A family module sets `FAMILY` to an instance; it overrides what its model does differently.
    """

    name: str = ""
    # The architectures (config.json) that this family's module was written for.
    architectures: tuple[str, ...] = ()
    # How a conversation becomes text unless the request says otherwise: `chat` or `raw`.
    rendering: str = "chat"
    # Whether the vision tower's output for an image is the same whatever text surrounds it.
    shares_image_features: bool = False

    def model_class(self) -> Any:
        """Return the transformers class whose `from_pretrained` loads the model."""
        from transformers import AutoModelForImageTextToText

        return AutoModelForImageTextToText

    def image_token(self, processor: Any) -> str:
        """Return the placeholder that marks an image in the rendered text."""
        return str(processor.image_token)

    def raw_text(self, text: str, number_of_images: int, processor: Any) -> str:
        """Return the text of a `raw` request as the processor gets it."""
        return text

    def process_image(self, processor: Any, image: Image.Image) -> ImageInputs:
        """Return what the processor makes of one RGB image alone."""
        inputs = processor.image_processor(images=[image], return_tensors="pt")
        replacement = processor.replace_image_token(inputs, image_idx=0)
        return ImageInputs(tensors=dict(inputs), replacement=replacement)

    def join_images(self, images: Sequence[ImageInputs]) -> dict[str, torch.Tensor]:
        """Return the image tensors of a batch, in the order of the placeholders of its rows."""
        names = images[0].tensors.keys() if images else ()
        return {name: torch.cat([image.tensors[name] for image in images]) for name in names}

    def image_features(self, model: Any, tensors: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return the language model's embeddings of images, [images, tokens, width].

        Only for families with `shares_image_features`.
        """
        raise NotImplementedError(self.name)

    def features_as_inputs(self, features: torch.Tensor) -> dict[str, Any]:
        """Return the forward arguments that stand in for the image tensors."""
        raise NotImplementedError(self.name)

    def context_length(self, config: Any) -> int | None:
        """Return how many tokens the model's positions reach, images included."""
        text = config.get_text_config(decoder=True)
        length = getattr(text, "max_position_embeddings", None)
        return None if length is None else int(length)
