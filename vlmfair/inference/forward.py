"""Runs a group's tree through the decoder: each shared beginning once, each pack once.

The cache of a beginning is forked for what follows, layer by layer and without a copy: a layer
that grows makes new tensors and leaves those of its origin alone.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache

from vlmfair.inference.groups import Layout
from vlmfair.inference.packing import Pack, additive_mask, attends
from vlmfair.inference.prefix import Segment
from vlmfair.models.families.base import Family, ImageFeatures

# Tokens of finished sequences are dropped from the cache when there are this many of them, and
# more than of those that are still seen.
LEAST_DROPPED = 256

Runs = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class FeatureTable:
    """The image features of a group under each other: [rows, width], and those of deeper layers."""

    embeddings: torch.Tensor | None
    layers: tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class _Block:
    """Runs of tokens as tensors: ids [tokens], positions [axes, tokens], and which are images.

    `image_rows` [tokens] marks image tokens, `places` [marked] are their indices and `features`
    [marked] their rows in the group's feature table.
    """

    ids: torch.Tensor
    positions: torch.Tensor
    image_rows: torch.Tensor
    places: torch.Tensor
    features: torch.Tensor


@dataclass
class PackOutput:
    """A pack after its forward: last hidden states [members, width], and the cache behind it.

    `visible` [members, cached] says which cached tokens each member's last token attends to.
    """

    members: tuple[int, ...]
    hidden: torch.Tensor
    cache: Any
    visible: torch.Tensor


def feature_table(features: Sequence[ImageFeatures]) -> FeatureTable:
    """Return the features of images, in order, as one table."""
    if not features:
        return FeatureTable(None, ())
    layers = zip(*(image.layers for image in features), strict=True)
    return FeatureTable(
        torch.cat([image.embeddings for image in features]),
        tuple(torch.cat(parts) for parts in layers),
    )


def fork(cache: Any) -> Any:
    """Return a cache that may grow without changing `cache`; no tensor is copied."""
    forked = copy.copy(cache)
    forked.layers = [copy.copy(layer) for layer in cache.layers]
    return forked


class Forward:
    """Forwards of one model over layouts; it counts the tokens that it computes."""

    def __init__(self, family: Family, model: Any, device: torch.device) -> None:
        self.tokens = 0
        self.family = family
        self.model = model
        self.device = device
        self._blocks: dict[Runs, _Block] = {}
        self._layout: Layout | None = None

    def packs(self, layout: Layout, features: FeatureTable) -> Iterator[PackOutput]:
        """Yield each pack of a layout after its forward, beginnings before what extends them."""
        if layout is not self._layout:
            self._layout, self._blocks = layout, {}
        yield from self._segment(layout, layout.tree, features, DynamicCache())

    def _segment(
        self, layout: Layout, segment: Segment, features: FeatureTable, cache: Any
    ) -> Iterator[PackOutput]:
        cache = fork(cache)
        if segment.end > segment.start:
            run = ((segment.prompt, segment.start, segment.end),)
            self._tokens(layout, (run,), features, cache, None)
        for pack in segment.packs:
            yield from self._pack(layout, segment, pack, features, cache)
        for child in segment.children:
            yield from self._segment(layout, child, features, cache)

    def _pack(
        self, layout: Layout, segment: Segment, pack: Pack, features: FeatureTable, cache: Any
    ) -> Iterator[PackOutput]:
        cache = fork(cache)
        cached = cache.get_seq_length()
        allowed = attends(torch.from_numpy(pack.after).to(self.device))
        hidden = self._tokens(
            layout, (pack.runs,), features, cache, None if pack.is_chain else allowed
        )
        ends = torch.tensor(pack.ends, device=self.device)
        before = torch.ones((len(ends), cached), dtype=torch.bool, device=self.device)
        visible = torch.cat([before, allowed[ends]], dim=1)
        yield PackOutput(pack.members, hidden[0, ends.to(hidden.device)], cache, visible)

    def _tokens(
        self,
        layout: Layout,
        rows: Sequence[Runs],
        features: FeatureTable,
        cache: Any,
        allowed: torch.Tensor | None,
    ) -> torch.Tensor:
        """Forward rows of tokens behind `cache`, and return their hidden states.

        Without `allowed` [tokens, tokens] they follow each other.
        """
        blocks = [self._block(layout, runs) for runs in rows]
        shown = [self._embed(block, features) for block in blocks]
        embeddings = torch.stack(shown)
        layers = [
            torch.cat([layer[block.features] for block in blocks]) for layer in features.layers
        ]
        has_images = any(len(block.places) for block in blocks)
        cached, length = cache.get_seq_length(), embeddings.shape[1]
        mask = None
        if allowed is not None or cached:
            if allowed is None:
                allowed = torch.ones((length, length), dtype=torch.bool, device=self.device).tril()
            mask = additive_mask(allowed, cached, embeddings.dtype)
        self.tokens += length * len(blocks)
        return self.family.decode(
            self.model,
            embeddings=embeddings,
            positions=torch.stack([block.positions for block in blocks], dim=1),
            mask=mask,
            cache=cache,
            image_rows=torch.stack([block.image_rows for block in blocks]) if has_images else None,
            layers=layers if has_images else (),
        )

    def _embed(self, block: _Block, features: FeatureTable) -> torch.Tensor:
        embeddings = self.family.embed(self.model, block.ids)
        if features.embeddings is None or not len(block.places):
            return embeddings
        shown = features.embeddings[block.features].to(embeddings)
        return embeddings.index_copy(0, block.places, shown)

    def step(
        self, ids: torch.Tensor, positions: torch.Tensor, visible: torch.Tensor, cache: Any
    ) -> torch.Tensor:
        """Forward one more token [rows] of several sequences; each sees its `visible` and itself.

        `visible` is [rows, cached], `positions` [axes, rows]. Returns hidden states [rows, width].
        """
        embeddings = self.family.embed(self.model, ids)
        own = torch.eye(len(ids), dtype=torch.bool, device=self.device)
        mask = additive_mask(torch.cat([visible, own], dim=1), 0, embeddings.dtype)
        self.tokens += len(ids)
        hidden = self.family.decode(
            self.model,
            embeddings=embeddings.unsqueeze(0),
            positions=positions.unsqueeze(1),
            mask=mask,
            cache=cache,
        )
        return hidden[0]

    def keep(self, cache: Any, visible: torch.Tensor, rows: Sequence[int]) -> torch.Tensor:
        """Drop all sequences but `rows`; return what those see [rows, cached] of the new cache.

        Tokens that nobody sees stay until there are many of them, because to move the others
        costs something. Positions are in the keys and do not move.
        """
        visible = visible[list(rows)]
        seen = visible.any(dim=0)
        dropped = int((~seen).sum())
        if dropped <= max(LEAST_DROPPED, int(seen.sum())):
            return visible
        for layer in cache.layers:
            # Layers of a model over several devices keep their part each on its own.
            columns = seen.to(layer.keys.device)
            layer.keys = layer.keys[:, :, columns]
            layer.values = layer.values[:, :, columns]
        return visible[:, seen]

    def grown(self, visible: torch.Tensor) -> torch.Tensor:
        """Return `visible` after a step: each sequence sees its own new token."""
        own = torch.eye(len(visible), dtype=torch.bool, device=self.device)
        return torch.cat([visible, own], dim=1)

    def _block(self, layout: Layout, runs: Runs) -> _Block:
        """Return runs as tensors, made once for a layout."""
        found = self._blocks.get(runs)
        if found is None:
            arrays = layout.arrays
            ids = np.concatenate([arrays[p].ids[a:b] for p, a, b in runs])
            rows = np.concatenate([layout.rows[p][a:b] for p, a, b in runs])
            positions = torch.cat([arrays[p].positions[:, a:b] for p, a, b in runs], dim=1)
            places = np.flatnonzero(rows >= 0)
            found = _Block(
                torch.from_numpy(ids).to(self.device),
                positions.to(self.device),
                torch.from_numpy(rows >= 0).to(self.device),
                torch.from_numpy(places).to(self.device),
                torch.from_numpy(rows[places]).to(self.device),
            )
            self._blocks[runs] = found
        return found


class RepeatedForward(Forward):
    """The shared beginning repeated for each suffix of a batch, without packing.

    For models that go wrong with a mask that is not causal. Suffixes of one length go together,
    so that nothing is padded.
    """

    def _pack(
        self, layout: Layout, segment: Segment, pack: Pack, features: FeatureTable, cache: Any
    ) -> Iterator[PackOutput]:
        by_length: dict[int, list[int]] = {}
        for prompt in pack.members:
            by_length.setdefault(len(layout.arrays[prompt].ids), []).append(prompt)
        for length, prompts in by_length.items():
            repeated = fork(cache)
            repeated.batch_repeat_interleave(len(prompts))
            rows = [((prompt, segment.end, length),) for prompt in prompts]
            hidden = self._tokens(layout, rows, features, repeated, None)
            visible = torch.ones((len(prompts), length), dtype=torch.bool, device=self.device)
            yield PackOutput(tuple(prompts), hidden[:, -1], repeated, visible)

    def step(
        self, ids: torch.Tensor, positions: torch.Tensor, visible: torch.Tensor, cache: Any
    ) -> torch.Tensor:
        """Forward one more token of each sequence; see `Forward.step`."""
        embeddings = self.family.embed(self.model, ids)
        one = torch.ones((1, 1), dtype=torch.bool, device=self.device)
        self.tokens += len(ids)
        hidden = self.family.decode(
            self.model,
            embeddings=embeddings.unsqueeze(1),
            positions=positions.unsqueeze(2),
            mask=additive_mask(one, visible.shape[1], embeddings.dtype),
            cache=cache,
        )
        return hidden[:, 0]

    def keep(self, cache: Any, visible: torch.Tensor, rows: Sequence[int]) -> torch.Tensor:
        """Drop all sequences but `rows`; see `Forward.keep`."""
        if len(rows) < len(visible):
            cache.batch_select_indices(torch.tensor(list(rows), device=self.device))
        return visible[list(rows)]

    def grown(self, visible: torch.Tensor) -> torch.Tensor:
        """Return `visible` after a step."""
        return torch.cat([visible, visible[:, :1]], dim=1)
