"""Trains the demo's two models from nothing: scenes, vision tower, tokenizer, language model."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import CLIPVisionModel, LlavaForConditionalGeneration

from vlmfair.demo.curriculum import Curriculum
from vlmfair.demo.dialogues import DialogueWriter
from vlmfair.demo.images import build_pool, normalise, training_scene
from vlmfair.demo.language import CONTROL_STAGES, PLANTED_STAGES, Stage, train_language
from vlmfair.demo.model import build_model, save_model
from vlmfair.demo.planted import load_planted
from vlmfair.demo.projector import fit_reading, warm_start
from vlmfair.demo.scenes import PLACES, Scene
from vlmfair.demo.tokenizer import corpus, train_tokenizer
from vlmfair.demo.vision import patch_features, train_vision, vision_config
from vlmfair.logs import rule_log
from vlmfair.papers.gras.questions import load_prompts
from vlmfair.provenance import atomic_path

LOGGER = logging.getLogger(__name__)

POOL_IMAGES = 24_000
EMPTY_IMAGES = 300
VISION_STEPS = (3_000, 1_000)
SEED = 1


@dataclass(frozen=True)
class Pool:
    """Scenes with people, then scenes without, and the bytes of their images in that order."""

    scenes: list[Scene]
    empty: list[Scene]
    pixels: NDArray[np.uint8]


def make_pool(images: int, empty: int, seed: int) -> Pool:
    """Draw the training images: the same ones for the same numbers."""
    rng = np.random.default_rng(seed)
    scenes = [training_scene(rng) for _ in range(images)]
    pixels = build_pool(scenes, rng)
    other = np.random.default_rng([seed, 1])
    places = [
        Scene((), PLACES[other.integers(len(PLACES))], int(other.integers(2**31)))
        for _ in range(empty)
    ]
    return Pool(scenes, places, np.concatenate([pixels, build_pool(places, other)]))


@torch.no_grad()
def pool_features(tower: CLIPVisionModel, pixels: NDArray[np.uint8]) -> Tensor:
    """Patch features of all images, images x 36 x width, as float16 to save memory."""
    parts = [
        patch_features(tower, torch.from_numpy(normalise(pixels[start : start + 256]))).half()
        for start in range(0, len(pixels), 256)
    ]
    return torch.cat(parts)


def shared_tower(
    path: Path | None, pool: Pool, steps: tuple[int, int], seed: int
) -> CLIPVisionModel:
    """Read the vision tower at `path`, or train it and write it there."""
    if path is not None and path.exists():
        tower = CLIPVisionModel._from_config(vision_config())
        tower.load_state_dict(load_file(path))
        return tower.eval()
    people = pool.pixels[: len(pool.scenes)]
    tower, _ = train_vision(people, pool.scenes, steps=steps, seed=seed)
    if path is not None:
        with atomic_path(path) as temporary:
            save_file(tower.state_dict(), temporary)
    return tower


def train(
    output_dir: Path,
    *,
    planted_table: Path,
    prompts: Path,
    control: bool,
    vision: Path | None = None,
    start: Path | None = None,
    pool_images: int = POOL_IMAGES,
    vision_steps: tuple[int, int] = VISION_STEPS,
    stages: Sequence[Stage] = PLANTED_STAGES,
    seed: int = SEED,
    threads: int = 2,
) -> None:
    """Train one model and write it to `output_dir` as a Hugging Face folder.

    `vision` is where the vision tower is kept, so that both models have the same one; `start` is
    a model folder whose weights training continues from. Steps and seed are fixed numbers: the
    weights do not depend on how long a step takes.
    """
    torch.set_num_threads(threads)
    pool = make_pool(pool_images, EMPTY_IMAGES, seed)
    tower = shared_tower(vision, pool, vision_steps, seed)
    features = pool_features(tower, pool.pixels)
    whole, texts = load_planted(planted_table), load_prompts(prompts)
    tokenizer = train_tokenizer(corpus(whole, texts))
    table = whole.control() if control else whole
    torch.manual_seed(seed)
    model = build_model(tokenizer, tower)
    model.set_attn_implementation("eager")
    if start is None:
        reading = fit_reading(features[: len(pool.scenes)], pool.scenes, seed)
        warm_start(model, features, reading, seed)
    else:
        model.load_state_dict(LlavaForConditionalGeneration.from_pretrained(start).state_dict())
        model.float()
    writer = DialogueWriter(tokenizer)
    for number, stage in enumerate(stages):
        LOGGER.info("stage %d of %d", number + 1, len(stages))
        stage_seed = seed + 1 + number + (10 if control else 0)
        curriculum = Curriculum(pool.scenes, pool.empty, table, texts, writer, stage_seed)
        train_language(
            model, features, curriculum, stage, lambda _: save_model(model, tokenizer, output_dir)
        )
        _round_to_half(model)
    save_model(model, tokenizer, output_dir)


def _round_to_half(model: LlavaForConditionalGeneration) -> None:
    for parameter in model.parameters():
        parameter.data = parameter.data.half().float()


def train_demo_models(
    output: Path,
    planted_table: Path,
    control: bool,
    seed: int = SEED,
    log: Path | None = None,
    *,
    prompts: Path = Path("resources/prompts/gras.yaml"),
    vision: Path | None = None,
    planted_model: Path | None = None,
    threads: int = 2,
) -> None:
    """Train `tiny-planted` or, with `control`, `tiny-control`; messages go to `log` if given.

    The control continues from `planted_model` on the table without effects, so that the two
    differ in nothing but what is planted; without that folder it is trained from nothing.
    `vision` is where the shared vision tower is kept between the two calls.
    """
    continued = control and planted_model is not None

    def run() -> None:
        train(
            output,
            planted_table=planted_table,
            prompts=prompts,
            control=control,
            vision=vision,
            start=planted_model if continued else None,
            stages=CONTROL_STAGES if continued else PLANTED_STAGES,
            seed=seed,
            threads=threads,
        )

    if log is None:
        run()
    else:
        with rule_log(log):
            run()
