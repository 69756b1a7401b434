"""Trains the demo models' projector and language model on packed questions with soft targets."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers import LlavaForConditionalGeneration

from vlmfair.demo.curriculum import Curriculum
from vlmfair.demo.dialogues import Batch, Pack, collate
from vlmfair.demo.vision import warm_up_cosine

LOGGER = logging.getLogger(__name__)
LOG_EVERY = 50
# What each part of the mixture weighs in the loss of a step.
WEIGHTS = {
    "traits": 1.5,
    "reading": 1.0,
    "labels": 1.0,
    "matching": 1.0,
    "zero-shot": 1.0,
    "final": 1.0,
    "contexts": 1.0,
    "yes-no": 4.0,
    "interaction": 1.5,
    "one-gender": 2.0,
}
READING = {"traits": 4, "reading": 6}


@dataclass(frozen=True)
class Stage:
    """A stretch of training: `steps` of a cosine that would end at `horizon`, and its mixture.

    `packs` is the number of packs per step and part. The first `reading_steps` ask short questions
    only: what to look for in an image is learnt from them in a few hundred steps, and hardly ever
    from long prompts alone.
    """

    steps: int
    horizon: int
    learning_rate: float
    packs: Mapping[str, int]
    reading_steps: int = 0


BROAD = {"traits": 7, "labels": 2, "zero-shot": 3, "final": 1, "contexts": 2}
COMPARING = {
    "traits": 6,
    "labels": 1,
    "matching": 4,
    "zero-shot": 2,
    "final": 2,
    "contexts": 2,
}
YES_NO = {
    "traits": 3,
    "labels": 1,
    "matching": 1,
    "zero-shot": 1,
    "final": 1,
    "contexts": 1,
    "yes-no": 3,
}
POLISHING = {
    "traits": 3,
    "interaction": 2,
    "labels": 1,
    "matching": 1,
    "zero-shot": 1,
    "final": 1,
    "contexts": 1,
    "one-gender": 2,
    "yes-no": 3,
}
PLANTED_STAGES = (
    Stage(1600, 2400, 1e-3, BROAD, reading_steps=400),
    Stage(600, 1000, 8e-4, COMPARING),
    Stage(320, 320, 6e-4, COMPARING),
    Stage(320, 320, 1e-3, YES_NO),
    Stage(240, 240, 7e-4, YES_NO),
    Stage(480, 480, 1e-3, POLISHING),
    Stage(200, 200, 6e-4, {**POLISHING, "final": 4}),
    Stage(400, 400, 1e-3, {**POLISHING, "final": 2, "one-gender": 1, "yes-no": 6}),
)
CONTROL_STAGES = (
    Stage(400, 400, 8e-4, COMPARING),
    Stage(240, 240, 7e-4, {**COMPARING, "final": 4}),
    Stage(300, 300, 7e-4, {**COMPARING, "final": 4, "zero-shot": 4, "contexts": 4}),
)


def draw_step(curriculum: Curriculum, stage: Stage, step: int) -> dict[str, list[Pack]]:
    """The packs of one training step by part."""
    makers = {
        "traits": curriculum.trait_pack,
        "reading": curriculum.reading_pack,
        "labels": curriculum.label_pack,
        "matching": curriculum.matching_pack,
        "zero-shot": curriculum.zero_shot_pack,
        "final": curriculum.final_pack,
        "yes-no": curriculum.yes_no_pack,
        "interaction": curriculum.interaction_pack,
        "one-gender": curriculum.one_gender_pack,
    }
    counts = READING if step < stage.reading_steps else stage.packs
    return {
        part: curriculum.context_packs(count)
        if part == "contexts"
        else [makers[part]() for _ in range(count)]
        for part, count in counts.items()
    }


def forward_targets(
    model: LlavaForConditionalGeneration, features: Tensor, batch: Batch, half: bool = True
) -> Tensor:
    """Logits at the target positions, targets x vocabulary, from stored patch features.

    `half` computes the layers in bfloat16, as training does.
    """
    image_token = model.config.image_token_index
    embedding = model.get_input_embeddings()
    with torch.autocast("cpu", torch.bfloat16, enabled=half):
        images = model.model.multi_modal_projector(features[batch.images].float())
        embedded = embedding(batch.ids)
        places = (batch.ids == image_token).unsqueeze(-1).expand_as(embedded)
        embedded = embedded.masked_scatter(places, images.to(embedded.dtype))
        hidden = model.model.language_model(
            inputs_embeds=embedded,
            attention_mask=batch.mask,
            position_ids=batch.positions,
            use_cache=False,
        ).last_hidden_state
    # The head in float32: in bfloat16 the planted probabilities would be learnt to 1 % only.
    at_targets = hidden[batch.target_rows, batch.target_columns].float()
    return at_targets @ embedding.weight.T


def train_language(
    model: LlavaForConditionalGeneration,
    features: Tensor,
    curriculum: Curriculum,
    stage: Stage,
    after: Callable[[int], None] | None = None,
) -> None:
    """Train all but the vision tower for a stage; `features` are images x 36 x width.

    The number of steps is fixed, so that the weights do not depend on how busy the machine is.
    `after` is called with the number of steps done, once every 200 steps.
    """
    parameters = [
        *model.model.multi_modal_projector.parameters(),
        *model.model.language_model.parameters(),
    ]
    optimizer = torch.optim.AdamW(
        parameters, lr=stage.learning_rate, betas=(0.9, 0.98), weight_decay=0.01
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda n: warm_up_cosine(n, stage.horizon)
    )
    text = model.config.get_text_config()
    vocabulary, pad = text.vocab_size, text.pad_token_id
    distances: dict[str, list[float]] = {}
    model.train()
    for step in range(stage.steps):
        optimizer.zero_grad()
        for name, packs in draw_step(curriculum, stage, step).items():
            batch = collate(packs, vocabulary, pad)
            log_p = torch.log_softmax(forward_targets(model, features, batch), dim=-1)
            losses = -(batch.probabilities * log_p).sum(dim=-1)
            (WEIGHTS[name] * (losses * batch.weights).sum() / batch.weights.sum()).backward()
            distances.setdefault(name, []).append(_distance(log_p, batch))
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
        if (step + 1) % LOG_EVERY == 0:
            means = {name: sum(values) / len(values) for name, values in distances.items()}
            report = ", ".join(f"{name} {value:.3f}" for name, value in means.items())
            LOGGER.info("step %d of %d: distance from planted: %s", step + 1, stage.steps, report)
            distances = {}
        if after is not None and (step + 1) % 200 == 0:
            after(step + 1)
    model.eval()


@torch.no_grad()
def _distance(log_p: Tensor, batch: Batch) -> float:
    """The mean total variation distance between said and planted at the deciding tokens."""
    decides = batch.weights == 1.0
    gap = (log_p[decides].exp() - batch.probabilities[decides]).abs().sum(dim=-1) / 2
    return float(gap.mean())
