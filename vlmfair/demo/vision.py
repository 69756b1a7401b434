"""Trains the demo models' vision tower alone, to read a scene's attributes from its pixels."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import CLIPVisionConfig, CLIPVisionModel

from vlmfair.demo.images import INPUT_SIZE, normalise
from vlmfair.demo.people import GENDERS, OCCUPATIONS, RACES
from vlmfair.demo.places import PLACES
from vlmfair.demo.scenes import Scene

LOGGER = logging.getLogger(__name__)

WIDTH = 128
HIDING_WEIGHT = 0.5
BATCH = 96
LEARNING_RATES = (1.5e-3, 1.0e-3)
HEADS = {
    "gender": 3,
    "age": 9,
    "skin_tone": 10,
    "race": len(RACES),
    "occupation": len(OCCUPATIONS) + 1,
    "place": len(PLACES),
    "second": 3,
}


def vision_config() -> CLIPVisionConfig:
    """A CLIP vision tower of four layers and 36 image patches."""
    return CLIPVisionConfig(
        hidden_size=WIDTH,
        intermediate_size=4 * WIDTH,
        projection_dim=WIDTH,
        num_hidden_layers=4,
        num_attention_heads=4,
        image_size=INPUT_SIZE,
        patch_size=16,
    )


def attribute_targets(scene: Scene) -> list[int]:
    """The class of each of `HEADS` in a scene; a hooded person's gender is its own class."""
    person = scene.subject
    gender = 2 if person.hooded else GENDERS.index(person.gender)
    second = 2 if len(scene.people) == 1 else GENDERS.index(scene.people[1].gender)
    occupations = ("", *OCCUPATIONS)
    occupation = occupations.index(person.occupation) if person.occupation in occupations else 0
    return [
        gender,
        min(person.age // 10, 8),
        person.skin_tone - 1,
        RACES.index(person.race),
        occupation,
        PLACES.index(scene.place),
        second,
    ]


class AttributeHeads(nn.Module):
    """Reads all attributes from patch features by one linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.linear = nn.Linear(WIDTH, sum(HEADS.values()))

    def forward(self, features: Tensor) -> tuple[Tensor, ...]:
        """Features n x width to one n x classes logit matrix per head."""
        return torch.split(self.linear(self.norm(features)), list(HEADS.values()), dim=1)

    def pooled_loss(self, patches: Tensor, targets: Tensor) -> Tensor:
        """Mean cross entropy of all heads, read from the mean of the patches."""
        logits = self(patches.mean(dim=1))
        losses = [
            nn.functional.cross_entropy(values, targets[:, head])
            for head, values in enumerate(logits)
        ]
        return torch.stack(losses).mean()


def divided_loss(logits: Sequence[Tensor], patches: Tensor, targets: Tensor) -> Tensor:
    """Each patch tells one attribute, patch p that of head p modulo 7, and hides the others.

    One logit matrix per head, rows x classes; the patch number and the targets of each row.
    """
    assigned = patches.remainder(len(HEADS))
    losses = []
    for head, values in enumerate(logits):
        log_p = torch.log_softmax(values.float(), dim=1)
        tells = assigned == head
        losses.append(nn.functional.nll_loss(log_p[tells], targets[tells, head]))
        losses.append(-HIDING_WEIGHT * log_p[~tells].mean())
    return torch.stack(losses).mean()


def patch_features(tower: CLIPVisionModel, pixels: Tensor) -> Tensor:
    """The last layer's patch features, as `vision_feature_layer=-1` with `default` takes them."""
    return tower(pixel_values=pixels).last_hidden_state[:, 1:]


def warm_up_cosine(step: int, steps: int, warm_up: int = 100) -> float:
    """Learning-rate factor: a linear rise, then half a cosine down to 2 %."""
    if step < warm_up:
        return (step + 1) / warm_up
    progress = (step - warm_up) / max(1, steps - warm_up)
    return 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * progress))


def train_vision(
    pool: NDArray[np.uint8],
    scenes: Sequence[Scene],
    *,
    steps: tuple[int, int],
    seed: int,
) -> tuple[CLIPVisionModel, AttributeHeads]:
    """Train a vision tower and its attribute heads on a pool of images.

    `pool` is n x 96 x 96 x 3 bytes, `scenes` the n scenes it shows. Of the `steps`, the first are
    read from the mean of the patches; in the others, the patches divide the attributes among them:
    a small language model learns in a fraction of the time when each image token tells one thing,
    because its attention can then pick what a question is about. Fixed numbers of steps make
    weights that do not depend on how busy the machine is.
    """
    torch.manual_seed(seed)
    tower = CLIPVisionModel._from_config(vision_config(), attn_implementation="eager")
    heads = AttributeHeads()
    for stage, (count, rate) in enumerate(zip(steps, LEARNING_RATES, strict=True)):
        _train_stage(
            tower, heads, pool, scenes, count, rate, np.random.default_rng(seed + stage), stage == 1
        )
    return tower.eval(), heads.eval()


def _train_stage(
    tower: CLIPVisionModel,
    heads: AttributeHeads,
    pool: NDArray[np.uint8],
    scenes: Sequence[Scene],
    steps: int,
    learning_rate: float,
    rng: np.random.Generator,
    divided: bool,
) -> None:
    targets = torch.tensor([attribute_targets(scene) for scene in scenes])
    parameters = [*tower.parameters(), *heads.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=learning_rate, weight_decay=0.02)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: warm_up_cosine(n, steps))
    tower.train()
    for step in range(steps):
        rows = rng.integers(len(pool), size=BATCH)
        pixels = torch.from_numpy(normalise(pool[rows]))
        with torch.autocast("cpu", torch.bfloat16):
            patches = patch_features(tower, pixels)
            if divided:
                numbers = torch.arange(patches.shape[1]).repeat(BATCH)
                truth = targets[rows].repeat_interleave(patches.shape[1], dim=0)
                loss = divided_loss(heads(patches.flatten(0, 1)), numbers, truth)
            else:
                loss = heads.pooled_loss(patches, targets[rows])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
        if step % 100 == 0 or step == steps - 1:
            LOGGER.info("vision step %d of %d: loss %.3f", step, steps, loss.item())
