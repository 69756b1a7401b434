"""Models in the sizes of their checkpoints, without weights, and prompts as they are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from vlmfair.bench.flops import MeteredModel
from vlmfair.bench.meter import META, MeteredFamily
from vlmfair.bench.recorded_tokens import IMAGE_ID, NO_ID, YES_ID, Ids
from vlmfair.inference.prepare import Prepared
from vlmfair.inference.queries import ImageRef, Query, Turn
from vlmfair.models.families import load_family
from vlmfair.models.families.base import ImageInputs

# config.json of llava-hf/llava-1.5-7b-hf; what it leaves out are the defaults of Vicuna and CLIP.
LLAVA_1_5_7B: dict[str, Any] = {
    "vision_config": {
        "model_type": "clip_vision_model",
        "hidden_size": 1024,
        "intermediate_size": 4096,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "image_size": 336,
        "patch_size": 14,
        "projection_dim": 768,
        "vocab_size": 32000,
    },
    "text_config": {
        "model_type": "llama",
        "hidden_size": 4096,
        "intermediate_size": 11008,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 32,
        "max_position_embeddings": 4096,
        "rms_norm_eps": 1e-05,
        "vocab_size": 32064,
    },
    "image_token_index": IMAGE_ID,
    "image_seq_length": 576,
    "projector_hidden_act": "gelu",
    "vision_feature_layer": -2,
    "vision_feature_select_strategy": "default",
}

# config.json of Qwen/Qwen3-VL-8B-Instruct.
QWEN3_VL_8B: dict[str, Any] = {
    "vision_config": {
        "depth": 27,
        "hidden_size": 1152,
        "intermediate_size": 4304,
        "num_heads": 16,
        "out_hidden_size": 4096,
        "patch_size": 16,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
        "num_position_embeddings": 2304,
        "deepstack_visual_indexes": [8, 16, 24],
    },
    "text_config": {
        "hidden_size": 4096,
        "intermediate_size": 12288,
        "num_hidden_layers": 36,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "max_position_embeddings": 262144,
        "rms_norm_eps": 1e-06,
        "vocab_size": 151936,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 5_000_000,
            "mrope_section": [24, 20, 20],
            "mrope_interleaved": True,
        },
    },
    "image_token_id": 151655,
    "video_token_id": 151656,
    "vision_start_token_id": 151652,
    "vision_end_token_id": 151653,
}

# Qwen3-VL's tokens around an image with an instruction, and behind a demonstration's caption:
# <|im_start|>user\n<|vision_start|><|image_pad|><|vision_end|>Describe the image in one sentence.
# <|im_end|>\n<|im_start|>assistant\n, then the caption, <|im_end|>\n.
_BEFORE_IMAGE = (151644, 872, 198, 151652)
_BEHIND_IMAGE = (151653, 74785, 279, 2168, 304, 825, 11652, 13, 151645, 198, 151644, 77091, 198)
_BEHIND_CAPTION = (151645, 198)
_QWEN_IMAGE_ID = 151655
# An image of 640x480 pixels, COCO's most frequent size: 40 x 30 patches of 16 pixels.
_PATCH_ROWS, _PATCH_COLUMNS, _MERGED = 30, 40, 4
_PATCHES = _PATCH_ROWS * _PATCH_COLUMNS


def llava_1_5_7b(**text: Any) -> MeteredModel:
    """Return LLaVA-1.5-7B on the meta device; `text` replaces settings of its language model."""
    from transformers import LlavaConfig, LlavaForConditionalGeneration

    settings = {**LLAVA_1_5_7B, "text_config": {**LLAVA_1_5_7B["text_config"], **text}}
    return _metered("llava", LlavaForConditionalGeneration, LlavaConfig(**settings))


def qwen3_vl_8b(**text: Any) -> MeteredModel:
    """Return Qwen3-VL-8B on the meta device; `text` replaces settings of its language model."""
    from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration

    settings = {**QWEN3_VL_8B, "text_config": {**QWEN3_VL_8B["text_config"], **text}}
    # What the vision tower would else compute from the values of an image's grid.
    vision = {
        "interp_indices": torch.zeros((_PATCHES, 4), dtype=torch.long, device=META),
        "interp_weights": torch.empty((_PATCHES, 4), device=META),
        "position_ids": torch.zeros((_PATCHES, 2), dtype=torch.long, device=META),
    }
    return _metered("qwen3_vl", Qwen3VLForConditionalGeneration, Qwen3VLConfig(**settings), vision)


def _metered(
    family: str, model_class: Any, config: Any, vision: Mapping[str, torch.Tensor] | None = None
) -> MeteredModel:
    with META:
        model = model_class(config).eval()
    return MeteredModel(family, MeteredFamily(load_family(family, family), model, vision), model)


def gras_prompts(recorded: Sequence[Ids]) -> list[Prepared]:
    """Return prompts about one 336x336 image from recorded ids with one `IMAGE_ID` each."""
    image = ImageInputs({"pixel_values": torch.empty((1, 3, 336, 336), device=META)}, "")
    tokens = LLAVA_1_5_7B["image_seq_length"]
    prompts = []
    for number, ids in enumerate(recorded):
        place = ids.index(IMAGE_ID)
        whole = (*ids[:place], *[IMAGE_ID] * tokens, *ids[place + 1 :])
        prompts.append(_prepared(str(number), whole, (YES_ID, NO_ID), [(0, image)]))
    return prompts


def caption_prompts(queries: int, shots: int, caption_tokens: int) -> list[Prepared]:
    """Return Qwen3-VL's prompts for captions: demonstrations that all share, and an own image.

    Each image has 640x480 pixels and each demonstration's caption `caption_tokens` tokens.
    """
    pixels = torch.empty((_PATCHES, 3 * 2 * 16 * 16), device=META)
    grid = torch.tensor([[1, _PATCH_ROWS, _PATCH_COLUMNS]])
    image = ImageInputs({"pixel_values": pixels, "image_grid_thw": grid}, "")
    asked = (*_BEFORE_IMAGE, *[_QWEN_IMAGE_ID] * (_PATCHES // _MERGED), *_BEHIND_IMAGE)
    shown: list[int] = []
    for shot in range(shots):
        caption = range(1000 + shot * caption_tokens, 1000 + (shot + 1) * caption_tokens)
        shown += [*asked, *caption, *_BEHIND_CAPTION]
    demonstrations = [(shot, image) for shot in range(shots)]
    return [
        _prepared(str(row), (*shown, *asked), (), [*demonstrations, (shots + row, image)])
        for row in range(queries)
    ]


def _prepared(
    name: str, ids: Ids, labels: Ids, images: Sequence[tuple[int, ImageInputs]]
) -> Prepared:
    refs = tuple(ImageRef(str(number), str(number)) for number, _ in images)
    query = Query(name, (Turn("user", name, refs),))
    return Prepared(query, ids, labels, refs, tuple(image for _, image in images))
