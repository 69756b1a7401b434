"""Tiny random models of every stock family, written to folders that load like real checkpoints.

`FAMILIES[name](folder, seed)` writes two layers of seeded weights, a processor of the family's own
classes and the chat template that its checkpoints are published with (tests/chat_templates).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import transformers as hf
from tiny_llava import write_model as write_llava
from tiny_parts import (
    EAGER,
    HEADS,
    HIDDEN,
    LAYERS,
    chat_template,
    save,
    text_settings,
    tiny_entry,
    train_tokenizer,
    vision_settings,
)

__all__ = ["EAGER", "FAMILIES", "SINGLE_IMAGE", "tiny_entry", "write_family"]

# Families that take at most one image in a prompt.
SINGLE_IMAGE = frozenset({"blip2"})


def write_llava_next(folder: Path, seed: int = 0) -> None:
    """LLaVA-1.6: tiles of 16 pixels in up to 2x2, a line break behind each row of patches."""
    tokenizer = train_tokenizer(
        ("<s>", "</s>", "<image>"), bos="<s>", eos="</s>", adds_bos=True, image_token="<image>"
    )
    grid = [[16, 32], [32, 16], [32, 32], [48, 16], [16, 48]]
    processor = hf.LlavaNextProcessor(
        image_processor=hf.LlavaNextImageProcessor(
            size={"shortest_edge": 16},
            crop_size={"height": 16, "width": 16},
            image_grid_pinpoints=grid,
        ),
        tokenizer=tokenizer,
        patch_size=4,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=chat_template("llava_next"),
    )
    config = hf.LlavaNextConfig(
        vision_config=hf.CLIPVisionConfig(**vision_settings(16, 4, projection_dim=HIDDEN)),
        text_config=hf.MistralConfig(**text_settings(tokenizer, sliding_window=None)),
        image_token_index=tokenizer.image_token_id,
        image_grid_pinpoints=grid,
        vision_feature_layer=-2,
    )
    save(folder, hf.LlavaNextForConditionalGeneration(config), processor, seed)


QWEN_TOKENS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
)


def _qwen_tokenizer() -> hf.PreTrainedTokenizerFast:
    return train_tokenizer(
        QWEN_TOKENS,
        eos="<|im_end|>",
        image_token="<|image_pad|>",
        video_token="<|video_pad|>",
        vision_start_token="<|vision_start|>",
        vision_end_token="<|vision_end|>",
    )


def _qwen_ids(tokenizer: Any) -> dict[str, int]:
    return {
        f"{name}_token_id": getattr(tokenizer, f"{name}_token_id")
        for name in ("image", "video", "vision_start", "vision_end")
    }


# Images become 16 to 64 patches of 4x4 pixels and a quarter as many tokens, in their own shape.
QWEN_PIXELS = {"shortest_edge": 16 * 16, "longest_edge": 32 * 32}


def write_qwen2_5_vl(folder: Path, seed: int = 0) -> None:
    """Qwen2.5-VL: images in their own shape, windowed vision attention, three position axes."""
    tokenizer = _qwen_tokenizer()
    settings = {"patch_size": 4, "temporal_patch_size": 2, "merge_size": 2, "size": QWEN_PIXELS}
    processor = hf.Qwen2_5_VLProcessor(
        image_processor=hf.Qwen2VLImageProcessor(**settings),
        tokenizer=tokenizer,
        video_processor=hf.Qwen2VLVideoProcessor(**settings),
        chat_template=chat_template("qwen2_5_vl"),
    )
    config = hf.Qwen2_5_VLConfig(
        vision_config={
            "depth": LAYERS,
            "hidden_size": HIDDEN,
            "intermediate_size": 2 * HIDDEN,
            "num_heads": HEADS,
            "patch_size": 4,
            "window_size": 16,
            "out_hidden_size": HIDDEN,
            "fullatt_block_indexes": [1],
        },
        text_config=text_settings(
            tokenizer,
            rope_parameters={"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 3, 3]},
        ),
        **_qwen_ids(tokenizer),
    )
    save(folder, hf.Qwen2_5_VLForConditionalGeneration(config), processor, seed)


def write_qwen3_vl(folder: Path, seed: int = 0) -> None:
    """Qwen3-VL: as Qwen2.5-VL, and features of earlier vision layers enter the first layers."""
    tokenizer = _qwen_tokenizer()
    settings = {"patch_size": 4, "temporal_patch_size": 2, "merge_size": 2, "size": QWEN_PIXELS}
    processor = hf.Qwen3VLProcessor(
        image_processor=hf.Qwen2VLImageProcessor(**settings),
        tokenizer=tokenizer,
        video_processor=hf.Qwen3VLVideoProcessor(**settings),
        chat_template=chat_template("qwen3_vl"),
    )
    config = hf.Qwen3VLConfig(
        vision_config={
            "depth": 3,
            "hidden_size": HIDDEN,
            "intermediate_size": 2 * HIDDEN,
            "num_heads": HEADS,
            "patch_size": 4,
            "out_hidden_size": HIDDEN,
            "num_position_embeddings": 64,
            "deepstack_visual_indexes": [0, 1],
        },
        text_config=text_settings(
            tokenizer,
            num_hidden_layers=3,
            head_dim=16,
            rope_parameters={
                "rope_type": "default",
                "rope_theta": 1e4,
                "mrope_section": [2, 3, 3],
                "mrope_interleaved": True,
            },
        ),
        **_qwen_ids(tokenizer),
    )
    save(folder, hf.Qwen3VLForConditionalGeneration(config), processor, seed)


def write_blip2(folder: Path, seed: int = 0) -> None:
    """BLIP-2 with OPT: a fixed number of queries stands before the first token of the text."""
    tokenizer = train_tokenizer(("</s>",), bos="</s>", eos="</s>", adds_bos=True)
    size = {"height": 16, "width": 16}
    processor = hf.Blip2Processor(
        image_processor=hf.BlipImageProcessor(size=size), tokenizer=tokenizer, num_query_tokens=5
    )
    config = hf.Blip2Config(
        vision_config=hf.Blip2VisionConfig(**vision_settings(16, 4)),
        qformer_config=hf.Blip2QFormerConfig(
            vocab_size=32,
            hidden_size=HIDDEN,
            num_hidden_layers=LAYERS,
            num_attention_heads=HEADS,
            intermediate_size=2 * HIDDEN,
            encoder_hidden_size=HIDDEN,
        ),
        text_config=hf.OPTConfig(
            vocab_size=len(tokenizer),
            hidden_size=HIDDEN,
            word_embed_proj_dim=HIDDEN,
            ffn_dim=2 * HIDDEN,
            num_hidden_layers=LAYERS,
            num_attention_heads=HEADS,
            max_position_embeddings=512,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        ),
        num_query_tokens=5,
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
    )
    save(folder, hf.Blip2ForConditionalGeneration(config), processor, seed)


def write_paligemma(folder: Path, seed: int = 0) -> None:
    """PaliGemma 2: Gemma 2 with soft caps and alternating windows, and attention both ways."""
    tokenizer = train_tokenizer(
        ("<bos>", "<eos>", "<image>"), bos="<bos>", eos="<eos>", image_token="<image>"
    )
    images = hf.SiglipImageProcessor(size={"height": 16, "width": 16})
    images.image_seq_length = 16
    processor = hf.PaliGemmaProcessor(image_processor=images, tokenizer=tokenizer)
    config = hf.PaliGemmaConfig(
        vision_config=hf.SiglipVisionConfig(**vision_settings(16, 4, vision_use_head=False)),
        text_config=hf.Gemma2Config(
            **text_settings(tokenizer, head_dim=16, query_pre_attn_scalar=16)
        ),
        image_token_index=tokenizer.image_token_id,
        projection_dim=HIDDEN,
        hidden_size=HIDDEN,
        vocab_size=len(tokenizer),
    )
    save(folder, hf.PaliGemmaForConditionalGeneration(config), processor, seed)


def write_phi4_multimodal(folder: Path, seed: int = 0) -> None:
    """Phi-4-multimodal: tiles of 64 pixels, and rotary frequencies that change at 1,024 tokens."""
    special = ("<|endoftext|>", "<|user|>", "<|assistant|>", "<|system|>", "<|end|>")
    tokenizer = train_tokenizer(
        (*special, "<|image|>", "<|audio|>"),
        bos="<|endoftext|>",
        eos="<|end|>",
        image_token="<|image|>",
        audio_token="<|audio|>",
    )
    processor = hf.Phi4MultimodalProcessor(
        # The processor counts 16x16 tokens for the whole image, whatever its size.
        image_processor=hf.Phi4MultimodalImageProcessor(
            size={"height": 64, "width": 64}, patch_size=2, dynamic_hd=4
        ),
        audio_processor=hf.Phi4MultimodalFeatureExtractor(),
        tokenizer=tokenizer,
        chat_template=chat_template("phi4_multimodal"),
    )
    config = hf.Phi4MultimodalConfig(
        **text_settings(
            tokenizer,
            original_max_position_embeddings=1024,
            rope_parameters={
                "rope_type": "longrope",
                "rope_theta": 1e4,
                "short_factor": [1.0] * 8,
                "long_factor": [float(factor) for factor in range(2, 10)],
                "partial_rotary_factor": 1.0,
            },
        ),
        vision_config={
            **vision_settings(64, 2),
            "hidden_size": 16,
            "intermediate_size": 16,
            "crop_size": 64,
            "image_token_id": tokenizer.image_token_id,
        },
        audio_config={
            "hidden_size": 16,
            "intermediate_size": 16,
            "num_blocks": 1,
            "num_attention_heads": 2,
            "ext_pw_out_channel": 16,
            "depthwise_separable_out_channel": 16,
            "nemo_conv_channels": 16,
            "audio_token_id": tokenizer.audio_token_id,
        },
    )
    save(folder, hf.Phi4MultimodalForCausalLM(config), processor, seed)


def write_idefics3(folder: Path, seed: int = 0) -> None:
    """Idefics3: tiles of 16 pixels with row and column tags, four tokens each."""
    tags = [f"<row_{row}_col_{column}>" for row in range(1, 7) for column in range(1, 7)]
    marks = ("<|begin_of_text|>", "<end_of_utterance>", "<fake_token_around_image>")
    tokenizer = train_tokenizer(
        (*marks, "<image>", "<global-img>", *tags),
        bos="<|begin_of_text|>",
        eos="<end_of_utterance>",
        adds_bos=True,
    )
    processor = hf.Idefics3Processor(
        image_processor=hf.Idefics3ImageProcessor(
            size={"longest_edge": 32}, max_image_size={"longest_edge": 16}
        ),
        tokenizer=tokenizer,
        image_seq_len=4,
        chat_template=chat_template("idefics3"),
    )
    config = hf.Idefics3Config(
        vision_config=vision_settings(16, 4),
        text_config=hf.LlamaConfig(**text_settings(tokenizer)),
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        scale_factor=2,
    )
    save(folder, hf.Idefics3ForConditionalGeneration(config), processor, seed)


def write_internvl(folder: Path, seed: int = 0) -> None:
    """InternVL 3.5: tiles of 16 pixels and a thumbnail, four tokens each, Qwen3 behind them."""
    tokenizer = train_tokenizer(
        (*QWEN_TOKENS[:3], "<img>", "</img>", "<IMG_CONTEXT>", "<video>"),
        eos="<|im_end|>",
        start_image_token="<img>",
        end_image_token="</img>",
        context_image_token="<IMG_CONTEXT>",
        video_token="<video>",
    )
    size = {"height": 16, "width": 16}
    processor = hf.InternVLProcessor(
        image_processor=hf.GotOcr2ImageProcessor(size=size, max_patches=4),
        tokenizer=tokenizer,
        video_processor=hf.InternVLVideoProcessor(size=size),
        image_seq_length=4,
        chat_template=chat_template("internvl"),
    )
    config = hf.InternVLConfig(
        vision_config=vision_settings(16, 4),
        text_config=hf.Qwen3Config(**text_settings(tokenizer, head_dim=16)),
        image_token_id=tokenizer.context_image_token_id,
        image_seq_length=4,
        tie_word_embeddings=False,
    )
    save(folder, hf.InternVLForConditionalGeneration(config), processor, seed)


def write_mllama(folder: Path, seed: int = 0) -> None:
    """Llama 3.2 Vision: up to four tiles of 16 pixels, cross attention in the second layer."""
    marks = ("<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>", "<|python_tag|>")
    headers = ("<|start_header_id|>", "<|end_header_id|>")
    tokenizer = train_tokenizer(
        (*marks, *headers, "<|image|>"),
        bos="<|begin_of_text|>",
        eos="<|eot_id|>",
        adds_bos=True,
        image_token="<|image|>",
    )
    processor = hf.MllamaProcessor(
        image_processor=hf.MllamaImageProcessor(size={"height": 16, "width": 16}),
        tokenizer=tokenizer,
        chat_template=chat_template("mllama"),
    )
    vision = vision_settings(16, 4, num_global_layers=1, max_num_tiles=4, vision_output_dim=64)
    config = hf.MllamaConfig(
        vision_config=hf.MllamaVisionConfig(
            **vision,
            intermediate_layers_indices=[1],
            supported_aspect_ratios=[
                [1, 1],
                [1, 2],
                [1, 3],
                [1, 4],
                [2, 1],
                [2, 2],
                [3, 1],
                [4, 1],
            ],
        ),
        text_config=hf.MllamaTextConfig(
            **text_settings(
                tokenizer,
                num_hidden_layers=3,
                cross_attention_layers=[1],
                rope_parameters={"rope_type": "default", "rope_theta": 1e4},
            )
        ),
        image_token_index=tokenizer.image_token_id,
    )
    save(folder, hf.MllamaForConditionalGeneration(config), processor, seed)


def _write_llava(folder: Path, seed: int = 0) -> None:
    write_llava(folder, seed=seed)


FAMILIES: dict[str, Callable[[Path, int], None]] = {
    "llava": _write_llava,
    "llava_next": write_llava_next,
    "qwen2_5_vl": write_qwen2_5_vl,
    "qwen3_vl": write_qwen3_vl,
    "blip2": write_blip2,
    "paligemma": write_paligemma,
    "phi4_multimodal": write_phi4_multimodal,
    "idefics3": write_idefics3,
    "internvl": write_internvl,
    "mllama": write_mllama,
}


def write_family(folder: Path, family: str, seed: int = 0) -> Path:
    """Write the tiny model of a family and return its folder."""
    FAMILIES[family](folder, seed)
    return folder
