"""What tests say when labels are dealt at random: the null that a count of p-values needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from vlmfair.stats.moments import Factor, Floats, ResampledColumns
from vlmfair.stats.welch import welch_from_moments


def relabelled_p_values(
    values: Floats,
    factors: Mapping[str, Factor],
    *,
    relabelings: int,
    random: np.random.Generator,
    batch: int = 32,
) -> Iterator[dict[str, Floats]]:
    """Yield, batch by batch, the p-values [batch, columns] of each factor under random labels.

    Each relabeling deals whole rows of labels to the rows of `values` [rows, columns]: the columns
    of a row stay together and so do its labels, so both keep their correlations. The
    relabelings do not depend on `batch`, nor the sums on the number of threads.
    """
    columns = ResampledColumns(values)
    indicators = np.concatenate([factor.indicators() for factor in factors.values()])
    rows = len(values)
    for start in range(0, relabelings, batch):
        size = min(batch, relabelings - start)
        weights = np.stack([indicators[:, random.permutation(rows)] for _ in range(size)])
        yield _p_values(columns, factors, weights)


def _p_values(
    columns: ResampledColumns, factors: Mapping[str, Factor], weights: Floats
) -> dict[str, Floats]:
    result = {}
    first = 0
    for name, factor in factors.items():
        moments = columns.moments(weights[:, first : first + factor.groups])
        result[name] = welch_from_moments(moments, factor.test).p
        first += factor.groups
    return result


def permutation_p(observed: float, null: Floats) -> float:
    """Return the one-sided p of `observed`: (1 + number of null values >= it) / (1 + number)."""
    return float((1 + np.count_nonzero(null >= observed)) / (1 + len(null)))
