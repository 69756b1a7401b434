"""MiniCPM-V 2.6: remote code that takes whole conversations with image bounds as one dictionary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from PIL import Image

from vlmfair.models.families.base import ImageInputs
from vlmfair.models.families.remote import RemoteFamily

# In an image's text: where its number goes, which counts the images of the whole prompt from 0.
NUMBER = "<vlmfair-number>"
# The tokenizer's names of the ids between which an image's or a slice's ids stand.
MARKS = ("im_start_id", "im_end_id", "slice_start_id", "slice_end_id")


class MiniCPMVFamily(RemoteFamily):
    """MiniCPMV; an image is its number, its whole and its slices, each between marks of its own."""

    name = "minicpm_v"
    architectures = ("MiniCPMV",)
    auto_class = "AutoModel"
    end_tokens = ("<|im_end|>", "<|endoftext|>")

    def process_image(self, processor: Any, image: Image.Image) -> ImageInputs:
        """Return the slices, each [1, 3, patch, length], side by side, and their patch grids."""
        inputs = processor.image_processor([[image]], return_tensors="pt")
        slices = [pixels.unsqueeze(0) for pixels in inputs["pixel_values"][0]]
        tensors = {f"slice_{number}": pixels for number, pixels in enumerate(slices)}
        tensors["tgt_sizes"] = torch.as_tensor(inputs["tgt_sizes"][0]).reshape(-1, 2).unsqueeze(0)
        tokenizer = processor.tokenizer
        marks = [getattr(tokenizer, name) for name in MARKS]
        tensors["marks"] = torch.tensor([marks])
        text = processor.image_processor.get_slice_image_placeholder(image.size, 0)
        return ImageInputs(tensors, text.replace("<image_id>0<", f"<image_id>{NUMBER}<"))

    def tokenise(self, processor: Any, text: str, add_special_tokens: bool) -> Sequence[int]:
        """Return ids of the whole text, its images numbered in their order."""
        pieces = text.split(NUMBER)
        numbered = pieces[0] + "".join(f"{i}{piece}" for i, piece in enumerate(pieces[1:]))
        return super().tokenise(processor, numbered, add_special_tokens)

    def join_images(self, images: Sequence[ImageInputs]) -> dict[str, torch.Tensor]:
        """Return each image's tensors under a number of their own; their shapes are unlike."""
        return {
            f"{number}/{name}": tensor
            for number, image in enumerate(images)
            for name, tensor in image.tensors.items()
        }

    def next_token_logits(
        self, model: Any, ids: torch.Tensor, image_arguments: Mapping[str, Any]
    ) -> torch.Tensor:
        """Return the logits behind whole prompts."""
        data = self._model_inputs(model, ids, image_arguments)
        data["position_ids"] = torch.arange(ids.shape[1], device=ids.device).expand(len(ids), -1)
        logits: torch.Tensor = model(data=data, use_cache=False).logits[:, -1]
        return logits

    def new_tokens(
        self, model: Any, ids: torch.Tensor, image_arguments: Mapping[str, Any], **options: Any
    ) -> torch.Tensor:
        """Return the tokens that the model puts behind whole prompts, which are all it returns."""
        embeddings, _ = model.get_vllm_embedding(self._model_inputs(model, ids, image_arguments))
        output: torch.Tensor = model.llm.generate(
            inputs_embeds=embeddings, attention_mask=torch.ones_like(ids), **options
        )
        return output

    def _model_inputs(
        self, model: Any, ids: torch.Tensor, image_arguments: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the dictionary of the model's own processor: lists, one item for each prompt."""
        images = _numbered(image_arguments)
        per_prompt = len(images) // len(ids)
        rows = [images[i * per_prompt : (i + 1) * per_prompt] for i in range(len(ids))]
        nothing: Any = []
        return {
            "input_ids": ids,
            "pixel_values": [
                [pixels for image in row for pixels in _slices(image)] for row in rows
            ],
            "tgt_sizes": [
                torch.cat([image["tgt_sizes"][0] for image in row]) if row else nothing
                for row in rows
            ],
            "image_bound": [
                _bounds(row, images[0]["marks"][0]) if images else nothing for row in ids
            ],
        }


def _bounds(ids: torch.Tensor, marks: torch.Tensor) -> torch.Tensor:
    """Return [images and slices, 2]: the first id between two marks, and the mark behind it."""
    starts = torch.isin(ids, marks[[0, 2]])
    ends = torch.isin(ids, marks[[1, 3]])
    return torch.stack([starts.nonzero()[:, 0] + 1, ends.nonzero()[:, 0]], dim=1)


def _numbered(image_arguments: Mapping[str, Any]) -> list[dict[str, torch.Tensor]]:
    images: dict[int, dict[str, torch.Tensor]] = {}
    for key, tensor in image_arguments.items():
        number, name = key.split("/")
        images.setdefault(int(number), {})[name] = tensor
    return [images[number] for number in sorted(images)]


def _slices(image: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
    names = [name for name in image if name.startswith("slice_")]
    return [image[f"slice_{number}"][0] for number in range(len(names))]


FAMILY = MiniCPMVFamily()
