"""Starts a demo model's projector from what a linear reading of the patches knows.

An untrained projector hides the attributes from an untrained language model, which then learns
for hundreds of steps to ignore the image. Here half of the projector's hidden units start as the
attributes' logits, so that an image token is from the first step a sum of "words" for what is seen.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from transformers import LlavaForConditionalGeneration

from vlmfair.demo.scenes import Scene
from vlmfair.demo.vision import HEADS, WIDTH, attribute_targets, divided_loss

READING_STEPS = 400
LOGIT_SCALE = 0.4
OUTPUT_DEVIATION = 0.06


def fit_reading(features: Tensor, scenes: Sequence[Scene], seed: int) -> nn.Linear:
    """Fit a linear map from one patch's features to the logits of the attribute that it tells."""
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    targets = torch.tensor([attribute_targets(scene) for scene in scenes])
    reading = nn.Linear(WIDTH, sum(HEADS.values()))
    mean, deviation = _standard(features)
    optimizer = torch.optim.AdamW(reading.parameters(), lr=1e-2, weight_decay=0.05)
    for _ in range(READING_STEPS):
        rows = torch.randint(len(scenes), (1024,), generator=generator)
        patches = torch.randint(features.shape[1], (1024,), generator=generator)
        logits = reading((features[rows, patches].float() - mean) / deviation)
        loss = divided_loss(
            torch.split(logits, list(HEADS.values()), dim=1), patches, targets[rows]
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return reading


@torch.no_grad()
def warm_start(
    model: LlavaForConditionalGeneration, features: Tensor, reading: nn.Linear, seed: int
) -> None:
    """Write the reading into the projector's first layer; the rest stays random, standardised."""
    generator = torch.Generator().manual_seed(seed)
    projector = model.model.multi_modal_projector
    mean, deviation = _standard(features)
    weight = torch.randn(WIDTH, WIDTH, generator=generator) / WIDTH**0.5
    bias = torch.zeros(WIDTH)
    attributes = reading.out_features
    weight[:attributes] = LOGIT_SCALE * reading.weight
    bias[:attributes] = LOGIT_SCALE * reading.bias
    projector.linear_1.weight.copy_(weight / deviation)
    projector.linear_1.bias.copy_(bias - (weight / deviation) @ mean)
    projector.linear_2.weight.normal_(0.0, OUTPUT_DEVIATION, generator=generator)
    projector.linear_2.bias.zero_()


def _standard(features: Tensor) -> tuple[Tensor, Tensor]:
    sample = features[:: max(1, len(features) // 500)].float().flatten(0, 1)
    return sample.mean(dim=0), sample.std(dim=0) + 1e-4
