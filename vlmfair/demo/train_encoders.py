"""Trains the demo's encoders and its classifier: CLIP, sentence-T5 and ViT."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import CLIPVisionModel, LlavaForConditionalGeneration

from vlmfair.demo.classifier_model import save_classifier, train_classifier, wordnet_labels
from vlmfair.demo.clip_model import save_clip
from vlmfair.demo.clip_training import ClipTrainer
from vlmfair.demo.sentence_model import save_sentence_model, train_sentence_model
from vlmfair.demo.train import POOL_IMAGES, SEED, make_pool
from vlmfair.papers.lvlm_fairness.questions import load_classes, load_prompts

CLIP_STEPS, SENTENCE_STEPS, CLASSIFIER_STEPS = 800, 800, 500
CLIP, SENTENCES, CLASSIFIER = "clip", "sentence-t5", "vit"
RESOURCES = Path("resources")


def vision_tower(model: Path) -> CLIPVisionModel:
    """The vision tower of a demo model; both models have the same one."""
    tower: CLIPVisionModel = LlavaForConditionalGeneration.from_pretrained(
        model, dtype=torch.float32
    ).model.vision_tower
    return tower


def train_demo_encoders(
    output: Path,
    model: Path,
    *,
    resources: Path = RESOURCES,
    pool_images: int = POOL_IMAGES,
    clip_steps: int = CLIP_STEPS,
    sentence_steps: int = SENTENCE_STEPS,
    classifier_steps: int = CLASSIFIER_STEPS,
    seed: int = SEED,
    threads: int = 2,
) -> None:
    """Train all three and write `clip`, `sentence-t5` and `vit` below `output`.

    CLIP and ViT start from the vision tower of the demo model in the folder `model` and see the
    images that it was trained on. `resources` is the project's folder of prompts and words. Steps
    and seed are fixed numbers: the weights do not depend on how long a step takes.
    """
    torch.set_num_threads(threads)
    classes = load_classes(resources / "words/facet_classes.csv")
    prompts = load_prompts(resources / "prompts/lvlm_fairness.yaml", classes)
    labels = wordnet_labels(resources / "words/facet_wordnet.csv")
    save_sentence_model(
        train_sentence_model(prompts, steps=sentence_steps, seed=seed), output / SENTENCES
    )
    tower, pool = vision_tower(model), make_pool(pool_images, 0, seed)
    trainer = ClipTrainer(tower, pool.pixels, pool.scenes, prompts, seed)
    save_clip(trainer.train(clip_steps), output / CLIP)
    classifier = train_classifier(
        tower, pool.pixels, pool.scenes, labels, steps=classifier_steps, seed=seed
    )
    save_classifier(classifier, output / CLASSIFIER)
