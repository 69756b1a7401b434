"""Memory of questions about an image: the engine against a batch that repeats the beginning."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

from vlmfair.bench.recorded_tokens import Ids
from vlmfair.bench.repeated_batch import BATCH, repeated_logits
from vlmfair.bench.small_llava import SmallLlava, load_small_llava
from vlmfair.bench.timing import peak_memory
from vlmfair.inference.engine import open_engine
from vlmfair.inference.prepare import Prepared, Preparer

TEMPERATURES = (1.0,)


def compare_memory(folder: Path, recorded: Mapping[str, Ids]) -> dict[str, float]:
    """Measure the small LLaVA in a folder; return `peak_memory_ratio` and megabytes (10^6 bytes).

    Peak memory above that of the loaded model, each in a process of its own, for the scores of
    all recorded questions about one image. A first whole forward is over before it counts, because
    weights that are mapped from a file only then come into memory.
    """
    load = functools.partial(_load, folder, recorded)
    ours = peak_memory(load, score_packed).above
    repeated = peak_memory(load, score_repeated).above
    return {
        "peak_memory_ratio": ours / repeated,
        "peak_memory_megabytes": ours / 1e6,
        "peak_memory_repeated_megabytes": repeated / 1e6,
        "peak_memory_questions": float(len(recorded)),
        "peak_memory_repeated_batch": float(BATCH),
    }


def _load(folder: Path, recorded: Mapping[str, Ids]) -> SmallLlava:
    small = load_small_llava(folder, recorded)
    warm_up = open_engine(small.loaded, small.renderer(), model=small.model, mode="full_forward")
    for _ in warm_up.score(small.queries(small.draw_image(0))[:1], TEMPERATURES):
        pass
    return small


def score_packed(small: SmallLlava) -> None:
    """Score all questions about an image as an inference job does, its self-check included."""
    engine = open_engine(small.loaded, small.renderer(), model=small.model)
    for _ in engine.score(small.queries(small.draw_image(0)), TEMPERATURES):
        pass


def score_repeated(small: SmallLlava) -> None:
    """Score all questions about an image in batches that repeat the shared beginning."""
    preparer = Preparer(small.loaded, small.renderer())
    prepared = [
        item
        for query in small.queries(small.draw_image(0))
        if isinstance(item := preparer.prepare(query, "repeated"), Prepared)
    ]
    repeated_logits(small.loaded.family, small.model, prepared).float().logsumexp(-1)
