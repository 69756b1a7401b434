"""Demonstrations whose images are drawn from their captions (section 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from vlmfair.contracts import assert_same_ids, conform
from vlmfair.errors import ContractError
from vlmfair.inference.sharding import shard_count
from vlmfair.papers.vl_bicle.items import Item, Items, LeftOut
from vlmfair.papers.vl_bicle.tasks import POOL, QUERIES, REAL
from vlmfair.synthesis.table import OK, PROMPTS, image_seed

NO_IMAGE = "no_synthetic_image"
Image = tuple[str, str]


@dataclass(frozen=True)
class SharedPool:
    """One task's items by source of images: `real` and each generator.

    All have the same demonstrations in the same order with the same captions; only the images
    differ. `dropped` are those that one of the generators gave no image of.
    """

    items: Mapping[str, Items]
    dropped: tuple[LeftOut, ...]


def plan_prompts(items: Items, *, seed: int, shards: int) -> pa.Table:
    """Return the captions of the pool as prompts (contract PROMPTS), spread over shards.

    They are the texts of the demonstrations, each with an explicit gender word.
    """
    size = max(1, shard_count(len(items.pool), shards))
    rows = [
        {
            "sample_id": item.sample_id,
            "gender": item.gender,
            "prompt": item.answer,
            "seed": image_seed(seed, item.sample_id, item.answer),
            "shard": place // size,
        }
        for place, item in enumerate(items.pool)
    ]
    return conform(pa.Table.from_pylist(rows, PROMPTS.schema), PROMPTS)


def share_pool(items: Items, drawn: Mapping[str, pa.Table]) -> SharedPool:
    """Return the items by source of images, `drawn` being the tables of generators (DRAWN).

    A demonstration without an image of any generator is dropped from all sources, the real one
    among them, with the reason `no_synthetic_image`: so what differs between sources is the images
    alone. Raises ContractError when a table is about other captions than the pool's, and when an
    image that was drawn is a query's.
    """
    images = {source: _images(items, table, source) for source, table in drawn.items()}
    kept = [
        item for item in items.pool if all(item.sample_id in found for found in images.values())
    ]
    names = {item.sample_id for item in kept}
    dropped = tuple(
        LeftOut(item.sample_id, POOL, NO_IMAGE)
        for item in items.pool
        if item.sample_id not in names
    )
    left_out = (*items.left_out, *dropped)
    shared = {REAL: replace(items, pool=tuple(kept), left_out=left_out)}
    for source, found in images.items():
        pool = tuple(_with_image(item, found[item.sample_id]) for item in kept)
        shared[source] = replace(items, pool=pool, left_out=left_out)
    return SharedPool(shared, dropped)


def _images(items: Items, drawn: pa.Table, source: str) -> dict[str, Image]:
    """Return path and SHA-256 of each drawn image by sample."""
    if source == REAL:
        raise ContractError(
            f"vl_bicle.synthesis: a generator is called {REAL}, as photographs are. Rename it."
        )
    names = ["sample_id", "prompt", "status", "image", "image_sha256"]
    rows = drawn.select(names).to_pylist()
    expected = {item.sample_id: item.answer for item in items.pool}
    assert_same_ids(list(expected), [row["sample_id"] for row in rows], f"images of {source}")
    other = [row for row in rows if row["prompt"] != expected[row["sample_id"]]]
    if other:
        raise ContractError(
            f"vl_bicle: the image of {other[0]['sample_id']} by {source} was drawn from another "
            f"caption than its demonstration's. Plan and draw the images of this dataset again."
        )
    asked = {item.image_sha256 for item in items.queries}
    found = {
        row["sample_id"]: (str(row["image"]), str(row["image_sha256"]))
        for row in rows
        if row["status"] == OK
    }
    if any(sha256 in asked for _, sha256 in found.values()):
        raise ContractError(
            f"vl_bicle: {source} drew the very image of one of the {QUERIES}. "
            f"Check that the generator's store holds drawn images only."
        )
    return found


def _with_image(item: Item, image: Image) -> Item:
    return replace(item, image=image[0], image_sha256=image[1])
