"""One job of drawing: the captions of a shard, from the store or by the pipeline."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch
from tqdm import tqdm

from vlmfair.contracts import conform
from vlmfair.errors import InferenceError
from vlmfair.inference.memory import keep_freed_memory
from vlmfair.models.loading import choose_device
from vlmfair.provenance import library_versions
from vlmfair.synthesis.drawing import Asked, Drawer, Drawing
from vlmfair.synthesis.generators import MEMORY, Generator, identity_of, pipeline_digest
from vlmfair.synthesis.pipelines import load_pipeline
from vlmfair.synthesis.store import ImageStore, StoredImage
from vlmfair.synthesis.table import DRAWN, OK

logger = logging.getLogger(__name__)

# Raised by hand when images of the same prompt, seed and settings may change.
SEMANTICS = 1
# What decides the bytes of an image beside the libraries that every manifest states.
_DRAWING = ("diffusers", "pillow")
Row = dict[str, Any]


def draw_shard(
    prompts: pa.Table,
    generator: Generator,
    store_root: str | os.PathLike[str],
    *,
    device: str = "auto",
    threads: int | None = None,
    memory: Path = MEMORY,
    load: Callable[[Generator], Any] = load_pipeline,
) -> tuple[pa.Table, dict[str, Any]]:
    """Draw the captions of one shard (contract PROMPTS) and return DRAWN rows and a manifest.

    What the store has is not drawn again, and each batch is stored once it is done; only whole
    images are. Raises ModelError as `load_pipeline`, InferenceError as `Drawer`, and OSError when
    an image cannot be written.
    """
    if threads is not None:
        torch.set_num_threads(threads)
    digest = pipeline_digest(generator, memory)
    store = ImageStore(store_root, identity_of(generator, digest, SEMANTICS))
    asked = prompts.to_pylist()
    found = {row["sample_id"]: store.find(row["prompt"], row["seed"]) for row in asked}
    missing = [row for row in asked if found[row["sample_id"]] is None]
    failed: dict[str, tuple[Drawing, str]] = {}
    report: dict[str, Any] = {}
    if missing:
        store.check_writable()
        chosen = choose_device(device)
        if chosen == "cpu":
            keep_freed_memory()
        drawer = Drawer(load(generator), generator, chosen)
        report = _draw(missing, drawer, generator, store, found, failed)
        report["device"] = chosen
    rows = [
        {**_settings(row, generator, digest), **_outcome(found[name], failed.get(name))}
        for row in asked
        for name in [row["sample_id"]]
    ]
    manifest = {
        "generator": generator.name,
        "title": generator.title or generator.name,
        "source": generator.source,
        "weights": digest,
        "store": store.digest,
        "semantics": SEMANTICS,
        "settings": generator.drawn_with(),
        "images": {"stored": len(asked) - len(missing), "asked": len(missing)},
        "damaged": store.damaged,
        "drawing": report,
        "libraries": {**library_versions(), **{name: metadata.version(name) for name in _DRAWING}},
    }
    return conform(pa.Table.from_pylist(rows, DRAWN.schema), DRAWN), manifest


def _draw(
    missing: Sequence[Row],
    drawer: Drawer,
    generator: Generator,
    store: ImageStore,
    found: dict[str, StoredImage | None],
    failed: dict[str, tuple[Drawing, str]],
) -> dict[str, Any]:
    """Draw what is missing into `found` and `failed`; return what it took."""
    waiting = [Asked(row["prompt"], row["seed"]) for row in missing]
    names = [row["sample_id"] for row in missing]
    started, place = time.monotonic(), 0
    with tqdm(
        total=len(waiting), desc=generator.name, unit=" images", file=sys.stderr, mininterval=5
    ) as progress:
        for batch in drawer.draw(waiting):
            for one, drawing in batch:
                cut = ",".join(drawer.cutting(one.prompt))
                if drawing.png is not None:
                    facts = {"truncated_by": cut, "batch_size": drawing.batch_size}
                    found[names[place]] = store.add(one.prompt, one.seed, drawing.png, facts)
                else:
                    logger.warning(
                        "%s: %s (%s)", names[place], drawing.status, drawing.detail or "no reason"
                    )
                    failed[names[place]] = (drawing, cut)
                place += 1
            progress.update(len(batch))
    seconds = round(time.monotonic() - started, 2)
    return {
        "seconds": seconds,
        "seconds_per_image": round(seconds / len(waiting), 3),
        "offload": drawer.placement,
        "batch_size": drawer.batch_size,
        "given_up": drawer.given_up,
    }


def _settings(row: Row, generator: Generator, digest: str) -> Row:
    names = ("sample_id", "gender", "prompt", "seed")
    settings = generator.drawn_with()
    own = ("pipeline", "steps", "guidance", "true_guidance", "height", "width", "dtype")
    return {
        **{name: row[name] for name in names},
        **{name: settings[name] for name in own},
        "generator": generator.name,
        "source": generator.source,
        "weights": digest,
    }


def _outcome(stored: StoredImage | None, failed: tuple[Drawing, str] | None) -> Row:
    if stored is not None:
        cut = str(stored.facts.get("truncated_by", ""))
        size = int(stored.facts.get("batch_size", 1))
        image: Row = {"image": stored.path.as_posix(), "image_sha256": stored.sha256}
        return {**image, **_common(OK, "", cut, size)}
    if failed is None:
        raise InferenceError(
            "the pipeline left captions out. Run again; the images that are drawn are kept."
        )
    drawing, cut = failed
    return _common(drawing.status, drawing.detail, cut, drawing.batch_size)


def _common(status: str, detail: str, cut: str, size: int) -> Row:
    return {
        "status": status,
        "detail": detail,
        "truncated": bool(cut),
        "truncated_by": cut,
        "batch_size": size,
    }
