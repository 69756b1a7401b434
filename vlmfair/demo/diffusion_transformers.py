"""The transformers of the demo's text-to-image pipelines, and how they are run in training.

The pipelines pad texts for T5 to hundreds of tokens that are all alike. In training one of them
stands for all: its attention logits are raised by the logarithm of their number, which is the same.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from diffusers.models.attention_processor import Attention
from diffusers.models.embeddings import apply_rotary_emb
from diffusers.models.transformers.transformer_flux import FluxAttention, FluxTransformer2DModel
from diffusers.models.transformers.transformer_sd3 import SD3Transformer2DModel
from diffusers.pipelines.flux.pipeline_flux import FluxPipeline
from torch import Tensor, nn

from vlmfair.demo.diffusion_vae import FLUX_LATENTS, SD3_LATENTS

HEADS, HEAD_WIDTH = 4, 32
TEXT_WIDTH = 128
# Latents of 96 x 96 pixels, 4 and 8 times smaller.
SD3_SIZE, FLUX_SIZE = 24, 12


def build_sd3_transformer() -> SD3Transformer2DModel:
    """Five layers of Stable Diffusion 3's class, for 36 patches of 4 x 4 latents."""
    model: SD3Transformer2DModel = SD3Transformer2DModel(
        sample_size=SD3_SIZE,
        patch_size=4,
        in_channels=SD3_LATENTS,
        out_channels=SD3_LATENTS,
        num_layers=5,
        attention_head_dim=HEAD_WIDTH,
        num_attention_heads=HEADS,
        joint_attention_dim=TEXT_WIDTH,
        caption_projection_dim=HEADS * HEAD_WIDTH,
        pooled_projection_dim=TEXT_WIDTH,
        pos_embed_max_size=SD3_SIZE // 4,
        qk_norm="rms_norm",
    )
    return model


def build_flux_transformer() -> FluxTransformer2DModel:
    """Two double and five single layers of Flux's class, for 36 packs of 2 x 2 latents."""
    model: FluxTransformer2DModel = FluxTransformer2DModel(
        in_channels=4 * FLUX_LATENTS,
        num_layers=2,
        num_single_layers=5,
        attention_head_dim=HEAD_WIDTH,
        num_attention_heads=HEADS,
        joint_attention_dim=TEXT_WIDTH // 2,
        pooled_projection_dim=TEXT_WIDTH // 2,
        axes_dims_rope=(8, 12, 12),
    )
    return model


class Sd3Flow(nn.Module):
    """Stable Diffusion 3's transformer as a velocity of latents, batch x 4 x 24 x 24."""

    def __init__(self, transformer: SD3Transformer2DModel) -> None:
        super().__init__()
        self.transformer = transformer
        self.bias = _Bias()
        processor: Any = _Sd3Attention(self.bias)
        for module in transformer.modules():
            if isinstance(module, Attention):
                module.set_processor(processor)

    def forward(
        self, latents: Tensor, sigmas: Tensor, sequence: Tensor, pooled: Tensor, filler: int
    ) -> Tensor:
        """The velocity at `sigmas` (0 to 1); the last token of `sequence` stands for `filler`."""
        self.bias.row(-1, filler)
        found: Tensor = self.transformer(
            hidden_states=latents,
            timestep=1000 * sigmas,
            encoder_hidden_states=sequence,
            pooled_projections=pooled,
            return_dict=False,
        )[0]
        return found


class FluxFlow(nn.Module):
    """Flux's transformer as a velocity of packed latents, batch x 36 x 64."""

    def __init__(self, transformer: FluxTransformer2DModel) -> None:
        super().__init__()
        self.transformer = transformer
        self.bias = _Bias()
        processor: Any = _FluxAttention(self.bias)
        for module in transformer.modules():
            if isinstance(module, FluxAttention):
                module.set_processor(processor)
        side = FLUX_SIZE // 2
        self.places = FluxPipeline._prepare_latent_image_ids(
            1, side, side, torch.device("cpu"), torch.float32
        )

    def forward(
        self, latents: Tensor, sigmas: Tensor, sequence: Tensor, pooled: Tensor, filler: int
    ) -> Tensor:
        """The velocity at `sigmas` (0 to 1); the last token of `sequence` stands for `filler`."""
        self.bias.row(sequence.shape[1] - 1, filler)
        found: Tensor = self.transformer(
            hidden_states=latents,
            timestep=sigmas,
            encoder_hidden_states=sequence,
            pooled_projections=pooled,
            img_ids=self.places,
            txt_ids=torch.zeros(sequence.shape[1], 3),
            return_dict=False,
        )[0]
        return found


def pack(latents: Tensor) -> Tensor:
    """Latents, n x 16 x 12 x 12, in the pipeline's order of packs: n x 36 x 64."""
    packed: Tensor = FluxPipeline._pack_latents(latents, *latents.shape)
    return packed


class _Bias:
    """Which key stands for several tokens, and the logarithm of their number."""

    def __init__(self) -> None:
        self.key, self.value = -1, 0.0

    def row(self, key: int, count: int) -> None:
        self.key, self.value = key, math.log(count)

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Attention written out; on CPUs, bfloat16 is fast in no other form."""
        scores = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5
        bias = scores.new_zeros(scores.shape[-1])
        bias[self.key] = self.value
        return (scores + bias).softmax(dim=-1).to(value.dtype) @ value


class _Sd3Attention:
    """As diffusers' `JointAttnProcessor2_0`, with the bias of one key."""

    def __init__(self, bias: _Bias) -> None:
        self.bias = bias

    def __call__(
        self, attn: Any, hidden_states: Tensor, encoder_hidden_states: Tensor, **_: object
    ) -> tuple[Tensor, Tensor]:
        image = (attn.to_q, attn.to_k, attn.to_v)
        text = (attn.add_q_proj, attn.add_k_proj, attn.add_v_proj)
        query, key, value = (_heads(layer(hidden_states)) for layer in image)
        query_, key_, value_ = (_heads(layer(encoder_hidden_states)) for layer in text)
        found = self.bias.attend(
            torch.cat([attn.norm_q(query), attn.norm_added_q(query_)], dim=2),
            torch.cat([attn.norm_k(key), attn.norm_added_k(key_)], dim=2),
            torch.cat([value, value_], dim=2),
        )
        found = found.transpose(1, 2).flatten(2)
        length = hidden_states.shape[1]
        of_image, of_text = attn.to_out[0](found[:, :length]), found[:, length:]
        return of_image, of_text if attn.context_pre_only else attn.to_add_out(of_text)


class _FluxAttention:
    """As diffusers' `FluxAttnProcessor`, with the bias of one key."""

    def __init__(self, bias: _Bias) -> None:
        self.bias = bias

    def __call__(
        self,
        attn: Any,
        hidden_states: Tensor,
        encoder_hidden_states: Tensor | None = None,
        attention_mask: Tensor | None = None,
        image_rotary_emb: Any = None,
    ) -> Tensor | tuple[Tensor, Tensor]:
        layers = (attn.to_q, attn.to_k, attn.to_v)
        query, key, value = (_heads(layer(hidden_states)) for layer in layers)
        query, key = attn.norm_q(query), attn.norm_k(key)
        if encoder_hidden_states is not None:
            layers = (attn.add_q_proj, attn.add_k_proj, attn.add_v_proj)
            query_, key_, value_ = (_heads(layer(encoder_hidden_states)) for layer in layers)
            query = torch.cat([attn.norm_added_q(query_), query], dim=2)
            key = torch.cat([attn.norm_added_k(key_), key], dim=2)
            value = torch.cat([value_, value], dim=2)
        turned: list[Any] = [
            apply_rotary_emb(vectors, image_rotary_emb, sequence_dim=2) for vectors in (query, key)
        ]
        found = self.bias.attend(turned[0], turned[1], value).transpose(1, 2).flatten(2)
        if encoder_hidden_states is None:
            return found
        length = encoder_hidden_states.shape[1]
        return attn.to_out[0](found[:, length:]), attn.to_add_out(found[:, :length])


def _heads(values: Tensor) -> Tensor:
    return values.unflatten(-1, (HEADS, HEAD_WIDTH)).transpose(1, 2)
