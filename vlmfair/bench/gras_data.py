"""Made-up judgements of the paper's size, to time the statistics of GRAS on."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa

from vlmfair.contracts import JUDGEMENTS, SAMPLES, conform
from vlmfair.papers.gras.cube import TEMPLATES
from vlmfair.papers.gras.measure_attributes import ATTRIBUTES

PER_CELL, PER_TONE, TRAITS = 51, 144, 100


def draw_images(per_cell: int = PER_CELL, per_tone: int = PER_TONE) -> pa.Table:
    """Return a SAMPLES table balanced like the paper's: 70 cells of FairFace, 10 skin tones."""
    gender, race, age, tone = (attribute.groups for attribute in ATTRIBUTES)
    cells = pd.MultiIndex.from_product([range(per_cell), gender, race, age])
    faces = cells.to_frame(index=False, name=["image", "gender", "race", "age"])
    tones = pd.MultiIndex.from_product([range(per_tone), tone])
    scenes = tones.to_frame(index=False, name=["image", "skin_tone"])
    frame = pd.concat([faces.assign(dataset="fairface"), scenes.assign(dataset="ai_face")])
    frame["sample_id"] = [f"{name}/{at:05d}.jpg" for at, name in enumerate(frame["dataset"])]
    frame["image"] = frame["image_sha256"] = frame["sample_id"]
    return conform(pa.Table.from_pandas(frame, preserve_index=False), SAMPLES)


def draw_judgements(images: pa.Table, *, traits: int = TRAITS, seed: int = 0) -> pa.Table:
    """Return a JUDGEMENTS table with P("Yes") drawn from beta distributions, rows shuffled.

    Every question has its own mean, every group its own small shift of it.
    """
    random = np.random.default_rng(seed)
    shape = (len(images), traits, len(TEMPLATES))
    level = random.normal(0, 1, shape[1:]) + random.normal(0, 0.5, (shape[0], 1, 1))
    for attribute in ATTRIBUTES:
        groups = pd.Categorical(images[attribute.name].to_pandas(), categories=attribute.groups)
        shifts = random.normal(0, 0.05, (len(attribute.groups) + 1, traits, 1))
        level = level + shifts[groups.codes]
    mean = 1 / (1 + np.exp(-level))
    p = random.beta(8 * mean, 8 * (1 - mean)).ravel()
    order = random.permutation(p.size)
    image, trait, template = np.unravel_index(order, shape)
    words = [f"trait-{at:03d}" for at in range(traits)]
    return conform(
        pa.table(
            {
                "request_id": pa.array(order).cast(pa.string()),
                "sample_id": _words(image, images["sample_id"].to_pylist()),
                "status": _words(np.zeros(p.size), ["ok"]),
                "rule": _words(np.zeros(p.size), ["softmax"]),
                "trait": _words(trait, words),
                "template": pa.array(template + 1, pa.int8()),
                "p_yes": p[order],
            }
        ),
        JUDGEMENTS,
    )


def _words(codes: np.ndarray, words: list[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(words))
