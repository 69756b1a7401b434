"""Floating-point operations of prompts: one full forward each, the engine's way, and the least.

The least that an exact method can do for questions about one image is each token of the trie of
their prompts once, with attention to the tokens before it on its path alone.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache

from vlmfair.bench.meter import META, MeteredFamily
from vlmfair.inference.forward import Forward, feature_table
from vlmfair.inference.groups import Layouts, group_prompts, image_keys
from vlmfair.inference.prefix import common_length
from vlmfair.inference.prepare import Prepared
from vlmfair.inference.shared import MOST_GENERATED, MOST_SCORED, default_pack_tokens


@dataclass(frozen=True)
class MeteredModel:
    """A model on the meta device, and its family, which counts."""

    name: str
    family: MeteredFamily
    model: Any


@torch.inference_mode()
def plain_flops(metered: MeteredModel, prompts: Sequence[Prepared], new_tokens: int = 0) -> int:
    """Return the operations of one full forward for each prompt, its images included.

    The head sees the last token only. With `new_tokens` each answer has as many tokens, the first
    from the full forward and each further one from a step behind the prompt's own cache.
    """
    alike: Counter[tuple[Any, ...]] = Counter()
    example: dict[tuple[Any, ...], Prepared] = {}
    for item in prompts:
        key = (len(item.ids), item.shapes())
        alike[key] += 1
        example.setdefault(key, item)
    total = 0
    for key, count in alike.items():
        cache = DynamicCache()
        flops = _vision(metered, example[key]) + _text(metered, len(example[key].ids), cache)
        flops += _head(metered)
        for _ in range(1, new_tokens):
            flops += _text(metered, 1, cache) + _head(metered)
        total += count * flops
    return total


@torch.inference_mode()
def our_flops(metered: MeteredModel, prompts: Sequence[Prepared], new_tokens: int = 0) -> int:
    """Return the operations of the engine's way in mode packed, with its own tree, packs and steps.

    Each image goes through the vision tower once. With `new_tokens` all answers have as many.
    """
    family, model = metered.family, metered.model
    before = family.flops
    layouts = Layouts(family, model, metered.name)
    forward = Forward(family, model, META)
    most = MOST_GENERATED if new_tokens else MOST_SCORED
    for group in group_prompts(prompts):
        images = {
            key: image
            for item in group
            for key, image in zip(image_keys(item), item.images, strict=True)
        }
        encoded = family.encode_images(model, list(images.values()))
        features = dict(zip(images, encoded, strict=True))
        layout = layouts.layout(group, features, default_pack_tokens(model), most)
        for output in forward.packs(layout, feature_table(encoded)):
            family.head(model, output.hidden)
            visible = output.visible
            # All answers of a pack grow until the last token, so that nothing can be dropped.
            for step in range(1, new_tokens):
                positions = [
                    family.next_positions(layout.arrays[row].positions, step)
                    for row in output.members
                ]
                ids = torch.zeros(len(positions), dtype=torch.long, device=META)
                stacked = torch.stack(positions, dim=1).to(META)
                hidden = forward.step(ids, stacked, visible, output.cache)
                family.head(model, hidden)
                visible = forward.grown(visible)
    return family.flops - before


@torch.inference_mode()
def floor_flops(metered: MeteredModel, prompts: Sequence[Prepared]) -> int:
    """Return the operations of each unique token of prompts about one image once.

    Each attends to itself and the tokens before it in its prompt, and to nothing else.
    """
    cache = DynamicCache()
    alone = _text(metered, 1, cache)
    pair = _text(metered, 1, cache) - alone
    places = trie_places([item.ids for item in prompts])
    tokens = len(places) * alone + pair * sum(places)
    return _vision(metered, prompts[0]) + tokens + len(prompts) * _head(metered)


def trie_places(prompts: Sequence[Sequence[int]]) -> list[int]:
    """Return the place of each token of the trie of prompts, counted from 0."""
    ordered = [np.array(ids, np.int64) for ids in sorted(map(tuple, prompts))]
    shared = [0, *(common_length(a, b) for a, b in itertools.pairwise(ordered))]
    return [
        place
        for known, ids in zip(shared, ordered, strict=True)
        for place in range(known, len(ids))
    ]


def _vision(metered: MeteredModel, item: Prepared) -> int:
    before = metered.family.flops
    metered.family.encode_images(metered.model, item.images)
    return metered.family.flops - before


def _text(metered: MeteredModel, tokens: int, cache: Any) -> int:
    """Operations of a prompt's tokens that follow each other behind a cache, which grows."""
    family, model = metered.family, metered.model
    before, cached = family.flops, cache.get_seq_length()
    width = model.config.get_text_config(decoder=True).hidden_size
    positions = family.positions(model, [0] * tokens, ())
    mask = torch.zeros((1, 1, tokens, cached + tokens), device=META) if cached else None
    family.decode(
        model,
        embeddings=torch.empty((1, tokens, width), device=META),
        positions=positions.unsqueeze(1).to(META),
        mask=mask,
        cache=cache,
    )
    return family.flops - before


def _head(metered: MeteredModel) -> int:
    before = metered.family.flops
    width = metered.model.config.get_text_config(decoder=True).hidden_size
    metered.family.head(metered.model, torch.empty((1, width), device=META))
    return metered.family.flops - before
