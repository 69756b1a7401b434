"""Measures drawn images themselves: how well they fit their captions, and how many there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from vlmfair.papers.vl_bicle.items import Item
from vlmfair.papers.vl_bicle.measure import interval
from vlmfair.papers.vl_bicle.measure_rows import BicleRows, Place
from vlmfair.papers.vl_bicle.panels import Flags, Floats, Queries
from vlmfair.papers.vl_bicle.rates import Resamples
from vlmfair.papers.vl_bicle.retrieval import Encoder, Features, encode_images
from vlmfair.papers.vl_bicle.synthetic_items import SharedPool
from vlmfair.papers.vl_bicle.tasks import ALL, FEMALE, MALE, REAL
from vlmfair.stats.proportions import wilson_interval
from vlmfair.synthesis.gather import count_drawn
from vlmfair.text.captions import clip_scores
from vlmfair.text.counterparts import Counterparts, swap_gender
from vlmfair.text.words import GenderWords

EXPERIMENT = "synthesis"
COUNTS = ("drawn", "refused", "failed", "truncated")
_GROUPS = (MALE, FEMALE, ALL)


def measure_images(
    pool: SharedPool,
    drawn: Mapping[str, pa.Table],
    encoder: Encoder,
    words: GenderWords,
    counterparts: Counterparts,
    *,
    reader: str,
    bootstraps: int = 1000,
    seed: int = 0,
) -> pa.Table:
    """Return METRICS rows of the model `all` on each source's images of the demonstrations.

    `image_clipscore` is the mean CLIPScore of image and caption; `gender_as_captioned` the
    percentage of images that are nearer to their caption than to the same caption with its gender
    words swapped, which `reader` names; both also of the photographs, and over the demonstrations
    that all sources share. `drawn`, `refused`, `failed` and `truncated` count the captions of each
    table in `drawn` (contract DRAWN), `dropped` the demonstrations that no source uses.
    """
    rows = BicleRows()
    task = pool.items[REAL].task
    start = Place(EXPERIMENT, task.dataset, prompt=task.prompt)
    shared = pool.items[REAL].pool
    if shared:
        captions = _encode_captions(shared, encoder, words, counterparts)
        queries = _people(shared)
        resamples = Resamples(queries, bootstraps, np.random.default_rng([seed, 200]))
        for source, items in pool.items.items():
            images = encode_images(items.pool, encoder)
            place = start.at(image_source=source)
            _add_scores(rows, place, clip_scores(images, captions[0]), resamples)
            _add_readings(rows, place.at(item=reader), images, captions, queries.male)
    for source, table in drawn.items():
        counts = count_drawn(table)
        for name in COUNTS:
            place = start.at(image_source=source)
            rows.add(place, name, ALL, counts[name], counts["captions"])
    total = len(shared) + len(pool.dropped)
    rows.add(start, "dropped", ALL, len(pool.dropped), total)
    return rows.table()


def _people(shared: Sequence[Item]) -> Queries:
    names = tuple(item.sample_id for item in shared)
    return Queries(names, np.array([item.gender == MALE for item in shared], bool))


def _encode_captions(
    shared: Sequence[Item], encoder: Encoder, words: GenderWords, counterparts: Counterparts
) -> tuple[Features, Features, Flags]:
    """Return the features of captions and of swapped ones, and which could be swapped."""
    told = [item.answer for item in shared]
    swapped = [swap_gender(caption, counterparts, words) for caption in told]
    other = [new or caption for new, caption in zip(swapped, told, strict=True)]
    readable = np.array([new is not None for new in swapped], bool)
    return encoder.encode_texts(told), encoder.encode_texts(other), readable


def _add_scores(rows: BicleRows, place: Place, scores: Floats, resamples: Resamples) -> None:
    rates = resamples.mean(scores[None], np.ones((1, len(scores)), bool))
    for number, group in enumerate(_GROUPS):
        value, n = rates.values[0, 0, number], rates.n[0, number]
        ends = interval(rates.values[0, 1:, number])
        rows.add(place, "image_clipscore", group, value, n, ci=ends)


def _add_readings(
    rows: BicleRows,
    place: Place,
    images: Features,
    captions: tuple[Features, Features, Flags],
    male: Flags,
) -> None:
    told, other, readable = captions
    # Without the cut at 0 of CLIPScore, which would make pairs equal that are not.
    nearer = (images.astype(np.float64) * (told.astype(np.float64) - other)).sum(axis=1) > 0
    for group, inside in zip(_GROUPS, (male, ~male, np.ones_like(male)), strict=True):
        counted = inside & readable
        n, right = int(counted.sum()), int((nearer & counted).sum())
        ends = None
        if n:
            low, high = wilson_interval(np.array(float(right)), np.array(float(n)))
            ends = (100.0 * float(low), 100.0 * float(high))
        value = 100.0 * right / n if n else None
        rows.add(place, "gender_as_captioned", group, value, n, ci=ends)
