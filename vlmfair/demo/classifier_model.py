"""The demo's ViT: a tiny image classifier whose labels are WordNet's names of occupations."""

from __future__ import annotations

import csv
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import CLIPImageProcessor, CLIPVisionModel, ViTConfig, ViTForImageClassification

from vlmfair.demo.encoder_captions import ACTIVITIES
from vlmfair.demo.folders import whole_folder
from vlmfair.demo.images import INPUT_SIZE, normalise
from vlmfair.demo.scenes import Scene
from vlmfair.demo.vision import WIDTH, warm_up_cosine

LOGGER = logging.getLogger(__name__)

BATCH = 96
PATCH_SIZE = 16
LEARNING_RATE = 6e-4
# The parts of CLIP's names that ViT has under others.
NAMES = {
    "embeddings.class_embedding": "embeddings.cls_token",
    "embeddings.position_embedding.weight": "embeddings.position_embeddings",
    "embeddings.patch_embedding": "embeddings.patch_embeddings.projection",
    "encoder.layers": "layers",
    "self_attn.out_proj": "attention.o_proj",
    "self_attn": "attention",
    "layer_norm1": "layernorm_before",
    "layer_norm2": "layernorm_after",
    "post_layernorm": "layernorm",
}
# WordNet's name of somebody who does nothing in particular; no class of FACET.
ANYBODY = "person, individual, someone, somebody, mortal, soul"


def wordnet_labels(path: Path) -> list[str]:
    """WordNet's label of a person in general and of each occupation, the first one of each."""
    with path.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    first = {row["class"]: row["label"] for row in reversed(rows)}
    return [ANYBODY, *(first[name] for name in ACTIVITIES[1:])]


def build_classifier(tower: CLIPVisionModel, labels: Sequence[str]) -> ViTForImageClassification:
    """A stock ViT that starts from the layers of a trained CLIP vision tower.

    ViT has no normalisation before its first layer, so that this is only where training starts.
    """
    config = ViTConfig(
        hidden_size=WIDTH,
        intermediate_size=4 * WIDTH,
        num_hidden_layers=tower.config.num_hidden_layers,
        num_attention_heads=tower.config.num_attention_heads,
        hidden_act="quick_gelu",
        layer_norm_eps=tower.config.layer_norm_eps,
        image_size=INPUT_SIZE,
        patch_size=PATCH_SIZE,
        id2label=dict(enumerate(labels)),
        label2id={label: number for number, label in enumerate(labels)},
    )
    model = ViTForImageClassification(config)
    model.load_state_dict(_started(model.state_dict(), tower.state_dict()))
    return model


def _started(ours: Mapping[str, Tensor], theirs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights of a ViT with those that a CLIP vision tower has as well."""
    found = {}
    for name, weight in theirs.items():
        for clip_name, vit_name in NAMES.items():
            name = name.replace(clip_name, vit_name)
        found[f"vit.{name}"] = weight
    found["vit.embeddings.cls_token"] = found["vit.embeddings.cls_token"].view(1, 1, -1)
    found["vit.embeddings.position_embeddings"] = found["vit.embeddings.position_embeddings"][None]
    return {name: found.get(name, weight) for name, weight in ours.items()}


def train_classifier(
    tower: CLIPVisionModel,
    pool: NDArray[np.uint8],
    scenes: Sequence[Scene],
    labels: Sequence[str],
    *,
    steps: int,
    seed: int,
) -> ViTForImageClassification:
    """Train on the occupations of a pool's scenes."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    model = build_classifier(tower, labels)
    targets = torch.tensor([ACTIVITIES.index(scene.subject.occupation) for scene in scenes])
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=0.02)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: warm_up_cosine(n, steps))
    model.train()
    for step in range(steps):
        rows = rng.integers(len(scenes), size=BATCH)
        with torch.autocast("cpu", torch.bfloat16):
            logits = model(torch.from_numpy(normalise(pool[rows]))).logits
        loss = nn.functional.cross_entropy(logits.float(), targets[rows])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 50 == 0 or step == steps - 1:
            LOGGER.info("ViT step %d of %d: loss %.3f", step, steps, loss.item())
    return model.eval()


def save_classifier(model: ViTForImageClassification, output: Path) -> None:
    """Write weights (float16) and image processor as a Hugging Face folder; it appears whole."""
    processor = CLIPImageProcessor(
        size={"shortest_edge": INPUT_SIZE},
        crop_size={"height": INPUT_SIZE, "width": INPUT_SIZE},
        image_mean=[0.5, 0.5, 0.5],
        image_std=[0.5, 0.5, 0.5],
    )
    # Half the bytes, but computed in float32: what loads it takes the number format from here.
    model.config.dtype = torch.float32
    model.config.architectures = [type(model).__name__]
    halves = {name: t.detach().half().contiguous() for name, t in model.state_dict().items()}
    with whole_folder(output) as folder:
        model.config.save_pretrained(folder)
        save_file(halves, folder / "model.safetensors", metadata={"format": "pt"})
        processor.save_pretrained(folder)
