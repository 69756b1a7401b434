"""Text-to-image pipelines of diffusers' stock classes with random weights, small for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers as hf
from tiny_parts import train_tokenizer

# What CLIP's tokenizer and T5's say where the tests' captions are cut.
CLIP_TOKENS = 24
SIZE = 32


def _clip_tokenizer() -> hf.PreTrainedTokenizerFast:
    tokenizer = train_tokenizer(("<s>", "</s>"), bos="<s>", eos="</s>", adds_bos=True)
    tokenizer.model_max_length = CLIP_TOKENS
    return tokenizer


def _clip(tokenizer: Any, kind: type, seed: int) -> Any:
    torch.manual_seed(seed)
    config = hf.CLIPTextConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=37,
        projection_dim=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=CLIP_TOKENS,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        hidden_act="gelu",
    )
    return kind(config).eval()


def _t5(tokenizer: Any, seed: int) -> Any:
    torch.manual_seed(seed)
    config = hf.T5Config(
        vocab_size=len(tokenizer), d_model=32, d_kv=8, d_ff=37, num_layers=2, num_heads=4
    )
    return hf.T5EncoderModel(config).eval()


def _vae(channels: int, seed: int) -> Any:
    from diffusers import AutoencoderKL

    torch.manual_seed(seed)
    return AutoencoderKL(
        in_channels=3,
        out_channels=3,
        block_out_channels=(4, 8),
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        layers_per_block=1,
        latent_channels=channels,
        norm_num_groups=1,
        use_quant_conv=False,
        use_post_quant_conv=False,
        shift_factor=0.0609,
        scaling_factor=1.5035,
    )


def save_sd3(folder: Path, *, seed: int = 0) -> Path:
    """Write a StableDiffusion3Pipeline of 32 x 32 pixels."""
    from diffusers import (
        FlowMatchEulerDiscreteScheduler,
        SD3Transformer2DModel,
        StableDiffusion3Pipeline,
    )

    clip, t5 = _clip_tokenizer(), train_tokenizer(("</s>",), eos="</s>")
    torch.manual_seed(seed)
    transformer = SD3Transformer2DModel(
        sample_size=16,
        patch_size=4,
        in_channels=4,
        num_layers=2,
        attention_head_dim=8,
        num_attention_heads=4,
        caption_projection_dim=32,
        joint_attention_dim=32,
        pooled_projection_dim=64,
        out_channels=4,
    )
    pipeline = StableDiffusion3Pipeline(
        transformer=transformer,
        scheduler=FlowMatchEulerDiscreteScheduler(),
        vae=_vae(4, seed),
        text_encoder=_clip(clip, hf.CLIPTextModelWithProjection, seed),
        tokenizer=clip,
        text_encoder_2=_clip(clip, hf.CLIPTextModelWithProjection, seed + 1),
        tokenizer_2=clip,
        text_encoder_3=_t5(t5, seed),
        tokenizer_3=t5,
    )
    pipeline.save_pretrained(folder, safe_serialization=True)
    return folder


def save_flux(folder: Path, *, seed: int = 0) -> Path:
    """Write a FluxPipeline of 32 x 32 pixels."""
    from diffusers import FlowMatchEulerDiscreteScheduler, FluxPipeline, FluxTransformer2DModel

    clip, t5 = _clip_tokenizer(), train_tokenizer(("</s>",), eos="</s>")
    torch.manual_seed(seed)
    transformer = FluxTransformer2DModel(
        patch_size=1,
        in_channels=16,
        num_layers=1,
        num_single_layers=1,
        attention_head_dim=16,
        num_attention_heads=2,
        joint_attention_dim=32,
        pooled_projection_dim=32,
        axes_dims_rope=[4, 4, 8],
        guidance_embeds=True,
    )
    pipeline = FluxPipeline(
        transformer=transformer,
        scheduler=FlowMatchEulerDiscreteScheduler(),
        vae=_vae(4, seed),
        text_encoder=_clip(clip, hf.CLIPTextModel, seed),
        tokenizer=clip,
        text_encoder_2=_t5(t5, seed),
        tokenizer_2=t5,
    )
    pipeline.save_pretrained(folder, safe_serialization=True)
    return folder


SAVE = {"FluxPipeline": save_flux, "StableDiffusion3Pipeline": save_sd3}
