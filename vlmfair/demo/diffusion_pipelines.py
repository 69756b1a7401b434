"""The demo's text-to-image pipelines as folders of diffusers' form, and how they read captions."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from diffusers.models.autoencoders.autoencoder_kl import AutoencoderKL
from diffusers.models.transformers.transformer_flux import FluxTransformer2DModel
from diffusers.models.transformers.transformer_sd3 import SD3Transformer2DModel
from diffusers.pipelines.flux.pipeline_flux import FluxPipeline
from diffusers.pipelines.pipeline_utils import DiffusionPipeline
from diffusers.pipelines.stable_diffusion_3.pipeline_stable_diffusion_3 import (
    StableDiffusion3Pipeline,
)
from diffusers.schedulers.scheduling_flow_match_euler_discrete import (
    FlowMatchEulerDiscreteScheduler,
)
from torch import Tensor
from transformers import (
    CLIPTextModel,
    CLIPTextModelWithProjection,
    CLIPTokenizer,
    T5EncoderModel,
    T5Tokenizer,
)

from vlmfair.demo.diffusion_text import (
    LENGTH,
    build_silent_t5,
    build_t5_tokenizer,
    build_word_t5,
    clip_ids,
    every_caption,
    t5_ids,
    train_clip_text,
    train_clip_tokenizer,
)
from vlmfair.demo.diffusion_training import Texts
from vlmfair.demo.diffusion_transformers import TEXT_WIDTH
from vlmfair.demo.folders import whole_folder

# How many of the silent encoder's tokens follow, as `max_sequence_length` says; 256 by default.
SD3_FILLERS = (8, 40, 256)
# What follows a caption's 24 tokens when it is padded to 32 or more; to 512 by default.
FLUX_FILLERS = (8, 40, 104, 232, 488)
ENCODED_AT_ONCE = 256


@dataclass(frozen=True)
class TextModels:
    """Tokenizers and encoders that the two pipelines share."""

    clip_tokenizer: CLIPTokenizer
    clips: tuple[CLIPTextModelWithProjection, CLIPTextModelWithProjection]
    t5_tokenizer: T5Tokenizer


def train_text_models(steps: int, seed: int) -> TextModels:
    """Learn both vocabularies from the captions, and train two CLIP text encoders."""
    texts = [text for text, _ in every_caption()]
    tokenizer = train_clip_tokenizer(texts)
    first = train_clip_text(tokenizer, steps=steps, seed=seed)
    second = train_clip_text(tokenizer, steps=steps, seed=seed + 1)
    return TextModels(tokenizer, (first, second), build_t5_tokenizer(texts))


def silent_t5(models: TextModels) -> T5EncoderModel:
    """The third encoder of the Stable Diffusion 3 pipeline; it says nothing."""
    return build_silent_t5(models.t5_tokenizer, TEXT_WIDTH)


def word_t5(models: TextModels, seed: int) -> T5EncoderModel:
    """The second encoder of the Flux pipeline."""
    return build_word_t5(models.t5_tokenizer, TEXT_WIDTH // 2, seed)


@torch.no_grad()
def sd3_texts(models: TextModels, texts: Sequence[str]) -> Texts:
    """Texts as Stable Diffusion 3 takes them: 24 tokens, and one of the silent third encoder.

    The tokens of the first two encoders stand side by side.
    """
    rows = _rows(texts)
    sequences, pooled = zip(*(_encoded(models, clip, rows) for clip in models.clips), strict=True)
    sequence = torch.cat(sequences, dim=2)
    filler = torch.zeros_like(sequence[:, :1])
    return Texts(rows, torch.cat([sequence, filler], dim=1), torch.cat(pooled, 1), SD3_FILLERS)


@torch.no_grad()
def flux_texts(models: TextModels, t5: T5EncoderModel, texts: Sequence[str]) -> Texts:
    """Texts as Flux takes them: 24 of T5's words or their padding, and one of padding."""
    rows = _rows(texts)
    sequence = t5(t5_ids(models.t5_tokenizer, list(rows), LENGTH + 1))[0]
    clip = _flux_clip(models.clips[0])
    ids = clip_ids(models.clip_tokenizer, list(rows))
    pooled = torch.cat([clip(part).pooler_output for part in ids.split(ENCODED_AT_ONCE)])
    return Texts(rows, sequence.half(), pooled.half(), FLUX_FILLERS)


def training_texts() -> list[str]:
    """Every caption once, and the empty text that guidance compares them with."""
    return list(dict.fromkeys(["", *(text for text, _ in every_caption())]))


def _rows(texts: Sequence[str]) -> dict[str, int]:
    return {text: row for row, text in enumerate(texts)}


def _encoded(
    models: TextModels, clip: CLIPTextModelWithProjection, rows: dict[str, int]
) -> tuple[Tensor, Tensor]:
    ids = clip_ids(models.clip_tokenizer, list(rows))
    parts = [clip(part, output_hidden_states=True) for part in ids.split(ENCODED_AT_ONCE)]
    sequence = torch.cat([part.hidden_states[-2] for part in parts])
    return sequence.half(), torch.cat([part.text_embeds for part in parts]).half()


def _flux_clip(clip: CLIPTextModelWithProjection) -> CLIPTextModel:
    """The same encoder without the projection of its pooled text."""
    model = CLIPTextModel(clip.config)
    model.load_state_dict(clip.text_model.state_dict())
    return model.eval()


def save_sd3(
    output: Path, models: TextModels, vae: AutoencoderKL, transformer: SD3Transformer2DModel
) -> None:
    """Write the Stable Diffusion 3 pipeline in half precision; the folder appears whole."""
    pipeline = StableDiffusion3Pipeline(
        transformer=transformer,
        scheduler=FlowMatchEulerDiscreteScheduler(shift=1.0),
        vae=vae,
        text_encoder=copy.deepcopy(models.clips[0]),
        tokenizer=models.clip_tokenizer,
        text_encoder_2=copy.deepcopy(models.clips[1]),
        tokenizer_2=models.clip_tokenizer,
        text_encoder_3=silent_t5(models),
        tokenizer_3=models.t5_tokenizer,
    )
    _save(pipeline, output)


def save_flux(
    output: Path,
    models: TextModels,
    t5: T5EncoderModel,
    vae: AutoencoderKL,
    transformer: FluxTransformer2DModel,
) -> None:
    """Write the Flux pipeline in half precision; the folder appears whole."""
    pipeline = FluxPipeline(
        scheduler=FlowMatchEulerDiscreteScheduler(shift=1.0),
        vae=vae,
        text_encoder=_flux_clip(models.clips[0]),
        tokenizer=models.clip_tokenizer,
        text_encoder_2=t5,
        tokenizer_2=models.t5_tokenizer,
        transformer=transformer,
    )
    _save(pipeline, output)


def _save(pipeline: DiffusionPipeline, output: Path) -> None:
    with whole_folder(output) as folder:
        pipeline.to(torch.float16).save_pretrained(folder)
