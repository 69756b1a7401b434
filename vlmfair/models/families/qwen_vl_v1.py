"""Qwen-VL-Chat (the first version): remote code that opens images by their path.

A prompt names an image as `<img>path</img>`; the model's own code finds the path's bytes among the
ids and opens the file or address. Here the path is a fixed word, and the opened images are given
to the vision tower in the order of their places, so that no prompt can make the model open a file.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from vlmfair.errors import ModelError
from vlmfair.models.families.base import ImageInputs
from vlmfair.models.families.remote import RemoteFamily

# What stands between <img> and </img>; the tokenizer fills it up to the tower's 256 ids.
IMAGE_TAG = "<img>image</img>"


class QwenVLFamily(RemoteFamily):
    """QWenLMHeadModel; ChatML, with `Picture N:` before each image of a turn."""

    name = "qwen_vl_v1"
    architectures = ("QWenLMHeadModel",)
    tokenizer_files = ("qwen.tiktoken",)
    end_tokens = ("<|im_end|>", "<|endoftext|>")
    chat_template = (
        "{% if messages[0]['role'] != 'system' %}"
        "{{ '<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n' }}{% endif %}"
        "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' }}"
        "{% set pictures = namespace(number=0) %}"
        "{% for item in message['content'] %}{% if item['type'] == 'image' %}"
        "{% set pictures.number = pictures.number + 1 %}"
        "{{ 'Picture ' ~ pictures.number ~ ': <vlmfair-image>\n' }}"
        "{% else %}{{ item['text'] }}{% endif %}{% endfor %}{{ '<|im_end|>\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
    )

    def image_processor(self, folder: Path, options: Mapping[str, Any]) -> Any:
        """Return the transform of the repository's visual.py: squares, bicubic, CLIP's mean."""
        import transformers

        side = json.loads((folder / "config.json").read_text("utf-8"))["visual"]["image_size"]
        # The transform works on PIL images; newer versions keep that under another name.
        pil = getattr(transformers, "CLIPImageProcessorPil", transformers.CLIPImageProcessor)
        return pil(size={"height": side, "width": side}, do_center_crop=False)

    def process_image(self, processor: Any, image: Image.Image) -> ImageInputs:
        """Return pixels [1, 3, side, side]."""
        inputs = processor.image_processor(images=[image], return_tensors="pt")
        return ImageInputs({"pixel_values": inputs["pixel_values"]}, IMAGE_TAG)

    def next_token_logits(
        self, model: Any, ids: torch.Tensor, image_arguments: Mapping[str, Any]
    ) -> torch.Tensor:
        """Return the logits behind whole prompts."""
        with _opened(model, image_arguments):
            logits: torch.Tensor = model(input_ids=ids, use_cache=False).logits[:, -1]
        return logits

    def new_tokens(
        self, model: Any, ids: torch.Tensor, image_arguments: Mapping[str, Any], **options: Any
    ) -> torch.Tensor:
        """Return the tokens that the model puts behind whole prompts."""
        with _opened(model, image_arguments):
            output: torch.Tensor = model.generate(
                input_ids=ids, attention_mask=torch.ones_like(ids), **options
            )
        return output[:, ids.shape[1] :]


@contextlib.contextmanager
def _opened(model: Any, image_arguments: Mapping[str, Any]) -> Iterator[None]:
    """Let the tower encode given pixels instead of opening paths, in the order of their places."""
    visual = model.transformer.visual

    def encode(paths: list[str]) -> torch.Tensor:
        pixels = image_arguments.get("pixel_values", ())
        if len(paths) != len(pixels):
            raise ModelError(
                f"prompts name {len(paths)} images, and {len(pixels)} are given. Take <img> out of "
                f"the text of the questions; it makes this model open files and addresses."
            )
        features: torch.Tensor = visual(pixels)
        return features

    visual.encode = encode
    try:
        yield
    finally:
        del visual.encode


FAMILY = QwenVLFamily()
