"""What tests of drawing share: captions, settings, and a pipeline that gives what a test wants."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from tiny_pipelines import SIZE

from vlmfair.contracts import conform
from vlmfair.synthesis.generators import Generator, make_generator
from vlmfair.synthesis.shard import draw_shard
from vlmfair.synthesis.table import PROMPTS, image_seed

CAPTIONS = [
    "A man rides a horse.",
    "A woman is with a dog in a park.",
    "A man plays the guitar.",
    "A girl in a red hat.",
    "A man is with a woman's dog.",
    "A nurse and her patient.",
]
GREY = np.linspace(0.2, 0.8, SIZE * SIZE * 3).reshape(SIZE, SIZE, 3)


def generator(folder: Path, **changes: Any) -> Generator:
    """Two steps on 32 x 32 pixels."""
    index = folder / "model_index.json"
    own = json.loads(index.read_text())["_class_name"] if index.is_file() else "FluxPipeline"
    settings = {"steps": 2, "guidance": 3.0, "height": SIZE, "width": SIZE, "dtype": "float32"}
    return make_generator("tiny", {"path": str(folder), "pipeline": own, **settings, **changes})


def asked(captions: list[str] = CAPTIONS, shards: int = 1) -> pa.Table:
    rows = [
        {
            "sample_id": f"coco/{number}",
            "gender": "Male",
            "prompt": caption,
            "seed": image_seed(1, f"coco/{number}", caption),
            "shard": number * shards // len(captions),
        }
        for number, caption in enumerate(captions)
    ]
    return conform(pa.Table.from_pylist(rows), PROMPTS)


def shard(prompts: pa.Table, number: int) -> pa.Table:
    return prompts.filter(pa.compute.equal(prompts["shard"], number))


def draw(prompts: pa.Table, own: Generator, store: Path, **options: Any) -> tuple[pa.Table, dict]:
    memory = store.parent / "memory.json"
    return draw_shard(prompts, own, store, device="cpu", threads=1, memory=memory, **options)


class StandIn:
    """A pipeline that gives what a test wants, and counts how it is called."""

    tokenizer_max_length = 77
    tokenizer = tokenizer_2 = tokenizer_3 = None

    def __init__(self, paint: Any = None) -> None:
        self.paint = paint or (lambda prompt, seed: GREY * (0.5 + seed % 7 / 14))
        self.calls: list[list[str]] = []
        self.moves: list[str] = []
        self.components = {"transformer": torch.nn.Linear(4, 4)}

    def __call__(self, prompt: list[str], generator: list[torch.Generator], **_: Any) -> Any:
        self.calls.append(prompt)
        images = [self.paint(p, g.initial_seed()) for p, g in zip(prompt, generator, strict=True)]
        return SimpleNamespace(images=images)

    def to(self, device: str) -> StandIn:
        self.moves.append(device)
        return self

    def enable_model_cpu_offload(self, device: str) -> None:
        self.moves.append("by part")

    def enable_sequential_cpu_offload(self, device: str) -> None:
        self.moves.append("by layer")


def own_settings(tmp_path: Path, **changes: Any) -> Generator:
    """A generator whose folder only has to have a digest."""
    folder = tmp_path / "pipeline"
    (folder / "vae").mkdir(parents=True, exist_ok=True)
    (folder / "vae" / "weights.safetensors").write_bytes(b"0")
    index = {"_class_name": "FluxPipeline", "vae": ["diffusers", "AutoencoderKL"]}
    (folder / "model_index.json").write_text(json.dumps(index))
    return generator(folder, **changes)
