"""All images of one generator: each caption once, none missing, in a folder of their own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from vlmfair.contracts import assert_same_ids, conform
from vlmfair.errors import InferenceError
from vlmfair.provenance import atomic_path, sha256_of_file
from vlmfair.synthesis.table import DRAWN, FAULTS, OK, REFUSED


def count_drawn(drawn: pa.Table) -> dict[str, int]:
    """Return how many captions were drawn, refused, failed, and cut by a tokenizer."""
    status = drawn["status"].to_pylist()
    return {
        "captions": len(status),
        "drawn": status.count(OK),
        "refused": status.count(REFUSED),
        "failed": sum(status.count(fault) for fault in FAULTS),
        "truncated": sum(drawn["truncated"].to_pylist()),
    }


def check_drawn(drawn: pa.Table, tolerated: float, generator: str) -> None:
    """Raise InferenceError when more than a share of the captions has no image.

    `tolerated` is between 0 and 1.
    """
    without = [row for row in drawn.select(["status", "detail"]).to_pylist() if row["status"] != OK]
    if len(without) > tolerated * len(drawn):
        first = without[0]
        raise InferenceError(
            f"{generator}: {len(without)} of {len(drawn)} captions have no image (first: "
            f"{first['status']}, {first['detail']}). Mend the cause and run again; the images that "
            f"are drawn are kept."
        )


def gather_images(
    prompts: pa.Table, shards: Sequence[pa.Table], folder: Path, generator: str
) -> pa.Table:
    """Join the shards of one generator in order of sample ids, with the images put into `folder`.

    Images are linked from the store, or copied where links do not work, and `image` names them
    there. Raises ContractError unless each caption is there exactly once, InferenceError when an
    image is no longer in the store.
    """
    drawn = pa.concat_tables(shards)
    assert_same_ids(
        prompts["sample_id"].to_pylist(), drawn["sample_id"].to_pylist(), f"images of {generator}"
    )
    drawn = drawn.sort_by("sample_id")
    folder.mkdir(parents=True, exist_ok=True)
    places = [
        None if image is None else _put(Path(image), sha256, folder, generator)
        for image, sha256 in zip(drawn["image"].to_pylist(), drawn["image_sha256"].to_pylist())
    ]
    column = drawn.column_names.index("image")
    return conform(drawn.set_column(column, "image", pa.array(places, pa.string())), DRAWN)


def _put(image: Path, sha256: str, folder: Path, generator: str) -> str:
    target = folder / image.name
    if not image.is_file() or sha256_of_file(image) != sha256:
        raise InferenceError(
            f"{generator}: {image} is no longer what was drawn. Delete it and the shards in "
            f"{folder.parent / 'shards'}, and run again; the other images are kept."
        )
    if target.is_file() and sha256_of_file(target) == sha256:
        return target.as_posix()
    with atomic_path(target) as temporary:
        linked = False
        with suppress(OSError):
            temporary.unlink()
            os.link(image, temporary)
            linked = True
        if not linked:
            shutil.copyfile(image, temporary)
    return target.as_posix()


def manifest_of(drawn: pa.Table, shards: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what the manifest of all images of a generator states."""
    settings = dict(shards[0]) if shards else {}
    shared = ("generator", "title", "source", "weights", "store", "semantics", "settings")
    return {
        **{name: settings[name] for name in shared if name in settings},
        "counts": count_drawn(drawn),
        "shards": [dict(shard) for shard in shards],
    }
