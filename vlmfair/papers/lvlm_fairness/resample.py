"""Gender disparity in balanced samples of 500, 1000 and 1500 per gender (section 4.2, Table 12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vlmfair.papers.lvlm_fairness.panels import Flags
from vlmfair.stats.bootstrap import bootstrap_sums
from vlmfair.stats.moments import Floats

PAPER_SIZES = (500, 1000, 1500)
PAPER_DRAWS = 20


@dataclass(frozen=True)
class BalancedDisparities:
    """First minus second group's recall in each balanced sample: `drawn` [models, sizes, draws]."""

    sizes: tuple[int, ...]
    raw: Floats
    drawn: Floats

    @property
    def mean(self) -> Floats:
        """The mean over the draws, [models, sizes]; NaN where a group is smaller than the size."""
        return np.asarray(self.drawn.mean(axis=2))

    @property
    def standard_error(self) -> Floats:
        """The draws' standard deviation over the root of their number, [models, sizes]."""
        draws = self.drawn.shape[2]
        if draws < 2:
            return np.full(self.drawn.shape[:2], np.nan)
        return np.asarray(self.drawn.std(axis=2, ddof=1) / np.sqrt(draws))


def resample_disparities(
    right: Flags,
    first: Flags,
    second: Flags,
    *,
    sizes: Sequence[int] = PAPER_SIZES,
    draws: int = PAPER_DRAWS,
    seed: int = 0,
) -> BalancedDisparities:
    """Return the disparities of models in samples that hold equally many of both groups.

    `right` is [models, images]; `first` and `second` mark the groups, [images]. Images are drawn
    without replacement, the same ones for each model: the paper's printed errors shrink with the
    size as they do without it.
    """
    groups = (np.flatnonzero(first), np.flatnonzero(second))
    with np.errstate(invalid="ignore"):
        raw = _recall(right, groups[0]) - _recall(right, groups[1])
    drawn = np.full((len(right), len(sizes), draws), np.nan)
    for place, size in enumerate(sizes):
        if size < 1 or size > min(len(group) for group in groups):
            continue
        random = np.random.default_rng([seed, size])
        means = [right[:, draw_images(group, size, draws, random)].mean(axis=2) for group in groups]
        drawn[:, place] = means[0] - means[1]
    return BalancedDisparities(tuple(sizes), raw, drawn)


def bootstrap_disparities(
    right: Flags,
    first: Flags,
    second: Flags,
    *,
    sizes: Sequence[int],
    draws: int,
    replicates: int,
    seed: int = 0,
) -> Floats:
    """Return raw disparities and means of balanced samples in resampled images.

    [replicates, models, 1 + sizes], the raw one first; arguments as of `resample_disparities`.
    Images are drawn with replacement within their group, and balanced samples from what was drawn:
    of k right answers in n, a sample without replacement has a hypergeometric number. So the
    spread is that of the images and of the samples together. NaN as in `BalancedDisparities`.
    """
    random = np.random.default_rng([seed, 0, 1])
    members = (np.flatnonzero(first), np.flatnonzero(second))
    n = [len(images) for images in members]
    found = np.full((replicates, len(right), 1 + len(sizes)), np.nan)
    if not min(n):
        return found
    counts = [
        bootstrap_sums(right[:, images].T.astype(np.float64), replicates=replicates, random=random)
        for images in members
    ]
    found[:, :, 0] = counts[0] / n[0] - counts[1] / n[1]
    for place, size in enumerate(sizes, start=1):
        if not 1 <= size <= min(n):
            continue
        for model in range(len(right)):
            # The same numbers for each model: one more model leaves the others' as they are.
            again = np.random.default_rng([seed, size, 1])
            means = [
                again.hypergeometric(k, total - k, size, (draws, replicates)).mean(axis=0) / size
                for k, total in zip((c[:, model].astype(np.int64) for c in counts), n, strict=True)
            ]
            found[:, model, place] = means[0] - means[1]
    return found


def draw_images(
    images: np.ndarray, size: int, draws: int, random: np.random.Generator
) -> np.ndarray:
    """Return [draws, size] of the images, each draw without replacement."""
    order = random.random((draws, len(images)))
    chosen = np.argpartition(order, size - 1, axis=1)[:, :size]
    return np.asarray(images[chosen])


def _recall(right: Flags, images: np.ndarray) -> Floats:
    if not len(images):
        return np.full(len(right), np.nan)
    return np.asarray(right[:, images].mean(axis=1))
