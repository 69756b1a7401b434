"""Trains a transformer to turn noise into latents of what a caption says, by rectified flow."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from vlmfair.demo.diffusion_scenes import scene_captions
from vlmfair.demo.scenes import Scene
from vlmfair.demo.vision import warm_up_cosine

LOGGER = logging.getLogger(__name__)

BATCH = 64
AVERAGE = 0.998
EMPTY_SHARE = 0.10
CHECKPOINT_STEPS = 250


@dataclass(frozen=True)
class Stage:
    """Training steps of one cosine from a learning rate."""

    steps: int
    learning_rate: float


@dataclass(frozen=True)
class Texts:
    """Encoded captions: `rows` says where a text is in `sequence` (n x l x w) and `pooled`.

    The last token of each sequence is a filler of the text's padding.
    """

    rows: Mapping[str, int]
    sequence: Tensor
    pooled: Tensor
    fillers: tuple[int, ...]


class FlowTrainer:
    """Holds latents, captions and a transformer, and the running average of its weights."""

    def __init__(
        self, flow: nn.Module, latents: Tensor, scenes: Sequence[Scene], texts: Texts, seed: int
    ) -> None:
        self.flow, self.latents, self.scenes, self.texts = flow, latents, scenes, texts
        self.rng = np.random.default_rng(seed)
        self.noise = torch.Generator().manual_seed(seed)
        self.average = {name: p.detach().clone() for name, p in flow.named_parameters()}

    def train(
        self, stages: Sequence[Stage], checkpoint: Callable[[int], None] | None = None
    ) -> None:
        """Train the stages one after the other, each from the averaged weights of the last.

        At the end, the weights are their running average. `checkpoint` is called with the number of
        steps of the stage every `CHECKPOINT_STEPS` of them.
        """
        for stage in stages:
            self._train_stage(stage, checkpoint)
        self.flow.eval()

    def _train_stage(self, stage: Stage, checkpoint: Callable[[int], None] | None) -> None:
        parameters = list(self.flow.parameters())
        optimizer = torch.optim.AdamW(
            parameters, lr=stage.learning_rate, weight_decay=0.01, fused=True
        )
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: warm_up_cosine(step, stage.steps)
        )
        self.flow.train()
        losses: list[float] = []
        for step in range(1, stage.steps + 1):
            loss = self.loss()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            schedule.step()
            self._average(step)
            losses.append(loss.item())
            if step % 50 == 0 or step == stage.steps:
                told = (step, stage.steps, float(np.mean(losses[-50:])))
                LOGGER.info("transformer step %d of %d: loss %.4f", *told)
            if checkpoint is not None and step % CHECKPOINT_STEPS == 0:
                checkpoint(step)
        self.flow.load_state_dict(self.average, strict=False)

    def loss(self) -> Tensor:
        """The squared error of the velocity in one batch."""
        rows = self.rng.integers(len(self.scenes), size=BATCH)
        told = scene_captions([self.scenes[row] for row in rows], self.rng)
        empty = self.rng.random(BATCH) < EMPTY_SHARE
        places = [
            self.texts.rows["" if nothing else text]
            for text, nothing in zip(told, empty, strict=True)
        ]
        latents = self.latents[rows].float()
        noise = torch.randn(latents.shape, generator=self.noise)
        sigmas = torch.randn(BATCH, generator=self.noise).sigmoid()
        weights = sigmas.view(-1, *[1] * (latents.ndim - 1))
        noisy = (1 - weights) * latents + weights * noise
        filler = self.texts.fillers[self.rng.integers(len(self.texts.fillers))]
        with torch.autocast("cpu", torch.bfloat16):
            velocity = self.flow(
                noisy,
                sigmas,
                self.texts.sequence[places].float(),
                self.texts.pooled[places].float(),
                filler,
            )
        return nn.functional.mse_loss(velocity.float(), noise - latents)

    @torch.no_grad()
    def _average(self, step: int) -> None:
        kept = min(AVERAGE, step / (9 + step))
        names = list(self.average)
        parameters = dict(self.flow.named_parameters())
        torch._foreach_lerp_(
            [self.average[name] for name in names],
            [parameters[name] for name in names],
            1 - kept,
        )
