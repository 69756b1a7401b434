"""Groups of prompts that may share a beginning, as arrays, with the tree of what they share."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from vlmfair.errors import InferenceError
from vlmfair.inference.prefix import Segment, build_tree
from vlmfair.inference.prepare import Prepared
from vlmfair.models.families.base import Family, ImageFeatures

# Symbols of image tokens start behind all token ids; each image has room for this many tokens.
_FIRST_IMAGE_SYMBOL = 1 << 40
_TOKENS_PER_IMAGE = 1 << 20
REMEMBERED_PROMPTS = 8192
REMEMBERED_LAYOUTS = 4

ImageKey = tuple[str, str]


@dataclass(frozen=True, eq=False)
class PromptArrays:
    """One prompt: `ids` [tokens], `positions` [axes, tokens], and where its image tokens are.

    `feature_rows` [tokens] counts the prompt's image tokens from 0, and is -1 for text.
    """

    ids: NDArray[np.int64]
    positions: torch.Tensor
    feature_rows: NDArray[np.int64]
    prompt_ids: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Layout:
    """What a group's prompts look like whatever their images show: arrays and the tree.

    `rows[i]` [tokens] are the rows of prompt i in the group's table of image features, or -1.
    """

    arrays: tuple[PromptArrays, ...]
    rows: tuple[NDArray[np.int64], ...]
    tree: Segment


def image_keys(prepared: Prepared) -> list[ImageKey]:
    """Return what tells each image of a prompt apart: its content and transform."""
    return [(ref.sha256, ref.transform) for ref in prepared.refs]


def group_prompts(prepared: Sequence[Prepared]) -> list[list[Prepared]]:
    """Return prompts by their first image: those of different ones share next to nothing."""
    groups: dict[ImageKey | None, list[Prepared]] = {}
    for item in prepared:
        keys = image_keys(item)
        groups.setdefault(keys[0] if keys else None, []).append(item)
    return list(groups.values())


class Layouts:
    """Builds layouts, and remembers them: GRAS asks the same 500 questions about every image."""

    def __init__(self, family: Family, model: Any, name: str) -> None:
        self._family = family
        self._model = model
        self._name = name
        self._image_token = family.image_token_id(model)
        self._arrays: OrderedDict[tuple[Any, ...], PromptArrays] = OrderedDict()
        self._layouts: OrderedDict[tuple[Any, ...], Layout] = OrderedDict()

    def layout(
        self,
        group: Sequence[Prepared],
        features: dict[ImageKey, ImageFeatures],
        pack_tokens: int,
        most_members: int | None = None,
    ) -> Layout:
        """Return the layout of a group; `features` holds its images in the order of the table.

        Raises InferenceError when a prompt has not as many image tokens as its images have rows.
        """
        sizes = [len(image.embeddings) for image in features.values()]
        numbers = {key: number for number, key in enumerate(features)}
        arrays = [self._prompt(item) for item in group]
        images = [tuple(numbers[key] for key in image_keys(item)) for item in group]
        # Layouts hold on to the arrays, so that an id cannot come to mean another prompt.
        key = (
            tuple(map(id, arrays)),
            tuple(images),
            tuple(sizes),
            pack_tokens,
            most_members,
        )
        found = self._layouts.get(key)
        if found is None:
            found = self._build(group, arrays, images, sizes, pack_tokens, most_members)
            self._layouts[key] = found
            while len(self._layouts) > REMEMBERED_LAYOUTS:
                self._layouts.popitem(last=False)
        else:
            self._layouts.move_to_end(key)
        return found

    def _prompt(self, item: Prepared) -> PromptArrays:
        key = (id(item.ids), item.shapes())
        found = self._arrays.get(key)
        if found is None:
            ids = np.array(item.ids, np.int64)
            is_image = ids == self._image_token if item.images else np.zeros(len(ids), bool)
            rows = np.where(is_image, np.cumsum(is_image) - 1, -1)
            positions = self._family.positions(self._model, item.ids, item.images)
            found = PromptArrays(ids, positions, rows, item.ids)
            self._arrays[key] = found
            while len(self._arrays) > REMEMBERED_PROMPTS:
                self._arrays.popitem(last=False)
        return found

    def _build(
        self,
        group: Sequence[Prepared],
        arrays: Sequence[PromptArrays],
        images: Sequence[tuple[int, ...]],
        sizes: Sequence[int],
        pack_tokens: int,
        most_members: int | None,
    ) -> Layout:
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        symbols, rows = [], []
        for item, prompt, numbers in zip(group, arrays, images, strict=True):
            places = prompt.feature_rows
            is_image = places >= 0
            in_table = _concatenated([np.arange(starts[n], starts[n + 1]) for n in numbers])
            in_images = _concatenated(
                [_FIRST_IMAGE_SYMBOL + n * _TOKENS_PER_IMAGE + np.arange(sizes[n]) for n in numbers]
            )
            if len(in_table) != is_image.sum():
                raise InferenceError(
                    f"{self._name}: sample {item.query.sample_id or item.query.request_id}: the "
                    f"prompt has {is_image.sum()} image tokens, and its images fill "
                    f"{len(in_table)}. Check that the processor's files belong to the model."
                )
            own = np.array(prompt.ids)
            own[is_image] = in_images
            symbols.append(own)
            own_rows = np.full(len(places), -1, np.int64)
            own_rows[is_image] = in_table
            rows.append(own_rows)
        tree = build_tree(symbols, pack_tokens, most_members)
        return Layout(tuple(arrays), tuple(rows), tree)


def _concatenated(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)
