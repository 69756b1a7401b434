"""Phi-4-multimodal: images as tiles and a thumbnail; its vision adapter is merged when loading."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from vlmfair.models.families.base import Family, ImageFeatures, ImageInputs, pad_and_join
from vlmfair.models.families.lora import merge_adapter

VISION_ADAPTER = "vision-lora"
# How the model's own code and the GRAS scripts write an image: <|image_1|>, <|image_2|>.
_NUMBERED_IMAGE = re.compile(r"<\|image_\d+\|>")


class Phi4MultimodalFamily(Family):
    """Phi4MultimodalForCausalLM, which is not among the automatic image-text classes."""

    name = "phi4_multimodal"
    architectures = ("Phi4MultimodalForCausalLM",)
    shares_image_features = True

    def model_class(self) -> Any:
        """Return a loader that also merges the vision adapter, see `_Loader`."""
        return _Loader

    def raw_text(self, text: str, number_of_images: int, processor: Any) -> str:
        """Return the text with this processor's placeholder for each numbered one."""
        token = self.image_token(processor)
        return _NUMBERED_IMAGE.sub(lambda _: token, text)

    def process_image(self, processor: Any, image: Image.Image) -> ImageInputs:
        """Return tiles [1, tiles, 3, height, width], their masks and the size that they tile."""
        inputs = processor.image_processor(images=[image], return_tensors="pt")
        tokens = int(inputs["num_img_tokens"][0])
        names = ("image_pixel_values", "image_sizes", "image_attention_mask")
        tensors = {name: inputs[name] for name in names}
        return ImageInputs(tensors, self.image_token(processor) * tokens)

    def join_images(self, images: Sequence[ImageInputs]) -> dict[str, torch.Tensor]:
        """Return tensors [images, most tiles, ...], empty tiles at the end."""
        return pad_and_join(images, {"image_pixel_values": 0.0, "image_attention_mask": 1.0})

    def encode_images(self, model: Any, images: Sequence[ImageInputs]) -> list[ImageFeatures]:
        """Return the projected embeddings of each image: its tiles, a mark, the thumbnail."""
        return [ImageFeatures(self._encode(model, image)) for image in images]

    def _encode(self, model: Any, image: ImageInputs) -> torch.Tensor:
        # The model offers no way to ask for features: it writes them over a row of image tokens.
        module = model.model.embed_tokens_extend.image_embed
        ids = torch.full((1, self._count(module, image)), self.image_token_id(model))
        ids = ids.to(model.device)
        features: torch.Tensor = module(
            ids,
            self.embed(model, ids),
            image_pixel_values=image.tensors["image_pixel_values"].to(model.device, model.dtype),
            image_sizes=image.tensors["image_sizes"].to(model.device),
            image_attention_mask=image.tensors["image_attention_mask"].to(model.device),
        )
        return features[0]

    @staticmethod
    def _count(module: Any, image: ImageInputs) -> int:
        """Tokens of an image: visible tokens and a mark for each of their rows, and the whole."""
        height, width = (image.tensors["image_sizes"][0] // module.crop_size).tolist()
        side = int(module.num_img_tokens**0.5)
        mask = image.tensors["image_attention_mask"][0, 1 : height * width + 1, 0::2, 0::2]
        grid = mask.reshape(height, width, side, side).transpose(1, 2)
        grid = grid.reshape(height * side, width * side)
        rows, columns = int(grid[:, 0].sum()), int(grid[0].sum())
        return rows * (columns + 1) + 1 + side * (side + 1)

    def features_as_inputs(self, features: Sequence[ImageFeatures]) -> dict[str, Any]:
        """Return the features; the model's forward has no argument for them, see `_with_images`."""
        return {"features": torch.cat([image.embeddings for image in features])}

    def next_token_logits(
        self, model: Any, ids: torch.Tensor, image_arguments: Mapping[str, Any]
    ) -> torch.Tensor:
        """Return the logits behind whole prompts."""
        output = model(
            **self._with_images(model, ids, image_arguments), logits_to_keep=1, use_cache=False
        )
        logits: torch.Tensor = output.logits[:, -1]
        return logits

    def new_tokens(
        self, model: Any, ids: torch.Tensor, image_arguments: Mapping[str, Any], **options: Any
    ) -> torch.Tensor:
        """Return the tokens that the model puts behind whole prompts."""
        inputs = self._with_images(model, ids, image_arguments)
        output: torch.Tensor = model.generate(
            **inputs, attention_mask=torch.ones_like(ids), **options
        )
        return output[:, ids.shape[1] :] if "input_ids" in inputs else output

    def _with_images(
        self, model: Any, ids: torch.Tensor, image_arguments: Mapping[str, Any]
    ) -> dict[str, Any]:
        if "features" not in image_arguments:
            return {"input_ids": ids, **image_arguments}
        places = (ids == self.image_token_id(model)).unsqueeze(-1)
        embeddings = self.embed(model, ids)
        features = image_arguments["features"].to(embeddings)
        return {"inputs_embeds": embeddings.masked_scatter(places, features)}

    def image_token_id(self, model: Any) -> int:
        """Return the id of image tokens, which the vision configuration states."""
        return int(model.config.vision_config.image_token_id)

    def decoder(self, model: Any) -> Any:
        """Return the model without its head; it takes embeddings with the images in them."""
        return model.model


class _Loader:
    """Loads the model, merges the checkpoint's vision adapter, and corrects the vision tower.

    The tower's attention is marked as causal in transformers, and under sdpa it is, for images
    that fill their tiles; beside an image that does not, and under eager, it is not. The tower was
    trained to look both ways.
    """

    @staticmethod
    def from_pretrained(folder: Path, **options: Any) -> Any:
        from transformers import Phi4MultimodalForCausalLM

        loaded = Phi4MultimodalForCausalLM.from_pretrained(folder, **options)
        model: Any = loaded[0] if isinstance(loaded, tuple) else loaded
        if (folder / VISION_ADAPTER).is_dir():
            merge_adapter(model, folder / VISION_ADAPTER)
        for module in model.model.embed_tokens_extend.image_embed.img_processor.modules():
            if hasattr(module, "is_causal"):
                module.is_causal = False
        return loaded


FAMILY = Phi4MultimodalFamily()
