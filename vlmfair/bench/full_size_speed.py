"""The plain form and ours on the same questions in the same process, for the full-size run."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vlmfair.bench.timing import one_thread
from vlmfair.inference.shard import answer_shard
from vlmfair.models.registry import ModelEntry

# One whole forward for each question, as the released scripts do; the vision tower once for each
# image, and the language model for each question; what a run takes.
MODES = ("full_forward", "image_features", "auto")


def sample_questions(requests: pa.Table, images: int) -> pa.Table:
    """Return all questions about `images` images, evenly spaced in the order of the requests."""
    samples = pc.unique(requests["sample_id"].cast(pa.string()))
    spaced = np.linspace(0, len(samples) - 1, min(images, len(samples))).round().astype(int)
    chosen = samples.take(pa.array(np.unique(spaced)))
    return requests.filter(pc.is_in(requests["sample_id"].cast(pa.string()), value_set=chosen))


def measure_speed(
    questions: pa.Table,
    entry: ModelEntry,
    labels: Mapping[str, Sequence[str]],
    temperatures: Sequence[float],
    *,
    batch_size: int,
    repeats: int = 3,
    modes: Sequence[str] = MODES,
) -> dict[str, dict[str, float]]:
    """Answer the same questions in each mode, in turn, and return the speed of each.

    Each time the whole way of an inference job is gone, from loading the model to stored answers,
    with an empty store and one CPU thread. For each mode: `questions`, the median `cpu_seconds`
    and `questions_per_second` of CPU time. The first answers of all, of one image, warm up and are
    not counted.
    """
    warm_up = sample_questions(questions, 1)
    times: dict[str, list[float]] = {mode: [] for mode in modes}
    with one_thread():
        for mode in modes:
            _answer(warm_up, entry, labels, temperatures, batch_size, mode)
        for _ in range(repeats):
            for mode in modes:
                start = time.process_time()
                _answer(questions, entry, labels, temperatures, batch_size, mode)
                times[mode].append(time.process_time() - start)
    seconds = {mode: statistics.median(spent) for mode, spent in times.items()}
    return {
        mode: {
            "questions": float(len(questions)),
            "cpu_seconds": spent,
            "questions_per_second": len(questions) / spent,
        }
        for mode, spent in seconds.items()
    }


def _answer(
    questions: pa.Table,
    entry: ModelEntry,
    labels: Mapping[str, Sequence[str]],
    temperatures: Sequence[float],
    batch_size: int,
    mode: str,
) -> None:
    with tempfile.TemporaryDirectory() as store:
        answer_shard(
            questions,
            None,
            entry,
            labels,
            temperatures,
            Path(store),
            device="cpu",
            batch_size=batch_size,
            threads=1,
            engine_mode=mode,
        )
