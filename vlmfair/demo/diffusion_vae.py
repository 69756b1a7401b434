"""The autoencoders of the demo's text-to-image pipelines: images to latents and back."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from diffusers.models.autoencoders.autoencoder_kl import AutoencoderKL
from numpy.typing import NDArray
from torch import Tensor, nn

from vlmfair.demo.images import INPUT_SIZE, normalise
from vlmfair.demo.vision import warm_up_cosine

LOGGER = logging.getLogger(__name__)

BATCH = 12
LEARNING_RATE = 3e-3
# Of the latents' own deviation: what a decoder forgives, a transformer may get wrong.
NOISE, POLISH_NOISE = 0.05, 0.10
SQUARED_WEIGHT, GRADIENT_WEIGHT = 2.0, 0.25
# Stable Diffusion 3 takes patches of 4 x 4 latents of one fourth of the size; Flux packs 2 x 2,
# so that the same 36 tokens need one eighth of the size and four times the channels.
SD3_CHANNELS, SD3_LATENTS = (8, 24, 48), 4
FLUX_CHANNELS, FLUX_LATENTS = (8, 24, 48, 64), 16


def build_vae(channels: tuple[int, ...], latents: int) -> AutoencoderKL:
    """An untrained autoencoder that halves the size once for each but the first of `channels`."""
    vae: AutoencoderKL = AutoencoderKL(
        block_out_channels=channels,
        latent_channels=latents,
        down_block_types=("DownEncoderBlock2D",) * len(channels),
        up_block_types=("UpDecoderBlock2D",) * len(channels),
        layers_per_block=1,
        norm_num_groups=8,
        mid_block_add_attention=False,
        sample_size=INPUT_SIZE,
        use_quant_conv=False,
        use_post_quant_conv=False,
    )
    return vae


def train_vae(
    channels: tuple[int, ...],
    latents: int,
    pool: NDArray[np.uint8],
    *,
    steps: tuple[int, int],
    seed: int,
) -> AutoencoderKL:
    """Train an autoencoder on a pool of images, n x 96 x 96 x 3 bytes.

    Of the `steps`, the first train both halves. Then the encoder stays as it is, the latents' scale
    and shift are measured and kept in the configuration, where the pipelines look for them, and the
    decoder alone learns on, from latents that are less exact.
    """
    torch.manual_seed(seed)
    vae = build_vae(channels, latents)
    nn.Module.to(vae, memory_format=torch.channels_last)
    rng = np.random.default_rng(seed)

    def both() -> Tensor:
        pixels = _pixels(pool[rng.integers(len(pool), size=BATCH)])
        means = vae.encode(pixels).latent_dist.mean
        noise = NOISE * means.std().detach() * torch.randn_like(means)
        return reconstruction_loss(vae.decode(means + noise).sample, pixels)

    _train(vae, both, steps[0])
    vae.eval().requires_grad_(False)
    _fix_distribution(vae, latents)
    _measure_scale(vae, pool[:1024])
    polish_decoder(vae, pool, steps=steps[1], seed=seed)
    return vae


def polish_decoder(vae: AutoencoderKL, pool: NDArray[np.uint8], *, steps: int, seed: int) -> None:
    """Train the decoder alone, so that latents that were made before keep their meaning."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    latents = encode(vae, pool)

    def decoder() -> Tensor:
        rows = rng.integers(len(pool), size=BATCH)
        scaled = latents[rows].float()
        noisy = scaled + POLISH_NOISE * torch.randn_like(scaled)
        return reconstruction_loss(_decode(vae, noisy), _pixels(pool[rows]))

    vae.decoder.requires_grad_(True)
    _train(vae.decoder, decoder, steps)
    vae.eval().requires_grad_(False)


def _train(model: nn.Module, draw_loss: Callable[[], Tensor], steps: int) -> None:
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=LEARNING_RATE, weight_decay=0.01, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: warm_up_cosine(n, steps))
    model.train()
    for step in range(steps):
        loss = draw_loss()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
        if step % 50 == 0 or step == steps - 1:
            LOGGER.info("autoencoder step %d of %d: loss %.4f", step, steps, loss.item())


def reconstruction_loss(drawn: Tensor, pixels: Tensor) -> Tensor:
    """Absolute and squared error, and the absolute error of the steps between neighbours."""
    error = drawn - pixels
    steps = (error[..., 1:] - error[..., :-1]).abs().mean()
    steps = steps + (error[..., 1:, :] - error[..., :-1, :]).abs().mean()
    squared = error.square().mean()
    return error.abs().mean() + SQUARED_WEIGHT * squared + GRADIENT_WEIGHT * steps


@torch.no_grad()
def encode(vae: AutoencoderKL, pool: NDArray[np.uint8], batch: int = 128) -> Tensor:
    """Scaled latents of a pool of images as the transformers see them: float16, n x c x h x w."""
    parts = []
    for start in range(0, len(pool), batch):
        means = vae.encode(_pixels(pool[start : start + batch])).latent_dist.mean
        scaled = (means - vae.config["shift_factor"]) * vae.config["scaling_factor"]
        parts.append(scaled.half().contiguous())
    return torch.cat(parts)


@torch.no_grad()
def decode(vae: AutoencoderKL, latents: Tensor) -> NDArray[np.uint8]:
    """Images of scaled latents, as the pipelines decode them: n x 96 x 96 x 3 bytes."""
    pixels = _decode(vae, latents.float()).clamp(-1, 1).add(1).mul(127.5).round()
    found: NDArray[np.uint8] = pixels.permute(0, 2, 3, 1).numpy().astype(np.uint8)
    return found


def _decode(vae: AutoencoderKL, scaled: Tensor) -> Tensor:
    values = scaled / vae.config["scaling_factor"] + vae.config["shift_factor"]
    pixels: Tensor = vae.decode(values.contiguous(memory_format=torch.channels_last)).sample
    return pixels


def _pixels(images: NDArray[np.uint8]) -> Tensor:
    return torch.from_numpy(normalise(images)).to(memory_format=torch.channels_last)


def _fix_distribution(vae: AutoencoderKL, latents: int) -> None:
    """Nothing was learnt of the latents' deviation: say the one of the noise in training."""
    outlet: Any = vae.encoder.conv_out
    outlet.weight[latents:] = 0.0
    outlet.bias[latents:] = 2 * math.log(NOISE)


def _measure_scale(vae: AutoencoderKL, pool: NDArray[np.uint8]) -> None:
    vae.register_to_config(scaling_factor=1.0, shift_factor=0.0)
    found = encode(vae, pool).float()
    shift, scale = float(found.mean()), 1 / float(found.std())
    vae.register_to_config(scaling_factor=round(scale, 5), shift_factor=round(shift, 5))
