"""In-context demonstrations by similarity: SIIR and SITR (section 3.2, appendix 0.I)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from PIL import Image

from vlmfair.errors import ConfigError, ContractError
from vlmfair.inference.images import open_image
from vlmfair.models.chat import ImageRef
from vlmfair.papers.vl_bicle.contexts import (
    Cell,
    contexts_table,
    positive_shots,
    shuffled,
)
from vlmfair.papers.vl_bicle.items import Item, Items
from vlmfair.papers.vl_bicle.tasks import (
    BALANCED_POOL,
    BY_IMAGE,
    BY_TEXT,
    CAPTIONING,
    GENDERS,
    REAL,
    RETRIEVED,
)

BATCH = 64
# Cosines differ between machines in their last digits; equal ones are told apart by sample ids.
DECIMALS = 6
Features = NDArray[np.float32]


class Encoder(Protocol):
    """Turns images and texts into unit vectors of one space, as CLIP does."""

    def encode_images(self, images: Sequence[Image.Image]) -> Features:
        """Return [images, width]."""
        ...

    def encode_texts(self, texts: Sequence[str]) -> Features:
        """Return [texts, width]."""
        ...


@dataclass(frozen=True)
class PoolFeatures:
    """Unit vectors of a task's queries and pool, in the order of its items: [items, width].

    `texts` are those of the demonstrations' captions.
    """

    queries: Features
    images: Features
    texts: Features


def encode_items(items: Items, encoder: Encoder) -> PoolFeatures:
    """Return what retrieval compares. Raises as `open_image` on an image that cannot be read."""
    return PoolFeatures(
        queries=encode_images(items.queries, encoder),
        images=encode_images(items.pool, encoder),
        texts=encoder.encode_texts([item.answer for item in items.pool]),
    )


def encode_images(items: Sequence[Item], encoder: Encoder) -> Features:
    """Return the features of items' images, [items, width]."""
    parts = []
    for start in range(0, len(items), BATCH):
        batch = items[start : start + BATCH]
        opened = [open_image(ImageRef(item.image, item.image_sha256)) for item in batch]
        parts.append(encoder.encode_images(opened))
    return np.concatenate(parts) if parts else np.empty((0, 0), np.float32)


def balanced_pool(items: Items, *, seed: int) -> NDArray[np.int64]:
    """Return the places in the pool that stay when the larger gender is cut to the smaller one."""
    by_gender = [[item for item in items.pool if item.gender == gender] for gender in GENDERS]
    size = min(len(own) for own in by_gender)
    key = ("vl_bicle", str(seed), items.task.dataset, "balanced_pool")
    kept = {item.sample_id for own in by_gender for item in shuffled(own, *key)[:size]}
    places = [place for place, item in enumerate(items.pool) if item.sample_id in kept]
    return np.array(places, np.int64)


def most_similar(queries: Features, candidates: Features, number: int) -> NDArray[np.int64]:
    """Return the places of each query's most similar candidates, most similar first.

    [queries, number]; of equal candidates the earlier one comes first.
    """
    cosines = np.asarray(queries, np.float64) @ np.asarray(candidates, np.float64).T
    order = np.argsort(-np.round(cosines, DECIMALS), axis=1, kind="stable")
    return np.asarray(order[:, :number], np.int64)


def retrieved_contexts(
    items: Items,
    setting: str,
    features: PoolFeatures,
    *,
    shots: Sequence[int],
    seed: int,
) -> pa.Table:
    """Return the contexts of every query: its k most similar demonstrations, the closest last.

    The table is that of `shared_contexts` with `query` filled in. Raises ConfigError on another
    setting, a task without captions, and a pool of fewer demonstrations than shots.
    """
    if setting not in RETRIEVED:
        raise ConfigError(
            f"vl_bicle.settings: {setting} retrieves nothing. Use one of {', '.join(RETRIEVED)}."
        )
    if items.task.experiment != CAPTIONING:
        raise ConfigError(
            f"vl_bicle: {setting} compares captions, which {items.task.name} lacks (section 4). "
            f"Leave it out of this task's settings."
        )
    _check_shapes(items, features)
    numbers = positive_shots(shots)
    balanced = setting.endswith(BALANCED_POOL)
    places = balanced_pool(items, seed=seed) if balanced else np.arange(len(items.pool))
    if len(places) < max(numbers):
        raise ConfigError(
            f"vl_bicle: {setting} with {max(numbers)} demonstrations needs as many images in the "
            f"pool of {items.task.dataset}, and there are {len(places)}. Lower vl_bicle.shots or "
            f"make the pool larger."
        )
    by_method: Mapping[str, Features] = {BY_IMAGE: features.images, BY_TEXT: features.texts}
    candidates = by_method[setting.removesuffix(BALANCED_POOL)][places]
    nearest = places[most_similar(features.queries, candidates, max(numbers))]
    return contexts_table(_cells(items, setting, numbers, nearest))


def _cells(
    items: Items, setting: str, numbers: Sequence[int], nearest: NDArray[np.int64]
) -> Iterator[Cell]:
    for query, places in zip(items.queries, nearest, strict=True):
        # The closest stands next to the query.
        for number in numbers:
            chosen = [items.pool[place] for place in places[:number][::-1]]
            yield items.task, setting, number, 1, REAL, query.sample_id, chosen


def _check_shapes(items: Items, features: PoolFeatures) -> None:
    expected = (len(items.queries), len(items.pool), len(items.pool))
    found = tuple(len(part) for part in (features.queries, features.images, features.texts))
    if found != expected:
        raise ContractError(
            f"vl_bicle: there are features of {found[0]} queries and {found[1]} demonstrations "
            f"for {expected[0]} and {expected[1]}. Encode this dataset again."
        )
