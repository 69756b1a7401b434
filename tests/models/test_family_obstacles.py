"""Why prompts cannot share a prefix is read off the configuration, and it is true of the model."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tiny_models import FAMILIES
from transformers import DynamicCache, Gemma2Config, LlamaConfig, MistralConfig, Qwen3NextConfig

from vlmfair.models.families.base import text_obstacle
from vlmfair.models.loading import LoadedProcessor

Load = Callable[[str], tuple[LoadedProcessor, Any]]
ALWAYS = {"paligemma"}


@pytest.mark.parametrize(
    ("config", "longest", "reason"),
    [
        (LlamaConfig(), 100_000, None),
        (MistralConfig(sliding_window=None), 100_000, None),
        (MistralConfig(sliding_window=4096), 4096, None),
        (MistralConfig(sliding_window=4096), 4097, "window of 4096 tokens is shorter than"),
        (Gemma2Config(sliding_window=64), 65, "window of 64 tokens is shorter than a prompt of 65"),
        (Qwen3NextConfig(num_hidden_layers=4), 10, "linear_attention keep a state of the prefix"),
        (
            LlamaConfig(
                max_position_embeddings=512,
                rope_parameters={"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0},
            ),
            513,
            "rotary frequencies change at 512 tokens, and a prompt has 513",
        ),
    ],
)
def test_a_language_models_configuration_says_what_forbids_a_prefix(
    config: Any, longest: int, reason: str | None
) -> None:
    found = text_obstacle(config, longest)

    assert found is None if reason is None else reason in str(found)


def test_an_unknown_kind_of_layer_is_not_trusted() -> None:
    config = SimpleNamespace(layer_types=["full_attention", "mamba2"])

    assert text_obstacle(config, 10) == "the layers mamba2 keep a state of the prefix"


@pytest.mark.parametrize("family", [name for name in FAMILIES if name not in ALWAYS])
def test_short_prompts_of_one_image_may_share_a_prefix(load_tiny: Load, family: str) -> None:
    loaded, model = load_tiny(family)

    assert loaded.family.obstacle(model, 500, 1) is None


def test_paligemma_always_says_no(load_tiny: Load) -> None:
    loaded, model = load_tiny("paligemma")

    assert "both directions" in loaded.family.obstacle(model, 10, 0)


def test_mllama_says_no_to_several_images(load_tiny: Load) -> None:
    loaded, model = load_tiny("mllama")

    assert "before the first of 3 images" in loaded.family.obstacle(model, 10, 3)


def test_phi_says_no_across_the_change_of_its_rotary_frequencies(load_tiny: Load) -> None:
    loaded, model = load_tiny("phi4_multimodal")

    assert loaded.family.obstacle(model, 1024) is None
    assert "change at 1024 tokens, and a prompt has 1025" in loaded.family.obstacle(model, 1025)


@pytest.mark.parametrize(("family", "tokens"), [("phi4_multimodal", 1030), ("paligemma", 20)])
def test_what_is_refused_would_be_wrong(load_tiny: Load, family: str, tokens: int) -> None:
    # An obstacle that is not one would cost time for nothing.
    loaded, model = load_tiny(family)
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(20, 300, (tokens,), generator=generator)

    def hidden(pieces: list[int]) -> torch.Tensor:
        embeddings = loaded.family.embed(model, ids)[None]
        positions = loaded.family.positions(model, ids.tolist(), ())
        cache, start, parts = DynamicCache(), 0, []
        for stop in pieces:
            allowed = torch.ones(tokens, tokens).tril().bool()[start:stop, :stop]
            lowest = torch.finfo(torch.float32).min
            mask = torch.zeros(allowed.shape).masked_fill(~allowed, lowest)[None, None]
            parts.append(
                loaded.family.decode(
                    model,
                    embeddings=embeddings[:, start:stop],
                    positions=positions[:, None, start:stop],
                    mask=mask if start else None,
                    cache=cache,
                )
            )
            start = stop
        return torch.cat(parts, dim=1)[0, -1]

    with torch.inference_mode():
        whole, split = hidden([tokens]), hidden([tokens - 10, tokens])
        difference = loaded.family.head(model, whole).softmax(-1) - loaded.family.head(
            model, split
        ).softmax(-1)

    assert difference.abs().max() > 1e-4
