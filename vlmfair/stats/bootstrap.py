"""Bootstrap over rows: a row is drawn with everything measured on it, so clusters stay whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from vlmfair.stats.moments import Codes, Factor, Floats, GroupMoments, ResampledColumns


def draw_weights(strata: Codes, random: np.random.Generator) -> Floats:
    """Return how often each row is drawn, with replacement within its stratum: [rows].

    Each stratum keeps its number of rows; `strata[row]` is any whole number.
    """
    weights = np.zeros(len(strata))
    for stratum in np.unique(strata):
        rows = np.flatnonzero(strata == stratum)
        drawn = random.integers(len(rows), size=len(rows))
        weights[rows] = np.bincount(drawn, minlength=len(rows))
    return weights


def bootstrap_moments(
    values: Floats,
    factors: Mapping[str, Factor],
    strata: Codes,
    *,
    replicates: int,
    random: np.random.Generator,
    batch: int = 32,
) -> Iterator[dict[str, GroupMoments]]:
    """Yield, batch by batch, each factor's moments [batch, groups, columns] in resampled rows.

    One drawing of rows serves all factors, so that statistics over several factors keep their
    correlation. The drawings do not depend on `batch`, nor the sums on the number of threads.
    """
    columns = ResampledColumns(values)
    indicators = {name: factor.indicators() for name, factor in factors.items()}
    for start in range(0, replicates, batch):
        size = min(batch, replicates - start)
        drawn = np.stack([draw_weights(strata, random) for _ in range(size)])
        yield {
            name: columns.moments(drawn[:, None, :] * indicator)
            for name, indicator in indicators.items()
        }


def bootstrap_sums(
    values: Floats, *, replicates: int, random: np.random.Generator, batch: int = 128
) -> Floats:
    """Return the sum of each column in resamples of the rows: [rows, columns] to [replicates, ...].

    One drawing of rows serves all columns. The drawings do not depend on `batch`.
    """
    strata = np.zeros(len(values), dtype=np.int64)
    sums = np.zeros((replicates, values.shape[1]))
    for start in range(0, replicates, batch):
        size = min(batch, replicates - start)
        sums[start : start + size] = (
            np.stack([draw_weights(strata, random) for _ in range(size)]) @ values
        )
    return sums


def shrink_differences(
    resampled: GroupMoments, observed: GroupMoments, overall: Floats, f_statistic: Floats
) -> GroupMoments:
    """Return resampled moments whose group means are drawn in towards the overall mean.

    Resampling adds its own noise to differences that already hold the sample's, so tests on
    plain resamples reject far too often. Differences times sqrt(1 - 1/F), or 0 where F < 1, give
    resamples whose expected F is the observed one. `overall` and `f_statistic` are [columns].
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        kept = np.sqrt(np.maximum(0.0, 1.0 - 1.0 / f_statistic))
    excess = (1.0 - np.nan_to_num(kept, nan=1.0)) * (observed.mean - overall)
    return GroupMoments(resampled.n, resampled.mean - excess, resampled.variance)


def centred_interval(
    replicates: Floats, observed: float, *, low: float, high: float, confidence: float = 0.95
) -> tuple[float, float]:
    """Return the percentile interval of replicates [replicates] moved to have mean `observed`.

    This takes off the bias that is left in a count of rejected tests; kept within `low` and `high`.
    """
    ends = percentile_interval(replicates - replicates.mean() + observed, confidence=confidence)
    return float(np.clip(ends[0], low, high)), float(np.clip(ends[1], low, high))


def percentile_interval(replicates: Floats, *, confidence: float = 0.95) -> tuple[Floats, Floats]:
    """Return the percentile interval over the first axis; replicates that are NaN do not count."""
    tails = [50 * (1 - confidence), 50 * (1 + confidence)]
    if np.isnan(replicates).any():
        with np.errstate(invalid="ignore"):
            low, high = np.nanpercentile(replicates, tails, axis=0)
    else:
        low, high = np.percentile(replicates, tails, axis=0)
    return low, high
