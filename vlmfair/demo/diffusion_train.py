"""Trains the demo's two text-to-image pipelines: scenes, text encoders, autoencoders, flows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from vlmfair.demo import diffusion_vae as vaes
from vlmfair.demo.diffusion_pipelines import (
    TextModels,
    flux_texts,
    save_flux,
    save_sd3,
    sd3_texts,
    train_text_models,
    training_texts,
    word_t5,
)
from vlmfair.demo.diffusion_scenes import pinned_pool
from vlmfair.demo.diffusion_training import FlowTrainer, Stage
from vlmfair.demo.diffusion_transformers import (
    FluxFlow,
    Sd3Flow,
    build_flux_transformer,
    build_sd3_transformer,
    pack,
)
from vlmfair.demo.scenes import Scene

POOL_IMAGES = 16_000
VAE_STEPS, TEXT_STEPS = (1_100, 1_200), 400
SD3_STAGES = (Stage(3_000, 2e-3), Stage(1_000, 1e-3))
FLUX_STAGES = (Stage(2_000, 2e-3), Stage(1_000, 1e-3))
SEED = 1
SD3, FLUX = "tiny-sd3", "tiny-flux"


def train_demo_pipelines(
    output: Path,
    *,
    pool_images: int = POOL_IMAGES,
    vae_steps: tuple[int, int] = VAE_STEPS,
    text_steps: int = TEXT_STEPS,
    sd3_stages: Sequence[Stage] = SD3_STAGES,
    flux_stages: Sequence[Stage] = FLUX_STAGES,
    seed: int = SEED,
    threads: int = 2,
) -> None:
    """Train both pipelines and write `tiny-sd3` and `tiny-flux` below `output`.

    Steps and seed are fixed numbers: the weights do not depend on how long a step takes.
    """
    torch.set_num_threads(threads)
    scenes, pool = pinned_pool(pool_images, seed)
    texts = train_text_models(text_steps, seed)
    _train_sd3(output / SD3, scenes, pool, texts, vae_steps, sd3_stages, seed)
    _train_flux(output / FLUX, scenes, pool, texts, vae_steps, flux_stages, seed)


def _train_sd3(
    output: Path,
    scenes: Sequence[Scene],
    pool: NDArray[np.uint8],
    texts: TextModels,
    vae_steps: tuple[int, int],
    stages: Sequence[Stage],
    seed: int,
) -> None:
    vae = vaes.train_vae(vaes.SD3_CHANNELS, vaes.SD3_LATENTS, pool, steps=vae_steps, seed=seed)
    torch.manual_seed(seed)
    flow = Sd3Flow(build_sd3_transformer())
    latents, encoded = vaes.encode(vae, pool), sd3_texts(texts, training_texts())
    FlowTrainer(flow, latents, scenes, encoded, seed).train(stages)
    save_sd3(output, texts, vae, flow.transformer)


def _train_flux(
    output: Path,
    scenes: Sequence[Scene],
    pool: NDArray[np.uint8],
    texts: TextModels,
    vae_steps: tuple[int, int],
    stages: Sequence[Stage],
    seed: int,
) -> None:
    vae = vaes.train_vae(vaes.FLUX_CHANNELS, vaes.FLUX_LATENTS, pool, steps=vae_steps, seed=seed)
    t5 = word_t5(texts, seed)
    torch.manual_seed(seed)
    flow = FluxFlow(build_flux_transformer())
    latents, encoded = pack(vaes.encode(vae, pool)), flux_texts(texts, t5, training_texts())
    FlowTrainer(flow, latents, scenes, encoded, seed).train(stages)
    save_flux(output, texts, t5, vae, flow.transformer)
