"""GRAS requests: every trait in every wording asked about every image (section 3.2)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from vlmfair.contracts import REQUESTS, conform
from vlmfair.errors import ConfigError, ContractError
from vlmfair.inference.sharding import shard_count
from vlmfair.models.registry import ModelEntry
from vlmfair.papers.gras.questions import Prompts, Trait
from vlmfair.provenance import content_id

LABEL_SET = "yes_no"
_WORD = pa.dictionary(pa.int32(), pa.string())
# Request ids are made and packed in steps, so that 2.5 million of them are never Python objects.
_IMAGES_PER_STEP = 200


def plan_requests(
    images: pa.Table,
    traits: Sequence[Trait],
    prompts: Prompts,
    entry: ModelEntry,
    style: str,
    images_per_shard: int,
) -> pa.Table:
    """Return one request per image, trait and template, in that order, sorted by shard.

    `images` follows the SAMPLES contract; its row order decides the shards. `entry` gives the
    prompt's family and what is done to the images of each dataset (the released scripts resize
    AI-Face to 256x256 and leave FairFace as it is). The result is a REQUESTS table with `trait`
    (dictionary), `template` (int8, 1 to 5) and `rendering`. Raises ConfigError on an empty trait
    list or an unknown style, ContractError on an image table without rows.
    """
    if not traits:
        raise ConfigError("gras.traits is empty. List at least one trait word, or write all.")
    if not len(images):
        raise ContractError(
            "GRAS has no images. Check the selection and image_problems.parquet of this suite."
        )
    shard_count(len(images), images_per_shard)
    questions = list(itertools.product(range(len(traits)), range(1, len(prompts.templates) + 1)))
    texts = [
        prompts.user_text(entry.family, style, traits[word].word, template)
        for word, template in questions
    ]
    rendering = "chat" if prompts.wrapping[entry.family] == "chat_template" else "raw"
    transforms = image_transforms(images, entry.image_transforms)
    rows = len(images) * len(questions)
    per_image = np.repeat(np.arange(len(images), dtype=np.int32), len(questions))
    per_question = np.tile(np.arange(len(questions), dtype=np.int32), len(images))
    trait_index = np.asarray([word for word, _ in questions], np.int32)
    template_number = np.asarray([template for _, template in questions], np.int8)
    columns: dict[str, pa.Array | pa.ChunkedArray] = {
        "request_id": pa.chunked_array(_request_ids(images, transforms, texts, rendering)),
        "shard": pa.array(per_image // np.int32(images_per_shard), pa.int32()),
        "text": _words(texts, per_question),
        "mode": _constant("score", rows),
        "label_set": _constant(LABEL_SET, rows),
        "assistant_prefix": _constant("", rows),
        "image_transform": _words(transforms, per_image),
        "trait": _words([trait.word for trait in traits], trait_index[per_question]),
        "template": pa.array(template_number[per_question]),
        "rendering": _constant(rendering, rows),
    }
    for name in ("sample_id", "image", "image_sha256"):
        columns[name] = _words(images[name].to_pylist(), per_image)
    return conform(pa.table(columns), REQUESTS)


def image_transforms(images: pa.Table, by_dataset: Mapping[str, str]) -> list[str]:
    """Return the transform of each image, `none` for datasets that the model's entry leaves out."""
    return [by_dataset.get(dataset, "none") for dataset in images["dataset"].to_pylist()]


def _request_ids(
    images: pa.Table, transforms: Sequence[str], texts: Sequence[str], rendering: str
) -> Iterator[pa.Array]:
    samples = images["sample_id"].to_pylist()
    contents = images["image_sha256"].to_pylist()
    # Question by question the text is the same, so that its long string is digested once.
    text_ids = [content_id(rendering, text, "", "score", LABEL_SET) for text in texts]
    for start in range(0, len(samples), _IMAGES_PER_STEP):
        stop = min(start + _IMAGES_PER_STEP, len(samples))
        yield pa.array(
            [
                content_id(image_id, text_id)
                for image_id in (
                    content_id(samples[row], contents[row], transforms[row])
                    for row in range(start, stop)
                )
                for text_id in text_ids
            ],
            pa.string(),
        )


def _words(values: Sequence[str], indices: np.ndarray) -> pa.DictionaryArray:
    """Return a dictionary column; equal values share a place, as dictionaries demand."""
    unique = list(dict.fromkeys(values))
    place = {value: index for index, value in enumerate(unique)}
    renamed = np.asarray([place[value] for value in values], np.int32)[indices]
    return pa.DictionaryArray.from_arrays(pa.array(renamed), pa.array(unique, pa.string()))


def _constant(value: str, rows: int) -> pa.DictionaryArray:
    return _words([value], np.zeros(rows, np.int32))
