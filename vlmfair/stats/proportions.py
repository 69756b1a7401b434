"""Proportions of right answers: their intervals, and tests and sizes of their differences."""

from __future__ import annotations

import functools
import math

import numpy as np
from scipy import special, stats

from vlmfair.stats.moments import Floats


def wilson_interval(
    count: Floats, total: Floats, *, confidence: float = 0.95
) -> tuple[Floats, Floats]:
    """Return the Wilson score interval of count / total; NaN where the total is 0.

    Unlike a bootstrap it has a width where all answers of a small group are right.
    """
    z = special.ndtri(0.5 + confidence / 2)
    count, total = np.broadcast_arrays(count, total)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = count / total
        centre = (share + z**2 / (2 * total)) / (1 + z**2 / total)
        reach = z * np.sqrt(share * (1 - share) / total + (z / (2 * total)) ** 2)
        reach /= 1 + z**2 / total
    # Rounding would leave dust beside 0 and 1.
    low = np.where((count == 0) & (total > 0), 0.0, centre - reach)
    high = np.where((count == total) & (total > 0), 1.0, centre + reach)
    return low, high


def cohens_h(first: Floats, second: Floats) -> Floats:
    """Return Cohen's h of two proportions: 2 asin sqrt(first) - 2 asin sqrt(second)."""
    return np.asarray(2 * np.arcsin(np.sqrt(first)) - 2 * np.arcsin(np.sqrt(second)))


def fisher_p(
    right_first: Floats, n_first: Floats, right_second: Floats, n_second: Floats
) -> Floats:
    """Return the two-sided p of Fisher's exact test, entry by entry; NaN where a group is empty."""
    parts = np.broadcast_arrays(right_first, n_first, right_second, n_second)
    counts = zip(*(part.ravel().tolist() for part in parts), strict=True)
    return np.array([_fisher(*map(int, row)) for row in counts]).reshape(parts[0].shape)


@functools.lru_cache(maxsize=4096)
def _fisher(right_first: int, n_first: int, right_second: int, n_second: int) -> float:
    if not n_first or not n_second:
        return math.nan
    right = np.array([right_first, right_second])
    wrong = np.array([n_first, n_second]) - right
    return float(stats.fisher_exact(np.stack([right, wrong])).pvalue)
